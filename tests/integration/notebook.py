#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The kernel for local Jupyter programs, driven by Jupyter's own: its tests for kernels, nbconvert,
jupyter_client."""

import contextlib
import json
import os
import subprocess
import tempfile

from harness import TOP, Skip, equal, main, test

BUILD = os.environ.get("MCP_BUILD", os.path.join(TOP, "build"))
NAME = "mcp-python"
PYTHON = "/usr/bin/python3"


@contextlib.contextmanager
def home():
    """An environment in which Jupyter's programs find the kernel."""
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "HOME": directory, "XDG_RUNTIME_DIR": directory,
                       "PYTHONWARNINGS": "ignore"}
        for name in ("XDG_DATA_HOME", "JUPYTER_PATH", "MCP_PYTHON_SOCKET"):
            environment.pop(name, None)
        said = subprocess.run([os.path.join(BUILD, "mcp-python"), "kernel", "--install"],
                              env=environment, check=True, capture_output=True, text=True).stdout
        assert "Python (jailed)" in said, said
        yield environment, directory


def run(environment, *command):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500,
                          check=False)
    if "No module named" in done.stderr:
        raise Skip(done.stderr.strip().rpartition("\n")[2], missing=True)
    return done


JUPYTERS_TESTS = """
import unittest, jupyter_kernel_test
class Kernel(jupyter_kernel_test.KernelTests):
    kernel_name = "mcp-python"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples = [{"text": "zi", "matches": {"zip"}}]
    complete_code_samples = ["1", "print('hello, world')", "def f(x):\\n  return x*2\\n\\n\\n"]
    incomplete_code_samples = ["print('''hello", "def f(x):\\n  x*2"]
    invalid_code_samples = ["import = 7q"]
    code_generate_error = "raise"
    code_execute_result = [{"code": "1+2+3", "result": "6"},
                           {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"}]
    code_display_data = [{"code": "display({'text/html': '<b>x</b>'}, raw=True)",
                          "mime": "text/html"}]
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "zip"
unittest.main()
"""


@test(private=True)
def jupyters_own_tests_of_kernels_pass(ctx):
    with home() as (environment, _):
        done = run(environment, PYTHON, "-c", JUPYTERS_TESTS, "-v")
        equal(done.returncode, 0, done.stderr[-3000:])
        assert "Ran 12 tests" in done.stderr, done.stderr


def notebook(*cells):
    return json.dumps({
        "nbformat": 4, "nbformat_minor": 5, "metadata": {},
        "cells": [{"cell_type": "code", "id": "c%d" % i, "metadata": {}, "outputs": [],
                   "execution_count": None, "source": source} for i, source in enumerate(cells)]})


def execute(environment, directory, cells, *options):
    """(the process, the outputs of each cell, or None if nothing was written)"""
    path, out = os.path.join(directory, "in.ipynb"), os.path.join(directory, "out.ipynb")
    with open(path, "w", encoding="utf-8") as f:
        f.write(notebook(*cells))
    done = run(environment, PYTHON, "-m", "nbconvert", "--to", "notebook", "--execute",
               "--ExecutePreprocessor.kernel_name=" + NAME, "--output", "out.ipynb", *options, path)
    if not os.path.exists(out):
        return done, None
    with open(out, encoding="utf-8") as f:
        outputs = [cell["outputs"] for cell in json.load(f)["cells"]]
    os.unlink(out)
    return done, outputs


CELLS = [
    "import statistics\nrows = [{'city': c, 'n': n} for c, n in (('Ulm', 3), ('Bonn', 4))]\n"
    "print(len(rows))",
    "import pandas as pd\ntable = pd.DataFrame(rows)\ntable",
    "import matplotlib.pyplot as plt\nplt.bar(table.city, table.n)\nplt.show()",
    "import sys\nprint('careful', file=sys.stderr)\nstatistics.mean([3, 4])",
    "table.nix",
    "'after'",
]


def text_of(output, mime):
    return "".join(output["data"][mime])


