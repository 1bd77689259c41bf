# SPDX-License-Identifier: Apache-2.0
"""Reads a script's metadata and compiles the script, in a jailed worker; runs nothing of it.

Standard input: one line of JSON, {"toml": text or null, "compile": bool}, then the script.
The answer is the trailing expression: {"dependencies": [...], "requires_python": text or null,
"errors": [{"key", "line", "message"}]}; line counts from 1 within the TOML, or, with the key
"script", within the script.
"""

import ast
import json
import re
import sys
import warnings

TEXT_MAX = 500
answer = {"dependencies": [], "requires_python": None, "errors": []}


def wrong(key, line, message):
    answer["errors"].append({"key": key, "line": line, "message": message[:TEXT_MAX]})


def read_toml(text):
    import tomllib
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        at = re.search(r" \(at line (\d+), column \d+\)$", str(e))
        message = str(e)[:at.start()] if at else str(e)
        wrong("toml", int(at[1]) if at else text.count("\n") or 1, message)
    except RecursionError:
        wrong("toml", None, "nested too deeply")
    except ValueError as e:
        wrong("toml", None, str(e))
    return {}


def read_metadata(text):
    table = read_toml(text)
    dependencies = table.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(d, str) for d in dependencies):
        wrong("dependencies", None, "dependencies must be an array of strings")
    else:
        answer["dependencies"] = dependencies
    requires = table.get("requires-python")
    if not isinstance(requires, (str, type(None))):
        wrong("requires-python", None, "requires-python must be a string")
    else:
        answer["requires_python"] = requires


def compile_script(source):
    nul = source.find(b"\0")
    if nul >= 0:
        wrong("script", source.count(b"\n", 0, nul) + 1, "source holds a NUL byte")
        return
    try:
        compile(source, "script.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as e:
        wrong("script", e.lineno, "%s: %s" % (type(e).__name__, e.msg))
    except (RecursionError, MemoryError):
        wrong("script", None, "nested too deeply to be compiled")
    except (OverflowError, ValueError) as e:
        wrong("script", None, "%s: %s" % (type(e).__name__, e))


warnings.simplefilter("ignore")
head, _, script = sys.stdin.buffer.read().partition(b"\n")
asked = json.loads(head)
if asked["toml"] is not None:
    read_metadata(asked["toml"])
if asked["compile"]:
    compile_script(script)
answer
