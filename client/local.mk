# SPDX-License-Identifier: Apache-2.0
# client: the mcp-python program; jansson, for repl also libedit, for token libcrypto and
# policy's form of the file; nothing of the supervisor or the worker.
noinst_LIBRARIES += libclient.a
libclient_a_SOURCES = \
	client/admin.c client/admin.h \
	client/approval.c client/approval.h \
	client/audit.c \
	client/audit_files.c client/audit_files.h \
	client/audit_show.c client/audit_show.h \
	client/bridge.c client/bridge.h \
	client/call.c client/call.h \
	client/get.c client/get.h \
	client/host/check_host.c \
	client/cell.c client/cell.h \
	client/commands.h \
	client/endpoint.c client/endpoint.h \
	client/exits.h \
	client/inputs.c client/inputs.h \
	client/interpreter.c \
	client/operator.c client/operator.h \
	client/tools_command.c \
	client/options.c client/options.h \
	client/packages.c \
	client/host/probe.c client/host/probe.h \
	client/host/probe_cgroup.c client/host/probe_install.c client/host/probe_jail.c \
	client/ps.c \
	client/put.c client/put.h \
	client/pictures.c client/pictures.h \
	client/prompt.c client/prompt.h \
	client/resource.c client/resource.h \
	client/results.c client/results.h \
	client/repl.c client/repl.h \
	client/repl_commands.c client/repl_look.c client/repl_parts.h \
	client/repl_input.c client/repl_input.h \
	client/reply.c client/reply.h \
	client/review.c \
	client/run.c client/run.h \
	client/say.c client/say.h \
	client/script.c client/script.h \
	client/service.c client/service.h \
	client/show.c client/show.h \
	client/status.c \
	client/table.c client/table.h \
	client/text.c client/text.h \
	client/token.c client/token.h \
	client/token_file.c client/token_file.h \
	client/top.c \
	client/verdict.c client/verdict.h \
	client/when.c client/when.h
libclient_a_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS) $(EDIT_CFLAGS) \
	-DSYSCONFDIR='"$(sysconfdir)"'

# A Python program that runs in a session, as a C string.
BUILT_SOURCES += client/sixel.h
CLEANFILES += client/sixel.h
EXTRA_DIST += client/sixel.py
client/sixel.h: tools/shared/embed.py client/sixel.py
	$(EMBED)
client/libclient_a-pictures.$(OBJEXT): client/sixel.h

bin_PROGRAMS += mcp-python
mcp_python_SOURCES = client/main.c
mcp_python_CPPFLAGS = $(libclient_a_CPPFLAGS)
mcp_python_LDADD = libclient.a libpolicy.a libbase.a $(JANSSON_LIBS) $(CRYPTO_LIBS) $(EDIT_LIBS)

# The script behind `mcp-python interpreter`.
libexec_SCRIPTS = mcp-python-interpreter
EXTRA_DIST += client/interpreter.in
CLEANFILES += mcp-python-interpreter
mcp-python-interpreter: client/interpreter.in Makefile
	$(AM_V_GEN)$(SED) -e 's|@sbindir[@]|$(sbindir)|g' -e 's|@bindir[@]|$(bindir)|g' \
		-e 's|@sysconfdir[@]|$(sysconfdir)|g' -e 's|@pkgdatadir[@]|$(pkgdatadir)|g' -e 's|@libexecdir[@]|$(libexecdir)|g' \
		$(srcdir)/client/interpreter.in >$@.tmp && chmod 755 $@.tmp && mv $@.tmp $@
