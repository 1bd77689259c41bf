#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The client library in sdk/python, over each way to the service."""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

from harness import TOP, equal, main, test
from http_suite import http_private, named, wait_busy
from auth_suite import with_tokens

sys.path.insert(0, os.path.join(TOP, "sdk", "python"))
import mcp_python	# noqa: E402
from mcp_python import AsyncClient, Client, Failed, ServiceError	# noqa: E402


def http_unix(path):
    return "http+unix://" + urllib.parse.quote(path, "")


def exercise(client):
    """What the README shows, and the errors."""
    result = client.run("import sys\nprint(sys.argv[1:], input())\n{'a': [1]}", stdin="hi\n",
                        args=["x"])
    equal((result.stdout, result.value, result.ok), ("['x'] hi\n", {"a": [1]}, True))
    result = client.run("1 / 0")
    equal((result.status, result.error["type"]), ("error", "ZeroDivisionError"))
    try:
        result.check()
        raise AssertionError("check() did not raise")
    except Failed as e:
        assert "1 / 0" in str(e) or "ZeroDivisionError" in str(e), e
    equal(client.run("while True: pass", timeout=0.5).status, "timeout")
    result = client.run("open('out.bin', 'wb').write(open('d/in.txt', 'rb').read() * 2)",
                        files={"d/in.txt": "\u00e9", "b": b"\0\xff"})
    out, = [f for f in result.files if f.path == "out.bin"]
    equal(out.read(), "\u00e9\u00e9".encode())
    equal(client.run("open('again', 'rb').read()", files={"again": out}).value, "\u00e9\u00e9")
    heard = []
    client.run("print('now', flush=True)", on_output=lambda *piece: heard.append(piece))
    equal(heard, [("stdout", "now\n")])

    def stock(article):
        if article < 0:
            raise ValueError("no such article")
        return {"pieces": article * 2}
    result = client.run("import tools\nprint(tools.client.stock(article=7)['pieces'])\n"
                        "try:\n    tools.client.stock(article=-1)\n"
                        "except tools.ToolError as e:\n    print(e)", tools={"stock": stock})
    equal(result.stdout.split("\n")[0], "14")
    assert "no such article" in result.stdout, result.stdout
    with client.session() as session:
        session.run("x = 20")
        equal(session.run("x + 1").value, 21)
        equal(session.run("nix").error["type"], "NameError")
        handle = session.handle
    equal(client.call("run_repl", {"session": handle, "code": "1"}).status, "no_session")
    try:
        client.call("no_such_tool", {})
        raise AssertionError("an unknown tool was answered")
    except ServiceError as e:
        assert "unknown tool" in str(e), e


@test(private=True)
def every_way_to_the_service_works(ctx):
    with http_private(ctx, unix=True) as (service, path):
        for place in (service.socket, http_unix(path)):
            with Client(place) as client:
                exercise(client)


@test(private=True)
def a_token_says_who_it_is(ctx):
    with with_tokens(ctx) as (files, _, place):
        url, token = "http://%s:%d/mcp" % place, files.add("ada")
        with Client(url, token=token) as client:
            equal(client.call("check_environment", {}).raw["tenant"], "token:ada")
        for wrong in (None, "wrong"):
            with Client(url, token=wrong) as client:
                try:
                    client.run("1")
                    raise AssertionError("%r was let in" % wrong)
                except ServiceError as e:
                    assert "token" in str(e), e


@test(private=True)
def a_private_service_ends_with_its_client(ctx):
    program = os.path.join(ctx.options.build, "mcp-pythond")
    with Client("private", program=program) as client:
        equal(client.run("print(1)").stdout, "1\n")
        process = client._wire.process
    equal(process.returncode, 0)
    try:
        Client("/nix/mcp.sock")
        raise AssertionError("a service at /nix")
    except ServiceError as e:
        assert "/nix/mcp.sock" in str(e), e


@test(private=True)
def asyncio_calls_overlap_and_stop(ctx):
    async def run(service):
        async with AsyncClient(service.socket) as client:
            results = await asyncio.gather(*(client.run("print(%d)" % i) for i in range(8)))
            equal([r.stdout for r in results], ["%d\n" % i for i in range(8)])
            task = asyncio.create_task(client.run(named(300), timeout=400))
            await asyncio.to_thread(wait_busy, service, 1)
            task.cancel()
            await asyncio.to_thread(wait_busy, service, 0)
            async with await client.session() as session:
                await session.run("x = 2")
                equal((await session.run("x * 2")).value, 4)
    with http_private(ctx, unix=True) as (service, _):
        asyncio.run(run(service))


@test(private=True)
def a_close_stops_a_call(ctx):
    with http_private(ctx, unix=True) as (service, path):
        for place in (service.socket, http_unix(path)):
            client, ended = Client(place), []

            def call(client=client, ended=ended):
                try:
                    client.run(named(300), timeout=400)
                except ServiceError as e:
                    ended.append(e)
            thread = threading.Thread(target=call)
            thread.start()
            wait_busy(service, 1)
            client.close()
            thread.join(60)
            equal(len(ended), 1, place)
            wait_busy(service, 0)


@test(private=True)
def the_readme_runs(ctx):
    with open(os.path.join(TOP, "sdk", "python", "README.md"), encoding="utf-8") as f:
        code = re.search(r"```python\n(.*?)```", f.read(), re.S)[1]
    with http_private(ctx, unix=True) as (service, _), tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([sys.executable, "-c", code], cwd=directory, capture_output=True,
                              text=True, timeout=120, check=False, env={
            **os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(mcp_python.__file__)),
            "PYTHONDONTWRITEBYTECODE": "1", "MCP_PYTHON_SOCKET": service.socket})
        equal(done.stdout, "42\n ok\n2\n21\n12\n\n", done.stderr)


if __name__ == "__main__":
    main(__doc__)
