#!/usr/bin/python3
"""embed.py SOURCE... HEADER: makes a C string of Python files, one behind the other; its name
is that of the last one."""

import os
import sys


def main(*paths):
    sources, header = paths[:-1], paths[-1]
    lines = []
    for source in sources:
        with open(source, encoding="ascii") as f:
            lines += f.read().split("\n")[:-1]
    file = os.path.basename(sources[-1])
    with open(header + ".tmp", "w", encoding="ascii") as f:
        f.write("/* Made from %s by embed.py. */\nstatic const char %s[] =\n"
                % (file, os.path.splitext(file)[0]))
        for line in lines:
            f.write('\t"%s\\n"\n' % line.replace("\\", "\\\\").replace('"', '\\"'))
        f.write("\t;\n")
    os.replace(header + ".tmp", header)


main(*sys.argv[1:])
