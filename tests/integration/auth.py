#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Authentication over HTTP: tokens of the service's own, tokens of an OAuth issuer, and the
header of a proxy; the answers to requests without them, and what tenants share."""

import base64
import contextlib
import hashlib
import json
import os
import pwd
import re
import subprocess
import tempfile
import time
import urllib.parse

from auth_suite import Client, files_of, serving, with_tokens
from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, test
from http_client import Closed, Connection, encode, modern, modern_headers
from mcpclient import LEGACY, MODERN
from supervisor import Supervisor, cgroup_of
from waits import until

try:
    import jwt
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
except ImportError:
    jwt = None

ISSUER = "https://id.example.org/realm"
RESOURCE = "https://py.example.org/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
DISCOVER = modern("server/discover")


def ask(place, headers=(), message=DISCOVER, path="/mcp", uid=None):
    """One modern request on a connection of its own; headers: pairs."""
    with Connection(place, uid=uid) as connection:
        connection.send(path=path, headers=modern_headers(message) + list(headers),
                        body=encode(message))
        return connection.read()


def bearer(token):
    return [("Authorization", "Bearer " + token)]


def refused(response, status, *has):
    assert response.status == status, "status %d, not %d: %r" % (response.status, status, response)
    challenge = response.header("WWW-Authenticate") or ""
    for part in has:
        assert part in challenge, "%r is not in %r" % (part, challenge)
    assert "error" in response.message, response
    return challenge


def until_answered(place, headers, status):
    """Asks until it is answered so. The service looks at its files each second."""
    return until("the status %d" % status,
                 lambda: (got := ask(place, headers)).status == status and got)


# ---- tokens of our own ----

@test(private=True)
def before_the_first_token_a_list_is_empty(ctx):
    program = os.path.join(ctx.options.build, "mcp-python")
    with tempfile.TemporaryDirectory() as d:
        for path in d + "/tokens", d + "/none/tokens":
            done = subprocess.run([program, "token", "list", "--file", path], capture_output=True,
                                  text=True)
            equal(done.returncode, 0, done.stderr)
            assert "there are no tokens yet" in done.stderr, done.stderr
            done = subprocess.run([program, "token", "list", "--json", "--file", path],
                                  capture_output=True, text=True)
            equal((done.returncode, json.loads(done.stdout)), (0, []))


@test(private=True)
def every_request_needs_a_token(ctx):
    with with_tokens(ctx) as (files, service, place):
        token = files.add("ci")
        challenge = refused(until_answered(place, bearer(token), 200) and ask(place), 401, "Bearer ")
        assert "error" not in challenge, challenge
        for message in (modern("tools/list"), modern("tools/call", {"name": "run_script"}),
                        modern("none/such"), {"jsonrpc": "2.0", "method": "notifications/x"}):
            refused(ask(place, (), message), 401, "Bearer ")
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": LEGACY[-1], "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"}}}
        with Connection(place) as connection:
            refused(connection.ask("POST", headers=[("Content-Type", "application/json")],
                                   body=encode(hello)), 401, "Bearer ")
            refused(connection.ask("DELETE", headers=[("Mcp-Session-Id", "0" * 32)]), 401)
            # nothing is said about what is in a request that nobody may send
            refused(connection.ask("POST", body=b"{"), 401)
        refused(ask(place, [("Authorization", "Basic Y2k6Y2k=")]), 401, "Bearer ")
        refused(ask(place, bearer(token[:-1])), 401, 'error="invalid_token"')
        refused(ask(place, bearer(token[:-1] + ("A" if token[-1] != "A" else "E"))), 401,
                'error="invalid_token"')
        refused(ask(place, bearer("eyJhbGciOiJub25lIn0.e30.x")), 401, 'error="invalid_token"')
        refused(ask(place, bearer("")), 400, 'error="invalid_request"')
        refused(ask(place, bearer(token + " " + token)), 400, 'error="invalid_request"')
        refused(ask(place, bearer("x" * 9000)), 400, 'error="invalid_request"')
        equal(ask(place, bearer(token) + bearer(token)).status, 400, "two of them")
        # a query is kept in logs and histories: no place for a token
        for name in ("access_token", "token"):
            refused(ask(place, path="/mcp?%s=%s" % (name, token)), 401)
        equal(ask(place, bearer(token)).status, 200, "afterwards")
        for path in (WELL_KNOWN, WELL_KNOWN + "/mcp"):
            with Connection(place) as connection:
                equal(connection.ask("GET", path).status, 404, "no issuer, no document")
        assert token not in service.log(), "the token is in the log"


@test(private=True)
def tenants_see_nothing_of_each_other(ctx):
    with with_tokens(ctx) as (files, service, place):
        one, other = files.add("one"), files.add("other")
        same = files.add("second-of-one", "--tenant", "one")
        until_answered(place, bearer(same), 200)
        with Client(place, one) as a, Client(place, other) as b:
            equal(a.stdout("print(6*7)"), "42\n", "one's script")
            equal(b.stdout("print(6*7)"), "42\n", "the other's")
            own = a.id
            for thief in (other, None):
                for verb in ("POST", "DELETE"):
                    headers = [("Content-Type", "application/json"), ("Mcp-Session-Id", own)] + (
                        bearer(thief) if thief else [])
                    body = encode(a.message("tools/list")) if verb == "POST" else b""
                    with Connection(place) as connection:
                        got = connection.ask(verb, headers=headers, body=body)
                    equal(got.status, 404 if thief else 401, "%s with %s" % (verb, thief))
            # by the unix socket, as whoever runs this
            with Connection(files.http) as connection:
                got = connection.ask("DELETE", headers=[("Mcp-Session-Id", own)])
            equal(got.status, 404, "DELETE by the kernel's word")
            equal(a.ask("ping"), {}, "it is still one's own")
            # whoever shares the tenant shares the session
            a.also["Authorization"] = "Bearer " + same
            equal(a.ask("ping"), {}, "by the other token of the tenant")
            equal(a.end().status, 204, "DELETE")
        for tenant in ("token:one", "token:other"):
            assert "session-opened tenant=%s carrier=http" % tenant in service.log(), service.log()
        if service.base and os.path.isdir(os.path.join(service.base, "tenants")):
            names = os.listdir(os.path.join(service.base, "tenants"))
            for tenant in ("token:one", "token:other"):
                name = "t-" + hashlib.sha256(tenant.encode()).hexdigest()[:32]
                assert name in names, "%s is not in %s" % (name, names)


@test(private=True)
def the_unix_socket_takes_both(ctx):
    with with_tokens(ctx) as (files, service, _):
        token = files.add("ci")
        with Client(files.http) as by_uid:
            equal(by_uid.stdout("print(6*7)"), "42\n", "by the kernel's word")
            until_answered(files.http, bearer(token), 200)
            with Client(files.http, token) as by_token:
                equal(by_token.stdout("print(6*7)"), "42\n", "by token")
                by_token.id = by_uid.id
                equal(by_token.post(by_token.message("ping")).status, 404, "another's session")
            equal(by_uid.ask("ping"), {}, "afterwards")
        refused(ask(files.http, bearer("mcp_x")), 401, 'error="invalid_token"')
        assert "tenant=uid:%d " % os.getuid() in service.log(), service.log()
        assert "tenant=token:ci " in service.log(), service.log()


@test(private=True)
def a_revoked_token_ends_links(ctx):
    """Of its tenant, and nobody else's, though a request by a link shows no token."""
    with with_tokens(ctx, "links = http://localhost\n") as (files, service, place):
        path, token = {}, {}
        for name in ("gone", "kept"):
            token[name] = files.add(name)
            until_answered(place, bearer(token[name]), 200)
            script = modern("tools/call", {"name": "run_script", "arguments": {"script": "open('f', 'w').write('1')\nNone"}})
            answer = ask(place, bearer(token[name]), script)
            url, = re.findall(r"http://localhost(/files/[^\s\"\\]+)", json.dumps(answer.message))[:1]
            path[name] = url

        def load(name):
            with Connection(place) as c:
                c.send("GET", path[name], [("Host", "localhost")])
                return c.read().status

        equal((load("gone"), load("kept")), (200, 200))
        files.command("revoke", token["gone"].split("_")[1])
        until("the link has ended", lambda: load("gone") == 404)
        equal(load("kept"), 200)


