# mcp-pythond. A library of everything but main(), so that tests link the same code.
noinst_LIBRARIES += libsupervisor.a
libsupervisor_a_SOURCES =
libsupervisor_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS) $(SYSTEMD_CFLAGS) \
	-DLIBEXECDIR='"$(libexecdir)"' \
	-DSYSCONFDIR='"$(sysconfdir)"'

# ---- engine: from start-up to executions -----------------------------------------
libsupervisor_a_SOURCES += \
	supervisor/cgroup.c supervisor/cgroup.h \
	supervisor/cgroup_leaf.c supervisor/cgroup_parts.h \
	supervisor/cgroup_text.c supervisor/cgroup_text.h \
	supervisor/engine.c supervisor/engine.h supervisor/engine_parts.h \
	supervisor/execution.c supervisor/execution.h supervisor/execution_parts.h \
	supervisor/execution_text.c \
	supervisor/outcome.c supervisor/outcome.h \
	supervisor/outer.c supervisor/outer.h \
	supervisor/output.c supervisor/output.h \
	supervisor/pool.c supervisor/pool.h \
	supervisor/privilege.c supervisor/privilege.h \
	supervisor/scheduler.c supervisor/scheduler.h \
	supervisor/startup.c supervisor/startup.h \
	supervisor/tenant.c supervisor/tenant.h \
	supervisor/watchdog.c supervisor/watchdog.h \
	supervisor/worker.c supervisor/worker.h supervisor/worker_slots.c \
	supervisor/worker_stray.c \
	supervisor/zygote.c supervisor/zygote.h \
	supervisor/zygote_launch.c supervisor/zygote_launch.h

# ---- mcp: from the socket to the tools -------------------------------------------
libsupervisor_a_SOURCES += \
	supervisor/jsonout.c supervisor/jsonout.h \
	supervisor/jsonrpc.c supervisor/jsonrpc.h \
	supervisor/listener.c supervisor/listener.h \
	supervisor/log.c supervisor/log.h \
	supervisor/loop.c supervisor/loop.h \
	supervisor/mcp.c supervisor/mcp.h \
	supervisor/mcp_call.c supervisor/mcp_call.h \
	supervisor/mcp_envelope.c supervisor/mcp_envelope.h \
	supervisor/mcp_progress.c supervisor/mcp_progress.h \
	supervisor/mcp_stream.c supervisor/mcp_stream.h \
	supervisor/notify.c supervisor/notify.h \
	supervisor/revision.c supervisor/revision.h \
	supervisor/session.c supervisor/session.h \
	supervisor/session_account.c supervisor/session_account.h \
	supervisor/socketfile.c supervisor/socketfile.h \
	supervisor/tools/run_script.c supervisor/tools/run_script.h \
	supervisor/tools/run_script_answer.c \
	supervisor/tools/run_script_arguments.c \
	supervisor/tools/table.c supervisor/tools/tool.h \
	supervisor/xalloc.h

SUPERVISOR_LIBS = libsupervisor.a libpolicy.a libproto.a $(EVENT_LIBS) $(JANSSON_LIBS) \
	$(SYSTEMD_LIBS) $(INIH_LIBS) $(MSGPACK_LIBS) -lm
sbin_PROGRAMS += mcp-pythond
mcp_pythond_SOURCES = supervisor/main.c
mcp_pythond_CPPFLAGS = $(libsupervisor_a_CPPFLAGS)
mcp_pythond_LDADD = $(SUPERVISOR_LIBS)
