#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""freeze.py NAME <SOURCE >HEADER: compiles a Python file into a C array of marshalled code, NAME_code.

Must be run by the version of Python that is embedded, because marshal is not portable.
"""

import marshal
import sys


code = compile(sys.stdin.buffer.read(), "<mcp-python>", "exec", dont_inherit=True, optimize=2)
data = marshal.dumps(code)
print("/* Made from %s.py by freeze.py. */" % sys.argv[1])
print("static const unsigned char %s_code[%d] = {" % (sys.argv[1], len(data)))
for at in range(0, len(data), 16):
    print("\t" + " ".join("%d," % b for b in data[at:at + 16]))
print("};")
