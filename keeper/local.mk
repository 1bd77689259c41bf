# SPDX-License-Identifier: Apache-2.0
# keeper: the program that has the store of packages; libarchive, libcrypto, libseccomp, names and
# versions of policy, and proto.
noinst_LIBRARIES += libkeeper.a
libexec_PROGRAMS += mcp-python-keeper

libkeeper_a_SOURCES = \
	keeper/compile.c keeper/compile.h \
	keeper/digest.c keeper/digest.h \
	keeper/intake.c keeper/intake.h \
	keeper/keeper.c keeper/keeper.h \
	keeper/launchers.c keeper/launchers.h \
	keeper/path.c keeper/path.h \
	keeper/record.c keeper/record.h \
	keeper/take.c keeper/take.h \
	keeper/unpack.c keeper/unpack.h \
	keeper/volume.c keeper/volume.h \
	keeper/volume_tree.c keeper/volume_tree.h \
	keeper/volumes.c keeper/volumes.h \
	keeper/walls.c keeper/walls.h \
	keeper/wheel.c keeper/wheel.h
libkeeper_a_CPPFLAGS = $(AM_CPPFLAGS) $(ARCHIVE_CFLAGS) $(CRYPTO_CFLAGS) $(SECCOMP_CFLAGS)
KEEPER_LIBS = libkeeper.a libpolicy.a libproto.a libbase.a $(ARCHIVE_LIBS) $(CRYPTO_LIBS) \
	$(SECCOMP_LIBS) $(MSGPACK_LIBS)
mcp_python_keeper_SOURCES = keeper/main.c
mcp_python_keeper_LDADD = $(KEEPER_LIBS)
