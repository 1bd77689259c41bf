#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The way out: scripts that reach what the configuration allows through their proxy, and
nothing else. The outside is a name server and origins on loopback (outside.py)."""

import base64
import contextlib
import hashlib
import io
import os
import re
import select
import shutil
import signal
import tempfile
import time
import zipfile

from audit_log import Log
from harness import FEW_MODULES, Skip, equal, main, proto_version, test
from outside import Names, Origin, Strange, echo, endless, make_tls, silent, stubborn
from proxy_scripts import RAW, report, run, wait_log
from supervisor import NotStarted, read_text
from waits import until

turns = {"rebind.test": 0}


def alternate(kind):
    """A name that first means what may be reached, and then what may not."""
    if kind != 1:
        return ()
    turns["rebind.test"] += 1
    return ("127.0.0.2",) if turns["rebind.test"] % 2 else ("127.0.0.1",)


class Outside:
    def __init__(self):
        self.names = Names({
            "origin.test": ["127.0.0.2"], "a.below.test": ["127.0.0.2"], "below.test": ["127.0.0.2"],
            "other.test": ["127.0.0.2"], "six.test": ["::1"], "silent.test": None, "mute.test": None,
            "loop.test": ["127.0.0.1"], "mixed.test": ["127.0.0.1", "10.1.2.3", "127.0.0.2"],
            "mapped.test": ["::ffff:127.0.0.1"], "nat64.test": ["64:ff9b::7f00:1"],
            "sixtofour.test": ["2002:7f00:1::1"], "ten.test": ["10.0.0.1"],
            "meta.test": ["169.254.169.254"], "local.test": ["fe80::1"], "ula.test": ["fd12::1"],
            "zero.test": ["0.0.0.0"], "rebind.test": alternate})
        self.secret = None
        while not self.secret:		# somebody else may have the port of the one there
            self.origin = Origin("127.0.0.2")
            self.port = self.origin.port
            with contextlib.suppress(OSError):
                self.secret = Origin("127.0.0.1", self.port)	# what nobody may reach
        self.echo, self.silent, self.endless = Strange(echo), Strange(silent), Strange(endless)
        self.stubborn = Strange(stubborn)
        self.directory = tempfile.mkdtemp(prefix="mcp-egress-")
        try:
            context, self.certificate = make_tls(self.directory, "origin.test")
            self.tls = Origin("127.0.0.2", 0, context)
        except FileNotFoundError:
            self.tls = None
        finally:
            shutil.rmtree(self.directory)

    def config(self, *more, private="127.0.0.2 ::1", allow=None):
        rules = allow or (
            "origin.test:%(port)d .below.test:%(port)d six.test:%(port)d silent.test:%(port)d "
            "rebind.test:%(port)d mixed.test:%(port)d loop.test:%(port)d missing.test:%(port)d "
            "127.0.0.2:%(port)d localhost:%(port)d origin.test:1 origin.test:%(tls)d" %
            {"port": self.port, "tls": self.tls.port if self.tls else 1})
        return "[network]\nallow = %s\nallow_private = %s\nnameserver = %s\n%s" % (
            "\n ".join(rules.split()), private, self.names.address, "".join(line + "\n" for line in more))

    def strange(self, *more):
        """With the origins that behave badly, which are on 127.0.0.1."""
        return self.config(*more, private="127.0.0.0/8", allow="*:*")


out = Outside()

def proxy_process(service):
    for pid in service.below():
        if (read_text("/proc/%d/comm" % pid) or "").startswith("mcp-python-egre"):
            return pid
    return None


# ---- clients as they are ----

def check_described(client, script, open_world):
    """What the two tools that run what a client wrote say of the network."""
    tools = {t["name"]: t for t in client.ask("tools/list")["tools"]}
    for name, text in ("run_script", script), ("run_repl", "packages and network are those of run_script"):
        assert text in tools[name]["description"], tools[name]
        equal(tools[name]["annotations"]["openWorldHint"], open_world)


@test(any_build=True, any_rights=True)
def the_tools_say_what_there_is(ctx):
    with ctx.client() as c:
        check_described(c, "of the network what the operator allows", True)


@test(any_build=True)
def environment_names_the_proxy(ctx):
    with ctx.client() as c:
        o = run(c, "import os, subprocess, sys\n"
                "names = ['http_proxy', 'https_proxy', 'no_proxy']\n"
                "for n in names: print(os.environ[n], os.environ[n.upper()])\n"
                "print(subprocess.run(['/bin/sh', '-c', 'echo $HTTPS_PROXY'], capture_output=True,"
                "      text=True).stdout)")
    equal(o.stdout, "http://127.0.0.1:3128 http://127.0.0.1:3128\n" * 2 +
          "localhost,127.0.0.1,::1 localhost,127.0.0.1,::1\nhttp://127.0.0.1:3128\n\n")


@test
def urllib_reaches_what_is_allowed(ctx):
    with ctx.client() as c:
        o = run(c, """
import urllib.request as u
def show(request):
    with u.urlopen(request, timeout=60) as r:
        print(r.status, r.read().decode())
