# SPDX-License-Identifier: Apache-2.0
# upstream: the program that is the client of other MCP servers, whose tools scripts call; libevent,
# jansson, libcurl, proto and policy/shape.h, nothing else.
noinst_LIBRARIES += libupstream.a
libexec_PROGRAMS += mcp-python-tools

libupstream_a_SOURCES = \
	upstream/events.c upstream/events.h \
	upstream/listing.c upstream/listing.h \
	upstream/outbox.c upstream/outbox.h \
	upstream/process.c upstream/process.h \
	upstream/remote.c upstream/remote.h upstream/remote_parts.h upstream/remote_token.c \
	upstream/server.c upstream/server.h upstream/server_call.c upstream/server_parts.h \
	upstream/token.c upstream/token.h
libupstream_a_CPPFLAGS = $(AM_CPPFLAGS) $(CURL_CFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS)
mcp_python_tools_SOURCES = upstream/main.c $(BASE_TURNS)
mcp_python_tools_CPPFLAGS = $(libupstream_a_CPPFLAGS)
mcp_python_tools_LDADD = libupstream.a libpolicy.a libproto.a libbase.a $(CRYPTO_LIBS) $(CURL_LIBS) $(EVENT_LIBS) $(JANSSON_LIBS) \
	$(MSGPACK_LIBS)
