#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts use secrets that they never see: the proxy puts them into requests for one host, by TLS, and
masks them in the answers. The host is on loopback, and some of its answers lie."""

import contextlib
import json
import os
import re
import shutil
import tempfile
import threading

from audit_log import Log
from harness import FEW_MODULES, Skip, equal, main, test
from outside import Names, Origin, Strange, make_tls
from proxy_scripts import RAW, report, run
from secret_files import USER, names_of_those_with, write_secret
from supervisor import read_text

SECRET = 's3cr3t/of"the\\host'
OTHER = "another-secret-of-the-host"
HOST = "api.test"


def pieces(text, size):
    """In chunks, which the borders of packets do not follow."""
    data = text.encode()
    return b"".join(b"%x;x=y\r\n%s\r\n" % (len(data[i:i + size]), data[i:i + size])
                    for i in range(0, len(data), size)) + b"0\r\nTrailer: %s\r\n\r\n" % data[:20]


def answers(secret):
    """What the host says, by path."""
    head, chunked = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    escaped = json.dumps({"you": secret}).encode()
    return {
        "/plain": head + b"Content-Length: %d\r\n\r\n%s" % (len(secret), secret.encode()),
        "/header": head + b"X-Echo: <%s>\r\nContent-Length: 0\r\n\r\n" % secret.encode(),
        "/interim": b"HTTP/1.1 103 Early Hints\r\nLink: %s\r\n\r\n" % secret.encode() + head + b"\r\nyes",
        "/open": head + b"\r\n<" + secret.encode() + b">",
        "/json": head + b"Content-Length: %d\r\n\r\n%s" % (len(escaped), escaped),
        "/slashes": head + b"\r\n" + escaped.replace(b"/", b"\\/"),
        "/chunks": chunked + pieces("<" + secret + ">" + secret[:-1], 3),
        "/bytes": chunked + pieces(escaped.decode(), 1),
        "/other": head + b"\r\n" + OTHER.encode(),
        "/none": b"HTTP/1.1 204 No Content\r\n\r\n",
        "/packed": head + b"Content-Encoding: gzip\r\n\r\n" + secret.encode(),
        "/garbage": secret.encode() + b"\r\n\r\n",
        "/part": b"HTTP/1.1 206 Partial Content\r\nContent-Length: 4\r\n\r\n" + secret.encode()[:4],
        "/twice": head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + secret.encode(),
        "/heads": head + b"X: y\r\n" * 20000,
        "/chunk": chunked + b"zz\r\n" + secret.encode(),
        "/cut": head + b"Content-Length: 100\r\n\r\nbegun " + secret.encode()[:-1],
        "/slam": b"",
        "/upgrade": b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + secret.encode(),
    }


class Host:
    """Speaks TLS, or what a script may reach without."""

    def __init__(self, name=HOST, secret=SECRET):
        self.folder = tempfile.mkdtemp(prefix="mcp-secrets-")
        os.chmod(self.folder, 0o755)
        try:
            self.tls, _ = make_tls(self.folder, name)
        except FileNotFoundError:
            shutil.rmtree(self.folder)
            raise Skip("openssl is not installed", missing=True) from None
        self.ca = self.folder + "/cert.pem"
        os.chmod(self.ca, 0o644)
        self.answers, self.asked, self.lock = answers(secret), [], threading.Lock()
        self.held, self.go_on = threading.Event(), threading.Event()
        self.server, self.plain = Strange(self.talk), Origin("127.0.0.1")
        self.names = Names({HOST: ["127.0.0.1"], "other.test": ["127.0.0.1"]})
        self.port = self.server.port

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.folder)

    def talk(self, connection):
        with self.tls.wrap_socket(connection, server_side=True) as tls:
            request = b""
            while b"\r\n\r\n" not in request:
                request += tls.recv(65536)
            head, body = request.split(b"\r\n\r\n", 1)
            length = re.search(rb"Content-Length: (\d+)", head)
            while len(body) < int(length[1] if length else 0):
                body += tls.recv(65536)
            with self.lock:
                self.asked.append((head.decode() + "\r\n", body.decode()))
            path = head.split()[1].decode()
            if path == "/hold":
                self.held.set()
                self.go_on.wait()
            tls.sendall(self.answers.get(path, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
            with contextlib.suppress(OSError):
                tls.unwrap()

    def config(self, text=SECRET, more="", rest="", network=""):
        """A second secret is for another header of the same host, a third one has no file."""
        return USER + rest + (
            "[network]\nallow = *:*\nallow_private = 127.0.0.1\nnameserver = %s\n%s"
            "[secret key]\nhost = %s:%d\nvalue_file = %s\nca_file = %s\n%s"
            "[secret second]\nhost = %s:%d\nheader = X-Second\nvalue_file = %s\nca_file = %s\n"
            "[secret lost]\nhost = %s:%d\nvalue_file = %s/nowhere\nca_file = %s\n" % (
                self.names.address, network, HOST, self.port, write_secret(self.folder + "/key", text + "\n"),
                self.ca, more, HOST, self.port, write_secret(self.folder + "/second", OTHER), self.ca,
                HOST, self.port, self.folder, self.ca))

    def heads(self):
        with self.lock:
            return [head for head, _ in self.asked]


@contextlib.contextmanager
def service(ctx, host, **more):
    with ctx.private(host.config(**more)) as s, ctx.client(path=s.socket) as c:
        yield s, c


GET = RAW + r'''
def get(path, headers="Authorization: Bearer {{secret:key}}", host="api.test", method="GET", more=""):
    return ask(("%s http://%s%s HTTP/1.1\r\n%s\r\n%s\r\n%s" % (
        method, host, path, headers, "Content-Length: %d\r\n" % len(more) if more else "", more)).encode())
def first(*arguments, **more):
    return get(*arguments, **more).split("\r\n")[0]
def body(*arguments, **more):
    return get(*arguments, **more).split("\r\n\r\n", 1)[1]
'''


@test(private=True)
def the_host_has_it_and_nobody_else(ctx):
    with Host() as host, Log(ctx) as log, service(
            ctx, host, rest=log.config(), network="idle_seconds = 600\n") as (s, c):
        id = c.start_script(GET + """
