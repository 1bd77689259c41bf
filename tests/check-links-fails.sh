#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/check-links fails for a target and for a heading that do not exist, and when a page of the
# site cannot be made from the sources.
here=${srcdir:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
mkdir "$work/tests" "$work/bench" "$work/proto" "$work/policy"
copy() {
	cp "$here"/*.md "$work" && cp -R "$here/doc" "$work" && cp "$here/tests/README.md" "$work/tests" &&
		cp "$here/bench/RESULTS.md" "$work/bench" && cp "$here/proto/messages.def" "$work/proto" &&
		cp "$here/policy/keys.def" "$work/policy" && chmod -R u+w "$work" || exit 1
}

# expect TEXT: the check fails and says so; the copy is made anew.
expect() {
	if out=$("$here/tests/check-links" --source "$work" 2>&1) ||
			! printf '%s\n' "$out" | grep -qF "$1"; then
		printf 'expected "%s", but the check says:\n%s\n' "$1" "$out" >&2
		status=1
	fi
	copy
}

copy
"$here/tests/check-links" --source "$work" || exit 1
echo '[x](nowhere.md)' >>"$work/doc/agents.md"
expect 'doc/agents.md: there is no nowhere.md'
echo '[x](operators.md#no-such-heading)' >>"$work/doc/agents.md"
expect 'doc/agents.md: operators.md has no heading #no-such-heading'
sed -i '/fBask_seconds/d' "$work/doc/man/mcp-pythond.conf.5"
expect 'no entry for ask_seconds of [mcp]'
exit $status
