# SPDX-License-Identifier: Apache-2.0
# engine: zygotes, the pool of workers, executions and sessions of the interpreter.
noinst_LIBRARIES += libengine.a
libengine_a_SOURCES = \
	engine/dispatch.c engine/dispatch.h \
	engine/egress.c engine/egress.h \
	engine/engine.c engine/engine.h \
	engine/engine_parts.h \
	engine/execution.c engine/execution.h \
	engine/execution_answer.c \
	engine/execution_files.c engine/execution_files.h \
	engine/execution_message.c \
	engine/execution_mounts.c engine/execution_mounts.h \
	engine/execution_modules.c engine/execution_modules.h \
	engine/execution_parts.h \
	engine/execution_waits.c engine/execution_waits.h \
	engine/execution_request.c engine/execution_request.h \
	engine/execution_results.c engine/execution_results.h \
	engine/execution_run.c \
	engine/execution_tools.c engine/execution_tools.h \
	engine/execution_usage.c engine/execution_usage.h \
	engine/file_uri.c engine/file_uri.h \
	engine/keeper.c engine/keeper.h \
	engine/learning.c engine/learning.h \
	engine/load.c engine/load.h \
	engine/observer.h \
	engine/options.h \
	engine/outcome.h engine/outcomes.def \
	engine/output.c engine/output.h \
	engine/pool.c engine/pool.h \
	engine/ready.c engine/ready.h \
	engine/renewal.c engine/renewal.h \
	engine/repl.c engine/repl.h \
	engine/repl_cell.c \
	engine/repl_keep.c engine/repl_keep.h \
	engine/repl_parts.h \
	engine/repl_stage.h \
	engine/repl_usage.c \
	engine/request.h \
	engine/running.h \
	engine/scheduler.c engine/scheduler.h \
	engine/share.c engine/share.h \
	engine/tables.c engine/tables.h \
	engine/survey.c engine/survey.h \
	engine/tenant.c engine/tenant.h \
	engine/tenants.h \
	engine/upload.c engine/upload.h \
	engine/upstream.c engine/upstream.h \
	engine/verdict.c engine/verdict.h \
	engine/volume.c engine/volume.h \
	engine/worker.c engine/worker.h \
	engine/worker_output.c \
	engine/worker_slots.c engine/worker_slots.h \
	engine/worker_stray.c \
	engine/zygote.c engine/zygote.h
libengine_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)
