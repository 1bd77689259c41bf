#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""freeze.py SOURCE HEADER: compiles a Python file into a C array of marshalled code, NAME_code.

Must be run by the version of Python that is embedded, because marshal is not portable.
"""

import marshal
import os
import sys


def main(source, header):
    with open(source, encoding="utf-8") as f:
        code = compile(f.read(), "<mcp-python>", "exec", dont_inherit=True, optimize=2)
    data = marshal.dumps(code)
    file = os.path.basename(source)
    lines = ["/* Made from %s by freeze.py. */" % file,
             "static const unsigned char %s_code[%d] = {" % (file[:-len(".py")], len(data))]
    for at in range(0, len(data), 16):
        lines.append("\t" + " ".join("%d," % b for b in data[at:at + 16]))
    lines.append("};")
    temporary = header + ".tmp"
    with open(temporary, "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")
    os.replace(temporary, header)


main(*sys.argv[1:])
