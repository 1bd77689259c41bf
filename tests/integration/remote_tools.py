#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts call the tools of MCP servers that are reached by HTTP, some of which lie, and never see the
credentials for them."""

import base64
import contextlib
import json
import os
import re
import threading
import time
import urllib.parse

from audit_log import Log
from harness import FEW_MODULES, equal, main, test
from mcpclient import LEGACY
from peer import Peer
from remote_server import RemoteServer, TokenServer, tasks, tool
from secret_files import USER, names_of_those_with, write_secret
from supervisor import read_text
from tool_scripts import ERRORS, printed, tools_process
from waits import until

SECRET = 's3cr3t"of\\the-upstream-server'


# All memory is looked through while a call waits.
SLOW = "[tool-calls]\nseconds = 600\n"


def config_of(name, server, more=""):
    return "[tools %s]\nurl = %s\n%s" % (name, server.url, more)


@contextlib.contextmanager
def service(ctx, server, more="", rest=""):
    with ctx.private(rest + config_of("far", server, more)) as s, ctx.client(path=s.socket) as c:
        yield s, c


def in_era(ctx, era, where, more="", **of_server):
    with RemoteServer(era, where, **of_server) as server:
        if where == "tls":
            more += "ca_file = %s\n" % server.ca
        with service(ctx, server, more) as (s, c):
            equal(printed(c, "import tools\nprint(tools.far.echo(value='a'), tools.far.stream(), "
                          "tools.far.stream())"), "{'value': 'a'} streamed streamed\n")
            equal(printed(c, "import asyncio, tools\nasync def main():\n    return await asyncio.gather("
                          "*[tools.far.echo.aio(n=n) for n in range(20)])\n"
                          "print([one['n'] for one in asyncio.run(main())] == list(range(20)))"), "True\n")
            assert "revision=\"%s\"" % {"legacy": "2025-11-25", "modern": "2026-07-28"}[era] in s.log()
        return server


@test(private=True)
def a_server_of_the_old_era_is_called(ctx):
    server = in_era(ctx, "legacy", "tcp")
    equal(server.methods()[:4], ["server/discover", "initialize", "notifications/initialized", "tools/list"])
    assert "GET" in server.methods(), server.methods()
    assert server.calls("echo")[0]["Mcp-Session-Id"] == "session-1", server.calls("echo")


@test(private=True)
def a_server_of_the_new_era_is_called_over_tls(ctx):
    server = in_era(ctx, "modern", "tls")
    assert not {"initialize", "GET"} & set(server.methods()), server.methods()


@test(private=True)
def a_server_is_called_by_a_unix_socket(ctx):
    in_era(ctx, "modern", "unix")
    in_era(ctx, "legacy", "unix", path="/other/path")


@test(private=True)
def a_certificate_is_always_verified(ctx):
    with RemoteServer(where="tls") as server:
        with ctx.private(config_of("far", server)) as s:
            s.wait_logged("state=down")
            assert "certificate" in s.log(), s.log()
            equal(server.methods(), [])
    with RemoteServer(where="tls", certificate="elsewhere.example") as server:
        with ctx.private(config_of("far", server, "ca_file = %s\n" % server.ca)) as s:
            s.wait_logged("state=down")
            equal(server.methods(), [])


@test(private=True)
def lies_fail_the_call_at_once(ctx):
    want = {
        "wrong": "its answer does not fit this request, or cannot be read",
        "unreadable": "its answer (does not fit this request, or )?cannot be read",
        "unreadable_event": "its answer cannot be read as JSON",
        "flood": "its answer has more than 16 MiB",
        "flood_events": "its answer has more than 16 MiB",
        "heads": "its headers have more than 64 KiB",
        "cut": "it answers|its answer does not fit",
        "slam": "Empty reply|Server returned nothing|Send failure|Recv failure|Connection",
        "elsewhere": "it redirects to another address",
        "page": "neither JSON nor events",
    }
    with RemoteServer("legacy") as other:
        for era in "legacy", "modern":
            with RemoteServer(era) as server:
                server.server.__class__.other = other.url
                with service(ctx, server) as (s, c):
                    printed(c, "import tools\ntools.far.echo()")
                    out = printed(c, ERRORS + "for name in %r:\n    print(error(getattr(tools.far, name)))\n"
                                  "print(tools.far.echo(still='here'))" % list(want)).splitlines()
                for (name, pattern), got in zip(want.items(), out, strict=False):
                    assert re.match("far.%s: the server far .*(%s)" % (name, pattern), got), (era, name, got)
                    equal(len(server.calls(name)), 1, "calls of %s" % name)
                equal(out[-1], "{'still': 'here'}")
        equal(other.methods(), [])


@test(private=True)
def slow_bytes_are_waited_for_as_long_as_a_call_may_take(ctx):
    with RemoteServer("modern") as server, \
            service(ctx, server, rest="[tool-calls]\nseconds = 2\n") as (s, c):
        out = printed(c, ERRORS + "print(error(tools.far.trickle))")
        assert "has not answered within 2 seconds" in out, out
        equal(printed(c, "import tools\nprint(tools.far.echo())"), "{}\n")


@test(private=True)
def a_session_that_is_gone_is_begun_again(ctx):
    with RemoteServer("legacy") as server, service(ctx, server) as (s, c):
        out = printed(c, ERRORS + """