@test(private=True)
def a_revoked_token_ends_streams(ctx):
    """Of both eras, and nobody else's; within the time in which a stream says something."""
    with with_tokens(ctx, "keepalive_seconds = 1\n") as (files, service, place):
        streams = []
        for name in ("gone", "kept"):
            token = files.add(name)
            until_answered(place, bearer(token), 200)
            client = Client(place, token)
            session = client.fresh()
            session.send("GET", headers=client.headers({}, {"Accept": "text/event-stream"}))
            message = modern("subscriptions/listen", {"notifications": {}})
            listening = client.fresh()
            listening.send(headers=modern_headers(message, client.also), body=encode(message))
            for connection in (session, listening):
                head = connection.read_head()
                assert head.status == 200 and head.streams, head
            streams.append((token, client, session, listening))
        files.command("revoke", streams[0][0].split("_")[1])
        for connection in streams[0][2:]:
            with contextlib.suppress(Closed):
                while True:
                    connection.more(ctx.seconds(60))
        assert "why=token-revoked" in service.log(), service.log()
        for connection in streams[1][2:]:
            while b": still here" not in connection.inbuf:
                connection.more(ctx.seconds(60))
        for _, client, *connections in streams:
            for connection in connections:
                connection.close()
            client.connection.close()


@test(private=True)
def the_file_is_followed_while_serving(ctx):
    with with_tokens(ctx) as (files, service, place):
        token, kept = files.add("gone-soon"), files.add("kept")
        until_answered(place, bearer(kept), 200)
        with Client(place, token) as client:
            equal(client.ask("ping"), {}, "before")
            files.command("revoke", token.split("_")[1])
            refused(until_answered(place, bearer(token), 401), 401, 'error="invalid_token"')
            equal(client.post(client.message("ping")).status, 401, "a session is no credential")
        equal(ask(place, bearer(kept)).status, 200, "the other token")
        until_answered(place, bearer(files.add("late")), 200)
        # what cannot be understood changes nothing, and is said once
        text = open(files.tokens, encoding="utf-8").read()
        files.write("tokens", text[:-10])

        def noticed():
            equal(ask(place, bearer(kept)).status, 200, "with a broken file")
            return "tokens-kept" in service.log()
        until(service.log, noticed)
        os.unlink(files.tokens)
        until_answered(place, bearer(kept), 401)
        equal(service.log().count("tokens-kept"), 1, "lines in the log")
        equal(service.log().count("tokens-gone"), 1, "lines in the log")


