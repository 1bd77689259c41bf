#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What people who work with data and their agents write, one input a row, with what is wanted.

A suite of tests/integration/run. cells.py and repl.py look into single things."""

import json
import re

from harness import Skip, equal, main, rows_done, test, tests
from mcpclient import RpcError
from repl import Session, begun
from toolsets import check_config

tests.clear()	# those of repl.py and toolsets.py

SOON = {"timeout_seconds": 60, "cpu_seconds": 60}	# what hangs fails by it
ANY = None	# whatever it prints


def value_of(o):
    return (o.result or {}).get("repr")


def there(client, *modules):
    """Whether all of them can be imported."""
    o = client.run("import importlib.util as u\nall(map(u.find_spec, %r))" % (modules,))
    return o.result["json"]


# ---- one cell ----

CELLS = (
    # a cell, its output, and the repr of its value
    # a semicolon behind the last expression
    ("3", "", "3"), ("3;", "", None), ("3 ; ", "", None), ("3;\n\n# the end\n", "", None), ("3; # shown?", "", None),
    ("3 # ;", "", "3"), ("';'", "", "';'"), ("';';", "", None), ("'''a;\n;'''", "", "'a;\\n;'"), ("(3);", "", None),
    ("(3,\n);", "", None), ("x = 1; x", "", "1"), ("x = 1; x;", "", None), ("x = 1;", "", None), ("'\\xe9;' + str(x);", "", None),
    ("f'{x};'", "", "'1;'"), ("print('said');", "said\n", None), ("3 \\\n;", "", None), ("for i in '1': i;", "", None),
    ("_", "", "'1;'"), ("await __import__('asyncio').sleep(0, 5);", "", None), ("await __import__('asyncio').sleep(0, 5)", "", "5"),
    ("len('abc');\r\n", "", None), ("%time 4;", ANY, None), ("%%time\n4;", ANY, None), ("lambda: 1;", "", None),
    # commands of notebooks
    ("!echo there", "there\n", None), ("x = !echo there\nx", "", "['there']"), ("%matplotlib inline\n" + "y = 1\n" * 40 + "y", "", "1"),
    ("%%time\n6 * 7", ANY, "42"), ("len?", ANY, None), ("%%capture\nprint('unheard')", ANY, None),
    ("```python\n6 * 7\n```", "", "42"), ("```\n6 * 7\n```", "", "42"), ("    x = 6\n    x * 7", "", "42"),
    ("%load_ext autoreload\n%autoreload 2\n7", "", "7"), ("%config InlineBackend.figure_format = 'retina'\n7", "", "7"),
    # more of IPython
    ("%who_ls", "", "['i', 'x', 'y']"), ("%who", "i  x  y\n", None), ("%whos", "i: str 1 = '1'\nx: int = 6\ny: int = 1\n", None),
    ("%%writefile new.txt\none\n", "Wrote new.txt\n", None), ("%%writefile -a new.txt\ntwo\n", "Appended to new.txt\n", None),
    ("%cat new.txt", "one\ntwo\n", None), ("%rm new.txt", "", None), ("files = %sx echo there\nfiles", "", "['there']"),
    ("%%file {y}.py\nimport sys\nran = [__name__, __file__, *sys.argv]\ny += 1", "Wrote 1.py\n", None),
    ("%run 1.py a 'b c'\nran, y", "", "(['__main__', '1.py', '1.py', 'a', 'b c'], 2)"), ("import os, sys\nsys.argv, '__file__' in globals()", "", "([''], False)"),
    ("%env HABIT=a b\nos.environ['HABIT']", "", "'a b'"), ("%env HABIT c", "", None), ("%env HABIT", "", "'c'"), ("%set_env HABIT {y}\n%env HABIT", "", "'2'"),
    ("%cd /tmp", "/tmp\n", None), ("cd -", "/workspace\n", None), ("cd -", "/tmp\n", None), ("%cd /workspace\n%rm 1.py", "/workspace\n", None),
    ("%%capture said\nprint('unheard')\nimport sys\nprint('neither', file=sys.stderr)\n9", "", None), ("said.stdout, said.stderr, str(said)", "", "('unheard\\n', 'neither\\n', 'unheard\\n')"),
    ("said.show()", ANY, None), ("%%html\n<b>x</b>", "", None), ("%%markdown\n*x*", "", None), ("%prun sum([1])", ANY, None), ("%%prun\nsum([1])", ANY, None),
    ("def doubled(n):\n    return 2 * n\n", "", None), ("doubled??", "def doubled(n):\n    return 2 * n\n", None), ("%psource doubled", "def doubled(n):\n    return 2 * n\n", None),
    ("len??", ANY, None), ("%tb", "no error yet\n", None), ("%lsmagic", ANY, None), ("%load_ext sql", "(extensions of IPython are not there, so %load_ext sql did nothing)\n", None),
    ("%precision 3\n1 / 3", "(values are shown in full here: write round(x, 3), or format(x, '.3f'))\n", "0.3333333333333333"),
    # a module that changes
    ("%%writefile part.py\ndef one(): return 1\nclass C: n = 1", "Wrote part.py\n", None), ("%load_ext autoreload\n%autoreload 2\nimport part\nfrom part import one as first, C", "", None),
    ("first(), part.one(), C.n", "", "(1, 1, 1)"), ("%%writefile part.py\ndef one(): return 22\nclass C: n = 22", "Wrote part.py\n", None), ("first(), part.one(), C.n", "", "(22, 22, 22)"),
    ("%autoreload 0\n!rm part.py", "", None),
    # commands without a mark, while nothing has their names
    ("mkdir -p d/e\ncd d\nls\npwd", "/workspace/d\ne\n", "'/workspace/d'"), ("ls", "e\n", None), ("ls -d", ".\n", None), ("pwd", "", "'/workspace/d'"),
    ("x = 5  # what ls shows\nls\nx", "e\n", "5"), ("rm -r *\nls -a1 'e'", "ls: cannot access 'e': No such file or directory\n", None),
    ("cd ..", "/workspace\n", None), ("ls = 3\nls -1", "", "2"), ("ls -1", "", "2"), ("!true\nls - 1", "", "2"), ("del ls", "", None), ("ls -d", ".\n", None),
    ("for rm in [1]: pass\nrm -1", "", "0"), ("def f(cat):\n    return cat\nf(4)", "", "4"), ("s = '''\nls\n'''\nlen(s)", "", "4"),
    ("s = '''\nls -l\n'''\n!echo x\nlen(s)", "x\n", "7"), ("rmdir d", "", None),
    # values and their echo
    ("import asyncio\nawait asyncio.sleep(0, 8)", "", "8"), ("9", "", "9"), ("_", "", "9"), ("None", "", None), ("_", "", "9"),
    ("for i in range(2): i", "", None), ("x = 5", "", None), ("display('shown')", ANY, None), ("if True:\n    7", "", None),
    ("def f():\n    return 4\nf()", "", "4"), ("import inspect\ninspect.getsource(f)", "", "'def f():\\n    return 4\\n'"),
)
# a cell, and the number of times that it is called
TIMED = (
    ("%timeit -n1 -r1 calls.append(1)", 1), ("%timeit -n 4 -r 2 calls.append(1)", 8), ("%timeit -r2 -n 4 calls.append(1)", 8),
    ("%timeit -n5 calls.append(1)", 15), ("%%timeit -n1 -r1\ncalls.append(1)", 1), ("%%timeit -n 2 -r 2 y = 7\ncalls.append(y)", 4),
    ("%%timeit -n3 -r1\nfor i in range(2):\n    calls.append(i)\n", 6), ("%timeit -n1 -r1 calls.append(-1)", 1),
)
WRONG_CELLS = (
    # a cell, the kind of its error, and what the answer says
    ("!pip install sixth", "UsageError", "No package can be installed"), ("%pip install sixth", "UsageError", "No package can be installed"),
    ("%conda install sixth", "UsageError", "No package can be installed"), ("pip install sixth", "UsageError", "No package can be installed"), ("x = 1\nconda install -y sixth\nx", "UsageError", "No package can be installed"),
    ("%timeit -n0 1", "UsageError", "-n of %timeit must be from 1"), ("%timeit -r 1001 1", "UsageError", "from 1 to 1000"),
    ("%timeit -o 1", "UsageError", "no other option"), ("%timeit -n " + "9" * 5000 + " 1", "UsageError", "from 1 to"),
    ("%timeit x x", "SyntaxError", "invalid syntax"), ("%nothing 1", "UsageError", "%nothing is not known here; write it in Python"),
    ("%reset -f", "UsageError", "call run_repl with reset: true"), ("%restart", "UsageError", "call run_repl with reset: true"), ("%xdel x", "UsageError", "write del NAME"), ("%debug", "UsageError", "sys.last_traceback"), ("%pdb on", "UsageError", "sys.last_traceback"),
    ("%load x.py", "UsageError", "%run FILE runs a file"), ("%%javascript\nalert(1)", "UsageError", "%%html shows HTML"), ("%store x", "UsageError", "write what has to outlive it to a file"),
    ("%%sql\nselect 1", "UsageError", "use sqlite3"), ("%%R\n1", "UsageError", "cells are Python, or %%bash"), ("%memit 1", "UsageError", "tracemalloc"),
    ("%run", "UsageError", "%run takes a file"), ("%run -i x.py", "UsageError", "and no option"), ("%run none.py", "FileNotFoundError", "none.py"), ("%prun -s time 1", "UsageError", "and no option"),
    ("%%writefile\nx", "UsageError", "needs the name of a file"), ("%%capture x\n1 / 0", "ZeroDivisionError", "line 2"), ("nothing_here??", "NameError", "name 'nothing_here' is not defined"),
    ("pip is it here", "SyntaxError", "invalid syntax"), ("x = ls", "NameError", "name 'ls' is not defined"),
    ("ls - x", "NameError", "name 'ls' is not defined"), ("rm(x)", "NameError", "name 'rm' is not defined"), ("lenn([])", "NameError", "Did you mean: 'len'?"),
    ("import no_such", "ModuleNotFoundError", "no_such"), ("x = (", "SyntaxError", "'(' was never closed"),
    ("[1,\n 2,\n 1 / 0]", "ZeroDivisionError", "line 3"), ("{}['a']['b']", "KeyError", "~~^^^^^"),
    ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('why') from e", "ValueError",
     "The above exception was the direct cause"),
    ("import warnings\nwarnings.warn('careful')\n1 / 0", "ZeroDivisionError", "UserWarning: careful\n  warnings.warn('careful')"),
    ("get_ipython()", "NameError", "write the command itself into the cell"), ("%time 1 / 0", "ZeroDivisionError", "division by zero"),
    ("_999", "NameError", "_ is the last value"), ("Out[999]", "KeyError", "_ is the last value"), ("In[-999]", "KeyError", "have the last 100 cells"),
    ("input('name? ')", "EOFError", "use run_script, which has an argument stdin"),
    ("import webbrowser_no as w", "ModuleNotFoundError", "webbrowser_no"),
)


@test
def one_cell(ctx):
    with begun(ctx) as s:
        for code, stdout, value in CELLS:
            o = s.call(code, 120, **SOON)
            equal((o.status, value_of(o)), ("ok", value), "%.80r: %.900r," % (code, o))
            if stdout is not ANY:
                failed = "(exit status 2)\n" if "cannot access" in stdout else ""
                equal((o.stdout, o.stderr), (stdout, failed), code)
        # A script has the same last value.
        for code in ("3;", "x = 1; x;", "';';"):
            equal(value_of(s.client.run(code)), None, code)
        equal(value_of(s.client.run("3 # ;")), "3")
    return "%d cells" % len(CELLS)


@test
def installs_that_nobody_sees_are_told(ctx):
    """pip's output may be captured and dropped: the answer says that nothing was installed, once."""
    run = "import subprocess, sys\nr = subprocess.run([sys.executable, '-m', 'pip', 'install', 'nonsuch-99'], capture_output=True)\n"
    told, advice = "(pip cannot install packages here)\n", "advice: pip cannot install here, nor by subprocess. No package can be installed"
    with begun(ctx) as s:
        for more in "print(r.returncode != 0)", "r":
            o = s.client.run(run + more, 120, **SOON)
            assert o.status == "ok" and o.stderr == told and advice in o.text, o
        o = s.call(run, 120, **SOON)
        assert o.stderr == told and advice in o.text, o
        equal(s.call("r.returncode != 0", **SOON).stderr, "")
        equal(s.client.run("import subprocess\nsubprocess.run(['echo', 'pip install six'], capture_output=True).returncode").stderr, "")


