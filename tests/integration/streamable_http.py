#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Streamable HTTP: both eras over TCP and unix sockets, every rung of the ladder of checks,
sessions, and streams of events."""

import contextlib
import os
import re
import select

import http_client
from harness import FEW_MODULES, SOMEBODY, equal, main, test
from http_client import BOTH, Connection, Session, call, encode, modern, modern_headers
from http_suite import CONFIG, JSON, OVER_HTTP, TALK, expect, healthy, http_private, \
    open_to, place, post, seconds
from mcpclient import LEGACY, MODERN


# ---- what works ----

def whole_round(where, revision, timeout):
    with Session(where, revision, timeout=timeout) as client:
        if client.modern:
            found = client.ask("server/discover")
            equal(found["supportedVersions"], [MODERN])
        else:
            equal(client.hello["protocolVersion"], revision)
            assert re.fullmatch(r"[\x21-\x7e]{20,}", client.id), client.id
            equal(client.ask("ping"), {}, "ping")
        tools = client.ask("tools/list")["tools"]
        assert "run_script" in [tool["name"] for tool in tools], tools
        assert "42" in client.stdout("print(6*7)")
        result = client.run("1/0")
        assert result["isError"] and "ZeroDivisionError" in result["content"][0]["text"], result
        message = client.message("tools/call", {"name": "none"})
        response = client.post(message)
        equal((response.status, response.code), (200, -32602), "an unknown tool")
        client.checker.error(response.message)
        message = client.message("none/such")
        response = client.post(message)
        equal((response.status, response.code), (404 if client.modern else 200, -32601))
        client.checker.error(response.message)
        assert client.connection, "the connection was not kept"
        if not client.modern:
            equal(client.end().status, 204, "DELETE")
            response = client.post(client.message("tools/list"))
            equal(response.status, 404, "after DELETE")
            equal(client.end().status, 404, "DELETE again")
        return "%d values fit the schema" % client.checker.checked


for one in OVER_HTTP:
    def tcp(ctx, revision=one):
        return whole_round(place(ctx), revision, seconds(ctx, 60))
    test(tcp, name="tcp_" + one)


@test(private=True)
def unix_socket(ctx):
    with http_private(ctx, unix=True) as (_, path):
        for revision in OVER_HTTP:
            whole_round(path, revision, seconds(ctx, 60))
        if os.getuid() == 0:
            assert os.stat(path).st_mode & 0o777 == 0o666


@test
def sessions_of_every_revision_side_by_side(ctx):
    clients = [Session(place(ctx), revision, timeout=seconds(ctx, 60)) for revision in OVER_HTTP]
    ids = {client.id for client in clients if client.id}
    equal(len(ids), len(LEGACY), "different ids")
    for i, client in enumerate(clients * 2):
        assert str(i) in client.stdout("print(%d)" % i)
    for client in clients:
        client.__exit__()


@test
def batches(ctx):
    with Session(place(ctx), "2025-03-26", timeout=seconds(ctx, 60)) as client:
        batch = [client.message("ping"), {"jsonrpc": "2.0", "method": "notifications/x"},
                 client.message("tools/call", call("print('in a batch')")),
                 client.message("none/such")]
        client.send(client.connection, batch)
        response = client.connection.read()
        equal(response.status, 200)
        answers = {answer["id"]: answer for answer in http_client.parse_line(response.body)}
        equal(set(answers), {m["id"] for m in batch if "id" in m})
        equal(answers[batch[0]["id"]]["result"], {})
        equal(answers[batch[3]["id"]]["error"]["code"], -32601)
        assert "in a batch" in answers[batch[2]["id"]]["result"]["content"][0]["text"]
        client.send(client.connection, [{"jsonrpc": "2.0", "method": "notifications/x"}])
        equal(client.connection.read().status, 202, "notifications alone")
    with Session(place(ctx), "2025-06-18", timeout=seconds(ctx, 60)) as client:
        client.send(client.connection, [client.message("ping")])
        expect(client.connection.read(), 400, -32600)


# ---- the ladder ----

def changed(message, **change):
    return {**message, **change}


def ladder():
    """(name, status, code, verb, path, headers, body); None: no answer in JSON-RPC."""
    listing = modern("tools/list")
    run = modern("tools/call", call("1"))
    good = modern_headers(listing)
    body = encode(listing)
    init = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    legacy_list = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    legacy = [JSON, ("Accept", BOTH)]

    def headers(message=listing, **change):
        return modern_headers(message, {name.replace("_", "-"): value
                                        for name, value in change.items()})

    def meta(**change):
        message = modern("tools/list")
        for name, value in change.items():
            key = "io.modelcontextprotocol/" + name
            message["params"]["_meta"][key] = value
            if value is None:
                del message["params"]["_meta"][key]
        return encode(message)

    rows = [
        # 1: path and verb
        ("other path", 404, -32600, "POST", "/", good, body),
        ("closed by a slash", 200, None, "POST", "/mcp/", good, body),
        ("server-sent events of 2024-11-05", 404, -32600, "GET", "/sse", good, b""),
        ("path below", 404, -32600, "POST", "/mcp/x", good, body),
        ("encoded path", 404, -32600, "POST", "/%6dcp", good, body),
        ("query", 200, None, "POST", "/mcp?a=b", good, body),
        ("GET", 405, -32600, "GET", "/mcp", [("Accept", "text/event-stream")], b""),
        ("HEAD", 405, None, "HEAD", "/mcp", [], b""),
        ("PUT", 405, -32600, "PUT", "/mcp", good, body),
        ("OPTIONS", 405, -32600, "OPTIONS", "/mcp", [], b""),
        ("PATCH", 405, -32600, "PATCH", "/mcp", good, body),
        ("TRACE", 405, -32600, "TRACE", "/mcp", [], b""),
        ("unknown verb", 405, -32600, "BREW", "/mcp", good, body),
        ("verb in another case", 405, -32600, "post", "/mcp", good, body),
        # 2: Host and Origin
        ("Host", 403, -32600, "POST", "/mcp", headers(Host="evil.example"), body),
        ("Host with our port", 403, -32600, "POST", "/mcp", headers(Host="evil.example:80"), body),
        ("Host localhost", 200, None, "POST", "/mcp", headers(Host="localhost:1"), body),
        ("Host of version 6", 200, None, "POST", "/mcp", headers(Host="[::1]:1"), body),
        ("Origin", 403, -32600, "POST", "/mcp", headers(Origin="http://evil.example"), body),
        ("Origin null", 403, -32600, "POST", "/mcp", headers(Origin="null"), body),
        ("Origin of loopback", 200, None, "POST", "/mcp", headers(Origin="http://localhost:3000"), body),
        ("Host before media type", 403, -32600, "POST", "/mcp",
         headers(Host="evil.example", Content_Type="text/plain"), b"x"),
        ("absolute URI", 200, None, "POST", "http://localhost/mcp", good, body),
        ("absolute URI elsewhere", 403, -32600, "POST", "http://evil.example/mcp", good, body),
        ("DELETE from elsewhere", 403, -32600, "DELETE", "/mcp", [("Origin", "http://evil.example")], b""),
        # 4: media type
        ("no type", 415, -32600, "POST", "/mcp", headers(Content_Type=None), body),
        ("text", 415, -32600, "POST", "/mcp", headers(Content_Type="text/plain"), body),
        ("parameters", 200, None, "POST", "/mcp", headers(Content_Type="application/json;charset=utf-8"), body),
        ("any Accept", 200, None, "POST", "/mcp", headers(Accept="text/html"), body),
        # 5, 6
        ("no JSON", 400, -32700, "POST", "/mcp", good, b"{"),
        ("no UTF-8", 400, -32700, "POST", "/mcp", good, b'"\xff"'),
        ("no body", 400, -32700, "POST", "/mcp", good, b""),
        ("number", 400, -32600, "POST", "/mcp", good, b"1"),
        ("id null", 400, -32600, "POST", "/mcp", good, encode(changed(listing, id=None))),
        ("id 1.5", 400, -32600, "POST", "/mcp", good, encode(changed(listing, id=1.5))),
        ("batch", 400, -32600, "POST", "/mcp", good, b"[" + body + b"]"),
        ("batch without a session", 400, -32600, "POST", "/mcp", legacy, encode([legacy_list])),
        ("answer", 400, -32600, "POST", "/mcp", good, b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        ("answer without a session", 400, -32600, "POST", "/mcp", legacy,
         b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        # 7
        ("header without a claim", 400, -32602, "POST", "/mcp", good, encode(legacy_list)),
        ("initialize with the header", 400, -32020, "POST", "/mcp", good, encode(init)),
        ("no session", 400, -32600, "POST", "/mcp", legacy, encode(legacy_list)),
        ("ping without a session", 400, -32600, "POST", "/mcp", legacy,
         encode(changed(legacy_list, method="ping"))),
        ("unknown session", 404, -32600, "POST", "/mcp",
         legacy + [("Mcp-Session-Id", "0" * 32)], encode(legacy_list)),
        ("strange session", 404, -32600, "POST", "/mcp",
         legacy + [("Mcp-Session-Id", "x" * 3000)], encode(legacy_list)),
        ("unknown legacy version", 400, -32600, "POST", "/mcp",
         legacy + [("MCP-Protocol-Version", "2025-01-01")], encode(legacy_list)),
        ("note without a session", 400, -32600, "POST", "/mcp", legacy,
         b'{"jsonrpc":"2.0","method":"notifications/initialized"}'),
        ("DELETE without a session", 400, -32600, "DELETE", "/mcp", [], b""),
        ("DELETE of an unknown session", 404, -32600, "DELETE", "/mcp", [("Mcp-Session-Id", "x")], b""),
        ("discover without a claim", 400, -32602, "POST", "/mcp", legacy,
         encode(changed(legacy_list, method="server/discover"))),
        # 8
        ("no capabilities", 400, -32602, "POST", "/mcp", good, meta(clientCapabilities=None)),
        ("capabilities are a list", 400, -32602, "POST", "/mcp", good, meta(clientCapabilities=[])),
        ("version is a number", 400, -32602, "POST", "/mcp", good, meta(protocolVersion=1)),
        # 9
        ("no version header", 400, -32020, "POST", "/mcp", headers(MCP_Protocol_Version=None), body),
        ("other version header", 400, -32020, "POST", "/mcp", headers(MCP_Protocol_Version="2025-11-25"), body),
        ("version twice", 400, -32020, "POST", "/mcp", good + [("mcp-protocol-version", MODERN)], body),
        # 10
        ("future version", 400, -32022, "POST", "/mcp", headers(MCP_Protocol_Version="2030-01-01"),
         meta(protocolVersion="2030-01-01")),
        ("legacy in the envelope", 400, -32022, "POST", "/mcp",
         headers(MCP_Protocol_Version="2025-11-25"), meta(protocolVersion="2025-11-25")),
        # 11
        ("no method header", 400, -32020, "POST", "/mcp", headers(Mcp_Method=None), body),
        ("other method header", 400, -32020, "POST", "/mcp", headers(Mcp_Method="tools/call"), body),
        ("method header in another case", 400, -32020, "POST", "/mcp", headers(Mcp_Method="TOOLS/LIST"), body),
        ("header name in another case", 200, None, "POST", "/mcp",
         headers(Mcp_Method=None) + [("MCP-METHOD", " \ttools/list\t ")], body),
        ("method twice", 400, -32020, "POST", "/mcp", good + [("Mcp-Method", "tools/list")], body),
        # 12
        ("no name header", 400, -32020, "POST", "/mcp", headers(run, Mcp_Name=None), encode(run)),
        ("other name header", 400, -32020, "POST", "/mcp", headers(run, Mcp_Name="x"), encode(run)),
        ("name in base64", 200, None, "POST", "/mcp",
         headers(run, Mcp_Name="=?base64?cnVuX3NjcmlwdA==?="), encode(run)),
        ("name in bad base64", 400, -32020, "POST", "/mcp",
         headers(run, Mcp_Name="=?base64?cnVuX3NjcmlwdA?="), encode(run)),
        ("name twice", 400, -32020, "POST", "/mcp", headers(run) + [("Mcp-Name", "run_script")], encode(run)),
        ("name header for nothing", 200, None, "POST", "/mcp", headers(Mcp_Name="x"), body),
        ("session header for nothing", 200, None, "POST", "/mcp", headers(Mcp_Session_Id="x"), body),
        # 13, 14
        ("unknown method", 404, -32601, "POST", "/mcp", modern_headers(modern("x/y")), encode(modern("x/y"))),
        ("unknown tool", 200, -32602, "POST", "/mcp", modern_headers(modern("tools/call", {"name": "x"})),
         encode(modern("tools/call", {"name": "x"}))),
        # notifications
        ("cancelled, header alone", 202, None, "POST", "/mcp", [JSON, ("MCP-Protocol-Version", MODERN)],
         b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'),
    ]
    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe",
                   "resources/unsubscribe", "tasks/list", "tasks/result"):
        message = modern(method)
        rows.append(("modern " + method, 404, -32601, "POST", "/mcp",
                     modern_headers(message), encode(message)))
    return rows


def climb(row, response):
    name, status, code = row[:3]
    try:
        if row[3] == "HEAD":
            equal(response.status, status)
        else:
            expect(response, status, code)
        if response.status == 405:
            equal(response.header("Allow"), "POST, DELETE")
        if response.status == 202:
            equal(response.body, b"")
        if code == -32022:
            data = response.message["error"]["data"]
            equal(data["supported"], [MODERN])
            assert isinstance(data["requested"], str), data
        equal(response.header("Mcp-Session-Id"), None, "a session id")
    except AssertionError as e:
        raise AssertionError("%s: %s" % (name, e)) from None


@test
def every_rung_of_the_ladder(ctx):
    rows = ladder()
    for row in rows:
        with open_to(ctx) as connection:
            climb(row, connection.ask(row[3], row[4], row[5], row[6]))
    return "%d rungs" % len(rows)


@test
def the_ladder_on_one_connection(ctx):
    """A refusal leaves the connection usable, and nothing of a request in it."""
    connection = open_to(ctx)
    opened = 1
    for row in ladder():
        response = connection.ask(row[3], row[4], row[5], row[6])
        climb(row, response)
        if response.header("Connection") == "close" or row[4].startswith("http:"):
            assert connection.at_end(), row[0]
            connection.close()
            connection, opened = open_to(ctx), opened + 1
    connection.close()
    assert opened < 12, "%d connections" % opened


@test
def a_refusal_echoes_the_id(ctx):
    with open_to(ctx) as connection:
        for id in (1, 0, -7, "a", "", "é"):
            message = modern("tools/list", id=id)
            post(connection, message, {"Mcp-Method": None})
            response = expect(connection.read(), 400, -32020)
            equal(response.message["id"], id)


@test
def a_session_keeps_to_its_rules(ctx):
    with Session(place(ctx), "2025-11-25", timeout=seconds(ctx, 60)) as client:
        message = client.message("tools/list")

        def ask(**change):
            return client.post(message, {k.replace("_", "-"): v for k, v in change.items()})
        equal(ask(MCP_Protocol_Version=None).status, 200, "without the version")
        expect(ask(MCP_Protocol_Version="2025-01-01"), 400)
        expect(ask(MCP_Protocol_Version="x"), 400)
        expect(ask(MCP_Protocol_Version=MODERN), 400, -32602)
        expect(ask(Mcp_Session_Id=None), 400)
        expect(ask(Mcp_Session_Id=client.id[:-1]), 404)
        expect(ask(Mcp_Session_Id=client.id.upper() if client.id.islower() else client.id.lower()), 404)
        equal(ask().status, 200)
        init = client.message("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                             "clientInfo": {"name": "x", "version": "1"}})
        assert "error" in client.post(init).message, "initialize twice"
        response = client.post({"jsonrpc": "2.0", "id": 99, "result": {}})
        equal((response.status, response.body), (202, b""), "an answer that nobody waits for")


@test
def initialize_that_fails_opens_no_session(ctx):
    with open_to(ctx) as connection:
        response = connection.ask(headers=[JSON], body=encode(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}))
        assert "error" in response.message and not response.header("Mcp-Session-Id"), response
        response = connection.ask(headers=[JSON], body=encode(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": MODERN, "capabilities": {},
                "clientInfo": {"name": "x", "version": "1"}}}))
        equal(response.message["result"]["protocolVersion"], LEGACY[-1], "asked for the future")


@test(private=True, root=True)
def a_session_is_bound_to_its_user(ctx):
    with http_private(ctx, unix=True) as (_, path):
        with Session(path, timeout=seconds(ctx, 60)) as owner:
            with Session(path, uid=SOMEBODY, timeout=seconds(ctx, 60)) as other:
                mine, theirs = owner.id, other.id
                other.id = mine
                expect(other.post(other.message("tools/list")), 404)
                equal(other.end().status, 404, "DELETE of another's session")
                other.id = theirs
                assert other.ask("tools/list")["tools"]
            assert owner.ask("tools/list")["tools"]


@test(private=True)
def sessions_expire_and_are_bounded(ctx):
    with http_private(ctx, "session_idle_seconds = 4\nsessions_max = 3\nsessions_per_tenant = 2\n") \
            as (service, where):
        clients = [Session(where, timeout=seconds(ctx, 60)) for _ in range(2)]
        with Connection(where, seconds(ctx, 60)) as connection:
            init = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "x", "version": "1"}}}
            response = connection.ask(headers=[JSON], body=encode(init))
            expect(response, 503)
            assert response.header("Retry-After"), response
            # a call keeps its session, however long
            assert "done" in clients[0].stdout("import time\ntime.sleep(5.5)\nprint('done')")
            service.wait_logged("why=idle", times=2)
            healthy(where)
            expect(clients[0].post(clients[0].message("tools/list")), 404)
            expect(clients[1].post(clients[1].message("tools/list")), 404)
            equal(connection.ask(headers=[JSON], body=encode(init)).status, 200)
        for client in clients:
            client.__exit__()


# ---- streams of events ----



@test
def progress_makes_a_stream(ctx):
    for revision in OVER_HTTP:
        with Session(place(ctx), revision, timeout=seconds(ctx, 60)) as client:
            for token in (0, "tok"):
                message = client.message("tools/call", call(TALK, token=token, stream=True))
                response = client.post(message)
                assert response.streams and response.status == 200, response
                equal(response.header("Cache-Control"), "no-cache")
                equal(response.header("X-Accel-Buffering"), "no")
                last = client.take(message, response)
                assert "3" in last["result"]["content"][0]["text"]
                values = [note["progress"] for note in client.notes]
                assert values and values == sorted(set(values)), values
                assert all(note["progressToken"] == token for note in client.notes)
                client.notes.clear()
            assert client.ask("tools/list")["tools"] and client.connection, "keep-alive"


@test
def events_come_as_they_happen(ctx):
    with open_to(ctx) as connection:
        script = "import sys\nprint('first', flush=True)\nimport time\ntime.sleep(300)"
        post(connection, modern("tools/call", call(script, token=1, stream=True,
                                                   timeout_seconds=400)))
        response = connection.read_head()
        assert response.streams, response
        for event in connection.events():
            if "first" in str(event):
                break		# and not after 300 seconds


@test
def no_stream_for_those_who_take_none(ctx):
    with open_to(ctx) as connection:
        message = modern("tools/call", call(TALK, token=1, stream=True))
        post(connection, message, {"Accept": "application/json"})
        response = connection.read()
        equal((response.status, response.header("Content-Type")), (200, "application/json"))
        equal(response.message["result"]["structuredContent"]["stdout"], "0\n1\n2\n3\n")


@test
def an_answer_without_news_is_json(ctx):
    with open_to(ctx) as connection:
        post(connection, modern("tools/call", call("print(1)")))
        response = connection.read()
        equal(response.header("Content-Type"), "application/json")
        equal(response.header("Transfer-Encoding"), None)


@test
def calls_of_two_clients_with_one_id(ctx):
    connections = [open_to(ctx) for _ in range(8)]
    for i, connection in enumerate(connections):
        post(connection, modern("tools/call", call("print(%d)" % i), id=1))
    for i, connection in enumerate(connections):
        equal(connection.read().message["result"]["structuredContent"]["stdout"], "%d\n" % i)
        connection.close()


@test(private=True)
def discover_is_answered_however_much_runs(ctx):
    """A status of 4xx would make clients take us for a server of the other era. Calls that find no
    room say so themselves, and what runs nothing needs none."""
    hold = call("print('held', flush=True)\nimport threading; threading.Event().wait()",
                token=1, stream=True, timeout_seconds=300)
    with http_private(ctx, "[pool]\ntenant_running_max = 1\ntenant_queue_max = 1\n") \
            as (_, where), contextlib.ExitStack() as stack:
        holding, one, other, asking = [
            stack.enter_context(Connection(where, seconds(ctx, 60))) for _ in range(4)]
        post(holding, modern("tools/call", hold))
        assert holding.read_head().streams
        next(event for event in holding.events() if "held" in str(event))
        # One of two waits for its turn.
        for connection in (one, other):
            post(connection, modern("tools/call", call("1")))
        refused, _, _ = select.select([one.sock, other.sock], [], [], seconds(ctx, 60))
        equal(len(refused), 1)
        response = expect((one if one.sock in refused else other).read(), 200)
        result = response.message["result"]
        equal((result["structuredContent"]["status"], result["isError"]), ("overloaded", True))
        for method in ("server/discover", "tools/list"):
            post(asking, modern(method))
            expect(asking.read(), 200)


@test
def requests_in_one_session_at_once(ctx):
    with Session(place(ctx), timeout=seconds(ctx, 60)) as client:
        connections = [client.fresh() for _ in range(8)]
        messages = [client.message("tools/call", call("print(%d)" % i)) for i in range(8)]
        for connection, message in zip(connections, messages):
            client.send(connection, message)
        for i, (connection, message) in enumerate(zip(connections, messages)):
            result = client.take(message, connection.read())["result"]
            equal(result["structuredContent"]["stdout"], "%d\n" % i)
            connection.close()


@test
def a_session_ends_while_it_is_used(ctx):
    """DELETE meets a request that is just being answered, or whose client has just gone."""
    for i in range(100):
        with Session(place(ctx), timeout=seconds(ctx, 60)) as client:
            message = client.message("ping") if i % 2 else \
                client.message("tools/call", call("import time; time.sleep(5)"))
            with client.fresh() as asking, client.fresh() as ending:
                client.send(asking, message)
                if not i % 2:
                    asking.close()
                response = ending.ask("DELETE", headers=client.headers({}))
                assert response.status in (200, 204), response
                if i % 2:
                    assert asking.read().status in (200, 404)
                equal(client.post(client.message("ping")).status, 404, "afterwards")


if __name__ == "__main__":
    main(__doc__, CONFIG, modules=FEW_MODULES)
