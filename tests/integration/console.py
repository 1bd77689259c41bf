#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The console: what its pages show and do, and what strangers cannot.

A suite of tests/integration/run."""

import contextlib
import csv
import email
import email.policy
import html
import html.parser
import http.client
import http.server
import io
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from admin import Admin
from audit_log import Log
from console_suite import PAGES, Browser, Directory, console_of, login_of, machine_console, served
from harness import FEW_MODULES, SOMEBODY, TOP, equal, main, test
from mcpclient import connect_as
from package_index import Index
from package_store import config as package_config, environments, install, new_store
from waits import until, until_equal

HOSTILE = "print('<script>alert(1)</script>')	# \"'><img src=x onerror=alert(2)> {{ 7*7 }} \u202e\n" \
          "# \x1b[31m\u2028\n\uff4f\uff50\uff45\uff4e('x', 'w')\nx = 1"
HOSTILE_TEXT = "=1+1\"><img src=x onerror=alert(1)><script>alert(2)</script><b>{{ 7*7 }}</b>' x\" onfocus=alert(3) \u202e"


def read_all(browser, count):
    """Until so many runs are in the index."""
    until("the audit log is read", lambda: browser.page("/runs").count('<a href="/runs/x-') >= count)


@test(private=True)
def a_link_is_good_for_one_browser(ctx):
    with Directory() as d, ctx.private(d.config()), console_of(ctx, d) as console:
        address, path = console.link()
        stranger = Browser(address)
        for page in (*PAGES, "/now", "/runs/x-aaaaaaaaaa", "/approvals/a-aaaaaaaaaa"):
            equal(stranger.ask("GET", page)[0], 403, page)
        equal(stranger.ask("POST", "/stop/x-aaaaaaaaaa", {})[0], 403)
        equal(stranger.ask("HEAD", path)[0], 403)	# programs look at links
        equal(stranger.ask("GET", path + "x")[0], 403)
        equal(stranger.ask("GET", "/login")[0], 403)
        browser = console.browser()
        said = browser.answer.headers
        cookie = said["Set-Cookie"]
        for word in ("HttpOnly", "SameSite=Strict", "Path=/"):
            assert word in cookie, cookie
        equal(stranger.ask("GET", path)[0], 403)
        for page in PAGES:
            browser.page(page)
            headers = browser.answer.headers
            assert "default-src 'none'" in headers["Content-Security-Policy"], page
            assert "unsafe" not in headers["Content-Security-Policy"], page
            equal((headers["X-Frame-Options"], headers["Cache-Control"]), ("DENY", "no-store"), page)
        # A cookie of one's own making is nobody's.
        stranger.cookie = "mcp-python-console=" + "A" * 43
        equal(stranger.ask("GET", "/")[0], 403)
        # The next link is another one, and both browsers stay logged in.
        second = console.browser()
        assert second.cookie != browser.cookie
        equal((browser.ask("GET", "/")[0], second.ask("GET", "/")[0]), (200, 200))
        equal(second.form("/logout", "/")[0], 303)
        equal((browser.ask("GET", "/")[0], second.ask("GET", "/")[0]), (200, 403))


@test(private=True)
def pages_of_other_sites_get_nothing(ctx):
    with Directory() as d, ctx.private(d.config()), console_of(ctx, d) as console:
        browser = console.browser()
        for headers in ([("Host", "evil.example:80")], [("Origin", "http://evil.example")]):
            for verb, path in (("GET", "/"), ("GET", "/now"), ("POST", "/logout")):
                equal(browser.ask(verb, path, {} if verb == "POST" else None, headers)[0], 403)
        for form in ({}, {"csrf": ""}, {"csrf": "0" * 64}):
            for path in ("/logout", "/stop/x-aaaaaaaaaa", "/approvals/a-aaaaaaaaaa", "/audit/verify"):
                status, text = browser.ask("POST", path, form)
                equal(status, 403, path)
                assert "not of this login" in text, text
        for body, kind in ((b"csrf=\xff", "application/x-www-form-urlencoded"),
                           (b"csrf=1", "application/x-www-form-urlencoded; charset=nope"),
                           (b"x", "multipart/form-data"), (b"--b", "multipart/form-data; boundary=b")):
            browser.ask("POST", "/logout", None, [("Content-Type", kind)], body)
            assert 400 <= browser.answer.status < 500, (body, browser.answer.status)
            assert browser.answer.headers["Content-Security-Policy"], body
        equal(browser.ask("GET", "/static/" + "a" * 300)[0] // 100, 4)
        # The form of one login is not another's.
        other = console.browser()
        token = re.search(r'name="csrf" value="([0-9a-f]+)"', other.page("/"))[1]
        equal(browser.ask("POST", "/logout", {"csrf": token})[0], 403)


@test(private=True)
def what_browsers_say_about_a_request_counts(ctx):
    """They name the page that a request comes from, which is one of ours or nothing."""
    with Directory() as d, ctx.private(d.config()), console_of(ctx, d) as console:
        browser = console.browser()
        own = "http://" + browser.address
        token = re.search(r'name="csrf" value="([0-9a-f]+)"', browser.page("/"))[1]
        # With another policy than this, browsers say "null" in our own forms.
        equal(browser.answer.headers["Referrer-Policy"], "same-origin")
        for origin, status in (("null", 403), ("http://localhost:1", 403), (own + "1", 403), (own, 404)):
            form = {"csrf": token, "do": "approve"}
            equal(browser.ask("POST", "/runs/x-aaaaaaaaaa/", form, [("Origin", origin)])[0], status, origin)
        for site, kind, status in (
                ("same-origin", "empty", 200), ("none", "document", 200), ("cross-site", "document", 200),
                ("cross-site", "iframe", 403), ("same-site", "image", 403), ("same-site", "empty", 403)):
            headers = [("Sec-Fetch-Site", site), ("Sec-Fetch-Dest", kind)]
            equal(browser.ask("GET", "/", None, headers)[0], status, "%s, %s" % (site, kind))
        # A login that a stranger has chosen is not taken over, and stays nobody's.
        fixed = "%s=%s" % (browser.cookie.split("=")[0], "A" * 43)
        other = Browser(browser.address)
        other.cookie = fixed
        other.log_in(console.link()[1])
        assert other.cookie.split("=")[0] == fixed.split("=")[0] and other.cookie != fixed, other.cookie
        other.cookie = fixed
        equal(other.ask("GET", "/")[0], 403)


@test(private=True)
def consoles_do_not_log_each_other_out(ctx):
    """Browsers keep one store of cookies for all ports of a name."""
    with Directory() as d, ctx.private(d.config()), console_of(ctx, d) as first, console_of(ctx, d) as second:
        browsers = [first.browser(), second.browser()]
        cookies = "; ".join(one.cookie for one in browsers)
        equal(len({one.cookie.split("=")[0] for one in browsers}), 2)
        for one in browsers:
            one.cookie = cookies
            one.page("/")


def hostile_copy(value):
    """The same with markup in each text but the names of things that a page asks for."""
    if isinstance(value, dict):
        return {k: v if k in ("id", "session") or k == "state" and v == "pending" else hostile_copy(v)
                for k, v in value.items()}
    if isinstance(value, list):
        return [hostile_copy(v) for v in value]
    return HOSTILE_TEXT if isinstance(value, str) else value


class Foreign(html.parser.HTMLParser):
    """What no page of the console has: pictures, other scripts, attributes with code."""

    @classmethod
    def found(cls, text):
        parser = cls()
        parser.wrong = []
        parser.feed(text)
        return parser.wrong

    def handle_starttag(self, tag, attrs):
        if tag in ("img", "iframe", "style") or tag == "script" and attrs != [
                ("src", "/static/console.js"), ("defer", None)] or any(
                    name.startswith("on") or name == "style" or str(value).strip().lower().startswith("javascript:")
                    for name, value in attrs):
            self.wrong.append((tag, attrs))


class FalseService:
    """An operators' socket that says what a stranger wants."""

    def __init__(self, path, answers):
        self.answers, self.socket = answers, socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(64)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.answer, args=self.socket.accept()[:1], daemon=True).start()

    def answer(self, connection):
        with contextlib.suppress(OSError), connection, connection.makefile("rw", encoding="utf-8") as file:
            for line in file:
                said = self.answers.get(json.loads(line)["do"], {"ok": False, "error": HOSTILE_TEXT})
                print(json.dumps(said), file=file, flush=True)

    def end(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@test(private=True, root=True)
def markup_in_every_field_is_text(ctx):
    """What the service and its log say, with markup in each text, on each page."""
    with Directory() as d, Log(ctx) as log:
        config = d.config(log.config() + "[policy]\nrun_script = approve\nrun_repl = allow\n")
        with ctx.private(config) as service, ctx.client(path=service.socket, uid=SOMEBODY) as c:
            c.outcome(c.request("tools/call", {"name": "run_repl", "arguments": {"code": "x = 1"}}), 120)
            c.outcome(c.request("tools/call", {"name": "run_script", "arguments": {"script": "1"}}), 120)
            call = c.request("tools/call", {"name": "run_repl", "arguments": {
                "code": "import time\ntime.sleep(300)", "timeout_seconds": 300}})
            with Admin(d.socket) as admin:
                until("it runs", lambda: admin.ask("executions")["executions"])
                said = {do: admin.ask(do) for do in ("status", "executions", "list")}
                said["packages"] = {"ok": True, "total": 1, "sets": [{
                    "set": "a" * 64, "used": 1, "bytes": 1, "packages": ["x"], "tenants": [{
                        "tenant": "x", "used": 1}]}]}
                said["show"] = admin.ask("show", id=said["list"]["approvals"][0]["id"])
                execution = said["executions"]["executions"][0]["id"]
                admin.ask("stop", id=execution)
            c.outcome(call, 120)
            records = log.records()
        said = {do: {"ok": True, **hostile_copy({k: v for k, v in one.items() if k != "ok"})}
                for do, one in said.items()}
        false_log = os.path.join(d.path, "log")
        with open(false_log, "w", encoding="utf-8") as f:
            for record in records:
                kept = {k: record[k] for k in ("event", "time", "execution", "n") if k in record}
                print(json.dumps({**hostile_copy(record), **kept}), file=f)
            print(json.dumps({**hostile_copy(records[0]), "n": 99}), file=f)	# the event and the time, too
        false = FalseService(d.socket, said)
        try:
            with console_of(ctx, d, "--audit-file", false_log) as console:
                browser = console.browser()
                until("the log is read", lambda: execution in browser.page("/runs"))
                until("the status came", lambda: "&lt;img" in browser.page("/"))
                approval = said["list"]["approvals"][0]["id"]
                for page in (*PAGES, "/runs/" + execution, "/approvals/" + approval, "/approvals?all=1",
                             *("/usage?by=" + unit for unit in ("day", "month", "tool"))):
                    status, text = browser.ask("GET", page)
                    assert status in (200, 502), (page, status)
                    equal(Foreign.found(text), [], page)
                    assert not re.search("[\u202e\x1b\u2028]", text), page
                    if page not in ("/policy", "/health") and "by=" not in page:
                        assert "&lt;img" in text, "%s shows nothing of it: %s" % (page, text)
                done = browser.page("/usage?form=csv")
                for line in csv.reader(io.StringIO(done)):
                    assert not line or line[0][:1] not in ("=", "+", "-", "@"), line
        finally:
            false.end()


@test(private=True, root=True)
def sets_of_packages_are_shown_and_removed(ctx):
    """An operator sees all; a user their own, and can remove nothing else."""
    with Index() as index, new_store() as store, Directory() as d, Log(ctx) as log:
        index.add("alpha", "1.0")
        index.add("beta", "2.0")
        with ctx.private(d.config(log.config() + package_config(index.url, store))) as service, \
                ctx.client(path=service.socket) as c, ctx.client(path=service.socket, uid=SOMEBODY) as other, \
                console_of(ctx, d) as console, console_of(ctx, d, user=SOMEBODY) as theirs:
            for client, name in ((c, "alpha"), (other, "alpha"), (other, "beta")):
                equal(install(client, name)["status"], "ok")
            browser, user = console.browser(), theirs.browser()

            def shown(one):
                return set(re.findall(r"<li><code>([a-z]+==[0-9.]+)</code>", one.page("/packages")))
            text = browser.page("/packages")
            equal(shown(browser), {"alpha==1.0", "beta==2.0"})
            equal(text.count("uid:%d" % SOMEBODY) > 1 and "uid:%d" % os.getuid() in text, True, text)
            equal(len(environments(store)), 2)
            owners = [os.path.join(store, "tenants", name, "principal")
                      for name in os.listdir(os.path.join(store, "tenants"))]
            equal({text_of(path) for path in owners}, {"uid:%d" % n for n in (os.getuid(), SOMEBODY)})
            # The other user sees nothing of the operator's.
            equal(shown(user), {"alpha==1.0", "beta==2.0"})
            assert "uid:%d (" % os.getuid() not in user.page("/packages"), user.page("/packages")
            alpha, = re.findall(r'action="(/packages/[0-9a-f]{64}/remove)"[^\n]*\n?', next(
                row for row in user.page("/packages").split("<tr>") if "alpha" in row))
            beta, = re.findall(r'action="(/packages/[0-9a-f]{64}/remove)"', next(
                row for row in user.page("/packages").split("<tr>") if "beta" in row))
            status, text = user.form(alpha, "/packages", tenant="uid:%d" % os.getuid())
            equal(status, 502, text)
            assert "not an operator" in text, text
            equal(browser.ask("POST", alpha, {})[0], 403)
            equal(browser.form(alpha, "/packages", tenant="--help")[0], 400)
            # What both have stays on the disk until the last one has removed it.
            equal(user.form(alpha, "/packages")[0], 303)
            equal(shown(user), {"beta==2.0"})
            equal(shown(browser), {"alpha==1.0", "beta==2.0"})
            equal(user.form(alpha, "/packages")[0], 502)
            equal(len(environments(store)), 2)
            equal(browser.form(alpha, "/packages")[0], 303)
            until("it is gone", lambda: len(environments(store)) == 1)
            equal(browser.form(beta, "/packages", tenant="uid:%d" % SOMEBODY)[0], 303)
            until("it is gone", lambda: not environments(store))
            equal((shown(user), shown(browser)), (set(), set()))
            removed = [r for r in log.records() if r["event"] == "packages-removed"]
            equal([(r["by"], r.get("tenant")) for r in removed], [
                ("uid:%d" % SOMEBODY, "uid:%d" % SOMEBODY), ("uid:%d" % os.getuid(), None),
                ("uid:%d" % os.getuid(), "uid:%d" % SOMEBODY)])
            # A call that needs it installs it again.
            equal(install(other, "beta")["status"], "ok")
            equal(shown(user), {"beta==2.0"})


@test(private=True)
def what_strangers_write_is_text(ctx):
    with served(ctx) as (service, _, console, browser), ctx.client(path=service.socket) as c:
        c.run(HOSTILE, 120)
        read_all(browser, 1)
        execution = re.search(r'href="(/runs/x-[a-z0-9]+)"', browser.page("/runs"))[1]
        for page in (*PAGES, execution, "/runs?text=" + urllib.parse.quote(HOSTILE),
                     "/audit?text=" + urllib.parse.quote("<script>"), "/policy?who=%3Cscript%3E",
                     "/runs?tenant=%22%3E%3Cscript%3E"):
            text = browser.page(page)
            assert "<script>" not in text and "<img" not in text, page
            assert not re.search("[\u202e\x1b\u2028]", text), page
            equal(re.findall(r"<script[^>]*>", text), ['<script src="/static/console.js" defer>'], page)
        text = browser.page(execution)
        assert "&lt;script&gt;alert(1)" in text and "\\u{202e}" in text, text
        # Python takes full width letters for open().
        equal(re.findall(r'<tr( class="look")?><td class="n">(\d)</td>', text),
              [(' class="look"', "1"), (' class="look"', "2"), (' class="look"', "3"), ("", "4")])
        for page in ("/runs?since=x", "/runs?cpu=-1", "/runs?before=a", "/usage?by=source",
                     "/audit?until=%27", "/policy?who=--version"):
            equal(browser.ask("GET", page)[0], 400, page)
        for page in ("/runs/x-aaaaaaaaaa", "/nothing", "/static/../web.py", "/runs/../../etc/passwd"):
            equal(browser.ask("GET", page)[0], 404, page)


@test(private=True, root=True)
def approvals_are_decided(ctx):
    with served(ctx, "[policy]\nrun_script = approve\n") as (
            service, _, console, browser), ctx.client(path=service.socket, uid=SOMEBODY) as c:
        for what, status in (("deny", "denied"), ("approve", "ok")):
            # Nobody decides about their own requests, so another user asks.
            asked = {"script": "import os\n'%s'" % what, "background": False}
            c.outcome(c.request("tools/call", {"name": "run_script", "arguments": asked}), 120)
            until("it waits", lambda: ">pending<" in browser.page("/approvals"))
            page = re.search(r'href="(/approvals/a-[a-z0-9]+)"', browser.page("/approvals"))[1]
            assert re.search(r'<tr class="look"><td class="n">\d+</td><td><code>&gt; import os<',
                             browser.page(page)), browser.page(page)
            equal(browser.form(page, page, do="other")[0], 400)
            sent, text = browser.form(page, page, do=what, reason="not <b>today</b>")
            equal(sent, 303, text)
            done = c.outcome(c.request("tools/call", {"name": "run_script", "arguments": asked}), 120)
            equal(done.status, status, done)
            if what == "deny":
                assert "not <b>today</b>" in json.dumps(done.raw), done.raw
            assert ">pending<" not in browser.page("/approvals")
            if what == "deny":	# it stands until somebody decides otherwise
                equal(browser.form(page, page, do="approve")[0], 303)
                equal(browser.form(page, page, do="revoke")[0], 303)


@test(private=True, root=True)
def requests_for_the_same_packages_are_decided_together(ctx):
    """With one reason; no request gets in among them that is about other packages."""
    with Index() as index, new_store() as store, contextlib.ExitStack() as opened:
        for name in ("alpha", "beta"):
            index.add(name, "1.0")
        service, log, _, browser = opened.enter_context(served(ctx, package_config(
            index.url, store, "[policy]\ninstall_package = approve\n")))
        users = [opened.enter_context(ctx.client(path=service.socket, uid=uid)) for uid in (SOMEBODY, 4001, 4002)]
        own = opened.enter_context(ctx.client(path=service.socket))

        def ask(client, name, status):
            answer = install(client, name)
            equal(answer["status"], status, answer)
            return answer

        def waiting(name):
            """[(id, user)] of the requests for this package that wait"""
            return re.findall(r'<tr><td><a href="/approvals/(a-[a-z0-9]+)">[^<]*</a></td><td>pending</td>'
                              r'<td>(uid:\d+)</td><td>install_package</td><td><code>package %s==' % name,
                              browser.page("/approvals"))
        for client in (*users, own):
            ask(client, "alpha", "approval_pending")
        ask(users[0], "beta", "approval_pending")
        equal(sorted(user for _, user in waiting("alpha")), sorted("uid:%d" % n for n in (SOMEBODY, 4001, 4002, os.getuid())))
        equal(browser.page("/approvals").count(">3 more for the same packages<"), 4)
        (beta, _), = waiting("beta")
        assert "-all" not in browser.page("/approvals/" + beta)
        first = next(name for name, user in waiting("alpha") if user == "uid:%d" % SOMEBODY)
        page = "/approvals/" + first
        text = browser.page(page)
        also = re.search(r'name="also" value="([^"]+)"', text)[1]
        equal(sorted([first, *also.split()]), sorted(name for name, _ in waiting("alpha")))
        assert "Approve all 4" in text and "uid:4001" in text, text
        for wrong in (beta, also + " " + beta, "a-aaaaaaaaaa", "--help", " ".join(["a-aaaaaaaaaa"] * 200)):
            status, text = browser.form(page, page, do="approve-all", also=wrong)
            equal(status, 409, wrong)
            equal((len(waiting("alpha")), len(waiting("beta"))), (4, 1))
        equal(browser.form(page, page, do="approve-all", also=also, reason="x" * 401)[0], 400)
        # The operator's own is among them, and nobody decides about their own.
        status, text = browser.form(page, page, do="approve-all", also=also, reason="fine <b>")
        equal(status, 502)
        assert "3 of 4 were decided" in text, text
        equal([user for _, user in waiting("alpha")], ["uid:%d" % os.getuid()])
        for client in users:
            ask(client, "alpha", "ok")
        # One alone is decided alone.
        for client in users[1:]:
            ask(client, "beta", "approval_pending")
        page = "/approvals/" + beta
        also = re.search(r'name="also" value="([^"]+)"', browser.page(page))[1]
        equal(len(also.split()), 2)
        equal(browser.form("/approvals/" + also.split()[0], page, do="deny", also=also)[0], 303)
        equal(len(waiting("beta")), 2)
        equal(browser.form(page, page, do="deny-all", also=also)[0], 409)	# one of them waits no more
        also = re.search(r'name="also" value="([^"]+)"', browser.page(page))[1]
        equal(browser.form(page, page, do="deny-all", also=also, reason="not <b>today</b>")[0], 303)
        denied = [ask(client, "beta", "denied")["message"] for client in users]
        equal(sum("not <b>today</b>" in text for text in denied), 2, denied)
        decided = [r for r in log.records() if r["event"] in ("approval-granted", "approval-refused")]
        equal([(r["event"], r["by"], r.get("reason")) for r in decided], [
            *3 * [("approval-granted", "uid:%d" % os.getuid(), "fine <b>")],
            ("approval-refused", "uid:%d" % os.getuid(), None),
            *2 * [("approval-refused", "uid:%d" % os.getuid(), "not <b>today</b>")]])
        made = [r for r in log.records() if r["event"] == "package-installed"]
        until_equal("installations", lambda: sum(int(row["installs"]) for row in csv.DictReader(
            io.StringIO(browser.page("/usage?form=csv")))), len(made))
        assert made


NOBODY_HERE = 65533		# of the console of a machine: it has no rights


@test(private=True, root=True)
def all_users_share_a_console(ctx):
    """It has no rights of its own: each user sees what their program is told."""
    with Directory() as d, Log(ctx) as log:
        config = d.config(log.config() + "[policy]\nrun_script = approve\n")
        with ctx.private(config) as service, ctx.client(path=service.socket, uid=SOMEBODY) as c, \
                machine_console(ctx, d, user=NOBODY_HERE) as address:
            stranger = Browser(address)
            for page in (*PAGES, "/login", "/login?key=x"):
                equal(stranger.ask("GET", page)[0], 403, page)
            asked = {"script": "import os\n1", "background": False}
            c.outcome(c.request("tools/call", {"name": "run_script", "arguments": asked}), 120)
            with login_of(ctx, d, "--audit-file", log.path) as mine, login_of(ctx, d, user=SOMEBODY) as theirs:
                equal(mine.link()[0], address)
                browser, user = mine.browser(), theirs.browser()
                until("it waits", lambda: ">pending<" in browser.page("/approvals"))
                page = re.search(r'href="(/approvals/a-[a-z0-9]+)"', browser.page("/approvals"))[1]
                equal(user.form(page, page, do="approve")[0], 502)	# their own request
                token = re.search(r'name="csrf" value="([0-9a-f]+)"', user.page("/"))[1]
                equal(browser.ask("POST", page, {"csrf": token, "do": "approve"})[0], 403)
                equal(browser.form(page, page, do="approve")[0], 303)
                done = c.outcome(c.request("tools/call", {"name": "run_script", "arguments": asked}), 120)
                equal(done.status, "ok", done)
                read_all(browser, 1)
                # Who cannot read the log sees none; and nothing of others.
                until("the status came", lambda: "uid:%d" % SOMEBODY in user.page("/"))
                for one in PAGES:
                    assert user.ask("GET", one)[0] in (200, 502), one
                assert "0 records" in user.page("/runs"), user.page("/runs")
                assert "uid:%d" % os.getuid() not in user.page("/"), user.page("/")
                # The login ends with the program.
                theirs.process.terminate()
                theirs.process.wait(60)
                until("it is over", lambda: user.ask("GET", "/")[0] == 403)
                equal(browser.ask("GET", "/")[0], 200)
                equal(stranger.ask("GET", "/", None, [("Host", "evil.example")])[0], 403)


class FalseLogin:
    """A program at the socket of logins that says what it wants."""

    def __init__(self, path, uid, first=b'{"proxy":false}\n'):
        self.socket = connect_as(path, uid, 60)
        self.socket.setblocking(True)
        self.socket.settimeout(60)
        self.file = self.socket.makefile("rb")
        with contextlib.suppress(OSError):	# it was turned away already
            self.say(first)

    def say(self, data):
        self.socket.sendall(data)

    def hear(self, word):
        """The next message with this member; None: it has ended."""
        for line in self.file:
            message = json.loads(line)
            if word in message:
                return message
        return None

    def end(self):
        self.file.close()
        self.socket.close()


@test(private=True, root=True)
def a_strangers_program_at_the_console(ctx):
    """What it says harms nobody else: no message, no number of programs, no text."""
    with Directory() as d, machine_console(ctx, d, user=NOBODY_HERE) as address:
        place = os.path.join(d.path, "login")
        with ctx.private(d.config()), login_of(ctx, d) as mine:
            browser = mine.browser()
            for first in (b"", b"\n", b"[]\n", b"{", b"\xff\n", b"[" * 100000 + b"\n", b"{" + b"x" * (9 << 20)):
                with contextlib.suppress(OSError):
                    one = FalseLogin(place, SOMEBODY, first)
                    one.socket.shutdown(socket.SHUT_WR)
                    equal(one.hear("link"), None, first[:20])
                    one.end()
            for said in (b"[]\n", b'{"id":1}\n', b'{"id":{},"code":1}\n', b'{"id":1,"code":"x","out":1,"err":2}\n',
                         b'{"id":999,"code":0,"out":"","err":""}\n', b"nonsense\n", b'{"id":1,"line":{}}\n'):
                some, _ = two_logins(place)
                for one in some:
                    with contextlib.suppress(OSError):
                        one.say(said)
                    one.end()
                equal(browser.ask("GET", "/")[0], 200)
            # So many of a user, and no more; others have room.
            some, link = two_logins(place)
            more = FalseLogin(place, SOMEBODY)
            assert "too many" in more.hear("error")["error"]
            more.end()
            # Markup in what it says the service says.
            hostile = Browser(address).log_in(re.sub(r"^http://[^/]+", "", link))
            answer = json.dumps({"service": {"name": HOSTILE_TEXT, "version": HOSTILE_TEXT, "uptime_seconds": 1},
                                 "tenants": [{"tenant": HOSTILE_TEXT}], "sessions": [], "profiles": []})
            threading.Thread(target=answer_all, args=(some[0], answer), daemon=True).start()
            until("it is shown", lambda: "&lt;img" in hostile.page("/"))
            equal(Foreign.found(hostile.page("/")), [])
            equal(browser.ask("GET", "/")[0], 200)
            assert "&lt;img" not in browser.page("/")
            for one in some:
                one.socket.shutdown(socket.SHUT_RDWR)


def two_logins(place):
    """Programs of the user, as many as may be, and the link of the first."""
    held, links = [], []

    def one_more():
        one = FalseLogin(place, SOMEBODY)
        for line in one.file:
            message = json.loads(line)
            if "link" in message:
                held.append(one)
                links.append(message["link"])
                return True
            if "error" in message:
                break
        one.end()
        return False
    for _ in range(2):
        until("there is a place", one_more)
    return held, links[0]


def answer_all(one, answer):
    with contextlib.suppress(OSError, ValueError):
        for line in one.file:
            message = json.loads(line)
            if "words" in message:
                one.say(json.dumps({"id": message["id"], "code": 0, "err": "", "out": answer if message[
                    "words"][0] == "status" else "[]"}).encode() + b"\n")


class Proxied(Browser):
    """A browser behind the proxy, which says whose it is."""

    def __init__(self, path, *users):
        super().__init__("localhost")
        self.path, self.users = path, users

    def ask(self, verb, path, form=None, headers=(), body=None):
        body = urllib.parse.urlencode(form) if form is not None else ""
        lines = ["%s %s HTTP/1.1" % (verb, path), "Host: console.example.org", "Connection: close",
                 "Content-Length: %d" % len(body), "Content-Type: application/x-www-form-urlencoded",
                 *("X-Remote-User: " + user for user in self.users), *("%s: %s" % one for one in headers),
                 *(["Cookie: " + self.cookie] if self.cookie else []), "", body]
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(self.path)
            sock.sendall("\r\n".join(lines).encode())
            self.answer = http.client.HTTPResponse(sock)
            self.answer.begin()
            text = self.answer.read().decode()
        cookie = self.answer.headers["Set-Cookie"]
        self.cookie = cookie.split(";")[0] if cookie else self.cookie
        return self.answer.status, text


@test(private=True, root=True)
def a_proxy_says_who_it_is(ctx):
    """Its word counts on its socket alone, for users whose program agrees."""
    name = pwd.getpwuid(SOMEBODY).pw_name
    with Directory() as d, ctx.private(d.config()), machine_console(
            ctx, d, "--url", "https://console.example.org", user=NOBODY_HERE, proxy=True) as address:
        place = os.path.join(d.path, "proxy")
        equal(Proxied(place, name).ask("GET", "/")[0], 403)		# nobody is there
        with login_of(ctx, d) as mine, login_of(ctx, d, "--proxy", user=SOMEBODY) as theirs:
            assert mine.lines[0].startswith("open https://console.example.org/login?key="), mine.lines
            until("the program is there", lambda: theirs.lines and mine.lines)
            user = Proxied(place, name)
            user.page("/")
            assert "Secure" in user.answer.headers["Set-Cookie"], user.answer.headers["Set-Cookie"]
            until("the status came", lambda: "uid:%d" % SOMEBODY in user.page("/"))
            equal(user.ask("POST", "/logout", {})[0], 403)
            # Nobody else has this cookie, and nobody is two.
            for users in ((), ("root",), (name, "root"), ("root", name), ("",)):
                other = Proxied(place, *users)
                equal(other.ask("GET", "/")[0], 403, users)		# root's program does not agree
                other.cookie = user.cookie
                equal(other.ask("GET", "/")[0], 403, users)
            # The header counts for nothing elsewhere.
            equal(Browser(address).ask("GET", "/", None, [("X-Remote-User", name)])[0], 403)
            equal(Browser(address).ask("GET", "/", None, [("Host", "evil.example")])[0], 403)
            link = theirs.lines[0].split("example.org")[1].strip()
            equal(Proxied(place, "root").ask("GET", link)[0], 403)


@test(private=True)
def programs_run_nothing_else(ctx):
    """A console that was taken over gets no other command out of a user's program."""
    with Directory() as d, ctx.private(d.config()), socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.join(d.path, "login"))
        listening.listen(1)
        with contextlib.ExitStack() as opened:
            opened.enter_context(logging_in(ctx, d))
            peer = opened.enter_context(listening.accept()[0])
            file = opened.enter_context(peer.makefile("rw", encoding="utf-8"))
            equal(json.loads(file.readline()), {"proxy": False})
            for n, words in enumerate((
                    ["run", "/etc/passwd"], ["status", "--json", "--admin-socket", "/tmp/x"], ["status"],
                    ["approvals", "show", "--help"], ["stop", "--help"], ["policy", "--config"], ["policy", "-x"],
                    ["audit", "show", "--json"], [], [1], "status", None, ["token", "list"],
                    ["approvals", "approve", "a-aaaa", "--for-run"], ["journal", "--follow"],
                    ["approvals", "approve", "a-aaaa", "--reason", "x\ny"], ["journalctl"], ["packages", "remove", "x"],
                    ["packages", "remove", "a" * 64, "--json"])):
                print(json.dumps({"id": n, "words": words}), file=file, flush=True)
                answer = json.loads(file.readline())
                equal((answer["id"], answer["code"], answer["out"]), (n, 1, ""), words)
                assert "no command of the console" in answer["err"], answer
            print(json.dumps({"id": 99, "words": ["status", "--json"]}), file=file, flush=True)
            answer = json.loads(file.readline())
            equal((answer["id"], answer["code"]), (99, 0), answer)
            json.loads(answer["out"])