@test
def timeit_does_what_it_is_told(ctx):
    with begun(ctx, "calls = []") as s:
        for code, times in TIMED:
            o = s.call(code, 120, **SOON)
            assert o.status == "ok" and re.search(r"^[\d.]{1,5} ([nµm]?s) for each of \d+ loops?, best of \d\n", o.stdout), (code, o)
            equal(s.value("n = len(calls)\ncalls.clear()\nn"), str(times), code)


@test
def wrong_cells_say_what_is_wrong(ctx):
    with begun(ctx, "x = 1") as s:
        for code, kind, words in WRONG_CELLS:
            o = s.call(code, 120, **SOON)
            equal((o.status, o.error["type"].split(".")[-1]), ("error", kind), code[:80])
            assert words in o.text, "%.80s: no %r in %.1500s" % (code, words, o.text)
            assert "mcp-python>" not in o.text, o.text
    return "%d cells" % len(WRONG_CELLS)


# ---- In and Out ----

HISTORY = (
    # a cell, and the repr of its value; the first one is cell 1
    ("6 * 7", "42"), ("[1, 2]", "[1, 2]"), ("'x'", "'x'"), ("_, __, ___", "('x', [1, 2], 42)"),	# 4
    ("_1, Out[2], _3, Out[4]", "(42, [1, 2], 'x', ('x', [1, 2], 42))"), ("[_2 for i in '1'], Out[2] is _2", "([[1, 2]], True)"),	# 6
    ("x = 5", None), ("_i, In[7], _i7, In[-1], In[1]", "('x = 5', 'x = 5', 'x = 5', '_i, In[7], _i7, In[-1], In[1]', '6 * 7')"),	# 8
    ("1 / 0", None), ("_i, _ii[:2], _iii", "('1 / 0', '_i', 'x = 5')"), ("7 in Out, 9 in Out, 9 in In, Out.get(7)", "(False, False, True, None)"),	# 11
    ("def f(): return Out[1] + _1\nf()", "84"), ("%time _1", "42"), ("!echo {_1}\n_13", "42"),	# 14
    # what may hold others, or has an unknown size
    ("object", "<class 'object'>"), ("_", "<class 'object'>"), ("_.__name__", "'object'"), ("15 in Out, 16 in Out, 17 in Out", "(False, False, True)"),	# 18
    ("class A: pass\n[A()];", None), ("big = [b'x' * (5 << 20)]\nbig;", None), ("19 in Out, 20 in Out", "(False, False)"),	# 21
    ("grows = []", None), ("grows", "[]"), ("23 in Out", "True"), ("grows.append(bytes(5 << 20))", None), ("23 in Out", "False"),	# 26
    ("loop = []\nloop.append(loop)\nloop", "[[...]]"), ("27 in Out", "True"), ("list(range(5000))", ANY), ("29 in Out, len(_)", "(False, 5000)"),	# 30
    ("class M(type):\n    @property\n    def __module__(cls): raise SystemExit(3)\nclass N(metaclass=M): pass\nn = [N()]\nn", ANY), ("31 in Out, _ is n", "(False, True)"),	# 32
    # they are the session's
    ("_1 = 'mine'\nOut[1], _1", "(42, 'mine')"), ("del _1\n_1", "42"), ("Out = 3\nOut", "3"), ("del Out\nOut[1]", "42"), ("Out.clear()\nlen(Out)", "0"), ("len(Out)", "1"),
    ("Out['x'] = 4\nlen(Out)", "3"), ("Out[object()] = object()\nOut['y'] = object()\nNone", None), ("'y' in Out, 'x' in Out", "(False, True)"),
)
WITH_PACKAGES = (
    # a value of numpy or pandas, and whether it is kept
    ("np.arange(3)", True), ("np.float64(2)", True), ("np.array(['a', None], dtype=object)", True), ("np.zeros(1 << 20)", False), ("np.zeros(1 << 20)[:2]", False),
    ("np.frombuffer(bytes(8 << 20))[:2]", False), ("np.frombuffer(bytes(8))", True), ("np.frombuffer(bytearray(8))", False), ("np.array([object()])", False), ("np.ma.array([1])", False),
    ("pd.DataFrame({'a': [1, 2], 'b': ['x', 'y'], 'c': pd.date_range('2026-01-01', periods=2)})", True), ("pd.Series([1.5], name='s')", True),
    ("pd.DataFrame(np.zeros((1 << 17, 8)))", False), ("pd.DataFrame(np.zeros((1 << 17, 8))).head(2)", False), ("pd.Series([object()])", False),
    ("pd.DataFrame({'a': [1, 2], 'b': [3, 4]}).groupby(['a', 'b']).size()", True), ("pd.Timestamp('2026-01-01')", True), ("pd.Series(['a'] * 5000)", False),
)


