#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the file of [packages] advisories from a dump of OSV.

    advisories.py [--from URL|FILE] TO

FROM is a zip file with one record a file (https://osv.dev publishes one for PyPI, which is the
default), a folder of such files, or a file of records one after the other. TO gets the records, one
a line, reduced to what mcp-pythond reads. A severity that is only there as a CVSS 3 vector is put
in as a word. TO is replaced at once, and only by a complete list.

Run it outside of the service, for example by advisories.timer, and reload the service then.
"""

import argparse
import io
import json
import math
import os
import sys
import tempfile
import urllib.request
import zipfile

DUMP = "https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip"
BYTES_MAX = 1 << 30
WEIGHTS = {
    "AV": {"N": .85, "A": .62, "L": .55, "P": .2}, "AC": {"L": .77, "H": .44}, "UI": {"N": .85, "R": .62},
    "C": {"H": .56, "L": .22, "N": 0}, "I": {"H": .56, "L": .22, "N": 0}, "A": {"H": .56, "L": .22, "N": 0},
}
PRIVILEGES = {"U": {"N": .85, "L": .62, "H": .27}, "C": {"N": .85, "L": .68, "H": .5}}


def base_score(vector):
    """The base score of a CVSS 3 vector (specification, 7.1); None: it is no such vector."""
    try:
        metric = dict(part.split(":") for part in vector.split("/")[1:])
        value = {name: weights[metric[name]] for name, weights in WEIGHTS.items()}
        changed = metric["S"] == "C"
        privileges = PRIVILEGES[metric["S"]][metric["PR"]]
    except (KeyError, ValueError):
        return None
    part = 1 - (1 - value["C"]) * (1 - value["I"]) * (1 - value["A"])
    impact = 7.52 * (part - .029) - 3.25 * (part - .02) ** 15 if changed else 6.42 * part
    if impact <= 0:
        return 0.0
    ease = 8.22 * value["AV"] * value["AC"] * privileges * value["UI"]
    exact = min((1.08 if changed else 1) * (impact + ease), 10)
    scaled = round(exact * 100000)	# rounded up to a tenth, as the specification does it
    return scaled / 100000 if scaled % 10000 == 0 else (math.floor(scaled / 10000) + 1) / 10


def severity(record):
    word = (record.get("database_specific") or {}).get("severity")
    if word:
        return word
    scores = [base_score(one.get("score", "")) for one in record.get("severity") or []
              if one.get("type") == "CVSS_V3"]
    score = max((s for s in scores if s is not None), default=None)
    if score is None:
        return None
    return "CRITICAL" if score >= 9 else "HIGH" if score >= 7 else "MODERATE" if score >= 4 else "LOW"


def reduced(record):
    """What the service reads; None: it is not about a package of PyPI, or was withdrawn."""
    affected = [{key: one[key] for key in ("package", "ranges", "versions", "database_specific") if key in one}
                for one in record.get("affected") or [] if (one.get("package") or {}).get("ecosystem") == "PyPI"]
    if record.get("withdrawn") or not affected:
        return None
    for one in affected:
        one["ranges"] = [r for r in one.get("ranges") or [] if r.get("type") == "ECOSYSTEM"]
    kept = {key: record[key] for key in ("id", "aliases", "summary") if key in record}
    if not kept.get("summary"):
        kept["summary"] = (record.get("details") or "").split("\n")[0][:200]
    word = severity(record)
    if word:
        kept["database_specific"] = {"severity": word}
    return {**kept, "affected": affected}


def documents(text):
    """The JSON documents of a text, one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        record, at = decoder.raw_decode(text, at)
        yield record


def records(source):
    if os.path.isdir(source):
        for name in sorted(os.listdir(source)):
            if name.endswith(".json"):
                with open(os.path.join(source, name), encoding="utf-8") as f:
                    yield json.load(f)
        return
    if source.startswith(("http://", "https://")):
        with urllib.request.urlopen(source, timeout=60) as answer:
            data = answer.read(BYTES_MAX + 1)
    else:
        with open(source, "rb") as f:
            data = f.read(BYTES_MAX + 1)
    if len(data) > BYTES_MAX:
        raise ValueError("it has more than %d bytes" % BYTES_MAX)
    if not data.startswith(b"PK"):
        yield from documents(data.decode())
        return
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                yield json.loads(archive.read(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--from", dest="source", default=DUMP, metavar="URL|FILE")
    parser.add_argument("to", metavar="TO")
    options = parser.parse_args()
    folder, count = os.path.dirname(os.path.abspath(options.to)), 0
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="ascii") as out:
        try:
            for record in records(options.source):
                kept = reduced(record) if isinstance(record, dict) else None
                if kept:
                    out.write(json.dumps(kept, separators=(",", ":")) + "\n")
                    count += 1
            if count == 0:
                raise ValueError("it has no advisory about a package of PyPI")
            out.flush()
            os.fsync(out.fileno())
            os.chmod(out.name, 0o644)
            os.replace(out.name, options.to)
        except (OSError, ValueError, zipfile.BadZipFile) as e:
            os.unlink(out.name)
            sys.exit("advisories.py: %s: %s" % (options.source, e))
    print("%d advisories" % count)


if __name__ == "__main__":
    main()
