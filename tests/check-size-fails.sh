#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/check-size fails above a program's number, and for a folder that it does not know.
here=${srcdir:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# expect TEXT: the check fails and says so; "": it passes.
expect() {
	if out=$("$here/tests/check-size" --source "$work" 2>&1); then
		[ -z "$1" ] && return
	else
		[ -n "$1" ] && printf '%s\n' "$out" | grep -qF "$1" && return
	fi
	printf 'expected "%s", but the check says:\n%s\n' "$1" "$out" >&2
	status=1
}

for folder in supervisor worker egress upstream keeper image; do
	mkdir "$work/$folder"
	echo 'int a;' >"$work/$folder/a.c"
done
expect 'mcp-python has 0 lines'
mkdir "$work/client" && echo 'int a;' >"$work/client/a.h"
expect ''
mkdir "$work/attic" && echo 'int a;' >"$work/attic/a.c"
expect 'attic/ belongs to no program'
rm -r "$work/attic"
yes 'int a;' | head -n 99999 >"$work/supervisor/b.c"
expect 'mcp-pythond has 100000 lines'
mkdir "$work/supervisor/out" && mv "$work/supervisor/b.c" "$work/supervisor/out"
expect 'mcp-pythond has 100000 lines'
: >"$work/supervisor/out/config.status"	# what a build has made is not counted
expect ''
exit $status
