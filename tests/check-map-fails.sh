#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/check-map fails for what the map lacks, and for what it has too much.
here=${srcdir:-.}
work=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
status=0

(cd "$here" && find tests/README.md tests/check-all tests/integration tests/unit tests/system -type f -print &&
	find base proto policy host engine govern mcp tools auth http supervisor worker egress \
	upstream keeper image client gateway sdk skills views doc/haproxy -type f -print) >"$work.list" || exit 1
tar -C "$here" -cf - -T "$work.list" | tar -C "$work" -xf - || exit 1
rm "$work.list"
chmod -R u+w "$work"

# expect TEXT: the check fails and says so.
expect() {
	if out=$("$here/tests/check-map" --source "$work" 2>&1) ||
			! printf '%s\n' "$out" | grep -qF "$1"; then
		printf 'expected "%s", but the check says:\n%s\n' "$1" "$out" >&2
		status=1
	fi
	cp "$here/tests/README.md" "$work/tests/README.md"
}

"$here/tests/check-map" --source "$work" || exit 1
sed -i '/^| `soak` /d' "$work/tests/README.md"
expect 'suite soak: its file is soak.py, and in the map None'
echo '| `ghosts` | `ghosts.py` | none | all |' >>"$work/tests/README.md"
expect 'suite ghosts: its file is None'
sed -i 's/| `image\/` |$/| `picture\/` |/' "$work/tests/README.md"
expect 'suite unpack: there is no picture/'
: >"$work/tests/integration/new_helper.py"
expect 'tests/integration/new_helper.py is not named'
rm "$work/tests/integration/new_helper.py"
# Of repl the gate runs what has one of the marks, of auth what does not have any_build.
marked() {
	sed -i "s/^@test.*/@test($2)/" "$work/tests/integration/$1.py"
}
marked repl any_rights=True,any_build=True
expect 'suite repl: by its marks the gate does not run state_is_kept'
marked repl any_build=True
marked auth any_rights=True
"$here/tests/check-map" --source "$work" || status=1
marked auth any_build=True
expect 'suite auth: by its marks the gate does not run '
mkdir "$work/tests/unit/attic"
expect 'tests/unit/attic/ is not named'
exit $status
