#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `mcp-python interpreter add` builds the worker without configure, from the sources that are
# installed: what else is in their folders must not become a part of it.
sources=$(cd "${srcdir:-.}" && pwd)
"$PYTHON3" -I -c 'import ctypes; ctypes.CDLL(None).Py_InitializeFromConfig' 2>/dev/null || {
	echo "$PYTHON3 does not export the C API: no worker can be built for it in this way"
	exit 77
}
made=$(mktemp -d) && trap 'rm -rf "$made"' EXIT || exit 1
cd "$made" || exit 1
env -u MAKEFLAGS -u MFLAGS make -s -f "$sources/worker/standalone.mk" PYTHON="$PYTHON3" VERSION=of-this-test \
	mcp-python-worker || exit 1
said=$(./mcp-python-worker --version)
[ "$said" = "mcp-python-worker of-this-test" ] && exit 0
echo "the worker says: $said" >&2
exit 1
