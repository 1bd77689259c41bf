# SPDX-License-Identifier: Apache-2.0
"""mcp-python usage: what users have used, summed from the audit log."""

import csv
import json
import os
import re
import subprocess
import sys

from options import Arguments
from records import UNITS, Records

COLUMNS = ("runs", "failed", "cpu_seconds", "seconds", "mib_seconds", "out_bytes", "installs")
PRICED = {"run": "runs", "cpu_second": "cpu_seconds", "mib_second": "mib_seconds", "install": "installs"}
DAY = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?", re.ASCII)


def number_of(text):
    """A price or budget; -1 if it is none."""
    try:
        number = float(text)
    except ValueError:
        return -1
    return number if 0 <= number < 1e9 else -1


def prices_of(given, fail):
    """{unit: amount} of options such as run=0.1; fail(text) ends the program."""
    prices = {}
    for one in given:
        name, _, amount = one.partition("=")
        prices[name] = number_of(amount)
        if name not in PRICED or prices[name] < 0:
            fail("--price %s: not run, cpu_second, mib_second or install, = and a number" % one)
    return prices


def rows_of(records, prices, unit, **asked):
    """What was used, as dicts with a cost if there are prices."""
    rows = [{k: r[k] or (0 if k != "unit" else "") for k in ("unit", *COLUMNS)}
            for r in records.usage(unit, **asked)]
    for row in rows if prices else ():
        row["cost"] = sum(amount * row[PRICED[name]] for name, amount in prices.items())
    return rows


def write_csv(out, unit, rows, prices):
    names = [*COLUMNS, *(["cost"] if prices else [])]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([unit, *names])
    for row in rows:
        # A program for tables must not take a name for a formula.
        first = "'" + row["unit"] if row["unit"][:1] in tuple("=+-@\t\r") else row["unit"]
        writer.writerow([first, *(row[n] for n in names)])


def write_table(unit, rows, prices):
    names = [*COLUMNS, *(["cost"] if prices else [])]
    lines = [[unit, *(n.replace("_", " ") for n in names)]]
    for row in rows:
        lines.append([row["unit"].encode("unicode_escape").decode(), *(
            "%.2f" % row[n] if isinstance(row[n], float) else str(row[n]) for n in names)])
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join([line[0].ljust(widths[0]), *(
            text.rjust(width) for text, width in zip(line[1:], widths[1:]))]))


def arguments(version):
    p = Arguments(
        prog="mcp-python usage", add_help=False,
        description="Show what users have used, summed from the audit log of the service: runs, those "
                    "that did not end well, processor seconds, seconds, MiB-seconds, bytes of output and "
                    "installations of packages.",
        epilog="Exit codes: 0, 64 wrong usage, otherwise that of mcp-python audit show.")
    p.add_argument("--by", metavar="UNIT", choices=sorted(UNITS), default="tenant",
                   help="one line for each %s (tenant)" % ", ".join(sorted(UNITS)))
    p.add_argument("--since", metavar="TIME",
                   help="runs that began since then: as for mcp-python audit show, in UTC")
    p.add_argument("--until", metavar="TIME",
                   help="runs that began before then: 2026-01-31 or 2026-01-31T12:00, in UTC")
    p.add_argument("--tenant", metavar="WHO", help="those of one user, such as uid:1000")
    p.add_argument("--price", metavar="UNIT=AMOUNT", action="append", default=[],
                   help="what a run, cpu_second, mib_second or install costs; may be repeated")
    p.add_argument("--json", action="store_true", help="as JSON")
    p.add_argument("--csv", action="store_true", help="as CSV")
    p.add_argument("--file", metavar="PATH", help="the service's [audit] file")
    p.add_argument("--version", action="version", version="mcp-python-usage " + version,
                   help="print the version")
    p.add_argument("--help", action="help", help="print this")
    args = p.parse_args()
    if args.json and args.csv:
        p.error("--json and --csv exclude each other")
    if args.until and not DAY.fullmatch(args.until):
        p.error("--until %s: not a time such as 2026-01-31 or 2026-01-31T12:00" % args.until)
    return args, prices_of(args.price, p.error)


def main(version, _beside, bindir):
    args, prices = arguments(version)
    command = [os.path.join(bindir, "mcp-python"), "audit", "show", "--json",
               *(["--since", args.since] if args.since else []),
               *(["--file", args.file] if args.file else [])]
    records = Records(None, None)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            records.take(line)
    if process.returncode:
        return process.returncode
    rows = rows_of(records, prices, args.by, until=args.until, tenant=args.tenant)
    if args.json:
        print(json.dumps([{args.by: row.pop("unit"), **row} for row in rows]))
    elif args.csv:
        write_csv(sys.stdout, args.by, rows, prices)
    else:
        write_table(args.by, rows, prices)
    return 0
