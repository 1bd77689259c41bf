#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts that ask the user at the terminal of mcp-python run and repl: answers, the end of
input, Ctrl-C, prompts that lie, consent, and no terminal at all."""

import contextlib
import os
import pty
import subprocess
import tempfile

from harness import FEW_MODULES, equal, main, test
from terminal import Terminal, client_program
from waits import until

ALLOW = "[policy]\ninput = allow\n"
APPROVE = "[policy]\nrun_script = approve\napprovers = self\n"
NAME = "name = input('Your name? ')\nprint('Hello,', name)\n"
ESCAPES = r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066\rover"
SCREEN = "sys.stdout = open(os.devnull, 'w')\n"	# else input() writes the prompt there, too


@contextlib.contextmanager
def written(text):
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        yield f.name


@contextlib.contextmanager
def running(ctx, text, config=ALLOW, options=(), **popen):
    with ctx.private(config) as s, written(text) as path, \
            Terminal(ctx, "run", "--socket", s.socket, *options, path, **popen) as t:
        t.service = s
        yield t


@contextlib.contextmanager
def cells(ctx, config=ALLOW):
    with ctx.private(config) as s, Terminal(ctx, "repl", "--socket", s.socket) as t:
        t.expect(">>> ")
        yield t


# ---- mcp-python run ----

@test(private=True)
def it_is_as_if_python_ran_it(ctx):
    text = NAME + ("print(repr(input('two\\nlines: ')))\nprint('no end', end=' ')\n"
                   "print(repr(input()))\nraise SystemExit(3)\n")
    with running(ctx, text) as t:
        t.expect(r"\AYour name\? script> Your name\? ")
        t.type("Ad\x7fa\n")			# the terminal edits
        t.expect("Hello, Aa\ntwo\nlines: script> lines: ")
        t.type("gr\u00fc\u00df\n")
        t.expect("'gr\u00fc\u00df'\nno end \nscript> ")
        t.type("\n")
        equal((t.end(), t.seen), (3, "\n''\n"))


@test(private=True)
def what_was_typed_before_is_read_then(ctx):
    with running(ctx, "print(input('1'), input('2'))\n") as t:
        t.type("one\ntwo\n")
        equal(t.end(), 0)
        assert t.seen.endswith("one two\n"), t.seen


@test(private=True)
def ctrl_d_is_the_end_of_the_file(ctx):
    with running(ctx, NAME) as t:
        t.expect("script> Your name. ")
        t.type("\x04")
        equal(t.end(), 1)
        assert t.seen.startswith("\nTraceback "), t.seen
        assert t.seen.endswith("EOFError: EOF when reading a line\n"), t.seen
    with running(ctx, NAME) as t:
        t.expect("script> Your name. ")
        t.type("Ada\x04\x04")			# no line end, as ever
        equal((t.end(), t.seen), (0, "Ada\nHello, Ada\n"))


@test(private=True)
def ctrl_c_ends_both(ctx):
    with running(ctx, "import time\ninput('x')\n") as t:
        t.expect("script> x")
        t.type("\x03")
        equal(t.end(), -2)
        until_ended(ctx, t.service)


def until_ended(ctx, service):
    """No script is running there any more."""
    look = {"name": "check_environment", "arguments": {}}
    with ctx.client(path=service.socket) as c:
        until("it is over", lambda: not c.ask("tools/call", look)["structuredContent"]["yours"]["running"])


@test(private=True)
def output_goes_on_meanwhile(ctx):
    text = ("import sys, threading\nsaid = threading.Event()\ndef talk():\n"
            "    said.wait()\n    print('from another thread', flush=True)\n"
            "t = threading.Thread(target=talk)\nt.start()\nsaid.set()\nx = input('go? ')\n"
            "t.join()\nprint(x)\n")
    with running(ctx, text) as t:
        t.expect("another thread")
        t.type("on\n")
        equal(t.end(), 0)
        assert t.seen.endswith("on\n"), t.seen


@test(private=True)
def standard_output_elsewhere(ctx):
    """Questions are on the terminal, and nothing of them in the file but what input() writes."""
    for options, want in (((), "Your name? Hello, Ada\n"), (("--json",), "\"status\": \"ok\"")):
        with tempfile.TemporaryFile("w+") as out:
            with running(ctx, NAME, options=options, stdout=out) as t:
                t.expect(r"\Ascript> Your name\? ")
                t.type("Ada\n")
                equal((t.end(), t.seen), (0, "Ada\n"))
            out.seek(0)
            got = out.read()
            assert want in got and "script>" not in got, got


@test(private=True)
def prompts_cannot_steer_the_terminal(ctx):
    with running(ctx, "import os, sys\n" + SCREEN + "input('%s')\n" % ESCAPES) as t:
        t.expect("script> [^\n]*over")
        t.type("\n")
        equal(t.end(), 0)
        for code in (b"\x1b", b"\x07", b"\xc2\x9b", "\u202e".encode(), "\u2066".encode()):
            assert code not in t.log, t.log
    forged = "x\\n\\nmcp-python: the service asks:\\n  May I? [y/N] "
    with running(ctx, "import os, sys\n" + SCREEN + "input('%s')\n" % forged) as t:
        t.expect("script> x\nscript> \nscript> mcp-python: the service asks:\n"
                 r"script>   May I\? \[y/N\] ")
        t.type("\n")
        equal(t.end(), 0)


@test(private=True)
def who_does_not_answer_in_time(ctx):
    with running(ctx, NAME, ALLOW + "[mcp]\nask_seconds = 1\n") as t:
        t.expect("script> Your name. \nmcp-python: the question was withdrawn: there was no answer in time")
        equal(t.end(), 1)
        assert "EOFError" in t.seen, t.seen


@test(private=True)
def a_line_that_is_no_text_is_asked_for_again(ctx):
    with running(ctx, NAME) as t:
        t.expect("script> Your name. ")
        os.write(t.master, b"\xff\n")
        t.expect("mcp-python: that is not UTF-8 text\nscript> Your name. ")
        t.type("Ada\n")
        equal((t.end(), t.seen), (0, "Ada\nHello, Ada\n"))


@test(private=True)
def policy_may_not_let_them(ctx):
    for config in ("", "[policy]\ninput = deny\n"):
        with running(ctx, NAME, config) as t:
            equal(t.end(), 1)
            assert "EOFError: EOF when reading a line" in t.seen, t.seen
            assert "script>" not in t.seen, t.seen


# ---- no terminal ----

@test(private=True)
def without_a_terminal_nobody_is_asked(ctx):
    with ctx.private(ALLOW) as s, written(NAME) as path:
        def run(*options, **popen):
            done = subprocess.run([client_program(ctx), "run", "--socket", s.socket, *options,
                                   path], stdout=subprocess.PIPE, text=True,
                                  timeout=ctx.seconds(60), **{"stderr": subprocess.PIPE, **popen})
            return done.returncode, done.stdout
        equal(run(stdin=subprocess.DEVNULL), (1, "Your name? "))
        equal(run(input="Ada\n"), (0, "Your name? Hello, Ada\n"))
        equal(run("--no-stdin", input="Ada\n"), (1, "Your name? "))
        equal(run("--stdin", input="Ada\n"), (0, "Your name? Hello, Ada\n"))
        equal(run("--stdin", input=""), (1, "Your name? "))
        reader, writer = os.pipe()		# never written to
        equal(run("--no-stdin", stdin=reader), (1, "Your name? "))
        os.close(reader)
        os.close(writer)
        master, slave = pty.openpty()		# a question would not be seen
        equal(run(stdin=slave), (1, "Your name? "))
        equal(run(stdin=subprocess.DEVNULL, stderr=slave), (1, "Your name? "))
        os.close(slave)
        os.close(master)


@test(private=True)
def a_terminal_that_goes_away(ctx):
    """The script is ended, or gets the end of input, and nothing waits any more."""
    with running(ctx, NAME) as t:
        t.expect("script> Your name. ")
        os.close(t.master)
        t.master = os.open(os.devnull, os.O_RDONLY)
        t.process.wait(ctx.seconds(60))
        until_ended(ctx, t.service)


# ---- mcp-python repl ----

@test(private=True)
def cells_ask_too(ctx):
    with cells(ctx) as t:
        t.type("x = input('x? ')\n")
        t.expect("x. script> x. ")
        t.type("41\n")
        t.expect(r"\A41\n>>> ")
        t.type("int(x) + 1\n")
        t.expect("\n42\n>>> ")
        t.type("input('y? ')\n")
        t.expect("script> y. ")
        t.type("\x04")
        t.expect("EOFError: EOF when reading a line\n.*>>> ")
        t.type("for i in range(2): print(input(f'{i}? '))\n\n")
        for i in range(2):
            t.expect("script> %d. " % i)
            t.type("answer %d\n" % i)
            t.expect("answer %d\nanswer %d\n" % (i, i))
        t.expect(">>> ")
        t.type("\x04")
        equal(t.end(), 0)


@test(private=True)
def ctrl_c_cancels_the_cell_that_asks(ctx):
    with cells(ctx) as t:
        t.type("x = 'none'\n")
        t.expect("\n>>> ")
        t.type("try: input('x? ')\nexcept BaseException as e: x = type(e).__name__; raise\n\n")
        t.expect("script> x. ")
        t.type("half a line\x03")
        t.expect("KeyboardInterrupt\n.*>>> ")
        t.type("x\n")
        t.expect("\n'KeyboardInterrupt'\n.*>>> ")
        t.type("x = input('again? ')\n")
        t.expect("script> again. ")
        t.type("yes\n")
        t.expect("yes\n>>> ")
        t.type("x\n")
        t.expect("\n'yes'\n>>> ")
        t.type("\x04")
        equal(t.end(), 0)


@test(private=True)
def policy_may_not_let_cells(ctx):
    with cells(ctx, "[policy]\ninput = deny\n") as t:
        t.type("input('x? ')\n")
        t.expect("EOFError: EOF when reading a line\n.*>>> ")
        assert b"script>" not in t.log, t.log
        t.type("\x04")
        equal(t.end(), 0)


# ---- consent ----

@test(private=True)
def consent_is_a_yes(ctx):
    for answer, ends in (("y\n", 0), ("YES\n", 0), ("n\n", 77), ("\n", 77), ("yesterday\n", 77),
                         ("\x04", 77)):
        with running(ctx, "print('it', 'ran')\n", APPROVE) as t:
            t.expect(r"mcp-python: the service asks:\n  May run_script be called with these "
                     r"arguments\?\n.*\n  arguments:\n  > script: text 1\n.*\n  text 1:\n"
                     r"  > print\('it', 'ran'\)\n.*Allow this call \[y/N\] ")
            t.type(answer)
            equal(("it ran" in t.seen, t.end()), (False, ends), answer)
            equal("it ran" in t.seen, ends == 0, answer)


@test(private=True)
def what_was_typed_before_is_no_consent(ctx):
    text = "print('\\\\x1b[2J' '''\x1b[2J''')\n"
    with ctx.private(APPROVE) as s, written(text) as path, \
            Terminal(ctx, "run", "--socket", s.socket, path, typed="y\n") as t:
        t.expect(r"\[y/N\] ")
        t.type("n\n")
        equal(t.end(), 77)
        assert b"\x1b" not in t.log, t.log


@test(private=True)
def without_a_terminal_nobody_consents(ctx):
    """The call waits for an approval, and says whose."""
    with ctx.private(APPROVE) as s, written("print('it', 'ran')\n") as path:
        done = subprocess.run([client_program(ctx), "run", "--socket", s.socket, path],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=ctx.seconds(60))
        equal((done.returncode, done.stdout), (75, ""), done.stderr)
        assert "has to be approved by the session's user, who cannot be asked here" in done.stderr, done


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
