#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/check-corpus fails when a case, a file or the seeds of a fuzz target are lost.
here=${srcdir:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
mkdir "$work/tests"

# expect TEXT: the check prints TEXT about the copy, which is then made anew; "": it passes.
expect() {
	if out=$("$here/tests/check-corpus" --source "$work" 2>&1); then
		[ -z "$1" ] || { echo "the check passes with: $1" >&2; status=1; }
	elif [ -z "$1" ] || ! printf '%s\n' "$out" | grep -qF "$1"; then
		printf 'expected "%s", but the check says:\n%s\n' "$1" "$out" >&2
		status=1
	fi
	copy corpus
}
# copy FOLDER: the seeds are thousands of files, and only the last case changes them.
copy() {
	rm -rf "${work:?}/tests/$1"
	cp -R "$here/tests/$1" "$work/tests" && chmod -R u+w "$work/tests/$1" || exit 1
}

copy fuzz
copy corpus
expect ''
sed -i '$d' "$work/tests/corpus/jsonrpc-own.jsonl"
expect 'jsonrpc-own.jsonl: 84 lines, and README.md says 85'
sed -i '2p;$d' "$work/tests/corpus/workload-own.jsonl"
expect 'workload-own.jsonl: the id '
rm "$work/tests/corpus/hostile-own.jsonl"
expect 'hostile-own.jsonl: the file is not there'
echo '{"id": "x"}' >"$work/tests/corpus/more.jsonl"
expect 'more.jsonl: README.md has no row'
echo 'no JSON' >>"$work/tests/corpus/pep723-public.jsonl"
expect 'pep723-public.jsonl: JSONDecodeError'
rm -r "$work/tests/fuzz/corpus/wheel"
expect 'fuzz-wheel has no seeds'
exit $status