@contextlib.contextmanager
def logging_in(ctx, d):
    process = subprocess.Popen(
        [os.path.join(ctx.options.build, "mcp-python"), "web", "login", "--socket", os.path.join(d.path, "login"),
         "--admin-socket", d.socket], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


@test(private=True)
def a_word_in_two_lines_is_marked(ctx):
    """Requests are shown in lines of bounded length, so a script can choose where one of its words is cut."""
    with served(ctx, "[policy]\nrun_script = approve\n") as (service, _, console, browser), \
            ctx.client(path=service.socket) as c:
        for n in range(40, 140, 3):
            c.outcome(c.request("tools/call", {"name": "run_script", "arguments": {
                "script": "x = '%s'; from shutil import rmtree\ny = 1" % ("w" * n)}}), 120)
        paths = set(re.findall(r'href="(/approvals/a-[a-z0-9]+)"', browser.page("/approvals")))
        assert len(paths) > 20, paths
        cut = 0
        for path in paths:
            lines = re.findall(r'<tr( class="look")?><td class="n">\d+</td><td><code>&gt;(.*?)</code>',
                               browser.page(path))
            long = [look for look, line in lines if "www" in line or line.startswith("+")]
            assert len(long) > 1 or n < 60, lines
            cut += not any(re.search(r"from shutil import", line) for _, line in lines)
            equal(set(long), {' class="look"'}, lines)
            equal([look for look, line in lines if " y = 1" in line], [""], lines)
        assert cut > 0, "no word was cut"


@test(private=True)
def what_runs_is_seen_and_stopped(ctx):
    with served(ctx) as (service, _, console, browser), ctx.client(path=service.socket) as c:
        call = c.request("tools/call", {"name": "run_script", "arguments": {
            "script": "import time\ntime.sleep(300)", "timeout_seconds": 300}})
        until("it is seen", lambda: "/stop/x-" in browser.page("/"))
        path = re.search(r'action="(/stop/x-[a-z0-9]+)"', browser.page("/"))[1]
        equal(browser.form(path, "/")[0], 303)
        assert c.outcome(call, 120).status != "ok"
        until("it is gone", lambda: "/stop/x-" not in browser.page("/"))
        # The page goes on by events, which end when their browser logs out.
        connection = http.client.HTTPConnection(browser.address, timeout=120)
        connection.request("GET", "/now", headers={"Cookie": browser.cookie})
        events = connection.getresponse()
        for _ in range(2):
            line = events.readline()
            assert "up " in json.loads(line[6:]), line
            events.readline()
        equal(browser.form("/logout", "/")[0], 303)
        events.read()
        connection.close()


@test(private=True)
def a_session_is_closed(ctx):
    with served(ctx) as (service, _, console, browser), ctx.client(path=service.socket) as c:
        c.outcome(c.request("tools/call", {"name": "run_repl", "arguments": {"code": "x = 1"}}), 120)
        until("it is seen", lambda: "/stop/r-" in browser.page("/sessions"))
        path = re.search(r'action="(/stop/r-[a-z0-9]+\?from=sessions)"', browser.page("/sessions"))[1]
        equal(browser.form(path, "/sessions")[0], 303)
        until("it is gone", lambda: "/stop/r-" not in browser.page("/sessions"))


WRONG_RECORDS = [
    '{"n":%d}' % 2 ** 70, '{"time":{},"event":"x"}', '{"event":["execution-started"]}', "[]", "1",
    '{"event":"execution-started","execution":"x-aaaaaaaaaa","time":null,"source":5}',
    '{"event":"execution-started","execution":{},"time":7}', "[" * 10000,
    '{"event":"execution-ended","execution":"x-aaaaaaaaaa","stdout_bytes":"many","cpu_ms":true,'
    '"peak_memory_bytes":"z","status":{}}', '{"tenant":"\\ud800","event":"\\u202e","time":"t"}']


@test
def a_log_that_is_wrong_stops_no_page(ctx):
    with Directory() as d:
        path = os.path.join(d.path, "log")
        good = {"n": 1, "time": "2026-01-01T00:00:00Z", "event": "execution-started",
                "execution": "x-bbbbbbbbbb", "tenant": "uid:7", "source": "1\r2",
                "prev": "0" * 64, "hash": "1" * 64}
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join([*WRONG_RECORDS, json.dumps(good)]) + "\n")
        with console_of(ctx, d, "--audit-file", path) as console:
            browser = console.browser()
            until("the last record", lambda: "x-bbbbbbbbbb" in browser.page("/runs"))
            for page in ("/runs", "/usage", "/audit", "/runs/x-aaaaaaaaaa", "/runs/x-bbbbbbbbbb",
                         "/usage?form=csv", "/"):
                browser.page(page)