@test(private=True)
def a_tokens_profile_is_the_only_one(ctx):
    with files_of(ctx) as files:
        settings = "token_file = %s\n[profile bare]\nmodules =\n" % files.tokens
        with serving(ctx, settings, files) as (service, place):
            files.command("add", "basic-one", "--tenant", "free")
            bound, free = files.add("bound", "--profile", "bare"), files.add("free")
            lost = files.add("lost", "--profile", "nowhere")
            files.command("add", "x", "--tenant", "bound", status=65)
            files.command("add", "x", "--tenant", "free", "--profile", "bare", status=65)
            until_answered(place, bearer(lost), 200)
            loaded = "import sys; print('argparse' in sys.modules)"
            for revision in (LEGACY[-1], MODERN):
                with Client(place, bound, revision) as a, Client(place, free, revision) as b:
                    equal(a.stdout(loaded), "False\n", "the bound one's own profile")
                    equal(a.stdout(loaded, profile="bare"), "False\n", "by its name")
                    got = a.run(loaded, profile="basic")
                    assert got["isError"] and "bare alone" in got["content"][0]["text"], got
                    look = {"name": "check_environment", "arguments": {}}
                    seen = a.ask("tools/call", look)["structuredContent"]
                    equal([p["name"] for p in seen["profiles"]], ["bare"], "what it is shown")
                    equal(seen["profile"], "bare", "where it looked")
                    got = a.ask("tools/call", dict(look, arguments={"profile": "basic"}))
                    assert got["isError"] and "bare alone" in got["content"][0]["text"], got
                    equal(b.stdout(loaded), "True\n", "the free one's default")
                    equal(b.stdout(loaded, profile="bare"), "False\n", "by its name")
            with Client(place, lost) as c:
                got = c.run(loaded)
                assert got["isError"] and "no profile" in got["content"][0]["text"], got
            # What a reload has taken away is refused to whom it was bound to.
            with open(os.path.join(service.dir, "test.conf"), encoding="utf-8") as f:
                service.reload(f.read().partition("[profile bare]")[0])
            with Client(place, bound) as a:
                got = a.run(loaded)
                assert got["isError"] and "no profile" in got["content"][0]["text"], got


