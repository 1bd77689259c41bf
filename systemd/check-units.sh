#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The units are part of the defence. This checks that systemd finds no mistake in them, that their
# exposure does not rise, that they give exactly the capabilities that privilege.c drops again, and
# that the installed configuration has the built-in defaults.
srcdir=${srcdir:-.}
exposure_most=22	# tenths, as systemd 252 counts: lower it when it falls, never raise it
gateway_most=8
web_most=10	# as the gateway, but with true uids
status=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

bad() { echo "check-units: $*" >&2; status=1; }

# Every key of the table stands in the installed file, commented out, with its default.
conf=$srcdir/systemd/mcp-pythond.conf
grep -v '^#' "$conf" | grep '=' && bad "the installed configuration sets something"
sed -nE 's/^\t([A-Z]+_)*KEY\(("[a-z-]+", *)?"([a-z_]+)",.* ("([^"]*)"|BASIC_[A-Z]+)\)$/\3 = \5/p' \
	"$srcdir/policy/keys.def" | sed 's/ *$//' >"$work/table"
[ "$(wc -l <"$work/table")" -gt 20 ] || bad "cannot read the table in policy/keys.def"
while read -r key rest; do
	case $key in
	modules | basic) grep -q "^#$key = " "$conf" ;;
	*) grep -qxF "#$key $rest" "$conf" ;;
	esac || bad "mcp-pythond.conf does not say: $key $rest"
	grep -qF "\\fB$key\\fR" "$srcdir/doc/man/mcp-pythond.conf.5" ||
		bad "mcp-pythond.conf.5 does not name $key"
done <"$work/table"
if [ -x ./mcp-pythond ]; then
	./mcp-pythond --check-config --config "$conf" ||
		bad "the installed configuration is refused"
fi

# The bounding set and the list in privilege.c are one and the same.
unit_set=$(sed -n 's/^CapabilityBoundingSet=//p' "$srcdir/systemd/mcp-pythond.service.in" |
	tr ' ' '\n' | sort | tr '\n' ' ')
code_set=$(sed -n 's/^static const int needed\[\] = {\(.*\)};/\1/p' "$srcdir/host/privilege.c" |
	tr -d ' ' | tr ',' '\n' | sort | tr '\n' ' ')
[ -n "$code_set" ] && [ "$unit_set" = "$code_set" ] ||
	bad "CapabilityBoundingSet=$unit_set, privilege.c has $code_set"

ambient=$(sed -n 's/^AmbientCapabilities=//p' "$srcdir/systemd/mcp-pythond.service.in" |
	tr ' ' '\n' | sort | tr '\n' ' ')
[ "$ambient" = "$code_set" ] || bad "AmbientCapabilities=$ambient, privilege.c has $code_set"

# systemd stores no more than FileDescriptorStoreMax= descriptors, and reports no error for further
# ones. Each kept session has four; the table of the sessions has one, and is stored last.
room=$(sed -n 's/^FileDescriptorStoreMax=//p' "$srcdir/systemd/mcp-pythond.service.in")
kept=$(sed -nE 's/^#define HANDOVER_SESSIONS_MAX ([0-9]+).*/\1/p' "$srcdir/proto/message.h")
[ "$room" -gt $((4 * kept)) ] ||
	bad "FileDescriptorStoreMax=$room is too little for $kept sessions, of four each, and a table"

# A minimal server has no procps, and so no program named kill.
programs=$(sed -nE 's/^Exec[A-Za-z]+=[-+!:]*([^ ]+).*/\1/p' "$srcdir"/systemd/*.service.in | sort -u)
for program in $programs; do
	case $program in
	@sbindir@/mcp-pythond | @libexecdir@/mcp-python-gateway | @libexecdir@/mcp-python-web | /bin/sh) ;;
	*) bad "a unit starts $program, which a machine may lack" ;;
	esac
done

command -v systemd-analyze >/dev/null || {
	echo "check-units: no systemd-analyze here; the units were not verified" >&2
	[ $status -eq 0 ] && exit 77
	exit $status
}
for unit in mcp-pythond mcp-pythond-user; do
	mkdir "$work/$unit"
	for kind in -admin -http -metrics; do
		[ ! -e "$srcdir/systemd/$unit$kind.socket" ] ||
			sed '/^Documentation=/d' "$srcdir/systemd/$unit$kind.socket" >"$work/$unit/mcp-pythond$kind.socket"
	done
	cp "$srcdir/systemd/$unit.socket" "$work/$unit/mcp-pythond.socket"
	# Verification wants a program that exists and manual pages that are installed.
	sed -E -e 's#^(Exec(Start|StopPost|Reload)=[-+]*)[^ ]*#\1/bin/true#' -e '/^Documentation=/d' \
		"systemd/$unit.service" >"$work/$unit/mcp-pythond.service"
	sed -i '/^Documentation=/d' "$work/$unit/mcp-pythond.socket"
	case $unit in *-user) manager=--user ;; *) manager=--system ;; esac
	for kind in "" -admin -http -metrics; do
		[ -e "$work/$unit/mcp-pythond$kind.socket" ] || continue
		said=$(XDG_RUNTIME_DIR=$work systemd-analyze verify $manager --man=no \
			"$work/$unit/mcp-pythond$kind.socket" 2>&1) || bad "$unit$kind.socket is refused"
		said=$(printf '%s\n' "$said" | grep -F mcp-pythond) && bad "$unit$kind.socket: $said"
	done
	said=$(XDG_RUNTIME_DIR=$work systemd-analyze verify $manager --man=no \
		"$work/$unit/mcp-pythond.service" 2>&1) || bad "$unit.service is refused"
	# The machine's own units may have mistakes, too; only the units of this tree count.
	said=$(printf '%s\n' "$said" | grep -F mcp-pythond) && bad "$unit.service: $said"
done
for unit in gateway web; do
	mkdir "$work/$unit"
	sed -E -e 's#^(ExecStart=)[^ ]*#\1/bin/true#' -e '/^Documentation=/d' \
		"systemd/mcp-python-$unit.service" >"$work/$unit/mcp-python-$unit.service"
	for socket in "$srcdir/systemd/mcp-python-$unit"*.socket; do
		sed '/^Documentation=/d' "$socket" >"$work/$unit/${socket##*/}"
	done
	said=$(systemd-analyze verify --man=no "$work/$unit/"*.s* 2>&1 | grep -F mcp-python-$unit) &&
		bad "mcp-python-$unit: $said"
done
# Versions of systemd compute the exposure differently: exposure_most is for that of Debian 12.
for unit in mcp-pythond/mcp-pythond:$exposure_most gateway/mcp-python-gateway:$gateway_most \
	web/mcp-python-web:$web_most; do
security=$(systemd-analyze security --offline=yes --no-pager \
	--threshold="${unit#*:}" "$work/${unit%:*}.service" 2>&1) || {
	case $(systemd-analyze --version) in
	'systemd 252'*) bad "the exposure of ${unit%:*} is above ${unit#*:} tenths" ;;
	esac
}
printf '%s\n' "$security" | tail -n 1
done
exit $status
