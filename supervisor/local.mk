# mcp-pythond. A library of everything but main(), so that tests link the same code.
noinst_LIBRARIES += libsupervisor.a
libsupervisor_a_SOURCES =
libsupervisor_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS) $(SYSTEMD_CFLAGS) $(CRYPTO_CFLAGS) \
	$(CJOSE_CFLAGS) \
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
	supervisor/execution_results.c \
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
	supervisor/mcp_ask.c \
	supervisor/mcp_call.c supervisor/mcp_call.h \
	supervisor/mcp_conversation.c supervisor/mcp_conversation.h \
	supervisor/mcp_conversation_parts.h \
	supervisor/mcp_cursor.c supervisor/mcp_cursor.h \
	supervisor/mcp_envelope.c supervisor/mcp_envelope.h \
	supervisor/mcp_form.c supervisor/mcp_form.h \
	supervisor/mcp_listen.c \
	supervisor/mcp_lists.c \
	supervisor/mcp_methods.c \
	supervisor/mcp_outcome.c supervisor/mcp_outcome.h \
	supervisor/mcp_parking.c supervisor/mcp_parking.h \
	supervisor/mcp_progress.c supervisor/mcp_progress.h \
	supervisor/mcp_question.c supervisor/mcp_question.h \
	supervisor/mcp_repeat.c supervisor/mcp_repeat.h \
	supervisor/mcp_run.c supervisor/mcp_run.h \
	supervisor/mcp_seal.c supervisor/mcp_seal.h \
	supervisor/mcp_start.c \
	supervisor/mcp_stream.c supervisor/mcp_stream.h \
	supervisor/mcp_task.c supervisor/mcp_task.h supervisor/mcp_task_methods.c \
	supervisor/notify.c supervisor/notify.h \
	supervisor/revision.c supervisor/revision.h \
	supervisor/revision_content.c \
	supervisor/session.c supervisor/session.h \
	supervisor/session_account.c supervisor/session_account.h \
	supervisor/socketfile.c supervisor/socketfile.h \
	supervisor/tools/check_environment.c supervisor/tools/check_environment.h \
	supervisor/tools/environment.c supervisor/tools/environment.h \
	supervisor/tools/inside.c supervisor/tools/inside.h \
	supervisor/tools/requirements.c supervisor/tools/requirements.h \
	supervisor/tools/validate_script.c supervisor/tools/validate_script.h \
	supervisor/tools/run_script.c supervisor/tools/run_script.h \
	supervisor/tools/run_script_answer.c \
	supervisor/tools/run_script_arguments.c \
	supervisor/tools/run_script_files.c supervisor/tools/run_script_files.h \
	supervisor/tools/run_script_results.c supervisor/tools/run_script_results.h \
	supervisor/tools/media.c supervisor/tools/media.h \
	supervisor/tools/catalog.c supervisor/tools/catalog.h \
	supervisor/tools/resources.c supervisor/tools/resources.h \
	supervisor/tools/tool.h \
	supervisor/xalloc.h

# Programs of our own that run in workers, as C strings.
BUILT_SOURCES += supervisor/tools/look_script.h supervisor/tools/look_environment.h
CLEANFILES += supervisor/tools/look_script.h supervisor/tools/look_environment.h
EXTRA_DIST += supervisor/tools/embed.py supervisor/tools/look_script.py \
	supervisor/tools/look_environment.py
supervisor/tools/look_script.h: supervisor/tools/look_script.py supervisor/tools/embed.py
	@$(MKDIR_P) supervisor/tools
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/supervisor/tools/embed.py \
		$(srcdir)/supervisor/tools/look_script.py $@
supervisor/tools/look_environment.h: supervisor/tools/look_environment.py \
		supervisor/tools/embed.py
	@$(MKDIR_P) supervisor/tools
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/supervisor/tools/embed.py \
		$(srcdir)/supervisor/tools/look_environment.py $@
supervisor/tools/libsupervisor_a-requirements.$(OBJEXT): supervisor/tools/look_script.h
supervisor/tools/libsupervisor_a-environment.$(OBJEXT): supervisor/tools/look_environment.h

# ---- http: from a listening socket to conversations -------------------------------
libsupervisor_a_SOURCES += \
	supervisor/auth.c supervisor/auth.h \
	supervisor/auth_file.c supervisor/auth_file.h \
	supervisor/auth_jwks.c supervisor/auth_jwks.h \
	supervisor/auth_jwt.c supervisor/auth_jwt.h \
	supervisor/auth_tokens.c supervisor/auth_tokens.h \
	supervisor/http_account.c supervisor/http_account.h \
	supervisor/http_connection.c supervisor/http_parts.h \
	supervisor/http_exchange.c \
	supervisor/http_head.c supervisor/http_head.h \
	supervisor/http_ladder.c supervisor/http_ladder.h \
	supervisor/http_origin.c supervisor/http_origin.h \
	supervisor/http_param.c supervisor/http_param.h \
	supervisor/http_principal.c supervisor/http_principal.h \
	supervisor/http_request.c \
	supervisor/http_server.c supervisor/http_server.h \
	supervisor/http_session.c supervisor/http_session.h \
	supervisor/places.c supervisor/places.h

SUPERVISOR_LIBS = libsupervisor.a libpolicy.a libproto.a $(EVENT_LIBS) $(JANSSON_LIBS) \
	$(SYSTEMD_LIBS) $(INIH_LIBS) $(MSGPACK_LIBS) $(CJOSE_LIBS) \
	$(CRYPTO_LIBS) -lm
sbin_PROGRAMS += mcp-pythond
mcp_pythond_SOURCES = supervisor/main.c supervisor/catalog.c
mcp_pythond_CPPFLAGS = $(libsupervisor_a_CPPFLAGS)
mcp_pythond_LDADD = $(SUPERVISOR_LIBS)
