#!/bin/sh
# The include graph is the privilege graph: what parses a stranger's bytes must not be able to
# call what it has no business with.
cd "${srcdir:-.}" || exit 1
status=0

deny() {
	grep -nE "^#include \"($2)/" "$1"/*.[ch] && {
		echo "$1/ may not include $2/" >&2
		status=1
	}
}

deny proto 'supervisor|worker|policy|client'
deny policy 'supervisor|worker|client'
deny worker 'supervisor|policy|client'
deny supervisor 'worker|client'
deny client 'supervisor|worker'
exit $status