import urllib.request
r = urllib.request.Request("http://api.test/plain", b"a=b", {"Authorization": "Bearer {{secret:key}}"})
with urllib.request.urlopen(r) as answer:
    print(answer.status, answer.read().decode())
print(dict(os.environ))
try:
    print(open(%r).read())
except OSError as e:
    print(type(e).__name__)
print(get("/hold", "authorization: Bearer {{secret:key}}, {{secret:key}}\\r\\nX-Second: {{secret:second}}"
          "\\r\\nExpect: 100-continue\\r\\nAccept-Encoding: gzip\\r\\nRange: bytes=0-29\\r\\nX: {secret:key}"))
print(body("/other"))
""" % (host.folder + "/key"), timeout_seconds=600)
        assert host.held.wait(ctx.seconds(60)), s.log()
        if os.geteuid() == 0:
            equal(names_of_those_with(s, SECRET), [{"mcp-python-egre"}], "processes that have it in memory")
        host.go_on.set()
        o = c.outcome(id)
        equal(o.status, "ok", repr(o))
        assert o.stdout.startswith("200 " + "*" * len(SECRET) + "\n"), o
        assert "\r\n\r\nok\n" in o.stdout.replace("\n\nok", "\r\n\r\nok"), o
        assert o.stdout.endswith("*" * len(OTHER) + "\n"), o
        assert SECRET not in repr(o) and OTHER not in repr(o), o
        (one, sent), (two, _), _ = host.asked
        assert "\r\nAuthorization: Bearer %s\r\n" % SECRET in one and sent == "a=b", one
        assert one.startswith("POST /plain HTTP/1.1\r\nHost: api.test:%d\r\n" % host.port), one
        for line in ("authorization: Bearer %s, %s" % (SECRET, SECRET), "X-Second: " + OTHER,
                     "Accept-Encoding: identity", "X: {secret:key}", "Connection: close"):
            assert "\r\n%s\r\n" % line in two, (line, two)
        assert "Expect" not in two and "gzip" not in two and "Range" not in two, two
        for pid in s.below():
            assert SECRET not in (read_text("/proc/%d/environ" % pid) or "")
        report(s, o, "carried", 'host=api.test port=%d' % host.port)
        log.verify()
        for text in s.log(), read_text(log.path):
            assert SECRET not in text and json.dumps(SECRET)[1:-1] not in text and OTHER not in text


@test(private=True)
def answers_are_masked_however_they_come(ctx):
    stars = "*" * len(SECRET)
    escaped = json.dumps({"you": "*" * (len(json.dumps(SECRET)) - 2)})
    want = {"/plain": stars, "/open": "<%s>" % stars, "/json": escaped, "/other": "*" * len(OTHER), "/none": "",
            "/interim": "yes", "/slashes": json.dumps({"you": "*" * (len(json.dumps(SECRET)) - 1)}),
            "/header": ""}
    with Host() as host, service(ctx, host) as (s, c):
        o = run(c, GET + """
