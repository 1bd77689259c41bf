#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/check-commits fails for each mistake that it is for, in commits after its own, also in a
# shallow clone; and skips where there is no history.
here=$(cd "${srcdir:-.}" && pwd)
command -v git >/dev/null || exit 77
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
export HOME="$work" GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org \
	GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org

bad() { printf '%s\n' "$*" >&2; status=1; }
check() { "$here/tests/check-commits" --source "$@" 2>&1; }

# commit LINES MESSAGE: a commit that adds LINES lines.
commit() {
	yes | head -n "$1" >>"$work/tree/file"
	git -C "$work/tree" add -A
	git -C "$work/tree" commit -q --allow-empty --cleanup=verbatim -m "$2"
}
# expect TEXT LINES MESSAGE: the check says TEXT of that commit, which is undone; "": it passes.
expect() {
	commit "$2" "$3"
	if out=$(check "$work/tree"); then
		[ -z "$1" ] || bad "the check passes with: $1"
	elif [ -z "$1" ] || ! printf '%s\n' "$out" | grep -qF "$1"; then
		bad "expected \"$1\", but the check says: $out"
	fi
	git -C "$work/tree" reset -q --hard HEAD^
}

mkdir -p "$work/tree/tests"
check "$work/tree" >/dev/null
[ $? -eq 77 ] || bad "not skipped without a repository"

git -C "$work/tree" init -q
long=$(printf '%073d' 0)
commit 30 "$long; old commits are left alone."
cp "$here/tests/check-commits" "$work/tree/tests"
commit 30 "$long"	# the one that adds it
mkdir "$work/tree/tarball"
check "$work/tree/tarball" >/dev/null
[ $? -eq 77 ] || bad "not skipped in a folder within another repository"

expect '' 1 'trivial: one line'
expect '' 30 "host: one change

Because."
expect 'has 73 columns' 1 "$long"
expect 'holds two changes' 1 'host: this; that'
expect 'ends with a full stop' 1 'host: this.'
expect 'second line is not empty' 1 'host: this
and that'
expect 'no body says why, and 21 lines' 21 'host: this'
expect 'the subject is empty' 1 '
host: this'

commit 21 'host: no body'
commit 1 'host: this'
git clone -q --depth 2 "file://$work/tree" "$work/shallow"
out=$(check "$work/shallow") || bad "a shallow clone fails: $out"
[ "$out" = "1 commits looked at" ] || bad "in a shallow clone: $out"
git clone -q --depth 3 "file://$work/tree" "$work/deeper"
check "$work/deeper" >/dev/null && bad "a shallow clone that has the mistake passes"

# Before the commit is made: comments of the editor are not a part of it.
printf 'host: this; that\n# Please enter the message\n' >"$work/message"
check "$work/shallow" --message "$work/message" >/dev/null && bad "the hook lets two changes pass"
printf '\nhost: this\n\nBecause.\n# A long comment; of the editor.\n' >"$work/message"
out=$(check "$work/shallow" --message "$work/message") || bad "the hook refuses: $out"
exit $status
