# SPDX-License-Identifier: Apache-2.0
"""The most reversals that a permutation needs: small integers and slices of lists."""
import itertools


def work():
    most = total = 0
    for order in itertools.permutations(range(9)):
        row, flips = list(order), 0
        while first := row[0]:
            row[:first + 1] = row[first::-1]
            flips += 1
        total += flips
        if flips > most:
            most = flips
    return [most, total]