@test(private=True)
def a_session_ends_where_its_tokens_profile_does(ctx):
    """It has the profile that the tenant was bound to; when the tenant is bound to another one, it runs no more
    cells until it is reset there."""
    with files_of(ctx) as files:
        settings = "token_file = %s\n[profile bare]\nmodules =\n[profile light]\nmodules = colorsys\n" % files.tokens
        with serving(ctx, settings, files) as (service, place):
            def repl(client, **arguments):
                return client.ask("tools/call", {"name": "run_repl", "arguments": arguments})["structuredContent"]
            token = files.add("bound", "--profile", "light")
            until_answered(place, bearer(token), 200)
            with Client(place, token) as c:
                session = repl(c, code="import sys\n'colorsys' in sys.modules")["session"]
                got = repl(c, code="'colorsys' in sys.modules", session=session, profile="light")
                equal(got["result"]["json"], True, "by the profile's name, too")
                seen = c.ask("tools/call", {"name": "check_environment", "arguments": {}})["structuredContent"]
                equal([s["profile"] for s in seen["repl_sessions"]], ["light"])
            files.command("revoke", token.split("_")[1])
            token = files.add("bound", "--profile", "bare")
            until_answered(place, bearer(token), 200)
            with Client(place, token) as c:
                for arguments in ({"code": "1"}, {"inspect": True}, {"code": "1", "branch": True},
                                  {"code": "1", "profile": "light", "reset": True}):
                    got = repl(c, session=session, **arguments)
                    assert got["status"] != "ok" and "bare alone" in got["error"]["message"], (arguments, got)
                got = repl(c, session=session, reset=True, profile="bare", code="import sys\n'colorsys' in sys.modules")
                equal(got["result"]["json"], False)


# ---- an issuer's tokens ----

class Issuer:
    """Signs with keys of its own, by another implementation than the one that checks."""

    def __init__(self):
        if jwt is None:
            raise Skip("no python3-jwt with python3-cryptography here", missing=True)
        self.rsa = rsa.generate_private_key(65537, 2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())

    @staticmethod
    def number(value, size=None):
        raw = value.to_bytes(size or (value.bit_length() + 7) // 8, "big")
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    def jwks(self):
        r, e = self.rsa.public_key().public_numbers(), self.ec.public_key().public_numbers()
        return json.dumps({"keys": [
            {"kty": "RSA", "kid": "r", "use": "sig", "n": self.number(r.n), "e": self.number(r.e)},
            {"kty": "EC", "kid": "e", "alg": "ES256", "crv": "P-256", "x": self.number(e.x, 32),
             "y": self.number(e.y, 32)},
            {"kty": "OKP", "kid": "o", "crv": "Ed25519", "x": self.number(7, 32)}]})

    def sign(self, algorithm="RS256", kid=None, key=None, **change):
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "alice", "iat": now, "exp": now + 300,
                  "scope": "mcp:run"}
        claims.update(change)
        claims = {k: v for k, v in claims.items() if v is not None}
        key = key or (self.ec if algorithm == "ES256" else self.rsa)
        return jwt.encode(claims, key, algorithm, headers={
            "kid": kid or ("e" if algorithm == "ES256" else "r"), "typ": "at+jwt"})


