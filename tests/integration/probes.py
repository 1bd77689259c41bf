#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The probes /healthz and /readyz: everybody who can connect may ask, and learns no more than
whether calls are taken, and which part of the service is missing."""

import contextlib
import os
import re
import signal
import subprocess

import operate
from auth_suite import with_tokens
from files import place
from harness import FEW_MODULES, SOMEBODY, equal, main, test, tests
from helpers import helpers_of, kill_zygotes
from http_client import Closed, Connection
from http_suite import INSECURE, place_of
from metrics import fetch, port_of
from supervisor import read_text
from waits import until

tests.clear()	# those of the other suites

PATHS = ("/healthz", "/readyz")
TEXT = "text/plain; charset=utf-8"
FEW_FILES = 4	# descriptors: a process that has them cannot make a socket


def probe(where, path, verb="GET", headers=(), timeout=60, **more):
    with Connection(where, timeout, **more) as connection:
        answer = connection.ask(verb, path, list(headers))
        return answer.status, answer.body.decode(), answer


@test(private=True)
def nobody_needs_a_token(ctx):
    """Nor the right Host: a kubelet names the pod's address."""
    with with_tokens(ctx) as (files, _, where):
        for path in PATHS:
            for headers in ((), [("Host", "10.1.2.3:8080")], [("Authorization", "Bearer none")],
                            [("Origin", "https://example.com")]):
                status, text, answer = probe(where, path, headers=headers)
                equal((status, text), (200, "ok\n"), "%s %s" % (path, headers))
                equal((answer.header("Content-Type"), answer.header("Cache-Control")),
                      (TEXT, "no-store"))
                equal(answer.header("Access-Control-Allow-Origin"), None)
            equal(probe(where, path + "?verbose")[:2], (200, "ok\n"))
            equal(probe(where, path, "HEAD")[:2], (200, ""))
            if os.getuid() == 0:
                equal(probe(files.http, path, uid=SOMEBODY)[:2], (200, "ok\n"), "unix socket")
            for verb in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
                status, _, answer = probe(where, path, verb)
                equal((status, answer.header("Allow")), (405, "GET, HEAD"), verb)
        for path in ("/healthz/", "/healthzz", "/ready", "/%68ealthz", "/mcp/healthz"):
            equal(probe(where, path)[0], 404, path)
        equal(probe(where, "/mcp", "POST")[0], 401, "the rest needs one")


@test(private=True)
def they_are_there_beside_metrics(ctx):
    with operate.Directory() as d, ctx.private(d.config("[metrics]\nlisten = 127.0.0.1:0\n")) as s, \
            ctx.client(path=s.socket):
        for path in PATHS:
            equal(fetch(ctx, port_of(s), path=path), (200, TEXT, "ok\n"))
        status, _, text = fetch(ctx, port_of(s), path="/")
        assert status == 404 and all(path in text for path in PATHS), text


def limit_files(pid, soft):
    """Of another user's process: only that user may."""
    status = read_text("/proc/%d/status" % pid)
    user, group = (int(re.search(r"^%s:\s(\d+)" % name, status, re.M)[1]) for name in ("Uid", "Gid"))
    who = dict(user=user, group=group, extra_groups=[]) if os.getuid() == 0 else {}
    subprocess.run(["prlimit", "--pid", str(pid), "--nofile=%s:" % soft], check=True, **who)


@contextlib.contextmanager
def no_helper_is_made(s):
    """Within it a lost helper stays away, because the fork servers can make no socket."""
    before = {pid: re.search(r"^Max open files +(\d+)", read_text("/proc/%d/limits" % pid), re.M)[1]
              for pid in helpers_of(s)["mcp-forker"]}
    for pid in before:
        limit_files(pid, FEW_FILES)
    try:
        yield
    finally:
        for pid, soft in before.items():
            limit_files(pid, soft)


@test(private=True)
def what_is_missing_is_named(ctx):
    """Each helper that calls need, and the zygote; ready again as soon as it is there."""
    with place() as store, operate.Directory() as d, \
            ctx.private(d.config("[http]\nlisten = 127.0.0.1:0\n%s[files]\ndirectory = %s\n" % (
                INSECURE, store))) as s, ctx.client(path=s.socket) as client:
        where = place_of(s)

        def until_ready(status, text):
            until("%r is said" % text, lambda: probe(where, "/readyz")[:2] == (status, text))

        for name in ("launcher", "directory", "files", "usage"):
            with no_helper_is_made(s):
                os.kill(helpers_of(s)["mcp-" + name][0], signal.SIGKILL)
                until_ready(503, "the %s helper is away\n" % name)
                equal(probe(where, "/healthz")[:2], (200, "ok\n"), "it lives")
                equal(probe(where, "/readyz", "HEAD")[:2], (503, ""))
                if name == "launcher":	# which starts zygotes
                    kill_zygotes(s)
                    until_ready(503, "no zygote is ready\n")
            until_ready(200, "ok\n")
        equal(client.run("print(6 * 7)").stdout, "42\n")


@test(private=True)
def a_service_that_stops_is_not_ready(ctx):
    with with_tokens(ctx) as (_, s, where):
        equal(probe(where, "/readyz")[0], 200)
        os.kill(s.pid, signal.SIGTERM)
        s.wait_logged("stopping signal=SIGTERM")
        with contextlib.suppress(Closed, ConnectionError):
            equal(probe(where, "/readyz")[0], 503)


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
