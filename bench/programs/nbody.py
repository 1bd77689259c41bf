# SPDX-License-Identifier: Apache-2.0
"""Five bodies under gravitation: floats, and items of lists."""
import itertools

BODIES = [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 39.478]] + [
    [r, 0.1 * r, 0.02 * r, 0.3, 6.28 / r ** 0.5, 0.01, 0.04 / i]
    for i, r in enumerate((1.0, 5.2, 9.6, 19.2), 1)]


def work():
    bodies = [body[:] for body in BODIES]
    pairs = list(itertools.combinations(bodies, 2))
    for _ in range(25000):
        for a, b in pairs:
            dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
            pull = 0.001 / (dx * dx + dy * dy + dz * dz) ** 1.5
            by_a, by_b = pull * a[6], pull * b[6]
            a[3] -= dx * by_b
            a[4] -= dy * by_b
            a[5] -= dz * by_b
            b[3] += dx * by_a
            b[4] += dy * by_a
            b[5] += dz * by_a
        for body in bodies:
            body[0] += 0.001 * body[3]
            body[1] += 0.001 * body[4]
            body[2] += 0.001 * body[5]
    return repr(bodies)
