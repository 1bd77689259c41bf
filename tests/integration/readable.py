#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the model reads: the text of an answer, beside its structured form."""

import json
import os
import re
import tempfile

from harness import Skip, equal, main, test
from mcpclient import Client

INDEX = "[packages]\nindex = http://127.0.0.1:9/simple/\nstore = %s/store\n%s"


def text_of(result):
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")


def call(client, name, **arguments):
    """A session that is left open counts, until it is idle, for all tests of the suite: close=True, or close()."""
    return client.ask("tools/call", {"name": name, "arguments": arguments})


def close(client, session):
    call(client, "run_repl", session=session, close=True)


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
                (INDEX % (here.name, allow), ('dependencies=[...]', "may be somebody else's"), "approve"),
                (INDEX % (here.name, ""), ('dependencies=[...]', "approve"), "policy")):
            with ctx.private(config) as service, ctx.client(path=service.socket) as client:
                o = client.run(MISSING)
                advice = advice_in(o.text)
                for words in said:
                    assert words in advice, o.text
                assert unsaid not in advice, o.text
                equal(o.error["message"], "No module named 'not_a_module_anywhere'")
                listed = {tool["name"] for tool in client.ask("tools/list")["tools"]}
                cell = advice_in(text_of(call(client, "run_repl", code=MISSING, close=True)))
                if "dependencies=" in advice:
                    assert "packages=[...]" in cell and "not-a-module" not in cell, cell
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


@test
def a_missing_column_is_named(ctx):
    """In every function of a table; no other KeyError has words of ours."""
    table = "import pandas as pd\ndf = pd.DataFrame({'Name': [1], 'unit price': [2]})\n"
    with ctx.client() as client:
        if not client.run("import importlib.util as u\nbool(u.find_spec('pandas'))").result["json"]:
            raise Skip("pandas is not installed", missing=True)
        s = cell_of(client, table, timeout_seconds=120)[0]["session"]
        for code, near in (("df['name']", "'Name'"), ("df[['x', 'Unit Price']]", "'unit price'"), ("df.groupby('nam').sum()", "'Name'"),
                           ("df.groupby('Name')['unit prce'].sum()", "'unit price'"), ("df.groupby('Name')[['unit prce']]", "'unit price'"),
                           ("df.merge(df, on='Nme')", "'Name'"), ("df.sort_values('unit_price')", "'unit price'"),
                           ("df.loc[0, 'UNIT PRICE']", "'unit price'"), ("df.drop(columns='zzz')", None)):
            text = cell_of(client, code, session=s)[1]
            assert "the labels are: 'Name', 'unit price'\n" in text, (code, text)
            equal("did you mean %s? " % near in text, near is not None, text)
        for code in ("{'Name': 1}['name']", "df.attrs['name']"):
            text = cell_of(client, code, session=s)[1]
            assert "KeyError: 'name'" in text and "labels" not in text, text
        text = cell_of(client, "pd.DataFrame([range(500)], columns=['c%d' % i for i in range(500)])['c5000']", session=s)[1]
        assert "'c19', ... (500)" in text and "'c20'" not in text, text
        close(client, s)


# What pandas converts one value after another, and what goes on in the place of an error.
CONVERSIONS = (
    ("pd.to_datetime(pd.Series(['2024-01-02', 'soon']))", "pandas.to_datetime(..., errors='coerce') makes NaT"),
    ("pd.to_datetime(['2024-13-45'])", "pandas.to_datetime("), ("pd.to_datetime(['02.01.24'], format='%Y-%m-%d')", "pandas.to_datetime("),
    ("pd.to_datetime(['9999-01-01', '0001-01-01', 'x'])", "pandas.to_datetime("), ("pd.Series(['soon']).astype('datetime64[ns]')", "pandas.to_datetime("),
    ("pd.to_timedelta(['soon'])", "pandas.to_timedelta(..., errors='coerce') makes NaT"),
    ("pd.to_numeric(pd.Series(['1', 'n/a']))", "pandas.to_numeric(..., errors='coerce') makes NaN"),
    ("pd.Series(['1', 'n/a']).astype(float)", "pandas.to_numeric("), ("pd.DataFrame({'a': ['1,5']}).astype({'a': 'int64'})", "pandas.to_numeric("),
    ("pd.to_datetime(['2024-01-02'], errors='none')", None), ("pd.to_datetime(pd.DataFrame({'year': [1]}))", None),
    ("int('soon')", None), ("pd.Series([1, 2]).loc['a':'b']", None))


@test
def a_value_that_pandas_cannot_convert_is_named(ctx):
    with ctx.client() as client:
        if not client.run("import importlib.util as u\nbool(u.find_spec('pandas'))").result["json"]:
            raise Skip("pandas is not installed", missing=True)
        s = cell_of(client, "import pandas as pd", timeout_seconds=120)[0]["session"]
        for code, want in CONVERSIONS:
            answer, text = cell_of(client, code, session=s)
            equal(answer["status"], "error", text)
            assert want in text if want else "coerce" not in text.partition("\n")[2], (code, text)
        close(client, s)


@test
def a_block_without_an_end_is_named(ctx):
    """It is ignored, as PEP 723 wants it."""
    block = "# /// script\n# dependencies = ['a-b']\n"
    with ctx.client() as client:
        for before, line in (("", 1), ("x = 1\n", 2)):
            o, (cell, text) = client.run(before + block + "print(1)"), cell_of(client, before + block + "print(1)", close=True)
            for status, out, err in ((o.status, o.stdout, o.structured["stderr"]), (cell["status"], cell["stdout"], cell["stderr"])):
                equal((status, out), ("ok", "1\n"))
                equal(err, "(line %d: the block # /// script has no end # ///, so it is ignored)\n" % line)
        for script in ("print('# /// script')", "# /// script\n# ///\nprint(1)", "# /// script\n# requires-python = '>=3'\n#\n# ///\n", "# /// scripts\n1"):
            equal(client.run(script).structured["stderr"], "", script)


@test
def input_says_where_text_comes_from(ctx):
    with ctx.client() as client:
        assert "input() here: write the value into the code, or give it in the argument stdin" in client.run("input()").text
        text = cell_of(client, "input()", close=True)[1]
        assert "or use run_script, which has an argument stdin" in text, text
        equal(client.run("input()", stdin="a\n").result["json"], "a")


# ---- where a script was when it ended ----

LOOP = """import time
def inner():
    while True:
        pass
def outer():
    inner()
outer()
"""
DEADLOCK = """import threading
lock = threading.Lock()
def other():
    with lock:
        lock.acquire()
thread = threading.Thread(target=other, daemon=True)
thread.start()
thread.join()
"""
CRASHES = (("import ctypes\ndef fall():\n    ctypes.string_at(0)\n\nfall()", 3, "SIGSEGV"),
           ("import os\n\nos.abort()", 3, "SIGABRT"),
           ("import os, signal\nos.kill(os.getpid(), signal.SIGFPE)", 2, "SIGFPE"),
           ("import sys, threading\nimport ctypes\nt = threading.Thread(target=lambda:\n"
            "    ctypes.string_at(0))\nt.start()\nt.join()", 4, "SIGSEGV"),
           ("import sys\nsys.setrecursionlimit(10**9)\nclass A:\n    def __repr__(self):\n"
            "        return repr(self)\nx = []\nfor i in range(10**6): x = [x]\nrepr(x)", None, "SIGSEGV"))


def cell_of(client, code, **arguments):
    result = call(client, "run_repl", code=code, **arguments)
    return result["structuredContent"], text_of(result)


