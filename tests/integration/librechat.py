#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The gateway's dialect of LibreChat's Code API, spoken as its clients speak it."""

import asyncio
import re
import uuid

import aiohttp

from doors_suite import TOKEN, shared_ends, shared_gateway, team_gateway
from harness import equal, main, test
from http_suite import named, wait_busy

IDS = re.compile(r"[A-Za-z0-9_-]{21}")
ADD = {"name": "add", "description": "", "parameters": {"type": "object", "properties": {}}}


class Chat:
    """A client with one token."""

    def __init__(self, gateway, token=TOKEN):
        self.gateway, self.token = gateway, token

    def ask(self, verb, path, body=None, headers=()):
        return self.gateway.ask(verb, "/v1" + path, body, self.token, headers)

    def exec(self, code, lang="py", **more):
        status, answer = self.ask("POST", "/exec", {"lang": lang, "code": code, **more})
        equal(status, 200, "%r" % (answer,))
        assert IDS.fullmatch(answer["session_id"]), answer
        return answer

    def upload(self, name, data, path="/upload", copies=1):
        boundary = uuid.uuid4().hex
        form = b'--%b\r\nContent-Disposition: form-data; name="kind"\r\n\r\nuser\r\n' % boundary.encode()
        for _ in range(copies):
            form += (b'--%b\r\nContent-Disposition: form-data; name="file"; filename="%b"\r\n\r\n%b\r\n'
                     % (boundary.encode(), name.encode(), data))
        return self.ask("POST", path, form + b"--%b--\r\n" % boundary.encode(),
                        [("Content-Type", "multipart/form-data; boundary=" + boundary)])

    def tools(self, code, answers, **more):
        """Runs code with tools, each answered by answers[name](input); the last answer."""
        status, answer = self.ask("POST", "/exec/programmatic", {
            "code": code, "timeout": 15000, "tools": [{**ADD, "name": n} for n in answers], **more})
        while status == 200 and answer["status"] == "tool_call_required":
            results = []
            for call in answer["tool_calls"]:
                try:
                    results.append({"call_id": call["id"], "is_error": False,
                                    "result": answers[call["name"]](call["input"])})
                except ValueError as e:
                    results.append({"call_id": call["id"], "is_error": True, "result": None,
                                    "error_message": str(e)})
            status, answer = self.ask("POST", "/exec/programmatic", {
                "continuation_token": answer["continuation_token"], "tool_results": results})
        return status, answer


def reference(one, name=None):
    """A file of an answer as it goes into the next request."""
    return {"id": one["id"], "storage_session_id": one["storage_session_id"], "kind": "user",
            "resource_id": "r", "name": name or one["name"]}


@test(private=True)
def programs_are_answered(ctx):
    with shared_gateway(ctx) as (_, gateway):
        chat = Chat(gateway)
        answer = chat.exec("print(6 * 7)\n'not shown'", args=["a"])
        equal((answer["stdout"], answer["stderr"], answer["files"]), ("42\n", "", []))
        assert "ZeroDivisionError" in chat.exec("1 / 0")["stderr"]
        answer = chat.exec("echo $1; exit 3", "bash", args=["hi"])
        equal((answer["stdout"], answer["code"]), ("hi\n", 3))
        assert "Out of memory" in chat.exec("x = 'x' * (1 << 40)")["stderr"]
        answer = chat.exec("x = 41", runtime_session_hint="c")
        equal(answer["runtime_status"], "new")
        answer = chat.exec("print(x + 1)", runtime_session_hint="c")
        equal((answer["stdout"], answer["runtime_status"]), ("42\n", "reused"))
        assert "NameError" in chat.exec("x", runtime_session_hint="d")["stderr"]
        answer = chat.exec("echo $1", "bash", args=["hi"], runtime_session_hint="c")
        equal(answer["stdout"], "hi\n")
        for body, code in (({"lang": "rs", "code": "1"}, "unsupported_capability"),):
            status, answer = chat.ask("POST", "/exec", body)
            equal((status, answer["error"]), (400, code))
        for body, word in (({"lang": "py"}, "code"), ({"lang": 1, "code": ""}, "lang"),
                           ({"code": "1", "files": {}}, "files"), ({"code": "1", "files": [1]}, "files"),
                           ({"code": "1", "timeout": "x"}, "timeout")):
            status, answer = chat.ask("POST", "/exec", body)
            equal(status, 400, "%r" % body)
            assert word in answer["error"], answer
        status, answer = chat.ask("POST", "/exec", {"code": "1"},
                                  [("X-CodeAPI-Expected-Profile", "other")])
        equal((status, answer["message"]), (400, "execution_profile_mismatch"))


