#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/check-all fails for a stage that fails, and for more unsteady tests than there may be.
here=$(cd "${srcdir:-.}" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# gate SCRIPT...: tests/check-all with a stage for each script, the second one in need of the first.
gate() {
	PYTHONDONTWRITEBYTECODE=1 "${PYTHON3:-python3}" - "$here/tests/check-all" "$work" "$@" <<-'EOF' 2>&1
	import importlib.machinery, importlib.util, sys
	path, logs, *scripts = sys.argv[1:]
	loader = importlib.machinery.SourceFileLoader("check_all", path)
	gate = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_all", loader))
	loader.exec_module(gate)
	gate.LOGS, needs = logs, ()
	gate.stages.clear()
	for number, script in enumerate(scripts):
	    def fn(s, o, script=script):
	        s.run("sh", "-c", script)
	    fn.__name__ = "stage%d" % number
	    gate.stage("lane%d" % number, *needs)(fn)
	    needs = ("stage0",)
	sys.argv[1:] = []
	sys.exit(gate.main())
	EOF
}

# expect CODE TEXT SCRIPT...: so the gate ends, and says that.
expect() {
	code=$1 text=$2
	shift 2
	out=$(gate "$@")
	got=$?
	if [ $got != "$code" ] || ! printf '%s\n' "$out" | grep -qF -- "$text"; then
		printf 'expected %s and "%s", but the gate ends with %s and says:\n%s\n' \
			"$code" "$text" "$got" "$out" >&2
		status=1
	fi
}

# unsteady N: a script that passes with so many tests that were unsteady.
unsteady() {
	echo "for n in \$(seq $1); do echo \"UNSTEADY  test\$n of suite failed, and passed\"; done"
}

expect 0 '2 passed, 0 failed' true true
expect 1 '0 passed, 2 failed' false true
expect 1 'stage1       not run, for stage0 did not pass' false true
expect 1 '1 passed, 1 failed' true 'echo "FAILED  a_test  (0.1 s)"; exit 1'
expect 1 'FAILED  a_test  (0.1 s)' true 'echo "FAILED  a_test  (0.1 s)"; exit 1'
expect 0 'UNSTEADY  test1 of suite' true "$(unsteady 1)"
# The bound is one for all stages.
expect 0 '2 passed, 0 failed' "$(unsteady 4)" "$(unsteady 2)"
expect 1 'FAILED  7 tests were unsteady, and 6 may be' "$(unsteady 4)" "$(unsteady 3)"

# A test of make check that fails once is unsteady; one that fails twice, crashes, or has a
# sanitizer's report fails, and so does one that no gate runs.
once() { printf '%s\n' '#!/bin/sh' "[ -e $work/tried ] && exit 0" ": >$work/tried" "$1" >"$work/once" && chmod +x "$work/once"; }
twice() { echo "rm -f $work/tried; $here/tests/twice $work/once"; }
once 'echo "FAILED why"; exit 1'
expect 0 "UNSTEADY  $work/once failed" "$(twice)"
expect 0 '        FAILED why' "$(twice)"
expect 1 '0 passed, 1 failed' "unset MCP_TRY_AGAIN; $(twice)"
once 'echo "AddressSanitizer: wild"; exit 1'
expect 1 '0 passed, 1 failed' "$(twice)"
once 'kill -SEGV $$'
expect 1 '0 passed, 1 failed' "$(twice)"
printf '#!/bin/sh\nexit 1\n' >"$work/once"
expect 1 '0 passed, 1 failed' "$(twice)"
exit $status