import time
print(tools.far.forget())
print(error(tools.far.echo))
while error(lambda: print(tools.far.echo(again=1))) != "no error":
    time.sleep(0.1)
""").splitlines()
        equal(out[0], "forgotten")
        assert "it has ended the session" in out[1] or "does not run now" in out[1], out
        equal(out[-1], "{'again': 1}")
        equal(server.server.sessions, 2)


@test(private=True)
def a_list_that_changes_is_read_again(ctx):
    for era in "legacy", "modern":
        with RemoteServer(era) as server, service(ctx, server) as (s, c):
            s.wait_logged("tools=17")
            printed(c, "import tools\nprint(tools.far.grow())")
            s.wait_logged("tools=18")
            equal(printed(c, "import tools\nprint(tools.far.late())"), "called late\n")


@test(private=True)
def a_server_that_floods_its_stream_is_read_slowly(ctx):
    """It writes for five seconds; what the service does not read waits in sockets."""
    with RemoteServer("legacy", "unix", floods=True) as flood, RemoteServer("legacy", "unix") as near, \
         ctx.private(config_of("flood", flood) + config_of("near", near)) as s, ctx.client(path=s.socket) as c:
        until("it floods", lambda: flood.server.flooded > 0)
        for n in range(5):
            equal(printed(c, "import tools\nprint(tools.near.echo(n=%d))" % n), "{'n': %d}\n" % n)
        begun, before = time.monotonic(), flood.server.flooded
        time.sleep(5)
        rate = (flood.server.flooded - before) / (time.monotonic() - begun)
        assert 0 < rate < 1 << 20, "%d bytes a second" % rate
        equal(printed(c, "import tools\nprint(tools.flood.echo(n=1))"), "{'n': 1}\n")


def credential(server, text=SECRET + "\n", more=""):
    return "credential_file = %s\n%s" % (write_secret(server.folder + "/secret", text), more)


@test(private=True)
def a_credential_goes_to_the_server_alone(ctx):
    for header, value in ("Authorization", "Bearer " + SECRET), ("X-Api-Key", SECRET):
        with RemoteServer("modern", header=header, secret=value) as server, Log(ctx) as log:
            more = credential(server, more="credential_header = %s\n" % header if header[0] == "X" else "")
            with service(ctx, server, more, log.config(USER) + SLOW) as (s, c):
                id = c.start_script("""
import os, tools
print(tools.far.leak())
try:
    print(open(%r).read())
except OSError as e:
    print(type(e).__name__)
