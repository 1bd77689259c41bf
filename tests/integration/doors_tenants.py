#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two tenants through each door, with ids and tokens of each other: who names what is another's gets the answer,
head and body, for what never was, and nothing of the other is changed.

The paths come from the gateway's own tables. A path that has an id in it is tried by itself; one that takes ids
elsewhere needs its bodies in BODIES, and any other a place in WITHOUT: a new path without either fails."""

import http.client
import json
import os
import re
import subprocess

import fuse
from doors_suite import team_gateway
from harness import TOP, equal, main, test

# Prints (dialect, verb, path) of each path of the gateway.
LIST = """
import json, server, main
app = server.application(server.Gateway(None), main.DIALECTS, True)
print(json.dumps(sorted({(app["dialect_of"].get(r.resource.canonical, "none"), r.method, r.resource.canonical)
                         for r in app.router.routes()})))
"""
SETTINGS = "[workspace]\nvolume = yes\nvolumes = 4\ndirectory = %s\n"
# What a variable of a path names.
NAMED = {("jupyter", "id"): "kernel", ("e2b", "id"): "sandbox", ("e2b", "context"): "context",
         ("librechat", "session"): "session", ("librechat", "file"): "file"}
REST = {"/volumes/{rest}": "x", "/templates/{rest}": "x", "/secrets/{rest}": "x", "/sandboxes/{id}/{rest}": "logs"}
GIVEN = {"id": "{file}", "storage_session_id": "{session}", "session_id": "{session}", "name": "n"}
PROCESS = [{"process": {"pid": "{pid}"}}, {"process": {"tag": "{tag}"}}]
# Ids in bodies and in queries ("?").
BODIES = {
    "/v1/exec": [{"lang": "py", "code": "print(open('/mnt/data/n').read())", "files": [GIVEN]},
                 {"lang": "py", "code": "print(globals().get('x'))", "runtime_session_hint": "{hint}"},
                 {"lang": "py", "code": "1", "session_id": "{session}"}],
    "/v1/exec/programmatic": [
        {"continuation_token": "{continuation}", "tool_results": [{"call_id": "call_001", "result": 2, "is_error": False}]},
        {"code": "1", "tools": [{"name": "t", "description": "", "parameters": {"type": "object"}}], "files": [GIVEN]}],
    "/v1/exec/programmatic/cancel": [{"continuation_token": "{continuation}"}, {"request_id": "{request}"}],
    "/execute": [{"code": "1", "context_id": "{context}"}, {"code": "1"}],
    "/contexts": [{}],
    "/files": ["?path=f"],
    "/process.Process/List": [{}],
    "/process.Process/Start": [{"process": {"cmd": "/bin/true"}}],
    "/process.Process/SendInput": [{**p, "input": {"stdin": "YQ=="}} for p in PROCESS],
    "/process.Process/SendSignal": [{**p, "signal": "SIGNAL_SIGKILL"} for p in PROCESS],
    "/process.Process/CloseStdin": PROCESS, "/process.Process/Update": PROCESS, "/process.Process/Connect": PROCESS,
    **{"/filesystem.Filesystem/" + name: [{"path": "f"}] for name in ("ListDir", "Stat", "MakeDir", "Remove",
                                                                     "CreateWatcher", "WatchDir")},
    "/filesystem.Filesystem/Move": [{"source": "f", "destination": "g"}],
}
# The data plane of a sandbox, whose id and token are headers.
INSIDE = re.compile(r"/(execute|contexts|files|health|process\.|filesystem\.)")
# They take no id: who asks gets his own, or what is the same for all.
WITHOUT = {
    "/healthz", "/readyz", "/metrics", "/api", "/api/status", "/api/kernelspecs", "/api/kernels", "/run_code",
    "/run_code/batch", "/v1/ping", "/v1/health", "/v1/upload", "/v1/upload/batch", "/sandboxes", "/v2/sandboxes",
    "/snapshots", "/volumes", "/volumes/{rest}", "/templates", "/{version}/templates", "/templates/{rest}", "/secrets",
    "/secrets/{rest}"}
# Of one run, and of no id.
OWN = re.compile(r'"(session_id|runtime_session_id|runtime_status|wall_time)": ?("[^"]*"|[0-9.]+)')


def paths():
    done = subprocess.run(["/usr/bin/python3", "-IBc", "import sys; sys.path.insert(0, %r)\n%s" % (
        os.path.join(TOP, "gateway"), LIST)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def sent(gateway, verb, path, body, headers):
    """(status, headers, body) of an answer, without its time."""
    connection = http.client.HTTPConnection(gateway.url.partition("://")[2], timeout=240)
    try:
        connection.request(verb, path, body, dict(headers))
        answer = connection.getresponse()
        head = sorted((k, v) for k, v in answer.getheaders() if k != "Date")
        return answer.status, head, b"" if answer.status == 101 else answer.read()
    finally:
        connection.close()


def filled(template, ids):
    """The template with ids in it; a number stays a number."""
    text = template if isinstance(template, str) else json.dumps(template)
    text = text.replace('"{pid}"', ids["pid"])
    for name, value in ids.items():
        text = text.replace("{%s}" % name, value)
    return text


def without(answer, ids, never):
    """An answer in which ids are those that never were, and what each run has of its own is masked."""
    text = json.dumps([answer[0], answer[1], answer[2].decode("latin-1")]) if not isinstance(answer, str) else answer
    for name, value in ids.items():
        if len(value) > 6:
            text = text.replace(value, never[name])
    text = text.replace('\\"', '"')
    return re.sub(r'"Content-Length", "\d+"', "", OWN.sub("", text)) if OWN.search(text) else text


class Has:
    """What a tenant has: an id of each kind."""

    def __init__(self, gateway, name, token):
        self.gateway, self.token, self.secret = gateway, token, "secret of " + name
        self.key = [("Authorization", "Bearer " + token), ("X-API-Key", token)]
        self.ids = {"kernel": self.ask("POST", "/api/kernels", {})["id"]}
        box = self.ask("POST", "/v2/sandboxes", {"templateID": "base"})
        self.access = box["envdAccessToken"]
        self.ids["sandbox"] = box["sandboxID"]
        self.inside = [("E2b-Sandbox-Id", box["sandboxID"]), ("X-Access-Token", self.access)]
        self.ids["context"] = self.ask("POST", "/contexts", {"cwd": "/home/user"}, self.inside)["id"]
        self.ask("POST", "/files?path=f", self.secret.encode(), [*self.inside, ("Content-Type", "application/octet-stream")])
        form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="n"\r\n\r\n%b\r\n--b--\r\n' % self.secret.encode()
        kept = self.ask("POST", "/v1/upload", form, [("Content-Type", "multipart/form-data; boundary=b")])
        self.ids.update(session=kept["storage_session_id"], file=kept["files"][0]["fileId"])
        waits = self.ask("POST", "/v1/exec/programmatic", {
            "code": "print(await add(a=1))", "tools": [{"name": "add", "description": "", "parameters": {"type": "object"}}]},
            [("X-LibreChat-Code-Request-ID", "request-of-" + token[:8])])
        self.ids.update(continuation=waits["continuation_token"], request="request-of-" + token[:8],
                        hint="hint-of-" + token[:8], tag="tag-of-" + token[:8])
        self.ask("POST", "/v1/exec", {"lang": "py", "code": "x = %r" % self.secret, "runtime_session_hint": self.ids["hint"]})
        self.start()

    def start(self):
        """A command that stays: its pid."""
        body = json.dumps({"process": {"cmd": "sleep", "args": ["600"]}, "tag": self.ids["tag"], "stdin": True}).encode()
        self.stream = http.client.HTTPConnection(self.gateway.url.partition("://")[2], timeout=240)
        self.stream.request("POST", "/process.Process/Start", b"\0" + len(body).to_bytes(4, "big") + body, {
            **dict(self.inside), "Content-Type": "application/connect+json"})
        answer = self.stream.getresponse()
        first = answer.read(int.from_bytes(answer.read(5)[1:], "big"))
        self.ids["pid"] = str(json.loads(first)["event"]["start"]["pid"])

    def ask(self, verb, path, body=None, headers=()):
        status, data = self.gateway.ask(verb, path, body, self.token, [*self.key[1:], *headers])
        assert status in (200, 201), (verb, path, status, data)
        return data

    def still(self):
        """All of it is there."""
        self.ask("GET", "/api/kernels/" + self.ids["kernel"])
        self.ask("GET", "/sandboxes/" + self.ids["sandbox"])
        assert self.ids["context"] in repr(self.ask("GET", "/contexts", None, self.inside))
        equal(self.ask("GET", "/files?path=f", None, self.inside), self.secret.encode())
        assert self.ids["tag"] in repr(self.ask("POST", "/process.Process/List", {}, self.inside))
        equal(self.ask("GET", "/v1/download/%(session)s/%(file)s" % self.ids), self.secret.encode())
        hinted = {"lang": "py", "code": "print(x)", "runtime_session_hint": self.ids["hint"]}
        equal(self.ask("POST", "/v1/exec", hinted)["stdout"], self.secret + "\n")
        done = self.ask("POST", "/v1/exec/programmatic", {"continuation_token": self.ids["continuation"], "tool_results": [
            {"call_id": "call_001", "result": 2, "is_error": False}]})
        equal(done["stdout"], "2\n")


def rows():
    """(dialect, verb, path with its names, body or None, are its ids headers) of all that take an id."""
    found, forgotten = [], []
    for dialect, verb, path in paths():
        bodies = BODIES.get(path)
        names = re.findall(r"\{(\w+)\}", path)
        inside = dialect == "e2b" and bool(INSIDE.match(path))
        if path in WITHOUT and not bodies:
            continue
        if not bodies and not names and not inside:
            forgotten.append(path)
            continue
        place = path
        for name in names:
            if name == "rest":
                place = place.replace("{rest}", REST[path])
            elif (dialect, name) in NAMED:
                place = place.replace("{%s}" % name, "{%s}" % NAMED[dialect, name])
            else:
                forgotten.append(path)
        for verb in ("GET", "POST", "DELETE") if verb == "*" else (verb,):
            for body in bodies or [{} if verb == "POST" else None]:
                if isinstance(body, str):
                    found.append((dialect, verb, place + body, None, inside))
                else:
                    found.append((dialect, verb, place, body if verb == "POST" else None, inside))
    assert not forgotten, "paths that no test knows: %s" % sorted(set(forgotten))
    return found


UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
           ("Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFiY2RlZg==")]


def crossings(ada, bob, never):
    """(what, request with ids of ada, the same with ids that never were), as bob sends them."""
    mixed = dict(ada.ids, sandbox=bob.ids["sandbox"])
    for dialect, verb, path, body, inside in rows():
        what = "%s %s %.120r" % (verb, path, body)
        framed = path.startswith(("/process.Process/Start", "/process.Process/Connect", "/filesystem.Filesystem/WatchDir"))
        kind = [("Content-Type", "application/connect+json" if framed else "application/json")]

        def made(ids, headers):
            data = None if body is None else filled(body, ids).encode()
            if framed and data is not None:
                data = b"\0" + len(data).to_bytes(4, "big") + data
            return verb, filled(path, ids), data, [*headers, *kind]
        if not inside:
            for more in ([], UPGRADE) if path.endswith("/channels") else ([],):
                yield what, made(ada.ids, [*bob.key, *more]), made(never, [*bob.key, *more])
            continue
        # ada's sandbox with bob's token; bob's sandbox with ada's token; and ada's ids in bob's sandbox.
        token = bob.inside[1]
        yield (what + ", sandbox", made(ada.ids, [("E2b-Sandbox-Id", ada.ids["sandbox"]), token]),
               made(never, [("E2b-Sandbox-Id", never["sandbox"]), token]))
        yield (what + ", token", made(ada.ids, [bob.inside[0], ada.inside[1]]),
               made(never, [bob.inside[0], ("X-Access-Token", "n" * len(ada.access))]))
        if filled(path, ada.ids) != path or (body and filled(body, ada.ids) != json.dumps(body)):
            yield what + ", inside", made(mixed, bob.inside), made(dict(never, sandbox=bob.ids["sandbox"]), bob.inside)


@test(private=True)
def what_is_anothers_is_as_if_it_never_was(ctx):
    with fuse.place() as store, team_gateway(ctx, more=SETTINGS % store, wrap=fuse.wrap(store)) as (_, gateway, tokens):
        ada, bob = (Has(gateway, name, tokens[name]) for name in ("ada", "bob"))
        while ada.ids["pid"] == bob.ids["pid"]:	# each sandbox counts its own
            first = ada.stream
            ada.start()
            first.close()
        never = {name: "".join("9" if c.isdigit() else "b" if c.isalpha() else c for c in value)
                 for name, value in ada.ids.items()}
        wrong, seen = [], 0
        for what, crossed, none in crossings(ada, bob, never):
            ctx.options.verbose and print("    " + what, flush=True)
            answers = [sent(gateway, *crossed), sent(gateway, *none)]
            seen += 1
            if without(answers[0], ada.ids, never) != without(answers[1], ada.ids, never):
                wrong.append("%s:\n  %r\n  %r" % (what, *answers))
            if ada.secret.encode() in answers[0][2]:
                wrong.append("%s has what is ada's: %r" % (what, answers[0]))
        assert not wrong, "%d of %d:\n%s" % (len(wrong), seen, "\n".join(wrong))
        ada.still()
        ada.stream.close()
        bob.stream.close()
    return "%d pairs" % seen


if __name__ == "__main__":
    main(__doc__)
