# SPDX-License-Identifier: Apache-2.0
# egress: the program that connects to the outside for scripts; libevent, OpenSSL, libseccomp, rules
# of policy and proto, nothing else.
noinst_LIBRARIES += libegress.a
libexec_PROGRAMS += mcp-python-egress

libegress_a_SOURCES = \
	egress/answer.c egress/answer.h \
	egress/connection.c \
	egress/dial.c egress/dial.h \
	egress/filter.c egress/filter.h \
	egress/grant.c \
	egress/head.c egress/head.h \
	egress/proxy.h \
	egress/secret.c egress/secret.h
libegress_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(EVENT_TLS_CFLAGS) $(SECCOMP_CFLAGS)
mcp_python_egress_SOURCES = egress/main.c $(BASE_TURNS)
mcp_python_egress_CPPFLAGS = $(libegress_a_CPPFLAGS)
mcp_python_egress_LDADD = libegress.a libpolicy.a libproto.a libbase.a $(EVENT_TLS_LIBS) $(EVENT_LIBS) $(SECCOMP_LIBS) \
	$(MSGPACK_LIBS)
