# SPDX-License-Identifier: Apache-2.0
# http: from a listening socket to conversations.
noinst_LIBRARIES += libhttp.a
libhttp_a_SOURCES = \
	http/account.c http/account.h \
	http/connection.c \
	http/download.c \
	http/events.c \
	http/exchange.c \
	http/exchange_parts.h \
	http/framing.c http/framing.h \
	http/head.c http/head.h http/headers.def \
	http/ladder.c http/ladder.h \
	http/options.h \
	http/origin.c http/origin.h \
	http/param.c http/param.h \
	http/parts.h \
	http/principal.c http/principal.h \
	http/range.c http/range.h \
	http/replay.c http/replay.h \
	http/reply.c http/reply.h \
	http/request.c \
	http/server.c http/server.h \
	http/session.c http/session.h \
	http/upload.c
libhttp_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)