@test
def scripts_are_as_lenient_as_cells(ctx):
    """Fences, prose around them, a common indent, lines of notebooks, line breaks as backslash and n."""
    with ctx.client() as client:
        for script, stdout in (("```python\nprint(6 * 7)\n```", "42\n"),
                               ("Here it is:\n\n```py\nprint(6 * 7)\n```\nThat is all.", "42\n"),
                               ("    x = 1\n    print(x)\n", "1\n"), ("%matplotlib inline\nprint(1)", "1\n"),
                               ("!echo a\nx = !echo b\nprint(x)", "a\n['b']\n"),
                               ("import math\\nprint(\\\"a\\\\nb\\\", math.floor(2.5))", "a\nb 2\n")):
            o, (cell, text) = client.run(script), cell_of(client, script)
            equal((o.status, o.stdout), ("ok", stdout), repr(o))
            equal((cell["status"], cell["stdout"]), ("ok", stdout), text)
            close(client, cell["session"])
        # A process that it spawns gets the same text.
        o = client.run("```python\nimport multiprocessing as m\ndef f(n): return n + 1\nif __name__ == '__main__':\n"
                       "    with m.get_context('spawn').Pool(1) as p: v = p.map_async(f, [1]).get(20)\n    print(v)\n```")
        equal((o.status, o.stdout), ("ok", "[2]\n"), repr(o))
        # Lines are those of the script; what is no Python in any form is the same error as ever.
        o = client.run("```python\n1\n1 / 0\n```")
        equal((o.error["type"], o.error["line"]), ("ZeroDivisionError", 3))
        for wrong in ("x = = 1", "```\nx = = 1\n```", "print('a\\n'", "a\\nb c"):
            o = client.run(wrong)
            equal((o.status, o.error["type"]), ("error", "SyntaxError"), repr(o))
        # With a list of imports there are no commands.
        o = client.run("```\nimport math\nprint(math.pi > 3)\n```", allowed_imports=["math"])
        equal((o.status, o.stdout), ("ok", "True\n"), repr(o))
        o = client.run("!ls", allowed_imports=["math"])
        equal(o.error["type"], "SyntaxError", repr(o))
        o = client.run("```\nimport os\n```", allowed_imports=["math"])
        equal(o.error["type"], "ImportNotAllowed", repr(o))


RAISES = "class E(Exception): pass\ntry:\n    %s\nexcept Exception as e:\n    raise %s"
NO_NETWORK, NO_PIP = "Scripts have no network here", "pip cannot install here, nor by subprocess. No package can be installed"
NO_FFMPEG = "There is no program ffmpeg here, and none can be installed"
# What is missing, in the forms in which it shows, and the words of the advice.
FORMS = [
    # Packages that a library needs: its own words, or an error behind its own.
    ("raise ImportError('html99lib not found, or kaleido is needed')", "The module kaleido is not installed"),
    ("raise ValueError('Image export requires the kaleido package')", "The module kaleido is not installed"),
    ("raise ImportError(\"tried using: 'fastparquet', 'pyarrow-x'.\")", "The module fastparquet is not installed"),
    (RAISES % ("import nonsuch_99", "RuntimeError('please install what is missing') from None"),
     "The module nonsuch_99 is not installed"),
    # pip by any way, refused by whatever comes first.
    *((script, NO_PIP) for script in (
        "!pip install x", "%pip install x", "pip install x", "!{sys.executable} -m pip install x", "!uv pip install x",
        "%conda install x", "!conda install -y x", "import os\nos.system('pip install x')",
        "import os\nos.system('uv add x')", "import subprocess\nsubprocess.run(['uv', 'pip', 'install', 'x'])",
        "import subprocess\nsubprocess.check_output(['python3', '-m', 'pip', 'install', 'x'], stderr=-1)")),
    # Programs.
    ("import os\nos.system('ffmpeg -version')", NO_FFMPEG), ("!ffmpeg -version", NO_FFMPEG),
    ("import subprocess\nsubprocess.run('ffmpeg -version', shell=True)", NO_FFMPEG),
    ("import subprocess\nsubprocess.run('ffmpeg -version', shell=True, check=True, capture_output=True)",
     "there is no program ffmpeg here"),
    (RAISES % ("import subprocess; subprocess.run(['ffmpeg'])", "E('no converter') from e"), "there is no program ffmpeg here"),
    ("import shutil, subprocess\nsubprocess.run([shutil.which('ffmpeg')])", "a program is None here"),
    # The network: what libc says, behind a library's words, or printed.
    ("import socket\nsocket.gethostbyname('example.org')", NO_NETWORK),
    ("import socket\nsocket.create_connection(('192.0.2.1', 80))", NO_NETWORK),
    (RAISES % ("import urllib.request as u; u.urlopen('https://example.org')", "E('could not fetch') from e"), NO_NETWORK),
    ("import urllib.request as u\ntry: u.urlopen('https://example.org')\nexcept OSError as e: print('failed:', e)", NO_NETWORK),
    ("!nonsuch99\nimport socket\nsocket.gethostbyname('example.org')", NO_NETWORK),  # what has ended it counts
    # A user.
    ("import getpass\ngetpass.getpass()", "no user answers input() here"),
    (RAISES % ("input('name? ')", "E('aborted') from None"), "no user answers input() here"),
    # Names that are slips.
    ("import jsn", "did you mean json?"), ("import xml.etre", "did you mean xml.etree?"),
]
# Nothing is missing, or not that.
PLAIN = ["raise ValueError('missing values need attention: requests are too many')", "print('command not found')",
         "import json\njson.loads('{')", "raise ImportError(\"cannot import name 'x' from 'json'\")", "{}['torch']",
         "try:\n    import nonsuch_99\nexcept ImportError:\n    pass\nraise ValueError('bad')", "import sys\nsys.stdin.read()"]


@test
def advice_is_by_what_is_missing(ctx):
    """And not by the form in which it shows; in scripts and in cells."""
    with ctx.client() as client:
        for script, want in FORMS:
            text = client.run(script).text
            assert want in text, (script, text)
        session = call(client, "run_repl", code="1")["structuredContent"]["session"]
        for script, want in FORMS[::3]:
            text = text_of(call(client, "run_repl", session=session, code=script))
            assert want in text, (script, text)
        close(client, session)
        for script in PLAIN:
            text = client.run(script).text
            for said in ("advice", "did you mean", "there is no", "needs the module"):
                assert said not in text, (script, text)


@test
def pip_itself_says_how_packages_come(ctx):
    """By whatever way it is called; nothing of what the distribution has people at its terminal do."""
    with ctx.client() as client:
        if not client.run("import os, sysconfig\nos.path.exists(sysconfig.get_path('stdlib') + '/EXTERNALLY-MANAGED')").result["json"]:
            raise Skip("pip is not kept from installing for this Python (PEP 668)")
        for script in ("import os\nos.system('pip uninstall -y six')", "import subprocess\nsubprocess.run(['pip3', 'uninstall', '-y', 'six'])",
                       "import sys, runpy\nsys.argv = ['pip', 'uninstall', '-y', 'six']\nrunpy.run_module('pip', run_name='__main__')"):
            for o in (client.run(script).structured, call(client, "run_repl", code=script, close=True)["structuredContent"]):
                said = " ".join((o["stdout"] + o["stderr"]).split())
                for word in ('dependencies=["NAME"]', "PEP 723", "install_package", "check_environment", "break-system-packages does not help"):
                    assert word in said.replace("│ ", "").replace("× ", ""), (script, word, o)
                assert "apt install" not in said and "/usr/share/doc" not in said, (script, said)
        assert client.run("open('/etc/externally-managed', 'a')").error["type"] in ("OSError", "PermissionError")


