#!/usr/bin/python3
"""embed.py SOURCE HEADER: makes a C string of a Python file; its name is the file's."""

import os
import sys


def main(source, header):
    with open(source, encoding="ascii") as f:
        lines = f.read().split("\n")[:-1]
    name = os.path.splitext(os.path.basename(source))[0]
    with open(header + ".tmp", "w", encoding="ascii") as f:
        f.write("/* Made from %s by embed.py. */\nstatic const char %s[] =\n"
                % (os.path.basename(source), name))
        for line in lines:
            f.write('\t"%s\\n"\n' % line.replace("\\", "\\\\").replace('"', '\\"'))
        f.write("\t;\n")
    os.replace(header + ".tmp", header)


main(*sys.argv[1:])
