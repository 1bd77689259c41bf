#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/check-schemas fails for each mistake that it is for, and only for those.
here=${srcdir:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tools/a/schema"
printf 'SCHEMAS = \\\n\ttools/a/schema/a.json\n' >"$work/tools/local.mk"
status=0

# expect TEXT: the check of the work folder prints TEXT; "": it passes.
expect() {
	if out=$("${PYTHON3:-python3}" "$here/tests/check-schemas" --source "$work" 2>&1); then
		[ -z "$1" ] && return
	else
		[ -n "$1" ] && printf '%s\n' "$out" | grep -qF "$1" && return
	fi
	printf 'expected "%s", but the check says:\n%s\n' "$1" "$out" >&2
	status=1
}

# schema PROPERTIES [MORE]: the file is a schema with these properties, and is right otherwise.
schema() {
	printf '{"type": "object", "properties": {%s}, "additionalProperties": false%s}\n' "$1" "$2" \
		>"$work/tools/a/schema/a.json"
}

expect 'no schemas'
schema '"x": {"type": "string"}' ', "required": ["x"]'
expect ''
schema '"x": {"type": "string"}' ', "required": ["y"]'
expect 'y is required'
schema '"x": {"type": "string", "maxlength": 3}'
expect '$.x: the keyword maxlength is unknown'
schema '"x": {"type": "array", "items": {"properties": {}}}'
expect '$.x[]: additionalProperties is not false'
schema '"x": {"x-unlisted": true}'
expect ''
schema '"x": {"x-unlisted": true}' ', "required": ["x"]'
expect 'x cannot be left out of the list'
schema '"x": {"x-unlisted": "yes"}'
expect 'x cannot be left out of the list'
schema '"x": {}, "x": {}'
expect "the key 'x' twice"
schema '"x": {"description": "é"}'
expect 'ascii'
printf '{"type": "object"' >"$work/tools/a/schema/a.json"
expect 'a.json: Expecting'
printf '{"type": "array"}' >"$work/tools/a/schema/a.json"
expect 'the type is not object'
if "${PYTHON3:-python3}" -c 'import jsonschema' 2>/dev/null; then
	schema '"x": {"type": "text"}'
	expect "'text' is not valid"
fi
schema ''
cp "$work/tools/a/schema/a.json" "$work/tools/a/schema/b.json"
expect 'b.json: tools/local.mk does not name it'
exit $status