@test(private=True)
def nbconvert_executes_a_notebook(ctx):
    with home() as (environment, directory):
        done, outputs = execute(environment, directory, CELLS, "--allow-errors")
        equal(done.returncode, 0, done.stderr[-3000:])
        equal([[o["output_type"] for o in cell] for cell in outputs],
              [["stream"], ["execute_result"], ["display_data"], ["stream", "execute_result"],
               ["error"], ["execute_result"]])
        equal("".join(outputs[0][0]["text"]), "2\n")
        assert "<table" in text_of(outputs[1][0], "text/html")
        assert "Bonn" in text_of(outputs[1][0], "text/plain")
        assert text_of(outputs[2][0], "image/png").startswith("iVBOR")
        equal(text_of(outputs[3][1], "text/plain"), "3.5")
        equal(outputs[4][0]["ename"], "AttributeError")
        equal(text_of(outputs[5][0], "text/plain"), "'after'")
        done, outputs = execute(environment, directory, ["1 / 0", "print(1)"])
        equal((done.returncode, outputs), (1, None))
        assert "ZeroDivisionError" in done.stderr, done.stderr


@test(private=True)
def a_cell_that_takes_too_long_is_interrupted(ctx):
    with home() as (environment, directory):
        done, outputs = execute(
            environment, directory, ["x = 1\nimport time\ntime.sleep(500)", "x"], "--allow-errors",
            "--ExecutePreprocessor.timeout=5", "--ExecutePreprocessor.interrupt_on_timeout=True")
        equal(done.returncode, 0, done.stderr[-3000:])
        equal(outputs[0][0]["ename"], "KeyboardInterrupt")
        equal(text_of(outputs[1][0], "text/plain"), "1")


CLIENT = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="mcp-python", startup_timeout=120)
def run(code):
    return client.execute_interactive(code, timeout=120, output_hook=lambda m: None)["content"]
assert run("x = 5")["status"] == "ok"
assert run("import os; os._exit(3)")["status"] == "error"
assert run("assert x == 5")["status"] == "ok", "the cell was not undone"
client.execute("print('on', flush=True)\\nimport time\\ntime.sleep(500)")
while client.get_iopub_msg(timeout=120)["header"]["msg_type"] != "stream":
    pass
manager.interrupt_kernel()
assert client.get_shell_msg(timeout=120)["content"]["ename"] == "KeyboardInterrupt"
# Who lacks the key is not heard.
client.session.key, key = b"wrong", client.session.key
client.execute("open('written', 'w')")
client.session.key = key
assert run("import os; assert not os.path.exists('written')")["status"] == "ok"
# Nor is what is no message.
parts = [b"[" * 100_000, b"{}", b"{}", b"{}"]
for frames in ([b"<IDS|MSG>"], [b""], [b"<IDS|MSG>", client.session.sign(parts), *parts]):
    client.shell_channel.socket.send_multipart(frames)
assert run("assert x == 5")["status"] == "ok"
manager.restart_kernel()
client.wait_for_ready(timeout=120)
assert run("x")["ename"] == "NameError"
client.stop_channels()
manager.shutdown_kernel()
assert not manager.has_kernel
print("done")
"""


@test(private=True)
def jupyter_client_controls_a_kernel(ctx):
    with home() as (environment, _):
        done = run(environment, PYTHON, "-c", CLIENT)
        equal((done.returncode, done.stdout), (0, "done\n"), done.stderr[-3000:])


@test(private=True)
def wrong_use_is_explained(ctx):
    program = os.path.join(BUILD, "mcp-python")
    for args, code, word in ((["kernel"], 64, "--install"), (["kernel", "-f", "/nix"], 69, "/nix"),
                             (["kernel", "--nix"], 64, "--nix"), (["gateway", "--nix"], 64, "--nix"),
                             (["gateway", "--listen", "x"], 64, "--listen"),
                             (["gateway", "--listen", "127.0.0.1:99999"], 64, "--listen"),
                             (["gateway", "--open", "--listen", "0.0.0.0:0"], 64, "loopback"),
                             (["gateway", "--tenants", "--open"], 64, "--tenants")):
        done = run(dict(os.environ), program, *args)
        equal(done.returncode, code, "%r: %s" % (args, done.stderr))
        assert word in done.stderr, (args, done.stderr)


if __name__ == "__main__":
    main(__doc__)
