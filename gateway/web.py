# SPDX-License-Identifier: Apache-2.0
"""The console: pages about the service for whoever starts it.

It has no authority. What a page shows, and what a button does, is asked of the service by the
commands of mcp-python, as the user who runs the console: an operator sees all, everybody else their
own. Who has the link that it prints is that user, so the link is good for one browser.
"""

import asyncio
import collections
import contextlib
import hmac
import io
import json
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
import time
import traceback
import unicodedata

import jinja2
from aiohttp import web

from lines import program
from main import is_loopback, listening
from notify import Notifier, way_of
from options import EX_UNAVAILABLE, EX_USAGE, Arguments
from records import UNITS, Records
from server import UNREADABLE, is_foreign, quiet, same
from usage import number_of, prices_of, rows_of, write_csv

COMMAND_SECONDS = 30
OUTPUT_MAX = 16 << 20
LOOK_SECONDS = 2
SAMPLES_MAX = 1800		# of the charts: an hour
BROWSERS_MAX = 64		# that are logged in
STREAMS_MAX = 64
PAGE = 100
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
                   help="what a run, cpu_second or mib_second costs; may be repeated")
    p.add_argument("--budget", metavar="WHO=AMOUNT", action="append", default=[],
                   help="what a user, or each, may cost in a month; may be repeated")
    p.add_argument("--notify", metavar="WHERE", action="append", default=[],
                   help="desktop, mail:ADDRESS or a URL: approvals that wait, budgets, alarms")
    p.add_argument("--version", action="version", version="mcp-python-web " + version,
                   help="print the version")
    p.add_argument("--help", action="help", help="print this")
    return p.parse_args()


# ---- the commands ----

class Refused(Exception):
    """A command did not do what it was to do; the text is what it said."""


class Commands:
    """mcp-python, with the rights of who runs the console."""

    def __init__(self, path, service, admin_socket, audit_file):
        self.path, self.service = path, service
        self.admin = ["--admin-socket", admin_socket] if admin_socket else []
        self.file = ["--file", audit_file] if audit_file else []

    async def run(self, *argv):
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE, limit=OUTPUT_MAX)
        except (OSError, ValueError) as e:
            raise Refused("%s: %s" % (argv[0], e)) from e
        try:
            out, err = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
        except asyncio.TimeoutError as e:
            raise Refused("no answer within %d s" % COMMAND_SECONDS) from e
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return process.returncode, out[:OUTPUT_MAX].decode(errors="replace"), \
            err[:4096].decode(errors="replace").strip()

    async def ask(self, *words):
        """What a command of the operators' socket printed."""
        code, out, err = await self.run(self.path, *words, *self.admin)
        if code:
            raise Refused(err or out or "exit code %d" % code)
        return out

    async def json(self, *words):
        try:
            return json.loads(await self.ask(*words, "--json"))
        except ValueError as e:
            raise Refused("no JSON: %s" % e) from e


# ---- what it remembers ----

class Console:
    def __init__(self, commands, place, prices, budgets, notifier):
        self.commands, self.prices, self.budgets = commands, prices, budgets
        self.notifier, self.reported, self.began = notifier, collections.OrderedDict(), stamp()
        self.records = Records([commands.path, "audit", "show", "--json", "--follow",
                                *commands.file], place)
        self.key, self.link = os.urandom(32), None
        self.browsers = collections.OrderedDict()	# cookie -> when it logged in
        self.samples = collections.deque(maxlen=SAMPLES_MAX)
        self.status, self.running, self.trouble = {}, [], "the first answer has not come yet"
        self.looked, self.streams = asyncio.Condition(), 0
        self.loopback_only = True
        self.url = ""

    def new_link(self):
        """Prints a link that is good for one browser."""
        self.link = secrets.token_urlsafe(24)
        with contextlib.suppress(OSError):	# nobody reads it any more
            print("open %s/login?key=%s" % (self.url, self.link), flush=True)

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
    console = request.app["console"]
    cookie = request.get("browser") or ""
    page = request.app["pages"].get_template(name + ".html").render(
        here=name, csrf=console.csrf(cookie), logged_in=bool(cookie), query=request.query, **values)
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
            "charts": console.charts()}


async def now(request):
    return show(request, "now", **now_values(request.app["console"]))


