#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/check-layers fails where it has to: a wrong include, a wrong call, a circle of calls or of includes, a name for
# two functions, a folder and a file that it was not told of.
here=${srcdir:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

(cd "$here" && find base proto policy host engine govern mcp tools auth http supervisor worker egress \
	upstream keeper client -name '*.[ch]' -print | tar -cf - -T -) | tar -xf - -C "$work" || exit 1
mkdir "$work/build" && cp lib*.a "$work/build" || exit 1

# expect TEXT...: the check fails and says all of it.
expect() {
	out=$("$here/tests/check-layers" --source "$work" --build "$work/build" 2>&1) && {
		echo "the check passes with: $*" >&2
		status=1
	}
	for text; do
		printf '%s\n' "$out" | grep -qF "$text" || {
			printf 'the check does not say "%s":\n%s\n' "$text" "$out" >&2
			status=1
		}
	done
}

"$here/tests/check-layers" --source "$work" --build "$work/build" || exit 1

# One alone; those that follow are of different kinds, and each is said beside the others.
echo '#include "http/server.h"' >>"$work/engine/pool.h"
expect 'engine may not include http/'
cp "$here/engine/pool.h" "$work/engine/pool.h"

echo '#include "host/child.h"' >>"$work/worker/jail.h"
printf 'static void\nengine_free(void)\n{\n}\n' >>"$work/http/server.c"
echo '#include "engine/engine.h"' >>"$work/engine/worker.h"
mkdir "$work/cellar" && echo 'int wine;' >"$work/cellar/wine.c"
echo 'int loose;' >"$work/mcp/loose.c"
echo 'void engine_free(void *); void up(void); void up(void) { engine_free(0); }' >"$work/wrong.c"
${CC:-cc} -c -o "$work/wrong.o" "$work/wrong.c" && ar q "$work/build/libhost.a" "$work/wrong.o" || exit 1
for i in 1 2 3 4 5 6; do
	echo "void ring$i(void); void ring$((i % 6 + 1))(void); void ring$i(void) { ring$((i % 6 + 1))(); }" \
		>"$work/ring$i.c"
	${CC:-cc} -c -o "$work/ring$i.o" "$work/ring$i.c" && ar q "$work/build/libhost.a" "$work/ring$i.o" || exit 1
done
expect 'worker may not include host/' \
	'http/server.c: the static function engine_free has the name of a public one in engine/engine.c' \
	'files call or include each other in a circle: engine/' \
	'folder cellar is not named' \
	'mcp/loose.c is in no library' \
	'libhost.a: wrong.o calls engine_free, which is in libengine.a' \
	'libhost.a: 6 files call each other in a circle'
exit $status
