# SPDX-License-Identifier: Apache-2.0
"""Messages about what should be looked at, sent to where the console's user said.

A message is lost if it cannot be sent after a few tries, and the log says so: pages have the truth.
"""

import asyncio
import email.message
import html
import ipaddress
import re
import shutil
import sys
import urllib.parse

import aiohttp

TRIES = 3
AGAIN_SECONDS = 5		# before the second try; twice as long before the next
SEND_SECONDS = 15
WAITING_MAX = 100
ADDRESS = re.compile(r"[A-Za-z0-9._%+][A-Za-z0-9._%+-]*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", re.ASCII)
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/lib"


class NotSent(Exception):
    pass


async def run(program, *words, given=b""):
    path = shutil.which(program) or shutil.which(program, path=PATH)
    if not path:
        raise NotSent("%s is not installed" % program)
    process = await asyncio.create_subprocess_exec(
        path, *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE)
    try:
        _, said = await process.communicate(given)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise NotSent("%s: exit code %d: %s" % (
            program, process.returncode, said[:300].decode(errors="replace").strip()))


async def desktop(_, message):
    # Desktops take the text for markup.
    await run("notify-send", "--app-name=mcp-pythond", "--", "mcp-pythond", html.escape(message["text"]))


async def mail(target, message):
    letter = email.message.EmailMessage()
    letter["To"], letter["Subject"] = target, "mcp-pythond: " + message["subject"]
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content("%s\n\n%s\n" % (message["text"], message["url"]))
    await run("sendmail", "-i", "--", target, given=letter.as_bytes())


async def webhook(target, message):
    async with aiohttp.ClientSession() as session, session.post(
            target, json=message, allow_redirects=False) as answer:
        if answer.status // 100 != 2:
            raise NotSent("status %d" % answer.status)


def is_safe(url):
    """https, or plain http to this machine."""
    if url.scheme == "https":
        return bool(url.hostname)
    try:
        return url.scheme == "http" and ipaddress.ip_address(url.hostname or "").is_loopback
    except ValueError:
        return url.scheme == "http" and url.hostname == "localhost"


def way_of(text):
    """(how to send, whereto) of an option's value; ValueError says what is wrong with it."""
    if text == "desktop":
        return desktop, ""
    kind, _, rest = text.partition(":")
    if kind == "mail":
        if not ADDRESS.fullmatch(rest) or len(rest) > 254:
            raise ValueError("no address such as mail:ops@example.org")
        return mail, rest
    if kind in ("http", "https"):
        if not is_safe(urllib.parse.urlsplit(text)):
            raise ValueError("https://, or http:// to this machine, is wanted")
        return webhook, text
    raise ValueError("neither desktop, mail:ADDRESS nor a URL")


def name_of(way, target):
    """For the log: a webhook's path is often its secret."""
    if way is webhook:
        return "%s://%s" % urllib.parse.urlsplit(target)[:2]
    return target or "desktop"


class Notifier:
    def __init__(self, ways):
        self.ways, self.waiting = ways, asyncio.Queue(WAITING_MAX)

    def add(self, event, subject, text, url, **fields):
        """A message to all. Nothing waits for it."""
        if not self.ways:
            return
        try:
            self.waiting.put_nowait({"event": event, "subject": subject, "text": text, "url": url,
                                     **fields})
        except asyncio.QueueFull:
            print("notification lost: %d wait to be sent" % WAITING_MAX, file=sys.stderr, flush=True)

    async def send(self):
        """Sends for as long as the console runs; the ways do not wait for each other."""
        while True:
            message = await self.waiting.get()
            await asyncio.gather(*(self.send_one(*way, message) for way in self.ways))

    async def send_one(self, way, target, message):
        for n in range(TRIES):
            try:
                await asyncio.wait_for(way(target, message), SEND_SECONDS)
                return
            except asyncio.TimeoutError:
                trouble = "not done within %d s" % SEND_SECONDS
            except (NotSent, OSError, ValueError, aiohttp.ClientError) as e:
                trouble = str(e) or type(e).__name__
            if n + 1 < TRIES:
                await asyncio.sleep(AGAIN_SECONDS << n)
        print("notification lost: event=%s to=%s: %s" % (
            message["event"], name_of(way, target), trouble), file=sys.stderr, flush=True)
