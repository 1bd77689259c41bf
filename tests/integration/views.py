#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Views: which clients are told of the page that shows answers, and what the page is made of. A host in a
browser shows it in tests/conformance/views.py."""

import json
import re

from harness import Skip, equal, main, test
from mcpclient import LEGACY, MODERN, Client, RpcError

EXTENSION = "io.modelcontextprotocol/ui"
TYPE = "text/html;profile=mcp-app"
VIEWS = {EXTENSION: {"mimeTypes": ["text/html", TYPE]}}
WITH_VIEW = ["job", "run_repl", "run_script"]
# Of clients that do not show the page: nothing, another extension, another type, and what is no list.
OTHERS = ({}, {"extensions": {}}, {"extensions": {"io.modelcontextprotocol/tasks": {}}},
          {"extensions": {EXTENSION: {}}}, {"extensions": {EXTENSION: {"mimeTypes": ["text/html"]}}},
          {"extensions": {EXTENSION: {"mimeTypes": TYPE}}}, {"extensions": {EXTENSION: {"mimeTypes": [1, None]}}},
          {"extensions": {EXTENSION: TYPE}}, {"extensions": [EXTENSION]})


def asked(client, method, params=None):
    """The answer to a request of a raw client."""
    client.send({"jsonrpc": "2.0", "id": 9, "method": method, **({"params": params} if params else {})})
    while True:
        message = client.recv()
        if message.get("id") == 9:
            return message["result"]


def tools_for(ctx, capabilities, revision, path=None):
    """The list of tools for a client of its own with these capabilities."""
    with Client.connect(path or ctx.socket, None, timeout=ctx.seconds(60)) as client:
        if revision != MODERN:
            client.greet(revision, **capabilities)
            return asked(client, "tools/list")["tools"]
        meta = {"io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
                "io.modelcontextprotocol/clientCapabilities": capabilities}
        return asked(client, "tools/list", {"_meta": meta})["tools"]


def page_of(ctx):
    """The address of the page, and its only content."""
    tool = next(t for t in tools_for(ctx, {"extensions": VIEWS}, LEGACY[-1]) if "_meta" in t)
    uri = tool["_meta"]["ui"]["resourceUri"]
    with ctx.client() as client:
        contents = client.ask("resources/read", {"uri": uri})["contents"]
    equal(len(contents), 1)
    return uri, contents[0]


def refused(client, uri):
    try:
        raise AssertionError("%s is read: %.200r" % (uri, client.ask("resources/read", {"uri": uri})))
    except RpcError as e:
        assert e.code in (-32002, -32602), e


@test
def who_shows_views_gets_their_address(ctx):
    for revision in (*LEGACY[-2:], MODERN):
        tools = {t["name"]: t for t in tools_for(ctx, {"extensions": VIEWS}, revision)}
        equal(sorted(name for name, t in tools.items() if "_meta" in t), WITH_VIEW, revision)
        metas = [tools[name]["_meta"] for name in WITH_VIEW]
        uri = metas[0]["ui"]["resourceUri"]
        assert re.fullmatch(r"ui://mcp-pythond/[0-9.]+\S*/result\.html", uri), uri
        for meta in metas:
            equal(meta, {"ui": {"resourceUri": uri}, "ui/resourceUri": uri}, revision)


@test
def for_others_nothing_changes(ctx):
    """Their lists are the same to the byte, and have no word of it."""
    for revision in (LEGACY[-1], MODERN):
        lists = [json.dumps(tools_for(ctx, one, revision)) for one in OTHERS]
        for one, text in zip(OTHERS, lists):
            equal(text, lists[0], "%s, %s" % (revision, one))
            assert "ui://" not in text and '"_meta"' not in text, text[:500]
        with_views = tools_for(ctx, {"extensions": VIEWS}, revision)
        equal(json.dumps([{k: v for k, v in t.items() if k != "_meta"} for t in with_views]), lists[0], revision)


@test
def an_answer_is_the_same_with_views(ctx):
    """What a model reads of a call does not depend on the view."""
    said = []
    for capabilities in ({}, {"extensions": VIEWS}):
        with Client.connect(ctx.socket, None, timeout=ctx.seconds(60)) as client:
            client.greet(LEGACY[-1], **capabilities)
            result = asked(client, "tools/call", {"name": "run_script", "arguments": {"script": "print('a' * 50000)\n6 * 7"}})
            text = result["content"][0]["text"]
            said.append((re.sub(r"\d+ ms|x-[a-z0-9]+", "", text), sorted(result), sorted(result["structuredContent"])))
    equal(said[1], said[0])


@test
def the_page_is_whole(ctx):
    """One document of the type of views, with nothing that it would have to fetch."""
    uri, content = page_of(ctx)
    equal({k: v for k, v in content.items() if k != "text"},
          {"uri": uri, "mimeType": TYPE, "_meta": {"ui": {"prefersBorder": True}}})
    text = content["text"]
    assert text.startswith("<!doctype html>\n") and text.endswith("</html>\n"), text[:80]
    assert len(text.encode()) < 256 * 1024
    equal(re.findall(r"<(?:script|link|img|iframe|form|base)\b[^>]*", text), ["<script"])
    for word in (r"\bfetch\(", r"XMLHttpRequest", r"WebSocket", r"\beval\(", r"new Function", r"innerHTML", r"https?://",
                 r"@import", r"\burl\("):
        # The names of what a script's line may have are patterns of the page, and no use of it.
        at = re.search(word, text)
        assert not at, (word, text[at.start() - 60:at.end() + 60])
    for word in ("prefers-reduced-motion", "light-dark(", "aria-label", ":focus-visible"):
        assert word in text, word


@test
def the_page_is_not_in_the_list_of_files(ctx):
    with ctx.client() as client:
        assert "ui://" not in json.dumps(client.ask("resources/list"))
        for uri in ("ui://mcp-pythond/", "ui://mcp-pythond/0/result.html", page_of(ctx)[0] + "?bytes=0-3"):
            refused(client, uri)


@test(private=True)
def no_switches_views_off(ctx):
    uri = page_of(ctx)[0]
    with ctx.private("[mcp]\nviews = no\n") as service:
        for revision in (LEGACY[-1], MODERN):
            assert '"_meta"' not in json.dumps(tools_for(ctx, {"extensions": VIEWS}, revision, service.socket))
        with ctx.client(path=service.socket) as client:
            refused(client, uri)


@test
def a_session_gives_the_pages_of_a_table(ctx):
    """The program by which the page reads a table of a session, as it stands in the page: sorted, filtered, of
    any cell; and nothing of it stays."""
    text = page_of(ctx)[1]["text"]
    program = re.search(r"return `(def __view.*?)`;", text, re.DOTALL)[1]
    program = program.replace("${CELL}", "200").replace("${COLUMNS}", "40")

    def page(client, session, name, **wish):
        wish = {"from": 0, "rows": 25, "sort": None, "up": True, "filter": "", **wish}
        code = re.sub(r"\$\{name\}", name, program)
        at = code.index("${JSON.stringify")
        code = code[:at] + json.dumps(json.dumps(wish)) + code[code.index("}))", at) + 1:]
        answer = client.ask("tools/call", {"name": "run_repl", "arguments": {"session": session, "code": code}})
        own = answer["structuredContent"]
        equal(own["status"], "ok", answer["content"][0]["text"])
        return json.loads(own["stdout"].partition("view:")[2])

    with ctx.client() as client:
        begun = client.ask("tools/call", {"name": "run_repl", "arguments": {"code": (
            "import pandas as pd\n"
            "df = pd.DataFrame({'n': range(1000), 'half': [i / 2 if i % 3 else None for i in range(1000)],\n"
            "                   'mixed': [i if i % 2 else 'x%d' % i for i in range(1000)],\n"
            "                   'when': pd.date_range('2026-01-01', periods=1000),\n"
            "                   '<b>': ['<script>' + 'y' * 500] * 1000})\n"
            "wide = pd.DataFrame([list(range(100))])\n"
            "empty = pd.DataFrame()\nseries = df['n']\n_kept = 5\n")}})["structuredContent"]
        if begun["status"] != "ok" and "No module" in json.dumps(begun):
            raise Skip("pandas is not installed", missing=True)
        session = begun["session"]
        first = page(client, session, "df")
        equal((first["total"], first["found"], len(first["rows"])), (1000, 1000, 25))
        equal(first["rows"][1][:3], [1, 1, 0.5])
        equal(first["rows"][0][2], None)
        equal(len(first["rows"][0][5]), 200)
        equal(page(client, session, "df", **{"from": 990})["rows"][-1][0], 999)
        equal([row[0] for row in page(client, session, "df", sort=0, up=False, rows=3)["rows"]], [999, 998, 997])
        equal(page(client, session, "df", sort=1, up=True, rows=1)["rows"][0][0], 1)
        equal(len(page(client, session, "df", sort=2, rows=5)["rows"]), 5)
        found = page(client, session, "df", filter="X12")
        equal((found["found"], found["rows"][0][3]), (5 + 1, "x12"))
        equal(page(client, session, "wide")["more"], 60)
        equal(page(client, session, "empty")["found"], 0)
        equal(page(client, session, "series", filter='9"\\')["found"], 0)
        after = client.ask("tools/call", {"name": "run_repl", "arguments": {"session": session, "inspect": True}})
        names = {one["name"] for one in after["structuredContent"]["result"]["json"]}
        assert not any("view" in name for name in names) and {"df", "wide"} <= names, names


main(__doc__)