def false_log(d, records, mode="w"):
    """A log with these records."""
    path = os.path.join(d.path, "false-log")
    with open(path, mode, encoding="utf-8") as f:
        f.writelines(json.dumps(record) + "\n" for record in records)
    return path


def record(event, minutes=0, **more):
    """One that was made so many minutes ago."""
    return {"time": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - 60 * minutes)),
            "event": event, **more}


def runs_of(times, minutes, name, **more):
    """Runs that took these times in ms, and ended then."""
    for n, ms in enumerate(times):
        run = {"execution": "x-%s%04d" % (name, n), "tenant": "uid:7"}
        yield record("execution-started", minutes, **run, **more)
        yield record("execution-ended", minutes, **run, status="ok", duration_ms=ms)


@test(private=True)
def latency_is_that_of_the_log(ctx):
    with Directory() as d, ctx.private(d.config()):
        path = false_log(d, [
            *runs_of([5000], 240, "old"), *runs_of(range(100, 0, -1), 20, "many"),
            *runs_of([7, 7, 7], 10, "few"), *runs_of([9999], 5, "own", internal=True),
            record("execution-ended", 5, execution="x-unknown", duration_ms=8888),
            {"event": "execution-ended", "execution": "x-few0000", "time": "9999-99-99T99:99", "duration_ms": 1}])

        def chart(browser):
            return re.search(r"<figcaption>latency \(ms\)(.*?)</figcaption>.*?</svg>", browser.page("/"), re.S)
        with console_of(ctx, d, "--audit-file", path) as console:
            browser = console.browser()
            until_equal("the chart", lambda: chart(browser) and chart(browser)[1],
                        ": half of the runs <b>7</b>, 99 of 100 <b>7</b>, at most 99; 103 runs")
            half, most = (re.search(r'<path class="%s" d="([^"]*)"' % name, chart(browser)[0])[1].split("M")[1:]
                          for name in ("p50", "p99"))
            # Two minutes have runs; the higher dash is that of 99 ms, and 50 ms are half as high.
            equal((len(half), len(most)), (2, 2))
            equal([one.split("h")[0].split(",")[1] for one in (half[0], most[0], half[1])], [
                "%.1f" % (39 - 38 * ms / 99) for ms in (50, 99, 7)])
            false_log(d, runs_of([40], 0, "new"), "a")
            until("the new one", lambda: "half of the runs <b>40</b>" in chart(browser)[1])
            assert "104 runs" in chart(browser)[1], chart(browser)[1]
        with console_of(ctx, d, "--audit-file", path + "-missing") as console:
            browser = console.browser()
            until_equal("the chart", lambda: chart(browser) and chart(browser)[1], ": the audit log cannot be read")


