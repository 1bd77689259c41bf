#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/check-docker-seccomp fails for a call in no list, for a list whose call is gone, and for a
# file that is not made of the lists.
here=$(cd "${srcdir:-.}" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
for one in base proto policy host engine govern mcp tools auth http supervisor worker egress upstream \
	keeper client image doc; do
	cp -rs "$here/$one" "$work/$one" || exit 1
done

# expect TEXT: the check fails and says so; "": it passes.
expect() {
	out=$(srcdir=$work "$here/tests/check-docker-seccomp" 2>&1)
	case $? in
	77) exit 77 ;;
	0) [ -z "$1" ] && return ;;
	*) [ -n "$1" ] && printf '%s\n' "$out" | grep -qF "$1" && return ;;
	esac
	printf 'expected "%s", but the check says:\n%s\n' "$1" "$out" >&2
	status=1
}

expect ''
echo 'int x(void) { return swapoff("y"); }' >"$work/host/extra.c"
expect 'swapoff is called in host/extra.c, and in no list'
echo '/* swapoff("y") */ const char *x = "swapoff(";' >"$work/host/extra.c"
expect ''
rm "$work/keeper/volumes.c" "$work/worker/mounts.c" "$work/worker/root.c"
expect 'pivot_root is in a list, and called nowhere'
cp -s "$here/keeper/volumes.c" "$work/keeper" && cp -s "$here/worker/mounts.c" "$here/worker/root.c" "$work/worker"
expect ''
rm "$work/doc/docker-seccomp.json"
sed 's/"setns"/"setns", "swapoff"/' "$here/doc/docker-seccomp.json" >"$work/doc/docker-seccomp.json"
expect 'doc/docker-seccomp.json is not what the lists say'
exit $status
