# SPDX-License-Identifier: Apache-2.0
"""The console in the system's browser (console/drive.mjs): each page as an operator and as a user, in light and in
dark, on a wide and on a narrow screen, judged by axe; what people do there; pages of other sites. MCP_CONSOLE names
a folder that keeps the pictures."""

import contextlib
import http.server
import json
import os
import re
import select
import shutil
import subprocess
import threading
import types

import views
import waits
from audit_log import Log
from console_suite import PAGES, Directory, console_of
from harness import SOMEBODY, Ctx, Skip, equal
from mcpclient import MODERN
from waits import until

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 60	# for what a page is to show, on a machine at rest
CONFIG = "[policy]\nrun_script = approve\nrun_repl = allow\n"
SECRET = "of-the-operator-alone"
HOSTILE = "x = '''<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script> {{ 7*7 }} \u202e'''\n" \
          "import os\n%s\nprint(x)\n" % ("wide = '%s'" % ("w" * 400))


class Chromium:
    """What drive.mjs does, one order after another."""

    def __init__(self, tools, out, pictures, slow):
        self.slow = slow
        place = os.path.join(out, "console")
        os.makedirs(place)
        shutil.copy(os.path.join(HERE, "console", "drive.mjs"), place)
        os.symlink(tools.modules, os.path.join(place, "node_modules"))
        self.noise = open(os.path.join(place, "stderr"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            ["node", "drive.mjs", views.browser(), pictures], cwd=place, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.noise, env={**tools.env, "CONSOLE_MS": str(int(SECONDS * 1000 * slow))})

    def do(self, what, who, **more):
        self.process.stdin.write(json.dumps({"do": what, "who": who, **more}) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], 10 * SECONDS * self.slow)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.noise.seek(0)
            raise AssertionError("the browser does not answer: %s" % self.noise.read()[-2000:])
        error = json.loads(line)["error"]
        assert not error, "%s: %s" % (what, error)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.noise.close()


