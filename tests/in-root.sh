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
