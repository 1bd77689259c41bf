#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every option and command that --help names is offered by the completions of bash and zsh, and
# values are completed by their kind. Without zsh its part is left out.
srcdir=${srcdir:-.}
srcdir=$(cd "$srcdir" && pwd)
build=$PWD
status=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
[ -x "$build/mcp-python" ] && [ -x "$build/mcp-pythond" ] || exit 77
PATH=$build:$PATH

bad() { echo "check-completions: $*" >&2; status=1; }

# offered SHELL WORD...: what is offered for the last word, by line.
offered() {
	shell=$1; shift
	case $shell in
	bash)
		bash --norc -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
			_mcp_python "$1"; printf "%s\n" "${COMPREPLY[@]}"' \
			"$srcdir/completions/mcp-python" "$@"
		;;
	zsh)	# the specifications that _arguments gets
		zsh -f -c 'source "$0"; case $# in
			3) _mcp_python_specs "$1" "$2" ;;
			2) if [[ $1 == mcp-python ]]; then _mcp_python_commands $1; else _mcp_python_specs $1; fi ;;
			esac' "$srcdir/completions/_mcp-python" "$@" |
			sed -E 's/^\*//; s/(\[|:).*//'
		;;
	esac
}

# check_options SHELL COMMAND...: all that its --help names.
check_options() {
	shell=$1; shift
	offered "$shell" "$@" -- >"$work/offered"
	"$@" --help | grep -oE -- '(^|[[ ])--[a-z][a-z-]*' | tr -d '[ ' | sort -u >"$work/named"
	[ -s "$work/named" ] || bad "$*: --help names no option"
	while read -r option; do
		grep -qxF -e "$option" "$work/offered" || bad "$shell: $*: $option is not offered"
	done <"$work/named"
}

shells=bash
if command -v zsh >/dev/null; then shells="bash zsh"; else
	echo "check-completions: no zsh here; its completion was not tried" >&2
fi
commands=$(mcp-python --help | sed -nE 's/^  ([a-z][a-z-]*) .*/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 8 ] || bad "cannot read the commands of mcp-python --help"
for shell in $shells; do
	offered "$shell" mcp-python '' >"$work/commands"
	for command in $commands; do
		grep -qx "$command" "$work/commands" || bad "$shell: $command is not offered"
		check_options "$shell" mcp-python "$command"
	done
	check_options "$shell" mcp-pythond
done

cd "$work" || exit 1
mkdir place && touch script.py 'with blank'
expect() {
	wanted=$1; shift
	found=$(offered bash "$@" | sort | tr '\n' ';')
	[ "$found" = "$wanted" ] || bad "bash: $*: offered \"$found\", not \"$wanted\""
}
expect 'script.py;' mcp-python run s
expect 'script.py;' mcp-python put s
expect 'with blank;' mcp-python run w
expect 'place;' mcp-python run --save p
expect ';' mcp-python run --timeout s
expect 'revoke;' mcp-python token r
expect 'show;verify;' mcp-python audit ''
expect 'script.py;' mcp-pythond --config s
exit $status