async def now_stream(request):
    """The page's moving part, each time that the service was asked."""
    console = request.app["console"]
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
    console = request.app["console"]
    seconds = number(request, "cpu")
    rows = console.records.runs(
        request.query.get("tenant"), request.query.get("status"), when(request, "since"),
        when(request, "until"), request.query.get("text"),
        None if seconds is None else seconds * 1000, number(request, "before"), PAGE)
    return show(request, "runs", rows=rows, page=PAGE, records=console.records,
                tenants=console.records.names("tenant"), statuses=console.records.names("status"))


async def run(request):
    console, execution = request.app["console"], request.match_info["id"]
    row, records = console.records.run(execution)
    if not row and not records:
        raise web.HTTPNotFound(text="there is no such run in the audit log")
    started = next((json.loads(r["body"]) for r in records if r["event"] == "execution-started"), {})
    return show(request, "run", row=row, started=started, source=marked((row or {})["source"] or "")
                if row else [], items=[(r, json.loads(r["body"])) for r in records])


async def sessions(request):
    console = request.app["console"]
    return show(request, "sessions", sessions=console.status.get("sessions") or [],
                trouble=console.trouble)


async def approvals(request):
    console = request.app["console"]
    every = request.query.get("all") == "1"
    try:
        found, trouble = await console.commands.json(
            "approvals", "list", *(["--all"] if every else [])), None
    except Refused as e:
        found, trouble = [], str(e)
    return show(request, "approvals", approvals=found, trouble=trouble, every=every)


async def approval(request):
    console, name = request.app["console"], request.match_info["id"]
    found = [a for a in await console.commands.json("approvals", "list", "--all")
             if a.get("id") == name]
    if not found:
        raise web.HTTPNotFound(text="there is no such approval")
    text = await console.commands.ask("approvals", "show", name)
    return show(request, "approval", approval=found[0], text=marked_quote(text.rstrip("\n")))


async def packages(request):
    console = request.app["console"]
    try:
        found, trouble = await console.commands.json("packages"), None
    except Refused as e:
        found, trouble = [], str(e)
    return show(request, "packages", sets=found, trouble=trouble)


async def usage(request):
    console = request.app["console"]
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


async def audit(request):
    console = request.app["console"]
    rows = console.records.records(
        request.query.get("event"), request.query.get("tenant"), when(request, "since"),
        when(request, "until"), request.query.get("text"), number(request, "before"), PAGE)
    return show(request, "audit", rows=[(r, json.loads(r["body"])) for r in rows], page=PAGE,
                records=console.records, events=console.records.names("event", "record"))


async def policy(request):
    console, who = request.app["console"], request.query.get("who", "").strip()
    text = trouble = ""
    if who.startswith("-") or not who.isprintable():
        raise web.HTTPBadRequest(text="who is not the name of a user or a tenant")
    if who:
        code, text, err = await console.commands.run(
            console.commands.service or "mcp-pythond", "--show-policy", who)
        trouble = err if code else ""
    return show(request, "policy", who=who, text=text, trouble=trouble,
                tenants=console.records.names("tenant"))


async def health(request):
    console = request.app["console"]
    code, text, err = await console.commands.run(console.commands.path, "check-host")
    return show(request, "health", text=text + err, well=code == 0,
                status=console.status, trouble=console.trouble)


# ---- what changes something ----

async def form_of(request):
    form = await request.post()
    if not same(str(form.get("csrf", "")), request.app["console"].csrf(request["browser"])):
        raise web.HTTPForbidden(text="this form is not of this login: load the page again")
    return form


async def decide(request):
    form = await form_of(request)
    what, name = str(form.get("do", "")), request.match_info["id"]
    reason = str(form.get("reason", "")).strip()
    if what not in ("approve", "deny", "revoke"):
        raise web.HTTPBadRequest(text="do is not approve, deny or revoke")
    if len(reason) > 500 or not reason.isprintable():
        raise web.HTTPBadRequest(text="reason is not one line of at most 500 characters")
    await request.app["console"].commands.ask(
        "approvals", what, name, *(["--reason", reason] if what == "deny" and reason else []))
    raise web.HTTPSeeOther("/approvals")


async def stop(request):
    await form_of(request)
    await request.app["console"].commands.ask("stop", request.match_info["id"])
    raise web.HTTPSeeOther(request.query.get("from") == "sessions" and "/sessions" or "/")