@test
def history_is_kept(ctx):
    with begun(ctx, "6 * 7") as s:
        for code, value in HISTORY[1:]:
            o = s.call(code, 120, **SOON)
            equal((o.status, o.state), ("error" if code == "1 / 0" else "ok", "kept"), "%s: %.900r" % (code, o))
            if value is not ANY:
                equal(value_of(o), value, "%.80r: %.900r," % (code, o))
    return "%d cells" % len(HISTORY)


@test
def history_is_bounded(ctx):
    held = "import gc\nsum(1 for o in gc.get_objects() if type(o) is list and len(o) == 777)"
    with begun(ctx, "[0] * 777") as s:
        equal(s.value("import gc\n" + held), "1")
        for i in range(110):
            s.well("[%d] * 7" % i)
        equal(s.value(held), "0")
        equal(s.value("len(In), len(Out), [n for n in ('_1', '_i1', '_20') if hasattr(__builtins__, n)]"), "(100, 100, ['_20'])")
        # Text of a megabyte, and values of many items, take the place of others.
        for letter in "xy":
            s.well("'''%s''';" % (letter * (900 << 10)))
        assert int(s.value("len(In)")) < 5
        for i in range(3):
            s.well("list(range(%d, %d))" % (1000 * i, 1000 * i + 900))
        equal(s.value("sum(1 for v in Out.values() if type(v) is list and len(v) == 900)"), "2")
        # A cell that is undone leaves nothing. One that fails for memory empties Out.
        equal(s.call("111\nimport os\nos.abort()", 120, **SOON).state, "rolled_back")
        equal(s.value("any('os.abort' in text for text in list(In.values())[:-1])"), "False")
        equal(s.call("b'x' * (1 << 40)", 120, **SOON).state, "kept")
        equal(s.value("len(Out)"), "0")
        # A checkpoint has its own.
        s.well("1234", checkpoint="c")
        s.well("5678")
        b = s.branch("_", restore="c")
        equal((b.value("_"), s.value("_")), ("1234", "5678"))


@test
def history_of_packages(ctx):
    with begun(ctx, "1") as s:
        if not there(s.client, "numpy", "pandas"):
            raise Skip("numpy or pandas is not installed", missing=True)
        s.well("import numpy as np, pandas as pd", 120, **SOON)
        for code, kept in WITH_PACKAGES:
            equal(s.call(code, 120, **SOON).status, "ok", code)
            equal(s.value("max(Out, default=0) == max(In) - 1"), str(kept), code)
    return "%d values" % len(WITH_PACKAGES)


# ---- the second cell ----

SERVER = ("import http.server, threading, urllib.request\nserver = http.server.HTTPServer(('127.0.0.1', 0),"
          " http.server.SimpleHTTPRequestHandler)\nport = server.server_address[1]\n"
          "threading.Thread(target=server.serve_forever, daemon=True).start()")
ECHO = ("import asyncio\nasync def on(r, w):\n    w.write(await r.readline())\n    await w.drain()\n    w.close()\n"
        "s = await asyncio.start_server(on, '127.0.0.1', 0)\nport = s.sockets[0].getsockname()[1]")
