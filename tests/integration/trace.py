#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""--trace: frames, changes of state and decisions on standard error, and no contents.

A suite of tests/integration/run."""

import os
import re
import subprocess

from harness import FEW_MODULES, equal, main, test

SECRET = "the-secret-of-a-script"
SCRIPT = "s = '%s'\nprint(s)\n" % SECRET
LINE = re.compile(r"trace (?:execution=(\S+) )?(\S.*)")


def traced(ctx, *args):
    """The lines of a service that runs SCRIPT once, and the execution's id."""
    with ctx.private(args=args) as service:
        with ctx.client(path=service.socket) as client:
            o = client.run(SCRIPT)
        equal((o.status, o.stdout), ("ok", SECRET + "\n"), repr(o))
        if args:	# lines may still be on their way
            service.wait_log("no end of the execution", lambda log: "status=ok" in log)
        log = service.log()
    assert SECRET not in log, log[-3000:]
    return [m.groups() for m in map(LINE.search, log.splitlines()) if m], o.id


@test(private=True)
def a_call_is_seen_from_frame_to_outcome(ctx):
    lines, execution = traced(ctx, "--trace")
    of_it = [text for who, text in lines if who == execution]
    wanted = [r"sent=RUN bytes=\d+ fds=\d", r"decision=run worker=\d+", "state=waiting->running",
              r"received=DONE bytes=\d+ fds=0", "state=running->due", "decision=outcome status=ok"]
    at = 0
    for pattern in wanted:	# in this order
        found = [i for i, text in enumerate(of_it) if i >= at and re.fullmatch(pattern, text)]
        assert found, (pattern, at, of_it)
        at = found[0]
    others = [text for who, text in lines if who is None]
    for pattern in (r"decision=policy tool=run_script verdict=\w+", r"worker=\d+ state=starting->warm",
                    r'child="the zygote" state=starting->serving', r"received=ZYGOTE_READY bytes=\d+ fds=0"):
        assert any(re.fullmatch(pattern, text) for text in others), (pattern, others[:40])


@test(private=True)
def only_executions_if_so_asked(ctx):
    lines, execution = traced(ctx, "--trace=execution")
    assert lines and {who for who, _ in lines} == {execution}, lines


@test(private=True)
def another_value_is_refused(ctx):
    done = subprocess.run([os.path.join(ctx.options.build, "mcp-pythond"), "--trace=frames"],
                          capture_output=True, text=True, check=False)
    equal((done.returncode, done.stderr), (2, "--trace: its value can only be execution.\n"))


@test(private=True)
def nothing_is_traced_by_default(ctx):
    equal(traced(ctx)[0], [])


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
