# SPDX-License-Identifier: Apache-2.0
"""The console: pages about the service for whoever starts it, or for all users of a machine.

It has no authority. What a page shows, and what a button does, is asked of the service by the
commands of mcp-python, as the user who runs the console: an operator sees all, everybody else their
own. Who has the link that it prints is that user, so the link is good for one browser. The console
of a machine (--system) has a user of its own, who may nothing: there each user's own program runs
the commands (login.py).
"""

import asyncio
import collections
import contextlib
import hmac
import io
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import time
import traceback
import unicodedata
import urllib.parse

import jinja2
from aiohttp import web

from commands import Local, Refused
from lines import program
from login import LOGIN_SOCKET, MESSAGE_MAX, Remote, log_in, peer_uid
from main import ACTIVATED, is_loopback, listening, notify
from notify import Notifier, way_of
from options import EX_UNAVAILABLE, EX_USAGE, Arguments
from records import MINUTES, UNITS, Records
from server import LOOPBACK, UNREADABLE, end_silent, is_foreign, quiet, same
from usage import number_of, prices_of, rows_of, write_csv

LOOK_SECONDS = 2
SAMPLES_MAX = 1800		# of the charts: an hour
BROWSERS_MAX = 64		# that are logged in
STREAMS_MAX = 64
EXPORTS_MAX = 4			# of the audit log at the same time
EXPORT_BYTES = 256 << 10	# that are sent at once
EXPORT_SECONDS = 30		# in which a browser takes them
LOGINS_MAX = 32			# users' programs at the console of a machine
LOGINS_PER_USER = 2
PROXY_HEADER = "X-Remote-User"
PAGE = 100
WARNINGS_SHOWN = 50
TOGETHER_MAX = 100		# requests that are decided by one form
REASON_MAX = 400		# bytes, as for the service
COOKIE = "mcp-python-console-%s"	# by the port: browsers have one store for all ports of a name
SHARES = (1.0, 0.8)		# of a budget at which its user is reported
REPORTED_MAX = 10000
TOLD_MAX = 200			# characters of a stranger in a notification
UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
ID = re.compile(r"[a-z]-[a-z0-9]{4,32}")
WHEN = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?", re.ASCII)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
    # With no-referrer, browsers send forms of our own pages with "Origin: null".
    "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"}
# Where lines of a script deserve a second look.
MARKED = re.compile(r"\b(import|from|eval|exec|compile|open|subprocess|socket|requests|urllib|os|"
                    r"shutil|ctypes|getattr|setattr|globals|vars|breakpoint|pickle|pip)\b|__|[^ -~\t]")

ESCAPED = re.compile(r"\\[uUx][0-9a-f{]")


def fail(text, code=EX_UNAVAILABLE):
    print("mcp-python-web: " + text, file=sys.stderr)
    sys.exit(code)


def arguments(version):
    p = Arguments(
        prog="mcp-python web", add_help=False,
        description="Serve a console about the service to your browser.",
        epilog="Exit codes: 0 ended as asked, 64 wrong usage, 69 cannot serve. "
               "See mcp-python-web(1).")
    p.add_argument("--listen", metavar="ADDR:PORT", default="127.0.0.1:8889",
                   help="where to serve, on loopback (127.0.0.1:8889; port 0: any free one)")
    p.add_argument("--admin-socket", metavar="PATH", help="the operators' socket of the service")
    p.add_argument("--audit-file", metavar="PATH", help="the service's [audit] file")
    p.add_argument("--price", metavar="UNIT=AMOUNT", action="append", default=[],
                   help="what a run, cpu_second, mib_second or install costs; may be repeated")
    p.add_argument("--budget", metavar="WHO=AMOUNT", action="append", default=[],
                   help="what a user, or each, may cost in a month; may be repeated")
    p.add_argument("--notify", metavar="WHERE", action="append", default=[],
                   help="desktop, mail:ADDRESS or a URL: approvals that wait, budgets, alarms")
    p.add_argument("do", metavar="login", nargs="?", choices=["login"],
                   help="show yourself at the console of this machine, until you end it")
    p.add_argument("--socket", metavar="PATH", default=LOGIN_SOCKET,
                   help="of the console of this machine, with login (%s)" % LOGIN_SOCKET)
    p.add_argument("--proxy", action="store_true",
                   help="with login: who the console's proxy says has your name is you, without a link")
    p.add_argument("--system", action="store_true",
                   help="be the console of this machine, on sockets that systemd passes")
    p.add_argument("--url", metavar="URL", help="with --system: the address that browsers use")
    p.add_argument("--version", action="version", version="mcp-python-web " + version,
                   help="print the version")
    p.add_argument("--help", action="help", help="print this")
    return p.parse_args()


