#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run of tests/faults that an error of its own ends leaves no process. It needs root, and nginx.
here=${srcdir:-.}
[ "$(id -u)" = 0 ] && [ -x /usr/sbin/nginx ] && [ -x ./mcp-pythond ] || exit 77
PYTHONDONTWRITEBYTECODE=1 python3 - "$here/tests/faults/run" <<'END'
import importlib.machinery
import importlib.util
import sys

loader = importlib.machinery.SourceFileLoader("faults_run", sys.argv[1])
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("faults_run", loader))
loader.exec_module(run)
from supervisor import Popen  # noqa: E402


def fail(*_):
    raise AssertionError("on purpose")


def left():
    return run.live_strays() + [one.pid for one in Popen.unended if one.poll() is None]


run.operations = fail	# the service serves then, and is counted
sys.argv = ["run", "--build", "."]
try:
    run.main()
    sys.exit("nothing has ended it")
except AssertionError as e:
    assert str(e) == "on purpose", e
assert not left(), left()
END
