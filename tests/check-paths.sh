#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where it was built is in no program: scripts can read that of their worker.
status=0
grep -q '^HARDEN_CFLAGS = .*-ffile-prefix-map' Makefile || {
	echo "not a build with hardening: its programs have paths for tools that look for sources"
	exit 77
}
for program in mcp-pythond mcp-python-worker mcp-python-egress \
		mcp-python-keeper mcp-python; do
	# Not the source folder itself: what is installed may lie in it, and is named rightly.
	top=$(cd "${srcdir:-.}" && pwd)
	for path in "$PWD/" "$top/base/" "$top/supervisor/" "$top/worker/" "${srcdir:-.}/worker/" \
			../worker/; do
		if grep -qaF "$path" "./$program"; then
			echo "$program has $path in it" >&2
			status=1
		fi
	done
done
exit $status
