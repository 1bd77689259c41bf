# SPDX-License-Identifier: Apache-2.0
"""Checks code for validate_code, in a jailed worker, without running it. It is appended to
policy/import_check.py and worker/lenient.py, whose functions it calls.

Standard input: one line of JSON, {"modules": [...]}, then the code. The value of the last
expression is the answer: {"compiles": bool, "errors": [text], "complexity": text,
"recommendations": [text]}.
"""

import ast
import json
import warnings

TEXT_MAX = 500
LONG = 50  # lines
WEIGHTY = frozenset((
    "For", "AsyncFor", "While", "If", "IfExp", "Try", "TryStar", "Match", "comprehension",
    "FunctionDef", "AsyncFunctionDef", "ClassDef", "Lambda"))


def problem(e):
    line = "Line %d: " % e.lineno if getattr(e, "lineno", None) else ""
    text = e.msg if isinstance(e, SyntaxError) else str(e) or "nested too deeply"
    return ("%s%s: %s" % (line, type(e).__name__, text))[:TEXT_MAX]


def depth_of_loops(tree):
    deepest, todo = 0, [(tree, 0)]
    while todo:
        node, depth = todo.pop()
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.comprehension)):
            depth += 1
        deepest = max(deepest, depth)
        todo += ((child, depth) for child in ast.iter_child_nodes(node))
    return deepest


def complexity_of(tree):
    """The complexity by the number of branches and definitions, and the depth of loops."""
    weight = sum(type(node).__name__ in WEIGHTY for node in ast.walk(tree))
    loops = depth_of_loops(tree)
    return "high" if weight > 20 or loops > 2 else "medium" if weight > 5 or loops > 1 else "low"


def recommendations_for(tree, lines):
    nodes = list(ast.walk(tree))
    called = {node.func.id for node in nodes
              if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    found = []
    if "open" in called or any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in nodes):
        found.append("Some operations may be restricted in sandbox environment")
    if "print" in called:
        found.append("Printed output is captured")
    if lines > LONG:
        found.append("Functions would make code of this length easier to read")
    return found


def compiled(code):
    # Compiled whole, for some mistakes are found after parsing.
    compile(code, "script.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return ast.parse(code)


def tree_of(code):
    """In the forms, too, that a run accepts; it has no commands of notebooks."""
    try:
        return compiled(code)
    except SyntaxError:
        try:
            text = code.decode()
            python = with_line_breaks(text) or as_python(text, False)
            if python is not None:
                return compiled(python)
        except (SyntaxError, UnicodeDecodeError):
            pass
        raise


def look(head, code):
    answer = {"compiles": False, "errors": [], "complexity": "low", "recommendations": []}
    try:
        tree = tree_of(code)
        answer["compiles"] = True
        answer["errors"] = import_problems(tree, frozenset(head["modules"]))
        answer["complexity"] = complexity_of(tree)
        answer["recommendations"] = recommendations_for(tree, code.count(b"\n") + 1)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as e:
        answer["errors"] = [problem(e)]
    return answer


warnings.simplefilter("ignore")
given, _, source = sys.stdin.buffer.read().partition(b"\n")
look(json.loads(given), source)
