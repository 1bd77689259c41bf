#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a service counts: mcp-python metrics, and what a scraper gets by HTTP."""

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import time

from auth_suite import with_tokens
from harness import FEW_MODULES, Skip, equal, main, test, tests
from operate import BUSY, ME, Directory, command
from supervisor import Supervisor
from waits import until

try:
    from prometheus_client.openmetrics import parser as openmetrics
    from prometheus_client.parser import text_string_to_metric_families as plain_families
except ImportError:
    openmetrics = None

    def plain_families(text):
        raise Skip("python3-prometheus-client is not installed")

tests.clear()	# those of operate.py


def parse(text):
    """By name and labels. The parser is strict; what it lets pass is looked at here."""
    if openmetrics is None:
        raise Skip("python3-prometheus-client is not installed", missing=True)
    assert text.endswith("\n# EOF\n") and "\n\n" not in text, text[-200:]
    samples, families = {}, set()
    for family in openmetrics.text_string_to_metric_families(text):
        assert family.name not in families, "twice: " + family.name
        families.add(family.name)
        assert family.name.startswith("mcp_python_") and family.documentation, family
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in samples, "twice: %s" % (key,)
            samples[key] = sample.value
    return samples


def value(samples, name, **labels):
    return samples.get(("mcp_python_" + name, tuple(sorted(labels.items()))))


def metrics(ctx, d):
    return parse(command(ctx, "metrics", "--admin-socket", d.socket).stdout)


@test(private=True)
def metrics_count_what_happened(ctx):
    with Directory() as d, \
            ctx.private(d.config("[quota]\nexecutions_per_minute = 1000\n")) as s, \
            ctx.client(path=s.socket) as c:
        before = metrics(ctx, d)
        equal(value(before, "executions_total", status="ok"), 0)
        for _ in range(3):
            equal(c.run(BUSY, timeout_seconds=300).status, "ok")
        equal(c.run("1 / 0").status, "error")
        equal(c.run("while True: pass", timeout_seconds=1).status, "timeout")
        seen = metrics(ctx, d)
        for state, n in (("ok", 3), ("error", 1), ("timeout", 1), ("crashed", 0)):
            equal(value(seen, "executions_total", status=state), n, state)
        equal(value(seen, "limits_hit_total", limit="timeout"), 1)
        equal(value(seen, "limits_hit_total", limit="memory_limit"), 0)
        equal(value(seen, "queue_wait_seconds_count"), 5)
        equal(value(seen, "queue_wait_seconds_bucket", le="+Inf"), 5)
        equal(value(seen, "execution_seconds_count", status="timeout"), 1)
        equal(value(seen, "execution_seconds_bucket", status="timeout", le="0.25"), 0)
        assert value(seen, "execution_seconds_sum", status="timeout") >= 0.99
        equal(value(seen, "tenant_executions_total", tenant=ME), 5)
        equal(value(seen, "tenant_limits_hit_total", tenant=ME), 1)
        assert value(seen, "tenant_cpu_seconds_total", tenant=ME) >= 0.6
        equal(value(seen, "zygote_ready", profile="basic"), 1)
        equal(value(seen, "learned_modules", profile="basic"), 0)
        equal(value(seen, "learned_scripts_total", profile="basic", result="miss"), 0)
        assert value(seen, "workers", profile="basic", state="warm") is not None
        assert value(seen, "audit_records_total") > value(before, "audit_records_total")
        equal(value(seen, "audit_lost_records_total"), 0)
        equal([v for (name, _), v in seen.items() if name == "mcp_python_build_info"], [1])
        for key, v in before.items():
            if key[0].endswith(("_total", "_count", "_bucket")):
                assert seen[key] >= v, key


@test(private=True)
def refused_imports_are_counted_by_tenant(ctx):
    with Directory() as d, ctx.private(d.config()) as s, ctx.client(path=s.socket) as c:
        equal(value(metrics(ctx, d), "imports_refused_total"), 0)
        equal(c.run("import os, ctypes", tier="basic").status, "error")
        equal(c.run("import math", tier="basic").status, "ok")
        seen = metrics(ctx, d)
        equal(value(seen, "imports_refused_total"), 1)
        equal(value(seen, "tenant_imports_refused_total", tenant=ME), 1)