OPENED = "f = open('n.txt', 'w+')\nk = f.write('abcdef')\nk = f.seek(2)"
TWO_CELLS = (
    # the first cell, the second, and the repr of its value
    ("import threading, time\nstop = threading.Event()\nt = threading.Thread(target=stop.wait)\nt.start()", "t.is_alive()", "True"),
    ("import queue, threading\nq, done = queue.Queue(), []\ndef work():\n    while True:\n        done.append(q.get())\n        q.task_done()\n"
     "threading.Thread(target=work, daemon=True).start()\nq.put(1)", "q.put(2)\nq.join()\ndone", "[1, 2]"),
    ("from concurrent.futures import ThreadPoolExecutor\nex = ThreadPoolExecutor(1)\nex.submit(abs, -1).result()", "ex.submit(abs, -2).result()", "2"),
    ("from concurrent.futures import ThreadPoolExecutor\nimport threading\ngo = threading.Event()\nex = ThreadPoolExecutor(1)\n"
     "f = ex.submit(lambda: go.wait() and 5)", "go.set()\nf.result()", "5"),
    ("from multiprocessing import Pool\np = Pool(2)\np.map(abs, [-1])", "p.map(abs, [-2])", "[2]"),
    ("from concurrent.futures import ProcessPoolExecutor\np = ProcessPoolExecutor(2)\nlist(p.map(abs, [-1]))", "list(p.map(abs, [-2]))", "[2]"),
    (SERVER, "urllib.request.build_opener(urllib.request.ProxyHandler({})).open('http://127.0.0.1:%d/' % port, timeout=30).status", "200"),
    ("import subprocess\np = subprocess.Popen(['cat'], stdin=-1, stdout=-1)", "p.poll(), p.communicate(b'x')[0], p.returncode", "(None, b'x', 0)"),
    ("import asyncio\nt = asyncio.create_task(asyncio.sleep(0, 'late'))", "await t", "'late'"),
    (ECHO, "r, w = await asyncio.open_connection('127.0.0.1', port)\nw.write(b'hi\\n')\nawait r.readline()", "b'hi\\n'"),
    ("import asyncio\nq = asyncio.Queue()\nw = asyncio.create_task(q.get())\nawait asyncio.sleep(0)", "q.put_nowait(4)\nawait w", "4"),
    ("import asyncio\nl = asyncio.Lock()\nawait l.acquire()", "l.release()\nasync with l: pass\nl.locked()", "False"),
    ("import asyncio\nawait asyncio.sleep(0)", "loop = asyncio.get_event_loop()\nloop.is_closed()", "False"),
    ("import asyncio\nasync def f(): return 6\nasyncio.run(f())", "asyncio.run(f())", "6"),
    ("import asyncio\nawait asyncio.sleep(0)", "asyncio.run(asyncio.sleep(0, 6))", "6"),
    (OPENED, "f.read(2), f.tell()", "('cd', 4)"),
    ("import os\nfd = os.open('fd', os.O_RDWR | os.O_CREAT)\nk = os.write(fd, b'abc')", "os.lseek(fd, 0, os.SEEK_CUR)", "3"),
    ("def g():\n    yield from range(9)\ng = g()\nnext(g)", "next(g)", "1"),
    ("import sqlite3\nd = sqlite3.connect(':memory:')\nc = d.execute('create table t (n)')\nc = d.execute('insert into t values (3)')",
     "d.in_transaction, d.execute('select n from t').fetchone()", "(True, (3,))"),
    ("import sqlite3\nd = sqlite3.connect('w.db')\nc = d.execute('pragma journal_mode = wal')\nc = d.execute('create table t (n)')\n"
     "c = d.executemany('insert into t values (?)', [(1,), (2,)])\nd.commit()\nc = d.execute('select n from t')\nc.fetchone()", "c.fetchone()", "(2,)"),
    ("import random\nrandom.seed(5)\na = [random.random() for i in range(2)]\nrandom.seed(5)\nb = random.random()", "[b, random.random()] == a", "True"),
    ("import tempfile\nd = tempfile.TemporaryDirectory()", "import os\nos.path.isdir(d.name)", "True"),
    ("6 * 7", "_", "42"), ("def f():\n    return 1", "import inspect\ninspect.getsource(f)", "'def f():\\n    return 1\\n'"),
    ("def f():\n    1 / 0", "import traceback\ntry:\n    f()\nexcept Exception: said = traceback.format_exc()\n'    1 / 0' in said", "True"),
    ("import threading\nl = threading.Lock()\nl.acquire()", "l.release()\nl.acquire(blocking=False)", "True"),
    ("import signal\nseen = []\nk = signal.signal(signal.SIGUSR1, lambda *a: seen.append(1))", "signal.raise_signal(signal.SIGUSR1)\nseen", "[1]"),
    ("import os\nos.environ['MINE'] = 'x'\nos.chdir('/tmp')", "os.environ['MINE'], os.getcwd()", "('x', '/tmp')"),
    ("from __future__ import annotations", "def f(x: nothing): pass\nf.__annotations__", "{'x': 'nothing'}"),
    ("import sys\nsys.path.insert(0, '/workspace')\nk = open('mine_.py', 'w').write('V = 1')", "import mine_\nmine_.V", "1"),
    ("class A:\n    pass\na = A()\na.n = [1]\nb = a", "b.n.append(2)\na.n", "[1, 2]"),
    ("1 / 0", "x = 2\nx", "2"), ("x = 1\n1 / 0", "x", "1"), ("x = 1\nimport sys; sys.exit(3)", "x", "1"),
    # with packages
    ("import numpy as np\nnp.random.seed(1)\na = np.random.rand(2)\nnp.random.seed(1)\nb = np.random.rand()", "[b, np.random.rand()] == list(a)", "True"),
    ("import numpy as np\nr = np.random.default_rng(1)\nk = r.random()", "r.random() == np.random.default_rng(1).random(2)[1]", "True"),
    ("import numpy as np\nr = np.random.default_rng(1)\nl = r.bit_generator.lock\nk = l.acquire()", "l.release()\n0 <= r.random() < 1", "True"),
    ("import lxml.etree as e\nr = e.fromstring('<a><b/></a>')", "r[0].tag, len(r)", "('b', 1)"),
    ("import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nk = ax.plot([1, 2])", "len(fig.axes[0].lines), plt.get_fignums()", "(1, [])"),
    ("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})", "df['b'] = df.a * 2\ndf.b.sum()", "6"),
)


