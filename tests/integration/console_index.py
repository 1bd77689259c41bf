#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""console_index.py COUNT: fills an index of the console (gateway/records.py) with so many records of two weeks, asks
it what its pages ask, and prints as JSON how many seconds of the processor each question took and how many passed,
and what was found of one."""

import datetime
import json
import os
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "gateway"))

from records import Records  # noqa: E402

RUNS = 1000	# that come as lines of the log; the others are copies of them, later
FIRST = datetime.datetime(2026, 1, 1)
DAYS, TUESDAY = 14, "2026-01-06"
LONG = 40 * 60 * 1000	# ms of processor time
COPIED_RUNS = """
WITH RECURSIVE copy (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < :copies)
INSERT INTO run SELECT execution || i, tenant, %s, %s, kind, profile, status, exit_code, duration_ms, cpu_ms, peak,
                       out_bytes, source FROM copy, run WHERE :copies > 0"""
COPIED_RECORDS = """
WITH RECURSIVE copy (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < :copies)
INSERT INTO record SELECT n + i * :rows, %s, event, tenant, execution || i, body FROM copy, record WHERE :copies > 0"""
LATER = "strftime('%Y-%m-%dT%H:%M:%S', {}, '+' || (i * :minutes) || ' minutes') || '.000000Z'"


def is_long(n):
    return n % 250 == 7


def began(n, copy=0, minutes=0):
    return FIRST + datetime.timedelta(seconds=n, minutes=copy * minutes)


def lines():
    for n in range(RUNS):
        run = {"tenant": "uid:%d" % (1000 + n % 50), "execution": "x-%07d" % n, "hash": "0" * 64, "prev": "1" * 64}
        yield {"n": 2 * n + 1, "time": began(n).isoformat() + ".000000Z", "event": "execution-started", **run,
               "profile": "default", "source": "import os\nx = %d\n%s" % (n, "print(x, os.getpid())\n" * 4)}
        yield {"n": 2 * n + 2, "time": began(n + 1).isoformat() + ".000000Z", "event": "execution-ended", **run,
               "status": "error" if n % 20 == 3 else "ok", "exit_code": 0, "duration_ms": n,
               "cpu_us": 3000000000 if is_long(n) else 1000 * n, "peak_memory_bytes": 40 << 20, "stdout_bytes": n}


def fill(records, count):
    """(copies, minutes between two of them)"""
    copies = max(0, count // (2 * RUNS) - 1)
    minutes = DAYS * 24 * 60 // (copies + 1)
    for line in lines():
        records.take(json.dumps(line).encode())
    values = {"copies": copies, "rows": 2 * RUNS, "minutes": minutes}
    records.db.execute(COPIED_RUNS % (LATER.format("began"), LATER.format("ended")), values)
    records.db.execute(COPIED_RECORDS % LATER.format("time"), values)
    records.db.commit()
    return copies, minutes


def ask(records):
    """(seconds of each question, the runs of Tuesday)"""
    seconds, found = {}, {}
    for name, question in (
            ("runs of Tuesday with 40 processor minutes", lambda: records.runs(
                since=TUESDAY, until="2026-01-07", cpu_ms=LONG, most=10000)),
            ("the last runs", records.runs),
            ("failed runs of one user", lambda: records.runs(tenant="uid:1003", status="error")),
            ("runs with a text that none has", lambda: records.runs(text="nothing like this")),
            ("one run and its records", lambda: records.run("x-0000007")),
            ("the last records of an event", lambda: records.records(event="execution-ended")),
            ("warnings of a log without any", lambda: records.warnings(50)),
            ("usage of a day by user", lambda: records.usage("tenant", since=TUESDAY, until="2026-01-07")),
            ("usage of all runs by user", lambda: records.usage("tenant"))):
        used, passed = time.process_time(), time.perf_counter()
        found[name] = question()
        seconds[name] = round(time.process_time() - used, 4), round(time.perf_counter() - passed, 4)
    return seconds, found["runs of Tuesday with 40 processor minutes"]


def main(count):
    with tempfile.TemporaryDirectory(prefix="mcp-index-") as place:
        records = Records(None, place)
        began_at = time.process_time()
        copies, minutes = fill(records, count)
        filled = round(time.process_time() - began_at, 1)
        seconds, tuesday = ask(records)
        wanted = sum(began(n, copy, minutes).isoformat()[:10] == TUESDAY
                     for copy in range(copies + 1) for n in range(RUNS) if is_long(n))
        print(json.dumps({
            "records": records.db.execute("SELECT count(*) FROM record").fetchone()[0], "filled": filled,
            "bytes": os.path.getsize(os.path.join(place, "index.sqlite")), "seconds": seconds,
            "tuesday": len(tuesday), "wanted": wanted}))
        records.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