# ---- what it remembers ----

class Console:
    """What one user sees. say: prints the link to the user."""

    def __init__(self, commands, place, prices, budgets, notifier, say=None, user=None):
        self.user, self.say = user, say
        self.commands, self.prices, self.budgets = commands, prices, budgets
        self.notifier, self.reported, self.began = notifier, collections.OrderedDict(), stamp()
        self.records = Records(commands.lines, place)
        self.key, self.link = os.urandom(32), None
        self.browsers = collections.OrderedDict()	# cookie -> when it logged in
        self.samples = collections.deque(maxlen=SAMPLES_MAX)
        self.status, self.running, self.trouble = {}, [], "the first answer has not come yet"
        self.looked, self.streams, self.exports = asyncio.Condition(), 0, 0
        self.url, self.by_proxy, self.latency_of_look = "", False, {}

    def new_link(self):
        """Prints a link that is good for one browser."""
        self.link = secrets.token_urlsafe(24)
        link = "%s/login?key=%s" % (self.url, self.link)
        if self.say:
            self.say(link)
            return
        with contextlib.suppress(OSError):	# nobody reads it any more
            print("open " + link, flush=True)

    def new_browser(self):
        """The cookie of a browser that is logged in from now on."""
        cookie = secrets.token_urlsafe(32)
        self.browsers[cookie] = time.time()
        while len(self.browsers) > BROWSERS_MAX:
            self.browsers.popitem(last=False)
        return cookie

    @contextlib.asynccontextmanager
    async def working(self):
        """It asks the service, and follows its log."""
        tasks = [asyncio.create_task(work()) for work in (
            self.look, self.records.follow, self.watch, self.notifier.send)]
        try:
            yield
        finally:
            self.browsers.clear()	# open pages end
            async with self.looked:
                self.looked.notify_all()
            while tasks:
                # wait_for() loses a cancellation that comes together with its result (until Python 3.12).
                for task in tasks:
                    task.cancel()
                _, tasks = await asyncio.wait(tasks, timeout=1)
            self.records.close()

    def csrf(self, cookie):
        return hmac.digest(self.key, cookie.encode(), "sha256").hex()

    async def look(self):
        """Asks the service what it does, again and again, once for all browsers."""
        while True:
            try:
                self.status = await self.commands.json("status")
                self.trouble = None
                with contextlib.suppress(Refused):	# for operators alone
                    self.running = await self.commands.json("ps")
                self.sample()
            except Refused as e:
                self.trouble = str(e)
            except Exception as e:	# an answer that is not as it should be
                self.trouble = "the answer of the service cannot be read: %s" % (e or type(e).__name__)
            async with self.looked:
                self.looked.notify_all()
            await asyncio.sleep(LOOK_SECONDS)

    async def watch(self):
        """Reports what should be looked at, each thing once."""
        while self.notifier.ways:
            try:
                for one in await self.commands.json("approvals", "list"):
                    self.report("approval-waits", one.get("id"), "an approval waits", "%s of %s: %s" % (
                        one.get("tool"), one.get("tenant"), one.get("first_line") or
                        ", ".join(map(str, one.get("items") or []))), "/approvals/%s" % one.get("id"))
            except (Refused, AttributeError, TypeError):
                pass		# the page "now" says so
            self.report_budgets()
            self.report_alarms()
            await asyncio.sleep(LOOK_SECONDS)

    def report_budgets(self):
        month = stamp()[:7]
        for row in self.spent():
            for share in SHARES:
                if row["cost"] >= share * row["budget"]:
                    self.report("budget", (month, row["unit"], share), "%.0f %% of a budget" % (100 * share),
                                "%s has used %.2f of %.2f in %s" % (
                                    row["unit"], row["cost"], row["budget"], month), "/usage")
                    break

    def report_alarms(self):
        for row in self.records.records("alarm-raised", since=self.began):
            body = json.loads(row["body"])
            self.report("alarm", row["rowid"], "an alarm was raised", "%s: %s" % (
                body.get("tenant"), body.get("pattern")), "/audit?event=alarm-raised")

    def report(self, event, key, subject, text, page):
        if (event, key) not in self.reported:
            self.reported[event, key] = None
            while len(self.reported) > REPORTED_MAX:
                self.reported.popitem(last=False)
            self.notifier.add(event, subject, "%s: %s" % (subject, one_line(text)), self.url + page)

    def spent(self):
        """What each user with a budget has used in this month."""
        rows = rows_of(self.records, self.prices, "tenant", since=stamp()[:7]) if self.budgets else []
        limit = self.budgets.get("each")
        found = [{**row, "budget": self.budgets.get(row["unit"], limit)} for row in rows]
        return [row for row in found if row["budget"] is not None]

    def sample(self):
        executions = self.status.get("executions") or {}
        self.samples.append({
            "load": os.getloadavg()[0], "running": executions.get("running") or 0,
            "queued": executions.get("queued") or 0, "memory": sum(
                t.get("memory_bytes") or 0 for t in self.status.get("tenants") or []) / 1048576})
        self.latency_of_look = self.latency()	# once for all browsers

    def charts(self):
        """name -> (the last value, the largest, points of a line in a field of 300 by 40)"""
        found = {}
        for name in ("running", "queued", "load", "memory"):
            values = [s[name] for s in self.samples] or [0]
            values = values[::max(1, len(values) // 300)]
            most = max(max(values), 1e-9)
            step = 300 / max(1, len(values) - 1)
            found[name] = values[-1], max(values), " ".join(
                "%.1f,%.1f" % (i * step, 39 - 38 * v / most) for i, v in enumerate(values))
        return found

    def latency(self):
        """The same of the time that runs took: {name: (in the last minute that has any, the largest, dashes)}"""
        found, latency = {}, self.records.latency
        lines = {"p50": latency.shares(0.5), "p99": latency.shares(0.99)}
        most = max([value for _, value in lines["p99"]], default=0)
        step = 300 / MINUTES
        for name, values in lines.items():
            if values:
                found[name] = values[-1][1], max(value for _, value in values), "".join(
                    "M%.1f,%.1fh%.1f" % (n * step, 39 - 38 * value / max(most, 1), step) for n, value in values)
        return found


# ---- pages ----

def plain(text):
    """The text with each character that is not seen, or that moves others, as an escape."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in UNSEEN
                   else "\\u{%x}" % ord(c) for c in str(text))


def one_line(text):
    """The beginning of a text of a stranger, for a message."""
    text = plain(" ".join(str(text).split()))
    return text if len(text) <= TOLD_MAX else text[:TOLD_MAX - 1] + "\u2026"


def stamp():
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())


def marked(text):
    """(number, line, does it deserve a second look) of a script. Python takes full width letters for
    others, so lines with letters beyond ASCII are marked, too."""
    return [(n, line, is_marked(line)) for n, line in enumerate(re.split(r"\r\n|[\n\r]", text), 1)]


def is_marked(line):
    return bool(MARKED.search(unicodedata.normalize("NFKC", line))) or not line.isascii()


def marked_quote(text):
    """The same of what "mcp-python approvals show" says. It goes on with a long line after ">+", where
    a word may be in two lines, and has an escape for a character that is not seen."""
    found, lines = [], text.split("\n")
    while lines:
        n = 1
        while n < len(lines) and lines[n].startswith(">+"):
            n += 1
        whole = "".join([lines[0], *(line[2:] for line in lines[1:n])])
        look = whole.startswith(">") and (is_marked(whole[1:]) or bool(ESCAPED.search(whole)))
        found += [(len(found) + i, line, look) for i, line in enumerate(lines[:n], 1)]
        del lines[:n]
    return found


def amount(value):
    value = float(value or 0)
    return "%.0f" % value if value >= 100 or value == int(value) else "%.2f" % value


def day_of(seconds):
    return time.strftime("%Y-%m-%d", time.gmtime(seconds)) if type(seconds) is int and \
        0 < seconds < 1 << 36 else ""


def of_bytes(value):
    value = float(value or 0)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return "%.*f %s" % (unit != "B" and value < 100, value, unit)
        value /= 1024
    return ""


def show(request, name, code=200, **values):
    console = request.get("console")
    cookie = request.get("browser") or ""
    page = request.app["pages"].get_template(name + ".html").render(
        here=name, csrf=console.csrf(cookie) if cookie else "", logged_in=bool(cookie), query=request.query, **values)
    return web.Response(text=page, content_type="text/html", status=code)


def when(request, name):
    """A time in the query; "" if there is none."""
    value = request.query.get(name, "").strip()
    if value and not WHEN.fullmatch(value):
        raise web.HTTPBadRequest(text="%s is not a date such as 2026-01-31 or 2026-01-31T12:00"
                                 % name)
    return value


def number(request, name):
    value = request.query.get(name, "").strip()
    if value and not (value.isascii() and value.isdigit() and len(value) < 16):
        raise web.HTTPBadRequest(text="%s is not a number" % name)
    return int(value) if value else None


def now_values(console):
    return {"status": console.status, "running": console.running, "trouble": console.trouble,
            "charts": console.charts(), "latency": console.latency_of_look,
            "timed": console.records.latency.count(), "untimed": console.records.trouble}


async def now(request):
    return show(request, "now", **now_values(request["console"]))


async def now_stream(request):
    """The page's moving part, each time that the service was asked."""
    console = request["console"]
    if console.streams >= STREAMS_MAX:
        raise web.HTTPServiceUnavailable(text="too many pages are open")
    console.streams += 1
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    part = request.app["pages"].get_template("now_part.html")
    try:
        await response.prepare(request)
        while request["browser"] in console.browsers:
            text = part.render(csrf=console.csrf(request["browser"]), **now_values(console))
            await asyncio.wait_for(response.write(
                b"data: %s\n\n" % json.dumps(text).encode()), 10 * LOOK_SECONDS)
            async with console.looked:
                await console.looked.wait()
    except (ConnectionError, asyncio.TimeoutError):
        pass
    finally:
        console.streams -= 1
    return response


async def runs(request):
    console = request["console"]
    seconds = number(request, "cpu")
    rows = console.records.runs(
        request.query.get("tenant"), request.query.get("status"), when(request, "since"),
        when(request, "until"), request.query.get("text"),
        None if seconds is None else seconds * 1000, number(request, "before"), PAGE)
    return show(request, "runs", rows=rows, page=PAGE, records=console.records,
                tenants=console.records.names("tenant"), statuses=console.records.names("status"))


async def run(request):
    console, execution = request["console"], request.match_info["id"]
    row, records = console.records.run(execution)
    if not row and not records:
        raise web.HTTPNotFound(text="there is no such run in the audit log")
    started = next((json.loads(r["body"]) for r in records if r["event"] == "execution-started"), {})
    return show(request, "run", row=row, started=started, source=marked((row or {})["source"] or "")
                if row else [], items=[(r, json.loads(r["body"])) for r in records])


async def sessions(request):
    console = request["console"]
    return show(request, "sessions", sessions=console.status.get("sessions") or [],
                trouble=console.trouble)


async def approvals(request):
    console = request["console"]
    every = request.query.get("all") == "1"
    try:
        found, trouble = await console.commands.json(
            "approvals", "list", *(["--all"] if every else [])), None
    except Refused as e:
        found, trouble = [], str(e)
    wanted = [packages_of(one) for one in found]
    return show(request, "approvals", trouble=trouble, every=every,
                approvals=[(one, wanted.count(of) - 1 if of else 0) for one, of in zip(found, wanted)])


def packages_of(one):
    """What a request that waits for packages asks for, each with its version, hash and index; else None."""
    items = one.get("items")
    return sorted(map(str, items)) if one.get("state") == "pending" and \
        one.get("tool") == "install_package" and isinstance(items, list) else None


def same_packages(found, one):
    """The other requests that wait for the same packages."""
    wanted = packages_of(one)
    return [other for other in found if other is not one and packages_of(other) == wanted] if wanted else []


async def approval(request):
    console, name = request["console"], request.match_info["id"]
    every = await console.commands.json("approvals", "list", "--all")
    found = [a for a in every if a.get("id") == name]
    if not found:
        raise web.HTTPNotFound(text="there is no such approval")
    text = await console.commands.ask("approvals", "show", name)
    return show(request, "approval", approval=found[0], text=marked_quote(text.rstrip("\n")),
                same=same_packages(every, found[0])[:TOGETHER_MAX - 1])


async def packages(request):
    console = request["console"]
    try:
        found, trouble = await console.commands.json("packages"), None
    except Refused as e:
        found, trouble = [], str(e)
    return show(request, "packages", sets=found, trouble=trouble)


async def usage(request):
    console = request["console"]
    unit = request.query.get("by") or "tenant"
    if unit not in UNITS:
        raise web.HTTPBadRequest(text="by is not one of %s" % ", ".join(UNITS))
    rows = rows_of(console.records, console.prices, unit, since=when(request, "since"),
                   until=when(request, "until"), tenant=request.query.get("tenant"))
    if request.query.get("form") == "csv":
        out = io.StringIO()
        write_csv(out, unit, rows, console.prices)
        return web.Response(text=out.getvalue(), content_type="text/csv", headers={
            "Content-Disposition": 'attachment; filename="usage-%s.csv"' % unit})
    return show(request, "usage", rows=rows, unit=unit, spent=console.spent(), month=stamp()[:7], units=list(UNITS), prices=console.prices,
                records=console.records)


def records_asked(request):
    """What the form of the audit log asks for."""
    return {"since": when(request, "since"), "until": when(request, "until"),
            **{name: request.query.get(name) for name in ("event", "tenant", "text")}}


async def audit(request):
    console = request["console"]
    rows = console.records.records(**records_asked(request), before=number(request, "before"), most=PAGE)
    return show(request, "audit", rows=[(r, json.loads(r["body"])) for r in rows], page=PAGE,
                records=console.records, events=console.records.names("event", "record"))


async def send_lines(response, lines, is_open):
    """Sends what records.lines() gives. ConnectionError: not all of it."""
    held, size = [], 0
    for line in lines:
        if line is not None:
            held.append(line + "\n")
            size += len(line) + 1
        else:
            await asyncio.sleep(0)
        if size >= EXPORT_BYTES:
            await asyncio.wait_for(response.write("".join(held).encode()), EXPORT_SECONDS)
            held, size = [], 0
        if not is_open():
            raise ConnectionResetError("the login has ended")
    await asyncio.wait_for(response.write("".join(held).encode()), EXPORT_SECONDS)


async def export(request):
    """All records that the page shows with this form, as they are in the log."""
    console, asked = request["console"], records_asked(request)
    if console.records.trouble:
        raise Refused("the audit log: %s" % console.records.trouble)
    if console.exports >= EXPORTS_MAX:
        raise web.HTTPServiceUnavailable(text="too many exports run")
    console.exports += 1
    response = web.StreamResponse(headers={
        "Content-Type": "application/x-ndjson", "Content-Disposition": 'attachment; filename="audit.jsonl"'})
    try:
        await response.prepare(request)
        await send_lines(response, console.records.lines(**asked), lambda: request["browser"] in console.browsers)
    except (Refused, sqlite3.Error, ConnectionError, asyncio.TimeoutError):
        # The end of a file that is not whole would look like the end of a whole one.
        if request.transport:
            request.transport.abort()
    finally:
        console.exports -= 1
    return response


async def policy(request):
    console, who = request["console"], request.query.get("who", "").strip()
    text = trouble = ""
    if who.startswith("-") or not who.isprintable():
        raise web.HTTPBadRequest(text="who is not the name of a user or a tenant")
    if who:
        code, text, err = await console.commands.run("policy", who)
        trouble = err if code else ""
    return show(request, "policy", who=who, text=text, trouble=trouble,
                tenants=console.records.names("tenant"))


async def health(request):
    console = request["console"]
    code, text, err = await console.commands.run("check-host")
    try:
        _, journal, said = await console.commands.run("journal")
    except Refused as e:
        journal, said = "", str(e)
    return show(request, "health", text=text + err, well=code == 0, status=console.status,
                trouble=console.trouble, journal=journal, said=said, records=console.records,
                warnings=[(r, json.loads(r["body"])) for r in console.records.warnings(WARNINGS_SHOWN)])


# ---- what changes something ----

async def form_of(request):
    form = await request.post()
    if not same(str(form.get("csrf", "")), request["console"].csrf(request["browser"])):
        raise web.HTTPForbidden(text="this form is not of this login: load the page again")
    return form


async def decide(request):
    form = await form_of(request)
    commands = request["console"].commands
    what, name = str(form.get("do", "")), request.match_info["id"]
    reason = str(form.get("reason", "")).strip()
    if what not in ("approve", "deny", "revoke", "approve-all", "deny-all"):
        raise web.HTTPBadRequest(text="do is not approve, deny or revoke")
    if not reason.isprintable() or len(reason.encode()) > REASON_MAX:
        raise web.HTTPBadRequest(text="reason is not one line of at most %d bytes" % REASON_MAX)
    words = ["--reason", reason] if what != "revoke" and reason else []
    if not what.endswith("-all"):
        await commands.ask("approvals", what, name, *words)
        raise web.HTTPSeeOther("/approvals")
    # A request never changes, so it is still about these packages when it is decided.
    names, refused = await those_together(commands, name, str(form.get("also", "")).split()), []
    for one in names:
        try:
            await commands.ask("approvals", what[:-len("-all")], one, *words)
        except Refused as e:
            refused.append("%s: %s" % (one, e))
    if refused:
        raise Refused("%d of %d were decided. The others were not: %s" % (
            len(names) - len(refused), len(names), "; ".join(refused)))
    raise web.HTTPSeeOther("/approvals")


async def those_together(commands, name, also):
    """The request and the others that its page has named, if they are about the same packages."""
    found = await commands.json("approvals", "list", "--all")
    mine = [one for one in found if one.get("id") == name]
    same = [one.get("id") for one in (same_packages(found, mine[0]) if mine else [])]
    if not mine or len(also) >= TOGETHER_MAX or not all(one in same for one in also):
        raise web.HTTPConflict(text="these requests do not wait for the same packages any more: load the page again")
    return [name, *dict.fromkeys(also)]


async def stop(request):
    await form_of(request)
    await request["console"].commands.ask("stop", request.match_info["id"])
    raise web.HTTPSeeOther(request.query.get("from") == "sessions" and "/sessions" or "/")


async def remove_packages(request):
    form = await form_of(request)
    who = str(form.get("tenant", ""))
    if who.startswith("-") or not who.isprintable():
        raise web.HTTPBadRequest(text="tenant is not the name of a user or a tenant")
    await request["console"].commands.ask("packages", "remove", request.match_info["set"],
                                              *([who] if who else []))
    raise web.HTTPSeeOther("/packages")


async def verify(request):
    await form_of(request)
    console = request["console"]
    code, out, err = await console.commands.run("audit", "verify")
    return show(request, "verified", well=code == 0, text=out + err)


# ---- who may look ----

def cookie_name(request):
    """Another console, as behind another tunnel of ssh, has another one."""
    port = request.host.rpartition(":")[2]
    return COOKIE % (port if port.isascii() and port.isdigit() else "")


async def login(request):
    """The page behind the link. A HEAD, by which programs look at links, does not use it up."""
    given = request.query.get("key", "")
    found = [one for one in request.app["consoles"] if one.link and same(given, one.link)]
    if request.method != "GET" or not found or is_proxied(request):
        raise web.HTTPForbidden(text="this link was used or is wrong; the console prints a new one "
                                "where it was started")
    found[0].new_link()
    return welcome(request, found[0])


def welcome(request, console):
    """A browser is logged in."""
    # Not a redirection: a strict cookie is not sent with one that another site began.
    response = show(request, "welcome")
    response.set_cookie(cookie_name(request), console.new_browser(), httponly=True, samesite="Strict",
                        path="/", secure=console.url.startswith("https:"))
    return response


def is_proxied(request):
    """Does it come from the proxy, by the socket that nobody else can open?"""
    sock = request.transport and request.transport.get_extra_info("socket")
    return sock is not None and sock.family == socket.AF_UNIX


def console_for(request, cookie):
    """The console of the user whose request this is, or None. The proxy's word counts for each
    request, so a cookie is good for the one user only."""
    mine = [one for one in request.app["consoles"] if cookie in one.browsers]
    if is_proxied(request):
        names = request.headers.getall(PROXY_HEADER, [])
        mine = [one for one in mine if one.by_proxy and names == [one.user]]
    return mine[0] if mine else None


def console_of_proxied(request):
    """The console that the proxy's user may see without a link, or None."""
    names = request.headers.getall(PROXY_HEADER, [])
    mine = [one for one in request.app["consoles"] if one.by_proxy and names == [one.user]]
    return mine[0] if is_proxied(request) and mine else None


async def logout(request):
    await form_of(request)
    request["console"].browsers.pop(request["browser"], None)
    response = web.HTTPSeeOther("/login")
    response.del_cookie(cookie_name(request))
    raise response


def is_embedded(request):
    """Does a page of another site, or of another port of this one, load it as a part of itself?"""
    return request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none") and \
        request.headers.get("Sec-Fetch-Dest") != "document"


def is_ours(request):
    """Is it sent to the name of this machine, or to that of --url?"""
    host = request.headers.get("Host", "")
    return host == request.app["host"] or (host.rsplit(":", 1)[0] if not host.endswith("]") else host) in LOOPBACK


@web.middleware
async def around(request, handler):
    """Who is not logged in sees nothing but style, and each answer has the headers."""
    status, return_now = 500, None
    try:
        if is_foreign(request) or is_embedded(request) or not is_ours(request):
            raise web.HTTPForbidden(text="requests of other sites are refused")
        cookie = request.cookies.get(cookie_name(request), "")
        public = request.path == "/login" or request.path.startswith("/static/")
        console = console_for(request, cookie)
        if console:
            request["browser"], request["console"] = cookie, console
        elif not public and request.method == "GET" and console_of_proxied(request):
            return_now = welcome(request, console_of_proxied(request))
        elif not public:
            raise web.HTTPForbidden(text="not logged in: open the link that the console prints "
                                    "where it was started")
        # A response counts as false, because it has no items.
        response = return_now if return_now is not None else await handler(request)
    except web.HTTPException as e:
        response = e if e.status < 400 else show(request, "error", e.status, text=e.text or e.reason)
    except Refused as e:
        response = show(request, "error", 502, text=str(e))
    except ConnectionError:		# the browser has gone
        raise
    except (OSError, *UNREADABLE) as e:
        response = show(request, "error", 400, text="the request cannot be read: %s" % (
            e or type(e).__name__))
    except Exception as e:
        traceback.print_exc()
        response = show(request, "error", 500, text="a mistake of the console: %s" % type(e).__name__)
    if not response.prepared:
        response.headers.update(HEADERS)
    status = response.status
    # The page, and not the path as it came, in which a key could be.
    resource = request.match_info.route.resource
    print("request method=%s page=%s status=%d" % (
        request.method, resource.canonical if resource else "none", status),
        file=sys.stderr, flush=True)
    if isinstance(response, web.HTTPException):
        raise response
    return response


async def add_headers(_, response):
    response.headers.update(HEADERS)


def application(consoles, pages, host=None):
    """consoles: those of the users who are there. host: under which it is known beside loopback."""
    quiet()
    app = web.Application(middlewares=[around], client_max_size=64 << 10)
    app["consoles"], app["host"], app["loopback_only"] = consoles, host, host is None
    app["pages"] = jinja2.Environment(
        loader=jinja2.FileSystemLoader(pages), autoescape=True, undefined=jinja2.ChainableUndefined)
    app["pages"].filters.update(amount=amount, bytes=of_bytes, day=day_of)
    # Each value of a page that a stranger may have written.
    app["pages"].finalize = lambda value: plain(value) if isinstance(value, str) and \
        not hasattr(value, "__html__") else value
    app.on_response_prepare.append(add_headers)
    add = app.router
    add.add_get("/", now)
    for path, handler in (
            ("/now", now_stream), ("/runs", runs), ("/sessions", sessions),
            ("/approvals", approvals), ("/packages", packages), ("/usage", usage), ("/audit", audit),
            ("/audit/export", export), ("/policy", policy),
            ("/health", health), ("/login", login)):
        add.add_get(path, handler)
    add.add_get("/runs/{id:%s}" % ID.pattern, run)
    add.add_get("/approvals/{id:%s}" % ID.pattern, approval)
    add.add_post("/approvals/{id:%s}" % ID.pattern, decide)
    add.add_post("/packages/{set:[0-9a-f]{64}}/remove", remove_packages)
    add.add_post("/stop/{id:%s}" % ID.pattern, stop)
    add.add_post("/audit/verify", verify)
    add.add_post("/logout", logout)
    add.add_static("/static/", os.path.join(pages, "static"))
    return app


def ended_by_signal():
    ended = asyncio.Event()
    for n in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(n, ended.set)
    return ended


@contextlib.asynccontextmanager
async def serving(app, sockets):
    runner = web.AppRunner(app, access_log=None, auto_decompress=False)
    await runner.setup()
    silent = asyncio.create_task(end_silent(runner.server))
    for sock in sockets:
        await web.SockSite(runner, sock, shutdown_timeout=1).start()
    try:
        yield
    finally:
        silent.cancel()
        await runner.cleanup()


def url_of(sock):
    host, port = sock.getsockname()[:2]
    return "http://%s:%d" % ("[%s]" % host if ":" in host else host, port)


async def serve(make, sockets, pages):
    console, ended = make(), ended_by_signal()
    console.looked, console.url = asyncio.Condition(), url_of(sockets[0])
    async with serving(application([console], pages), sockets):
        async with console.working():
            console.new_link()
            await ended.wait()


# ---- the console of a machine ----

def name_of_user(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "uid:%d" % uid


class Machine:
    """Users come and go by the socket of logins."""

    def __init__(self, url, prices, budgets):
        self.url, self.prices, self.budgets = url, prices, budgets
        self.consoles, self.uids = [], []

    async def on_login(self, reader, writer):
        uid = peer_uid(writer.get_extra_info("socket"))
        remote = Remote(reader, writer)
        own = 0 if uid == 0 else self.uids.count(uid)
        try:
            if own >= LOGINS_PER_USER or len(self.uids) >= LOGINS_MAX + (uid == 0):
                await remote.channel.send({"error": "too many are logged in"})
                return
            self.uids.append(uid)
            try:
                await self.serve_user(remote, name_of_user(uid))
            finally:
                self.uids.remove(uid)
        except (OSError, ValueError, asyncio.TimeoutError, RecursionError):
            pass
        finally:
            writer.close()

    async def serve_user(self, remote, user):
        hello = await remote.first()
        reading = asyncio.create_task(remote.read())
        links = set()		# keeps the tasks

        def say(link):
            task = asyncio.create_task(remote.channel.send({"link": link}))
            links.add(task)
            task.add_done_callback(lambda one: (links.discard(one), one.cancelled() or one.exception()))
        with tempfile.TemporaryDirectory(prefix="mcp-python-web-") as place:
            console = Console(remote, place, self.prices, self.budgets, Notifier([]), say, user)
            console.url, console.by_proxy = self.url, hello.get("proxy") is True
            try:
                async with console.working():
                    self.consoles.append(console)
                    console.new_link()
                    print("login user=%s" % user, file=sys.stderr, flush=True)
                    await reading
            finally:
                if console in self.consoles:
                    self.consoles.remove(console)
                reading.cancel()
                print("logout user=%s" % user, file=sys.stderr, flush=True)


def passed_sockets():
    """{name: sockets} of those that systemd passes."""
    found = collections.defaultdict(list)
    if os.environ.get("LISTEN_PID") == str(os.getpid()):
        names = os.environ.get("LISTEN_FDNAMES", "").split(":")
        for i in range(int(os.environ.get("LISTEN_FDS", "0"))):
            found[names[i] if i < len(names) else ""].append(socket.socket(fileno=ACTIVATED + i))
    return found


async def serve_machine(machine, browsers, logins, pages, host):
    ended = ended_by_signal()
    async with serving(application(machine.consoles, pages, host), browsers):
        server = await asyncio.start_unix_server(machine.on_login, sock=logins, limit=MESSAGE_MAX)
        notify("READY=1")
        await ended.wait()
        notify("STOPPING=1")
        server.close()


def system(args, prices, budgets, pages):
    passed = passed_sockets()
    if len(passed["web"]) != 1 or len(passed["login"]) != 1 or set(passed) - {"web", "login", "proxy"}:
        fail("--system: systemd passes one socket with the name web, one with the name login, and "
             "perhaps one with the name proxy", EX_USAGE)
    if not is_loopback(passed["web"][0]):
        fail("--system: the socket for browsers is not on loopback; a proxy makes it known elsewhere", EX_USAGE)
    url = (args.url or url_of(passed["web"][0])).rstrip("/")
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query:
        wrong("--url %s: not an address such as https://console.example.org" % args.url)
    asyncio.run(serve_machine(Machine(url, prices, budgets), passed["web"] + passed["proxy"],
                              passed["login"][0], pages, parts.netloc if args.url else None))


def wrong(text):
    fail(text, EX_USAGE)


def budgets_of(given, prices):
    """{user or "each": amount} of options such as uid:1000=20."""
    budgets = {}
    for one in given:
        who, _, amount = one.rpartition("=")
        budgets[who] = number_of(amount)
        if not who or budgets[who] <= 0:
            wrong("--budget %s: not a user or each, = and a number above 0" % one)
    if budgets and not prices:
        wrong("--budget needs --price")
    return budgets


def ways_of(given):
    ways = []
    for one in given:
        try:
            ways.append(way_of(one))
        except ValueError as e:
            wrong("--notify %s: %s" % (one, e))
    return ways


def main(version, beside, bindir):
    args = arguments(version)
    prices = prices_of(args.price, wrong)
    budgets, ways = budgets_of(args.budget, prices), ways_of(args.notify)
    pages = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pages")
    commands = Local(os.path.join(bindir, "mcp-python"), program(beside), args.admin_socket,
                     args.audit_file)
    if args.do == "login":
        return asyncio.run(log_in(commands, args.socket, args.proxy))
    if args.proxy or args.url and not args.system:
        wrong("--proxy goes with login, --url with --system")
    if args.system:
        if ways:
            wrong("--system: --notify is for a console of one's own")
        return system(args, prices, budgets, pages)
    sockets = listening(args.listen)
    if not all(map(is_loopback, sockets)):
        fail("--listen %s: only loopback is served; from another machine, use ssh -L 8889:%s" %
             (args.listen, "127.0.0.1:8889"), EX_USAGE)
    place = tempfile.mkdtemp(prefix="mcp-python-web-")	# of this user alone
    try:
        asyncio.run(serve(lambda: Console(commands, place, prices, budgets, Notifier(ways)), sockets,
                          pages))
    finally:
        shutil.rmtree(place, ignore_errors=True)
