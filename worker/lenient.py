# SPDX-License-Identifier: Apache-2.0
"""Makes Python of what notebooks accept beside it: shell lines, magics, help, fences, prompts and a
common indent; and of programs whose line breaks arrive as backslash and n. Line numbers do not change.

Frozen into the program like worker/bootstrap.py, and run in the same namespace. The tools that check
code without running it have it, too (tools/shared/look_script.py, tools/compat/look_code.py).
"""

import re

SHELL = re.compile(r"^(\s*)(?:([A-Za-z_][\w, ]*?)\s*=\s*)?!(!?)(.*)$")
MAGIC = re.compile(r"^(\s*)(?:([A-Za-z_][\w, ]*?)\s*=\s*)?%([A-Za-z_]\w*)(?:\s+(.*))?$")
CELL_MAGIC = re.compile(r"^%%([A-Za-z_]\w*)(?:[ \t]+(.*))?$")
BARE = re.compile(r"^(\s*)(pip3?|conda|mamba|uv)\s+((?:pip\s+)?(?:install|add)\s.*)$")
# Commands that need no "!", as in IPython. A word before an operator is a name of Python.
BARE_WORDS = frozenset("cat cd cp ls mkdir mv pwd rm rmdir".split())
OPERATOR = r"(?:in|is|and|or|if|else|not)\b|[-*]\s"
BARE_LINE = re.compile(r"(%s)(?:\s+(?!%s)([-\w./~\"'$*{].*))?\s*$"
                       % ("|".join(sorted(BARE_WORDS)), OPERATOR))
HELP = re.compile(r"^(\s*)(?:(\?\??)\s*([\w.]+)|([\w.]+)\s*(\?\??))\s*$")
FENCE = re.compile(r"^\s*(```|~~~)[\w+-]*\s*$")
# What Python and IPython print before a line, and IPython before a value.
PROMPT = re.compile(r"\s*(?:>>>|\.\.\.(?=\s|$)|In \[\d+\]:|\.{3,}:)(?: |$)")
FIRST_PROMPT = re.compile(r"\s*(>>> |In \[\d+\]: )")
HELPER = "__notebook__"  # the variable with the object that rewritten lines use
ESCAPED, ESCAPES = re.compile(r"\\(.)"), {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
QUIET = frozenset("colors config gui matplotlib xmode".split())  # not needed, or about appearance


def commands(lines, names):
    """The words that begin a line like a command, and are not names in the session or the cell."""
    found = {m[1] for m in map(BARE_LINE.match, lines) if m} - set(names)
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
    """The line as Python; unchanged, if it is not in a notebook's syntax."""
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
        return "%s%s.%s(%r)" % (found[1], HELPER, "source" if "??" in found[0] else "help",
                                found[3] or found[4])
    return line


def rewrite_lines(lines, names):
    """Rewrites the lines that are outside of triple-quoted strings."""
    done, quote, words = [], None, commands(lines, names)
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
    """If there is one Markdown block, replaces its fences, and the prose around it, by empty
    lines."""
    fences = [i for i, line in enumerate(lines) if FENCE.match(line)]
    if len(fences) != 2:
        return lines
    first, last = fences
    return [""] * (first + 1) + lines[first + 1:last] + [""] * (len(lines) - last)


def without_prompts(lines):
    """If the first line has a prompt, it is a copied session: the lines without one are output. After
    a prompt of IPython they are code that was copied without its dots, up to the value."""
    first = next((line for line in lines if line.strip()), "")
    found = FIRST_PROMPT.match(first)
    if not found:
        return lines
    done, is_code, is_ipython = [], True, found[1].startswith("In")
    for line in lines:
        prompt = PROMPT.match(line)
        is_code = bool(prompt) or is_ipython and is_code and not line.startswith("Out[")
        done.append((line[prompt.end():] if prompt else line) if is_code else "")
    return done


def without_indent(lines):
    indents = [len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()]
    most = min(indents, default=0)
    return [line[most:] for line in lines] if most else lines


def with_line_breaks(text):
    """A program in one line, whose line breaks have arrived as backslash and n; None: it is not
    one."""
    if "\n" in text.strip() or "\\n" not in text:
        return None
    return ESCAPED.sub(lambda m: ESCAPES.get(m[1], m[0]), text)


def without_quiet(line):
    found = MAGIC.match(line)
    return found[1] + "pass" if found and found[3] in QUIET and not found[2] else line


def as_python(text, commands=True, names=()):
    """The cell as Python; None: it has no syntax of notebooks. commands: it may have shell lines
    and magics; otherwise only those that do nothing here. names: of the session."""
    lines = text.split("\n")
    done = without_indent(without_prompts(without_fences(lines)))
    if not commands:
        done = [without_quiet(line) for line in done]
        return None if done == lines else "\n".join(done)
    first = next((i for i, line in enumerate(done) if line.strip()), 0)
    found = CELL_MAGIC.match(done[first])
    if found:
        body = "\n" * (first + 1) + "\n".join(done[first + 1:])
        call = "%s.cell_magic(%r, %r, %r)" % (HELPER, found[1], found[2] or "", body)
        done = [""] * first + [call]
    else:
        done = rewrite_lines(done, names)
    return None if done == lines else "\n".join(done)