at = "http://origin.test:%d"
show(at + "/plain?x=1")
show(u.Request(at + "/form", b"a=b"))
show(u.Request(at + "/chunked", iter([b"one ", b"two"]), {"Transfer-Encoding": "chunked"}, method="PUT"))
show("http://a.below.test:%d/")
show(u.Request("http://127.0.0.2:%d/number"))
try:
    show(at + "/missing")
except u.HTTPError as e:
    print(e.code)
""" % (out.port, out.port, out.port))
    equal(o.stdout, "200 GET /plain?x=1 \n200 POST /form a=b\n200 PUT /chunked one two\n200 GET / \n"
          "200 GET /number \n404\n")
    report(ctx.service, o, "carried", r'host=origin\.test port=%d address=127\.0\.0\.2 sent=[1-9]\d* '
           r'received=[1-9]' % out.port)
    line = "execution=%s .*port=" % o.id
    wait_log(ctx.service, line, 6)
    equal(len(re.findall(line, ctx.service.log())), 6, "one line for each connection")


@test
def the_origin_sees_a_plain_request(ctx):
    with ctx.client() as c:
        o = run(c, RAW + """
print(ask(b"GET http://ORIGIN.test.:%d/marker-host?q HTTP/1.1\\r\\nHost: evil.test\\r\\n"
          b"Proxy-Connection: keep-alive\\r\\nProxy-Authorization: Basic eDp5\\r\\nX-Mine: 1\\r\\n"
          b"Connection: keep-alive, X-Hop\\r\\nX-Hop: 1\\r\\nX-Kept: 2\\r\\n\\r\\n"))""" % out.port)
    head = o.stdout.split("\r\n") if "\r\n" in o.stdout else o.stdout.split("\n")
    equal([line.strip() for line in head[:2]], ["HTTP/1.1 200 OK", "Connection: close"])
    headers = next(h for _, path, h in out.origin.seen if path == "/marker-host?q")
    equal(headers, {"Host": "origin.test:%d" % out.port, "X-Mine": "1", "X-Kept": "2",
                    "Connection": "close"})



REQUESTS = """
try:
    import requests
except ImportError:
    try:
        from pip._vendor import requests
    except ImportError:
        raise SystemExit(77)
"""


@test(any_build=True)
def requests_reaches_what_is_allowed(ctx):
    with ctx.client() as c:
        o = c.run(REQUESTS + """
with requests.Session() as s:
    for path in "/one", "/two", "/three":
        r = s.get("http://origin.test:%d" + path, timeout=60)
        print(r.status_code, r.text)
    print(s.post("http://origin.test:%d/post", data={"a": "b"}, timeout=60).text)
    try:
        s.get("https://forbidden.test/", timeout=60)
    except requests.exceptions.ProxyError as e:
        print("forbidden.test port 443: not allowed by the network policy" in str(e))
    print(s.get("http://forbidden.test/", timeout=60).status_code)
""" % (out.port, out.port), 120)
    if o.exit_code == 77:
        raise Skip("neither requests nor pip is installed", missing=True)
    equal(o.stdout, "200 GET /one \n200 GET /two \n200 GET /three \nPOST /post a=b\nTrue\n403\n", repr(o))


@test
def tls_goes_through_a_tunnel(ctx):
    if not out.tls:
        raise Skip("openssl is not installed", missing=True)
    with ctx.client() as c:
        o = run(c, """
import ssl, urllib.request
context = ssl.create_default_context(cadata=%r)
for i in range(3):
    with urllib.request.urlopen("https://origin.test:%d/tls", timeout=60, context=context) as r:
        print(r.status, r.read().decode())
""" % (out.certificate, out.tls.port))
    equal(o.stdout, "200 GET /tls \n" * 3)


def wheel(name, version):
    """A wheel with one module that says its version."""
    files = {name + ".py": b"version = %r\n" % version,
             "%s-%s.dist-info/METADATA" % (name, version):
             b"Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name.encode(), version.encode()),
             "%s-%s.dist-info/WHEEL" % (name, version):
             b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "".join("%s,sha256=%s,%d\n" % (path, base64.urlsafe_b64encode(
        hashlib.sha256(data).digest()).decode().rstrip("="), len(data)) for path, data in files.items())
    files["%s-%s.dist-info/RECORD" % (name, version)] = record.encode()
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return data.getvalue()


@test(any_build=True, any_rights=True)
def pip_installs_from_an_index_that_is_allowed(ctx):
    content = wheel("egressdemo", "1.5")
    name = "egressdemo-1.5-py3-none-any.whl"
    out.origin.files["/simple/egressdemo/"] = (
        '<a href="/files/%s#sha256=%s">%s</a>' % (name, hashlib.sha256(content).hexdigest(), name)).encode()
    out.origin.files["/files/" + name] = content
    with ctx.client() as c:
        o = c.run("""
import importlib.util, subprocess, sys
if importlib.util.find_spec("pip") is None:
    raise SystemExit(77)
def install(index, *more):
    return subprocess.run([sys.executable, "-m", "pip", "install", "--no-cache-dir", "--target", "/workspace/t",
                           "--disable-pip-version-check", "--retries", "0", "--trusted-host", "origin.test",
                           "--index-url", index, *more, "egressdemo"], capture_output=True, text=True)
