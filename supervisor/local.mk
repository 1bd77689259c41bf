# mcp-pythond. A library of everything but main(), so that tests link the same code.
noinst_LIBRARIES += libsupervisor.a
libsupervisor_a_SOURCES =
libsupervisor_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS) $(SYSTEMD_CFLAGS) $(CRYPTO_CFLAGS) \
	$(CJOSE_CFLAGS) \
	-DLIBEXECDIR='"$(libexecdir)"' \
	-DSYSCONFDIR='"$(sysconfdir)"'

# ---- engine: from start-up to executions -----------------------------------------
libsupervisor_a_SOURCES += \
	supervisor/engine/cgroup.c supervisor/engine/cgroup.h \
	supervisor/engine/cgroup_leaf.c supervisor/engine/cgroup_parts.h \
	supervisor/engine/cgroup_text.c supervisor/engine/cgroup_text.h \
	supervisor/engine/engine.c supervisor/engine/engine.h supervisor/engine/engine_parts.h \
	supervisor/engine/execution.c supervisor/engine/execution.h supervisor/engine/execution_parts.h \
	supervisor/engine/execution_text.c \
	supervisor/engine/execution_question.c \
	supervisor/engine/execution_results.c \
	supervisor/engine/execution_run.c \
	supervisor/engine/execution_usage.c \
	supervisor/engine/child.c supervisor/engine/child.h \
	supervisor/engine/egress.c supervisor/engine/egress.h \
	supervisor/engine/launch.c supervisor/engine/launch.h \
	supervisor/engine/keeper.c supervisor/engine/keeper.h \
	supervisor/engine/observer.h \
	supervisor/engine/outcome.c supervisor/engine/outcome.h \
	supervisor/engine/outer.c supervisor/engine/outer.h \
	supervisor/engine/output.c supervisor/engine/output.h \
	supervisor/engine/pool.c supervisor/engine/pool.h \
	supervisor/engine/privilege.c supervisor/engine/privilege.h \
	supervisor/engine/repl.c supervisor/engine/repl_cell.c supervisor/engine/repl.h \
	supervisor/engine/repl_keep.c supervisor/engine/repl_keep.h \
	supervisor/engine/repl_parts.h supervisor/engine/repl_usage.c \
	supervisor/engine/scheduler.c supervisor/engine/scheduler.h \
	supervisor/engine/share.c supervisor/engine/share.h \
	supervisor/engine/startup.c supervisor/engine/startup.h \
	supervisor/engine/survey.c supervisor/engine/survey.h \
	supervisor/engine/tenant.c supervisor/engine/tenant.h \
	supervisor/engine/watchdog.c supervisor/engine/watchdog.h \
	supervisor/engine/worker.c supervisor/engine/worker.h supervisor/engine/worker_message.c \
	supervisor/engine/worker_output.c supervisor/engine/worker_slots.c \
	supervisor/engine/worker_stray.c \
	supervisor/engine/zygote.c supervisor/engine/zygote.h

