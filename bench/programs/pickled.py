# SPDX-License-Identifier: Apache-2.0
"""Objects, and lists of numbers, to bytes and back; once by the part that is written in Python."""
import fractions
import pickle

OBJECTS = [(i, str(i), {"k%d" % (i % 50): fractions.Fraction(i, 7)}, [i / 3] * 5)
           for i in range(9000)]


def work():
    for _ in range(2):
        data = pickle.dumps(OBJECTS, protocol=4)
        again = pickle.loads(data)
    slow = pickle._loads(pickle._dumps(OBJECTS[:700], protocol=4))
    return [len(data), again == OBJECTS, slow == OBJECTS[:700]]