@test(private=True)
def files_go_in_and_out(ctx):
    with shared_gateway(ctx) as (_, gateway):
        chat = Chat(gateway)
        status, answer = chat.upload("d/in.csv", b"a,b\n1,2")
        equal((status, answer["message"]), (200, "success"))
        session, file_id = answer["storage_session_id"], answer["files"][0]["fileId"]
        assert IDS.fullmatch(session) and IDS.fullmatch(file_id), answer
        given = reference({"id": file_id, "storage_session_id": session, "name": "d/in.csv"})
        answer = chat.exec("print(open('/mnt/data/d/in.csv').read())", files=[given])
        equal(answer["stdout"], "a,b\n1,2\n")
        equal([(f["name"], f["inherited"], f["id"]) for f in answer["files"]],
              [("d/in.csv", True, file_id)])
        answer = chat.exec("open('/mnt/data/d/in.csv', 'a').write('!')\n"
                           "import matplotlib.pyplot as plt\nplt.plot([1])", files=[given])
        changed, figure = answer["files"]
        equal((changed["name"], figure["name"], changed.get("inherited")),
              ("d/in.csv", "figure-1.png", None))
        assert changed["id"] != file_id
        path = "/download/%s/%s?kind=user&id=u"
        equal(chat.ask("GET", path % (changed["storage_session_id"], changed["id"])),
              (200, b"a,b\n1,2!"))
        status, data = chat.ask("GET", path % (figure["storage_session_id"], figure["id"]))
        equal((status, data[:4]), (200, b"\x89PNG"))
        status, answer = chat.ask("GET", "/sessions/%s/objects/%s" % (session, file_id))
        assert status == 200 and answer["lastModified"].startswith("20"), answer
        equal([f["name"] for f in chat.ask("GET", "/files/%s?detail=full" % session)[1]], ["d/in.csv"])
        # LibreChat's own tool for files: cat, by bash.
        equal(chat.exec("cat 'd/in.csv'", "bash", files=[given])["stdout"], "a,b\n1,2")
        never = "A" * 21
        for wrong, status in ((never, 404), ("x", 400), ("..", 400)):
            equal(chat.ask("GET", "/download/%s/%s" % (session, wrong))[0], status, wrong)
        assert "gone.csv is no longer kept" in chat.exec("1", files=[
            {"id": never, "storage_session_id": never, "name": "gone.csv"}])["stderr"]
        for name in ("../x", "a/../../x", ".x", "a//b", "x" * 300):
            equal(chat.upload(name, b"x")[0], 400, name)
        status, answer = chat.upload("many.txt", b"x", "/upload/batch", copies=3)
        equal((status, answer["message"], answer["succeeded"]), (200, "success", 3))
        equal(chat.upload("../x", b"x", "/upload/batch")[0], 400)