@test
def what_was_searched_for_is_exported(ctx):
    """A file is whole, or its end is an error; few are made at the same time."""
    with Directory() as d:
        path = false_log(d, [record(("denied", "limit-hit", "session-opened")[n % 3], 6000 - n, n=n,
                                    tenant="uid:%d" % (n % 2), text="%d \u202e<b> %s" % (n, "x" * 4000))
                             for n in range(6000)])
        done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "audit", "show", "--json", "--file", path],
                              capture_output=True, text=True, timeout=ctx.seconds(60), check=True)
        lines = done.stdout.splitlines()
        records = [json.loads(line) for line in lines]
        equal(len(records), 6000)
        with console_of(ctx, d, "--audit-file", path) as console:
            browser = console.browser()
            until("the log is read", lambda: "6000 records" in browser.page("/audit"))
            equal(Browser(browser.address).ask("GET", "/audit/export")[0], 403)
            equal(browser.ask("GET", "/audit/export?since=x")[0], 400)
            assert 'formaction="/audit/export"' in browser.page("/audit")

            def exported(query):
                return browser.page("/audit/export?" + query).split("\n")[:-1]
            equal(exported("") == lines, True)
            headers = browser.answer.headers
            equal((headers["Content-Type"], headers["Content-Disposition"], headers["X-Content-Type-Options"]),
                  ("application/x-ndjson", 'attachment; filename="audit.jsonl"', "nosniff"))
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            middle = records[3000]["time"][:19]
            for query, wanted in (
                    ("event=denied", lambda r: r["event"] == "denied"),
                    ("event=denied&tenant=uid:1", lambda r: r["event"] == "denied" and r["tenant"] == "uid:1"),
                    ("since=" + middle, lambda r: r["time"] >= middle),
                    ("until=%s&text=59&before=7" % middle, lambda r: r["time"] < middle and "59" in json.dumps(r)),
                    ("text=nothing", lambda r: False)):
                found = [line for line, r in zip(lines, records) if wanted(r)]
                equal(exported(query) == found, True, "%s: %d records" % (query, len(found)))

            def begin(browser):
                connection = http.client.HTTPConnection(browser.address, timeout=ctx.seconds(60))
                connection.request("GET", "/audit/export", headers={"Cookie": browser.cookie})
                return connection, connection.getresponse()
            # Nobody reads them, so they go on.
            held = [begin(browser) for _ in range(4)]
            equal([answer.status for _, answer in held], [200] * 4)
            connection, answer = begin(browser)
            equal(answer.status, 503)
            connection.close()
            equal(browser.ask("GET", "/")[0], 200)
            for connection, answer in held[1:]:
                answer.close()
                connection.close()
            until("there is room", lambda: browser.ask("GET", "/audit/export?event=none")[0] == 200)
            # The login ends in the middle.
            equal(browser.form("/logout", "/")[0], 303)
            connection, answer = held[0]
            try:
                answer.read()
                cut = False
            except (http.client.HTTPException, OSError):
                cut = True
            connection.close()
            equal(cut, True, "is the file that is not whole an error")