# ---- mcp: from the socket to the tools -------------------------------------------
libsupervisor_a_SOURCES += \
	supervisor/govern/admin.c supervisor/govern/admin.h \
	supervisor/govern/approvals.c supervisor/govern/approvals.h supervisor/govern/approvals_parts.h \
	supervisor/govern/approvals_file.c supervisor/govern/approvals_file.h \
	supervisor/govern/approvals_load.c \
	supervisor/arguments.c supervisor/arguments.h \
	supervisor/govern/audit.c supervisor/govern/audit.h \
	supervisor/govern/audit_file.c supervisor/govern/audit_file.h \
	supervisor/configuration.c supervisor/configuration.h \
	supervisor/govern/gate.c supervisor/govern/gate.h \
	supervisor/govern/governance.c supervisor/govern/governance.h \
	supervisor/govern/metrics.c supervisor/govern/metrics.h \
	supervisor/govern/openmetrics.c supervisor/govern/openmetrics.h \
	supervisor/govern/operation.c supervisor/govern/operation.h supervisor/govern/operation_parts.h \
	supervisor/govern/operation_metrics.c \
	supervisor/subject.c supervisor/subject.h \
	supervisor/unit.c supervisor/unit.h \
	supervisor/mcp/jsonout.c supervisor/mcp/jsonout.h \
	supervisor/mcp/jsonrpc.c supervisor/mcp/jsonrpc.h \
	supervisor/handle.c supervisor/handle.h \
	supervisor/handover.c supervisor/handover.h \
	supervisor/handover_table.c supervisor/handover_table.h \
	supervisor/listener.c supervisor/listener.h \
	supervisor/log.c supervisor/log.h \
	supervisor/loop.c supervisor/loop.h \
	supervisor/mcp/mcp.c supervisor/mcp/mcp.h \
	supervisor/mcp/ask.c \
	supervisor/mcp/call.c supervisor/mcp/call.h \
	supervisor/mcp/conversation.c supervisor/mcp/conversation.h \
	supervisor/mcp/conversation_parts.h \
	supervisor/mcp/cursor.c supervisor/mcp/cursor.h \
	supervisor/mcp/envelope.c supervisor/mcp/envelope.h \
	supervisor/mcp/form.c supervisor/mcp/form.h \
	supervisor/mcp/listen.c \
	supervisor/mcp/lists.c \
	supervisor/mcp/methods.c \
	supervisor/mcp/outcome.c supervisor/mcp/outcome.h \
	supervisor/mcp/parking.c supervisor/mcp/parking.h \
	supervisor/mcp/permission.c supervisor/mcp/permission.h \
	supervisor/mcp/progress.c supervisor/mcp/progress.h \
	supervisor/mcp/question.c supervisor/mcp/question.h \
	supervisor/mcp/repeat.c supervisor/mcp/repeat.h \
	supervisor/mcp/run.c supervisor/mcp/run.h supervisor/mcp/run_parts.h \
	supervisor/mcp/run_permission.c supervisor/mcp/run_questions.c \
	supervisor/mcp/seal.c supervisor/mcp/seal.h \
	supervisor/mcp/start.c \
	supervisor/mcp/stream.c supervisor/mcp/stream.h \
	supervisor/mcp/task.c supervisor/mcp/task.h supervisor/mcp/task_methods.c \
	supervisor/mcp/tool_list.c supervisor/mcp/tool_list.h \
	supervisor/notify.c supervisor/notify.h \
	supervisor/mcp/revision.c supervisor/mcp/revision.h \
	supervisor/mcp/revision_content.c \
	supervisor/session.c supervisor/session.h \
	supervisor/session_account.c supervisor/session_account.h \
	supervisor/socketfile.c supervisor/socketfile.h \
	supervisor/tools/background.c supervisor/tools/background.h \
	supervisor/tools/check_environment.c supervisor/tools/check_environment.h \
	supervisor/tools/environment.c supervisor/tools/environment.h \
	supervisor/tools/exec_sandbox.c supervisor/tools/exec_sandbox.h \
	supervisor/tools/script_input.c supervisor/tools/script_input.h \
	supervisor/tools/icon.c supervisor/tools/icon.h \
	supervisor/tools/inside.c supervisor/tools/inside.h \
	supervisor/tools/python_sandbox.c supervisor/tools/python_sandbox.h \
	supervisor/tools/sandbox_info.c \
	supervisor/tools/tiers.c supervisor/tools/tiers.h \
	supervisor/tools/validate_code.c \
	supervisor/tools/job.c supervisor/tools/job.h \
	supervisor/tools/requirements.c supervisor/tools/requirements.h \
	supervisor/tools/validate_script.c supervisor/tools/validate_script.h \
	supervisor/tools/outcome_copy.c supervisor/tools/outcome_copy.h \
	supervisor/tools/repl_checkpoints.c \
	supervisor/tools/repl_sessions.c supervisor/tools/repl_sessions.h \
	supervisor/tools/repl_sessions_keep.c supervisor/tools/repl_sessions_keep.h \
	supervisor/tools/repl_sessions_parts.h \
	supervisor/tools/run_repl.c supervisor/tools/run_repl.h \
	supervisor/tools/run_repl_answer.c supervisor/tools/run_repl_begin.c \
	supervisor/tools/run_repl_cell.c supervisor/tools/run_repl_parts.h \
	supervisor/tools/run_script.c supervisor/tools/run_script.h \
	supervisor/tools/run_script_answer.c \
	supervisor/tools/run_script_arguments.c supervisor/tools/run_script_table.h \
	supervisor/tools/run_script_schema.c \
	supervisor/tools/run_script_files.c supervisor/tools/run_script_files.h \
	supervisor/tools/run_script_results.c supervisor/tools/run_script_results.h \
	supervisor/tools/media.c supervisor/tools/media.h \
	supervisor/tools/packages/collect.c supervisor/tools/packages/collect.h \
	supervisor/tools/packages/consent.c supervisor/tools/packages/consent.h \
	supervisor/tools/packages/delivery.c supervisor/tools/packages/delivery.h \
	supervisor/tools/packages/install.c supervisor/tools/packages/install.h \
	supervisor/tools/packages/install_build.c \
	supervisor/tools/packages/install_decide.c supervisor/tools/packages/install_parts.h \
	supervisor/tools/packages/install_package.c supervisor/tools/packages/install_package.h \
	supervisor/tools/packages/needs.c supervisor/tools/packages/needs.h \
	supervisor/tools/packages/program.c supervisor/tools/packages/program.h \
	supervisor/tools/packages/set.c supervisor/tools/packages/set.h \
	supervisor/tools/packages/store.c supervisor/tools/packages/store.h \
	supervisor/tools/catalog.c supervisor/tools/catalog.h \
	supervisor/tools/resources.c supervisor/tools/resources.h \
	supervisor/tools/tool.h \
	supervisor/xalloc.h

