#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manual pages format without a warning, and name every option that --help names.
srcdir=${srcdir:-.}
status=0
bad() { echo "check-man: $*" >&2; status=1; }

# options PAGE PROGRAM ARGUMENT...: what --help says against what the page says.
options() {
	page=$1; shift
	[ -x "$1" ] || return 0
	for option in $("$@" | grep -oE '^ +--[a-z-]+' | sort -u); do
		grep -qF "$(printf %s "$option" | sed 's/-/\\-/g')" "$page" ||
			bad "$page does not name $option of $*"
	done
}
options "$srcdir/doc/man/mcp-pythond.8" ./mcp-pythond --help
options "$srcdir/doc/man/mcp-python.1" ./mcp-python --help
options "$srcdir/doc/man/mcp-python.1" ./mcp-python run --help
options "$srcdir/doc/man/mcp-python.1" ./mcp-python connect --help
options "$srcdir/doc/man/mcp-python.1" ./mcp-python get --help
options "$srcdir/doc/man/mcp-python.1" ./mcp-python token --help
options "$srcdir/doc/man/mcp-python-gateway.8" ./mcp-python gateway --help
options "$srcdir/doc/man/mcp-python-kernel.1" ./mcp-python kernel --help
options "$srcdir/doc/man/mcp-python-usage.1" ./mcp-python usage --help
options "$srcdir/doc/man/mcp-python-web.1" ./mcp-python web --help
for command in repl status top packages ps stop suspend approvals audit tools check-host; do
	options "$srcdir/doc/man/mcp-python.1" ./mcp-python $command --help
done

# The synopsis has every command.
[ ! -x ./mcp-python ] || for command in $(./mcp-python --help |
		sed -nE 's/^  ([a-z][a-z-]*)( [A-Z]+)? .*/\1/p') approve deny stop resume; do
	sed '/^\.SH DESCRIPTION/,$d' "$srcdir/doc/man/mcp-python.1" | grep -q "^\.B mcp-python $command" ||
		bad "the synopsis of mcp-python.1 lacks $command"
done

command -v groff >/dev/null || {
	echo "check-man: no groff here; the pages were not formatted" >&2
	[ $status -eq 0 ] && exit 77
	exit $status
}
for page in "$srcdir"/doc/man/*.[1-9]; do
	said=$(LC_ALL=C.UTF-8 groff -ww -man -Tutf8 -rLL=80n -z "$page" 2>&1)
	[ -z "$said" ] || bad "$page: $said"
done
exit $status