@test
def the_second_cell_finds_it(ctx):
    done, missing = 0, set()
    with ctx.client(timeout=120) as client:
        for first, second, wanted in TWO_CELLS:
            needs = re.match(r"import (numpy|lxml|matplotlib|pandas)", first)
            if needs and not there(client, needs[1]):
                missing.add(needs[1])
                continue
            s = Session(client)
            o = s.call(first, 120, **SOON)
            assert o.state == "kept", (first, o)
            o = s.call(second, 120, **SOON)
            equal((o.status, value_of(o)), ("ok", wanted), "%s: %.900r," % (first, o))
            s.call(close=True)
            done += 1
    return rows_done(done, TWO_CELLS, missing)


ENDS = (
    # how a cell ends that had done x = 2, its statuses, and what x is then
    ("while True: pass", ("timeout",), "2"), ("import ctypes; ctypes.string_at(0)", ("crashed",), "1"),
    ("import os; os._exit(3)", ("error",), "1"), ("import os; os.abort()", ("crashed",), "1"),
    ("import os; os.kill(os.getpid(), 9)", ("killed",), "1"), ("import os, signal; os.kill(os.getpid(), 15); signal.pause()", ("killed",), "1"),
    ("l = []\nwhile True: l.append(bytearray(b'x' * (1 << 20)))", ("memory_limit", "error"), "1 or 2"),
    ("1 / 0", ("error",), "2"), ("import sys; sys.exit(1)", ("error",), "2"), ("x.nothing", ("error",), "2"),
    ("bytearray(1 << 40)", ("error", "memory_limit"), "2"), ("raise KeyboardInterrupt", ("error",), "2"),
    ("def f(): f()\nf()", ("error",), "2"), ("import sys; sys.exit()", ("ok",), "2"),
)


@test
def how_cells_end(ctx):
    with begun(ctx, "x = 1", memory_mb=256) as s:
        for end, statuses, value in ENDS:
            s.well("x = 1")
            o = s.call("x = 2\n" + end, 120, timeout_seconds=2 if "while True: pass" in end else 60, cpu_seconds=60)
            assert o.status in statuses, (end, o)
            if value != "1 or 2":
                equal((o.state, s.value("x")), ("rolled_back" if value == "1" else "kept", value), end)


# ---- scripts ----

SHARED = ("from multiprocessing import shared_memory as m\ns = m.SharedMemory(create=True, size=8)\ns.buf[0] = 7\nt = m.SharedMemory(s.name)\n"
          "v = t.buf[0]\nt.close(); s.close(); s.unlink()\nv")
POOL = "import multiprocessing as m\n\nif __name__ == '__main__':\n    with m.get_context(%r).Pool(2) as p:\n        print(p.map(abs, [-1, -2]))"
CSV = [{"path": "in.csv", "text": "day,shop,sold\n2026-01-01,a,2\n2026-01-01,b,3\n2026-01-02,a,5\n"}]
SCRIPTS = (
    # a script, the modules that it needs, its output, and the repr of its value; in.csv is there
    ("import csv\nsum(int(r['sold']) for r in csv.DictReader(open('in.csv')))", (), "", "10"),
    ("import json\njson.loads(json.dumps({'a': [1, None, '\xe4']}))", (), "", "{'a': [1, None, '\xe4']}"),
    ("import zoneinfo, datetime\ndatetime.datetime(2026, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).utcoffset().seconds", (), "", "7200"),
    ("print('\u4f60\u597d \U0001f600'[::-1])", (), "\U0001f600 \u597d\u4f60\n", None),
    ("import sqlite3\nd = sqlite3.connect('x.db')\nd.execute('create table t (n)')\nd.execute('insert into t values (3)')\nd.commit()\n"
     "d.execute('select sum(n) from t').fetchone()", (), "", "(3,)"),
    ("import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return n * 2\nawait asyncio.gather(f(1), f(2))", (), "", "[2, 4]"),
    ("import asyncio\nasync def f(): print('ran')\nasyncio.run(f())", (), "ran\n", None),
    ("import threading\nl = []\nt = [threading.Thread(target=l.append, args=(i,)) for i in range(4)]\n[x.start() for x in t]\n[x.join() for x in t]\nsorted(l)",
     (), "", "[0, 1, 2, 3]"),
    ("import subprocess\nsubprocess.run('printf \"b\\na\\n\" | sort | head -1', shell=True, stdout=-1).stdout", (), "", "b'a\\n'"),
    ("import subprocess\nprint(subprocess.check_output(['python3', '-c', 'print(6*7)'], text=True))", (), "42\n\n", None),
    ("import subprocess\np = subprocess.Popen(['sleep', '600'])\np.terminate()\np.wait()", (), "", "-15"),
    *((POOL % way, (), "[1, 2]\n", None) for way in ("fork", "spawn", "forkserver")),
    ("from multiprocessing import Manager\nwith Manager() as m:\n    d = m.dict(a=1)\n    print(dict(d))", (), "{'a': 1}\n", None),
    (SHARED, (), "", "7"), ("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [])", (), "", "set()"),
    ("from concurrent.futures import ProcessPoolExecutor as P\nwith P(2) as p: print(list(p.map(abs, [-1])))", (), "[1]\n", None),
    ("import tempfile, pathlib\nwith tempfile.TemporaryDirectory() as d:\n    (pathlib.Path(d) / 'x').write_text('y')\n    print(sorted(p.name for p in pathlib.Path(d).iterdir()))",
     (), "['x']\n", None),
    ("import zipfile\nwith zipfile.ZipFile('a.zip', 'w') as z: z.write('in.csv')\nzipfile.ZipFile('a.zip').namelist()", (), "", "['in.csv']"),
    ("import ctypes.util\nbool(ctypes.util.find_library('c'))", (), "", "True"),
    ("import socket\ns = socket.create_server(('127.0.0.1', 0))\nc = socket.create_connection(s.getsockname())\na, _ = s.accept()\nc.sendall(b'x')\na.recv(1)",
     (), "", "b'x'"),
    ("import sys, os, getpass, platform, locale\n[getpass.getuser(), platform.system(), sys.stdout.encoding, os.getcwd()]", (), "",
     "['python', 'Linux', 'utf-8', '/workspace']"),
    ("import venv, sys\nsys.prefix == sys.base_prefix", (), "", "True"),
    # hooks, as Python has them
    ("import sys, io\nsys.stderr = io.StringIO()\nsys.excepthook(1, '1', 1)\ns, sys.stderr = sys.stderr.getvalue(), sys.__stderr__\ns.strip()", (), "",
     "'TypeError: print_exception(): Exception expected for value, str found'"),
    ("import sys\ntry: sys.unraisablehook(ValueError())\nexcept TypeError as e: print(e)", (),
     "sys.unraisablehook argument type must be UnraisableHookArgs\n", None),
    # with packages
    ("import pandas as pd\ndf = pd.read_csv('in.csv', parse_dates=['day'])\ndf.groupby('shop').sold.sum().to_dict()", ("pandas",), "", "{'a': 7, 'b': 3}"),
    ("import pandas as pd\ndf = pd.read_csv('in.csv')\ndf.pivot(index='day', columns='shop', values='sold').a.tolist()", ("pandas",), "", "[2.0, 5.0]"),
    ("import pandas as pd\nr = pd.Series(range(4), pd.date_range('2026-01-01', periods=4)).resample('2D').sum()\nr.tolist()", ("pandas",), "", "[1, 5]"),
    ("import numpy as np\nnp.linalg.solve(np.eye(2) * 2, [2, 4]).tolist()", ("numpy",), "", "[1.0, 2.0]"),
    ("from scipy import stats\nround(stats.ttest_1samp([1, 2, 3], 2).pvalue, 3)", ("scipy",), "", "1.0"),
    ("import sympy as s\nx = s.symbols('x')\ns.diff(s.sin(x) * x, x)", ("sympy",), "", "x*cos(x) + sin(x)"),
    ("from PIL import Image\nImage.new('RGB', (4, 3)).save('a.png')\nImage.open('a.png').size", ("PIL",), "", "(4, 3)"),
    ("import lxml.html as h\nh.fromstring('<p>a<b>c</b></p>').text_content()", ("lxml",), "", "'ac'"),
    ("import psutil\n[psutil.Process().name() != '', psutil.virtual_memory().total > 0, len(psutil.cpu_percent(percpu=True)) > 0, psutil.boot_time() > 0]",
     ("psutil",), "", "[True, True, True, True]"),
    ("from joblib import Parallel, delayed\nParallel(n_jobs=2)(delayed(abs)(-i) for i in range(3))", ("joblib",), "", "[0, 1, 2]"),
    ("import dask\ndask.delayed(abs)(-1).compute(scheduler='threads')", ("dask",), "", "1"),
    ("import zmq\nc = zmq.Context()\ns = c.socket(zmq.REP)\np = s.bind_to_random_port('tcp://127.0.0.1')\nr = c.socket(zmq.REQ)\nr.connect('tcp://127.0.0.1:%d' % p)\n"
     "r.send(b'x')\ns.recv()", ("zmq",), "", "b'x'"),
    ("import openpyxl\nw = openpyxl.Workbook()\nw.active['A1'] = 4\nw.save('a.xlsx')\nopenpyxl.load_workbook('a.xlsx').active['A1'].value", ("openpyxl",), "", "4"),
    ("import networkx as n\nn.shortest_path(n.path_graph(3), 0, 2)", ("networkx",), "", "[0, 1, 2]"),
    ("import sklearn.cluster as c, numpy as np\nk = c.KMeans(2, n_init=1).fit(np.r_[np.zeros((5, 1)), np.ones((5, 1))])\nsorted(np.bincount(k.labels_).tolist())",
     ("sklearn",), "", "[5, 5]"),
    ("from sklearn.model_selection import GridSearchCV\nfrom sklearn.linear_model import Ridge\nimport numpy as np\n"
     "g = GridSearchCV(Ridge(), {'alpha': [1, 2]}, n_jobs=2, cv=2).fit(np.eye(8), np.ones(8))\ng.n_splits_", ("sklearn",), "", "2"),
    ("import statsmodels.api as s, numpy as np\nround(float(s.OLS([2., 4., 6.], np.array([1., 2., 3.])).fit().params[0]), 6)", ("statsmodels",), "", "2.0"),
)


