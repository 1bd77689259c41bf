#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Skills: the texts that the service has for models, those that an operator adds, and those that it refuses."""

import hashlib
import json
import os
import re
import tempfile

from harness import equal, main, test
from mcpclient import LEGACY, MODERN, RpcError

EXTENSION = "io.modelcontextprotocol/skills"
OURS = ["files-in-and-out", "long-runs", "packages-and-approvals", "sessions-and-checkpoints", "tools-from-scripts"]
FRONT = "---\nname: %s\ndescription: %s\n---\n\n# %s\n"


def code_of(client, method, params):
    try:
        raise AssertionError("%s %r is answered: %.300r" % (method, params, client.ask(method, params)))
    except RpcError as e:
        return e.code


def check_skill(client, skill):
    """What a host verifies: the file, its digest and size, and the frontmatter, word for word."""
    (file,) = skill["resources"]
    equal(file["uri"], skill["uri"])
    (content,) = client.ask("resources/read", {"uri": file["uri"]})["contents"]
    data = content["text"].encode()
    equal((content["mimeType"], file["size"], file["digest"]),
          ("text/markdown", len(data), "sha256:" + hashlib.sha256(data).hexdigest()), skill["uri"])
    front = re.match(r"---\n(.*?)---\n", content["text"], re.DOTALL)[1]
    equal(dict(line.split(": ", 1) for line in front.splitlines()), skill["frontmatter"])
    equal(skill["uri"].split("/")[-2], skill["frontmatter"]["name"])
    answer = client.ask("skills/get", {"uri": skill["uri"]})
    equal((answer["skill"], answer["resultType"]), (skill, "complete"))
    assert answer["ttlMs"] > 0 and answer["cacheScope"] in ("public", "private"), answer
    return content["text"]


def names_of(client):
    return sorted(skill["frontmatter"]["name"] for skill in client.ask("skills/list")["skills"])


@test
def each_skill_is_what_the_list_says(ctx):
    with ctx.client(MODERN) as client:
        assert EXTENSION in client.ask("server/discover")["capabilities"]["extensions"]
        answer = client.ask("skills/list")
        equal((answer["resultType"], "nextCursor" in answer), ("complete", False))
        assert answer["ttlMs"] > 0 and answer["cacheScope"] in ("public", "private"), answer
        equal(names_of(client), OURS)
        for skill in answer["skills"]:
            text = check_skill(client, skill)
            assert len(text) < 2000 and len(skill["frontmatter"]["description"]) < 200, skill


@test
def names_that_are_none(ctx):
    with ctx.client(MODERN) as client:
        for uri in ("skill://mcp-pythond/long-runs", "skill://mcp-pythond/long-runs/", "skill://mcp-pythond/../x/SKILL.md",
                    "skill://mcp-pythond/long-runs/SKILL.md?bytes=0-3", "skill://other/long-runs/SKILL.md", ""):
            equal(code_of(client, "skills/get", {"uri": uri}), -32602, uri)
            equal(code_of(client, "resources/read", {"uri": uri}), -32602, uri)
        for params in ({}, {"uri": 7}, {"uri": None}, {"uri": ["skill://mcp-pythond/long-runs/SKILL.md"]}):
            equal(code_of(client, "skills/get", params), -32602, params)
        equal(code_of(client, "skills/list", {"cursor": "AAAA"}), -32602)


@test
def older_revisions_have_none(ctx):
    """They have the texts as resources, and empty prompts as before."""
    with ctx.client(LEGACY[-1]) as client:
        assert "skills" not in json.dumps(client.hello), client.hello
        equal(code_of(client, "skills/list", {}), -32601)
        equal(client.ask("prompts/list")["prompts"], [])
        assert "# Long runs" in client.ask("resources/read", {"uri": "skill://mcp-pythond/long-runs/SKILL.md"})["contents"][0]["text"]
    with ctx.client(MODERN) as client:
        equal(client.ask("prompts/list")["prompts"], [])


def put(top, folder, data, mode=0o644, name="SKILL.md"):
    os.makedirs(os.path.join(top, folder), exist_ok=True)
    path = os.path.join(top, folder, name)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    os.chmod(path, mode)