import json, urllib.request
def chunked(path):
    r = urllib.request.Request("http://api.test" + path, None, {"Authorization": "{{secret:key}}"})
    with urllib.request.urlopen(r) as answer:
        return answer.read().decode()
print(json.dumps([{path: body(path) for path in %r}, chunked("/chunks"), chunked("/bytes"), get("/header"),
                  get("/plain", method="HEAD").partition("\\r\\n\\r\\n")[2]]))
""" % list(want))
        assert SECRET not in o.stdout, o
        bodies, chunks, by_byte, header, of_head = json.loads(o.stdout)
        equal(bodies, want)
        equal(chunks, "<%s>%s" % (stars, "*" * (len(SECRET) - 1)))	# a beginning, at the end
        equal(by_byte, escaped)
        assert "X-Echo: <%s>" % stars in header and "Connection: close" in header, header
        equal(of_head, "")


@test(private=True)
def what_cannot_be_masked_is_refused(ctx):
    want = {"/packed": "compressed or encoded", "/garbage": "no HTTP/1.1", "/twice": "no HTTP/1.1",
            "/heads": "no HTTP/1.1", "/slam": "it has not answered", "/upgrade": "changes the protocol",
            "/part": "is a part"}
    with Host() as host, service(ctx, host) as (s, c):
        o = run(c, GET + "for path in %r: print(first(path))\n"
                "print([get('/chunk')[-5:], get('/cut')])" % list(want))
        *lines, unfinished = o.stdout.splitlines()
        for (path, why), line in zip(want.items(), lines, strict=True):
            assert line.startswith("HTTP/1.1 502 ") and why in line, (path, line)
        assert "0\\r\\n\\r\\n" not in unfinished and SECRET[:-1] not in unfinished, unfinished
        report(s, o, "bad-answer")


@test(private=True)
def it_goes_nowhere_else(ctx):
    """Another host, header, port, name, or a tunnel."""
    with Host() as host, service(ctx, host) as (s, c):
        o = run(c, GET + """
