# SPDX-License-Identifier: Apache-2.0
"""Dictionaries that grow, are counted in, looked up, merged and emptied; sets."""
import collections


def work():
    counts = collections.defaultdict(int)
    number = 12345
    for _ in range(400000):
        number = number * 1103515245 + 12345 & 0x7fffffff
        counts[number % 20011] += 1
    names = {"key%d" % k: v for k, v in counts.items()}
    found = sum(names.get("key%d" % k, 0) for k in range(0, 30000, 3))
    merged = {**names, **{k: -v for k, v in names.items() if v > 9}}
    odd = {k for k in counts if k & 1} ^ set(range(0, 20011, 3))
    while len(names) > 10:
        names.popitem()
    return [len(counts), found, sum(merged.values()), len(odd)]
