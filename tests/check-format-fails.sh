#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/check-format fails for each mistake that it is for, and only for those.
here=${srcdir:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# expect TEXT: the check of the one file in the work folder prints TEXT; "": it passes.
expect() {
	if out=$("$here/tests/check-format" --source "$work" 2>&1); then
		[ -z "$1" ] && return
	else
		[ -n "$1" ] && printf '%s\n' "$out" | grep -qF "$1" && return
	fi
	printf 'expected "%s", but the check says:\n%s\n' "$1" "$out" >&2
	status=1
}

long=$(printf '%101s' '' | tr ' ' x)
expect 'no source files'
printf '/* %s */\n' "$long" >"$work/a.c"
expect 'a.c:1: 107 columns'
printf '\t\t\t\t%s\n' "${long%"${long#?????????????????????????????????????????????????????????????????????}"}" >"$work/a.c"
expect 'a.c:1: 101 columns'
printf 'text("%s");\n{ %s },\nROW(%s)\n' "$long" "$long" "$long" >"$work/a.c"
expect ''
printf 'int a; \n' >"$work/a.c"
expect 'a.c:1: blanks at the end'
printf '        int a;\n' >"$work/a.c"
expect 'a.c:1: indented by blanks'
printf 'int a;\n\n\nint b;\n' >"$work/a.c"
expect 'a.c:3: two empty lines'
printf 'int a;' >"$work/a.c"
expect 'one line break'
printf 'int a;\n\n' >"$work/a.c"
expect 'one line break'
printf 'int a;\n\nint b;\n' >"$work/a.c"
expect ''
mkdir "$work/out"
printf 'int a;' >"$work/out/b.c"
expect 'out/b.c:1: the file does not end'
: >"$work/out/config.status"	# a build tree, whatever its name
expect ''
exit $status
