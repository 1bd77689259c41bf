#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Streams over HTTP that are lost, left or closed before their end, and taken up again: whose
they are, what comes again, for how long; and the streams that belong to no request."""

import contextlib
import re
import select

from harness import FEW_MODULES, SOMEBODY, equal, main, test
from held import held, let_go
from http_client import Closed, Session, call, encode
from http_suite import CONFIG, OVER_HTTP, expect, healthy, http_private, place, seconds
from mcpclient import LEGACY, MODERN, ProtocolViolation
from supervisor import read_text
from waits import until, until_equal

RESUMABLE = LEGACY[1:]
PRIMED = "2025-11-25"
# Says something from time to time; no test depends on how much that is by when.
STEPS = """import time
for i in range(%d):
  print("line %%d" %% i, flush=True)
  time.sleep(.25)
"""


def get(connection, session, event_id=None, **change):
    headers = {"Accept": "text/event-stream", "Mcp-Session-Id": session.id,
               "MCP-Protocol-Version": session.revision, "Last-Event-ID": event_id}
    headers.update({k.replace("_", "-"): v for k, v in change.items()})
    connection.send("GET", headers=headers.items())


def ask(session, event_id=None, **change):
    """The whole answer to a GET."""
    with session.fresh() as connection:
        get(connection, session, event_id, **change)
        return connection.read()


def begin(session, script, **arguments):
    """Sends a call that streams; (connection, message), read up to the first event."""
    connection = session.fresh()
    message = session.message("tools/call", call(script, token=1, stream=True, **arguments))
    session.send(connection, message)
    head = connection.read_head()
    assert head.status == 200 and head.streams, head
    return connection, message


def stream(connection):
    """Its messages, as they come: the same stream however often this is called."""
    if not hasattr(connection, "running"):
        connection.running = connection.events()
    return connection.running


def first_event(connection):
    return next(stream(connection))


def numbers(event_ids):
    return [int(event_id.partition("-")[2]) for event_id in event_ids]


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", read_text("/proc/%d/status" % pid))[1]) << 10


# ---- what is missed comes again ----

@test
def a_lost_stream_goes_on(ctx):
    for revision in RESUMABLE:
        with Session(place(ctx), revision, timeout=seconds(ctx, 60)) as client:
            connection, message = begin(client, held(
                "resume-lost", before="print('first', flush=True)", after="print('second')"))
            first_event(connection)
            last = connection.event_ids[-1]
            connection.reset()
            with client.fresh() as again:
                get(again, client, last)
                response = again.read_head()
                let_go(ctx, "resume-lost")
                again.read_body(response)
            equal(response.status, 200)
            answer = client.take(message, response)
            assert "first\nsecond\n" in answer["result"]["content"][0]["text"], answer
            seen = numbers(again.event_ids)
            if revision == PRIMED:
                equal(again.event_ids[0], last, "the event that says where it goes on")
                seen = seen[1:]
            first = numbers([last])[0] + 1
            equal(seen, list(range(first, first + len(seen))), "the numbers")
            assert client.notes, "no news came"


@test
def what_was_said_to_nobody_is_kept(ctx):
    with Session(place(ctx), PRIMED, timeout=seconds(ctx, 60)) as client:
        connection, message = begin(client, STEPS % 3)
        first_event(connection)
        first = connection.event_ids[0]
        connection.close()
        waiting = client.fresh()
        get(waiting, client, first)
        whole = waiting.read()		# ends when the call is over
        waiting.close()
        assert "result" in whole.message, whole
        for _ in range(2):
            again = ask(client, first)
            equal(again.events, whole.events, "said again")
        equal(ask(client, waiting.event_ids[-1]).events, [], "after the last one")
        equal(ask(client, waiting.event_ids[-2]).events, whole.events[-1:], "its answer alone")
        assert client.ask("ping") == {} and message["id"] == whole.message["id"]


@test
def an_answer_over_json_needs_none(ctx):
    """Quick calls are no streams; and who takes none gets none, however long it takes."""
    with Session(place(ctx), PRIMED, timeout=seconds(ctx, 60)) as client:
        response = client.post(client.message("ping"))
        equal(response.header("Content-Type"), "application/json")
        message = client.message("tools/call", call("import time\ntime.sleep(2)\nprint(1)"))
        response = client.post(message, {"Accept": "application/json"})
        equal(response.header("Content-Type"), "application/json")


@test
def a_silent_call_is_primed(ctx):
    """Of the newest of them alone: older clients take an event without data for a message."""
    script = held("resume-primed", after="print('here')")
    for revision in OVER_HTTP:
        with Session(place(ctx), revision, timeout=seconds(ctx, 60)) as client:
            connection = client.fresh()
            message = client.message("tools/call", call(script))
            client.send(connection, message)
            if revision == PRIMED:
                response = connection.read_head()	# though nothing was said yet
                assert response.streams, response
                let_go(ctx, "resume-primed")
                connection.read_body(response)
            else:
                # Longer than until such a stream would begin.
                assert not select.select([connection.sock], [], [], 2)[0], "says something"
                let_go(ctx, "resume-primed")
                response = connection.read()
                assert not response.streams, response
            answer = client.take(message, response)
            assert "here" in answer["result"]["content"][0]["text"], answer
            if revision == PRIMED:
                equal(len(connection.event_ids), 2, "events")
                equal(len(response.events), 1, "messages")
                assert connection.retry_ms > 0
            connection.close()


@test
def streams_without_sessions_have_no_ids(ctx):
    for revision in (LEGACY[0], MODERN):
        with Session(place(ctx), revision, timeout=seconds(ctx, 60)) as client:
            connection, _ = begin(client, STEPS % 2)
            assert len(list(stream(connection))) > 1
            equal(connection.event_ids, [], revision)
            connection.close()


@test
def a_call_whose_client_is_away_can_be_cancelled(ctx):
    with Session(place(ctx), PRIMED, timeout=seconds(ctx, 60)) as client:
        connection, message = begin(client, STEPS % 2000, timeout_seconds=600)
        first_event(connection)
        last = connection.event_ids[-1]
        connection.reset()
        equal(client.notify("notifications/cancelled", {"requestId": message["id"]}).status, 202)
        events = ask(client, last).events
        assert not [e for e in events if "id" in e], "an answer to what was cancelled"


# ---- the server closes ----

@test(private=True)
def a_stream_is_closed_and_taken_up(ctx):
    """As often as it takes; no message comes twice, and none is lost."""
    with http_private(ctx, "stream_seconds = 1\n") as (service, where):
        with Session(where, PRIMED, timeout=seconds(ctx, 60)) as client:
            connection, message = begin(client, held("resume-taken", before=STEPS % 8,
                                                     after="print('end')"))
            events, rounds = list(stream(connection)), 0
            while not events or "method" in events[-1]:
                if rounds == 2:
                    let_go(ctx, "resume-taken", service)
                with client.fresh() as again:
                    get(again, client, connection.event_ids[-1])
                    events += again.read().events
                    connection.event_ids += again.event_ids
                rounds += 1
            assert rounds > 2, "%d rounds" % rounds
            equal(events[-1]["id"], message["id"])
            values = [e["params"]["progress"] for e in events[:-1]]
            equal(values, sorted(set(values)), "progress")
            printed = events[-1]["result"]["structuredContent"]["stdout"]
            equal(printed, "".join("line %d\n" % i for i in range(8)) + "end\n")
        with Session(where, "2025-06-18", timeout=seconds(ctx, 60)) as client:
            connection, message = begin(client, STEPS % 8)
            events = list(stream(connection))
            equal(events[-1].get("id"), message["id"], "before its time nobody knows of it")
            connection.close()


@test(private=True)
def a_question_waits_for_its_client(ctx):
    """Asked while no client listened, the question reaches the client that resumes the stream."""
    config = "stream_seconds = 1\n[policy]\nrun_script = approve\napprovers = self\n"
    with http_private(ctx, config) as (_, where):
        with Session(where, PRIMED, timeout=seconds(ctx, 60),
                     capabilities={"elicitation": {"form": {}}}) as client:
            connection = client.fresh()
            message = client.message("tools/call", call("print('agreed')"))
            client.send(connection, message)
            head = connection.read_head()
            assert head.streams, head
            asked = first_event(connection)
            equal(asked["method"], "elicitation/create")
            first = connection.event_ids[0]
            connection.reset()
            again = client.fresh()
            get(again, client, first)
            assert again.read_head().streams
            equal(first_event(again), asked, "asked again")
            response = client.post({"jsonrpc": "2.0", "id": asked["id"], "result": {
                "action": "accept", "content": {"allow": True}}})
            equal(response.status, 202)
            last, events = again.event_ids[-1], list(stream(again))
            if not events:		# closed before the answer was there
                events = until("the answer", lambda: ask(client, last).events)
            equal(events[-1].get("id"), message["id"])
            assert "agreed" in str(events[-1]["result"]), events
            again.close()


# ---- whose it is ----

@test
def an_event_belongs_to_its_session(ctx):
    with Session(place(ctx), PRIMED, timeout=seconds(ctx, 60)) as client, \
            Session(place(ctx), PRIMED, timeout=seconds(ctx, 60)) as other:
        connection, _ = begin(client, STEPS % 2)
        list(stream(connection))
        last = connection.event_ids[-2]
        connection.close()
        equal(len(ask(client, last).events), 1)
        expect(ask(other, last), 400, -32600)
        for bad in ("", "x", "1", "1-", "-1", "1-1-1", " 1-1x", "1-99999", "+1-1", "0-1", "1-0x1",
                    "99999999999999999999-1", "1-99999999999999999999", "1" * 4000):
            expect(ask(client, bad), 400, -32600)
        expect(ask(client, last, Mcp_Session_Id="0" * 32), 404, -32600)
        expect(ask(client, last, Mcp_Session_Id=None), 405, -32600)
        expect(ask(client, last, MCP_Protocol_Version=MODERN), 400, -32600)
        expect(ask(client, last, MCP_Protocol_Version="1"), 400, -32600)
        expect(ask(client, last, Accept="application/json"), 406, -32600)
        expect(ask(client, last, Origin="https://evil.example"), 403, -32600)
        equal(ask(client, last, MCP_Protocol_Version=None).status, 200)
        with client.fresh() as twice:
            twice.send("GET", headers=[("Accept", "text/event-stream"), ("Last-Event-ID", last),
                                       ("Last-Event-ID", last), ("Mcp-Session-Id", client.id)])
            expect(twice.read(), 400, -32600)


@test(private=True, root=True)
def an_event_belongs_to_its_user(ctx):
    with http_private(ctx, unix=True) as (_, path):
        with Session(path, PRIMED, timeout=seconds(ctx, 60)) as owner, \
                Session(path, PRIMED, uid=SOMEBODY, timeout=seconds(ctx, 60)) as other:
            connection, _ = begin(owner, STEPS % 2)
            list(stream(connection))
            last = connection.event_ids[-2]
            connection.close()
            expect(ask(other, last, Mcp_Session_Id=owner.id), 404, -32600)
            expect(ask(other, last), 400, -32600)
            equal(len(ask(owner, last).events), 1)


@test
def one_stream_has_one_listener(ctx):
    """Who takes it up has it; where it was heard before it ends, and nothing is said there."""
    with Session(place(ctx), PRIMED, timeout=seconds(ctx, 60)) as client:
        connection, message = begin(client, STEPS % 20)
        first_event(connection)
        with client.fresh() as again:
            get(again, client, connection.event_ids[-1])
            assert again.read_head().streams
            first_event(again)
            rest = list(stream(connection))
            assert all("method" in event for event in rest), "answered where nobody listens"
            equal(list(stream(again))[-1]["id"], message["id"])
        # the connection that was left is as good as any
        client.connection = connection
        equal(client.ask("ping"), {})


# ---- how long ----

@test(private=True)
def a_stream_is_kept_for_a_while(ctx):
    with http_private(ctx, "resume_seconds = 1\n") as (_, where):
        with Session(where, PRIMED, timeout=seconds(ctx, 60)) as client:
            connection, _ = begin(client, STEPS % 2)
            list(stream(connection))
            last = connection.event_ids[-1]
            connection.close()
            until_equal("the status", lambda: ask(client, last).status, 400)
            equal(client.ask("ping"), {})


@test(private=True)
def what_is_said_again_takes_no_more_than_it_is(ctx):
    """To clients that ask for all of a long stream and read nothing of it."""
    script = """import os, time