@test
def scripts_do_as_they_should(ctx):
    done = 0
    with ctx.client(timeout=120) as client:
        missing = {m for m in {m for row in SCRIPTS for m in row[1]} if not there(client, m)}
        for script, needs, stdout, value in SCRIPTS:
            if missing.isdisjoint(needs):
                o = client.run(script, 120, files=CSV, **SOON)
                equal((o.status, o.stdout, o.stderr, value_of(o)), ("ok", stdout, "", value), "%s: %.900r," % (script, o))
                done += 1
    return rows_done(done, SCRIPTS, missing)


# ---- calls ----

def file(**more):
    return {"files": [dict({"path": "a", "text": "x"}, **more)]}


WRONG_CALLS = (
    # a tool, arguments (beside a script or cell), and what the refusal says
    ("run_script", {"script": None}, "script must be a string"), ("run_script", {"script": 1}, "script must be a string"),
    ("run_script", {"script": "a\0"}, "NUL at byte 1, in line 1"), ("run_script", {"code": "1"}, "code is not an argument of run_script; there are script,"),
    ("run_script", {"timeout": 3, "session_id": "x", "memory": 64}, "timeout (use timeout_seconds), session_id, memory (use memory_mb) are not arguments of run_script; there are"),
    ("run_script", {"requirements": ["x"]}, "requirements (use dependencies) is not an argument"), ("job", {"job_id": "j"}, "job_id (use id) is not"),
    ("run_repl", {"sessionId": "s", "time_out": 3}, "sessionId (use session), time_out (use timeout_seconds) are not arguments of run_repl"),
    ("run_repl", {"script": "1"}, "script is not an argument of run_repl; there are code,"),
    ("run_script", dict.fromkeys("abcde" * 30, 1) | {"x" * 600: 1}, " are not arguments of run_script; there are script,"),
    ("run_script", {"colour": 1}, "colour is not an argument of run_script; there are script,"),
    ("run_script", {"timeout_seconds": "soon"}, "a number from 0.1 to 600"), ("run_script", {"timeout_seconds": 0}, "a number from 0.1 to 600"),
    ("run_script", {"timeout_seconds": 601}, "at most 600 here; 601 was asked for"),
    ("run_script", {"memory_mb": 1}, "an integer from 16 to 2048"), ("run_script", {"memory_mb": 99999}, "at most 2048 here; 99999 was asked for"),
    ("run_script", {"cpu_seconds": 0}, "a number from 0.1 to 600"), ("run_script", {"pids": 0}, "an integer from 1 to 512"),
    ("run_script", {"stdin": 1}, "stdin must be a string"), ("run_script", {"args": "x"}, "args must be an array of strings"),
    ("run_script", {"args": [1]}, "args: item 0 must be a string"), ("run_script", {"files": "x"}, "an array of objects with path and text, base64 or uri"),
    ("run_script", {"files": [{}]}, "files: item 0: it must be an object with a string path"),
    ("run_script", file(path="/abs"), "relative to /workspace"), ("run_script", file(path="../x"), "path may not have . or .. in it"),
    ("run_script", {"files": file()["files"] * 2}, "files: item 1: path is that of another item"),
    ("run_script", file(base64="eA=="), "exactly one of text, base64 and uri"), ("run_script", {"files": [{"path": "a", "base64": "!"}]}, "is not base64"),
    ("run_script", file(mode=3), "there are path, text, base64, uri and sha256"),
    ("run_script", {"profile": "none"}, "no profile of that name; there are basic, data"), ("run_script", {"profile": 3}, "profile must be a string"),
    ("run_script", {"profile": "none", "dependencies": ["x"]}, "there are basic, data"),
    ("run_script", {"dependencies": ["-x"]}, "'-x' is not a requirement"), ("run_script", {"dependencies": [1]}, "dependencies: item 0 must be a string"),
    ("run_script", {"tier": "x"}, "tier must be basic, data_science, network or filesystem"),
    ("run_script", {"allowed_imports": ["a b"]}, "item 0 is not the name of a module"), ("run_script", {"python_version": "3 11"}, "python_version must be"),
    ("run_script", {"idempotency_key": "k" * 200}, "1 to 128 characters"), ("run_script", {"spill": 3}, "spill must be true or false"),
    ("run_script", {"background": "x"}, "background must be true or false"), ("run_script", {"volume": "v"}, "this service has no volumes"),
    ("run_script", {"script_name": 3}, "script_name must be"), ("run_script", {"text_tokens": -1}, "an integer from 100 to 250000"),
    ("run_repl", {"code": 1}, "code must be a string"), ("run_repl", {"session": 3}, "session must be a string of 1 to 128"),
    ("run_repl", {"session": "mine"}, "a call without session begins one"), ("run_repl", {"restore": "none"}, "restore needs a session"),
    ("run_repl", {"branch": True}, "branch needs a session"), ("run_repl", {"reset": True}, "reset needs a session"),
    ("run_repl", {"inspect": True, "code": None}, "inspect needs a session"), ("run_repl", {"branch": "x"}, "branch must be true or false"),
    ("run_repl", {"checkpoint": "a b"}, "1 to 64 letters, digits"), ("run_repl", {"snapshot": False, "checkpoint": "c"}, "with snapshot: false a session has none"),
    ("run_repl", {"stdin": "x"}, "stdin is not an argument of run_repl; there are code,"), ("run_repl", {"profile": "none"}, "there are basic, data"),
    ("run_repl", {"memory_mb": 1}, "an integer from 16 to 2048"), ("run_repl", {"timeout_seconds": 9999}, "at most 600 here"),
    ("job", {"action": "wait"}, "id is required"), ("job", {"id": "x"}, "no such job"),
    ("job", {"id": "x", "action": "y"}, "one of status, output, wait, cancel"), ("job", {"id": "j-x", "action": "status"}, "no such job"),
    ("validate_script", {"script": None}, "script must be a string"), ("validate_script", {"dependencies": "x"}, "an array"),
    ("check_environment", {"profile": "none"}, "there are basic, data"), ("check_environment", {"x": 1}, "there are profile, modules"),
)