print(dict(os.environ))
tools.far.hold()
""" % (server.folder + "/secret"), timeout_seconds=600)
                assert server.state["held"].wait(ctx.seconds(60)), "the script holds no call"
                if os.geteuid() == 0:
                    equal(names_of_those_with(s, SECRET), [{"mcp-python-tool"}], "processes that have it in memory")
                server.state["ended"].set()
                o = c.outcome(id)
                equal(o.status, "ok", repr(o))
                assert header in o.stdout and "*" * len(SECRET) in o.stdout, o
                assert SECRET not in repr(o), o
                for pid in s.below():
                    assert SECRET not in (read_text("/proc/%d/environ" % pid) or "")
                assert SECRET not in s.log()
                log.verify()
                assert SECRET not in read_text(log.path)


@test(private=True)
def without_its_credential_a_server_is_not_asked(ctx):
    with RemoteServer("modern", secret="Bearer " + SECRET) as server:
        for text, what in (SECRET[:5], "Bad message"), (SECRET + "\nmore\n", "Bad message"):
            with RemoteServer("legacy") as other, service(
                    ctx, server, credential(server, text), USER + config_of("other", other)) as (s, c):
                equal(printed(c, ERRORS + "print(tools.other.echo(still='here'))\n"
                                          "print(error(lambda: tools.far.echo()))"),
                      "{'still': 'here'}\nfar: the server far does not run now: its credential_file cannot be "
                      "used: %s\n" % what)
                log = s.log()
                assert re.search('tools-credential section="tools far" key=credential_file file="?%s/secret"? '
                                 "err=EBADMSG " % server.folder, log), log
                assert text.strip() not in log
            os.remove(server.folder + "/secret")
        equal(server.methods(), [])
        with ctx.private(USER + config_of("far", server, credential(server, SECRET + "-old"))) as s:
            s.wait_logged("it refuses the credential")


@test(private=True)
def a_changed_credential_is_used_after_a_reload(ctx):
    with RemoteServer("modern", secret={"Bearer " + SECRET, "Bearer " + SECRET + "-new"}) as server, \
            service(ctx, server, credential(server), USER) as (s, c):
        printed(c, "import tools\ntools.far.echo()")
        pid, = tools_process(s)
        # Nothing has changed, so nothing is cut off.
        id = c.start_script("import tools\ntools.far.hold()")
        assert server.state["held"].wait(ctx.seconds(60))
        s.reload()
        equal(tools_process(s), [pid])
        server.state["ended"].set()
        equal(c.outcome(id).status, "ok")
        credential(server, SECRET + "-new\n")
        s.reload()
        s.wait_logged("files of credentials have changed")
        printed(c, ERRORS + "while error(lambda: tools.far.echo()) != 'no error': pass")
        equal([headers["Authorization"] for headers in server.calls("echo")],
              ["Bearer " + SECRET, "Bearer " + SECRET + "-new"])


# ---- OAuth ----

def oauth(server, tokens, path="good", folder=None):
    return ("oauth_token_url = %s%s\noauth_client_id = client:1\noauth_client_secret_file = %s\n"
            "oauth_scope = tools.read, tools.call\n" % (
                tokens.url, path, write_secret((folder or server.folder) + "/client", SECRET)))


@test(private=True)
def a_token_is_fetched_kept_and_fetched_again_when_refused(ctx):
    for era in "legacy", "modern":
        with TokenServer(SECRET) as tokens, RemoteServer(era, secret=tokens.valid) as server, \
                service(ctx, server, oauth(server, tokens), USER) as (s, c):
            equal(printed(c, "import asyncio, tools\nasync def main():\n    return await asyncio.gather("
                          "*[tools.far.echo.aio(n=n) for n in range(20)])\n"
                          "print(len(asyncio.run(main())))"), "20\n")
            equal(len(tokens.asked), 1, "tokens")
            _, headers, form = tokens.asked[0]
            client = base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode().split(":")
            equal([urllib.parse.unquote(part) for part in client], ["client:1", SECRET])
            equal(form, {"grant_type": ["client_credentials"], "scope": ["tools.read tools.call"],
                         "resource": [server.url]})
            tokens.valid.clear()
            equal(printed(c, "import tools\nprint(tools.far.echo(again=1))"), "{'again': 1}\n")
            equal(len(tokens.asked), 2, "tokens")
            equal([one["Authorization"] for one in server.calls("echo")[-2:]],
                  ["Bearer " + token for token in tokens.tokens], "the call, which was refused once")
            # A server that refuses every token is not asked for ever.
            server.state["secret"].clear()
            tokens.make = lambda: "never-accepted-token"
            out = printed(c, ERRORS + "print(error(tools.far.echo))")
            assert "it refuses the credential" in out, out
            equal((len(tokens.asked), len(server.calls("echo"))), (3, 24))


@test(private=True)
def a_token_is_renewed_before_its_end(ctx):
    with TokenServer(SECRET, seconds=2) as tokens, RemoteServer("modern", secret=tokens.valid) as server, \
            service(ctx, server, oauth(server, tokens), USER) as (s, c):
        def is_renewed():
            equal(printed(c, "import tools\nprint(tools.far.echo())"), "{}\n")
            return len(tokens.asked) >= 3
        until("tokens are renewed", is_renewed)
        assert len({one["Authorization"] for one in server.calls("echo")}) >= 2, server.calls("echo")


@test(private=True)
def a_token_endpoint_that_lies_stops_its_server_alone(ctx):
    want = {"garbage": "its answer is not a JSON object", "short": "its answer has no access_token",
            "header": "its answer has no access_token", "none": "its answer has no access_token",
            "mac": "its token_type is not Bearer", "past": "its expires_in is not a number", "text": "its expires_in is",
            "huge": "its answer has more than 64 KiB", "redirect": r"it redirects .*\(HTTP status 307\)",
            "refuse": "HTTP status 401, and says: invalid_client", "slow": "[Tt]imed? ?out",
            "echo": r"HTTP status 400, and says: \*{%d}" % len(SECRET)}
    with TokenServer(SECRET) as tokens, RemoteServer("modern", secret=tokens.valid) as server:
        more = "".join(config_of(name, server, oauth(server, tokens, name)) for name in want)
        with service(ctx, server, oauth(server, tokens), USER + more) as (s, c):
            for name, pattern in want.items():
                s.wait_logged("tools-server name=%s state=down" % name)
                line = re.search("tools-server name=%s state=down .*" % name, s.log())[0]
                assert re.search("there is no token: the token endpoint: .*" + pattern, line), line
            equal(printed(c, ERRORS + "print(tools.far.echo())\nprint(error(lambda: tools.garbage.echo()))"),
                  "{}\ngarbage: the server garbage does not run now: there is no token: the token endpoint: "
                  "its answer is not a JSON object\n")
            assert SECRET not in s.log(), "the client's secret is in the log"
        equal({name for name, _, _ in tokens.asked}, {"good", *want})


@test(private=True)
def tokens_and_the_clients_secret_are_seen_by_nobody(ctx):
    with TokenServer(SECRET) as tokens, RemoteServer("modern", secret=tokens.valid) as server, Log(ctx) as log, \
            service(ctx, server, oauth(server, tokens), log.config(USER) + SLOW) as (s, c):
        id = c.start_script("import os, tools\nprint(tools.far.leak())\nprint(dict(os.environ))\ntools.far.hold()",
                            timeout_seconds=600)
        assert server.state["held"].wait(ctx.seconds(60)), "the script holds no call"
        token = tokens.tokens[0]
        if os.geteuid() == 0:
            equal(names_of_those_with(s, SECRET, token), 2 * [{"mcp-python-tool"}], "processes that have it in memory")
        server.state["ended"].set()
        o = c.outcome(id)
        equal(o.status, "ok", repr(o))
        assert "Authorization: Bearer " + "*" * len(token) in o.stdout, o
        log.verify()
        for text in repr(o), s.log(), read_text(log.path):
            assert token not in text and SECRET not in text


@test(private=True)
def without_the_clients_secret_no_token_is_asked_for(ctx):
    with TokenServer(SECRET) as tokens, RemoteServer("modern", secret=tokens.valid) as server:
        more = oauth(server, tokens)
        os.remove(server.folder + "/client")
        with service(ctx, server, more, USER) as (s, c):
            out = printed(c, ERRORS + "print(error(lambda: tools.far.echo()))")
            assert "its oauth_client_secret_file cannot be used: No such file" in out, out
        equal((tokens.asked, server.methods()), ([], []))


# ---- what a call can be besides one request and its answer ----

def wait_seen(server, method):
    """Until the server has got one of that method; it tells by its list of what it has seen."""
    until(lambda: "%s: %r" % (method, server.methods()), lambda: method in server.methods())


@test(private=True)
def calls_that_become_tasks_are_followed(ctx):
    for era in "legacy", "modern":
        tools = tasks("ends", *(("fails", "asks", "without_id") if era == "modern" else ()))
        with RemoteServer(era, tools=tools) as server, service(ctx, server) as (s, c):
            equal(printed(c, "import tools\nprint(tools.far.task_ends())"), "the end of task_ends\n")
            equal(server.methods().count("tasks/get"), 3 if era == "modern" else 0)
            if era == "modern":
                out = printed(c, ERRORS + "for name in 'fails', 'asks', 'without_id':\n"
                              "    print(error(getattr(tools.far, 'task_' + name)))").splitlines()
                for text, want in zip(out, ("the task of the call has failed", "wants more from its client",
                                            "a task that cannot be followed"), strict=True):
                    assert want in text, (want, out)
                wait_seen(server, "tasks/cancel")


@test(private=True)
def tasks_that_nobody_waits_for_are_cancelled(ctx):
    for era in "legacy", "modern":
        with RemoteServer(era, tools=tasks("hangs")) as server, \
                service(ctx, server, rest="[tool-calls]\nseconds = 600\n") as (s, c):
            id = c.start_script("import tools\ntools.far.task_hangs()", timeout_seconds=600)
            assert server.state["held"].wait(ctx.seconds(60)), server.methods()
            c.cancel(id)
            wait_seen(server, "tasks/cancel")
        with RemoteServer(era, tools=tasks("hangs")) as server, \
                service(ctx, server, rest="[tool-calls]\nseconds = 2\n") as (s, c):
            out = printed(c, ERRORS + "print(error(tools.far.task_hangs))")
            assert "has not answered within 2 seconds" in out, out
            wait_seen(server, "tasks/cancel")


@test(private=True)
def a_call_that_nobody_waits_for_is_cancelled(ctx):
    """By a notification of the older era; by the end of the connection in the newer one."""
    for era in "legacy", "modern":
        with RemoteServer(era, tools=[tool("hold"), tool("trickle")]) as server, service(ctx, server) as (s, c):
            name = "hold" if era == "legacy" else "trickle"
            id = c.start_script("import tools\ntools.far.%s()" % name, timeout_seconds=600)
            wait_seen(server, "tools/call")
            c.cancel(id)
            wait_seen(server, "notifications/cancelled" if era == "legacy" else "closed")


@test(private=True)
def progress_of_a_call_is_told_to_the_client(ctx):
    for era in "legacy", "modern":
        with RemoteServer(era, tools=[tool("steps")]) as server, service(ctx, server) as (s, _), \
                Peer(s) as p:
            p.shake(LEGACY[-1])
            id = p.script("import tools\ntools.far.steps()", meta={"progressToken": 7})
            note = p.notice("notifications/progress")
            equal((note["progressToken"], note["message"]), (7, "far.steps: 1 of 3: step ?1"))
            server.state["told"].set()
            told = json.dumps(p.wait(id))
            assert "a lie" not in told, told
            # Nobody has asked for it: a script, a cell, a job.
            for name, call in (("run_script", {"script": "import tools\nprint(tools.far.steps())"}),
                               ("run_repl", {"code": "import tools\nprint(tools.far.steps())"}),
                               ("run_script", {"script": "import tools\nprint(tools.far.steps())",
                                               "background": True})):
                told = p.result("tools/call", {"name": name, "arguments": call})["structuredContent"]
                if call.get("background"):
                    told = p.result("tools/call", {"name": "job", "arguments": {
                        "id": told["job"], "action": "wait"}})["structuredContent"]["answer"]
                equal((told["status"], told["stdout"]), ("ok", "\n"))
            # The list of tools may change meanwhile: the server's tools have just come.
            equal([note for note in p.notices if note["method"] == "notifications/progress"], [])


@test(private=True)
def arguments_are_repeated_in_headers(ctx):
    def described(**properties):
        return {"name": "where", "annotations": {"readOnlyHint": True}, "inputSchema": {
            "type": "object", "properties": properties}}
    deep = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "Deep-N"}}}
    good = described(region={"type": "string", "x-mcp-header": "Region"}, deep=deep,
                     dry={"type": "boolean", "x-mcp-header": "Dry"}, plain={"type": "string"})
    wrong = [dict(described(x=schema), name="wrong%d" % n) for n, schema in enumerate((
        {"type": "string", "x-mcp-header": "a b"}, {"type": "string", "x-mcp-header": "A\r\nB: c"},
        {"type": "object", "x-mcp-header": "X"}, {"type": "string", "x-mcp-header": 1},
        {"type": "string", "x-mcp-header": ""}))]
    twice = dict(described(a={"type": "string", "x-mcp-header": "A"}, b={"type": "string", "x-mcp-header": "a"}),
                 name="twice")
    with RemoteServer("modern", tools=[good, *wrong, twice]) as server, service(ctx, server) as (s, c):
        s.wait_logged("tools=1 left_out=6")
        out = printed(c, ERRORS + """
