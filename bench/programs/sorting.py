# SPDX-License-Identifier: Apache-2.0
"""Lists of numbers, texts, tuples and objects in order; a heap; bisection."""
import bisect
import heapq
import random


def work():
    random.seed(7)
    numbers = [random.random() for _ in range(40000)]
    texts = sorted(str(n) for n in numbers[:20000])
    rows = sorted(zip(map(int, (n * 100 for n in numbers)), numbers), key=lambda r: (r[0], -r[1]))
    heap = []
    for n in numbers[:30000]:
        heapq.heappush(heap, n)
    out = [heapq.heappop(heap) for _ in range(30000)]
    in_order = []
    for n in numbers[:8000]:
        bisect.insort(in_order, n)
    return [texts[100], rows[100], out[100], in_order[100], sorted(numbers, reverse=True)[100]]