@test
def pip_goes_on_with_what_is_there(ctx):
    """By whatever way it is called: what is installed is said to be, and for what is not no index is waited for."""
    ways = ("import os\nos.system('pip install %s')", "import os\nos.system('python3 -m pip install --user %s >&2')",
            "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', '-U', *'%s'.split()])",
            "import subprocess\nprint(subprocess.run('pip3 install %s', shell=True, capture_output=True, text=True))",
            "!cd . && pip install %s")
    with ctx.client() as client:
        if not client.run("import os, sysconfig\nos.path.exists(sysconfig.get_path('stdlib') + '/EXTERNALLY-MANAGED')").result["json"]:
            raise Skip("pip is not kept from installing for this Python (PEP 668)")
        seconds = 300  # pip imports much, which takes long on a busy machine
        for text in (*(client.run(script % "pip", ctx.seconds(seconds), timeout_seconds=seconds).text for script in ways),
                     text_of(call(client, "run_repl", code=ways[0] % "pip", close=True, timeout_seconds=seconds))):
            assert "Requirement already satisfied: pip in /" in text and "[ok, " in text, text
            assert advice_in(text) is None and "externally" not in text, text
        text = client.run(ways[1] % "pip nonsuch-99", ctx.seconds(seconds), timeout_seconds=seconds).text
        assert NO_PIP in text and "Retrying" not in text, text
        # An index that is named is asked.
        text = client.run("import os\nos.system('pip install -i http://127.0.0.1:9/simple --retries 0 nonsuch-99')", ctx.seconds(seconds),
                          timeout_seconds=seconds).text
        assert "Looking in indexes: http://127.0.0.1:9/simple" in text and NO_PIP in text, text


@test
def programs_of_packages_are_modules(ctx):
    """Whoever runs one that is missing is told of its module, by whatever way, and not of programs."""
    with ctx.client() as client:
        names = ("tox", "isort", "pylint", "flake8", "black", "pytest")
        name = client.run("import importlib.util, shutil\nnext((n for n in %r if not shutil.which(n) and "
                          "not importlib.util.find_spec(n)), None)" % (names,)).result["json"]
        if name is None:
            raise Skip("all of them are installed")
        said = "The module %s is not installed" % name
        for script in ("!%s -q", "!python -m %s -q", "import os\nos.system('python3 -m %s')", "import subprocess\nsubprocess.run(['%s'])",
                       "import subprocess, sys\nsubprocess.run([sys.executable, '-m', '%s'])", "import os\nos.system('%s')",
                       "import subprocess, sys\nprint(subprocess.run([sys.executable, '-m', '%s'], capture_output=True))",
                       "_ = open('a.py', 'w').write('import %s')\n!python a.py", "%%%%bash\n%s\n"):
            for text in (client.run(script % name).text,
                         text_of(call(client, "run_repl", code=script % name, close=True))):
                assert said in text and "no program" not in text, (script, text)
        # A file of the script's own has any name.
        for script in ("!python -m my_own_tests", "_ = open('a.py', 'w').write('import my_helpers')\n!python a.py",
                       "import traceback\ntry:\n    import my_helpers\nexcept ImportError:\n    traceback.print_exc()"):
            assert advice_in(client.run(script).text) is None, client.run(script).text


@test
def files_elsewhere_are_told(ctx):
    """Files of any name and in any folder below /tmp and the home: after a script they are lost, after a cell only its
    session has them. Once, and not what libraries leave there."""
    write = ("import os\nfor name in %r:\n    p = os.path.expanduser(name)\n    os.makedirs(os.path.dirname(p), exist_ok=True)\n"
             "    _ = open(p, 'w').write(%r)\nNone")
    with ctx.client() as client:
        for name in ("~/out/deep/r.txt", "/tmp/report", "/tmp/out/a.csv", "~/model.bin", "/var/tmp/x.md"):
            text = client.run(write % ([name], "x")).text
            where = name.replace("~", "/home/python").replace("/var/tmp", "/tmp")
            assert "(%s: not in /workspace, so lost with the script)" % where in text, text
        text = client.run(write % (["/tmp/many/%d" % i for i in range(9)], "x")).text
        assert ", and 6 more: not in /workspace" in text, text
        scratch = ["~/.cache/x/y", "/tmp/pymp-abcd/x", "/tmp/.hidden", "/tmp/matplotlib-xyz/a.json", "/tmp/pytest-of-python/a/b.txt"]
        made = "import tempfile\n_ = open(tempfile.mkdtemp() + '/a.txt', 'w')\n_ = open(tempfile.mkstemp('.csv')[1], 'w').write('x')\n"
        for one in (write % (scratch, "x"), made, "import os\nos.environ['HOME'] = '/workspace'\n_ = open('a.txt', 'w')"):
            assert "not in /workspace" not in client.run(one).text, client.run(one).text
        o, text = cell_of(client, write % (["/tmp/a.csv"], "x"))
        assert "(/tmp/a.csv: not in /workspace, so only this session has it, and no answer)" in text, text
        for code, told in (("1", ()), (write % (["/tmp/a.csv"], "xyz"), ("/tmp/a.csv",)),
                           (write % (["~/b"], "x"), ("/home/python/b",)), (made, ()), ("len(open('/tmp/a.csv').read())", ())):
            text = cell_of(client, code, session=o["session"])[1]
            equal([p for p in ("/tmp/a.csv", "/home/python/b") if p in text], list(told), text)
        close(client, o["session"])


@test
def a_message_with_advice_is_said_once(ctx):
    with ctx.client() as client:
        text = client.run("raise ImportError('html' + '99lib is not there:\\nkaleido is needed')").text
        assert "The module kaleido is not installed" in text and "needs the module" not in text, text
        equal(text.count("html99lib"), 1, text)


@test
def a_message_before_a_note_is_said_once(ctx):
    """The note is said behind the frames, in scripts and in cells, with and without a display."""
    with ctx.client() as client:
        for script in ("input()", "print('a')\ninput()", "from IPython.display import *\ndisplay(HTML('<b>b</b>'))\ninput()"):
            for text in (client.run(script).text, text_of(call(client, "run_repl", code=script, close=True))):
                equal(text.count("EOF when reading a line"), 1, text)
                equal(text.count("no user answers input() here"), 1, text)
        # A note of the script's own has no way around the bound of a text.
        text = client.run("e = ValueError('html' + '99')\ne.add_note('n' * 200000)\nraise e").text
        equal(text.count("html99"), 1, text[:500])
        assert len(text) < 40000, len(text)


@test(private=True)
def only_certain_names_can_be_copied(ctx):
    """A package that is called as an unknown module is may be somebody else's, and so may a slip."""
    with tempfile.TemporaryDirectory() as here:
        os.chmod(here, 0o755)
        more = "allow = in-house\nothers = allow\n"
        with ctx.private(INDEX % (here, more)) as service, ctx.client(path=service.socket) as client:
            for module, package in (("torchaudio", "torchaudio"), ("tiktoken", "tiktoken"), ("skimage", "scikit-image"),
                                    ("in_house", "in-house"), ("nonsuch_99", None), ("tensorflwo", None)):
                advice = advice_in(client.run("raise ModuleNotFoundError(\"No module named '%s'\")" % module).text)
                if package:
                    assert 'dependencies=["%s"]' % package in advice and "somebody" not in advice, advice
                else:
                    assert "dependencies=[...]" in advice and "somebody else's" in advice, advice
                equal("Did you mean tensorflow?" in advice, module == "tensorflwo")


@test
def tables_are_wide(ctx):
    """They are read, not shown on a terminal: no column of a usual table is left out, in scripts, cells and children."""
    code = "import shutil, subprocess, sys\nprint(shutil.get_terminal_size().columns)\n" \
           "subprocess.run([sys.executable, '-c', 'import shutil; print(shutil.get_terminal_size().columns)'])\n"
    table = "try: import pandas\nexcept ImportError: print('none')\nelse:\n" \
            "    print(pandas.DataFrame({'a_long_name_%d' % i: range(9) for i in range(8)}).describe())\n"
    with ctx.client() as client:
        for text in client.run(code + table).text, cell_of(client, code + table, close=True)[1]:
            assert text.count("160\n") == 2, text
            assert "none" in text or "a_long_name_3  a_long_name_4  a_long_name_5" in text and "..." not in text, text