@test
def wrong_calls_say_what_is_right(ctx):
    """The argument, and what is allowed."""
    code = {"run_script": "script", "run_repl": "code", "validate_script": "script"}
    with ctx.client() as client:
        for name, arguments, words in WRONG_CALLS:
            given = dict({code[name]: "1"} if name in code else {}, **arguments)
            result = client.ask("tools/call", {"name": name, "arguments": given})
            text = result["content"][0]["text"]
            assert result["isError"] and words in text, "%s %r: no %r in %.600r" % (name, arguments, words, text)
        for name in ("python", "run_python", "Run_Script", "execute_code"):
            try:
                client.ask("tools/call", {"name": name, "arguments": {}})
            except RpcError as e:
                assert e.code == -32602 and "there are run_script, run_repl, " in str(e), e
            else:
                raise AssertionError(name)
        for nothing in ({"session": None}, {"session": ""}, {"profile": None}, {"profile": ""}, {"checkpoint": ""},
                        {"timeout_seconds": None}, {"files": None}, {"memory_mb": None}, {"stdin": None}):
            if "stdin" not in nothing:
                s = Session(client)
                equal(value_of(s.well("1", **nothing)), "1", nothing)
                s.well(close=True)
            if not {"session", "checkpoint"} & set(nothing):
                equal(value_of(client.run("1", **nothing)), "1", nothing)
    return "%d calls" % len(WRONG_CALLS)


@test
def a_report_comes_back(ctx):
    """Files in, figures, a chart and a report out; and a session that a job has begun."""
    code = ("import pandas as pd\ndf = pd.read_csv('in.csv', parse_dates=['day'])\nkpi = df.groupby('shop').sold.agg(['sum', 'mean'])\n"
            "ax = kpi['sum'].plot.bar()\nkpi.to_csv('report.csv')\nopen('report.html', 'w').write(kpi.to_html())\n"
            "{'total': df.sold.sum(), 'best': kpi['sum'].idxmax()}")
    with ctx.client(timeout=120) as client:
        if not there(client, "pandas", "matplotlib"):
            raise Skip("pandas or matplotlib is not installed", missing=True)
        for o in (client.run(code, 120, files=CSV, **SOON), Session(client).call(code, 120, files=CSV, **SOON)):
            equal((o.status, o.result["json"]), ("ok", {"total": 10, "best": "a"}), o)
            equal([d["mime_type"] for d in o.structured["displays"]], ["image/png"], o)
            files = {f["path"]: f.get("uri") for f in o.structured["files"]}
            assert {"report.csv", "report.html"} <= set(files), files
            got = client.ask("resources/read", {"uri": files["report.csv"]})["contents"][0]
            equal(got["text"], "shop,sum,mean\na,7,3.5\nb,3,3.0\n")
        job = client.ask("tools/call", {"name": "run_repl", "arguments": {"code": "x = 5", "background": True}})["structuredContent"]["job"]
        o = client.ask("tools/call", {"name": "job", "arguments": {"id": job, "action": "wait"}})["structuredContent"]["answer"]
        equal(Session(client, o["session"]).value("x"), "5")


# ---- what is shown ----

FOR_IPYTHON = (
    ("from IPython.display import display, HTML\ndisplay(HTML('<b>x</b>'))", ["text/html"]),
    ("from IPython.display import HTML\nHTML('<b>x</b>')", ["text/html"]),
    ("from IPython.display import Markdown\nMarkdown('*m*')", ["text/markdown"]),
    ("from IPython.display import SVG\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')", ["image/svg+xml"]),
    ("from IPython.display import JSON\nJSON({'a': 1})", ["application/json"]),
    ("from IPython.display import JSON\nprint(JSON.__name__, JSON({}).data)", []),
)
NO_IPYTHON = "import sys\nsys.path = [p for p in sys.path if 'packages' not in p]\n"
SHOWN = (
    # a script, the modules that it needs, and the forms that are shown
    *((hides + script, (), kinds) for script, kinds in FOR_IPYTHON for hides in ("", NO_IPYTHON)),
    ("class T:\n    def _repr_html_(self): return '<i>t</i>'\nT()", (), ["text/html"]),
    ("class T:\n    def _repr_html_(self): return '<i>t</i>'\nT();", (), []),
    ("import matplotlib.pyplot as plt\nplt.hist([1, 2, 2]);", ("matplotlib",), ["image/png"]),
    ("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", ("matplotlib",), ["image/png"]),
    ("import matplotlib.pyplot as plt\nplt.figure()\nplt.figure().text(0, 0, 'b')\nNone", ("matplotlib",), ["image/png", "image/png"]),
    ("import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nfig", ("matplotlib",), ["image/png"]),
    ("import pandas as pd\npd.DataFrame({'a': [1]})", ("pandas",), ["application/json"]),
    ("import pandas as pd\npd.DataFrame({'a': [1]});", ("pandas",), []),
    ("import pandas as pd\npd.DataFrame({'a': [1]}).style", ("pandas", "jinja2"), ["text/html"]),
    ("from PIL import Image\nImage.new('L', (4, 3))", ("PIL",), ["image/png"]),
    ("import plotly.graph_objects as go\ngo.Figure(go.Bar(y=[1]))", ("plotly",), ["text/html"]),
)