@test(private=True)
def warnings_are_shown(ctx):
    """Those of the audit log, by the service's own list of events, and what the journal says."""
    with open(os.path.join(TOP, "govern", "audit_events.def"), encoding="utf-8") as f:
        events = re.findall(r'^EVENT\(\w+, "([a-z-]+)", LOG_(\w+),', f.read(), re.M)
    warned = [name for name, priority in events if priority in ("WARNING", "ERR")]
    assert 5 < len(warned) < len(events), events
    with Directory() as d, programs() as place, ctx.private(d.config()):
        path = false_log(d, [record(name, n=n) for n, (name, _) in enumerate(events)])

        def journal_says(script):
            with open(os.path.join(place, "new"), "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\n" + script)
            os.chmod(f.name, 0o755)
            os.rename(f.name, os.path.join(place, "journalctl"))
        journal_says("echo \"<b>$*\"\n")
        with console_of(ctx, d, "--audit-file", path, env={"PATH": place + ":" + os.environ["PATH"]}) as console:
            browser = console.browser()
            until("the log is read", lambda: "%d records" % len(events) in browser.page("/audit"))
            text = browser.page("/health")
            equal(re.findall(r"<tr><td>\d+</td><td>[^<]*</td><td>([a-z-]+)</td>", text), warned[::-1])
            said = re.search(r"<pre>(&lt;b&gt;.*)\n</pre>", text)[1]
            assert "--priority warning" in said and "--unit mcp-pythond" in said, said
            equal(Foreign.found(text), [])
            journal_says("echo 'No journal files were found.' >&2\nexit 1\n")
            assert '<p class="trouble">No journal files were found.</p>' in browser.page("/health")