p = install("http://origin.test:%d/simple/")
assert p.returncode == 0, p.stdout + p.stderr
sys.path.insert(0, "/workspace/t")
import egressdemo
print(egressdemo.version)
# By number, for which NO_PROXY might stand.
p = install("http://127.0.0.2:%d/simple/", "--proxy", "http://127.0.0.1:3128", "--upgrade",
            "--trusted-host", "127.0.0.2")
assert p.returncode == 0, p.stdout + p.stderr
p = install("https://elsewhere.test/simple/", "--upgrade")
print(p.returncode != 0)
""" % (out.port, out.port), 240, timeout_seconds=200)
    if o.exit_code == 77:
        raise Skip("pip is not installed", missing=True)
    equal(o.stdout, "1.5\nTrue\n", repr(o))
    report(ctx.service, o, "denied-by-rule", r'host=elsewhere\.test port=443')


@test(private=True)
def what_goes_out_or_may_not_is_in_the_audit_log(ctx):
    with Log(ctx) as log, ctx.private(out.config() + log.config()) as s, ctx.client(path=s.socket) as c:
        o = run(c, RAW + "for w in 'origin.test:%d', 'other.test:%d':\n    s, head = tunnel(w)\n"
                "    print(head.split()[1])\n    s.close()\n" % (out.port, out.port))
        equal(o.stdout, "200\n403\n")
        # Whether the proxy or the execution ends first is nobody's promise.
        for verdict in ("(?:carried|cut)", "denied-by-rule"):	# a record is written before its line
            report(s, o, verdict)
        said = {r["event"]: r for r in log.records("--execution", o.id)}
        for event, verdicts, host in (("connection", ("carried", "cut"), "origin.test"),
                                      ("connection-refused", ("denied-by-rule",), "other.test")):
            equal((said[event]["host"], said[event]["port"]), (host, out.port))
            assert said[event]["verdict"] in verdicts, said[event]
            equal(said[event]["tenant"], "uid:%d" % os.getuid())
        log.verify()


@test(private=True)
def new_hosts_are_an_alarm(ctx):
    """Each host counts once; the alarm is about scripts that reach many that they never reached."""
    hosts = ["a.below.test", "b.below.test", "below.test", "127.0.0.2", "origin.test"]
    out.names.table.setdefault("b.below.test", ["127.0.0.2"])
    def visit(hosts):
        return RAW + "for h in %r:\n    tunnel(h + ':%d')[0].close()\n" % (hosts, out.port)

    alarms = "[alarms]\nnew_hosts = 3\nunusual_times = 0\n"
    with Log(ctx) as log, ctx.private(out.config(alarms) + log.config()) as s, ctx.client(path=s.socket) as c:
        for _ in range(6):
            o = run(c, visit(hosts[:2]))
            report(s, o, "(?:carried|cut)", r"host=b\.below\.test")
        equal(log.records("--event", "alarm-raised"), [])
        run(c, visit(hosts))
        wait_log(s, r"alarm-raised tenant=\S+ pattern=new_hosts count=[345] ")
        found, = log.records("--event", "alarm-raised")
        equal(found["pattern"], "new_hosts")


def audited(log, service, verdict, host, port):
    """The event that a connection with one of these verdicts is in the audit log. A record is
    written before its line."""
    wait_log(service, r'connection\S* .* verdict=(?:%s) host=%s port=%d ' % (verdict, re.escape(host), port))
    events = [r["event"] for r in log.records() if re.fullmatch(verdict, r.get("verdict", "")) and
              (r["host"], r["port"]) == (host, port)]
    equal(len(events), 1, events)
    return events[0]


@test(private=True)
def what_was_connected_and_is_cut_was_not_refused(ctx):
    with Log(ctx) as log, ctx.private(out.strange() + log.config()) as s, ctx.client(path=s.socket) as c:
        equal(run(c, RAW + "print(tunnel('127.0.0.1:%d')[1].split()[1])\n" % out.stubborn.port).stdout, "200\n")
        equal(audited(log, s, "cut", "127.0.0.1", out.stubborn.port), "connection")
        dialling = c.start_script(RAW + "tunnel('mute.test:1')\n")
        out.names.wait("mute.test", ctx.seconds(60))
        c.cancel(dialling)	# or it is given up before that comes
        equal(audited(log, s, "cut|no-such-name|timed-out", "mute.test", 1), "connection-refused")
        log.verify()


@test(private=True)
def what_was_connected_and_hits_a_limit_was_not_refused(ctx):
    with Log(ctx) as log, ctx.private(out.strange("idle_seconds = 1") + log.config()) as s, \
            ctx.client(path=s.socket) as c:
        equal(run(c, RAW + "print(tunnel('127.0.0.1:%d')[0].recv(1))\n" % out.silent.port).stdout, "b''\n")
        equal(audited(log, s, "timed-out", "127.0.0.1", out.silent.port), "connection")
        log.verify()
    with Log(ctx) as log, ctx.private(out.strange("bytes_max = 1M") + log.config()) as s, \
            ctx.client(path=s.socket) as c:
        run(c, RAW + "ask(b'GET http://127.0.0.1:%d/ HTTP/1.1\\r\\n\\r\\n')\ntunnel('127.0.0.1:%d')\n" % (
            out.endless.port, out.echo.port))
        equal(audited(log, s, "bytes-limit", "127.0.0.1", out.endless.port), "connection")
        equal(audited(log, s, "bytes-limit", "127.0.0.1", out.echo.port), "connection-refused")
        log.verify()


# ---- what is refused ----

@test
def other_hosts_and_ports_are_refused(ctx):
    where = ["other.test:%d" % out.port, "below.test:%d" % out.port, "xorigin.test:%d" % out.port,
             "origin.test:443", "origin.test.evil.test:%d" % out.port, "127.0.0.1:%d" % out.port,
             "[::1]:%d" % out.port, "127.0.0.3:%d" % out.port, "10.0.0.1:80"]
    with ctx.client() as c:
        o = run(c, RAW + "for w in %r:\n    s, head = tunnel(w)\n    print(head.split()[1])\n"
                "    s.close()\n    print(ask(b'GET http://%%s/ HTTP/1.0\\r\\n\\r\\n' %% w.encode()).split()[1])\n" % where)
    equal(o.stdout, "403\n403\n" * len(where))
    for place in where:
        host, _, port = place.rpartition(":")
        wait_log(ctx.service, r'execution=%s verdict=denied-by-rule host=%s port=%s sent=0 '
                 r'received=0 ' % (o.id, re.escape(host.strip("[]")), port), 2)
    assert not out.names.times("other.test") and not out.names.times("below.test"), "looked up all the same"


@test(private=True)
def addresses_that_are_not_public_are_refused(ctx):
    names = ["loop", "mapped", "nat64", "sixtofour", "ten", "meta", "local", "ula", "zero"]
    where = [name + ".test:%d" % out.port for name in names] + [
        "127.0.0.1:%d" % out.port, "[::1]:%d" % out.port, "[::ffff:127.0.0.1]:%d" % out.port, "169.254.169.254:80",
        "localhost:%d" % out.port, "192.168.0.1:80", "[fe80::1]:80", "255.255.255.255:80", "224.0.0.1:80"]
    before = len(out.secret.seen)
    with ctx.private(out.config(private="", allow="*:*")) as s, ctx.client(path=s.socket) as c:
        o = run(c, RAW + "for w in %r:\n    s, head = tunnel(w)\n    print(head.split('\\r\\n')[0])\n" % where)
        for line, place in zip(o.stdout.splitlines(), where):
            assert line.startswith("HTTP/1.1 403 ") and " address, " in line, (place, line)
        equal(len(o.stdout.splitlines()), len(where))
        wait_log(s, "verdict=denied-address ", len(where))
        report(s, o, "denied-address", r'host=loop\.test port=%d address=127\.0\.0\.1' % out.port)
    equal(len(out.secret.seen), before, "requests that arrived on loopback")


@test
def a_name_is_looked_up_once_and_what_was_judged_is_used(ctx):
    before = len(out.secret.seen), out.names.times("rebind.test")
    with ctx.client() as c:
        o = run(c, RAW + "for i in range(6):\n"
                "    print(ask(b'GET http://rebind.test:%d/rebind HTTP/1.1\\r\\n\\r\\n').split()[1])\n" % out.port)
    equal(o.stdout, "200\n403\n" * 3)
    equal((len(out.secret.seen), out.names.times("rebind.test")), (before[0], before[1] + 6))


@test
def of_several_addresses_only_good_ones_are_used(ctx):
    before = len(out.secret.seen)
    with ctx.client() as c:
        o = run(c, RAW + "print(ask(b'GET http://mixed.test:%d/mixed HTTP/1.1\\r\\n\\r\\n').split()[1])\n" % out.port)
    equal(o.stdout, "200\n")
    equal(len(out.secret.seen), before)
    report(ctx.service, o, "carried", r'address=127\.0\.0\.2 ')


@test
def the_hosts_file_counts(ctx):
    with ctx.client() as c:
        o = run(c, RAW + "print(tunnel('localhost:%d')[1])\n" % out.port)
    assert o.stdout.startswith("HTTP/1.1 403 Forbidden (localhost port %d: a loopback address, " % out.port), o
    equal(out.names.times("localhost"), 0)


@test
def failures_outside_have_their_own_answers(ctx):
    with ctx.client() as c:
        o = run(c, RAW + "print(tunnel('missing.test:%d')[1].split('\\r')[0])\n"
                "print(tunnel('origin.test:1')[1].split('\\r')[0])\n" % out.port)
    equal(o.stdout, "HTTP/1.1 502 Bad Gateway (missing.test port %d: there is no such name)\n"
          "HTTP/1.1 502 Bad Gateway (origin.test port 1: the connection was refused, 127.0.0.2)\n" % out.port)
    report(ctx.service, o, "no-such-name")
    report(ctx.service, o, "no-connection")


@test
def a_name_server_that_is_silent_holds_up_nobody_else(ctx):
    with ctx.client() as c, ctx.client() as other:
        slow = c.start_script(RAW + "waiting = [proxy() for i in range(30)]\n"
                              "for s in waiting: s.sendall(b'CONNECT silent.test:%d HTTP/1.1\\r\\n\\r\\n')\n"
                              "print(waiting[0].recv(100).split()[1].decode())\n" % out.port)
        started = time.monotonic()
        for i in range(5):
            o = run(other, RAW + "print(ask(b'GET http://origin.test:%d/fair HTTP/1.1\\r\\n\\r\\n').split()[1])\n" % out.port)
            equal(o.stdout, "200\n")
        took = time.monotonic() - started
        o = c.outcome(slow, 120)
        assert o.stdout.strip() in ("502", "504"), o
    assert took < ctx.seconds(20), "%.1f s for five others" % took


# ---- no network ----

@test(private=True)
def without_rules_there_is_nothing(ctx):
    with ctx.private("") as s, ctx.client(path=s.socket) as c:
        o = run(c, """