# Programs of our own that run in workers, as C strings.
BUILT_SOURCES += supervisor/tools/look_script.h supervisor/tools/look_environment.h \
	supervisor/tools/look_code.h
CLEANFILES += supervisor/tools/look_script.h supervisor/tools/look_environment.h \
	supervisor/tools/look_code.h
EXTRA_DIST += supervisor/tools/embed.py supervisor/tools/look_script.py \
	supervisor/tools/look_environment.py supervisor/tools/look_code.py
supervisor/tools/look_script.h: supervisor/tools/look_script.py supervisor/tools/embed.py
	@$(MKDIR_P) supervisor/tools
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/supervisor/tools/embed.py \
		$(srcdir)/supervisor/tools/look_script.py $@
supervisor/tools/look_environment.h: supervisor/tools/look_environment.py \
		supervisor/tools/embed.py
	@$(MKDIR_P) supervisor/tools
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/supervisor/tools/embed.py \
		$(srcdir)/supervisor/tools/look_environment.py $@
supervisor/tools/look_code.h: policy/import_check.py supervisor/tools/look_code.py \
		supervisor/tools/embed.py
	@$(MKDIR_P) supervisor/tools
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/supervisor/tools/embed.py \
		$(srcdir)/policy/import_check.py $(srcdir)/supervisor/tools/look_code.py $@
supervisor/tools/libsupervisor_a-validate_code.$(OBJEXT): supervisor/tools/look_code.h
supervisor/tools/libsupervisor_a-requirements.$(OBJEXT): supervisor/tools/look_script.h
supervisor/tools/libsupervisor_a-environment.$(OBJEXT): supervisor/tools/look_environment.h

