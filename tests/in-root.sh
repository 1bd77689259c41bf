# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Roots of other systems, for tests.
#
# in_root ROOT COMMAND...: runs a command in the root of another system, in namespaces of its own,
# as root. A chroot would not do: the kernel refuses user namespaces to processes in one.
in_root() {
	unshare --mount --pid --ipc --uts --fork sh -euc '
		mount --bind "$1" "$1"
		cd "$1"
		mount -t proc proc proc
		mount --rbind /sys sys
		mount --rbind /dev dev
		mkdir -p run/old
		pivot_root . run/old
		umount -l /run/old
		cd /
		shift
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"' \
		in_root "$@"
}

# make_ubuntu_keys DIR: the keys of Ubuntu's archive, of which Debian has a package from release 13.
make_ubuntu_keys() {
	[ ! -d "$1" ] || return 0
	rm -rf "$1.new"
	mmdebstrap --quiet --variant=extract --include=ubuntu-archive-keyring trixie "$1.new"
	mv "$1.new" "$1"
}

# release_options SUITE CACHE: to the array "options", what mmdebstrap needs for Ubuntu. Its keys are
# kept in CACHE.
release_options() {
	options=()
	cut -d, -f3 /usr/share/distro-info/ubuntu.csv | grep -qx "$1" || return 0
	make_ubuntu_keys "$2/ubuntu-keys"
	# shellcheck disable=SC2034
	options=(--components=main,universe
		--keyring="$2/ubuntu-keys/usr/share/keyrings/ubuntu-archive-keyring.gpg")
}

# release_root SUITE CACHE: makes CACHE/root-SUITE, in which packages can be built, if it is not there.
release_root() {
	local root=$2/root-$1 options
	[ ! -d "$root" ] || return 0
	rm -rf "$root.new"
	mkdir -p "$2"
	release_options "$1" "$2"
	mmdebstrap --quiet --variant=apt --include=ca-certificates,mount "${options[@]}" "$1" "$root.new"
	mv "$root.new" "$root"
}

# foreign_programs MACHINE: lets the kernel run programs of another machine (aarch64), by qemu.
foreign_programs() {
	local formats=/proc/sys/fs/binfmt_misc
	[ -e $formats/register ] || mount -t binfmt_misc binfmt_misc $formats
	[ -e "$formats/qemu-$1" ] || cat "/usr/lib/binfmt.d/qemu-$1.conf" >$formats/register
}

# cross_root ARCHITECTURE MACHINE CACHE PACKAGE...: makes CACHE/root-ARCHITECTURE, if it is not there:
# Debian 12 with a compiler for the other architecture (arm64, aarch64), the packages, and those named
# lib* of that architecture. A root that was made for another list gets what it lacks.
cross_root() {
	local arch=$1 machine=$2 root=$3/root-$1 packages=("gcc-$2-linux-gnu") name
	shift 3
	for name in "$@"; do
		case $name in
		lib*) packages+=("$name:$arch") ;;
		*) packages+=("$name") ;;
		esac
	done
	if [ ! -d "$root" ]; then
		rm -rf "$root.new"
		mmdebstrap --quiet --mode=root --variant=apt --architectures="amd64,$arch" \
			--include="ca-certificates,mount" bookworm "$root.new"
		mv "$root.new" "$root"
	fi
	[ "$(cat "$root/srv/packages" 2>/dev/null)" != "${packages[*]}" ] || return 0
	in_root "$root" env DEBIAN_FRONTEND=noninteractive sh -euc '
		apt-get -qq update
		apt-get -qq -y --no-install-recommends install "$@" >/dev/null
		apt-get clean' cross_root "${packages[@]}"
	printf '%s\n' "${packages[*]}" >"$root/srv/packages"
}
