# SPDX-License-Identifier: Apache-2.0
# base: the ground floor. What all programs share; includes no other folder.
noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	base/accepting.c base/accepting.h \
	base/base64.c base/base64.h \
	base/clock.h \
	base/fair.c base/fair.h \
	base/handle.c base/handle.h \
	base/hash.h \
	base/hex.h \
	base/id.c base/id.h \
	base/jsonbound.c base/jsonbound.h \
	base/jsonout.c base/jsonout.h \
	base/kept.c base/kept.h \
	base/named.h \
	base/log.c base/log.h \
	base/loop.c base/loop.h \
	base/mask.c base/mask.h \
	base/member.h \
	base/notify.c base/notify.h \
	base/mount_calls.h base/nextentry.h base/own.h \
	base/passrights.c base/passrights.h \
	base/programs.c base/programs.h \
	base/quote.c base/quote.h \
	base/remove.c base/remove.h \
	base/rota.c base/rota.h \
	base/ownerfile.c base/ownerfile.h \
	base/socketfile.c base/socketfile.h \
	base/stall.c base/stall.h \
	base/trace.c base/trace.h \
	base/userdir.c base/userdir.h \
	base/utf8.c base/utf8.h \
	base/watched.c base/watched.h \
	base/why.c base/why.h \
	base/writeall.h \
	base/xalloc.c base/xalloc.h base/xalloc_openssl.c
# It has names of the C library's, so it is part of the programs that want it: those with a loop of
# libevent's.
BASE_TURNS = base/turns.c base/turns.h
# Also part of the worker's library.
libbase_a_CFLAGS = $(AM_CFLAGS) $(PIC_CFLAGS)
libbase_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS) $(SYSTEMD_CFLAGS) $(CRYPTO_CFLAGS) \
	-DLIBEXECDIR='"$(libexecdir)"' -DSBINDIR='"$(sbindir)"'