BUILT_SOURCES += supervisor/tools/packages/resolve_packages.h \
	supervisor/tools/packages/build_package.h supervisor/tools/packages/install_packages.h
CLEANFILES += supervisor/tools/packages/resolve_packages.h \
	supervisor/tools/packages/build_package.h supervisor/tools/packages/install_packages.h
EXTRA_DIST += supervisor/tools/packages/handed.py supervisor/tools/packages/resolve_packages.py \
	supervisor/tools/packages/build_package.py supervisor/tools/packages/install_packages.py
supervisor/tools/packages/resolve_packages.h: supervisor/tools/packages/handed.py \
		supervisor/tools/packages/resolve_packages.py supervisor/tools/embed.py
	@$(MKDIR_P) supervisor/tools/packages
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/supervisor/tools/embed.py \
		$(srcdir)/supervisor/tools/packages/handed.py \
		$(srcdir)/supervisor/tools/packages/resolve_packages.py $@
supervisor/tools/packages/build_package.h: supervisor/tools/packages/handed.py \
		supervisor/tools/packages/build_package.py supervisor/tools/embed.py
	@$(MKDIR_P) supervisor/tools/packages
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/supervisor/tools/embed.py \
		$(srcdir)/supervisor/tools/packages/handed.py \
		$(srcdir)/supervisor/tools/packages/build_package.py $@
supervisor/tools/packages/install_packages.h: supervisor/tools/packages/handed.py \
		supervisor/tools/packages/install_packages.py supervisor/tools/embed.py
	@$(MKDIR_P) supervisor/tools/packages
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/supervisor/tools/embed.py \
		$(srcdir)/supervisor/tools/packages/handed.py \
		$(srcdir)/supervisor/tools/packages/install_packages.py $@
supervisor/tools/packages/libsupervisor_a-install.$(OBJEXT): \
	supervisor/tools/packages/resolve_packages.h supervisor/tools/packages/install_packages.h
supervisor/tools/packages/libsupervisor_a-install_build.$(OBJEXT): \
	supervisor/tools/packages/build_package.h

# ---- http: from a listening socket to conversations -------------------------------
libsupervisor_a_SOURCES += \
	supervisor/auth/auth.c supervisor/auth/auth.h \
	supervisor/auth/file.c supervisor/auth/file.h \
	supervisor/auth/jwks.c supervisor/auth/jwks.h \
	supervisor/auth/jwt.c supervisor/auth/jwt.h \
	supervisor/auth/tokens.c supervisor/auth/tokens.h \
	supervisor/http/account.c supervisor/http/account.h \
	supervisor/http/connection.c supervisor/http/parts.h \
	supervisor/http/events.c \
	supervisor/http/exchange.c supervisor/http/exchange_parts.h \
	supervisor/http/head.c supervisor/http/head.h \
	supervisor/http/ladder.c supervisor/http/ladder.h \
	supervisor/http/origin.c supervisor/http/origin.h \
	supervisor/http/param.c supervisor/http/param.h \
	supervisor/http/principal.c supervisor/http/principal.h \
	supervisor/http/replay.c supervisor/http/replay.h \
	supervisor/http/request.c \
	supervisor/http/server.c supervisor/http/server.h \
	supervisor/http/session.c supervisor/http/session.h \
	supervisor/places.c supervisor/places.h

SUPERVISOR_LIBS = libsupervisor.a libpolicy.a libproto.a $(EVENT_LIBS) $(JANSSON_LIBS) \
	$(SYSTEMD_LIBS) $(INIH_LIBS) $(MSGPACK_LIBS) $(CJOSE_LIBS) \
	$(CRYPTO_LIBS) -lm
sbin_PROGRAMS += mcp-pythond
mcp_pythond_SOURCES = supervisor/main.c supervisor/catalog.c
mcp_pythond_CPPFLAGS = $(libsupervisor_a_CPPFLAGS)
mcp_pythond_LDADD = $(SUPERVISOR_LIBS)
