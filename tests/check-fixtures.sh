#!/bin/sh
# The conformance suite's fixtures are in mcp-pythond-fixtures, and not a word of them in
# mcp-pythond. They are written against what any tool knows, and nothing else.
status=0
fail() {
	echo "$*" >&2
	status=1
}

names='test_simple_text|test_input_required|static-text|slow_compute|fixture_answer'
for program in mcp-pythond mcp-pythond-fixtures; do
	[ -x "./$program" ] || { fail "$program is not built"; exit 1; }
done
grep -qaE "$names" ./mcp-pythond && fail "mcp-pythond has fixtures in it"
for name in test_simple_text test_input_required static-text slow_compute; do
	grep -qa "$name" ./mcp-pythond-fixtures || fail "mcp-pythond-fixtures lacks $name"
done

grep -nE '^#include "' "${srcdir:-.}"/tests/fixtures/*.[ch] |
	grep -vE '"(tests/fixtures/fixture\.h|supervisor/tools/(tool|catalog)\.h|supervisor/xalloc\.h)"' &&
	fail "fixtures may include tool.h and catalog.h alone"
exit $status
