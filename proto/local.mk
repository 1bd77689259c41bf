# SPDX-License-Identifier: Apache-2.0
# proto: the boundary between the processes; depends on msgpack alone, and
# control.c on libevent.
noinst_LIBRARIES += libproto.a
libproto_a_SOURCES = \
	proto/codec.c proto/codec.h \
	proto/control.c proto/control.h \
	proto/fdpass.c proto/fdpass.h \
	proto/frame.c proto/frame.h \
	proto/message.h proto/messages.def proto/verdicts.def \
	proto/walk.c
# Also part of the worker's library.
libproto_a_CFLAGS = $(AM_CFLAGS) $(PIC_CFLAGS)
libproto_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(MSGPACK_CFLAGS)
