#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite's fixtures are in mcp-pythond-fixtures, and not a word of them in
# mcp-pythond. They are written against what any tool knows, and nothing else; but for the one
# that stands for an older kernel.
status=0
fail() {
	echo "$*" >&2
	status=1
}

names='MCP_FIXTURES|test_simple_text|test_input_required|static-text|slow_compute|fixture_answer'
for program in mcp-pythond mcp-pythond-fixtures; do
	[ -x "./$program" ] || { fail "$program is not built"; exit 1; }
done
grep -qaE "$names" ./mcp-pythond && fail "mcp-pythond has fixtures in it"
for name in MCP_FIXTURES_OLD_KERNEL test_simple_text test_input_required static-text slow_compute; do
	grep -qa "$name" ./mcp-pythond-fixtures || fail "mcp-pythond-fixtures lacks $name"
done

grep -nE '^#include "' "${srcdir:-.}"/tests/fixtures/*.[ch] |
	grep -vE '"(tests/fixtures/fixture\.h|mcp/(tool|catalog)\.h|tools/toolsets\.h|base/xalloc\.h)"' |
	grep -vE 'passrights\.c:.*"base/passrights\.h"' &&
	fail "fixtures may include tool.h, catalog.h and toolsets.h alone"
exit $status
