# SPDX-License-Identifier: Apache-2.0
"""The commands of mcp-python by which the console asks the service: run here (Local), or by the
program of a user who has logged in to the console of the whole machine (login.py)."""

import asyncio
import contextlib
import json
import re

COMMAND_SECONDS = 30
OUTPUT_MAX = 16 << 20
LINE_MAX = 16 << 20
ID, SET, WHO, TEXT = (re.compile(p) for p in (
    r"[a-z]-[a-z0-9]{4,32}", r"[0-9a-f]{64}", r"[^\W_-][^\0\n]{0,255}|_[^\0\n]{0,255}", r"[^\0\n]{1,500}"))
# All that the console ever asks. A word is itself, or of a form.
FORMS = (
    ("status", "--json"), ("ps", "--json"), ("packages", "--json"), ("check-host",), ("audit", "verify"),
    ("approvals", "list", "--json"), ("approvals", "list", "--all", "--json"), ("approvals", "show", ID),
    ("approvals", "approve", ID), ("approvals", "deny", ID), ("approvals", "revoke", ID),
    ("approvals", "approve", ID, "--reason", TEXT), ("approvals", "deny", ID, "--reason", TEXT),
    ("stop", ID), ("packages", "remove", SET), ("packages", "remove", SET, WHO), ("policy", WHO), ("journal",))
# Warnings in the journal, of the machine's service and of one that is a user's own.
JOURNAL = ["journalctl", "--no-pager", "--output", "short-iso", "--priority", "warning", "--lines", "50",
           "--unit", "mcp-pythond", "--user-unit", "mcp-pythond"]


class Refused(Exception):
    """A command did not do what it was to do; the text is what it said."""


def is_known(words):
    """Is this a command of the console?"""
    return isinstance(words, list) and all(isinstance(word, str) for word in words) and any(
        len(form) == len(words) and all(
            one == word if isinstance(one, str) else one.fullmatch(word)
            for one, word in zip(form, words)) for form in FORMS)


class Commands:
    """Where they run: run(*words) gives (code, output, errors); lines() the audit log, record by
    record, with those that are added; Refused says why there is none, or no more."""

    async def ask(self, *words):
        """What a command printed."""
        code, out, err = await self.run(*words)
        if code:
            raise Refused(err or out or "exit code %d" % code)
        return out

    async def json(self, *words):
        try:
            return json.loads(await self.ask(*words, "--json"))
        except ValueError as e:
            raise Refused("no JSON: %s" % e) from e


class Local(Commands):
    """mcp-python, with the rights of who runs this program."""

    def __init__(self, path, service, admin_socket, audit_file):
        self.path, self.service = path, service
        self.admin = ["--admin-socket", admin_socket] if admin_socket else []
        self.file = ["--file", audit_file] if audit_file else []

    def argv(self, words):
        if words[0] == "journal":
            return JOURNAL
        if words[0] == "policy":
            return [self.service or "mcp-pythond", "--show-policy", *words[1:]]
        more = {"check-host": [], "audit": self.file}.get(words[0], self.admin)
        return [self.path, *words, *more]

    async def run(self, *words):
        argv = self.argv(words)
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE, limit=OUTPUT_MAX)
        except (OSError, ValueError) as e:
            raise Refused("%s: %s" % (argv[0], e)) from e
        try:
            out, err = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
        except asyncio.TimeoutError as e:
            raise Refused("no answer within %d s" % COMMAND_SECONDS) from e
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return process.returncode, out[:OUTPUT_MAX].decode(errors="replace"), \
            err[:4096].decode(errors="replace").strip()

    async def lines(self):
        try:
            process = await asyncio.create_subprocess_exec(
                *self.argv(("audit", "show", "--json", "--follow")), stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=LINE_MAX)
        except OSError as e:
            raise Refused("%s: %s" % (self.path, e)) from e
        said = asyncio.create_task(process.stderr.read(4096))
        try:
            while line := await process.stdout.readline():
                yield line
            raise Refused((await said).decode(errors="replace").strip() or "the audit log cannot be read")
        except ValueError as e:
            raise Refused("the audit log cannot be read: %s" % e) from e
        finally:
            said.cancel()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
