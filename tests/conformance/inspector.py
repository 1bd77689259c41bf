# SPDX-License-Identifier: Apache-2.0
"""The Inspector's command line, in both eras, over what it speaks: HTTP by TCP, and the
bridge as a command. Its exit status is its verdict: 0 all right, 4 no server, 5 the
tool failed or is not there, 6 a schema that other clients would stumble over."""

import base64
import json

SECONDS = 60
ERAS = ("legacy", "auto", "modern")


class Inspector:
    def __init__(self, tools, place, era):
        self.tools, self.place, self.era = tools, place, era

    def run(self, status, *options):
        done = self.tools.run(["mcp-inspector", "--cli"] + self.place + [
            "--protocol-era", self.era, "--format", "json", "-q", *options], SECONDS)
        assert done.returncode == status, "exit status %d, not %d\n%s%s" % (
            done.returncode, status, done.stdout[-1500:], done.stderr[-1500:])
        return json.loads(done.stdout) if done.stdout.strip() else None

    def call(self, status, name, **arguments):
        return self.run(status, "--method", "tools/call", "--tool-name", name,
                        "--tool-args-json", json.dumps(arguments))

    # ---- against mcp-pythond ----

    def lists_strictly(self):
        said = self.run(0, "--method", "tools/list", "--strict")
        assert "run_script" in [t["name"] for t in said["result"]["tools"]], said

    def runs(self):
        result = self.call(0, "run_script", script="print(6 * 7)")["result"]
        assert result["structuredContent"]["stdout"] == "42\n", result

    def reads_a_file_back(self):
        content = self.call(0, "run_script", script="with open('note.txt', 'w') as f:\n"
                            "    f.write('kept')")["result"]["content"]
        uri = next(block["uri"] for block in content if block["type"] == "resource_link")
        said = self.run(0, "--method", "resources/read", "--uri", uri)
        assert said["result"]["contents"][0]["text"] == "kept", said

    def fails(self):
        self.call(5, "run_script", script="1/0")

    def refuses_unknown_tool(self):
        self.call(5, "none_such")

    def runs_a_hundred(self):
        said = self.run(0, "--method", "tools/call", "--tool-name", "run_script",
                        "--tool-args-json", '{"script": "1"}', "--load",
                        "--load-requests", "100", "--load-concurrency", "8")
        return json.dumps(said)[:300]

    def finds_the_view(self):
        said = self.run(0, "--method", "tools/call", "--tool-name", "run_repl", "--app-info", "--advertise-apps")
        app = said["appInfo"]
        assert app["hasApp"] and app["resourceMimeType"] == "text/html;profile=mcp-app", said

    def verifies_the_skills(self):
        """Each file against its digest and size; the older era has no skills."""
        if self.era == "legacy":
            return
        done = self.tools.run(["mcp-inspector", "--cli"] + self.place + [
            "--protocol-era", self.era, "--method", "skills/list", "--verify", "--require-digests"], SECONDS)
        assert done.returncode == 0 and "Verified 5 skills and 5 files" in done.stdout + done.stderr, (
            done.returncode, done.stdout[-1500:], done.stderr[-1500:])

    # ---- against mcp-pythond-fixtures ----

    def reads_an_image(self):
        block = self.call(0, "test_image_content")["result"]["content"][0]
        assert base64.b64decode(block["data"]).startswith(b"\x89PNG\r\n"), block

    def lists_resources(self):
        uris = [r["uri"] for r in self.run(0, "--method", "resources/list")["result"]["resources"]]
        assert "test://static-text" in uris, uris

    def reads_a_file(self):
        said = self.run(0, "--method", "resources/read", "--uri", "test://static-binary")
        file = said["result"]["contents"][0]
        assert base64.b64decode(file["blob"]).startswith(b"\x89PNG\r\n"), file

    def gets_a_prompt(self):
        said = self.run(0, "--method", "prompts/get", "--prompt-name",
                        "test_prompt_with_arguments", "--prompt-args", "arg1=one", "arg2=two")
        assert "arg1='one'" in said["result"]["messages"][0]["content"]["text"], said

    def follows_a_task(self):
        text = self.call(0, "slow_compute", seconds=0.3, label="all")["result"]["content"][0]
        assert text["text"] == "all is computed", text

    def cannot_be_asked(self):
        # A tool that cannot go on is an error of the tool to one era, of the protocol to the
        # other.
        self.call(5 if self.era == "legacy" else 1, "test_elicitation", message="Who?")


SHIPPED = ("lists_strictly", "runs", "reads_a_file_back", "fails", "refuses_unknown_tool",
           "runs_a_hundred", "finds_the_view", "verifies_the_skills")
FIXTURES = ("reads_an_image", "lists_resources", "reads_a_file", "gets_a_prompt",
            "follows_a_task", "cannot_be_asked")


def places(service):
    return {"tcp": [service.url, "--transport", "http"],
            "bridge": [service.bridge, "connect", "--socket", service.socket]}


def steps_of(program, era, transport, every):
    """Each step in each era. every: over each transport; otherwise over one of them, in turn, for an era is
    a matter of messages and a transport one of bytes. The first step connects: over each, always."""
    steps = SHIPPED if program == "shipped" else FIXTURES
    if era == "auto":	# it chooses one of the two others by its first request, and goes on as that one
        return steps[:1]
    turn = ERAS.index(era) // 2 + (transport == "bridge")
    return [step for n, step in enumerate(steps) if every or n == 0 or (n + turn) % 2 == 0]


def run(tools, services, out, report, wanted, every):
    for program, service in services.items():
        for transport, place in places(service).items():
            for era in ERAS:
                inspector = Inspector(tools, place, era)
                for step in steps_of(program, era, transport, every):
                    name = "inspector %s %s %s: %s" % (era, transport, program, step)
                    if wanted.search(name):
                        report.check(name, getattr(inspector, step))
    name = "inspector: says when nobody is there"
    if wanted.search(name):
        report.check(name, lambda: Inspector(
            tools, ["http://127.0.0.1:9/mcp", "--transport", "http"], "modern").run(
                4, "--method", "tools/list") and None)
