# SPDX-License-Identifier: Apache-2.0
"""An index over the audit log. The log stays the only truth: the index is in a file of the console's
own that is thrown away with it, and is made anew from the log at each start."""

import asyncio
import contextlib
import json
import math
import os
import random
import sqlite3
import time

from commands import Refused

BATCH = 2000			# records between two commits
TURN = 100			# records between two looks at what else is to be done
NUMBER_MAX = 1 << 53
STEP = 2000			# rows that an export looks at before others have their turns
AGAIN_SECONDS = 5		# after which a reader that ended is started again
MINUTES = 180			# of which the chart of latency is
KEPT = 500			# runs of a minute of which it knows the time
# Events of the audit log that the service takes for a warning or for worse.
WARNINGS = ("alarm-raised", "broken", "connection-refused", "denied", "import-refused", "lost", "mended",
            "package-refused", "replaced")
TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE record (n INTEGER, time TEXT, event TEXT, tenant TEXT, execution TEXT, body TEXT);
CREATE INDEX record_n ON record (n);
CREATE INDEX record_time ON record (time);
CREATE INDEX record_execution ON record (execution) WHERE execution IS NOT NULL;
CREATE INDEX record_event ON record (event);
CREATE TABLE run (execution TEXT PRIMARY KEY, tenant TEXT, began TEXT, ended TEXT, kind TEXT,
                  profile TEXT, status TEXT, exit_code INTEGER, duration_ms INTEGER,
                  cpu_ms REAL, peak INTEGER, out_bytes INTEGER, source TEXT);
CREATE INDEX run_began ON run (began);
CREATE INDEX run_tenant ON run (tenant, began);
CREATE INDEX run_status ON run (status, began);
CREATE INDEX run_cpu ON run (cpu_ms);
"""
# By which runs, and installations of packages, are summed.
UNITS = {"tenant": ("tenant", "tenant"), "day": ("substr(began, 1, 10)", "substr(time, 1, 10)"),
         "month": ("substr(began, 1, 7)", "substr(time, 1, 7)"), "tool": ("kind", "'install_package'")}
SUMMED = """
SELECT unit, sum(runs) AS runs, sum(failed) AS failed, sum(cpu_seconds) AS cpu_seconds,
       sum(seconds) AS seconds, sum(mib_seconds) AS mib_seconds, sum(out_bytes) AS out_bytes,
       sum(installs) AS installs FROM (
    SELECT %s AS unit, count(*) AS runs, sum(status != 'ok') AS failed,
           sum(cpu_ms) / 1000.0 AS cpu_seconds, sum(duration_ms) / 1000.0 AS seconds,
           sum(duration_ms / 1000.0 * peak / 1048576.0) AS mib_seconds,
           sum(out_bytes) AS out_bytes, 0 AS installs FROM run%s GROUP BY 1
    UNION ALL
    SELECT %s, 0, 0, 0, 0, 0, 0, count(*) FROM record%s GROUP BY 1)