@test
def installations_are_counted(ctx):
    with Directory() as d:
        path = false_log(d, [
            {"event": "execution-started", "execution": "x-aaaa", "tenant": "uid:1", "time": "2026-01-30T10:00:00Z"},
            {"event": "execution-ended", "execution": "x-aaaa", "status": "ok", "cpu_us": 5, "time": "2026-01-30T10:00:01Z"},
            *({"event": event, "tenant": who, "time": day + "T11:00:00Z", "environment": "e"} for event, who, day in (
                ("package-installed", "uid:1", "2026-01-30"), ("package-installed", "uid:1", "2026-01-31"),
                ("package-installed", "uid:2", "2026-02-01"), ("package-refused", "uid:3", "2026-01-30"),
                ("package-built", "uid:1", "2026-01-30")))])
        with console_of(ctx, d, "--audit-file", path, "--price", "install=3", "--price", "run=1") as console:
            browser = console.browser()
            until("the log is read", lambda: "7 records" in browser.page("/usage"))
            assert "<td>uid:2</td><td>0</td>" in browser.page("/usage"), browser.page("/usage")
            for unit, more, wanted in (
                    ("tenant", "", {"uid:1": (1, 2, 7), "uid:2": (0, 1, 3)}),
                    ("day", "", {"2026-01-30": (1, 1, 4), "2026-01-31": (0, 1, 3), "2026-02-01": (0, 1, 3)}),
                    ("month", "", {"2026-01": (1, 2, 7), "2026-02": (0, 1, 3)}),
                    ("tool", "", {"run_script": (1, 0, 1), "install_package": (0, 3, 9)}),
                    ("tenant", "since=2026-01-31&until=2026-02-01", {"uid:1": (0, 1, 3)}),
                    ("month", "tenant=uid:2", {"2026-02": (0, 1, 3)})):
                text = browser.page("/usage?form=csv&by=%s&%s" % (unit, more))
                equal({row[unit]: (int(row["runs"]), int(row["installs"]), float(row["cost"]))
                       for row in csv.DictReader(io.StringIO(text))}, wanted, unit + more)
                done = subprocess.run(
                    [os.path.join(ctx.options.build, "mcp-python"), "usage", "--file", path, "--csv", "--by", unit,
                     "--price", "install=3", "--price", "run=1",
                     *("--" + word for word in more.split("&") if word)],
                    capture_output=True, text=True, timeout=ctx.seconds(60), check=True)
                equal(done.stdout, text)