end = time.monotonic() + 5
while time.monotonic() < end:
  os.write(1, b"x")
  os.write(2, b"y")
  time.sleep(.0005)
"""
    with http_private(ctx) as (service, where):
        with Session(where, PRIMED, timeout=seconds(ctx, 60)) as client, \
                contextlib.ExitStack() as held:
            connection, _ = begin(client, script, timeout_seconds=60)
            connection.checker = None		# ten thousand events
            size = sum(len(encode(event)) + 64 for event in stream(connection))
            first = connection.event_ids[0]
            connection.close()
            before = resident(service.pid)
            for _ in range(60):
                waits = client.fresh()
                held.callback(waits.close)
                get(waits, client, first)
            equal(ask(client, connection.event_ids[-1]).status, 200)	# after all of those
            more = resident(service.pid) - before
            assert more < 2 * 60 * size + (32 << 20), "%d MiB for 60 times %d KiB" % (
                more >> 20, size >> 10)


@test(private=True)
def none_is_kept_where_none_is_to_be(ctx):
    with http_private(ctx, "resume_seconds = 0\nstream_seconds = 1\n") as (_, where):
        with Session(where, PRIMED, timeout=seconds(ctx, 60)) as client:
            connection, message = begin(client, STEPS % 8)
            events = list(stream(connection))
            equal(events[-1].get("id"), message["id"], "it stays open")
            equal(connection.event_ids, [])
            connection.close()
            expect(ask(client, "1-0"), 400, -32600)
            response = client.post(client.message("tools/call", call(
                "import time\ntime.sleep(2)")))
            equal(response.header("Content-Type"), "application/json")


@test
def a_session_ends_with_its_streams(ctx):
    with Session(place(ctx), PRIMED, timeout=seconds(ctx, 60)) as client:
        connection, _ = begin(client, STEPS % 2000, timeout_seconds=600)
        first_event(connection)
        last = connection.event_ids[-1]
        connection.reset()
        equal(client.end().status, 204)
        expect(ask(client, last), 404, -32600)
    healthy(place(ctx))


@test(private=True)
def the_service_ends_with_streams_left(ctx):
    with http_private(ctx) as (service, where):
        with Session(where, PRIMED, timeout=seconds(ctx, 60)) as client:
            connection, _ = begin(client, STEPS % 2000, timeout_seconds=600)
            first_event(connection)
            connection.reset()
            done, _ = begin(client, STEPS % 2)
            list(stream(done))
            done.close()
            equal(service.stop(), 0, "its exit status")


# ---- streams that belong to no request ----

def listen(client):
    connection = client.fresh()
    get(connection, client)
    head = connection.read_head()
    assert head.status == 200 and head.streams, head
    return connection


@test
def a_session_has_one_stream_of_its_own(ctx):
    for revision in LEGACY:
        with Session(place(ctx), revision, timeout=seconds(ctx, 60)) as client:
            first = listen(client)
            second = listen(client)
            equal(list(stream(first)), [], "the older one")
            equal(client.ask("ping"), {})
            equal(client.end().status, 204)
            equal(list(stream(second)), [], "at the end of the session")
            first.close()
            second.close()


@test(private=True)
def a_listener_keeps_its_session(ctx):
    with http_private(ctx, "session_idle_seconds = 4\n") as (service, where):
        with Session(where, PRIMED, timeout=seconds(ctx, 60)) as client, \
                Session(where, PRIMED, timeout=seconds(ctx, 60)):
            connection = listen(client)
            service.wait_logged("why=idle")
            equal(client.ask("ping"), {})
            connection.close()
            service.wait_logged("why=idle", times=2)


@test(private=True)
def listeners_end_when_the_service_stops(ctx):
    with http_private(ctx) as (service, where):
        with Session(where, PRIMED, timeout=seconds(ctx, 60)) as client:
            connection = listen(client)
            client.connection.close()
            client.connection = None
            equal(service.stop(), 0, "its exit status")
            with contextlib.suppress(Closed, ProtocolViolation):
                equal(list(stream(connection)), [])
            connection.close()


if __name__ == "__main__":
    main(__doc__, CONFIG, modules=FEW_MODULES)