tools.far.where(region="eu", deep={"n": -7}, dry=True, plain="x")
tools.far.where(region="\\r\\nX-Evil: \u00fc", dry=None)
tools.far.where(region="=?base64?eA==?=")
tools.far.where(region="")
print(error(lambda: tools.far.where(region="x" * 5000)))
""")
        assert "cannot be sent" in out, out
        sent = [{name: value for name, value in headers.items() if name.startswith("Mcp-Param")}
                for headers in server.calls("where")]
        def coded(text):
            return "=?base64?%s?=" % base64.b64encode(text.encode()).decode()
        equal(sent, [{"Mcp-Param-Region": "eu", "Mcp-Param-Deep-N": "-7", "Mcp-Param-Dry": "true"},
                     {"Mcp-Param-Region": coded("\r\nX-Evil: \u00fc")},
                     {"Mcp-Param-Region": coded("=?base64?eA==?=")}, {"Mcp-Param-Region": ""}])
    with RemoteServer("legacy", tools=[good, *wrong]) as server, service(ctx, server) as (s, c):
        s.wait_logged("tools=6 left_out=0")
        printed(c, "import tools\ntools.far.where(region='eu')")
        assert "Mcp-Param-Region" not in server.calls("where")[0]


@test(private=True)
def a_broken_stream_is_resumed(ctx):
    with RemoteServer("legacy", tools=[tool("broken"), tool("brokenforever")]) as server, \
            service(ctx, server) as (s, c):
        equal(printed(c, "import tools\nprint(tools.far.broken())"), "the rest\n")
        resumed = [headers["Last-Event-ID"] for method, headers, _ in list(server.state["seen"])
                   if method == "GET" and "Last-Event-ID" in headers]
        equal(resumed, ["broken-0", "broken-1"])
        equal(len(server.calls("broken")), 1, "calls")
        out = printed(c, ERRORS + "print(error(tools.far.brokenforever))")
        assert "ended its answer without a result" in out, out
        equal(len(server.calls("brokenforever")), 1, "calls")
    # 2026-07-28 has no ids of events: a call is not made twice.
    with RemoteServer("modern", tools=[tool("broken")]) as server, service(ctx, server) as (s, c):
        out = printed(c, ERRORS + "print(error(tools.far.broken))")
        assert "ended its answer without a result" in out, out
        equal((len(server.calls("broken")), server.methods().count("GET")), (1, 0))


@test(private=True)
def resources_are_read(ctx):
    """Such as those that a result links to. It is a tool like the others, for policy too."""
    for era in "legacy", "modern":
        with RemoteServer(era, tools=[tool("echo")], can=("tools", "resources")) as server, \
                service(ctx, server) as (s, c):
            out = printed(c, ERRORS + """