ALL_RUNS = "usage of all runs by user"	# reads all of them


@test(alone=True, any_rights=True, any_build=True)
def a_million_records_are_searched_within_a_second(ctx):
    done = subprocess.run(
        [sys.executable, os.path.join(TOP, "tests", "integration", "console_index.py"), str(ctx.count(1000000))],
        capture_output=True, text=True, timeout=ctx.seconds(300), check=True)
    said = json.loads(done.stdout)
    equal(said["tuesday"], said["wanted"], said)
    assert said["wanted"] and said["records"] <= ctx.count(1000000), said
    equal({name: used for name, (used, _) in said["seconds"].items()
           if used > ctx.seconds(1) and name != ALL_RUNS}, {})
    return "%d records, filled in %.0f s of the processor: %s" % (said["records"], said["filled"], said["seconds"])


@test(private=True)
def many_pages_are_bounded(ctx):
    """500 browsers leave the first page open."""
    with Directory() as d, ctx.private(d.config()), console_of(ctx, d) as console:
        browser = console.browser()
        files = "/proc/%d/fd" % console.process.pid
        before = len(os.listdir(files))
        open_pages = []
        for _ in range(500):
            connection = http.client.HTTPConnection(browser.address, timeout=120)
            connection.request("GET", "/now", headers={"Cookie": browser.cookie})
            open_pages.append(connection)
        statuses = [c.getresponse().status for c in open_pages]
        equal((statuses.count(200), statuses.count(503)), (64, 436))
        for page in PAGES:
            browser.page(page)
        equal(console.browser().ask("GET", "/")[0], 200)	# others can still log in
        for connection in open_pages:
            connection.close()

        def another():
            again = http.client.HTTPConnection(browser.address, timeout=120)
            again.request("GET", "/now", headers={"Cookie": browser.cookie})
            status = again.getresponse().status
            again.close()
            return status
        until_equal("the status of one more", another, 200)
        until("what they had is closed", lambda: len(os.listdir(files)) < before + 20)


@test(private=True)
def usage_is_the_sum_of_the_log(ctx):
    with served(ctx, "", "--price", "run=2") as (service, log, console, browser), \
            ctx.client(path=service.socket) as c:
        for n in range(6):
            c.run("sum(range(%d))" % (n * 10000) if n else "1 / 0", 120)
        c.run("x = 'needle'", 120)
        read_all(browser, 7)
        until("all have ended", lambda: ">runs</td>" not in browser.page("/runs"))
        records = [json.loads(line) for line in open(log.path, encoding="utf-8")]
        ended = [r for r in records if r["event"] == "execution-ended"]
        row, = csv.DictReader(io.StringIO(browser.page("/usage?form=csv")))
        equal((row["runs"], row["failed"], row["cost"]), ("7", "1", "14.0"))
        assert abs(float(row["cpu_seconds"]) - sum(r["cpu_us"] for r in ended) / 1e6) < 1e-6, row
        for unit in ("day", "month", "tool"):
            equal([r["runs"] for r in csv.DictReader(io.StringIO(
                browser.page("/usage?form=csv&by=" + unit)))], ["7"])

        def command(*words):
            return subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "usage", "--file",
                                   log.path, *words], capture_output=True, text=True, timeout=120)
        row, = json.loads(command("--json", "--price", "run=2", "--by", "tool").stdout)
        equal((row["tool"], row["runs"], row["failed"], row["cost"]), ("run_script", 7, 1, 14.0))
        assert abs(row["cpu_seconds"] - sum(r["cpu_us"] for r in ended) / 1e6) < 1e-6, row
        equal(command("--csv", "--price", "run=2").stdout, browser.page("/usage?form=csv"))
        equal(command().stdout.split()[:3], ["tenant", "runs", "failed"])
        equal([json.loads(command("--json", *words).stdout) for words in (
            ["--until", "2020-01-01"], ["--tenant", "nobody"])], [[], []])
        for words, code in ((["--by", "x"], 64), (["--price", "run=nan"], 64), (["--until", "now"], 64),
                            (["--json", "--csv"], 64), (["--since", "x"], 64), (["--file", "/nowhere"], 66)):
            equal(command(*words).returncode, code, "%s" % words)

        def count(query):
            return browser.page("/runs?" + query).count('<a href="/runs/x-')
        equal([count(q) for q in ("status=error", "text=NEEDLE", "text=nothing", "cpu=999999",
                                  "since=2100-01-01", "since=2020-01-01T00:00")], [1, 1, 0, 0, 0, 7])
        status, text = browser.form("/audit/verify", "/audit")
        equal(status, 200)
        assert "is whole" in text, text
        text = html.unescape(browser.page("/audit?event=execution-ended"))
        assert ended[0]["hash"][:12] in text, text
        c.outcome(c.request("tools/call", {"name": "run_repl", "arguments": {"code": "1"}}), 120)
        until("its end is written", lambda: [(r["tool"], r["runs"]) for r in sorted(
            json.loads(command("--json", "--by", "tool").stdout), key=lambda r: r["tool"])] ==
            [("run_repl", 1), ("run_script", 7)])


BUSY = """import time
began = time.process_time_ns()
while time.process_time_ns() - began < %d:
    pass
print(time.process_time_ns() - began)
"""


def counted(ctx, service, count, users):
    """Makes so many runs. (what the kernel has counted in the scripts, what the answers say), in ms"""
    kernel = said = 0
    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(ctx.client(path=service.socket, uid=uid)) for uid in users]
        for n in range(count):
            done = clients[n % len(clients)].run(BUSY % (n % 7 * 400000), 120)	# up to 2.4 ms
            equal(done.status, "ok", done)
            kernel += int(done.stdout) / 1e6
            said += done.cpu_ms
    return kernel, said