@test(private=True)
def refusals_are_counted_too(ctx):
    with Directory() as d, \
            ctx.private(d.config("[quota]\nexecutions_per_minute = 1\n")) as s, \
            ctx.client(path=s.socket) as c:
        started = time.monotonic()
        for _ in range(3):
            c.ask("tools/call", {"name": "run_script", "arguments": {"script": "1"}})
        seen = metrics(ctx, d)
        if time.monotonic() - started > 55:
            raise Skip("the machine is too slow for a quota of a minute")
        equal(value(seen, "executions_refused_total", why="quota"), 2)
        equal(value(seen, "executions_total", status="ok"), 1)


def port_of(s):
    return int(re.search(r"listening metrics=127\.0\.0\.1:(\d+)", s.log()).group(1))


def fetch(ctx, port, method="GET", path="/metrics", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ctx.seconds(30))
    with contextlib.closing(connection):
        connection.request(method, path, body="{}" if method == "POST" else None,
                           headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Type"), answer.read().decode()


@test(private=True)
def a_scraper_gets_them_by_http(ctx):
    with Directory() as d, \
            ctx.private(d.config("[metrics]\nlisten = 127.0.0.1:0\n")) as s, \
            ctx.client(path=s.socket) as c:
        c.run("1")
        port = port_of(s)
        code, kind, text = fetch(ctx, port)
        equal((code, kind), (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"))
        seen = parse(text)
        equal(value(seen, "executions_total", status="ok"), 1)
        # everybody on the machine reads this: nobody is named
        assert "tenant=" not in text and ME not in text, text
        equal(fetch(ctx, port, "HEAD")[0::2], (200, ""))
        code, _, text = fetch(ctx, port, path="/")
        assert code == 404 and "/metrics" in text, text
        equal(fetch(ctx, port, "POST", "/mcp")[0], 404)
        equal(fetch(ctx, port, "POST")[0], 405)
        # text alone: the older form, for readers that know no other
        code, kind, text = fetch(ctx, port, Accept="text/plain;version=0.0.4")
        equal((code, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
        assert "# EOF" not in text and "# UNIT" not in text and " info\n" not in text, text
        families = {one.name: one for one in plain_families(text)}
        equal(families["mcp_python_executions"].type, "counter")
        equal(families["mcp_python_build_info"].type, "gauge")
        equal(fetch(ctx, port, Accept="application/openmetrics-text;version=1.0.0;q=0.6,"
                    "text/plain;version=0.0.4;q=0.5")[1].split(";")[0], "application/openmetrics-text")
        equal(fetch(ctx, port, Host="rebound.example.com")[0], 403)
        equal(fetch(ctx, port, Origin="https://example.com")[0], 403)


@test(private=True)
def alarms_and_dashboard_ask_for_what_there_is(ctx):
    """doc/prometheus and doc/grafana: each name and each label that they use."""
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc")
    with open(top + "/grafana/mcp-pythond.json") as f:
        dashboard = json.load(f)
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    with open(top + "/prometheus/mcp-pythond.rules.yml") as f:
        asked += re.findall(r"^    expr: (.+)$", f.read(), re.M)
    assert len(asked) >= 20, asked
    with Directory() as d, ctx.private(d.config()) as s, ctx.client(path=s.socket) as c:
        c.run("1")
        text = command(ctx, "metrics", "--admin-socket", d.socket).stdout
    families = set(re.findall(r"^# TYPE (\w+)", text, re.M))
    labels = {}
    for name, pairs in parse(text):
        labels.setdefault(name, set()).update(label for label, _ in pairs)
    for expr in asked:
        for name in re.findall(r"mcp_python_\w+", expr):
            assert re.sub("_(total|bucket)$", "", name) in families, (name, expr)
            if name not in labels:	# a counter that has no number yet
                continue
            for label in re.findall(r"\b(\w+)=\"", expr) + re.findall(r"by \(([\w, ]+)\)", expr):
                assert set(re.split(", *", label)) <= labels[name], (label, expr, labels[name])


@test(private=True)
def a_socket_for_them_is_handed_over(ctx):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        service = Supervisor(ctx.options.build, "")
        n = tcp.fileno()
        service.argv = ["/bin/bash", "-c", "exec 103<&%d; exec 3<&103; export LISTEN_PID=$$; "
                        'exec "$0" "$@"' % n] + service.argv
        service.env.update(LISTEN_FDS="1", LISTEN_FDNAMES="metrics")
        service.pass_fds = [n]
        with service, ctx.client(path=service.socket) as c:
            c.run("1")	# clients have their own all the same
            code, _, text = fetch(ctx, tcp.getsockname()[1])
            equal((code, value(parse(text), "executions_total", status="ok")), (200, 1))
            equal(service.stop(), 0)


@test(private=True)
def what_others_can_reach_is_not_taken_for_them(ctx):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
        tcp.bind(("0.0.0.0", 0))
        tcp.listen()
        n = tcp.fileno()
        done = subprocess.run(
            ["/bin/bash", "-c", "exec 103<&%d; exec 3<&103; export LISTEN_PID=$$; exec \"$0\" \"$@\"" % n,
             os.path.join(ctx.options.build, "mcp-pythond")], pass_fds=[n], text=True,
            env=dict(os.environ, LISTEN_FDS="1", LISTEN_FDNAMES="metrics"), capture_output=True,
            timeout=ctx.seconds(60))
        equal(done.returncode, 1, done.stderr)
        assert "loopback" in done.stderr and "metrics" in done.stderr, done.stderr


@test(private=True)
def tenants_are_named_there_when_wanted(ctx):
    with ctx.private("[metrics]\nlisten = 127.0.0.1:0\ntenants = yes\n") as s, \
            ctx.client(path=s.socket) as c:
        c.run("1")
        seen = parse(fetch(ctx, port_of(s))[2])
        equal(value(seen, "tenant_executions_total", tenant=ME), 1)
        equal(value(seen, "tenant_running", tenant=ME), 0)


@test(private=True)
def metrics_stay_on_this_machine(ctx):
    with Directory() as d:
        path = os.path.join(d.path, "conf")
        for listen, want in (("0.0.0.0:1", 78), ("192.0.2.1:1", 78), ("[::]:1", 78),
                             ("127.0.0.1:1", 0), ("[::1]:1", 0)):
            with open(path, "w", encoding="utf-8") as f:
                f.write("[metrics]\nlisten = %s\n" % listen)
            done = subprocess.run([os.path.join(ctx.options.build, "mcp-pythond"),
                                   "--check-config", "--config", path],
                                  capture_output=True, text=True)
            equal(done.returncode, want, listen + done.stderr)
            assert want == 0 or "conf:2: [metrics] listen: " in done.stderr, done.stderr


@test(private=True)
def a_reader_gets_them_beside_mcp(ctx):
    """A scraper of another machine: it has a token, and names the container's address as Host."""
    with with_tokens(ctx, more="[metrics]\nreaders = token:scraper\n") as (files, service, place):
        scraper, other = files.add("scraper"), files.add("other")

        def get(token="", **more):
            headers = {"Authorization": "Bearer " + token, **more} if token else more
            return fetch(ctx, place[1], Host="10.1.2.3:8080", **headers)
        until("both tokens are known", lambda: (get(other)[0], get(scraper)[0]) == (403, 200))
        code, kind, text = get(scraper)
        equal(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8")
        equal(value(parse(text), "executions_total", status="ok"), 0)
        code, _, text = get(other)
        assert code == 403 and "[metrics] readers" in text, text
        equal(get()[0], 403, "no token: Host counts")
        equal(fetch(ctx, place[1])[0], 401, "no token")
        equal(get(scraper[:-1] + "-")[0], 401, "a wrong token")
        own = {"Authorization": "Bearer " + scraper}
        equal(fetch(ctx, place[1], "POST", **own)[0], 405)
        equal(fetch(ctx, place[1], "HEAD", **own)[0::2], (200, ""))
        equal(fetch(ctx, place[1], path="/metrics/", **own)[0], 404)


@test(private=True)
def nobody_reads_them_beside_mcp_unless_told(ctx):
    with with_tokens(ctx) as (files, service, place):
        own = {"Authorization": "Bearer " + files.add("scraper")}
        code, _, text = fetch(ctx, place[1], **own)
        assert code == 404 and "/mcp" in text, text


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
