# SPDX-License-Identifier: Apache-2.0
"""numpy: temporaries of megabytes, reductions, sorting, a product of matrices."""
import numpy

GENERATOR = numpy.random.RandomState(5)
A, B = GENERATOR.rand(400000), GENERATOR.rand(400000)
M = GENERATOR.rand(160, 160)


def work():
    for _ in range(10):
        c = numpy.sqrt(A * B + 2 * A) - numpy.where(A > B, A, B) ** 2
        mean = float((c - c.mean()).std())
    order = numpy.sort(c)
    values, counts = numpy.unique((A * 1000).astype(int), return_counts=True)
    small = sum(float(row.sum()) for row in A.reshape(-1, 40))
    return [repr(mean), repr(float(order[1000])), len(values), int(counts.max()),
            repr(float((M @ M).trace())), repr(small)]
