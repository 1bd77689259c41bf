# SPDX-License-Identifier: Apache-2.0
"""Runs what notebooks accept beside Python: shell lines, magics, help. worker/lenient.py makes Python of
them.

Frozen into the program like worker/bootstrap.py, and run in the same namespace. It is called
only for a script or a cell that is not valid Python, or that uses a name like ls, so other cells lose no
time. Line numbers do not change. For a command that is not known, one sentence says what to
write instead.
"""

import os
import re
import sys

OPTION = re.compile(r"\s*-([nrptcqov])[ \t]*(\d*)(?!\S)")
PROFILED_MOST = 20  # functions
TIMED_MOST = {"n": 10**9, "r": 1000}
EXPANDED = re.compile(r"\{(\w+)\}|\$(\w+)")
# The service adds how packages are installed here, if they are (tools/packages/missing.c).
NO_INSTALL = "pip cannot install packages here"
INSTALLS_HERE = re.compile(r"\s*(?:sudo\s+)?(?:(?:\S*python[\d.]*|\{sys\.executable\})\s+-m\s+)?(?:uv\s+)?"
                           r"(?:(?:pip3?|conda|mamba|micromamba|pipx|easy_install|poetry)\s+(?:install|add)|uv\s+(?:add|sync))\b")
INSTALL_WORD = re.compile(r"\s*(?:pip\s+)?(?:install|add)\b")
# A requirement, as far as its name; what no shell word beside it may have; options without a value.
REQUIRED = re.compile(r"[\"']?([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)(?:\[[\w,. -]*\])?((?:[=<>!~].*?)?)[\"']?$")
INSTALL_OPTIONS = frozenset("-q -qq -qqq --quiet -U --upgrade --user -y --yes --no-cache-dir --pre --system "
                            "--break-system-packages --disable-pip-version-check".split())
