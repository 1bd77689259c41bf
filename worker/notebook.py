# SPDX-License-Identifier: Apache-2.0
"""What a notebook takes beside Python: shell lines, magics, help, fences and a common indent.

Frozen into the program like worker/bootstrap.py, and run in the same namespace. It is asked only
for a cell that is no Python as it stands, or that has a name like ls; others pay nothing for it.
Lines keep their numbers. What is not known here is told in one sentence, with what to write
instead.
"""

import os
import re
import sys

SHELL = re.compile(r"^(\s*)(?:([A-Za-z_][\w, ]*?)\s*=\s*)?!(!?)(.*)$")
MAGIC = re.compile(r"^(\s*)(?:([A-Za-z_][\w, ]*?)\s*=\s*)?%([A-Za-z_]\w*)(?:\s+(.*))?$")
CELL_MAGIC = re.compile(r"^%%([A-Za-z_]\w*)(?:[ \t]+(.*))?$")
BARE = re.compile(r"^(\s*)(pip3?|conda|mamba)\s+(install\s.*)$")
# Commands, as in IPython. Before an operator a line would be Python.
BARE_WORDS = frozenset("cat cd cp ls mkdir mv pwd rm rmdir".split())
OPERATOR = r"(?:in|is|and|or|if|else|not)\b|[-*]\s"
BARE_LINE = re.compile(r"(%s)(?:\s+(?!%s)([-\w./~\"'$*{].*))?\s*$"
                       % ("|".join(sorted(BARE_WORDS)), OPERATOR))
HELP = re.compile(r"^(\s*)(?:\?\??\s*([\w.]+)|([\w.]+)\s*\?\??)\s*$")
FENCE = re.compile(r"^\s*(```|~~~)[\w+-]*\s*$")
OPTION = re.compile(r"\s*-([nrptcqov])[ \t]*(\d*)(?!\S)")
TIMED_MOST = {"n": 10**9, "r": 1000}
HELPER = "__notebook__"  # in the names of a cell that needs it
EXPANDED = re.compile(r"\{(\w+)\}|\$(\w+)")
INSTALL = ("packages are installed by the tool install_package, or by dependencies=[...] of a "
           "call; pip has no network here")
QUIET = ("matplotlib", "load_ext", "reload_ext", "autoreload", "config", "colors", "precision")


class UsageError(Exception):
    __module__ = "builtins"  # a traceback names it without ours