@test
def what_is_missing_is_named(ctx):
    """Folders and programs of other machines, packages that libraries ask for, pip by any way, files elsewhere."""
    with ctx.client() as client:
        for script, want in (
                ("open('/content/x.csv')", "there is no folder /content here: the files of a call are in /workspace"),
                ("import subprocess\nsubprocess.run(['ffmpeg', '-h'])", "there is no program ffmpeg here"),
                ("input()", "no user answers input() here"),
                ("raise ImportError(\"Missing optional dependency 'tabulate'.  Use pip\")", "The module tabulate is not installed"),
                ("raise ValueError('needs it. Use pip install -U kaleido-x to install')", "The module kaleido-x is not installed"),
                ("import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])", "pip cannot install here"),
                ("import os\nopen('/tmp/report.docx', 'w').write('x')\nopen(os.path.expanduser('~/b.csv'), 'w')",
                 "(/tmp/report.docx, /home/python/b.csv: not in /workspace, so lost with the script)")):
            o = client.run(script)
            assert want in o.text, (script, o.text)
        for script, want in (
                ("git init && git add -A", "a command of the shell begins with !, such as !git init && git add -A\n"),
                ("x = 1\npython -V", "a command of the shell begins with !, such as !python -V\n"),
                ("import subprocess\nsubprocess.run(['unittest'])", "there is no program unittest here; python -m unittest runs"),
                ("!unittest", "python -m NAME runs that of a Python package"),
                ("raise ImportError(\"Cannot load backend 'TkAgg', as 'headless' is currently running\")", "there is no display here"),
                ("class TclError(Exception): pass\nraise TclError('no display name')", "there is no display here"),
                ("open('data.csv')", "/workspace is empty when a script begins: hand its files in by files"),
                ("open('/home/user/data.csv', 'w')", "only /workspace can be written to"),
                ("open('/data.csv', 'w')", "only /workspace can be written to"),
                ("import os\nos.mkdir('/usr/mine')", "only /workspace can be written to"),
                ("open('/home/user/data.csv')", "/home/user is empty here: the files of a call are in /workspace"),
                ("open('/mnt/data/data.csv')", "/workspace is empty when a script begins: hand its files in by files"),
                ("open('b.txt', 'w')\nopen('a.txt')", "beside it there are b.txt\n")):
            o = client.run(script)
            assert want in o.text, (script, o.text)
        for script in ("test", "x = = 1", "foo -bar", "import foo bar", "print 'x'", "open('nowhere/x', 'w')"):
            o = client.run(script)
            assert "begins with" not in o.text and "/workspace is" not in o.text and "beside" not in o.text, o.text
        o = cell_of(client, "open('data.csv')", close=True)[1]
        assert "/workspace is empty" not in o, o
        for script in ("open('missing.csv')", "import tempfile\nf = tempfile.NamedTemporaryFile(delete=False)",
                       "raise ValueError('pip install')"):
            o = client.run(script)
            assert "there is no" not in o.text and "not in /workspace" not in o.text and "advice" not in o.text, o.text


# Scripts of which a program, a folder, a name or a version is the fault, and the note that says so.
NOTES = (
    ("import pdb\npdb.set_trace()\nx = 1", "no user can type into a debugger"),
    ("import os\nos.makedirs('/content/out')", "only /workspace can be written to (and /tmp, /home/python)"),
    ("raise OSError(\"Cannot save file into a non-existent directory: '/mnt/user-data/outputs'\")",
     "there is no folder /mnt/user-data/outputs here: the files of a call are in /workspace"),
    ("raise OSError(\"Cannot save file into a non-existent directory: 'plots'\")", "os.makedirs('plots', exist_ok=True) makes the folder"),
    ("open('plots/a.png', 'w')", "os.makedirs('plots', exist_ok=True) makes the folder"),
    ("open('b.txt', 'w')\nopen('/mnt/data/a.txt')", "beside it there are b.txt\n"),
    ("open('/mnt/data/a.csv')", "/workspace is empty when a script begins"),
    ("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import sys; sys.exit(\"why it failed\")'], check=True, capture_output=True)",
     "its output:\nwhy it failed\n"),
    ("import subprocess\nsubprocess.check_output('echo what it said; exit 4', shell=True, text=True)", "its output:\nwhat it said\n"),
    ("from google.colab import files", "this is not Colab: files are handed in by files"),
    ("import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', required=True)\np.parse_args()",
     "(there are no arguments here: write parse_args(['--name', 'value']))"),
    ("print(os.getcwd())", "import os is missing\n"),
    ("import math\nmath.nonsuch_99", "\nPython here is 3."), ("from itertools import nonsuch_99", "\nPython here is 3."),
    ("import types, sys\nm = sys.modules['lib'] = types.ModuleType('lib')\nm.__version__ = '1.5.3'\n"
     "exec('class T:\\n    def write(self): pass\\nT.__module__ = \"lib\"', m.__dict__)\nt = m.T()\nt.write(sep=1)", "\nlib here is 1.5.3\n"),
    ("import types, sys\nm = sys.modules['lib'] = types.ModuleType('lib')\nm.__version__ = '1.5.3'\nm.nonsuch", "\nlib here is 1.5.3\n"),
    *((pool % given, "what goes to another process is pickled: functions that def makes at the top level, no lambda") for pool in (
        "from concurrent.futures import ProcessPoolExecutor\nwith ProcessPoolExecutor(1) as p: list(p.map(%s))",
        "from multiprocessing import Pool\nwith Pool(1) as p: p.map(%s)",
        "import multiprocessing\nmultiprocessing.get_context('spawn').Process(None, %s).start()") for given in (
            "lambda x: x, [1]", "print, [__import__('threading').Lock()]", "(lambda: [lambda x: x])()[0], 'a'")))
NEW_IN_3_12 = ("x = 1\nprint(f'{'a' if x else 'b'}')", "type Foo = int", "def f[T](x: T) -> T:\n    return x")
# What is no lack of these: a slip of the pen, an order, a type of the script's own.
NO_NOTES = ("lenn([1])", "def f():\n    print(late)\nf()\nlate = 1", "class A: pass\nA().b", "'x'.nonsuch_99", "None.x",
            "def f(): pass\nf(a=1)", "raise OSError('cannot open resource')", "raise SystemExit(2)", "x = = 1",
            "import subprocess\nsubprocess.run('exit 3', shell=True, check=True, capture_output=True)",
            "import pickle\npickle.dumps(lambda x: x)")


@test
def what_fails_elsewhere_only_is_named(ctx):
    """Names, folders, arguments and versions that other machines have, and what a program has said."""
    with ctx.client() as client:
        for script, want in NOTES:
            o = client.run(script)
            assert o.status == "error" and want in o.text, (script, o.text)
        for script in NEW_IN_3_12:
            o = client.run(script)
            assert o.status == "ok" or "before 3.12" in o.text or "came with 3.12" in o.text, o.text
        for script in NO_NOTES:
            o = client.run(script)
            for words in (" here is ", "is missing", "earlier calls", "this session", "its output", "no such font", "no arguments", "another process"):
                assert words not in o.text, (script, o.text)
        o, text = cell_of(client, "df.head()")
        assert "this session is new: to go on in another, send its session" in text, text
        for code, want in (("%restart", "reset: true"), ("%restart_kernel", "reset: true"), ("%reset -f", "reset: true"),
                           ("%quit", "close: true")):
            text = cell_of(client, code, close=True)[1]
            assert "is not known here; call run_repl with " + want in text, text
        for code in ("df.head()", "raise SystemExit(2)"):
            text = cell_of(client, code, session=o["session"])[1]
            assert "session is new" not in text and "earlier calls" not in text, text
        equal(text.split("\n")[0], "SystemExit", text)
        close(client, o["session"])
        for code, want in (("raise ValueError", "ValueError (line 1)\n"), ("assert 0, ''", "AssertionError (line 1)\n")):
            assert client.run(code).text.startswith(want), client.run(code).text


