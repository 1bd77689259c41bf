#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py SOURCE... HEADER: makes one C string of the Python files, joined in their order; its
name is that of the last file. JSON becomes a string on one line; a schema's is NAME_schema. Documents
(.md) become an array of strings with the name of the header."""

import json
import os
import sys


def lines_of(source):
    with open(source, encoding="ascii") as f:
        if source.endswith(".json"):
            return [json.dumps(json.load(f), separators=(",", ":"))]
        return [line + "\n" for line in f.read().split("\n")[:-1]]


def main(*paths):
    sources, header = paths[:-1], paths[-1]
    file = os.path.basename(sources[-1])
    name, kind = os.path.splitext(file)
    begins, ends = ("%s[] =" % (name + "_schema" if "/schema/" in sources[-1] else name), "")
    if kind == ".md":
        begins, ends = "*const %s[] = {" % os.path.basename(header)[:-len(".h")], "}"
    with open(header + ".tmp", "w", encoding="ascii") as f:
        f.write("/* Made from %s by embed.py. */\nstatic const char %s\n" % (file, begins))
        for source in sources:
            for line in lines_of(source):
                f.write("\t%s\n" % json.dumps(line).replace("??", "?\\?"))  # no trigraph
            if ends:
                f.write("\t,\n")
        f.write("\t%s;\n" % ends)
    os.replace(header + ".tmp", header)


main(*sys.argv[1:])