@test(private=True)
def scripts_call_tools_by_continuation(ctx):
    def add(given):
        if given["a"] < 0:
            raise ValueError("negative")
        return given["a"] + given["b"]

    with shared_gateway(ctx) as (_, gateway):
        chat = Chat(gateway)
        status, answer = chat.tools(
            "import asyncio\nopen('n', 'a').write('x')\nr = await add(a=1, b=2)\n"
            "print(r, await asyncio.gather(add(a=r, b=1), get_text(q='s')))\n"
            "try:\n    await add(a=-1, b=0)\nexcept Exception as e:\n    print('failed:', e)\n"
            "print(open('n').read())",	# it runs once, and is not played again
            {"add": add, "get-text": lambda given: "5" + given["q"]})
        equal((status, answer["status"]), (200, "completed"), "%r" % answer)
        equal(answer["stdout"], "3 [4, '5s']\nfailed: client.add: negative\nx\n")
        equal([f["name"] for f in answer["files"]], ["n"])
        equal(chat.tools("1 / 0", {"add": add})[1]["status"], "completed")
        status, answer = chat.ask("POST", "/exec/programmatic", {"code": "1", "tools": []})
        equal(status, 400)
        equal(chat.ask("POST", "/exec/programmatic", {
            "continuation_token": "never", "tool_results": []})[0], 404)
        status, answer = chat.ask("POST", "/exec/programmatic", {
            "code": "await add(a=1, b=1)", "tools": [ADD]})
        token = answer["continuation_token"]
        for results in ([], [{"call_id": "call_009", "result": 1}],
                        [{"call_id": "call_001", "result": 1}] * 2, [5]):
            equal(chat.ask("POST", "/exec/programmatic", {
                "continuation_token": token, "tool_results": results})[0], 400, "%r" % results)
        equal(chat.ask("POST", "/exec/programmatic", {"continuation_token": token, "tool_results": [
            {"call_id": "call_001", "result": 2, "is_error": False}]})[1]["status"], "completed")


@test(private=True)
def cancelled_runs_stop(ctx):
    with shared_gateway(ctx) as (service, gateway):
        chat = Chat(gateway)

        async def run(path, body, headers):
            async with aiohttp.ClientSession() as session:
                task = asyncio.create_task(session.post(
                    gateway.url + "/v1" + path, json=body, headers={
                        "Authorization": "Bearer " + TOKEN, **headers}))
                await asyncio.to_thread(wait_busy, service, 1)
                if headers:
                    got = await asyncio.to_thread(chat.ask, "POST", "/exec/programmatic/cancel",
                                                  {"request_id": headers["X-LibreChat-Code-Request-ID"]})
                    equal(got[0], 200)
                    equal((await task).status, 404)
                else:
                    task.cancel()
                await asyncio.to_thread(wait_busy, service, 0)
        asyncio.run(run("/exec", {"code": named(300)}, {}))
        asyncio.run(run("/exec/programmatic", {"code": named(300), "tools": [ADD]},
                        {"X-LibreChat-Code-Request-ID": "r-1"}))
        equal(chat.ask("POST", "/exec/programmatic/cancel", {"request_id": "r-1"})[0], 404)


@test(private=True)
def nobody_gets_what_is_anothers(ctx):
    with team_gateway(ctx) as (_, gateway, tokens):
        ada, bob = Chat(gateway, tokens["ada"]), Chat(gateway, tokens["bob"])
        _, answer = ada.upload("secret.txt", b"for ada")
        key = answer["storage_session_id"], answer["files"][0]["fileId"]
        never = "A" * 21, "B" * 21
        for path in ("/download/%s/%s", "/sessions/%s/objects/%s"):
            equal(bob.ask("GET", path % key), bob.ask("GET", path % never), path)
            equal(ada.ask("GET", path % key)[0], 200)
        equal(bob.ask("GET", "/files/" + key[0])[1], [])
        given = {"id": key[1], "storage_session_id": key[0], "name": "secret.txt"}
        assert "no longer kept" in bob.exec("1", files=[given])["stderr"]
        ada.exec("x = 1", runtime_session_hint="shared-name")
        equal(bob.exec("x = 2", runtime_session_hint="shared-name")["runtime_status"], "new")
        equal(ada.exec("print(x)", runtime_session_hint="shared-name")["stdout"], "1\n")
        _, answer = ada.ask("POST", "/exec/programmatic", {
            "code": "print(await add(a=1, b=1))", "tools": [ADD]})
        results = [{"call_id": "call_001", "result": 2, "is_error": False}]
        go_on = {"continuation_token": answer["continuation_token"], "tool_results": results}
        equal(bob.ask("POST", "/exec/programmatic", go_on)[0], 404)
        equal(ada.ask("POST", "/exec/programmatic", go_on)[1]["stdout"], "2\n")
        for verb, path in (("POST", "/exec"), ("POST", "/upload"), ("GET", "/files/" + key[0]),
                           ("POST", "/exec/programmatic"), ("POST", "/exec/programmatic/cancel")):
            equal(Chat(gateway, None).ask(verb, path, {})[0], 401, path)


if __name__ == "__main__":
    with shared_ends:
        main(__doc__)
