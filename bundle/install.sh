#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs or removes this bundle: for one user, or for the machine.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)

usage() {
	cat <<-EOF
	Usage: ./install.sh --user | --system [--uninstall]

	  --user       into ~/.local/lib/mcp-pythond, with links in ~/.local/bin and units of your
	               own systemd manager; needs no rights
	  --system     into /opt/mcp-pythond, with links in /usr/local/bin, units, the user
	               mcp-pythond and /etc/mcp-pythond; needs root. It enables the socket and
	               restarts a service that runs
	  --uninstall  removes what the same option has installed, but neither the configuration nor
	               what the service has stored

	Without installation, bin/mcp-pythond --stdio runs from this directory, wherever it is.
	EOF
}

die() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
usage_error() { printf 'install.sh: %s\n' "$*" >&2; usage >&2; exit 2; }

scope='' action=install
for option; do
	case $option in
	--user | --system) [ -z "$scope" ] || usage_error "one of --user and --system"; scope=${option#--} ;;
	--uninstall) action=uninstall ;;
	-h | --help) usage; exit 0 ;;
	*) usage_error "unknown option: $option" ;;
	esac
done
case $scope in
user)
	[ -n "${HOME:-}" ] || die "HOME is not set"
	place=$HOME/.local/lib/mcp-pythond bin=$HOME/.local/bin share=$HOME/.local/share
	units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
	manager='systemctl --user'
	;;
system)
	[ "$(id -u)" = 0 ] || die "--system needs root (sudo ./install.sh --system)"
	place=/opt/mcp-pythond bin=/usr/local/bin share=/usr/local/share units=/etc/systemd/system
	manager=systemctl
	;;
*) usage_error "say --user or --system" ;;
esac
listed=$place.installed	# what lies outside of $place, one path a line

has_manager() { command -v systemctl >/dev/null && $manager show-environment >/dev/null 2>&1; }

# remove_listed: removes links, units and pages of an earlier installation.
remove_listed() {
	[ -f "$listed" ] || return 0
	while IFS= read -r file; do rm -f "$file"; done <"$listed"
	rm -f "$listed"
}

# put FILE MODE TARGET: installs a file with the paths of this installation, and notes it.
put() {
	mkdir -p "$(dirname "$3")"
	sed -e "s|/usr/sbin/mcp-pythond|$place/bin/mcp-pythond|g" -e "s|/usr/libexec/|$place/libexec/|g" \
		"$1" >"$3.new"
	chmod "$2" "$3.new"
	mv -f "$3.new" "$3"
	printf '%s\n' "$3" >>"$listed"
}

uninstall() {
	[ -e "$place" ] || [ -e "$listed" ] || die "nothing is installed in $place"
	if has_manager; then
		$manager --quiet disable --now mcp-pythond.socket mcp-pythond.service 2>/dev/null || :
	fi
	remove_listed
	rm -rf "$place"
	if has_manager; then $manager daemon-reload; fi
	echo "removed: $place"
}

check_sums() {
	(cd "$here" && sha256sum --check --quiet --strict SHA256SUMS) ||
		die "the files are not those of the bundle; unpack it again"
}

install_all() {
	check_sums
	# A service that runs keeps the files that it has open.
	rm -rf "$place.new" "$place.old"
	mkdir -p "$place.new"
	cp -R "$here/." "$place.new"
	if [ "$scope" = system ]; then chown -R 0:0 "$place.new"; fi
	if [ -e "$place" ]; then mv "$place" "$place.old"; fi
	mv "$place.new" "$place"
	rm -rf "$place.old"
	remove_listed
	mkdir -p "$bin"
	for program in "$place"/bin/*; do
		ln -sf "$program" "$bin/${program##*/}"
		printf '%s\n' "$bin/${program##*/}" >>"$listed"
	done
	for unit in "$place/share/systemd/$scope"/*; do put "$unit" 644 "$units/${unit##*/}"; done
	for page in "$place"/share/man/man*/*; do
		put "$page" 644 "$share/man/$(basename "$(dirname "$page")")/${page##*/}"
	done
	put "$place/share/bash-completion/completions/mcp-python" 644 \
		"$share/bash-completion/completions/mcp-python"
	if [ "$scope" = system ]; then
		put "$place/share/mcp-pythond.sysusers" 644 /etc/sysusers.d/mcp-pythond.conf
		put "$place/share/mcp-pythond.tmpfiles" 644 /etc/tmpfiles.d/mcp-pythond.conf
		mkdir -p /etc/mcp-pythond
		[ -e /etc/mcp-pythond/mcp-pythond.conf ] ||
			install -m 644 "$place/share/mcp-pythond.conf" /etc/mcp-pythond/mcp-pythond.conf
		if command -v systemd-sysusers >/dev/null; then systemd-sysusers /etc/sysusers.d/mcp-pythond.conf; fi
		if command -v systemd-tmpfiles >/dev/null; then
			systemd-tmpfiles --create /etc/tmpfiles.d/mcp-pythond.conf || :
		fi
	fi
	echo "installed: $place"
	if has_manager; then
		$manager daemon-reload
		$manager --quiet enable --now mcp-pythond.socket
		$manager try-restart mcp-pythond.service
		echo "the socket is enabled: $bin/mcp-python run FILE uses the service"
	else
		echo "no systemd manager answers: use \"$bin/mcp-pythond --stdio\""
	fi
	case :$PATH: in *":$bin:"*) ;; *) echo "note: $bin is not on PATH" ;; esac
}

case $action in install) install_all ;; uninstall) uninstall ;; esac