@test(private=True)
def usage_is_what_the_kernel_has_counted(ctx):
    """While the log rotates, the service starts again, and the console loses its index."""
    count, users = ctx.count(1000) // 2 * 2, [None, SOMEBODY] if os.getuid() == 0 else [None]
    with Directory() as d, Log(ctx) as log:
        config = d.config(log.config("rotate_bytes = 16K\n"))
        with contextlib.ExitStack() as opened:
            with ctx.private(config) as service:
                console = opened.enter_context(console_of(ctx, d, "--audit-file", log.path))
                browser = console.browser()
                first = counted(ctx, service, count // 2, users)
            with ctx.private(config) as service:
                second = counted(ctx, service, count // 2, users)
            assert len(os.listdir(log.directory)) > 2, os.listdir(log.directory)
            ended = [r for r in log.records() if r["event"] == "execution-ended"]
            equal(len(ended), count)
            used = sum(r["cpu_us"] for r in ended) / 1e6
            kernel, said = (sum(both) / 1000 for both in zip(first, second))
            # An answer has whole milliseconds; a worker does a little before a script and after it.
            assert said <= used < said + count / 1000, (said, used)
            assert kernel <= used < kernel + 0.02 * count, (kernel, used)

            def sums(rows):
                # Each row is rounded.
                seconds = sum(float(r["cpu_seconds"]) for r in rows)
                return len(rows), sum(int(r["runs"]) for r in rows), \
                    used if abs(seconds - used) < 0.0001 else seconds
            wanted = len(users), count, used

            def shown(browser):
                return sums(list(csv.DictReader(io.StringIO(browser.page("/usage?form=csv")))))
            done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "usage", "--json", "--file",
                                   log.path], capture_output=True, text=True, timeout=ctx.seconds(120), check=True)
            equal(sums(json.loads(done.stdout)), wanted)
            until_equal("what the console shows", lambda: shown(browser), wanted)
            # What reads the log for it ends: it begins again, and counts nothing twice.
            reader, = (pid for pid in map(int, open("/proc/%d/task/%d/children" % (
                console.process.pid, console.process.pid), encoding="ascii").read().split())
                       if "audit" in open("/proc/%d/cmdline" % pid, encoding="utf-8").read())
            os.kill(reader, signal.SIGKILL)
            until("the reader is missed", lambda: "The audit log:" in browser.page("/usage"))
            until_equal("what the console shows again", lambda: shown(browser), wanted)
            other = opened.enter_context(console_of(ctx, d, "--audit-file", log.path)).browser()
            until_equal("what another one shows", lambda: shown(other), wanted)
    return "%d runs: %.3f s in scripts, %.3f s by the records" % (count, kernel, used)


class Hook(http.server.BaseHTTPRequestHandler):
    """Takes what is posted. The first post of a server is refused, so it comes again."""

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.tried += 1
        self.send_response(200 if self.server.tried > 1 else 503)
        self.end_headers()
        if self.server.tried > 1:
            self.server.said.append(said)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def hook():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        server.said, server.tried = [], 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@contextlib.contextmanager
def programs(*names):
    """A directory of programs that write their arguments and their input to NAME.1, NAME.2, ..."""
    with tempfile.TemporaryDirectory(prefix="mcp-programs-") as place:
        for name in names:
            path = os.path.join(place, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\nn=1; while ! mkdir %s.$n.d 2>/dev/null; do n=$((n + 1)); done\n"
                        "{ printf '%%s\\n' \"$@\"; echo ---; cat; } >%s.$n.new\n"
                        "mv %s.$n.new %s.$n\n" % (path, path, path, path))
            os.chmod(path, 0o755)
        yield place


def text_of(path):
    until(path, lambda: os.path.exists(path))
    with open(path, encoding="utf-8") as f:
        return f.read()


@test(private=True, root=True)
def what_waits_is_notified(ctx):
    with hook() as server, programs("sendmail", "notify-send") as place, served(
            ctx, "[policy]\nrun_script = approve\n[alarms]\ndenials = 1\n",
            "--notify", "http://127.0.0.1:%d/secret" % server.server_port, "--notify", "mail:ops@example.org",
            "--notify", "desktop", env={"PATH": place + ":" + os.environ["PATH"]}) as (
            service, _, console, browser), ctx.client(path=service.socket, uid=SOMEBODY) as c:
        asked = {"script": "x = '<b>hello</b>' # \u202e" + "z" * 500, "background": False}
        c.outcome(c.request("tools/call", {"name": "run_script", "arguments": asked}), 120)
        until("the hook is told", lambda: server.said)
        told, = server.said
        equal(sorted(told), ["event", "subject", "text", "url"])
        equal(told["event"], "approval-waits")
        assert "run_script of uid:%d: x = '<b>hello</b>' # \\u{202e}z" % SOMEBODY in told["text"], told
        assert len(told["text"]) < 250, told
        page = re.fullmatch(r"http://[^/]+(/approvals/a-[a-z0-9]+)", told["url"])[1]
        letter = text_of(os.path.join(place, "sendmail.1"))
        equal(letter[:letter.index("---")].split(), ["-i", "--", "ops@example.org"])
        letter = email.message_from_string(letter.partition("---\n")[2], policy=email.policy.default)
        equal((letter["To"], letter["Subject"]), ("ops@example.org", "mcp-pythond: an approval waits"))
        assert "<b>hello" in letter.get_content() and told["url"] in letter.get_content(), letter
        shown = text_of(os.path.join(place, "notify-send.1"))
        assert "&lt;b&gt;hello" in shown and "<b>" not in shown, shown	# desktops know markup
        # The denial raises an alarm; what waited is not reported again.
        equal(browser.form(page, page, do="deny")[0], 303)
        c.outcome(c.request("tools/call", {"name": "run_script", "arguments": asked}), 120)
        until("the alarm", lambda: len(server.said) == 2)
        equal(server.said[1]["event"], "alarm")
        assert "denials" in server.said[1]["text"], server.said


@test(private=True)
def tables_are_reached_by_the_keyboard(ctx):
    """Each can be scrolled alone, and has a name that no other of its page has."""
    with served(ctx) as (service, _, console, browser), ctx.client(path=service.socket) as c:
        c.run("1", 120)
        read_all(browser, 1)
        for page in PAGES:
            text = browser.page(page)
            names = re.findall(r'<div class="(?:wide|scroll)" tabindex="0" role="region" aria-label="([^"]+)">', text)
            equal(len(names), len(set(names)), page)
            equal(text.count("<table>"), text.count('role="region"') - text.count('class="scroll"'), page)


@test(private=True)
def budgets_are_reported(ctx):
    with hook() as server, served(
            ctx, "", "--price", "run=1", "--budget", "each=5", "--budget", "uid:4294967=1", "--notify",
            "http://127.0.0.1:%d/" % server.server_port) as (service, _, console, browser), \
            ctx.client(path=service.socket) as c:
        for n in range(3):
            c.run("1", 120)
        read_all(browser, 3)
        assert re.search(r"<td>3.00</td><td>5.00</td><td>60 %</td>", browser.page("/usage"))
        c.run("1", 120)
        until("80 %", lambda: server.said)
        c.run("1", 120)
        until("100 %", lambda: len(server.said) == 2)
        equal([one["subject"] for one in server.said], ["80 % of a budget", "100 % of a budget"])
        assert "has used 5.00 of 5.00" in server.said[1]["text"], server.said
        assert '<tr class="look">' in browser.page("/usage")


@test
def wrong_notifications_are_refused(ctx):
    for words, said in ((["--notify", "http://example.org/"], "https://"),
                        (["--notify", "mail:a@b\nBcc: c@d"], "address"),
                        (["--budget", "each=5"], "--price"), (["--price", "run=1", "--budget", "each=0"], "--budget")):
        done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "web", "--listen", "127.0.0.1:0", *words],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
        equal(done.returncode, 64, words)
        assert said in done.stderr, done.stderr


@test(private=True, root=True)
def a_user_sees_nothing_of_another(ctx):
    with Directory() as d, Log(ctx) as log, \
            ctx.private(d.config(log.config() + "[policy]\nrun_repl = allow\n")) as service, \
            ctx.client(path=service.socket) as c, \
            console_of(ctx, d, "--audit-file", log.path, user=SOMEBODY) as console:
        c.run("'secret of the first'", 120)
        with ctx.client(path=service.socket, uid=SOMEBODY) as other:
            other.run("1", 120)
        browser = console.browser()
        until("the service was asked", lambda: "uid:%d" % SOMEBODY in browser.page("/"))
        for page in PAGES:
            text = browser.page(page)
            assert "uid:0" not in text and "secret" not in text, page
        assert "audit log" in browser.page("/runs")


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
