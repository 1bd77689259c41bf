# SPDX-License-Identifier: Apache-2.0
"""Generators that feed generators, recursion by yield from, and coroutines."""
import asyncio
import itertools


def walk(low, high):
    if low < high:
        middle = (low + high) // 2
        yield from walk(low, middle)
        yield middle
        yield from walk(middle + 1, high)


def windows(items, n):
    row = list(itertools.islice(items, n))
    for item in items:
        row = row[1:] + [item]
        yield sum(row)


async def relay(n):
    total = 0
    for i in range(n):
        total += i
        await asyncio.sleep(0)
    return total


async def relays():
    return sum(await asyncio.gather(*(relay(60) for _ in range(50))))


def work():
    total = sum(w for w in windows((x * x % 1009 for x in walk(0, 60000)), 5) if w % 3)
    pairs = sum(a < b for a, b in itertools.pairwise(walk(0, 60000)))
    return [total, pairs, asyncio.run(relays())]