@test
def libraries_name_what_they_miss_here(ctx):
    """Fonts of other machines, bars of notebooks, columns as attributes."""
    with ctx.client() as client:
        for needs, script, want in (
                ("PIL, matplotlib", "from PIL import ImageFont\nImageFont.truetype('arial.ttf', 9)", "there is no such font here"),
                ("PIL, matplotlib", "from PIL import ImageFont\nfrom matplotlib.font_manager import findfont\n"
                                    "ImageFont.truetype(findfont('DejaVu Sans'), 9).getlength('a') > 0", "result: True"),
                ("pandas", "import pandas as pd\npd.DataFrame({'date': [1]}).nonsuch", "the columns are: 'date'\n"),
                ("tqdm", "from tqdm.notebook import tqdm, trange\nsum(tqdm([1, 2])) + sum(trange(3))", "result: 6")):
            if client.run("import " + needs, timeout_seconds=120, cpu_seconds=120).status == "ok":
                o = client.run(script, timeout_seconds=120, cpu_seconds=120)
                assert want in o.text, (script, o.text)


@test
def what_is_cleared_is_not_read(ctx):
    """clear_output() and the sequence of terminals: of a loop that draws again and again, the last state."""
    with ctx.client() as client:
        o = client.run("print('before')\nfor i in range(9):\n    print('\\033[2J\\033[Hstep', i)\n    print('more' * (i < 8))")
        equal(o.text.split("[ok")[0], "stdout:\nstep 8\n\n", o.text)
        assert "before" in o.stdout and "step 3" in o.stdout, o.stdout
        shown = ("from IPython.display import clear_output, display\nfor i in range(5):\n    clear_output(wait=True)\n"
                 "    print('step', i)\n    display({'text/markdown': '*drawn %d*' % i}, raw=True)\n")
        for text in (client.run(shown).text, cell_of(client, shown, close=True)[1]):
            assert "*drawn 4*" in text and "step 4" in text, text
            assert "*drawn 3*" not in text and "step 3" not in text, text
        o = client.run(shown + "1 / 0")
        assert "*drawn 4*" in o.text and "*drawn 3*" not in o.text and "ZeroDivisionError" in o.text, o.text
        handle = ("from IPython.display import display, Markdown\nh = display(Markdown('*first*'), display_id=True)\n"
                  "display(Markdown('*other*'))\nfor i in range(5): h.update(Markdown('*now %d*' % i))\n")
        text = client.run(handle).text
        assert "*first*" not in text and text.index("*now 4*") < text.index("*other*") and "*now 3*" not in text, text


@test
def nested_bars_are_their_last_state(ctx):
    """Bars below one another go up by ESC [ A after each step; the structured form has all of it."""
    with ctx.client() as client:
        o = client.run("import sys\nw = sys.stdout.write\nw('first\\n')\nfor i in range(3):\n"
                       "    w('\\router %d' % i)\n    for j in range(500): w('\\n\\rinner %d\\x1b[A' % j)\n"
                       "w('\\n\\n\\x1b[31mred\\x1b[0m\\x1b[2A\\x1b[99A\\rlast')")
        assert len(o.stdout) > 10000, len(o.stdout)
        assert "last\nouter 2\ninner 499\nred\n" in o.text and "inner 498" not in o.text, o.text
        o = client.run("for c in '|/-': print('\\r\\x1b[2K\\x1b[1;32m\u00e9%s\\b\\b%s\\x1b[0m' % (c, c), end='')\nprint()\nprint('ab\\b\\b\\b\\bc\\x1b[')")
        equal(o.text.split("[ok")[0], "stdout:\n-\nc\x1b[\n")


@test
def causes_inside_of_libraries_are_one_line(ctx):
    """Exceptions that a library has raised and answered by another one have no frames of the caller's."""
    with ctx.client() as client:
        o = client.run("import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/', timeout=2)")
        equal(o.text.count("Traceback"), 1)
        assert "stderr:\n(cause: ConnectionRefusedError: [Errno 111] Connection refused)\nTraceback" in o.text, o.text
        assert o.stderr.count("Traceback") == 2, o.stderr
        o = client.run("def f(): 1/0\ntry: f()\nexcept Exception as e: raise ValueError('no') from e")
        equal(o.text.count("Traceback"), 2)
        assert "ZeroDivisionError: division by zero\n\nThe above exception was the direct cause" in o.text, o.text


@test
def a_timeout_says_where(ctx):
    with ctx.client() as client:
        s = cell_of(client, "1")[0]["session"]
        for code, line, words in ((LOOP, (3, 4), ("in inner", "in outer", "in <module>")),
                                  (DEADLOCK, (8,), ("in other", "in join", "in <module>"))):
            o = client.run(code, timeout_seconds=1)
            equal(o.status, "timeout", repr(o))
            assert o.error["line"] in line, o.error
            cell, text = cell_of(client, code, session=s, timeout_seconds=1)
            equal((cell["status"], cell["state"]), ("timeout", "kept"), text)
            assert cell["error"]["line"] in line, cell["error"]
            for error, said in ((o.error, o.text), (cell["error"], text)):
                assert "Traceback" in said, said
                for word in words:
                    assert word in error["traceback"], error
                    # The text folds frames of libraries.
                    assert word in said or word == "in join", said
                assert "<mcp-python>" not in error["traceback"], error
                assert len(error["traceback"]) <= 8192, error
        equal(cell_of(client, "7", session=s, close=True)[0]["result"]["json"], 7)


@test
def a_timeout_says_what_to_do(ctx):
    """With the most time that a call may have, nothing is said of arguments."""
    with ctx.private("[limits]\ntimeout_seconds = 1\ntimeout_max = 2\n") as service, \
            ctx.client(path=service.socket) as client:
        for seconds, said, unsaid in ((1, "give timeout_seconds up to 2; with background: true",
                                       "several calls"),
                                      (2, "do the work in several calls", "background")):
            o = client.run("while True: pass", timeout_seconds=seconds)
            cell, text = cell_of(client, "while True: pass", timeout_seconds=seconds)
            for status, error, read in ((o.status, o.error, o.text),
                                        (cell["status"], cell["error"], text)):
                equal(status, "timeout", read)
                assert said in error["advice"] and unsaid not in error["advice"], error
                equal(read.count(said), 1, read)
        assert "advice" not in client.run("1/0").error


@test
def a_message_before_a_figure_is_said_once(ctx):
    code = ("import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\n"
            "plt.plot([1, 2])\nraise ValueError('told once')")
    with ctx.client() as client:
        if not client.run("import importlib.util as u\nbool(u.find_spec('matplotlib'))").result["json"]:
            raise Skip("matplotlib is not installed", missing=True)
        cell, text = cell_of(client, code, timeout_seconds=120, close=True)
        equal(cell["error"]["message"], "told once", text)
        assert "display-0.png" in text, text
        equal(text.count("ValueError: told once"), 1, text)


@test
def so_does_a_script_that_has_used_its_processor_time(ctx):
    with ctx.client() as client:
        o = client.run(LOOP, cpu_seconds=1)
        equal(o.status, "cpu_limit", repr(o))
        assert o.error["line"] in (3, 4) and "in inner" in o.error["traceback"], o.error


@test
def a_crash_says_where(ctx):
    with ctx.client() as client:
        s = cell_of(client, "1")[0]["session"]
        for code, line, signal in CRASHES:
            o = client.run(code)
            cell, text = cell_of(client, code, session=s)
            if line is None and o.status != "crashed":  # a stack that is never too small
                continue
            for status, error, said in ((o.status, o.error, o.text),
                                        (cell["status"], cell["error"], text)):
                equal(status, "crashed", said)
                assert signal in error["message"], said
                assert "most recent call first" in error["traceback"], said
                if line is not None:
                    equal(error["line"], line, said)
            equal(cell["state"], "rolled_back")
        close(client, s)