@contextlib.contextmanager
def with_issuer(ctx):
    issuer = Issuer()
    with files_of(ctx) as files:
        settings = "jwks_file = %s\nissuer = %s\nresource = %s\nrequired_scopes = mcp:run\n" % (
            files.write("jwks", issuer.jwks()), ISSUER, RESOURCE)
        with serving(ctx, settings, files) as (service, place):
            yield issuer, files, service, place


@test(private=True)
def an_issuers_tokens_are_judged(ctx):
    with with_issuer(ctx) as (issuer, _, service, place):
        for algorithm in ("RS256", "PS256", "ES256"):
            equal(ask(place, bearer(issuer.sign(algorithm))).status, 200, algorithm)
        equal(ask(place, bearer(issuer.sign(aud=["x", RESOURCE]))).status, 200, "a list")
        now = int(time.time())
        stranger = rsa.generate_private_key(65537, 2048)
        pem = issuer.rsa.public_key().public_numbers()
        for what, token in {
                "expired": issuer.sign(exp=now - 100),
                "without end": issuer.sign(exp=None),
                "not yet": issuer.sign(nbf=now + 100),
                "another audience": issuer.sign(aud="https://other.example.org/mcp"),
                "no audience": issuer.sign(aud=None),
                "another issuer": issuer.sign(iss="https://evil.example.org"),
                "no subject": issuer.sign(sub=None),
                "another key": issuer.sign(key=stranger),
                "unknown kid": issuer.sign(kid="x"),
                "none": jwt.encode({"sub": "alice"}, None, "none", headers={"kid": "r"}),
                "a public secret": issuer.sign("HS256", key=str(pem.n)),
                "cut": issuer.sign()[:-5]}.items():
            got = ask(place, bearer(token))
            assert got.status == 401, "%s: %r" % (what, got)
            refused(got, 401, 'error="invalid_token"', "resource_metadata=")
        for scope in (None, "", "mcp:runner", "mcp"):
            refused(ask(place, bearer(issuer.sign(scope=scope))), 403,
                    'error="insufficient_scope"', 'scope="mcp:run"', "resource_metadata=")
        with Client(place, issuer.sign()) as a, Client(place, issuer.sign(sub="bob")) as b:
            equal(a.stdout("print(6*7)"), "42\n", "alice's script")
            a.also["Authorization"] = "Bearer " + issuer.sign("ES256")
            equal(a.ask("ping"), {}, "with her next token")
            b.id = a.id
            equal(b.post(b.message("ping")).status, 404, "bob with alice's session")
        assert "tenant=sub:alice@%s " % ISSUER in service.log(), service.log()


@test(private=True)
def tokens_of_one_person_are_one_tenant(ctx):
    """Whatever an asker can choose beside the subject: the client, the session, the token, its audience."""
    with with_issuer(ctx) as (issuer, files, service, place):
        for claims in ({}, {"client_id": "a"}, {"client_id": "b", "azp": "b"}, {"jti": "1"}, {"sid": "2"},
                       {"aud": [RESOURCE, "x"]}, {"scope": "mcp:run more"}):
            with Client(place, issuer.sign(**claims)) as c:
                equal(c.stdout("print(1)"), "1\n", claims)
        names = re.findall(r"execution-started tenant=(\S+)", service.log())
        equal(set(names), {"sub:alice@" + ISSUER})


@test(private=True)
def the_way_to_a_token_is_told(ctx):
    with with_issuer(ctx) as (issuer, _, service, place):
        challenge = refused(ask(place), 401, 'scope="mcp:run"')
        url = re.search(r'resource_metadata="([^"]+)"', challenge)[1]
        equal(url, "https://py.example.org" + WELL_KNOWN + "/mcp", "where the document is")
        for path in (urllib.parse.urlsplit(url).path, WELL_KNOWN):
            with Connection(place) as connection:
                # as the proxy sends it on
                got = connection.ask("GET", path, [("Host", "py.example.org")])
                equal((got.status, got.header("Content-Type")), (200, "application/json"))
                document = json.loads(got.body)
                equal(document["resource"], RESOURCE)
                equal(document["authorization_servers"], [ISSUER])
                equal(document["scopes_supported"], ["mcp:run"])
                equal(document["bearer_methods_supported"], ["header"])
                equal(connection.ask("HEAD", path).status, 200, "HEAD")
            with Connection(place) as connection:
                got = connection.ask("POST", path, body=b"{}")
                equal((got.status, got.header("Allow")), (405, "GET, HEAD"))
                got = connection.ask("GET", path, [("Host", "evil.example.org")])
                equal(got.status, 403, "by another name")
        with Connection(place) as connection:
            equal(connection.ask("GET", WELL_KNOWN + "/other").status, 404, "another path")