# What is wrong with a skill, by the folder that has it: its file, and a word of the refusal.
WRONG = {
    "other-name": (FRONT % ("another-name", "Has another name.", "A"), "its name is not that of its folder"),
    "Upper": (FRONT % ("Upper", "Has a large letter.", "A"), "none of a skill"),
    "two--hyphens": (FRONT % ("two--hyphens", "Two hyphens.", "A"), "none of a skill"),
    "-begins": (FRONT % ("-begins", "Begins so.", "A"), "none of a skill"),
    "x" * 65: (FRONT % ("x" * 65, "Is long.", "A"), "none of a skill"),
    "line\nbreak \x1b[31m": (FRONT % ("a", "Is a line.", "A"), "none of a skill"),
    "nothing": ("", "does not begin with a frontmatter"),
    "no-front": ("# Title\n", "does not begin with a frontmatter"),
    "no-end": ("---\nname: no-end\ndescription: Has no end.\n", "does not end"),
    "no-description": ("---\nname: no-description\n---\n", "needs name and description"),
    "twice": ("---\nname: twice\nname: twice\ndescription: Says it twice.\n---\n", "twice"),
    "more-keys": ("---\nname: more-keys\ndescription: Has more.\nallowed-tools: Bash\n---\n", "another key"),
    "nested": ("---\nname: nested\ndescription: Has a map.\nmetadata:\n  a: b\n---\n", "another key"),
    "anchor": ("---\nname: anchor\ndescription: &a text\n---\n", "no plain text"),
    "folded": ("---\nname: folded\ndescription: >\n  text\n---\n", "no plain text"),
    "quoted": ("---\nname: quoted\ndescription: \"text\"\n---\n", "no plain text"),
    "map": ("---\nname: map\ndescription: a: b\n---\n", "no plain text"),
    "comment": ("---\nname: comment\ndescription: text # more\n---\n", "no plain text"),
    "word": ("---\nname: word\ndescription: Yes\n---\n", "no plain text"),
    "long": (FRONT % ("long", "a" * 1025, "A"), "too long"),
    "large": (FRONT % ("large", "Is large.", "a" * 65536), "too long"),
    "not-utf8": (b"---\nname: not-utf8\ndescription: Latin \xe9.\n---\n", "UTF-8"),
    "has-nul": (b"---\nname: has-nul\ndescription: Has NUL.\n---\n\0", "UTF-8"),
    "windows": ("---\r\nname: windows\r\ndescription: Has CRLF.\r\n---\r\n", "does not begin with a frontmatter"),
}


@test(private=True)
def an_operator_adds_some(ctx):
    """Those that keep the rules are served, one in the place of ours; of each other the log says why not."""
    with tempfile.TemporaryDirectory(prefix="mcp-skills-") as top:
        os.chmod(top, 0o755)
        put(top, "our-data", FRONT % ("our-data", "Where the data of this house is, and how to read it.", "Data \u00e9\u4e2d"))
        put(top, "long-runs", "---\nname: long-runs\nlicense: MIT\ndescription: Ask first (ext. 7).\n---\nAsk.\n")
        for folder, (data, _) in WRONG.items():
            put(top, folder, data)
        put(top, "writable", FRONT % ("writable", "Anybody may write to it.", "A"), 0o666)
        put(top, "no-file", "x", name="README.md")
        os.makedirs(os.path.join(top, "a-fifo"))
        os.mkfifo(os.path.join(top, "a-fifo", "SKILL.md"))
        os.makedirs(os.path.join(top, "a-folder", "SKILL.md"))
        put(top, ".hidden", FRONT % ("hidden", "Is hidden.", "A"))
        with open(os.path.join(top, "README"), "w", encoding="ascii") as f:
            f.write("A file, and no folder.\n")
        with ctx.private("[skills]\ndirectory = %s\n" % top) as service:
            with ctx.client(MODERN, path=service.socket) as client:
                equal(names_of(client), sorted([*OURS, "our-data"]))
                skills = {one["frontmatter"]["name"]: one for one in client.ask("skills/list")["skills"]}
                for skill in skills.values():
                    check_skill(client, skill)
                equal(skills["long-runs"]["frontmatter"],
                      {"name": "long-runs", "license": "MIT", "description": "Ask first (ext. 7)."})
            log = [line for line in service.log().splitlines() if line.startswith("skill-refused")]
            equal(len(log), len(WRONG) + 5, "\n".join(log))
            for folder, (_, word) in WRONG.items():
                start = re.sub(r"[^A-Za-z0-9-].*", "", folder, flags=re.DOTALL)[:40]
                assert any(start in line and word in line for line in log), (folder, word, "\n".join(log))
            assert any("writable" in line and "may write" in line for line in log), log


@test(private=True)
def more_than_are_served(ctx):
    """64, of which five are ours: they are never crowded out."""
    with tempfile.TemporaryDirectory(prefix="mcp-skills-") as top:
        os.chmod(top, 0o755)
        for i in range(62):
            put(top, "skill-%02d" % i, FRONT % ("skill-%02d" % i, "One of many.", "A"))
        with ctx.private("[skills]\ndirectory = %s\n" % top) as service, \
                ctx.client(MODERN, path=service.socket) as client:
            equal(names_of(client), sorted([*OURS, *("skill-%02d" % i for i in range(59))]))
            equal(service.log().count("there are too many skills"), 3)


@test(private=True)
def a_folder_that_is_not_there(ctx):
    with ctx.private("[skills]\ndirectory = /nonexistent/skills\n") as service:
        with ctx.client(MODERN, path=service.socket) as client:
            equal(names_of(client), OURS)
        assert "skills-unreadable error=ENOENT" in service.log(), service.log()


@test(private=True)
def other_sets_have_none(ctx):
    """They are about the tools of this service, and are not served with tools of other names alone."""
    with ctx.private("[mcp]\ntoolsets = run-python\n") as service, ctx.client(MODERN, path=service.socket) as client:
        assert EXTENSION not in json.dumps(client.ask("server/discover"))
        equal(code_of(client, "skills/list", {}), -32601)


main(__doc__)