async def remove_packages(request):
    form = await form_of(request)
    who = str(form.get("tenant", ""))
    if who.startswith("-") or not who.isprintable():
        raise web.HTTPBadRequest(text="tenant is not the name of a user or a tenant")
    await request.app["console"].commands.ask("packages", "remove", request.match_info["set"],
                                              *([who] if who else []))
    raise web.HTTPSeeOther("/packages")


async def verify(request):
    await form_of(request)
    console = request.app["console"]
    code, out, err = await console.commands.run(console.commands.path, "audit", "verify",
                                                *console.commands.file)
    return show(request, "verified", well=code == 0, text=out + err)


# ---- who may look ----

def cookie_name(request):
    """Another console, as behind another tunnel of ssh, has another one."""
    port = request.host.rpartition(":")[2]
    return COOKIE % (port if port.isascii() and port.isdigit() else "")


async def login(request):
    """The page behind the link. A HEAD, by which programs look at links, does not use it up."""
    console = request.app["console"]
    given = request.query.get("key", "")
    if request.method != "GET" or not console.link or \
            not same(given, console.link):
        raise web.HTTPForbidden(text="this link was used or is wrong; the console prints a new one "
                                "where it was started")
    cookie = secrets.token_urlsafe(32)
    console.browsers[cookie] = time.time()
    while len(console.browsers) > BROWSERS_MAX:
        console.browsers.popitem(last=False)
    console.new_link()
    # Not a redirection: a strict cookie is not sent with one that another site began.
    response = show(request, "welcome")
    response.set_cookie(cookie_name(request), cookie, httponly=True, samesite="Strict", path="/")
    return response


async def logout(request):
    await form_of(request)
    request.app["console"].browsers.pop(request["browser"], None)
    response = web.HTTPSeeOther("/login")
    response.del_cookie(cookie_name(request))
    raise response


def is_embedded(request):
    """Does a page of another site, or of another port of this one, load it as a part of itself?"""
    return request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none") and \
        request.headers.get("Sec-Fetch-Dest") != "document"


@web.middleware
async def around(request, handler):
    """Who is not logged in sees nothing but style, and each answer has the headers."""
    console, status = request.app["console"], 500
    try:
        if is_foreign(request) or is_embedded(request):
            raise web.HTTPForbidden(text="requests of other sites are refused")
        cookie = request.cookies.get(cookie_name(request), "")
        public = request.path == "/login" or request.path.startswith("/static/")
        if cookie in console.browsers:
            request["browser"] = cookie
        elif not public:
            raise web.HTTPForbidden(text="not logged in: open the link that the console prints "
                                    "where it was started")
        response = await handler(request)
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


def application(console, pages):
    quiet()
    app = web.Application(middlewares=[around], client_max_size=64 << 10)
    app["console"], app["loopback_only"] = console, True
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
            ("/approvals", approvals), ("/packages", packages), ("/usage", usage), ("/audit", audit), ("/policy", policy),
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

    async def background(app):
        tasks = [asyncio.create_task(work()) for work in (
            console.look, console.records.follow, console.watch, console.notifier.send)]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    app.cleanup_ctx.append(background)
    return app


async def serve(make, sockets, pages):
    console, ended = make(), asyncio.Event()
    for n in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(n, ended.set)
    console.looked = asyncio.Condition()
    runner = web.AppRunner(application(console, pages), access_log=None, auto_decompress=False)
    await runner.setup()
    for sock in sockets:
        await web.SockSite(runner, sock, shutdown_timeout=1).start()
    host, port = sockets[0].getsockname()[:2]
    console.url = "http://%s:%d" % ("[%s]" % host if ":" in host else host, port)
    console.new_link()
    await ended.wait()
    console.browsers.clear()	# open pages end
    async with console.looked:
        console.looked.notify_all()
    await runner.cleanup()


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
    sockets = listening(args.listen)
    if not all(map(is_loopback, sockets)):
        fail("--listen %s: only loopback is served; from another machine, use ssh -L 8889:%s" %
             (args.listen, "127.0.0.1:8889"), EX_USAGE)
    commands = Commands(os.path.join(bindir, "mcp-python"), program(beside), args.admin_socket,
                        args.audit_file)
    place = tempfile.mkdtemp(prefix="mcp-python-web-")	# of this user alone
    try:
        asyncio.run(serve(lambda: Console(commands, place, prices, budgets, Notifier(ways)), sockets,
                          os.path.join(os.path.dirname(os.path.abspath(__file__)), "pages")))
    finally:
        shutil.rmtree(place, ignore_errors=True)
