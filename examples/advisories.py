#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the file of [packages] advisories from a dump of OSV.

    advisories.py [--from URL|FILE] TO

FROM is a zip file with one record a file (https://osv.dev publishes one for PyPI, which is the
default), a folder of such files, or a file of records one after the other. TO gets the records, one
a line, reduced to what mcp-pythond reads. A severity that is only there as a CVSS 3 vector is put
in as a word. TO is replaced at once, and only by a complete list: what is missing, broken, cut off
or larger than the bounds below is an error (exit code 1), and the list of before stays.

Run it outside of the service, for example by advisories.timer, and reload the service then.
"""

import argparse
import json
import math
import os
import resource
import signal
import sys
import tempfile
import urllib.request
import zipfile

DUMP = "https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip"
MIB = 1 << 20
BYTES_MAX = 512 * MIB		# of the dump as it comes
UNPACKED_MAX = 4096 * MIB	# of all records
RECORD_MAX = 4 * MIB		# of one, as the service has it
RECORDS_MAX = 500000		# as the service has it
KEPT_MAX = 1024 * MIB		# of the list, as the service has it
MEMORY_MAX = 3072 * MIB
SECONDS_MAX = 900		# for everything
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


def fetch(source, most, out):
    """Writes what a server has for a URL to out."""
    with urllib.request.urlopen(source, timeout=60) as answer:
        length, got = answer.headers.get("Content-Length"), 0
        while got <= most and (data := answer.read(MIB)):
            got += out.write(data)
    if length is not None and got <= most and got != int(length):
        raise ValueError("it was cut off after %d of %s bytes" % (got, length))


def record_of(name, data):
    if len(data) > RECORD_MAX:
        raise ValueError("%s has more than %d bytes" % (name, RECORD_MAX))
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as e:
        raise ValueError("%s: %s" % (name, e)) from e


def records_of_zip(file):
    unpacked = 0
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if not member.filename.endswith(".json"):
                continue
            with archive.open(member) as f:
                data = f.read(RECORD_MAX + 1)
            unpacked += len(data)
            if unpacked > UNPACKED_MAX:
                raise ValueError("its records have more than %d bytes" % UNPACKED_MAX)
            yield record_of(ascii(member.filename), data)


def records(source, most):
    if os.path.isdir(source):
        for name in sorted(os.listdir(source)):
            if name.endswith(".json"):
                with open(os.path.join(source, name), "rb") as f:
                    yield record_of(name, f.read(RECORD_MAX + 1))
        return
    with tempfile.TemporaryFile() as file:
        if source.startswith(("http://", "https://")):
            fetch(source, most, file)
        else:
            with open(source, "rb") as f:
                file.write(f.read(most + 1))
        if file.tell() > most:
            raise ValueError("it has more than %d bytes" % most)
        file.seek(0)
        if file.read(2) == b"PK":
            yield from records_of_zip(file)
        else:
            file.seek(0)
            yield from documents(file.read().decode())


def write_list(options, out):
    """Writes the records that count. Returns how many there are."""
    count = kept = 0
    for n, record in enumerate(records(options.source, options.bytes), 1):
        if n > options.records:
            raise ValueError("it has more than %d records" % options.records)
        try:
            one = reduced(record) if isinstance(record, dict) else None
        except (AttributeError, TypeError) as e:
            raise ValueError("record %d is not in the format of OSV: %s" % (n, e)) from e
        if one:
            kept += out.write(json.dumps(one, separators=(",", ":")) + "\n")
            count += 1
        if kept > KEPT_MAX:
            raise ValueError("the list has more than %d bytes" % KEPT_MAX)
    if count == 0:
        raise ValueError("it has no advisory about a package of PyPI")
    return count


def on_alarm(signum, frame):
    raise TimeoutError("it takes too long")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--from", dest="source", default=DUMP, metavar="URL|FILE")
    parser.add_argument("--bytes", type=int, default=BYTES_MAX, help="most bytes of the dump (%(default)s)")
    parser.add_argument("--records", type=int, default=RECORDS_MAX, help="most records (%(default)s)")
    parser.add_argument("--seconds", type=int, default=SECONDS_MAX, help="most time (%(default)s)")
    parser.add_argument("to", metavar="TO")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))
    signal.alarm(options.seconds)
    folder = os.path.dirname(os.path.abspath(options.to))
    try:
        out = tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="ascii")
    except OSError as e:
        sys.exit("advisories.py: %s: %s" % (folder, e.strerror))
    with out:
        try:
            count = write_list(options, out)
            out.flush()
            os.fsync(out.fileno())
            os.chmod(out.name, 0o644)
            os.replace(out.name, options.to)
        except BaseException as e:
            os.unlink(out.name)
            if not isinstance(e, Exception):
                raise
            # Whatever is wrong with it: zlib, lzma, http.client and others have errors of their own.
            sys.exit("advisories.py: %s: %s" % (options.source, str(e) or type(e).__name__))
    print("%d advisories" % count)


if __name__ == "__main__":
    main()
