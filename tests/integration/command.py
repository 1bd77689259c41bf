#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""mcp-python run and repl as people use them: files in and out, standard input, all of the output,
a private supervisor when no service runs, and ./quickstart run from another directory."""

import base64
import contextlib
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile

from harness import Skip, equal, main, test
from supervisor import descendants, wait_gone
from terminal import Terminal, client_program

HERE = os.path.dirname(os.path.abspath(__file__))
ASKS = "name = input('Your name? ')\nprint('Hello,', name)\n"


@contextlib.contextmanager
def directory(**files):
    """A directory with these files; "_" in a name stands for "."."""
    with tempfile.TemporaryDirectory() as d:
        for name, text in files.items():
            write(os.path.join(d, name.replace("_", ".")), text)
        yield d


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text.encode() if isinstance(text, str) else text)


def content(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def nowhere(d):
    """An environment in which no service is found."""
    return {**{k: v for k, v in os.environ.items() if k != "MCP_PYTHON_SOCKET"},
            "XDG_RUNTIME_DIR": d, "ASAN_OPTIONS": "detect_leaks=0"}


def run(ctx, *arguments, cwd=None, env=None, **more):
    more = more if "input" in more else {"stdin": subprocess.DEVNULL, **more}
    done = subprocess.run([client_program(ctx), "run", *arguments], cwd=cwd, env=env,
                          capture_output=True, timeout=ctx.seconds(120), **more)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


# ---- files in ----

@test
def files_are_where_the_script_opens_them(ctx):
    text = ("import os\nfor top, below, names in sorted(os.walk('.')):\n"
            "    for name in sorted(names): print(os.path.join(top, name))\n"
            "print(open('data/a.csv').read(), open('b.bin', 'rb').read())\n")
    with directory(x_py=text, b_bin=b"\xff\x00\x01") as d, directory(c_txt="c") as other:
        write(os.path.join(d, "data/a.csv"), "1,2")
        equal(run(ctx, "--socket", ctx.socket, "--file", "data/a.csv", "--file", "./b.bin",
                  "--file", other + "/c.txt", "x.py", cwd=d),
              (0, "./b.bin\n./c.txt\n./script.py\n./data/a.csv\n1,2 b'\\xff\\x00\\x01'\n", ""))
        code, out, err = run(ctx, "--socket", ctx.socket, "--file", "none", "x.py", cwd=d)
        equal((code, out), (66, ""))
        assert "none: No such file" in err, err
        code, out, err = run(ctx, "--socket", ctx.socket, "--file", "data", "x.py", cwd=d)
        equal((code, out), (66, ""))
        assert "--dir" in err, err


@test
def a_directory_is_handed_in(ctx):
    text = "import os\nprint(sorted(os.listdir()), open('data/a.csv').read())\n"
    with directory(x_py=text, _hidden="no", big_txt="b" * 1000) as d:
        write(os.path.join(d, "data/a.csv"), "1,2")
        os.symlink("/etc/passwd", os.path.join(d, "link"))
        os.mkfifo(os.path.join(d, "fifo"))
        equal(run(ctx, "--socket", ctx.socket, "--dir", d, d + "/x.py"),
              (0, "['big.txt', 'data', 'script.py', 'x.py'] 1,2\n", ""))
        for i in range(300):
            write(os.path.join(d, "many/%d" % i), "")
        code, out, err = run(ctx, "--socket", ctx.socket, "--dir", d, d + "/x.py")
        equal((code, out), (65, ""))
        assert "more than 256 files" in err, err


@test
def a_session_starts_with_files(ctx):
    with directory(a_csv="1,2") as d:
        done = subprocess.run([client_program(ctx), "repl", "--socket", ctx.socket, "--file",
                               "a.csv"], input="open('a.csv').read()\n", cwd=d, text=True,
                              capture_output=True, timeout=ctx.seconds(60))
        equal((done.returncode, done.stdout, done.stderr), (0, "'1,2'\n", ""))


@test
def tracebacks_name_the_file(ctx):
    text = ("import sys\nprint(sys.argv)\ndef f(): raise ValueError(1)\nf()\n")
    with directory(x_py="1/0\n", argparse_py="import argparse\np = argparse.ArgumentParser()\n"
                   "p.parse_args()\n", crash_py="import os\nos.abort()\n") as d:
        write(os.path.join(d, "sub/y.py"), text)
        code, out, err = run(ctx, "--socket", ctx.socket, "sub/y.py", "--", "a", cwd=d)
        equal((code, out), (1, "['sub/y.py', 'a']\n"))
        assert 'File "sub/y.py", line 4, in <module>\n    f()\n' in err, err
        code, out, err = run(ctx, "--socket", ctx.socket, "argparse.py", "-h", cwd=d)
        equal(code, 64, "an option of ours")
        code, out, err = run(ctx, "--socket", ctx.socket, "argparse.py", "--", "-h", cwd=d)
        assert code == 0 and out.startswith("usage: argparse.py "), (code, out, err)
        code, out, err = run(ctx, "--socket", ctx.socket, "--json", "crash.py", cwd=d)
        equal(json.loads(out)["error"]["line"], 2, out)
        write(d + "/z.py", "if x\n")
        code, out, err = run(ctx, "--socket", ctx.socket, d + "/z.py")
        equal(code, 1)
        assert 'File "%s/z.py", line 1\n' % d in err, err
    with ctx.client() as c:
        o = c.run("import sys\nprint(sys.argv, __file__)", script_name="n")
        equal(o.stdout, "['n'] /workspace/script.py\n")
        for name in "", "a\n", "x" * 256, "\x1b[2J", 7:
            o = c.run("1", script_name=name)
            assert o.refused and "script_name must be" in o.text, repr(o)


@test(private=True)
def what_was_lacking_is_said(ctx):
    """One line after the traceback; and the answer has it for other clients."""
    with ctx.private() as s, directory(
            module_py="import not_a_module_anywhere",
            name_py="import urllib.request\nurllib.request.urlopen('http://a.invalid/')",
            net_py="import socket\nsocket.create_connection(('192.0.2.1', 80))",
            own_py="raise ValueError('Name or service')") as d:
        for name, want in (("module", "a package is missing: --with PACKAGE adds it"),
                           ("name", "Scripts have no network here"),
                           ("net", "Scripts have no network here")):
            code, out, err = run(ctx, "--socket", s.socket, "%s/%s.py" % (d, name))
            equal((code, out), (1, ""))
            equal(err.splitlines()[-1].partition("mcp-python: ")[2][:len(want)], want, err)
            code, out, err = run(ctx, "--socket", s.socket, "--json", "%s/%s.py" % (d, name))
            assert json.loads(out)["error"]["advice"], out
        code, out, err = run(ctx, "--socket", s.socket, d + "/own.py")
        equal(err.splitlines()[-1], "ValueError: Name or service")
        code, out, err = run(ctx, "--socket", s.socket, "--json", d + "/own.py")
        assert "advice" not in json.loads(out)["error"], out
        code, out, err = piped(ctx, "import socket\nsocket.gethostbyname('a.invalid')\n",
                               socket=s.socket)
        assert "mcp-python: Scripts have no network here" in err, err
    with ctx.private("[network]\nallow = a.invalid\n") as s, directory(
            x_py="raise OSError('Name or service not known')") as d:
        code, out, err = run(ctx, "--socket", s.socket, d + "/x.py")
        assert "no network" not in err, err


# ---- files out ----

@test
def what_is_left_is_said_and_saved(ctx):
    text = "open('in.txt').read()\nopen('out.txt', 'w').write('new')\n"
    with directory(x_py=text, in_txt="as it was") as d:
        line = ["--socket", ctx.socket, "--file", "in.txt"]
        code, out, err = run(ctx, *line, "x.py", cwd=d)
        equal((code, err), (0, "mcp-python: left: out.txt (3 bytes)\n"
                               "  not kept here; --save DIR writes them into a directory\n"))
        code, out, err = run(ctx, *line, "--save", "o", "x.py", cwd=d)
        equal((code, err), (0, "mcp-python: saved o/out.txt (3 bytes)\n"))
        equal((os.listdir(d + "/o"), content(d, "o/out.txt")), (["out.txt"], b"new"))
        write(d + "/o/out.txt", "old")
        code, out, err = run(ctx, *line, "--save", "o", "x.py", cwd=d)
        equal(code, 74)
        assert "--force replaces it" in err, err
        equal(content(d, "o/out.txt"), b"old")
        os.unlink(d + "/o/out.txt")
        write(d + "/target", "mine")
        os.symlink("../target", d + "/o/out.txt")
        equal(run(ctx, *line, "--save", "o", "--force", "x.py", cwd=d)[0], 0)
        equal((os.listdir(d + "/o"), content(d, "o/out.txt"), content(d, "target")),
              (["out.txt"], b"new", b"mine"))


@test
def what_changes_in_a_directory_comes_back(ctx):
    text = ("import os\nopen('a.txt', 'a').write('+')\nos.makedirs('new/er')\n"
            "open('new/er/b.txt', 'w').write('b')\nos.unlink('gone.txt')\n"
            "raise SystemExit(3)\n")
    with directory(a_txt="a", gone_txt="g", same_txt="s") as d:
        os.mkdir(d + "/in")
        for name in "a.txt", "gone.txt", "same.txt":
            os.rename(d + "/" + name, d + "/in/" + name)
        write(d + "/x.py", text)
        os.chmod(d + "/in/a.txt", 0o640)
        before = os.stat(d + "/in/same.txt").st_ino
        line = ["--socket", ctx.socket, "--dir", "in"]
        equal(run(ctx, *line, "--rw", "x.py", cwd=d)[0], 3, "the script's own exit code")
        equal((content(d, "in/a.txt"), content(d, "in/new/er/b.txt")), (b"a+", b"b"))
        equal(sorted(os.listdir(d + "/in")), ["a.txt", "gone.txt", "new", "same.txt"])
        equal(os.stat(d + "/in/a.txt").st_mode & 0o777, 0o640)
        equal(os.stat(d + "/in/same.txt").st_ino, before, "it is not touched")
        # a link, and a file that was not handed in, are nobody's to replace
        write(d + "/mine", "mine")
        os.unlink(d + "/in/new/er/b.txt")
        os.symlink("../../../mine", d + "/in/new/er/b.txt")
        write(d + "/y.py", "import os\nos.makedirs('new/er', exist_ok=True)\n"
                           "open('new/er/b.txt', 'w').write('b')\n")
        code, out, err = run(ctx, *line, "--rw", "y.py", cwd=d)
        equal(code, 74)
        assert "in/new/er/b.txt: it exists; --force replaces it" in err, err
        equal(content(d, "mine"), b"mine")


@test
def files_beyond_the_bound_are_counted(ctx):
    text = "for i in range(150): open('f%d' % i, 'w').write('x')\n"
    with directory(x_py=text) as d:
        os.mkdir(d + "/in")
        code, out, err = run(ctx, "--socket", ctx.socket, "--dir", "in", "--rw", "x.py", cwd=d)
        equal(code, 0, err)
        left = int(re.search(r"left: (\d+) more files", err)[1])
        equal((len(os.listdir(d + "/in")) + left, left > 0), (150, True), err)


@test
def no_hidden_name_comes_back(ctx):
    """Programs obey files such as .git/config. A script does not write them, nor does --force."""
    text = ("import os\nfor name in '.bashrc', '.git/config', 'a/.git/hooks/b', 'a/__pycache__/c.pyc', "
            "'a/b.txt':\n    os.makedirs(os.path.dirname(name) or '.', exist_ok=True)\n"
            "    open(name, 'w').write('evil')\n")
    with directory(x_py=text) as d:
        write(d + "/in/.git/config", "mine")
        for more in [], ["--force"]:
            code, out, err = run(ctx, "--socket", ctx.socket, "--dir", "in", "--rw", *more, "x.py",
                                 cwd=d)
            equal(code, 0, err)
            equal(sorted(os.listdir(d + "/in")), [".git", "a"])
            equal((os.listdir(d + "/in/a"), os.listdir(d + "/in/.git")), (["b.txt"], ["config"]))
            equal(content(d, "in/.git/config"), b"mine")
            equal(err.count("not written back: in/"), 3, err)
            os.unlink(d + "/in/a/b.txt")


@test
def a_file_that_changes_meanwhile_is_left_alone(ctx):
    text = "open('a.txt', 'a').write('+')\nprint('x' * 300000)\n"
    with directory(x_py=text) as d:
        for more, code, left in ([], 74, b"other"), (["--force"], 0, b"a+"):
            write(d + "/in/a.txt", "a")
            script = subprocess.Popen(
                [client_program(ctx), "run", "--socket", ctx.socket, "--dir", "in", "--rw", *more,
                 "x.py"], cwd=d, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)
            equal(script.stdout.read(1), b"x")
            # it cannot end before its output is read
            write(d + "/in/a.txt", "other")
            err = script.communicate(timeout=ctx.seconds(60))[1].decode()
            equal((script.returncode, content(d, "in/a.txt")), (code, left), err)
            equal("it has changed here since it was handed in" in err, not more, err)


# ---- standard input and output ----

@test
def a_pipe_is_the_scripts_input(ctx):
    with directory(x_py="import sys\nprint(repr(sys.stdin.read()))\n", in_txt="file") as d:
        line = ["--socket", ctx.socket, d + "/x.py"]
        equal(run(ctx, *line, input=b"a\nb"), (0, "'a\\nb'\n", ""))
        equal(run(ctx, *line), (0, "''\n", ""))
        equal(run(ctx, "--no-stdin", *line, input=b"a"), (0, "''\n", ""))
        with open(d + "/in.txt", "rb") as f:
            equal(run(ctx, *line, stdin=f), (0, "'file'\n", ""))
        equal(run(ctx, *line[:2], "-", input=b"print(input())")[0], 1)


@test
def who_waits_for_input_says_so(ctx):
    reader, writer = os.pipe()
    with directory(x_py="import sys\nprint(repr(sys.stdin.read()))\n") as d:
        with subprocess.Popen([client_program(ctx), "run", "--socket", ctx.socket, d + "/x.py"],
                              stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            os.close(reader)
            assert b"--no-stdin" in p.stderr.readline()
            os.write(writer, b"late")
            os.close(writer)
            equal((p.stdout.read(), p.wait(ctx.seconds(60))), (b"'late'\n", 0))


@test
def all_output_is_passed_on(ctx):
    """As much as the service keeps; and where that is not all, it is an error."""
    text = "import sys\nfor i in range(%d): print(i, 'x' * 90)\n"
    want = "".join("%d %s\n" % (i, "x" * 90) for i in range(40000))
    with directory(x_py=text % 40000, raw_py="import sys\nsys.stdout.buffer.write("
                   "b'\\xff' + b'y' * 3000000)\n", e_py="import sys\nfor i in range(40000): "
                   "print(i, 'x' * 90, file=sys.stderr)\n") as d:
        code, out, err = run(ctx, "--socket", ctx.socket, d + "/x.py")
        equal((code, err, out == want), (0, "", True), len(out))
        code, out, err = run(ctx, "--socket", ctx.socket, d + "/e.py")
        equal((code, out, err == want), (0, "", True), len(err))
        write(d + "/x.py", text % 200000)
        code, out, err = run(ctx, "--socket", ctx.socket, d + "/x.py")
        equal(code, 74)
        assert "is missing" in err and out.startswith(want), (err, len(out))
        assert "bytes not shown" not in out, "in the middle of it"


@test(private=True)
def no_output_is_passed_on_twice(ctx):
    """Though more of it was shown before the answer than one part of what is kept has."""
    want = "".join("%d %s\n" % (i, "x" * 90) for i in range(140000))
    with ctx.private("[limits]\noutput_kb = 10240\n[results]\nspill_bytes = 64M\nkeep_bytes = 128M\nkeep_bytes_max = 256M\n") as s, \
            directory(x_py="for i in range(140000): print(i, 'x' * 90)\n") as d:
        code, out, err = run(ctx, "--socket", s.socket, d + "/x.py")
        equal((code, err, out == want), (0, "", True), len(out))


@test
def bytes_that_are_no_text_are_told(ctx):
    """Where a file or a program gets the output."""
    with directory() as d:
        for text, said in (("import sys; sys.stdout.buffer.write(b'a\\xff')", "binary data is kept in files"),
                           ("print('aé', end='')", "")):
            write(d + "/x.py", text)
            code, out, err = run(ctx, "--socket", ctx.socket, d + "/x.py")
            equal((code, out[0]), (0, "a"), err)
            assert said in err and (said or not err), err


# ---- a private supervisor ----

@test(private=True)
def without_a_service_there_is_a_private_one(ctx):
    big = "for i in range(200000): print(i, 'x' * 90)\n"
    want = "".join("%d %s\n" % (i, "x" * 90) for i in range(200000))
    with directory(x_py="print(6 * 7)\n", big_py=big) as d:
        equal(run(ctx, d + "/x.py", env=nowhere(d)), (0, "42\n", ""))
        code, out, err = run(ctx, d + "/big.py", env=nowhere(d))
        equal((code, err, out == want), (0, "", True), len(out))
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(d + "/mcp-pythond.sock")		# its service has ended
        equal(run(ctx, d + "/x.py", env=nowhere(d)), (0, "42\n", ""))
        code, out, err = run(ctx, "--socket", d + "/none", d + "/x.py", env=nowhere(d))
        equal((code, out), (69, ""))
        done = subprocess.run([client_program(ctx), "repl"], input="x = 6\nx * 7\n", text=True,
                              capture_output=True, timeout=ctx.seconds(120), env=nowhere(d))
        equal((done.returncode, done.stdout, done.stderr), (0, "42\n", ""))
        for words in ("--keep",), ("--session", "r-x"):		# would end with the private one
            done = subprocess.run([client_program(ctx), "repl", *words], input="6 * 7\n", text=True,
                                  capture_output=True, timeout=ctx.seconds(120), env=nowhere(d))
            equal((done.returncode, done.stdout), (69, ""), done.stderr)
            assert "cannot reach mcp-pythond" in done.stderr, done.stderr


@test(private=True)
def a_private_one_though_a_service_runs(ctx):
    with ctx.private() as s, directory(x_py="print(6 * 7)\n") as d:
        env = {**nowhere(d), "MCP_PYTHON_SOCKET": s.socket}
        before = set(descendants(os.getpid()))
        equal(run(ctx, "--private", d + "/x.py", env=env), (0, "42\n", ""))
        new = [p for p in descendants(os.getpid()) if p not in before
               and p not in descendants(s.process.pid)]
        equal(wait_gone(new, ctx.seconds(30)), [])


@test(private=True)
def a_private_one_lets_scripts_ask(ctx):
    with directory(x_py=ASKS) as d:
        with Terminal(ctx, "run", "--private", d + "/x.py") as t:
            t.expect(r"script> Your name\? ")
            t.type("Ada\n")
            equal(t.end(), 0)
            assert t.seen.endswith("Hello, Ada\n"), t.seen
        with Terminal(ctx, "run", "--private", d + "/x.py") as t:
            t.expect(r"script> Your name\? ")
            below = descendants(t.process.pid)
            assert below
            t.type("\x03")
            equal(t.end(), -2)
            equal(wait_gone(below, ctx.seconds(60)), [])


@test(private=True)
def why_a_private_one_fails_is_said(ctx):
    """A copy of the client beside a mcp-pythond that cannot start."""
    with directory(x_py="1\n") as d:
        shutil.copy(client_program(ctx), d + "/mcp-python")
        write(d + "/mcp-pythond", "#!/bin/sh\necho no \x1b[31mluck >&2\nexit 1\n")
        os.chmod(d + "/mcp-pythond", 0o755)
        done = subprocess.run([d + "/mcp-python", "run", "--private", d + "/x.py"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=ctx.seconds(60), env=nowhere(d))
        equal((done.returncode, done.stdout), (69, ""))
        assert "no " in done.stderr and "luck" in done.stderr and "\x1b" not in done.stderr, done


# ---- mcp-python repl ----

def piped(ctx, text, *options, socket=None, **more):
    done = subprocess.run([client_program(ctx), "repl", "--socket", socket or ctx.socket, *options],
                          input=text, capture_output=True, text=True, timeout=ctx.seconds(60),
                          **more)
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def session(ctx, **more):
    with Terminal(ctx, "repl", "--socket", ctx.socket, **more) as t:
        t.expect(">>> ")
        yield t


@test
def every_way_out_leaves(ctx):
    for text, want in (("exit()", 0), ("quit()", 0), ("exit", 0), ("quit", 0), ("\x04", 0),
                       ("import sys; sys.exit()", 0), ("raise SystemExit", 0), ("sys.exit(3)", 3),
                       ("exit(4)", 4)):
        with session(ctx) as t:
            t.type("import sys\n")
            t.expect(">>> ")
            t.type(text if text == "\x04" else text + "\n")
            equal(t.end(), want, text)
    equal(piped(ctx, "x = 1\nimport sys\nsys.exit()\nprint('on')\n"), (0, "", ""))
    code, out, err = piped(ctx, "import os\nos._exit(0)\nprint('on')\n")
    equal(out, "on\n", "os._exit() is undone")


@test
def tab_completes_from_the_live_state(ctx):
    with session(ctx) as t:
        t.type("import math; first_name = [1]\n")
        t.expect(">>> ")
        t.type("math.sq\t")
        t.expect(r"sqrt\(")
        t.type("16)\n")
        t.expect("\n4.0\n.*>>> ")
        t.type("first_\t")
        t.expect("first_name")
        t.type(".app\t")
        t.expect(r"append\(")
        t.type("2)\n")
        t.expect(">>> ")
        t.type("math.cos\t")
        t.expect(r"math.cos\(  math.cosh\(\n.*math.cos")
        t.type("\x15")				# the line is dropped
        t.type("%wh\t\n")
        t.expect("%whos\n.*first_name +list.*>>> ")
        t.type("if True:\n")
        t.expect(r"\.\.\. ")
        t.type("\tprint('indented')\n\n")
        t.expect("indented\n.*>>> ")
        t.type("first_name\n")
        t.expect(r"\n\[1, 2\]\n.*>>> ")
        t.type("exit()\n")
        equal(t.end(), 0)


@test
def completion_changes_nothing_and_cannot_steer(ctx):
    text = ("class C:\n    def __dir__(self): global seen; seen = 1; return ['x1', "
            "'x\\x1b[2J', 'x2']\n\n")
    with session(ctx) as t:
        t.type(text)
        t.expect(">>> ")
        t.type("c, seen = C(), 0\n")
        t.expect(">>> ")
        t.type("c.x\t")
        t.expect("c.x1  c.x2\n")
        t.type("\x15seen\n")
        t.expect("\n0\n.*>>> ")
        t.type("exit()\n")
        equal(t.end(), 0)
        assert b"\x1b[2J" not in t.log, t.log


@test
def what_is_pasted_is_taken_as_a_whole(ctx):
    code = ("def f(n):\n    if n:\n\n        return 'it is %d' % n\n\n    return 0\n\n"
            "f(7)\n")
    with session(ctx, term="xterm") as t:
        assert b"\x1b[?2004h" in t.log, t.log
        t.type("\x1b[200~" + code + "\x1b[201~")
        t.expect("'it is 7'.*>>> ")
        t.type("\x1b[200~for i in range(2):\n\n    print('turn', i)\x1b[201~")
        t.expect("turn', i")
        t.type("\n\n")
        t.expect("turn 0\n.*turn 1\n.*>>> ")
        t.type("\x1b[200~6 * 7\x1b[201~")
        t.type("\n")
        t.expect("42\n.*>>> ")
        t.type("exit()\n")
        equal(t.end(), 0)


@test
def commands_say_what_they_did(ctx):
    text = ("x = 1\n%checkpoint before\nx = 'much later'\n%whos\n%restore before\nx\n"
            "open('out.txt', 'w').write('new') and None\n%files\n%save out.txt o\n%save none\n"
            "%checkpoint\n%reset\n%help\n")
    with directory() as d:
        code, out, err = piped(ctx, text, cwd=d)
        equal((code, content(d, "o/out.txt")), (0, b"new"), err)
        for line in ("the state is kept as before; %restore before goes back to it",
                     "the state is that of before", "saved o/out.txt (3 bytes)",
                     "no cell has made or changed a file none", "everything is forgotten"):
            assert "mcp-python: " + line in err, err
        lines = out.splitlines()
        assert any(line.split() == ["x", "str", "'much", "later'"] for line in lines), out
        assert any(line.split() == ["3", "out.txt"] for line in lines), out
        for line in ("1", "before", "Python, a cell at a time; an empty line ends a block. Tab "
                     "completes names, and"):
            assert line in lines, out


@test
def names_of_files_may_have_blanks(ctx):
    text = ("for n in 'a é.txt', 'b\\n\\u202e': open(n, 'w').write('new') and None\n\n"
            "%files\n%save \"a é.txt\" 'o ü'\n%save 'a é.txt' 'o ü'\n%save a é.txt o\n%restore a b\n"
            "%checkpoint\n%run 'x y.py'\n")
    with directory() as d:
        os.mkdir(d + "/o ü")
        with open(d + "/x y.py", "w") as f:
            f.write("6 * 7\n")
        code, out, err = piped(ctx, text, cwd=d)
        equal((code, content(d, "o ü/a é.txt")), (0, b"new"), err)
        equal([line.split(None, 1) for line in out.splitlines()],
              [["3", "a é.txt"], ["3", "b\\n\\u202e"], ["42"]], err)
        equal(err.splitlines(), [
            "mcp-python: saved o ü/a é.txt (3 bytes)",
            "mcp-python: cannot save o ü/a é.txt: it exists",
            'mcp-python: %save: "o" is one word too many; a name with blanks needs quotes',
            'mcp-python: %restore: "b" is one word too many; a name with blanks needs quotes',
            "mcp-python: there are no checkpoints; %checkpoint NAME keeps the state under a name"])


@test
def the_session_knows_other_commands(ctx):
    code, out, err = piped(ctx, "%pwd\n%%bash\necho $((6 * 7))\necho again\n\nlen?\n%nothing\n")
    assert "/workspace" in out and "42\nagain\n" in out and "Return the number" in out, (out, err)
    assert "nothing" in err, err


@test
def files_run_as_cells_and_cells_are_counted_from_one(ctx):
    with directory(x_py="import math\nside = math.sqrt(16)\nprint('ran')\n", bad_py="\n1/0\n") as d:
        code, out, err = piped(ctx, "1/0\n%run x.py\nside\n%run bad.py\n%run none.py\n%run\n", cwd=d)
        equal(out, "ran\n4.0\n", err)
        for line in ('File "<cell 1>", line 1', 'File "<cell 4>", line 2', "none.py: No such file",
                     "%run FILE: one file is needed"):
            assert line in err, (line, err)


PNG = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Er"
       "kJggg==")
SHOWS = "import base64; display({'image/png': base64.b64decode('%s')}, raw=True)\n" % PNG


@test
def pictures_are_shown_or_saved(ctx):
    with directory() as d:
        code, out, err = piped(ctx, SHOWS, env=dict(os.environ, TMPDIR=d))
        path = re.search(r"a picture: (\S+)", err)[1]
        assert path.startswith(d), err
        equal(content(path), base64.b64decode(PNG))
    with session(ctx, term="xterm-kitty") as t:
        t.type(SHOWS)
        t.expect("\x1b_Ga=T,f=100,m=0;" + re.escape(PNG) + r"\x1b\\")
        t.expect(">>> ")
        t.type("exit()\n")
        equal(t.end(), 0)


def pixels_of(body):
    """What a terminal draws of sixels whose picture has two colours: for each row, the numbers."""
    width, height = map(int, re.match(r'"1;1;(\d+);(\d+)', body).groups())
    rows, top, x, colour = [[None] * width for _ in range(height)], 0, 0, None
    for count, sixel, number, move in re.findall(r"(?:!(\d+))?([?-~])|#(\d+)(?:;[\d;]+)?|([$-])", body):
        for _ in range(int(count or 1) if sixel else 0):
            for n in range(6):
                if ord(sixel) - 63 >> n & 1:
                    rows[top + n][x] = colour
            x += 1
        colour = int(number) if number else colour
        x, top = (0, top + 6 * (move == "-")) if move else (x, top)
    return rows


@test
def pictures_are_shown_by_sixel(ctx):
    """In a terminal that has it. A picture is converted in the session's jail, and what comes from
    there is characters of sixel, or the picture is saved."""
    if not importlib.util.find_spec("PIL"):
        raise Skip("python3-pil is not installed")
    draws = ("import base64, io; from PIL import Image; i = Image.new('RGB', (20, 13), 'red'); "
             "i.paste((0, 0, 255), (5, 3, 15, 9)); b = io.BytesIO(); i.save(b, 'PNG')\n")
    shows = "display({'image/png': b.getvalue()}, raw=True)\n"
    with directory() as d, session(ctx, more={"TERM_PROGRAM": "mintty", "TMPDIR": d}) as t:
        t.type(draws)
        t.expect(">>> ")
        t.type(shows)
        t.expect(r"\x1bPq\S+\x1b\\")
        body = re.search(rb"\x1bPq(\S+)\x1b\\", t.log)[1].decode()
        assert "#0;2;100;0;0" in body and "#1;2;0;0;100" in body, body
        equal(pixels_of(body), [[int(3 <= y < 9 and 5 <= x < 15) for x in range(20)] for y in range(13)])
        for evil in (r"print('\x1b[2J')", r"print('!99999@')", "None"):
            t.expect(">>> ")
            t.type("import PIL.Image; PIL.Image.open = lambda *a: %s\n" % evil)
            t.expect(">>> ")
            t.type(shows)
            t.expect(r"a picture: \S+ \(\d+ bytes\)")
        t.expect(">>> ")
        t.type("exit()\n")
        equal(t.end(), 0)
        assert b"\x1b[2J" not in t.log, t.log


@test
def a_progress_bar_is_redrawn(ctx):
    with session(ctx) as t:
        t.type("import sys\n")
        t.expect(">>> ")
        t.type("for i in range(3): sys.stderr.write('\\r%d of 2' % i) and sys.stderr.flush()\n\n")
        t.expect(">>> ")
        assert b"\r0 of 2\r1 of 2\r2 of 2\r\n" in t.log, t.log
        t.type("exit()\n")
        equal(t.end(), 0)


# ---- completion of the shell ----

@test
def bash_completes_what_help_lists(ctx):
    script = ("source %s; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); compopt() { :; }\n"
              "_mcp_python \"$1\" \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"\n"
              "printf '%%s\\n' \"${COMPREPLY[@]}\"\n"
              % os.path.join(HERE, "..", "..", "completions", "mcp-python"))

    def complete(*words):
        done = subprocess.run(["bash", "-c", script, "bash", client_program(ctx), *words],
                              capture_output=True, text=True, timeout=ctx.seconds(60))
        equal(done.stderr, "")
        return sorted(done.stdout.split())
    equal(complete("r"), ["repl", "resume", "run"])
    equal(complete("ap"), ["approvals", "approve"])
    equal(complete("run", "--f"), ["--file", "--folder", "--force"])
    equal(complete("audit", "show", "--ten"), ["--tenant"])
    equal(complete("token", "a"), ["add"])


# ---- ./quickstart ----

TOOLS = ("bash", "basename", "cat", "chmod", "cp", "dirname", "env", "id", "install", "mkdir", "mktemp",
         "nproc", "rm", "sed", "sh", "sleep", "tail", "tput")


@contextlib.contextmanager
def stand_ins(**more):
    """A tree with quickstart, a build that is there already, and a PATH of few programs. more: the
    text of further programs."""
    with directory() as top:
        for name in "configure.ac", "configure", "build/Makefile":
            write(os.path.join(top, name), "")
        write(top + "/build/.options", "--prefix=/usr --sysconfdir=/etc --libexecdir=/usr/libexec")
        programs = {"build/mcp-python": "echo \"$PWD: $*\"\nexit 7\n", "bin/make": "",
                    "bin/dpkg-query": "printf installed\n",
                    **{name.replace("__", "/").replace("_", "-"): text
                       for name, text in more.items()}}
        for name, text in programs.items():
            write(os.path.join(top, name), "#!/bin/sh\n" + text)
        for name in "configure", *programs:
            os.chmod(os.path.join(top, name), 0o755)
        for tool in TOOLS:
            if not os.path.exists(top + "/bin/" + tool):
                os.symlink(shutil.which(tool), top + "/bin/" + tool)
        shutil.copy(os.path.join(HERE, "..", "..", "quickstart"), top)
        yield top


@test
def the_units_of_a_schedule_work(ctx):
    """systemd finds no mistake in them, and the command of the service leaves a report of the day."""
    examples = os.path.join(HERE, "..", "..", "examples")
    with directory() as d:
        for name in ("report.service", "report.timer"):
            shutil.copy(os.path.join(examples, name), d)
        if not shutil.which("systemd-analyze"):
            raise Skip("systemd is not installed", missing=True)
        done = subprocess.run(["systemd-analyze", "verify", "--recursive-errors=no", os.path.join(d, "report.timer"),
                               os.path.join(d, "report.service")], capture_output=True, text=True)
        equal((done.returncode, [line for line in done.stderr.splitlines() if "report." in line]), (0, []), done.stderr)
        unit = content(d, "report.service").decode()
        words = re.search("^ExecStart=/bin/sh -c '(.*)'$", unit, re.M)[1].replace("%%", "%")
        program = client_program(ctx)
        env = {**os.environ, "STATE_DIRECTORY": d, "REPORT": os.path.join(examples, "sales_report.py"),
               "PATH": os.path.dirname(program) + ":" + os.environ["PATH"], "MCP_PYTHON_SOCKET": ctx.socket}
        done = subprocess.run(["/bin/sh", "-c", words], env=env, capture_output=True, text=True, timeout=ctx.seconds(120))
        equal(done.returncode, 0, done.stderr)
        day, = (name for name in os.listdir(d) if re.fullmatch(r"\d{4}-\d\d-\d\d", name))
        assert content(d, day, "output.txt"), "no report"
        write(os.path.join(d, "bad.py"), "open('left.csv', 'w').write('a')\nraise SystemExit(3)")
        done = subprocess.run(["/bin/sh", "-c", words], env={**env, "REPORT": os.path.join(d, "bad.py")},
                              capture_output=True, text=True, timeout=ctx.seconds(120))
        equal((done.returncode, content(d, day, "left.csv")), (3, b"a"), done.stderr)


@test
def quickstart_runs_files_of_the_caller(ctx):
    with directory(x_py="1\n") as d, stand_ins() as top:
        for words, want in ((("run", "x.py", "--", "a b"), "run --private x.py -- a b"),
                            (("repl",), "repl --private")):
            done = subprocess.run([top + "/quickstart", *words], cwd=d, capture_output=True,
                                  text=True, timeout=ctx.seconds(60), stdin=subprocess.DEVNULL,
                                  env={"PATH": top + "/bin"})
            equal((done.returncode, done.stdout),
                  (7, "%s: %s\n" % (os.path.realpath(d), want)), done.stderr)
        done = subprocess.run([top + "/quickstart", "run"], capture_output=True, text=True,
                              timeout=ctx.seconds(60))
        equal((done.returncode, done.stdout), (2, ""))
        assert "==>" not in done.stderr, "it began to build"


@test
def quickstart_says_what_to_install(ctx):
    """Without root and sudo: one line to hand over, and nothing was begun."""
    with stand_ins(bin__dpkg_query="[ \"$4\" != gcc ] && [ \"$4\" != make ] && printf installed\n",
                   bin__id="echo 1000\n") as top:
        done = subprocess.run([top + "/quickstart", "build"], capture_output=True, text=True,
                              timeout=ctx.seconds(60), env={"PATH": top + "/bin"})
        equal((done.returncode, done.stdout), (1, ""), done.stderr)
        equal(done.stderr.splitlines()[-1],
              "    apt-get update && apt-get install --no-install-recommends gcc make")


@test
def quickstart_is_short(ctx):
    """No line for each file; what a tool says is shown only if it fails."""
    with stand_ins(bin__make="echo \"$@\"\n", bin__autoreconf="echo installing\n") as top:
        os.unlink(top + "/configure")
        write(top + "/bin/autoreconf", "#!/bin/sh\necho installing >&2\ncp /bin/true configure\n")
        done = subprocess.run([top + "/quickstart", "build"], capture_output=True, text=True,
                              timeout=ctx.seconds(60), env={"PATH": top + "/bin"})
        equal((done.returncode, done.stderr), (0, ""))
        lines = [line for line in done.stdout.splitlines() if not line.startswith("==>")]
        equal(len(lines), 1, done.stdout)
        assert " -s " in lines[0] and "V=1" in lines[0], lines
        os.unlink(top + "/configure")
        write(top + "/bin/autoreconf", "#!/bin/sh\necho no m4 >&2\nexit 1\n")
        done = subprocess.run([top + "/quickstart", "build"], capture_output=True, text=True,
                              timeout=ctx.seconds(60), env={"PATH": top + "/bin"})
        equal((done.returncode, done.stderr), (1, "no m4\nquickstart: autoreconf failed\n"))


@test
def quickstart_serves_without_a_runtime_directory(ctx):
    """It makes a directory, says where clients connect, and removes it at the end."""
    with stand_ins(bin__id="echo 1000\n", build__mcp_pythond="echo \"$@\" >&2\n") as top:
        done = subprocess.run([top + "/quickstart", "serve"], capture_output=True, text=True,
                              timeout=ctx.seconds(60), env={"PATH": top + "/bin"})
        where = re.search(r"export MCP_PYTHON_SOCKET=(/tmp/mcp-pythond\.\w{6}/mcp\.sock)$",
                          done.stdout, re.M)
        assert done.returncode == 0 and where, done
        equal(done.stderr, "--socket %s\n" % where[1])
        assert not os.path.exists(os.path.dirname(where[1]))
        for env, words, want in (({"XDG_RUNTIME_DIR": "/run/user/1000"}, (), ""),
                                 ({}, ("--stdio",), "--stdio")):
            done = subprocess.run([top + "/quickstart", "serve", *words], capture_output=True,
                                  text=True, timeout=ctx.seconds(60),
                                  env={"PATH": top + "/bin", **env})
            equal((done.returncode, done.stderr), (0, want + "\n"))


@test(private=True, root=True)
def a_private_service_leaves_the_places_of_the_machines_one(ctx):
    """The configuration of the machine's service names files that only that service can use."""
    inside = ('mkdir /etc/mcp-pythond && printf "%b" "$1" >/etc/mcp-pythond/mcp-pythond.conf && '
              'shift && exec "$@"')
    with directory() as d:
        program = client_program(ctx)
        os.mkdir(d + "/over")
        os.chmod(d, 0o755)
        for user in ([], ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]):
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-c",
                 'mount -t tmpfs none "$0" && mkdir "$0/u" "$0/w" && '
                 'mount -t overlay -o "lowerdir=/etc,upperdir=$0/u,workdir=$0/w" none /etc && ' + inside,
                 d + "/over", "[audit]\\nfile = /nix/audit.jsonl\\n[admin]\\nsocket = /nix/a.sock\\n"
                 "approvals = /nix/approvals\\n[files]\\ndirectory = /nix/files\\n",
                 *user, program, "run", "--private", "-"],
                input="print('hello')", capture_output=True, text=True, timeout=120, check=False,
                env={**os.environ, "HOME": d})
            equal((done.returncode, done.stdout), (0, "hello\n"), "%r: %s" % (user, done.stderr))


if __name__ == "__main__":
    main(__doc__)
