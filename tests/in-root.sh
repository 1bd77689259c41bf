# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
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
