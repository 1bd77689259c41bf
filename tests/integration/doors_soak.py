#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Open WebUI's way with kernels, for a while (--minutes): each run has a kernel of its own, which is deleted
without an interrupt, also while its cell runs. Nothing grows: descriptors, memory, kernels, sessions, processes."""

import asyncio
import json
import os
import time
import urllib.parse

import aiohttp

from doors_suite import TOKEN, own_gateway
from harness import equal, main, test
from supervisor import descendants, read_text
from waits import until

USERS = 4		# runs at once
MINUTES = 0.5		# without --minutes: times the effort
WARM = 12		# runs of each user before the first count
GROWN = 6 << 20		# bytes of memory that come and go with the allocator's pages
# The service keeps results for clients that ask for them later, up to this bound of a tenant. With its usual
# 16 MiB it grows for minutes, and then no more.
SETTINGS = "[results]\nkeep_bytes = 65536\n"
# The code of a run, and what is shown of it; None: the user's time is over while it runs.
RUNS = [
    ("print(6 * 7)", "42\n"),
    ("x = [i * i for i in range(1000)]\nsum(x)", "332833500"),
    ("1 / 0", "ZeroDivisionError"),
    ("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()", "iVBOR"),
    ("print('x' * 300_000)", "x" * 300_000),
    ("print('started', flush=True)\nwhile True: pass", None),
    ("print('started', flush=True)\nimport subprocess; subprocess.run(['sleep', '300'])", None),
    ("import os\nprint('gone', flush=True)\nos._exit(3)", "gone"),
]


class Counts:
    """What gateway and service hold."""

    def __init__(self, service, gateway):
        status = read_text("/proc/%d/status" % gateway.process.pid)
        self.fds = {"gateway": len(os.listdir("/proc/%d/fd" % gateway.process.pid)), "service": service.fds()}
        self.memory = {"gateway": int(status.split("VmRSS:")[1].split()[0]) << 10, "service": service.rss_bytes()}
        self.processes = len(descendants(service.pid))
        self.cgroups = len(service.cgroups())

    def __str__(self):
        return "%s descriptors, %s, %d processes, %d cgroups" % (
            self.fds, {name: "%.1f MiB" % (size / 1048576) for name, size in self.memory.items()},
            self.processes, self.cgroups)


async def shown_by(session, url, code, wanted):
    """Runs code on a new kernel as Open WebUI does; the text of what it shows."""
    query = "?" + urllib.parse.urlencode({"token": TOKEN})
    async with session.post(url + "/api/kernels" + query) as response:
        equal(response.status, 201, await response.text())
        kernel = (await response.json())["id"]
    text = ""
    # Its client of WebSockets closes above 1 MiB.
    async with session.ws_connect("%s/api/kernels/%s/channels%s" % (url, kernel, query), max_msg_size=1 << 20) as ws:
        await ws.send_json({"header": {
            "msg_id": "m", "msg_type": "execute_request", "username": "user", "session": "s", "date": "",
            "version": "5.3"}, "parent_header": {}, "metadata": {}, "channel": "shell", "content": {
                "code": code, "silent": False, "store_history": True, "user_expressions": {},
                "allow_stdin": False, "stop_on_error": True}})
        while True:
            frame = await ws.receive(timeout=240)
            equal(frame.type, aiohttp.WSMsgType.TEXT, "%r" % (frame.data,))
            got = json.loads(frame.data)
            if got["parent_header"].get("msg_id") != "m":
                continue
            content = got["content"]
            if got["msg_type"] == "stream":
                text += content["text"]
            elif got["msg_type"] in ("execute_result", "display_data"):
                text += content["data"].get("image/png") or content["data"].get("text/plain", "")
            elif got["msg_type"] == "error":
                text += "\n".join(content["traceback"])
            if wanted is None and "started" in text:
                break
            if got["msg_type"] == "status" and content["execution_state"] == "idle":
                break
    async with session.delete("%s/api/kernels/%s%s" % (url, kernel, query)) as response:
        equal(response.status, 204, await response.text())
    return text


async def users(url, done_at, at_least):
    """Each user runs one after another until this time, and so many at least; how many runs it were."""
    async def user(number):
        count = 0
        while count < at_least or time.monotonic() < done_at:
            code, wanted = RUNS[(number + count) % len(RUNS)]
            async with aiohttp.ClientSession() as session:
                text = await shown_by(session, url, code, wanted)
            assert (wanted or "started") in text, "%r showed %.300r" % (code, text)
            count += 1
        return count
    return sum(await asyncio.gather(*map(user, range(USERS))))


@test(private=True)
def a_kernel_for_each_run_leaves_nothing(ctx):
    minutes = ctx.options.minutes or MINUTES * ctx.options.effort
    with own_gateway(ctx, settings=SETTINGS) as (service, gateway):
        def at_rest():
            equal(gateway.ask("GET", "/api/kernels"), (200, []))
            # Sessions that were closed end by themselves; their processes are the last of them.
            until("quiet", lambda: not any("session" in (read_text("/proc/%d/cmdline" % pid) or "")
                                           for pid, _ in descendants(service.pid)))
            return Counts(service, gateway)
        warm = asyncio.run(users(gateway.url, 0, WARM))
        before = at_rest()
        runs = asyncio.run(users(gateway.url, time.monotonic() + minutes * 60, len(RUNS)))
        after = at_rest()
        said = "%d runs after %d: %s; before: %s" % (runs, warm, after, before)
        for who, count in after.fds.items():
            assert count <= before.fds[who] + 4, said
        for who, size in after.memory.items():
            assert size <= before.memory[who] + GROWN, said
        assert after.processes <= before.processes + 4 and after.cgroups <= before.cgroups + 4, said
    return said


if __name__ == "__main__":
    main(__doc__)