@test
def what_is_shown(ctx):
    done = 0
    with ctx.client(timeout=120) as client:
        missing = {m for m in {m for row in SHOWN for m in row[1]} if not there(client, m)}
        for script, needs, kinds in SHOWN:
            if not missing.isdisjoint(needs):
                continue
            o = client.run(script, 120, **SOON)
            forms = [d["mime_type"] for d in o.structured["displays"] if d["mime_type"] != "text/plain"]
            equal((o.status, o.stderr, forms), ("ok", "", kinds), "%s: %.900r," % (script, o))
            if ";" == script[-1]:
                equal(o.result, None, script)
            done += 1
    return rows_done(done, SHOWN, missing)


FRAME = "import numpy as np, pandas as pd\ndf = pd.DataFrame(np.random.rand(1000, 10), columns=list('abcdefghij'))\n"
LONG = (
    # a script, the modules that it needs, the most bytes of all content blocks, and their number
    ("for i in range(20000): print('line %d of a very chatty loop' % i)", (), 20000, 1), ("'x' * 1000000", (), 10000, 1),
    ("list(range(100000))", (), 2000, 1), ("{'k%d' % i: i for i in range(100000)}", (), 5000, 1),
    ("import sys\nfor i in range(3000): sys.stderr.write('\\r%3d%%|%-30s| [00:10<00:00, 20.00it/s]' % (i // 30, '#' * (i // 100)))", (), 400, 1),
    ("1 / 0", (), 400, 1), ("def f(n): return f(n + 1)\nf(0)", (), 1500, 1),
    ("for i in range(100): open('f%03d' % i, 'w').write('x')", (), 2000, 11),
    (FRAME + "df", ("numpy", "pandas"), 1500, 1), (FRAME + "df.head()", ("numpy", "pandas"), 1000, 1),
    (FRAME + "df.describe()", ("numpy", "pandas"), 1500, 1), (FRAME + "df.iloc[:5, :5]", ("numpy", "pandas"), 600, 1),
    (FRAME + "df.a.round(1).value_counts().to_frame()", ("numpy", "pandas"), 700, 1), (FRAME + "df.to_numpy()", ("numpy", "pandas"), 1500, 1),
)


@test
def what_is_long_costs_a_model_little(ctx):
    done = 0
    with ctx.client(timeout=120) as client:
        missing = {m for m in ("numpy", "pandas") if not there(client, m)}
        for script, needs, most, number in LONG:
            if missing.isdisjoint(needs):
                o = client.run(script, 120, **SOON)
                size = sum(len(json.dumps(block)) for block in o.raw["content"])
                assert size <= most and len(o.raw["content"]) == number, "%s: %d bytes in %d blocks: %.3000s" % (
                    script, size, len(o.raw["content"]), o.text)
                done += 1
    return rows_done(done, LONG, missing)


# ---- what a warning and an error say ----

SAYINGS = (
    # a script, and what the answer says and does not say
    ("async def w(): pass\nw()\n1", "script.py:2: RuntimeWarning: coroutine 'w' was never awaited", "mcp-python"),
    ("import warnings\nwarnings.warn('careful')", "script.py:2: UserWarning: careful\n  warnings.warn('careful')", "mcp-python>"),
    ("import no_such_thing", "No module named 'no_such_thing'", "mcp-python>"),
    ("import sys\nsys.setrecursionlimit(20000)\ndef f(n): return f(n + 1)\nf(0)", "RecursionError", "mcp-python>"),
    ("def f():\n    while True: pass\nf()", "line 2, in f", "mcp-python>"),
    ("import faulthandler, ctypes\ndef g(): ctypes.string_at(0)\ng()", "line 2 in g", "mcp-python>"),
    ("raise SystemExit('gone')", "gone", "mcp-python>"), ("print('x' * 2000000)\n1 / 0", "ZeroDivisionError", "mcp-python>"),
    ("import subprocess\nsubprocess.run(['no-such-program'])", "No such file or directory: 'no-such-program'", "mcp-python>"),
    ("import mmap\nmmap.mmap(-1, 1 << 40)", "one request was larger than what was left", "mcp-python>"),
    ("open('none.csv')", "No such file or directory: 'none.csv'", "mcp-python>"),
)


@test
def what_answers_say(ctx):
    with ctx.client(timeout=120) as client:
        for script, words, no in SAYINGS:
            o = client.run(script, 120, timeout_seconds=2 if "while True" in script else 60, cpu_seconds=60)
            assert words in o.text and no not in o.text.replace("mcp-python://", ""), "%s: %.2500s" % (script, o.text)


# ---- configuration ----

CONFIGURED = (
    # a configuration, and the mistake that is told, or None
    ("[profile basic]\nmodules = " + "json " * 60, "FILE:2: the line is longer than 198 bytes; a list goes on in lines that begin with a blank"),
    ("[profile basic]\nmodules = " + "json\n " * 60, None), ("[profile data]\nmodules = + numpy\n pandas", None),
    ("[profile data]\nmodules = json + numpy", 'FILE:2: modules: "+" is not the name of a Python module'),
)


@test(private=True)
def configurations_are_written_shortly(ctx):
    for text, mistake in CONFIGURED:
        status, said = check_config(ctx, text + "\n")
        equal((status, said.strip()), (78, mistake) if mistake else (0, said.strip()), text)
    with ctx.private("[profile data]\nmodules = + numbers this\n[profile basic]\n") as s, ctx.client(path=s.socket) as client:
        seen = client.ask("tools/call", {"name": "check_environment", "arguments": {"modules": True}})["structuredContent"]
        # Another Python that is tested has a profile of its own.
        seen = {p["name"]: p for p in seen["profiles"]}
        basic, data = ({*seen[name]["preloaded"]} for name in ("basic", "data"))
        equal((data - basic, basic - data, [name for name in seen if seen[name]["default"]]), ({"this"}, set(), ["basic"]))


if __name__ == "__main__":
    main(__doc__, "[profile basic]\n[profile data]\nmodules = json\n")
