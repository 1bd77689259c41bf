# SPDX-License-Identifier: Apache-2.0
"""Text that is built, split, joined, formatted and encoded."""


def work():
    lines = []
    for i in range(40000):
        line = f"{i:>8} {i / 7:.4f} {'x' * (i % 11)!r}"
        lines.append(line.replace("x", "yz").upper())
    text = "\n".join(lines)
    words = text.split()
    grown = ""
    for word in words:
        grown += word[::-1]
    title = " ".join(w.capitalize().strip("'") for w in words)
    return [len(grown), len(title), len(text.encode("utf-16")), text.count("YZYZ"),
            sum(map(str.isdigit, words))]
