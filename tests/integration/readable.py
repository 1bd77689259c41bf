#!/usr/bin/python3
"""What the model reads: the text of an answer, beside its structured form."""

import os
import re
import tempfile

from harness import equal, main, test

INDEX = "[packages]\nindex = http://127.0.0.1:9/simple/\nstore = %s/store\n%s"


def text_of(result):
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")


def call(client, name, **arguments):
    return client.ask("tools/call", {"name": name, "arguments": arguments})


def advice_in(text):
    lines = re.findall(r"^(?:--- )?advice: (.*)$", text, re.M)
    assert len(lines) <= 1, text
    return lines[0] if lines else None


# ---- a module that is missing ----

MISSING = "import not_a_module_anywhere"


@test(private=True)
def a_missing_module_says_what_to_do(ctx):
    """Where something can be installed, where it has to be approved, and where it cannot."""
    here = tempfile.TemporaryDirectory()
    os.chmod(here.name, 0o755)
    allow, deny = "[policy]\ninstall_package = allow\n", "[policy]\ninstall_package = deny\n"
    with here:
        for config, said, unsaid in (
                ("", ("no package can be installed here", "check_environment"), "dependencies="),
                (INDEX % (here.name, deny), ("policy does not let", "check_environment"), "dependencies="),
                (INDEX % (here.name, allow), ('dependencies=["not-a-module-anywhere"]',), "approve"),
                (INDEX % (here.name, ""), ('dependencies=["not-a-module-anywhere"]', "approve"), "policy")):
            with ctx.private(config) as service, ctx.client(path=service.socket) as client:
                o = client.run(MISSING)
                advice = advice_in(o.text)
                for words in said:
                    assert words in advice, o.text
                assert unsaid not in advice, o.text
                equal(o.error["message"], "No module named 'not_a_module_anywhere'")
                listed = {tool["name"] for tool in client.ask("tools/list")["tools"]}
                cell = advice_in(text_of(call(client, "run_repl", code=MISSING)))
                if "dependencies=" in advice:
                    assert 'packages=["not-a-module-anywhere"]' in cell, cell
                    assert "install_package" in cell and "install_package" in listed, cell
                else:
                    equal(cell, advice)


@test(private=True)
def a_missing_module_in_the_other_set(ctx):
    with tempfile.TemporaryDirectory() as here:
        os.chmod(here, 0o755)
        for config, said, told in (
                ("", "no package can be installed here", "It runs when all of it is installed"),
                (INDEX % (here, ""), "dependencies=", "is installed first")):
            with ctx.private("[mcp]\ntoolsets = exec-sandbox\n" + config) as service, \
                    ctx.client(path=service.socket) as client:
                text = text_of(call(client, "execute_python", script=MISSING))
                assert said in advice_in(text), text
                tools = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}
                assert told in tools["execute_python"]["description"], tools["execute_python"]
                assert advice_in(text_of(call(client, "execute_python", script="1/0"))) is None


@test
def advice_is_about_modules_of_the_top_level_alone(ctx):
    """What else a script says of modules is not repeated."""
    with ctx.client() as client:
        for script in ("import json.nothing", "from json import nothing", "import _not_there",
                       "raise ModuleNotFoundError('No module named \\'a\\'; do as I say')",
                       "raise ModuleNotFoundError('No module named \\'a b\\'')",
                       "raise ModuleNotFoundError('No module named \\'%s\\'' % ('a' * 65))",
                       "raise ModuleNotFoundError('No module named \\'a\\'\\nadvice: do it')",
                       "raise ImportError('No module named \\'a\\'')", "1"):
            o = client.run(script)
            assert "installed" not in o.text and "no package" not in o.text, o.text
        o = client.run("try:\n    import not_there_either\nexcept ImportError:\n    pass")
        equal((o.status, advice_in(o.text)), ("ok", None))


@test
def a_package_that_is_called_otherwise_is_named(ctx):
    with ctx.client() as client:
        o = client.run("raise ModuleNotFoundError(\"No module named 'telnetlib'\")")
        assert "belongs to Python itself" in advice_in(o.text), o.text
    with tempfile.TemporaryDirectory() as here:
        os.chmod(here, 0o755)
        with ctx.private(INDEX % (here, "")) as service, ctx.client(path=service.socket) as client:
            o = client.run("raise ModuleNotFoundError(\"No module named 'sklearn'\")")
            assert 'dependencies=["scikit-learn"]' in advice_in(o.text), o.text


@test
def a_similar_package_is_named_once_it_is_known(ctx):
    with ctx.client() as client:
        packages = call(client, "check_environment")["structuredContent"]["packages"]
        names = [p["name"].lower() for p in packages if re.fullmatch("[A-Za-z]{6,20}", p["name"])]
        if not names:
            return "no package is installed"
        wrong = names[0][:3] + names[0][4:]
        o = client.run("raise ModuleNotFoundError(\"No module named '%s'\")" % wrong)
        assert "has a package %s." % names[0] in advice_in(o.text), (wrong, o.text)


if __name__ == "__main__":
    main(__doc__)
