# SPDX-License-Identifier: Apache-2.0
# mcp-pythond. Libraries of everything but main(), so that tests link the same code. Each is linked
# to those behind it in SUPERVISOR_ARCHIVES alone: tests/check-layers.
SUPERVISOR_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS) $(SYSTEMD_CFLAGS) $(CRYPTO_CFLAGS) \
	$(CJOSE_CFLAGS) \
	-DSYSCONFDIR='"$(sysconfdir)"' \
	-DPYTHON_PROGRAM='"$(PYTHON3)"'
SUPERVISOR_ARCHIVES = libsupervisor.a libhttp.a libauth.a \
	libtools.a libtools-compat.a libtools-check.a libtools-files.a libtools-repl.a libtools-script.a \
	libtools-packages.a libtools-session.a libtools-sets.a libtools-job.a libtools-shared.a \
	libmcp.a libgovern.a libengine.a libhost.a libpolicy.a libproto.a libbase.a
SUPERVISOR_LIBS = $(SUPERVISOR_ARCHIVES) $(EVENT_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS) \
	$(SYSTEMD_LIBS) $(INIH_LIBS) $(MSGPACK_LIBS) $(CJOSE_LIBS) \
	$(CRYPTO_LIBS) -lm

noinst_LIBRARIES += libsupervisor.a
libsupervisor_a_SOURCES = \
	supervisor/arguments.c supervisor/arguments.h \
	supervisor/configuration.c supervisor/configuration.h \
	supervisor/fences.c supervisor/fences.h \
	supervisor/handover.c supervisor/handover.h \
	supervisor/laptop.c supervisor/laptop.h \
	supervisor/intake.c supervisor/intake.h \
	supervisor/listener.c supervisor/listener.h \
	supervisor/endpoints.c supervisor/endpoints.h \
	supervisor/stream.c supervisor/stream.h \
	supervisor/stream_account.c supervisor/stream_account.h \
	supervisor/profiles.c supervisor/profiles.h \
	supervisor/unit.c supervisor/unit.h \
	supervisor/operate/admin.c supervisor/operate/admin.h \
	supervisor/operate/governance.c supervisor/operate/governance.h \
	supervisor/operate/operation.c supervisor/operate/operation.h \
	supervisor/operate/operation_metrics.c \
	supervisor/operate/operator_tools.c supervisor/operate/operator_tools.h \
	supervisor/operate/operation_parts.h \
	supervisor/operate/packages.c supervisor/operate/packages.h \
	supervisor/operate/running.c supervisor/operate/running.h
libsupervisor_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# The table of what is finite, and a Python program, as C strings.
BUILT_SOURCES += policy/finite_table.h supervisor/ask_pip.h
CLEANFILES += policy/finite_table.h supervisor/ask_pip.h
EXTRA_DIST += policy/finite_table.json supervisor/ask_pip.py
supervisor/ask_pip.h: tools/shared/embed.py supervisor/ask_pip.py
	$(EMBED)
supervisor/libsupervisor_a-laptop.$(OBJEXT): supervisor/ask_pip.h
policy/finite_table.h: tools/shared/embed.py policy/finite_table.json
	$(EMBED)
supervisor/operate/libsupervisor_a-operation.$(OBJEXT): policy/finite_table.h

sbin_PROGRAMS += mcp-pythond
mcp_pythond_SOURCES = supervisor/main.c supervisor/catalog.c $(BASE_TURNS)
mcp_pythond_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)
mcp_pythond_LDADD = $(SUPERVISOR_LIBS)