@test
def many_threads_and_deep_stacks_are_bounded(ctx):
    """The main thread is there all the same."""
    with ctx.client() as client:
        o = client.run("import threading\nwait = threading.Event()\ndef down(n):\n"
                       "    wait.wait() if n == 0 else down(n - 1)\n"
                       "for i in range(20): threading.Thread(target=down, args=(90,), daemon=True).start()\n"
                       "down(300)", timeout_seconds=2)
        equal(o.status, "timeout", repr(o))
        assert 0 < len(o.error["traceback"]) <= 8192, len(o.error["traceback"])
        equal(o.error["line"], 4)


@test
def signals_are_those_of_python(ctx):
    """A script finds no handler of ours, may set its own, and what it sends itself ends it."""
    look = ("import signal\n[signal.getsignal(s) == signal.SIG_DFL for s in (signal.SIGSEGV, "
            "signal.SIGABRT, signal.SIGRTMAX - 1, signal.SIGUSR1)]")
    with ctx.client() as client:
        s = cell_of(client, "1")[0]["session"]
        equal(client.run(look).result["json"], [True] * 4)
        equal(cell_of(client, look, session=s)[0]["result"]["json"], [True] * 4)
        o = client.run("import os, signal\nos.kill(os.getpid(), signal.SIGRTMAX - 1)")
        equal(o.status, "killed", repr(o))
        o = client.run("import os, signal\nsignal.signal(signal.SIGABRT, lambda *a: print('mine'))\n"
                       "os.kill(os.getpid(), signal.SIGABRT)")
        equal((o.status, o.stdout), ("ok", "mine\n"))
        # Of its children it hears what it would hear anywhere.
        o = client.run("import os, signal, subprocess, sys\npid = os.fork()\n"
                       "if pid == 0: os.abort()\nprint(os.waitpid(pid, 0)[1])\n"
                       "print(subprocess.run([sys.executable, '-c', 'import os; os.abort()']).returncode)")
        equal((o.status, o.stdout), ("ok", "6\n-6\n"), repr(o))
        # All signals blocked: it ends all the same, and says nothing.
        blocked = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"
        o = client.run(blocked, timeout_seconds=1)
        equal((o.status, o.error["traceback"]), ("timeout", None), repr(o))
        cell, text = cell_of(client, blocked, session=s, timeout_seconds=1)
        equal((cell["status"], cell["state"], cell["error"]["traceback"]), ("timeout", "rolled_back", None))
        # So does one that is another program by now.
        close(client, s)
        o = client.run("import os\nos.execv('/bin/sleep', ['sleep', '100'])", timeout_seconds=1)
        equal((o.status, o.error["traceback"]), ("timeout", None), repr(o))


# ---- how much of it ----

@test
def equal_lines_are_folded(ctx):
    """Those that follow each other; the structured form has all."""
    with ctx.client() as client:
        code = "for i in range(300): print('slow: try again')\nprint('b\\nb\\n\\n\\n' + 'c' * 60)\nprint('c' * 60)\nprint('end')"
        o = client.run(code)
        equal(o.stdout.count("slow"), 300)
        assert o.text.startswith("stdout:\nslow: try again\n... (the line above 299 more times)\nb\nb\n\n\n%s\n"
                                 "... (the line above 1 more times)\nend\n" % ("c" * 60)), o.text
        text = cell_of(client, code + "\n1/0", close=True)[1]
        equal((text.count("slow"), text.count("299 more times")), (1, 1), text)
        # A value is what it is.
        equal(client.run("class A:\n    def __repr__(self): return 'same line\\n' * 50\nA()").text.count("same line"), 50)
        # What is equal leaves room for what is not.
        text = client.run("for i in range(20000): print('the same line again and again')\nprint('last')").text
        assert "19999 more times)\nlast\n" in text and not re.search(REST, text), text[-300:]


@test
def warnings_that_begin_alike_are_folded(ctx):
    """Those of one place that begin alike, as for each glyph that a font lacks; the structured form has all."""
    code = "import warnings\nfor i in range(%d): warnings.warn('Glyph %%d is missing' %% i)\nwarnings.warn('Other')\n"
    with ctx.client() as client:
        o = client.run(code % 30)
        equal(o.stderr.count("Glyph"), 60)	# in the message, and in the line of code
        assert "UserWarning: Glyph 0 is missing\n" in o.text and "Glyph 1 " not in o.text and "Other\n" in o.text, o.text
        assert "\n... (29 more warnings like this)\nscript.py:3: " in o.text, o.text
        equal(client.run(code % 3).text.count("Glyph"), 6)	# few
        # What a program writes itself is no warning of Python.
        equal(client.run("for i in range(9): print('Warning: disk %d is full' % i)").text.count("disk"), 9)


@test
def bytes_that_are_no_utf8_are_named(ctx):
    with ctx.client() as client:
        for data, more, want in (
                ("'M\xfcller;\xe9'.encode('latin-1')", "", "with encoding='cp1252' it has 'M\xfcller;\xe9' here"),
                ("b'a\\x81\\xe9'", "", "with encoding='latin-1' it has"),
                ("'a\xfcb'.encode()", ", encoding='ascii'", "may be UTF-8: give encoding='utf-8'"),
                ("'a,b'.encode('utf-16')", "", "give encoding='utf-16'"),
                ("__import__('gzip').compress(b'x')", "", "gzip.open()")):
            o = client.run("open('a.csv', 'wb').write(%s)\nopen('a.csv'%s).read()" % (data, more))
            equal(o.error["type"], "UnicodeDecodeError", repr(o))
            assert want in o.text, (data, o.text)
        o = client.run("b'\\xff'.decode('utf-7')")
        assert "encoding=" not in o.text, o.text