read = tools.far.resources_read
print(read(uri="x://text"), read(uri="x://two"))
for uri in "x://lie", "x://none", 7:
    print(error(lambda: read(uri=uri)))
print(error(lambda: read(uri="x" * 5000)))
print("reads" in str(tools.search("resource link")).lower())
""").splitlines()
            equal(out[0], r"a text [b'\x00\x01', 'b']")
            assert "no result of a tool" in out[1] and "cannot be read" in out[2], out
            assert "uri must be a string" in out[3] and "cannot be" in out[4], out
            equal((out[5], server.methods().count("resources/read")), ("True", 5 if era == "legacy" else 4))
        with RemoteServer(era, tools=[tool("echo")], can=("tools", "resources")) as server, \
                service(ctx, server, rest="[tool-calls]\ndeny = far.resources/read\n") as (s, c):
            equal(printed(c, "import tools\nprint(hasattr(tools.far, 'resources_read'))"), "False\n")
    own = dict(tool("echo"), name="resources/read")
    with RemoteServer("legacy", tools=[own], can=("tools", "resources")) as server, service(ctx, server) as (s, c):
        equal(printed(c, "import tools\nprint(tools.far.resources_read())"), "called resources/read\n")
        equal(server.methods().count("resources/read"), 0)


@test(private=True)
def a_session_is_ended(ctx):
    with RemoteServer("legacy") as server:
        with service(ctx, server) as (s, c):
            printed(c, "import tools\ntools.far.echo()")
        equal(server.methods()[-1:], ["DELETE"])
        headers = [headers for method, headers, _ in server.state["seen"] if method == "DELETE"]
        equal([(h["Mcp-Session-Id"], h["MCP-Protocol-Version"]) for h in headers], [("session-1", "2025-11-25")])
    with RemoteServer("modern") as server:
        with service(ctx, server) as (s, c):
            printed(c, "import tools\ntools.far.echo()")
        assert "DELETE" not in server.methods()


@test(private=True)
def a_list_that_comes_late_is_waited_for(ctx):
    for era in "legacy", "modern":
        late = threading.Event()
        with RemoteServer(era, late=late) as server, service(ctx, server) as (s, c):
            id = c.start_script("import tools\nprint(tools.far.echo(value='a'))")
            wait_seen(server, "tools/list")
            # Meanwhile nothing else waits.
            equal(printed(c, "print(1)"), "1\n")
            late.set()
            equal(c.outcome(id).stdout, "{'value': 'a'}\n")


main(__doc__, modules=FEW_MODULES)