@test(private=True)
def an_issuers_new_keys_are_found(ctx):
    with with_issuer(ctx) as (issuer, files, service, place):
        later = Issuer()
        refused(ask(place, bearer(later.sign())), 401)
        files.write("jwks", later.jwks())
        until_answered(place, bearer(later.sign()), 200)
        refused(ask(place, bearer(issuer.sign())), 401, 'error="invalid_token"')
        os.unlink(os.path.join(files.dir, "jwks"))

        def noticed():
            equal(ask(place, bearer(later.sign())).status, 200, "without the file")
            return "jwks-kept" in service.log()
        until(service.log, noticed)


# ---- a proxy ----

@test(private=True, root=True)
def a_proxy_speaks_for_its_users(ctx):
    proxy = pwd.getpwuid(SOMEBODY).pw_name
    with files_of(ctx) as files:
        settings = "trusted_header = X-Forwarded-User\ntrusted_proxy_user = %s\n" % proxy
        with serving(ctx, settings, files) as (service, place):
            user = {"X-Forwarded-User": "ann@example.org"}
            with Client(files.http, also=user, uid=SOMEBODY) as ann, \
                    Client(files.http, also={"X-Forwarded-User": "bob"}, uid=SOMEBODY) as bob:
                equal(ann.stdout("print(6*7)"), "42\n", "ann's script")
                bob.id = ann.id
                equal(bob.post(bob.message("ping")).status, 404, "bob with ann's session")
            pairs = list(user.items())
            equal(ask(files.http, pairs).status, 403, "root is not the proxy")
            equal(ask(place, pairs).status, 403, "nobody is on TCP")
            equal(ask(files.http, (), uid=SOMEBODY).status, 401, "for nobody")
            equal(ask(files.http, pairs + pairs, uid=SOMEBODY).status, 400, "for two")
            equal(ask(files.http, [("X-Forwarded-User", "a b")], uid=SOMEBODY).status, 400)
            equal(ask(files.http).status, 200, "others by the kernel's word")
            assert "tenant=user:ann@example.org " in service.log(), service.log()


# ---- start ----