@test
def counts_of_bytes_are_exact(ctx):
    """Shown and left out together are all; what spill has kept is not said to be dropped."""
    with ctx.client() as client:
        for more in ({}, {"spill": True}):
            for number in (3000000, 100000):
                o = client.run("import sys\nfor i in range(%d): sys.stdout.write('%%09d' %% i)" % (number // 9), **more)
                left = int(re.search(r"\[(\d+) bytes are left out here", o.text)[1])
                shown = sum(map(len, re.findall(r"\d{1000,}", o.text)))
                equal(shown + left, number // 9 * 9, (number, more, o.text[-200:]))
                spilled = bool(o.structured.get("spilled"))
                equal(spilled, number == 3000000 and bool(more))
                equal("dropped: spill: true keeps them" in o.text, number == 3000000 and not more, o.text[-300:])
                equal("All of the output is at the uris below" in o.text, spilled, o.text[-600:])


@test
def a_syntax_error_says_its_line_once(ctx):
    with ctx.client() as client:
        for first, text in (("script.py", client.run("x = = 1").text), ("<cell 1>", cell_of(client, "x = = 1", close=True)[1])):
            equal(text.partition("\n")[0], "SyntaxError: invalid syntax (%s, line 1)" % first)
        # One in another text is at a line of the script, too.
        assert client.run("\n\neval('x = ')").text.startswith("SyntaxError: invalid syntax (<string>, line 1) (line 3)\n")


# Syntax errors of scripts and of libraries, with and without a place, and the words of their messages.
SYNTAX_ERRORS = (
    ("x = = 1", "invalid syntax"), ("import ast\nast.parse('x = = 1')", "invalid syntax"), ("eval('(')", "'(' was never closed"),
    ("class S(SyntaxError): pass\nraise S('no element (of many)', ('f.xml', 3, 4, '<a', 3, 5))", "no element (of many)"),
    ("raise SyntaxError('nothing but words')", "nothing but words"), ("raise ValueError('odd (very)')", "odd (very)"),
    ("import sys, types\nm = sys.modules['lib'] = types.ModuleType('lib')\n"
     "exec('def f(): raise SyntaxError(\"not \" + \"well-formed\", (\"<a>\", 1, 2, \"<b>\"))', m.__dict__)\nm.f()", "not well-formed"))


@test
def a_syntax_error_says_its_message_once(ctx):
    """Its traceback has the place in lines of its own, and its message has it in parentheses."""
    with ctx.client() as client:
        for script, words in SYNTAX_ERRORS:
            for text in client.run(script).text, cell_of(client, script, close=True)[1]:
                shown = "\n".join(line for line in text.split("\n") if not line.startswith("    "))
                equal(shown.count(words), 1, text)
        text = client.run("import ast\nast.parse('x = = 1')").text
        assert "x = = 1\n" in text.replace("ast.parse('x = = 1')", "") and "^" in text, text


@test
def a_picture_is_sent_once(ctx):
    """In one cell; a sentence names the first one."""
    code = "from PIL import Image\ni = Image.new('RGB', (20, 20), 'red')\ndisplay(i)\ndisplay(Image.new('RGB', (20, 20), 'blue'))\ndisplay(i)\ni"
    with ctx.client() as client:
        if not client.run("import importlib.util as u\nbool(u.find_spec('PIL'))").result["json"]:
            raise Skip("PIL is not installed", missing=True)
        first = call(client, "run_repl", code=code, timeout_seconds=120)
        s = first["structuredContent"]["session"]
        for result, n in ((client.run(code, timeout_seconds=120).raw, 2), (first, 2), (call(client, "run_repl", session=s, code="i"), 1)):
            text = text_of(result)
            equal([block["type"] for block in result["content"]].count("image"), n, text)
            equal(text.count("the same picture as display-0"), 2 * n - 2, text)
        close(client, s)


@test
def of_a_progress_bar_the_last_state_is_read(ctx):
    with ctx.client() as client:
        o = client.run("import sys\nfor i in range(500): sys.stderr.write('\\r%d of 500' % (i + 1))\n"
                       "sys.stderr.write('\\n')\nprint('a\\r\\nb\\rc')")
        assert "500 of 500\n" in o.text and "499 of" not in o.text, o.text
        assert "a\nc\n" in o.text, o.text
        assert "\r499 of 500\r" in o.stderr and o.stdout == "a\r\nb\rc\n", "the structured form is as written"


@test
def what_is_long_is_read_by_its_ends(ctx):
    with ctx.client() as client:
        o = client.run("for i in range(20000): print('line %05d \\u00fc of a chatty loop' % i)")
        assert len(o.text.encode()) < 34000, len(o.text)
        assert "line 00000" in o.text and "line 19999" in o.text and "line 10000" not in o.text, o.text
        left = int(re.search(r"\[(\d+) bytes are left out here", o.text)[1])
        shown = len(o.text.split("stdout:\n")[1].rsplit("[ok", 1)[0].encode())
        assert 0 <= shown + left - len(o.stdout.encode()) < 300, (shown, left, len(o.stdout))
        assert "line 10000" in o.stdout
        for script in ("'x' * 200000", "import sys\nprint('o' * 300000)\nsys.stderr.write('e' * 300000)",
                       "raise ValueError('m' * 200000)"):
            o = client.run(script)
            assert len(o.text) < 34000 and "are left out here" in o.text, (script, len(o.text))
    with ctx.private("[mcp]\ntext_tokens = 0\n") as service, ctx.client(path=service.socket) as client:
        o = client.run("print('x' * 200000)")
        assert "x" * 200000 in o.text and "left out" not in o.text, len(o.text)
    with ctx.private("[mcp]\ntext_tokens = 1\n") as service, ctx.client(path=service.socket) as client:
        o = client.run("print('x' * 200000)")
        assert len(o.text) < 1000, o.text


REST = (r"\[(\d+) bytes are left out here\. To read on: the resource (mcp-python://[^?\s]+)\?bytes=(\d+)-(\d+), for some "
        r"minutes; to search it, pass this uri without \?bytes in files\]")
LONG = "line %05d \u00fc of a chatty loop"
CHATTY = "for i in range(20000): print('%s' %% i)" % LONG
CHATTED = "".join(LONG % i + "\n" for i in range(20000))


def rest_of(client, text):
    """What is left out of a text, from where the text says that it is."""
    left, uri, first, last = re.search(REST, text).groups()
    assert int(left) > 0, text
    # The address that the text names costs a model little, and goes on where the text has stopped.
    piece = client.ask("resources/read", {"uri": "%s?bytes=%s-%s" % (uri, first, last)})["contents"][0]
    assert 0 < len(piece.get("text", "")) <= 16000, piece
    assert len(set(piece["text"][:100])) < 3 or piece["text"][:100] not in text, piece["text"][:100]
    return client.ask("resources/read", {"uri": uri})["contents"][0]["text"]



LIBRARIES = """import json, traceback
class Odd:
    pass
def own():
    json.dumps({'a': [Odd()]}, indent=1)
own()"""


@test
def an_answer_has_no_bookkeeping(ctx):
    """A trivial cell costs at most 25 tokens of four bytes; the handle is said when the session begins, changes or fails."""
    with ctx.client() as client:
        first = call(client, "run_repl", code="x = 1")
        session = first["structuredContent"]["session"]
        assert session in text_of(first), first
        trivial = text_of(call(client, "run_repl", session=session, code="x"))
        assert re.fullmatch(r"result: 1\n\[ok, \d+ ms\]\n", trivial), trivial
        assert len(trivial) <= 100, trivial
        for more, words in (({"code": "1/0"}, "[error, "), ({"code": "x", "checkpoint": "one"}, "checkpoints: one"),
                            ({"code": "x", "restore": "one"}, "checkpoints: one"),
                            ({"code": "x", "reset": True}, "NameError")):
            text = text_of(call(client, "run_repl", session=session, **more))
            assert session in text and words in text, text
        text = text_of(call(client, "run_repl", session=session, code="import os; os._exit(3)"))
        assert "state: rolled_back" in text and session in text and "exit code 3" in text, text
        assert re.fullmatch(r"\(no output\)\n\[ok, \d+ ms\]\n", client.run("pass").text)
        assert "exit code 3" in client.run("raise SystemExit(3)").text
        assert "peak memory" in client.run("x = bytearray(400 << 20)").text
        assert "peak memory" not in client.run("1").text


@test
def errors_are_short(ctx):
    """The caller's own frames and the last one of a library; the message once."""
    with ctx.client() as client:
        for answer in (client.run(LIBRARIES).text, text_of(call(client, "run_repl", code=LIBRARIES, close=True))):
            equal(answer.count("Object of type Odd is not JSON serializable"), 1, answer)
            equal(answer.count("in own\n"), 1, answer)
            assert re.search(r"\n  File \"/\S+\", line \d+, in default \(the last of \d+ frames of libraries\)\n\S", answer), answer
            equal(answer.count("/json/"), 1, answer)
        o = client.run(LIBRARIES)
        assert o.structured["stderr"].count("/json/") > 3, "programs get all of it"
        text = client.run("print('  File \"/x\", line 1\\n  File \"/y\", line 2')").text
        assert "/x" in text and "/y" in text, "what a script prints is left as it is"



# Frames of a library whose statements have several lines, and one that calls itself.
STATEMENTS = """import linecache
text = \'\'\'def outer(f):
    return inner(
        f,

        "a string of many",
        n=3,
    )
def inner(f, text, n):
    if n:
        return inner(
            f,
            text, n - 1)
    return (f() +
            len(
                text))
def deep(n):
    return deep(n - 1) + 1
\'\'\'
at = '/usr/lib/library/made.py'
linecache.cache[at] = len(text), None, text.splitlines(True), at
exec(compile(text, at, 'exec'))
def own():
    return 1 / 0
"""


@test
def a_library_costs_one_line(ctx):
    """Whatever its statements look like: with lines of marks, of several lines, and repeated."""
    with ctx.client() as client:
        for code, want in (("outer(own)", "in inner (the last of 5 frames of libraries)"), ("inner(own, 2, 0)", "in inner"),
                           ("deep(1)", "in deep (the last of ")):
            for text in (client.run(STATEMENTS + code).text,
                         text_of(call(client, "run_repl", code=STATEMENTS + code, close=True))):
                shown = text[text.index("Traceback"):].split("\n")
                found = [line for line in shown if "/made.py" in line]
                assert len(found) == 1 and want in found[0], text
                for word in ("a string of", "text, n - 1", "return inner", "deep(n - 1)", "Previous line"):
                    assert word not in text, text


@test
def tools_are_listed_in_few_tokens(ctx):
    """Without schemas of answers, unless those are asked for: they take four times as much as the rest."""
    program = os.path.join(ctx.options.build, "mcp-pythond")
    with tempfile.TemporaryDirectory() as directory:
        for more, listed in (("", False), ("output_schemas = yes\n", True)):
            conf = os.path.join(directory, "conf")
            with open(conf, "w", encoding="utf-8") as file:
                file.write("[mcp]\n" + more)
            with Client.spawn([program, "--config", conf, "--stdio"], "2025-06-18", timeout=ctx.seconds(60)) as client:
                result = client.ask("tools/list")
            equal({"outputSchema" in tool for tool in result["tools"]}, {listed})
            size = len(json.dumps(result, ensure_ascii=False))
            assert listed or size <= 8000, "%d bytes" % size



@test
def inputs_may_be_named_as_scripts_name_them(ctx):
    with ctx.client() as client:
        o = client.run("open('/workspace/data/x').read()", files=[{"path": "/workspace/data/x", "text": "in"}])
        equal(o.result["json"], "in")


@test
def files_are_told_once(ctx):
    script = ("import os\nopen('report.csv', 'w').write('a')\nos.mkdir('parts'); os.mkdir('.cache'); os.mkdir('few')\n"
              "for i in range(40): open('parts/%02d' % i, 'w').write('x')\n"
              "open('.cache/x', 'w').write('x'); open('few/one', 'w').write('x')\n"
              "os.mkdir('few/.cache'); open('few/.cache/y', 'w').write('y')")
    with ctx.client() as client:
        o = client.run(script)
        links = [b["name"] for b in o.raw["content"] if b["type"] == "resource_link"]
        equal(sorted(links), ["few/one", "report.csv"])
        id = o.structured["execution_id"]
        assert ("parts/: 40 files (00, 01, 02, 03, 04, 05, 06, 07, 08, 09, 10, 11, 12, 13, 14, 15, ...), "
                "with uris mcp-python://%s/parts/NAME\n[ok" % id) in o.text, o.text
        assert ", 2 files]" in o.text, o.text
        assert ".cache" not in o.text and "report.csv" not in o.text, o.text
        equal(client.ask("resources/read", {"uri": "mcp-python://%s/parts/07" % id})["contents"][0]["text"], "x")


@test
def what_is_left_out_can_be_read(ctx):
    """By its tenant: the text says where."""
    with ctx.client() as client:
        equal(rest_of(client, client.run(CHATTY).text), CHATTED)
        equal(rest_of(client, text_of(call(client, "run_repl", code=CHATTY, close=True))), CHATTED)
        both = rest_of(client, client.run(CHATTY + "\n1/0").text)
        assert both.startswith(CHATTED) and "ZeroDivisionError" in both, both[-200:]
        equal(rest_of(client, client.run("'x' * 40000").text), repr("x" * 40000))
        # What was spilled is not kept twice.
        spilled = client.run("print('x' * 3000000)", spill=True)
        assert "all of the output:" in spilled.text and not re.search(REST, spilled.text)
        assert "are left out here" in spilled.text, spilled.text[-500:]


@test
def a_call_chooses_how_much(ctx):
    with ctx.client() as client:
        for tool, code, more in (("run_script", "script", {}), ("run_repl", "code", {"close": True})):
            for tokens in (100, 60000, "100"):
                result = call(client, tool, **{code: "print('x' * 100000)", "text_tokens": tokens, **more})
                left = re.search(REST, text_of(result))
                equal(bool(left), int(tokens) == 100, (tool, tokens))
                assert len(text_of(result)) < (1500 if left else 102000), (tool, tokens)
            for tokens in (99, 250001, 1.5, True, [100]):
                result = call(client, tool, **{code: "1", "text_tokens": tokens})
                equal(result["structuredContent"]["status"], "invalid_arguments")
                assert "text_tokens" in text_of(result), text_of(result)
        for tool in client.ask("tools/list")["tools"]:
            assert "text_tokens" not in tool["inputSchema"]["properties"], tool["name"]


SETS = (("exec-sandbox", "execute_python", "script"), ("python-sandbox", "execute_code", "code"),
        ("run-python", "run_python_code", "python_code"))


def unbroken(text):
    """The text of an answer in which line breaks may be written as JSON has them."""
    return text.replace("\\n", "\n").replace("\\u00fc", "\u00fc")


@test(private=True)
def the_other_sets_have_the_same_bounds(ctx):
    """Their text; their structured form has all."""
    names = ", ".join(name for name, _, _ in SETS)
    with ctx.private("[mcp]\ntoolsets = %s\n" % names) as service, \
            ctx.client(path=service.socket) as client:
        for _, tool, code in SETS:
            errors = CHATTY.replace("print(", "__import__('sys').stderr.write('%s\\n' % (").replace("% i)", "% i))")
            for script in (CHATTY,) if tool == "execute_code" else (CHATTY, errors):   # it may not import sys
                result = call(client, tool, **{code: script})
                text = unbroken(text_of(result))
                assert len(text) < 34000, (tool, len(text))
                assert "line 00000" in text and "line 19999" in text, (tool, text)
                read = rest_of(client, text)
                if tool == "execute_python":    # the script's output has a bound itself
                    equal((read[:9999], read[-9999:]), (CHATTED[:9999], CHATTED[-9999:]))
                    assert 100000 < len(read.encode()) < 103000, len(read)
                else:
                    equal(read.rstrip(), CHATTED.rstrip())
                if "structuredContent" in result:
                    kept = unbroken(json.dumps(result["structuredContent"], ensure_ascii=False))
                    assert "are left out here" not in kept and len(kept) > 90000, tool
        for _, tool, code in SETS[1:]:
            for script in ("'x' * 40000", "['x'] * 9000", "raise ValueError('m' * 40000)"):
                result = call(client, tool, **{code: script})
                assert len(text_of(result)) < 34000, (tool, script, len(text_of(result)))
                assert re.search(REST, text_of(result)), (tool, script)
        result = call(client, "execute_code", code="a = 'x' * 1900\nb = [a] * 9\nc = 1\nd = 'y' * 1900\ne = 1")
        read = json.loads(text_of(result))
        assert len(text_of(result)) < 34000 and read["variable_values"]["a"] == "x" * 1900, read
        equal([read["variable_values"][name] for name in "de"], ["(too long to be shown here)", 1])


@test(private=True)
def the_other_sets_give_all_to_programs_that_ask(ctx):
    for name, tool, code in SETS:
        with ctx.private("[mcp]\ntoolsets = %s\n[%s]\ntext_tokens = 0\n" % (name, name)) as service, \
                ctx.client(path=service.socket) as client:
            text = text_of(call(client, tool, **{code: "print('x' * 100000)\nprint('a\\rb')"}))
            assert "x" * 100000 in text and ("a\rb" in text or "a\\rb" in text), (tool, text[-200:])


@test
def a_data_frame_is_read_once(ctx):
    with ctx.client() as client:
        o = client.run("import pandas\npandas.DataFrame({c: range(1000) for c in 'abcde'})")
        if o.status != "ok":
            raise Skip("pandas is not installed", missing=True)
        assert "[1000 rows x 5 columns]" in o.text and '"columns"' not in o.text, o.text
        assert len(o.text) < 2000, o.text
        table = o.structured["displays"][0]["json"]
        equal((table["row_count"], len(table["rows"])), (1000, 20))


if __name__ == "__main__":
    main(__doc__)
