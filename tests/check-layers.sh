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

deny proto 'supervisor|worker|policy|client|egress'
deny policy 'supervisor|worker|client|egress'
deny worker 'supervisor|policy|client|egress'
deny supervisor 'worker|client|egress'
deny client 'supervisor|worker|egress'
deny egress 'supervisor|worker|client'
exit $status