import os, socket
print([n for n in os.environ if "proxy" in n.lower()])
try:
    socket.create_connection(("127.0.0.1", 3128), 5)
except OSError as e:
    print(type(e).__name__)
""")
        equal(o.stdout, "[]\nConnectionRefusedError\n")
        equal(proxy_process(s), None)
        check_described(c, " and no network", False)


@test(private=True)
def without_the_program_the_answer_says_so(ctx):
    with ctx.private(out.config(), env={"MCP_PYTHON_EGRESS": "/nonexistent"}) as s, ctx.client(path=s.socket) as c:
        o = run(c, "import os\nprint([n for n in os.environ if 'proxy' in n.lower()])")
        equal(o.stdout, "[]\n")
        equal(o.stderr, "mcp-pythond: this script has no network: mcp-python-egress is not installed\n")
        assert "egress-none" in s.log()


@test(private=True)
def a_program_that_cannot_be_opened_is_not_a_missing_one(ctx):
    try:
        with ctx.private(out.config(), env={"MCP_PYTHON_EGRESS": "/etc/passwd"}) as s:
            s.process.wait(ctx.seconds(60))
            said = s.log()
    except NotStarted as e:
        said = str(e)
    assert "mcp-python-egress: Permission denied" in said, said


@test(private=True)
def a_proxy_that_dies_is_started_again(ctx):
    origin = Strange(silent)	# its own, for it counts who comes
    script = RAW + "print(ask(b'GET http://origin.test:%d/again HTTP/1.1\\r\\n\\r\\n').split()[1])\n" % out.port
    with ctx.private(out.strange()) as s, ctx.client(path=s.socket) as c:
        equal(run(c, script).stdout, "200\n")
        first = proxy_process(s)
        slow = c.run(RAW + "s, head = tunnel('127.0.0.1:%d')\nprint(rest(s), flush=True)\n"
                     "while True:\n    try:\n        with proxy() as p: p.recv(1)\n"
                     "    except ConnectionRefusedError: break\n    except OSError: pass\n"
                     "print('refused', flush=True)\nimport signal\nsignal.pause()\n" % origin.port,
                     background=True).structured["job"]
        assert origin.accepted.acquire(timeout=60)
        os.kill(first, signal.SIGKILL)
        wait_log(s, "egress-lost .*signal 9")
        wait_log(s, "egress-cut execution=")
        text = ""
        while not text.endswith("refused\n"):
            answer = c.ask("tools/call", {"name": "job", "arguments": {
                "id": slow, "action": "output", "wait_seconds": 1}}, 120)["structuredContent"]
            equal(answer["state"], "running", answer)
            text = answer["output"]["text"]
        equal(text, "b''\nrefused\n")
        c.ask("tools/call", {"name": "job", "arguments": {"id": slow, "action": "cancel"}})

        def answer():
            o = run(c, script.replace("print(ask", "import os\nif 'http_proxy' in os.environ: print(ask"))
            assert o.stdout or "has no network" in o.stderr, o
            return o.stdout
        equal(until("a new proxy", answer), "200\n")
        assert proxy_process(s) not in (None, first)


@test(private=True)
def a_proxy_that_ends_under_a_script_is_named(ctx):
    """The script sees only that its connection has ended."""
    origin = Strange(silent)
    with ctx.private(out.strange()) as s, ctx.client(path=s.socket) as c:
        call = c.start_script(RAW + "s, head = tunnel('127.0.0.1:%d')\nassert rest(s), 'nothing came'\n" % origin.port,
                              timeout_seconds=300)
        assert origin.accepted.acquire(timeout=60)
        os.kill(proxy_process(s), signal.SIGKILL)
        o = c.outcome(call, ctx.seconds(60))
        equal(o.status, "error", o)
        assert "proxy for the network has ended" in o.text, o


# ---- its jail ----

@test(private=True)
def the_proxy_has_nothing(ctx):
    with ctx.private(out.config()) as s, ctx.client(path=s.socket) as c:
        run(c, "pass")
        wait_log(s, "egress-ready")
        pid = proxy_process(s)
        status = dict(re.findall(r"(\w+):\s*(.*)", read_text("/proc/%d/status" % pid)))
        for key in "CapInh", "CapPrm", "CapEff", "CapAmb":
            equal(int(status[key], 16), 0, key)
        equal((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        if os.getuid() == 0:	# others cannot look into it
            # libevent has all of libevent_core once more.
            loaded = set(re.findall(r"/(libevent(?:_core)?)-", read_text("/proc/%d/maps" % pid)))
            equal(loaded, {"libevent_core"})
            uids = set(status["Uid"].split())
            own = set(re.findall(r"Uid:\s*(\d+)", read_text("/proc/%d/status" % s.pid)))
            assert len(uids) == 1 and not uids & own and "0" not in uids, (uids, own)
            kinds = set()
            for fd in os.listdir("/proc/%d/fd" % pid):
                with contextlib.suppress(FileNotFoundError):	# of the script that has ended
                    kinds.add(re.sub(r":.*", "", os.readlink("/proc/%d/fd/%s" % (pid, fd))))
            assert {"socket", "anon_inode"} <= kinds <= {"/dev/null", "socket", "anon_inode", "pipe", s.log_path}, kinds


@test(private=True)
def it_ends_with_the_service(ctx):
    with ctx.private(out.config()) as s:
        with ctx.client(path=s.socket) as c:
            run(c, "pass")
        wait_log(s, "egress-ready")	# a script that needs no proxy does not wait for it
        pid = proxy_process(s)
        assert pid is not None
        fd = os.pidfd_open(pid)
        os.kill(s.pid, signal.SIGKILL)
        assert select.select([fd], [], [], 20)[0], "the proxy outlives a killed service"
        os.close(fd)
        s.process.wait()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(s.socket)	# nobody is left to do it


# ---- hostile scripts ----

@test
def bad_requests_are_refused(ctx):
    bad = [b"GET / HTTP/1.1\r\n\r\n", b"CONNECT origin.test HTTP/1.1\r\n\r\n", b"CONNECT :80 HTTP/1.1\r\n\r\n",
           b"CONNECT origin.test:99999 HTTP/1.1\r\n\r\n", b"CONNECT origin.test:-1 HTTP/1.1\r\n\r\n",
           b"CONNECT user@origin.test:80 HTTP/1.1\r\n\r\n", b"CONNECT 2130706434:80 HTTP/1.1\r\n\r\n",
           b"CONNECT 0x7f000002:80 HTTP/1.1\r\n\r\n", b"CONNECT 127.2:80 HTTP/1.1\r\n\r\n",
           b"CONNECT origin.test:80\r\n\r\n", b"CONNECT origin.test:80 HTTP/2.0\r\n\r\n",
           b"GET ftp://origin.test/ HTTP/1.1\r\n\r\n", b"GET http://u:p@origin.test/ HTTP/1.1\r\n\r\n",
           b"GET http:///x HTTP/1.1\r\n\r\n", b"GET http://origin.test/a b HTTP/1.1\r\n\r\n",
           b"GET http://origin.test/ HTTP/1.1\r\nA b: c\r\n\r\n", b"GET http://origin.test/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
           b"GET http://origin.test/ HTTP/1.1\r\nA: b\nC: d\r\n\r\n", b"GET http://origin.test/ HTTP/1.1\r\nA: \0\r\n\r\n",
           b"GET http://origin.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
           b"GET http://origin.test/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
           b"GET http://origin.test/ HTTP/1.1\r\nContent-Length: +1\r\n\r\nx",
           b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\n"]
    other = [(b"GET https://origin.test/ HTTP/1.1\r\n\r\n", "501"),
             (b"GET http://origin.test/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "501"),
             (b"GET http://origin.test/ HTTP/1.1\r\nX: " + b"x" * 40000 + b"\r\n\r\n", "431"),
             (b"GET http://origin.test/ HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", "431")]
    with ctx.client() as c:
        o = run(c, RAW + "for b in %r: print(ask(b).split()[1])\n" % (bad + [b for b, _ in other]))
    equal(o.stdout.split(), ["400"] * len(bad) + [status for _, status in other])
    report(ctx.service, o, "bad-request", 'port=0 ')


@test
def what_follows_a_request_goes_nowhere(ctx):
    with ctx.client() as c:
        o = run(c, RAW + """