GROUP BY unit ORDER BY %s"""


class Latency:
    """How long the runs took that have ended in the last hours, by minute. Of a minute with many runs
    it keeps some that are chosen by chance."""

    def __init__(self):
        self.at, self.minutes = 0, {}

    def now(self):
        """{minute: [number of runs, times of some of them in ms]}, the first minute first"""
        at = int(time.time()) // 60
        if at != self.at:
            names = [time.strftime("%Y-%m-%dT%H:%M", time.gmtime(60 * n)) for n in range(at - MINUTES + 1, at + 1)]
            self.at, self.minutes = at, {name: self.minutes.get(name, [0, []]) for name in names}
        return self.minutes

    def add(self, ended, ms):
        minute = self.now().get(ended[:16])
        if minute is None:
            return
        minute[0] += 1
        if len(minute[1]) < KEPT:
            minute[1].append(ms)
        else:
            n = random.randrange(minute[0])
            if n < KEPT:
                minute[1][n] = ms

    def shares(self, share):
        """[(number of the minute, the time within which this share of its runs has ended)]"""
        return [(n, sorted(times)[math.ceil(share * len(times)) - 1])
                for n, (_, times) in enumerate(self.now().values()) if times]

    def count(self):
        return sum(count for count, _ in self.now().values())


class Records:
    """source(): gives the records as JSON lines, and goes on with those that are added; None: take()
    is called. place: a directory for the index; None: it is in memory."""

    def __init__(self, source, place):
        self.source, self.trouble, self.read = source, None, 0
        self.begun = 0		# how often it began with the first record
        self.latency = Latency()
        self.db = sqlite3.connect(os.path.join(place, "index.sqlite") if place else ":memory:")
        self.db.row_factory = sqlite3.Row
        self.db.executescript(TABLES)

    # ---- filling it ----

    async def follow(self):
        """Reads the log for as long as the console runs."""
        while True:
            try:
                async with contextlib.aclosing(self.source()) as lines:
                    async for line in lines:
                        self.take(line)
                        if self.read % TURN == 0:	# pages have their turns
                            await asyncio.sleep(0)
                self.trouble = "the audit log cannot be read"
            except Refused as e:
                self.trouble = str(e)
            except (ValueError, sqlite3.Error, OSError) as e:
                self.trouble = "the audit log cannot be read: %s" % e
            await asyncio.sleep(AGAIN_SECONDS)
            self.clear()	# it begins with the first record again

    def close(self):
        self.db.close()

    def clear(self):
        self.db.execute("DELETE FROM record")
        self.db.execute("DELETE FROM run")
        self.read = 0
        self.begun += 1
        self.latency = Latency()

    def take(self, line):
        """Adds a record. What is not of the type that it should be counts as missing."""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(record, dict):
            return
        self.trouble = None
        self.read += 1

        def text(name):
            value = record.get(name)
            return value if isinstance(value, str) else None

        def number(name):
            value = record.get(name)
            return value if type(value) is int and abs(value) < NUMBER_MAX else None
        self.db.execute("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)", (
            number("n"), text("time"), text("event"), text("tenant"), text("execution"),
            line.decode("utf-8", "replace").strip()))
        if record.get("event") == "execution-started":
            self.db.execute(
                "INSERT OR REPLACE INTO run (execution, tenant, began, kind, profile, source) "
                "VALUES (?, ?, ?, ?, ?, ?)", (
                    text("execution"), text("tenant"), text("time") or "",
                    "internal" if record.get("internal") else "run_repl" if record.get("cell") else
                    "run_script", text("profile"),
                    text("source")))
        elif record.get("event") == "execution-ended":
            out = sum(number(name) or 0 for name in (
                "stdout_bytes", "stderr_bytes", "result_bytes"))
            cpu_us = number("cpu_us")
            run = self.db.execute(
                "UPDATE run SET ended = ?, status = ?, exit_code = ?, duration_ms = ?, cpu_ms = ?, "
                "peak = ?, out_bytes = ? WHERE execution = ? RETURNING kind", (
                    text("time"), text("status"), number("exit_code"), number("duration_ms"),
                    number("cpu_ms") if cpu_us is None else cpu_us / 1000, number("peak_memory_bytes"), min(out, NUMBER_MAX),
                    text("execution"))).fetchall()
            if run and run[0]["kind"] != "internal" and number("duration_ms") is not None:
                self.latency.add(text("time") or "", number("duration_ms"))
        if self.read % BATCH == 0:
            self.db.commit()

    # ---- questions ----

    def find(self, table, wanted, order, most, before=None):
        """Rows of a table. wanted: (condition with one ?, value) of those that are asked for."""
        asked = [(c, v) for c, v in wanted if v not in (None, "")]
        if before:
            asked.append(("rowid < ?", before))
        where = " WHERE " + " AND ".join(c for c, _ in asked) if asked else ""
        return self.db.execute("SELECT rowid, * FROM %s%s ORDER BY %s LIMIT ?" % (
            table, where, order), [*(v for _, v in asked), most]).fetchall()

    def runs(self, tenant=None, status=None, since=None, until=None, text=None, cpu_ms=None,
             before=None, most=100):
        return self.find("run", [
            ("tenant = ?", tenant), ("status = ?", status), ("began >= ?", since),
            ("began < ?", until), ("cpu_ms >= ?", cpu_ms),
            ("instr(lower(source), lower(?)) > 0", text)], "rowid DESC", most, before)

    def records(self, event=None, tenant=None, since=None, until=None, text=None, before=None,
                most=100):
        return self.find("record", self.wanted(event, tenant, since, until, text), "rowid DESC", most,
                         before)

    @staticmethod
    def wanted(event=None, tenant=None, since=None, until=None, text=None):
        return [("event = ?", event), ("tenant = ?", tenant), ("time >= ?", since), ("time < ?", until),
                ("instr(lower(body), lower(?)) > 0", text)]

    def lines(self, **asked):
        """The records that are there now, as they are in the log, from the first on; None where others
        may have their turns. Refused: they are no longer the same."""
        asked, begun = [(c, v) for c, v in self.wanted(**asked) if v not in (None, "")], self.begun
        last = self.db.execute("SELECT max(rowid) FROM record").fetchone()[0] or 0
        # With the sign, the conditions use no index: it would be gone through again at each step.
        query = "SELECT body FROM record WHERE rowid > ? AND rowid <= ?%s ORDER BY rowid" % "".join(
            " AND +" + c for c, _ in asked)
        for at in range(0, last, STEP):
            for row in self.db.execute(query, [at, min(at + STEP, last), *(v for _, v in asked)]):
                yield row["body"]
                if self.begun != begun:
                    raise Refused("the audit log is read again")
            yield None
            if self.begun != begun:
                raise Refused("the audit log is read again")

    def warnings(self, most):
        return self.db.execute("SELECT * FROM record WHERE event IN (%s) ORDER BY rowid DESC LIMIT ?" % ", ".join(
            "?" * len(WARNINGS)), (*WARNINGS, most)).fetchall()

    def run(self, execution):
        """(the run or None, its records)"""
        return (self.db.execute("SELECT * FROM run WHERE execution = ?", (execution,)).fetchone(),
                self.db.execute("SELECT * FROM record WHERE execution = ? ORDER BY n",
                                (execution,)).fetchall())

    def usage(self, unit, since=None, until=None, tenant=None):
        def where(time, *more):
            asked = [*more, *(c for c, v in ((time + " >= ?", since), (time + " < ?", until),
                                             ("tenant = ?", tenant)) if v)]
            return " WHERE " + " AND ".join(asked) if asked else ""
        run, record = UNITS[unit]
        return self.db.execute(SUMMED % (
            run, where("began"), record, where("time", "event = 'package-installed'"),
            "unit DESC" if unit in ("day", "month") else "cpu_seconds DESC"),
            2 * [v for v in (since, until, tenant) if v]).fetchall()

    def names(self, column, table="run"):
        return [row[0] for row in self.db.execute(
            "SELECT DISTINCT %s FROM %s WHERE %s IS NOT NULL ORDER BY 1 LIMIT 200" % (
                column, table, column))]