def does_not_start(ctx, settings, *says):
    s = Supervisor(ctx.options.build, settings)	# for its directory and arguments
    with subprocess.Popen(s.argv, env=s.env, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
        try:
            _, said = p.communicate(timeout=ctx.seconds(60))
        finally:
            p.kill()
            # What root's service cannot remove any more once it is another user.
            s.known_base = os.path.join(cgroup_of(os.getpid()) or "/", "mcp-pythond-%d" % p.pid)
            s.remove()
    assert p.returncode in (1, 78), "it ended with %d:\n%s" % (p.returncode, said)
    for part in says:
        assert part in said, "%r is not in %s" % (part, said)


@test(private=True)
def a_doubtful_start_is_refused(ctx):
    with files_of(ctx) as files:
        everywhere = "[http]\nlisten = 0.0.0.0:0\n"
        here = "[http]\nlisten = 127.0.0.1:0\ninsecure = yes\n"
        does_not_start(ctx, everywhere, "can be reached from other machines")
        # a header that TCP never brings is nobody's word there
        does_not_start(ctx, everywhere + "[auth]\ntrusted_header = X-User\n"
                       "trusted_proxy_user = root\n", "can be reached from other machines")
        does_not_start(ctx, here + "[auth]\ntrusted_header = X-User\n"
                       "trusted_proxy_user = no-such-user\n", "no-such-user")
        does_not_start(ctx, here + "[auth]\njwks_file = %s/none\nissuer = %s\nresource = %s\n" % (
            files.dir, ISSUER, RESOURCE), "/none: No such file")
        does_not_start(ctx, here + "[auth]\njwks_file = /etc/none\n", "needs an issuer")
        broken = files.write("broken", "{}")
        does_not_start(ctx, here + "[auth]\ntoken_file = %s\n" % broken, "token_file: ")
        os.chmod(broken, 0o666)
        does_not_start(ctx, here + "[auth]\ntoken_file = %s\n" % broken,
                       "others than its owner may write")
        if os.getuid() == 0:
            os.chmod(broken, 0o600)
            does_not_start(ctx, here + "[auth]\ntoken_file = %s\n" % broken,
                           "Permission denied")


@test(private=True)
def with_tokens_other_machines_may_come(ctx):
    with files_of(ctx) as files:
        token = files.add("ci")
        with serving(ctx, "token_file = " + files.tokens, files, "0.0.0.0:0") as (service, place):
            refused(ask(place), 401)
            equal(ask(place, bearer(token)).status, 200, "with a token")
            assert "overheard" in service.log(), service.log()


# ---- the command ----

@test(private=True)
def the_command_keeps_the_file(ctx):
    with tempfile.TemporaryDirectory() as directory:
        os.umask(0o022)
        path = os.path.join(directory, "tokens")

        def run(*args, status=0):
            p = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "token", *args,
                                "--file", path], capture_output=True, text=True)
            equal(p.returncode, status, "%s: %s: status" % (args, p.stderr))
            return p
        equal(json.loads(run("list", "--json").stdout), [], "without a file")
        token = run("add", "ci", "--expires", "30d", "--tenant", "team").stdout.strip()
        assert os.stat(path).st_mode & 0o7137 == 0, oct(os.stat(path).st_mode)
        [record] = json.loads(run("list", "--json").stdout)
        equal((record["name"], record["tenant"], record["state"], record["revoked"]),
              ("ci", "team", "valid", None))
        ends = time.mktime(time.strptime(record["expires"], "%Y-%m-%dT%H:%M:%SZ")) - \
            time.mktime(time.strptime(record["created"], "%Y-%m-%dT%H:%M:%SZ"))
        assert abs(ends - 30 * 86400) <= 3600, record	# a change of the clocks in between
        with open(path, encoding="utf-8") as f:
            text = f.read()
        assert token not in text and token.split("_", 2)[2] not in text, text
        equal(json.loads(text)["tokens"][0]["sha256"], hashlib.sha256(token.encode()).hexdigest())
        assert token not in run("list").stdout
        run("revoke", "nosuch", status=65)
        run("revoke", record["id"])
        run("revoke", record["id"])
        equal(json.loads(run("list", "--json").stdout)[0]["state"], "revoked")
        # a second one is right when tokens change, and a surprise where the name was thought to be new
        assert "valid tokens" not in run("add", "twin").stderr
        assert "twin has 2 valid tokens now" in run("add", "twin").stderr
        for one in json.loads(run("list", "--json").stdout)[1:]:
            run("revoke", one["id"])
        many = [subprocess.Popen([os.path.join(ctx.options.build, "mcp-python"), "token", "add",
                                  "n%d" % i, "--file", path], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL) for i in range(12)]
        made = {p.communicate()[0] for p in many}
        equal([p.returncode for p in many], [0] * 12, "twelve at once")
        equal(len(made), 12, "different tokens")
        equal(len(json.loads(run("list", "--json").stdout)), 15, "none was lost")
        equal(os.listdir(directory), ["tokens"], "nothing else is left")
        os.chmod(path, 0o600)
        run("add", "x")
        equal(os.stat(path).st_mode & 0o777, 0o600, "the mode stays")
        os.rename(path, path + ".real")
        os.symlink(path + ".real", path)
        run("add", "x", status=74)
        os.unlink(path)
        with open(path, "w", encoding="utf-8") as f:
            f.write("{}")
        run("add", "x", status=65)
        equal(open(path, encoding="utf-8").read(), "{}", "what is not understood stays")


main(__doc__, modules=FEW_MODULES)