at = b"http://origin.test:%d"
print(ask(b"GET " + at + b"/first-alone HTTP/1.1\\r\\n\\r\\nGET " + at + b"/smuggled HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
      .count("HTTP/1.1 200"))
print(ask(b"POST " + at + b"/with-body HTTP/1.1\\r\\nContent-Length: 3\\r\\n\\r\\nabcGET /smuggled HTTP/1.1\\r\\n\\r\\n")
      .endswith("POST /with-body abc"))
print(ask(b"POST " + at + b"/in-chunks HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n3\\r\\nabc\\r\\n0\\r\\n\\r\\n"
          b"GET /smuggled HTTP/1.1\\r\\n\\r\\n").endswith("POST /in-chunks abc"))
print(repr(ask(b"POST " + at + b"/bad-chunks HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n3 \\r\\nabc\\r\\n")))
""" % out.port)
    equal(o.stdout, "1\nTrue\nTrue\n''\n")
    assert "/smuggled" not in out.origin.paths()


@test(private=True)
def either_side_may_end_first(ctx):
    with ctx.private(out.strange()) as s, ctx.client(path=s.socket) as c:
        o = run(c, RAW + "s, head = tunnel('127.0.0.1:%d')\ns.sendall(b'x' * 300000)\ns.shutdown(socket.SHUT_WR)\n"
                "data = rest(s)\nprint(len(data), data[-3:])\n" % out.echo.port)
        equal(o.stdout, "300003 b'bye'\n")
        report(s, o, "carried", "sent=300000 received=300003")


@test(private=True)
def slow_heads_are_given_up(ctx):
    with ctx.private(out.config()) as s, ctx.client(path=s.socket) as c:
        o = run(c, RAW + """
import select
s = proxy()
started = time.monotonic()
for byte in b"GET http://origin.test/" + b"x" * 100:
    if select.select([s], [], [], 0.3)[0]:
        break
    s.sendall(bytes([byte]))
print(rest(s).split()[1], 5 < time.monotonic() - started < 25)
""", timeout_seconds=60)
        equal(o.stdout, "b'408' True\n")
        report(s, o, "timed-out")


@test(private=True)
def connections_are_counted(ctx):
    config = out.config("connections = 4", "connections_max = 20")
    with ctx.private(config) as s, ctx.client(path=s.socket) as c:
        o = run(c, RAW + """
held = [proxy() for i in range(8)]
held[7].sendall(b"GET http://origin.test:%d/eighth HTTP/1.1\\r\\n\\r\\n")
held[7].settimeout(2)
try:
    print(held[7].recv(10))
except TimeoutError:
    print("waits")
held[0].close()
held[1].close()
held[2].close()
held[3].close()
held[7].settimeout(60)
print(held[7].recv(12))
for s in held[4:]: s.close()
""" % out.port)
        equal(o.stdout, "waits\nb'HTTP/1.1 200'\n")
        o = run(c, RAW + """
answers = 0
for i in range(40):
    try:
        answers += "200" in ask(b"GET http://origin.test:%d/many HTTP/1.1\\r\\n\\r\\n")
    except OSError as e:
        print(answers, type(e).__name__)
        break
""" % out.port)
        assert o.stdout in ("20 ConnectionRefusedError\n", "20 ConnectionResetError\n"), o
        report(s, o, "connections-limit")


@test(private=True)
def bytes_are_counted(ctx):
    with ctx.private(out.strange("bytes_max = 1M")) as s, ctx.client(path=s.socket) as c:
        o = run(c, RAW + "print(500000 < len(ask(b'GET http://127.0.0.1:%d/ HTTP/1.1\\r\\n\\r\\n')) <= 1048576)\n"
                "print(tunnel('127.0.0.1:%d')[1].split('(')[1].split(')')[0])\n" % (out.endless.port, out.echo.port))
        equal(o.stdout, "True\n127.0.0.1 port %d: this execution has used up its bytes\n" % out.echo.port)
        report(s, o, "bytes-limit", "received=[1-9]")
        # Of one execution alone.
        equal(run(c, RAW + "print(tunnel('127.0.0.1:%d')[1].split()[1])\n" % out.echo.port).stdout, "200\n")


@test(private=True)
def the_rate_is_bounded(ctx):
    with ctx.private(out.strange("rate_max = 1M", "bytes_max = 1G")) as s, ctx.client(path=s.socket) as c:
        o = run(c, RAW + """
s = [tunnel("127.0.0.1:%d")[0] for i in range(4)]
for one in s: one.sendall(b"x")
started, total = time.monotonic(), 0
import select
while time.monotonic() - started < 4:
    for one in select.select(s, [], [], 1)[0]: total += len(one.recv(65536))
print(total)
""" % out.endless.port, timeout_seconds=60)
        assert 1 << 19 < int(o.stdout) < 8 << 20, "%s bytes in 4 s at 1 MiB/s" % o.stdout


@test(private=True)
def an_origin_that_never_answers_is_given_up(ctx):
    with ctx.private(out.strange("idle_seconds = 2")) as s, ctx.client(path=s.socket) as c:
        o = run(c, RAW + "print(ask(b'GET http://127.0.0.1:%d/ HTTP/1.1\\r\\n\\r\\n'))\n" % out.silent.port)
        equal(o.stdout, "\n")
        report(s, o, "timed-out", "ms=[2-9]...")


@test(private=True)
def who_never_reads_holds_up_nobody(ctx):
    origin = Strange(endless)	# its own, for it counts who comes and goes
    with ctx.private(out.strange("rate_max = 1G", "bytes_max = 64G")) as s, ctx.client(path=s.socket) as c, \
            ctx.client(path=s.socket) as other:
        deaf = c.start_script(RAW + """
deaf = [tunnel("127.0.0.1:%d")[0] for i in range(32)]
for s in deaf: s.sendall(b"x")
time.sleep(600)
""" % origin.port, timeout_seconds=600)
        for i in range(32):
            assert origin.accepted.acquire(timeout=60)
        pid = proxy_process(s)
        for i in range(10):
            started = time.monotonic()
            o = run(other, RAW + "print(ask(b'GET http://127.0.0.2:%d/fair HTTP/1.1\\r\\n\\r\\n').split()[1])\n" % out.port)
            equal(o.stdout, "200\n")
            assert time.monotonic() - started < ctx.seconds(10)
        resident = int(re.search(r"VmRSS:\s*(\d+)", read_text("/proc/%d/status" % pid))[1])
        assert resident < (400 if "ASAN_OPTIONS" in os.environ else 64) * 1024, "%d KiB" % resident
        c.cancel(deaf)
        for i in range(32):
            assert origin.ended.acquire(timeout=60), "connections outlive their execution"
        # The script's end and the proxy's order to end them are on their way at once.
        wait_log(s, r'verdict=(?:cut|carried) host=127.0.0.1 port=%d ' % origin.port, 32)


@test(private=True)
def a_flood_holds_up_nobody(ctx):
    with ctx.private(out.strange("connections_max = 20000")) as s, ctx.client(path=s.socket) as c, \
            ctx.client(path=s.socket) as other:
        flood = c.start_script(RAW + """
import threading
def flood():
    while True:
        try:
            with proxy() as s: s.sendall(b"CONNECT nowhere.test:1 HTTP/1.1\\r\\n\\r\\n"); s.recv(1)
        except OSError: pass
for i in range(8): threading.Thread(target=flood, daemon=True).start()
print("on", flush=True)
time.sleep(600)
""", timeout_seconds=600)
        wait_log(s, "verdict=no-such-name")
        started = time.monotonic()
        for i in range(10):
            o = run(other, RAW + "print(ask(b'GET http://127.0.0.2:%d/fair HTTP/1.1\\r\\n\\r\\n').split()[1])\n" % out.port)
            equal(o.stdout, "200\n")
        took = time.monotonic() - started
        c.cancel(flood)
        assert took < ctx.seconds(30), "%.1f s for ten others" % took
        equal(run(c, "print(1)").stdout, "1\n")


@test
def a_second_listener_is_a_breach(ctx):
    """The control socket is open in the script's process; a frame of its own making."""
    with ctx.client() as c:
        o = run(c, """
import array, os, socket, struct
s = socket.socket(fileno=os.dup(63))
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen()
body = b"\\x81\\xa2id\\x01"
frame = bytes([%d, 32]) + struct.pack("!I", len(body)) + body
try:
    s.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [l.fileno()]))])
except PermissionError:     # newer kernels refuse it as soon as the first one has come
    s.send(frame)
import time
time.sleep(60)
""" % proto_version(), status="worker_protocol_error")


# ---- sessions ----

def cell(client, code, session=None, **arguments):
    """Its outcome, and the session."""
    o = client.outcome(client.request("tools/call", {"name": "run_repl", "arguments": {
        "code": code, **({"session": session} if session else {}), **arguments}}), 120)
    equal(o.status, "ok", "status of %r" % o)
    return o, o.structured["session"]


FETCH = """
import urllib.request
with urllib.request.urlopen("http://origin.test:%d/cell", timeout=60) as r: print(r.read().decode())
"""


@test
def cells_get_out(ctx):
    """Each cell, also one that continues from a checkpoint."""
    with ctx.client() as c:
        o, session = cell(c, FETCH % out.port, checkpoint="one")
        equal(o.stdout, "GET /cell \n")
        for restore in ({}, {}, {"restore": "one"}):
            o, _ = cell(c, FETCH % out.port, session, **restore)
            equal(o.stdout, "GET /cell \n")
            report(ctx.service, o, "carried")
        cell(c, "1", session, close=True)


@test(private=True)
def a_cell_that_is_over_at_once_cuts_nobody(ctx):
    """Its listening socket has ended before the proxy has heard of it."""
    origin = Strange(silent)
    with ctx.private(out.strange()) as s, ctx.client(path=s.socket) as c, ctx.client(path=s.socket) as other:
        slow = c.start_script(RAW + "s, head = tunnel('127.0.0.1:%d')\nprint(rest(s))\n" % origin.port)
        assert origin.accepted.acquire(timeout=60)
        proxy = proxy_process(s)
        os.kill(proxy, signal.SIGSTOP)
        _, session = cell(other, "1")
        cell(other, "2", session)
        os.kill(proxy, signal.SIGCONT)
        o, _ = cell(other, FETCH % out.port, session, close=True)
        equal(o.stdout, "GET /cell \n")
        equal(proxy_process(s), proxy)
        assert "egress-lost" not in s.log() and "egress-cut" not in s.log(), s.log()[-2000:]
        c.cancel(slow)


# listen() that makes one more copy of the socket, with the number 55.
KEEPING_LISTEN = ("57 b832000000 0f05 50 488b7c2408 be37000000 b821000000 0f05 58 5f c3"
                  .replace(" ", ""))


@test
def no_cell_has_the_listening_socket(ctx):
    """A copy would be the proxy's flags and options in a script's hand. A cell may change what
    later ones find in their memory, but the socket is not made there."""
    if os.uname().machine != "x86_64":
        raise Skip("has machine code of x86_64")
    with ctx.client() as c:
        _, session = cell(c, """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
at = ctypes.cast(libc.listen, ctypes.c_void_p).value
if libc.mprotect(ctypes.c_void_p(at & ~4095), 8192, 7): raise OSError(ctypes.get_errno(), "mprotect")
code = bytes.fromhex("%s")
ctypes.memmove(at, code, len(code))
def kept():
    try: return bool(os.fstat(55))
    except OSError: return False
""" % KEEPING_LISTEN)
        o, _ = cell(c, "print(kept())" + FETCH % out.port, session)
        equal(o.stdout, "False\nGET /cell \n")
        o, _ = cell(c, "s = socket.create_server(('127.0.0.1', 0))\nprint(kept())", session)
        equal(o.stdout, "True\n", "the change has an effect")
        cell(c, "1", session, close=True)


if __name__ == "__main__":
    main(__doc__, out.config(), modules=FEW_MODULES)