where = "other.test:%d"
print(first("/a", host=where))
print(first("/b", "X-Other: {{secret:key}}"))
print(first("/c", "Authorization: {{secret:nobody}}"))
print(first("/d", "Authorization: {{secret:key"))
print(first("/e", "X-Second: {{secret:key}}"))
print(first("/f", host="api.test:%d"))
print(first("/g", "X-Second: " + "{{secret:second}}" * 9))
print(first("/h", "Authorization: {{secret:lost}}"))
print(ask(b"CONNECT api.test:%d HTTP/1.1\\r\\nAuthorization: {{secret:key}}\\r\\n\\r\\n").split("\\r\\n")[0])
print(first("/i"))
""" % (host.plain.port, host.plain.port, host.port))
        *lines, last = o.stdout.splitlines()
        for line, why in zip(lines, (
                "the secret key is for another host", "the secret key is for the header Authorization",
                "there is no secret of that name for this script", "there is no secret of that name",
                "the secret key is for the header Authorization", "the secret key is for port %d" % host.port,
                "the request's head is too large", "the secret lost cannot be used: its value_file cannot be "
                "used: No such file or directory", "the secret key cannot be put into a tunnel"), strict=True):
            assert re.match(r"HTTP/1\\.1 4(03|31) ", line) or line[9:12] in ("403", "431"), line
            assert why in line, (why, line)
        assert last.startswith("HTTP/1.1 200 "), last
        equal([head.split()[1] for head in host.heads()], ["/i"])
        equal(host.plain.paths(), [])
        report(s, o, "denied-secret")
        assert re.search('egress-secret section="secret lost" key=value_file file="?%s/nowhere"? err=ENOENT ' %
                         host.folder, s.log()), s.log()


@test(private=True)
def a_tenant_has_the_secrets_that_it_was_given(ctx):
    tenant = "[tenant uid:%d]\nnetwork.secrets = second\n" % os.getuid()
    with Host() as host, service(ctx, host, rest=tenant, network="secrets =\n") as (s, c):
        o = run(c, GET + "print(first('/no'))\nprint(first('/yes', 'X-Second: {{secret:second}}'))")
        no, yes = o.stdout.splitlines()
        told = c.ask("tools/call", {"name": "check_environment", "arguments": {}})
        equal(told["structuredContent"]["secrets"],
              [{"name": "second", "host": "%s:%d" % (HOST, host.port), "header": "X-Second"}])
        assert "\nsecrets: second for %s:%d" % (HOST, host.port) in told["content"][0]["text"], told
        assert "there is no secret of that name for this script" in no, no
        assert yes.startswith("HTTP/1.1 200 "), yes
        equal(len(host.asked), 1)


@test(private=True)
def it_needs_a_rule_of_the_network_too(ctx):
    with Host() as host:
        config = host.config().replace("allow = *:*", "allow = %s:80" % HOST)
        with ctx.private(config) as s, ctx.client(path=s.socket) as c:
            o = run(c, GET + "print(first('/no'))")
            assert "403" in o.stdout and "not allowed by the network policy" in o.stdout, o
            equal(host.asked, [])


@test(private=True)
def the_certificate_must_be_the_hosts(ctx):
    with Host() as host, Host("elsewhere.test") as elsewhere:
        for at, ca, why in (host, elsewhere.ca, "self-signed|self signed"), (elsewhere, elsewhere.ca, "[Hh]ostname mismatch"):
            config = at.config().replace("ca_file = " + at.ca, "ca_file = " + ca)
            with ctx.private(config) as s, ctx.client(path=s.socket) as c:
                o = run(c, GET + "print(first('/no'))")
                assert o.stdout.startswith("HTTP/1.1 502 ") and re.search("TLS could not begin: .*(%s)" % why, o.stdout), o
                equal(at.asked, [])


@test(private=True)
def a_changed_secret_is_used_after_a_reload(ctx):
    with Host() as host, service(ctx, host) as (s, c):
        run(c, GET + "print(first('/plain'))")
        write_secret(host.folder + "/key", SECRET + "-new\n")
        s.reload(ends="files of credentials have changed")
        run(c, GET + "print(first('/plain'))")
        heads = host.heads()
        assert SECRET in heads[0] and SECRET + "-new" not in heads[0], heads
        assert SECRET + "-new" in heads[-1], heads


@test(private=True)
def without_a_secret_nothing_changes(ctx):
    with Host() as host, service(ctx, host) as (s, c):
        o = run(c, GET + "print(body('/x{{secret:key}}', 'X: y', host='127.0.0.1:%d'))" % host.plain.port)
        assert o.stdout.startswith("GET /x"), o
        equal(host.asked, [])


main(__doc__, modules=FEW_MODULES)
