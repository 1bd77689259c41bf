#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/check-finite fails for a key and for a constant in no row, and for a page that is not made
# of the rows.
here=$(cd "${srcdir:-.}" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
for one in base policy proto host engine govern mcp tools auth http supervisor egress doc tests; do
	ln -s "$here/$one" "$work/$one"
done

# own FILE: makes a copy of it that can be changed.
own() {
	folder=$(dirname "$1")
	if [ -h "$work/$folder" ]; then
		rm "$work/$folder" && mkdir "$work/$folder" && cp -rs "$here/$folder/." "$work/$folder"
	fi
	rm -f "$work/$1" && cp "$here/$1" "$work/$1" && chmod u+w "$work/$1"
}

# expect TEXT: the check fails and says so; "": it passes.
expect() {
	if out=$(srcdir=$work "$here/tests/check-finite" 2>&1); then
		[ -z "$1" ] && return
	else
		[ -n "$1" ] && printf '%s\n' "$out" | grep -qF "$1" && return
	fi
	printf 'expected "%s", but the check says:\n%s\n' "$1" "$out" >&2
	status=1
}

expect ''
own policy/keys.def
sed -i '/"pool", "warm", /s/"warm"/"lukewarm"/' "$work/policy/keys.def"
expect '[pool] lukewarm is in no row'
expect 'there is no [pool] warm'
own policy/keys.def
own policy/keys.c
echo '#define WISHES_MAX 3' >>"$work/policy/keys.c"
expect 'policy/keys.c: WISHES_MAX is in no row'
own policy/keys.c
own policy/finite_table.json
sed -i 's/longest idle one/first one/' "$work/policy/finite_table.json"
expect 'doc/finite.md is not made of'
own policy/finite_table.json
sed -i 's/unit\/base\/test-kept/unit\/base\/test-lost/' "$work/policy/finite_table.json"
expect 'there is no test unit/base/test-lost'
exit $status