class OtherSite(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>other</title><body>other")

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def other_site():
    """The port of it."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), OtherSite) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def ask_script(client, script):
    return client.outcome(client.request("tools/call", {"name": "run_script", "arguments": {
        "script": script, "background": False}}), 120)


def start_cell(client, code):
    return client.request("tools/call", {"name": "run_repl", "arguments": {"code": code, "timeout_seconds": 600}})


class Scene:
    """A service that has been used by two users, and the consoles of both."""

    def __init__(self, ctx, chromium, service, operator, user):
        self.ctx, self.chromium, self.service = ctx, chromium, service
        self.operator, self.user = operator, user

    def url(self, who, path="/"):
        console = self.user if who == "user" else self.operator
        return "http://%s%s" % (console.link()[0], path)

    def log_in(self, who, console, **more):
        count = len(console.lines)
        self.chromium.do("logIn", who, url="http://%s%s" % console.link(), **more)
        until("a new link", lambda: len(console.lines) > count)

    def client(self, **more):
        return self.ctx.client(path=self.service.socket, **more)


def page_name(path):
    return path.strip("/").split("?")[0].replace("/", "-") or "now"


def look_at(scene, report, who, pages, **more):
    for name, path, texts in pages:
        report.check("console: %s, %s" % (who, name), lambda path=path, name=name, texts=texts: scene.chromium.do(
            "look", who, url=scene.url(who, path), name="%s-%s" % (who, name), has=texts, **more))


def operators_pages(scene, report):
    """Every page, and those behind them."""
    plain = scene.operator.browser()
    until("the runs are read", lambda: plain.page("/runs").count('<a href="/runs/x-') >= 3)
    until("all is seen", lambda: "/stop/x-" in plain.page("/") and "/stop/r-" in plain.page("/sessions"))
    hostile = re.search(r'href="(/runs/x-[a-z0-9]+)"', plain.page("/runs?text=hacked"))[1]
    waiting = re.search(r'href="(/approvals/a-[a-z0-9]+)"', plain.page("/approvals"))[1]
    said = {"/": ["Running and waiting", "uid:%d" % SOMEBODY], "/runs": ["run_repl"], "/approvals": ["pending"],
            "/sessions": ["Close"], "/usage": ["MiB-seconds"], "/audit": ["execution-started"],
            "/health": ["launcher"]}
    look_at(scene, report, "operator", [
        *((page_name(path), path, said.get(path, [])) for path in PAGES), ("run", hostile, ["<img src=x"]),
        ("approval", waiting, ["Approve"]), ("policy-of", "/policy?who=uid:%d" % SOMEBODY, ["run_script"])])
    report.check("console: operator, no such run", lambda: scene.chromium.do(
        "go", "operator", url=scene.url("operator", "/runs/x-aaaaaaaaaa"), status=404))


def decisions(scene, report):
    """Approve and deny, with the keyboard; who has asked learns what was decided."""
    plain = scene.operator.browser()

    def path_of(word):
        """Of the request that waits and has this word."""
        return next((path for path in re.findall(r'href="(/approvals/a-[a-z0-9]+)"', plain.page("/approvals"))
                     if word in plain.page(path)), None)

    def decide(word, status):
        script = "import os\nprint('to %s')" % word
        with scene.client(uid=SOMEBODY) as client:
            ask_script(client, script)
            until("it waits", lambda: path_of("to " + word))
            scene.chromium.do("go", "operator", url=scene.url("operator", path_of("to " + word)))
            scene.chromium.do("has", "operator", texts=["import os"])
            if word == "Deny":
                scene.chromium.do("type", "operator", field="Reason", text="not <b>today</b>")
            scene.chromium.do("press", "operator", button=word, then="/approvals")
            done = ask_script(client, script)
            equal(done.status, status, done)
            assert word != "Deny" or "not <b>today</b>" in json.dumps(done.raw), done.raw
    for word, status in (("Approve", "ok"), ("Deny", "denied")):
        report.check("console: %s" % word.lower(), lambda word=word, status=status: decide(word, status))


def what_runs(scene, report, call, client):
    """The page "now" follows by itself; its button stops what runs."""
    plain = scene.operator.browser()

    def running():
        return set(re.findall(r'action="/stop/(x-[a-z0-9]+)"', plain.page("/")))

    def follow():
        first = running()
        equal(len(first), 1)
        scene.chromium.do("go", "operator", url=scene.url("operator"))
        scene.chromium.do("has", "operator", texts=list(first))
        with scene.client() as other:
            late = start_cell(other, "import time\ntime.sleep(600)")
            until("it is seen", lambda: len(running()) == 2)
            new, = running() - first
            scene.chromium.do("has", "operator", texts=[new])	# nobody loads the page again
            scene.chromium.do("press", "operator", button="Stop " + new, then="/")
            assert other.outcome(late, 120).status != "ok"
        scene.chromium.do("press", "operator", button="Stop " + first.pop(), then="/")
        assert client.outcome(call, 120).status != "ok"
    report.check("console: what runs is followed and stopped", follow)


def without_scripts(scene, report):
    """The link logs in, and the lists are there."""
    def look():
        scene.chromium.do("open", "plain")
        scene.chromium.do("scripts", "plain", on=False)
        scene.log_in("plain", scene.operator)
        for path, text in (("/", "Without scripts"), ("/runs", "run_repl"), ("/approvals", "pending"),
                           ("/sessions", "Close"), ("/usage", "uid:"), ("/audit", "execution-started")):
            scene.chromium.do("shows", "plain", url=scene.url("operator", path), text=text)
        scene.chromium.do("close", "plain")
    report.check("console: without scripts", look)


def attacks(scene, report):
    def other_sites():
        with other_site() as port:
            # Another port of this address is the same site to a browser, so the cookie is sent.
            for host in ("127.0.0.1", "localhost"):
                scene.chromium.do("attack", "operator", origin="http://%s:%d/" % (host, port),
                                  console=scene.url("operator", ""))
        scene.chromium.do("go", "operator", url=scene.url("operator"))	# still logged in

    def rebinding():
        port = scene.url("operator", "").rpartition(":")[2]
        scene.chromium.do("go", "operator", url="http://rebound.example:%s/" % port, status=403)
    report.check("console: pages of other sites", other_sites)
    report.check("console: a name that leads here", rebinding)


def judge(ctx, start, report):
    with Directory() as d, Log(ctx) as log, ctx.private(d.config(log.config() + CONFIG)) as service, \
            contextlib.ExitStack() as opened:
        chromium = start()
        opened.callback(chromium.end)
        operator = opened.enter_context(console_of(ctx, d, "--audit-file", log.path))
        user = None
        if os.getuid() == 0:
            user = opened.enter_context(console_of(ctx, d, "--audit-file", log.path, user=SOMEBODY))
        scene = Scene(ctx, chromium, service, operator, user)
        with scene.client() as client, scene.client() as asking:
            asking.outcome(asking.request("tools/call", {"name": "run_repl", "arguments": {"code": HOSTILE}}), 120)
            asking.outcome(asking.request("tools/call", {"name": "run_repl", "arguments": {"code": "1 / 0"}}), 120)
            ask_script(asking, HOSTILE)
            call = start_cell(client, "'%s'\nimport time\ntime.sleep(600)" % SECRET)
            if user:
                with scene.client(uid=SOMEBODY) as other:
                    ask_script(other, HOSTILE)
            chromium.do("open", "operator")
            scene.log_in("operator", operator)
            operators_pages(scene, report)
            if user:
                chromium.do("open", "user")
                with other_site() as port:
                    scene.log_in("user", user, origin="http://localhost:%d/" % port)
                look_at(scene, report, "user", [(page_name(path), path, []) for path in PAGES],
                        hasNot=["uid:0", SECRET])
                decisions(scene, report)
            else:
                report.say("skipped", "console: another user", 0, "needs root")
            without_scripts(scene, report)
            attacks(scene, report)
            what_runs(scene, report, call, client)


def run(options, tools, out, report):
    pictures = os.environ.get("MCP_CONSOLE") or os.path.join(out, "pictures")
    os.makedirs(pictures, exist_ok=True)
    slow = float(os.environ.get("MCP_TEST_SLOW") or 1)
    os.environ["MCP_BUILD"] = os.path.abspath(options.build)
    waits.bound = SECONDS * slow
    ctx = Ctx(types.SimpleNamespace(build=os.path.abspath(options.build), slow=slow, revision=MODERN, socket=None,
                                    pid=None, fallback=False), None)
    try:
        views.browser()
    except Skip as e:
        must = e.missing and os.environ.get("CI") == "true"
        report.say("failed" if must else "skipped", "console", 0, str(e))
        return
    report.check("console", lambda: judge(ctx, lambda: Chromium(tools, out, pictures, slow), report))