class Notebook:
    """What rewritten lines call."""

    def expand(self, command):
        """{name} and $name are what the cell has under that name, else the shell's."""
        names = main_module.__dict__
        return EXPANDED.sub(lambda m: str(names[m[1] or m[2]]) if (m[1] or m[2]) in names
                            else m[0], command)

    def shell(self, command):
        import subprocess

        if re.match(r"\s*(?:python3?\s+-m\s+)?pip3?\s+install\b", command):
            raise UsageError(INSTALL)
        return subprocess.Popen(command, shell=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace")

    def show(self, command):
        """Its output comes where print() writes."""
        with self.shell(command) as process:
            for line in process.stdout:
                sys.stdout.write(line)
        main_module.__dict__["_exit_code"] = process.returncode

    def system(self, command):
        self.show(self.expand(command))

    def lines(self, command):
        with self.shell(self.expand(command)) as process:
            return process.stdout.read().splitlines()

    def magic(self, name, line):
        method = getattr(self, "magic_" + name, None)
        if name in QUIET:
            return None
        if method is None:
            raise UsageError("%%%s is not known here; write it in Python" % name)
        return method(line)

    def cell_magic(self, name, line, body):
        method = getattr(self, "cell_" + name, None)
        if method is None:
            raise UsageError("%%%%%s is not known here; write it in Python" % name)
        return method(line, body)

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
        """What follows the options is done once, before it is timed."""
        number, rounds, setup = timing_options(line)
        self.time_it(body.strip("\n"), setup or "pass", number, rounds)

    def time_it(self, text, setup, number, rounds):
        import timeit

        timer = timeit.Timer(text or "pass", setup, globals=main_module.__dict__)
        number = number or timer.autorange()[0]
        best = min(timer.repeat(rounds, number)) / number
        print("%.4g µs for each of %d loop%s, best of %d" % (
            best * 1e6, number, "s" if number > 1 else "", rounds))

    def magic_pip(self, line):
        raise UsageError(INSTALL)

    magic_conda = magic_mamba = magic_uv = magic_pip

    def magic_cd(self, line):
        os.chdir(os.path.expanduser(line.strip() or "~"))
        print(os.getcwd())

    def magic_pwd(self, line):
        return os.getcwd()

    def magic_ls(self, line):
        self.system("ls " + line)

    def magic_env(self, line):
        name, found, value = line.strip().partition("=")
        if found:
            os.environ[name.strip()] = value.strip()
            return None
        return os.environ.get(name) if name else dict(os.environ)

    def magic_who(self, line):
        print("  ".join(sorted(name for name in main_module.__dict__
                               if not name.startswith("_"))))

    def cell_bash(self, line, body):
        self.show(body.strip("\n"))

    cell_sh = cell_bash

    def cell_capture(self, line, body):
        return self.run(body)

    def cell_python(self, line, body):
        return self.run(body)

    cell_python3 = cell_python

    def cell_writefile(self, line, body):
        with open(line.strip(), "w") as file:
            file.write(body.lstrip("\n"))
        print("Wrote %s" % line.strip())

    def help(self, name):
        help(eval(name, main_module.__dict__))


def timing_options(line):
    """The loops that are asked for, or None, the rounds, and what follows the options."""
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


def commands(lines):
    """The words that begin lines as commands do, and are no names in the session or the cell."""
    found = {m[1] for m in map(BARE_LINE.match, lines) if m} - main_module.__dict__.keys()
    rest = "\n".join(line.partition("#")[0] for line in lines if not BARE_LINE.match(line))
    return {word for word in found if not re.search(r"\b%s\b" % word, rest)}


def rewrite_command(line, words):
    found = BARE_LINE.match(line)
    if not found or found[1] not in words:
        return line
    if found[1] in ("cd", "pwd"):
        return "%s.magic(%r, %r)" % (HELPER, found[1], found[2] or "")
    return "%s.system(%r)" % (HELPER, line)


def rewrite_line(line):
    """The line as Python; itself when it is no notebook's."""
    found = SHELL.match(line)
    if found:
        indent, target, twice, command = found.groups()
        if target:
            return "%s%s = %s.lines(%r)" % (indent, target, HELPER, command)
        return "%s%s.%s(%r)" % (indent, HELPER, "lines" if twice else "system", command)
    found = MAGIC.match(line)
    if found:
        indent, target, name, rest = found.groups()
        call = "%s.magic(%r, %r)" % (HELPER, name, rest or "")
        return "%s%s = %s" % (indent, target, call) if target else indent + call
    found = BARE.match(line)
    if found:
        return "%s%s.magic('pip', %r)" % (found[1], HELPER, found[3])
    found = HELP.match(line)
    if found:
        return "%s%s.help(%r)" % (found[1], HELPER, found[2] or found[3])
    return line


def rewrite_lines(lines):
    """Those that are in no string of three quotes."""
    done, quote, words = [], None, commands(lines)
    for line in lines:
        rewritten = line if quote else rewrite_command(line, words)
        if rewritten is line and not quote:
            rewritten = rewrite_line(line)
        done.append(rewritten)
        if rewritten is line:
            for mark in re.findall(r'"""|\'\'\'', line):
                quote = mark if quote is None else None if mark == quote else quote
    return done


def without_fences(lines):
    """A block of Markdown is its content; the fences become empty lines."""
    said = [i for i, line in enumerate(lines) if line.strip()]
    if len(said) >= 2 and FENCE.match(lines[said[0]]) and FENCE.match(lines[said[-1]]):
        lines = list(lines)
        lines[said[0]] = lines[said[-1]] = ""
    return lines


def without_indent(lines):
    indents = [len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()]
    most = min(indents, default=0)
    return [line[most:] for line in lines] if most else lines


def as_python(text):
    """The cell as Python, or None when it is nothing that a notebook would take."""
    lines = text.split("\n")
    done = without_indent(without_fences(lines))
    first = next((i for i, line in enumerate(done) if line.strip()), 0)
    found = CELL_MAGIC.match(done[first])
    if found:
        body = "\n" * (first + 1) + "\n".join(done[first + 1:])
        call = "%s.cell_magic(%r, %r, %r)" % (HELPER, found[1], found[2] or "", body)
        done = [""] * first + [call]
    else:
        done = rewrite_lines(done)
    return None if done == lines else "\n".join(done)


def compile_notebook(text, future):
    """None when it is nothing that a notebook would take."""
    python = as_python(text if isinstance(text, str) else bytes(text).decode())
    if python is None:
        return None
    try:
        code = compile_script(python, future)
    except SyntaxError:
        return None
    main_module.__dict__[HELPER] = Notebook()
    return code


def compile_cell(text, future):
    """As compile_script, for what a notebook would take as well."""
    try:
        code = compile_script(text, future)
    except SyntaxError:
        code = compile_notebook(text, future)
        if code is None:
            raise
        return code
    if BARE_WORDS.isdisjoint(code.co_names):
        return code
    return compile_notebook(text, future) or code  # "ls -la" is Python, too