UNITS = ("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)
SHOWN = {"html": "_repr_html_", "markdown": "_repr_markdown_", "svg": "_repr_svg_"}
# Commands that do not exist, and what to write instead; for % and %%.
NO_DEBUGGER = "no user can type into a debugger: the answer has the traceback, and then " \
              "sys.last_traceback.tb_frame.f_locals has the variables"
RESETS = "call run_repl with reset: true, which empties the session; del deletes names"
CLOSES = "call run_repl with close: true, which ends the session"
INSTEAD = {
    "debug": NO_DEBUGGER, "pdb": NO_DEBUGGER,
    "clear": "each answer has the output of its own cell alone",
    "cls": "each answer has the output of its own cell alone",
    "edit": "write the new code into a cell",
    "exit": CLOSES,
    "javascript": "no cell's JavaScript is run; %%html shows HTML",
    "js": "no cell's JavaScript is run; %%html shows HTML",
    "latex": "write %%markdown, with $...$",
    "load": "%run FILE runs a file, and print(open(FILE).read()) shows it",
    "lprun": "%prun shows the time that each function takes",
    "macro": "define a function",
    "memit": "each answer has the peak memory; tracemalloc measures parts",
    "mprun": "each answer has the peak memory; tracemalloc measures parts",
    "perl": "cells are Python, or %%bash",
    "pylab": "import numpy as np, matplotlib.pyplot as plt",
    "R": "cells are Python, or %%bash",
    "quit": CLOSES,
    "recall": "In[N] has the text of cell N",
    "rerun": "write exec(In[N])",
    "reset": RESETS,
    "reset_selective": "del deletes names",
    "restart": RESETS, "restart_kernel": RESETS, "restart_python": RESETS,
    "ruby": "cells are Python, or %%bash",
    "save": "In[N] has the text of cell N; write it to a file with open()",
    "sql": "use sqlite3, or pandas.read_sql",
    "store": "variables stay in the session; write what has to outlive it to a file",
    "xdel": "write del NAME",
}


def there_already(words):
    """The packages that these words of pip ask for, with their versions, if all are there; otherwise
    nothing."""
    from importlib import metadata

    found = []
    for word in words:
        if word in INSTALL_OPTIONS:
            continue
        name = REQUIRED.match(word)
        try:
            version = metadata.version(name[1])
            if name[2] and not satisfies(version, name[2]):
                return []
        except Exception:  # it is no requirement, or not installed, or cannot be compared
            return []
        found.append("%s %s" % (name[1], version))
    return found


def satisfies(version, wanted):
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:
        from pip._vendor.packaging.specifiers import SpecifierSet
    return SpecifierSet(wanted).contains(version, prereleases=True)


class UsageError(Exception):
    __module__ = "builtins"  # a traceback shows the name without a module


class Notebook:
    """The functions that rewritten lines call."""

    def expand(self, command):
        """Replaces {name} and $name by the variable of the cell. The shell expands the names
        that the cell does not have."""
        names = main_module.__dict__
        return EXPANDED.sub(lambda m: str(names[m[1] or m[2]]) if (m[1] or m[2]) in names
                            else m[0], command)

    def shell(self, command):
        import subprocess

        found = INSTALLS_HERE.match(command)
        if found:
            there = there_already(command[found.end():].split())
            if not there:
                raise UsageError(NO_INSTALL)
            command = "echo 'Requirement already satisfied: %s'" % ", ".join(there)
        return subprocess.Popen(command, shell=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace")

    def show(self, command):
        """Runs a command. Its output goes to sys.stdout, as that of print()."""
        with self.shell(command) as process:
            for line in process.stdout:
                sys.stdout.write(line)
        main_module.__dict__["_exit_code"] = process.returncode
        if process.returncode:
            to_stderr("(exit status %d)\n" % process.returncode)

    def system(self, command):
        self.show(self.expand(command))

    def lines(self, command):
        with self.shell(self.expand(command)) as process:
            return process.stdout.read().splitlines()

    def magic(self, name, line):
        if name in QUIET:
            return None
        if name in BARE_WORDS and not hasattr(self, "magic_" + name):
            return self.system("%s %s" % (name, line))
        return self.method("magic_", "%", name)(line)

    def cell_magic(self, name, line, body):
        if name in SHOWN:
            return display(text_object(name.upper(), SHOWN[name])(body.strip("\n")))
        return self.method("cell_", "%%", name)(line, body)

    def method(self, kind, mark, name):
        found = getattr(self, kind + name, None)
        if found is None:
            raise UsageError("%s%s is not known here; %s" % (
                mark, name, INSTEAD.get(name, "write it in Python")))
        return found

    def run(self, text):
        return execute(compile_cell(text, Session.future), main_module.__dict__)

    def timed(self, text):
        import time

        wall, cpu = time.perf_counter(), time.process_time()
        try:
            return self.run(text)
        finally:
            print("CPU time: %.3g s; wall time: %.3g s" % (
                time.process_time() - cpu, time.perf_counter() - wall))

    def magic_time(self, line):
        return self.timed(line)

    def cell_time(self, line, body):
        return self.timed(body)

    def magic_timeit(self, line):
        number, rounds, text = timing_options(line)
        self.time_it(text, "pass", number, rounds)

    def cell_timeit(self, line, body):
        """Times the body. The text after the options runs once, before that."""
        number, rounds, setup = timing_options(line)
        self.time_it(body.strip("\n"), setup or "pass", number, rounds)

    def time_it(self, text, setup, number, rounds):
        import timeit

        timer = timeit.Timer(text or "pass", setup, globals=main_module.__dict__)
        number = number or timer.autorange()[0]
        best = min(timer.repeat(rounds, number)) / number
        unit, scale = next((u for u in UNITS if best < 1000 * u[1]), ("s", 1))
        print("%.4g %s for each of %d loop%s, best of %d" % (
            best / scale, unit, number, "s" if number > 1 else "", rounds))

    def magic_pip(self, line):
        """What is there needs no installation, so the cell goes on, as with pip."""
        found = there_already(INSTALL_WORD.sub("", line, 1).split())
        if not found:
            raise UsageError(NO_INSTALL)
        print("Requirement already satisfied: %s" % ", ".join(found))

    magic_conda = magic_mamba = magic_uv = magic_pip

    def profiled(self, text):
        import cProfile
        import pstats

        if re.match(r"-[a-zA-Z]\b", text):
            raise UsageError("%prun takes a statement here, and no option")
        profile = cProfile.Profile()
        try:
            profile.runcall(self.run, text)
        finally:
            pstats.Stats(profile).sort_stats("tottime").print_stats(PROFILED_MOST)

    def magic_prun(self, line):
        self.profiled(line.strip())

    def cell_prun(self, line, body):
        self.profiled(line.strip() or body)

    def magic_cd(self, line):
        to, at = self.expand(line.strip()) or "~", os.getcwd()
        os.chdir(os.environ.get("OLDPWD", at) if to == "-" else os.path.expanduser(to))
        os.environ["OLDPWD"] = at
        print(os.getcwd())

    def magic_pwd(self, line):
        return os.getcwd()

    def magic_env(self, line):
        name, value = (re.split(r"\s*=\s*|\s+", line.strip(), maxsplit=1) + [None])[:2]
        if value is None:
            return os.environ.get(name) if name else dict(os.environ)
        os.environ[name] = self.expand(value)
        return None

    magic_set_env = magic_env

    def magic_who_ls(self, line):
        return sorted(name for name in main_module.__dict__ if not name.startswith("_"))

    def magic_who(self, line):
        print("  ".join(self.magic_who_ls(line)))

    def magic_whos(self, line):
        for name in self.magic_who_ls(line):
            print(variable_line(variable(name, main_module.__dict__[name])))

    def magic_lsmagic(self, line):
        for kind, mark in (("magic_", " %"), ("cell_", " %%")):
            found = (name[len(kind):] for name in dir(self) if name.startswith(kind))
            print((mark + mark.join(sorted({*found} - {"magic"}))).strip())

    def magic_history(self, line):
        for number, text in History.sources.items():
            print("%d: %s" % (number, text.strip("\n")))

    magic_hist = magic_history

    def magic_tb(self, line):
        error = getattr(sys, "last_value", None)
        print("no error yet" if error is None else
              format_exception(type(error), error, error.__traceback__).rstrip("\n"))

    def magic_run(self, line):
        """Runs a file with the names of the session. Names that the file defines stay."""
        import shlex
        import tokenize

        words, names = shlex.split(self.expand(line)), main_module.__dict__
        if not words or words[0].startswith("-"):
            raise UsageError("%run takes a file and its arguments here, and no option")
        with tokenize.open(words[0]) as file:
            code = compile(file.read(), words[0], "exec", 0, True)
        before, sys.argv[:], names["__file__"] = list(sys.argv), words, words[0]
        try:
            exec(code, names)
        finally:
            sys.argv[:] = before
            names.pop("__file__", None)

    def magic_autoreload(self, line):
        """Switches reloading on or off. Modes other than 0 all mean: reload all modules."""
        Session.autoreload = line.strip() not in ("0", "off")
        reload_changed()

    def magic_load_ext(self, line):
        if line.strip() != "autoreload":
            print("(extensions of IPython are not there, so %%load_ext %s did nothing)"
                  % line.strip())

    magic_reload_ext = magic_load_ext

    def magic_precision(self, line):
        print("(values are shown in full here: write round(x, 3), or format(x, '.3f'))")

    def magic_sx(self, line):
        return self.lines(line)

    magic_system = magic_sx

    def cell_bash(self, line, body):
        self.show(body.strip("\n"))

    cell_sh = cell_bash

    def cell_capture(self, line, body):
        """Runs the cell, and puts its output into the named variable. Figures and the like are
        displayed as usual."""
        import contextlib
        import io

        said = Captured()
        with contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                self.run(body)
            finally:
                said.stdout, said.stderr = out.getvalue(), errors.getvalue()
                for name in line.split():
                    if name.isidentifier():
                        main_module.__dict__[name] = said

    def cell_python(self, line, body):
        return self.run(body)

    cell_python3 = cell_python

    def cell_writefile(self, line, body):
        found = re.match(r"(-a\s+|--append\s+)?(.+)", self.expand(line.strip()))
        if not found:
            raise UsageError("%%writefile needs the name of a file")
        with open(os.path.expanduser(found[2]), "a" if found[1] else "w") as file:
            file.write(body.lstrip("\n"))
        print("%s %s" % ("Appended to" if found[1] else "Wrote", found[2]))

    cell_file = cell_writefile

    def help(self, name):
        help(eval(name, main_module.__dict__))

    magic_pinfo = magic_pdoc = help

    def source(self, name):
        import inspect

        value = eval(name, main_module.__dict__)
        try:
            print(inspect.getsource(value), end="")
        except (OSError, TypeError):  # the source is not Python, or unknown
            help(value)

    magic_pinfo2 = magic_psource = source


class Captured:
    """The output that %%capture keeps."""

    def show(self):
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)

    __call__ = show

    def __str__(self):
        return self.stdout


def timing_options(line):
    """The number of loops, or None; the number of rounds; and the text after the options."""
    found = {"n": None, "r": 3}
    while option := OPTION.match(line):
        name, value = option.groups()
        if name not in found or not value:
            raise UsageError("%timeit takes -n LOOPS and -r ROUNDS here, and no other option")
        if not 1 <= int(value[:12]) <= TIMED_MOST[name]:
            raise UsageError("-%s of %%timeit must be from 1 to %d" % (name, TIMED_MOST[name]))
        found[name] = int(value)
        line = line[option.end():]
    return found["n"], found["r"], line.strip()


def compile_notebook(text, future, commands=True, may_be_quiet=True):
    """Compiles a cell in the syntax of notebooks; None: it is not in that syntax, or not valid."""
    text = text if isinstance(text, str) else bytes(text).decode()
    broken = with_line_breaks(text)
    names = main_module.__dict__
    python = as_python(text, commands, names) if broken is None else broken
    if python is None:
        return None
    try:
        code = compile_script(python, future, may_be_quiet)
    except SyntaxError:
        return None
    if broken is not None:
        remember_source(broken)
        to_stderr("(its line breaks had arrived as backslash and n, and were put in)\n")
    main_module.__dict__[HELPER] = Notebook()
    Session.python = python
    return code


def compile_lenient(text, imports, may_be_quiet):
    """Called when compile_script has refused a script, which may be written like a cell. With a list
    of imports it has no commands, which import what they need. Returns the code, and the text as
    Python; else raises the error again."""
    code = compile_notebook(text, 0, imports is None, may_be_quiet)
    if code is None:
        raise
    return code, Session.python


def compile_cell(text, future):
    """As compile_script, but also accepts the syntax of notebooks."""
    try:
        code = compile_script(text, future)
    except SyntaxError:
        code = compile_notebook(text, future)
        if code is None:
            raise
        return code
    if BARE_WORDS.isdisjoint(code.co_names) and not ("In" in code.co_names and FIRST_PROMPT.match(text)):
        return code
    return compile_notebook(text, future) or code  # "ls -la" is also valid Python
