# SPDX-License-Identifier: Apache-2.0
"""The spectral norm of a matrix that is a function: calls, floats and generator expressions."""


def element(i, j):
    return 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1)


def times(vector):
    n = range(len(vector))
    return [sum(element(i, j) * vector[j] for j in n) for i in n]


def times_transposed(vector):
    n = range(len(vector))
    return [sum(element(j, i) * vector[j] for j in n) for i in n]


def work():
    v = [1.0] * 130
    for _ in range(8):
        u = times_transposed(times(v))
        v = times_transposed(times(u))
    return repr(sum(a * b for a, b in zip(u, v)) / sum(b * b for b in v))
