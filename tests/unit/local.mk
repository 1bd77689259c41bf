# SPDX-License-Identifier: Apache-2.0
# Unit tests, one program per module. Each folder's block stands by itself.

# ---- base ----
BASE_TESTS = \
	tests/unit/base/test-base64 \
	tests/unit/base/test-kept \
	tests/unit/base/test-loop \
	tests/unit/base/test-mask \
	tests/unit/base/test-passrights \
	tests/unit/base/test-quote \
	tests/unit/base/test-rota \
	tests/unit/base/test-stall \
	tests/unit/base/test-utf8 \
	tests/unit/base/test-xalloc
check_PROGRAMS += $(BASE_TESTS)
TESTS += $(BASE_TESTS)
BASE_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
BASE_TEST_LDADD = libbase.a $(TEST_LIBS)
LINGER = tests/unit/base/linger.c tests/unit/base/linger.h
tests_unit_base_test_base64_SOURCES = tests/unit/base/test-base64.c
tests_unit_base_test_base64_CPPFLAGS = $(BASE_TEST_CPPFLAGS)
tests_unit_base_test_base64_LDADD = libbase.a $(CRYPTO_LIBS) $(TEST_LIBS)
tests_unit_base_test_kept_SOURCES = tests/unit/base/test-kept.c
tests_unit_base_test_kept_CPPFLAGS = $(BASE_TEST_CPPFLAGS) $(EVENT_CFLAGS)
tests_unit_base_test_kept_LDADD = libbase.a $(EVENT_LIBS) $(TEST_LIBS)
tests_unit_base_test_loop_SOURCES = tests/unit/base/test-loop.c tests/unit/base/refuse_syscall.h \
	$(LINGER) $(BASE_TURNS)
tests_unit_base_test_loop_CPPFLAGS = $(BASE_TEST_CPPFLAGS) $(EVENT_CFLAGS)
tests_unit_base_test_loop_LDADD = libbase.a $(EVENT_LIBS) $(TEST_LIBS)
tests_unit_base_test_mask_SOURCES = tests/unit/base/test-mask.c
tests_unit_base_test_mask_CPPFLAGS = $(BASE_TEST_CPPFLAGS)
tests_unit_base_test_mask_LDADD = $(BASE_TEST_LDADD)
tests_unit_base_test_passrights_SOURCES = tests/unit/base/test-passrights.c $(LINGER)
tests_unit_base_test_passrights_CPPFLAGS = $(BASE_TEST_CPPFLAGS)
tests_unit_base_test_passrights_LDADD = $(BASE_TEST_LDADD)
tests_unit_base_test_stall_SOURCES = tests/unit/base/test-stall.c $(LINGER)
tests_unit_base_test_stall_CPPFLAGS = $(BASE_TEST_CPPFLAGS)
tests_unit_base_test_stall_LDADD = $(BASE_TEST_LDADD)
tests_unit_base_test_quote_SOURCES = tests/unit/base/test-quote.c
tests_unit_base_test_quote_CPPFLAGS = $(BASE_TEST_CPPFLAGS)
tests_unit_base_test_quote_LDADD = $(BASE_TEST_LDADD)
tests_unit_base_test_rota_SOURCES = tests/unit/base/test-rota.c
tests_unit_base_test_rota_CPPFLAGS = $(BASE_TEST_CPPFLAGS) $(EVENT_CFLAGS)
tests_unit_base_test_rota_LDADD = libbase.a $(EVENT_LIBS) $(TEST_LIBS)
tests_unit_base_test_utf8_SOURCES = tests/unit/base/test-utf8.c
tests_unit_base_test_utf8_CPPFLAGS = $(BASE_TEST_CPPFLAGS)
tests_unit_base_test_utf8_LDADD = $(BASE_TEST_LDADD)
tests_unit_base_test_xalloc_SOURCES = tests/unit/base/test-xalloc.c
tests_unit_base_test_xalloc_CPPFLAGS = $(BASE_TEST_CPPFLAGS) $(CRYPTO_CFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_base_test_xalloc_LDADD = libbase.a $(CRYPTO_LIBS) $(EVENT_LIBS) $(JANSSON_LIBS) $(TEST_LIBS)

# ---- proto ----
PROTO_TESTS = \
	tests/unit/proto/test-codec \
	tests/unit/proto/test-fdpass \
	tests/unit/proto/test-frame \
	tests/unit/base/test-nextentry \
	tests/unit/base/test-own \
	tests/unit/proto/test-walk
check_PROGRAMS += $(PROTO_TESTS)
TESTS += $(PROTO_TESTS)
PROTO_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(MSGPACK_CFLAGS) $(TEST_CFLAGS)
PROTO_TEST_LDADD = libproto.a libbase.a $(MSGPACK_LIBS) $(TEST_LIBS)
tests_unit_proto_test_codec_SOURCES = tests/unit/proto/test-codec.c \
	tests/unit/proto/sample.c tests/unit/proto/sample.h
tests_unit_proto_test_codec_CPPFLAGS = $(PROTO_TEST_CPPFLAGS)
tests_unit_proto_test_codec_LDADD = $(PROTO_TEST_LDADD)
tests_unit_proto_test_fdpass_SOURCES = tests/unit/proto/test-fdpass.c \
	tests/unit/proto/few_fds.h
tests_unit_proto_test_fdpass_CPPFLAGS = $(PROTO_TEST_CPPFLAGS)
tests_unit_proto_test_fdpass_LDADD = $(PROTO_TEST_LDADD)
tests_unit_proto_test_frame_SOURCES = tests/unit/proto/test-frame.c \
	tests/unit/proto/sample.c tests/unit/proto/sample.h tests/unit/proto/no_memory.h
tests_unit_proto_test_frame_CPPFLAGS = $(PROTO_TEST_CPPFLAGS)
tests_unit_proto_test_frame_LDADD = $(PROTO_TEST_LDADD)
tests_unit_base_test_nextentry_SOURCES = tests/unit/base/test-nextentry.c
tests_unit_base_test_nextentry_CPPFLAGS = $(BASE_TEST_CPPFLAGS)
tests_unit_base_test_nextentry_LDADD = $(BASE_TEST_LDADD)
tests_unit_base_test_own_SOURCES = tests/unit/base/test-own.c
tests_unit_base_test_own_CPPFLAGS = $(PROTO_TEST_CPPFLAGS)
tests_unit_base_test_own_LDADD = $(PROTO_TEST_LDADD)
tests_unit_proto_test_walk_SOURCES = tests/unit/proto/test-walk.c
tests_unit_proto_test_walk_CPPFLAGS = $(PROTO_TEST_CPPFLAGS)
tests_unit_proto_test_walk_LDADD = $(PROTO_TEST_LDADD)

# ---- policy ----
POLICY_TESTS = \
	tests/unit/policy/test-config \
	tests/unit/policy/test-id-range \
	tests/unit/policy/test-imports \
	tests/unit/policy/test-learnable \
	tests/unit/policy/test-limits \
	tests/unit/policy/test-network \
	tests/unit/policy/test-packages \
	tests/unit/policy/test-pep723 \
	tests/unit/policy/test-quota \
	tests/unit/policy/test-requirement \
	tests/unit/policy/test-rules \
	tests/unit/policy/test-shown \
	tests/unit/policy/test-tokens \
	tests/unit/base/test-userdir \
	tests/unit/policy/test-shape \
	tests/unit/policy/test-tools \
	tests/unit/base/test-why
check_PROGRAMS += $(POLICY_TESTS)
TESTS += $(POLICY_TESTS)
POLICY_TEST_LDADD = libpolicy.a libbase.a $(INIH_LIBS) $(TEST_LIBS)
tests_unit_policy_test_config_SOURCES = tests/unit/policy/test-config.c
tests_unit_policy_test_config_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_config_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_id_range_SOURCES = tests/unit/policy/test-id-range.c
tests_unit_policy_test_id_range_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_id_range_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_imports_SOURCES = tests/unit/policy/test-imports.c
tests_unit_policy_test_imports_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_imports_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_learnable_SOURCES = tests/unit/policy/test-learnable.c
tests_unit_policy_test_learnable_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_learnable_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_limits_SOURCES = tests/unit/policy/test-limits.c
tests_unit_policy_test_limits_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_limits_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_network_SOURCES = tests/unit/policy/test-network.c
tests_unit_policy_test_network_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_network_LDADD = libpolicy.a libbase.a $(TEST_LIBS)
tests_unit_policy_test_pep723_SOURCES = tests/unit/policy/test-pep723.c
tests_unit_policy_test_pep723_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_pep723_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_requirement_SOURCES = tests/unit/policy/test-requirement.c
tests_unit_policy_test_requirement_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_requirement_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_packages_SOURCES = tests/unit/policy/test-packages.c
tests_unit_policy_test_packages_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_packages_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_quota_SOURCES = tests/unit/policy/test-quota.c
tests_unit_policy_test_quota_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_quota_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_rules_SOURCES = tests/unit/policy/test-rules.c
tests_unit_policy_test_rules_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_rules_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_shape_SOURCES = tests/unit/policy/test-shape.c
tests_unit_policy_test_shape_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_shape_LDADD = libpolicy.a libproto.a libbase.a $(JANSSON_LIBS) $(TEST_LIBS)
tests_unit_policy_test_tools_SOURCES = tests/unit/policy/test-tools.c
tests_unit_policy_test_tools_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_tools_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_shown_SOURCES = tests/unit/policy/test-shown.c
tests_unit_policy_test_shown_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_shown_LDADD = libpolicy.a libbase.a $(JANSSON_LIBS) $(CRYPTO_LIBS) \
	$(TEST_LIBS)
tests_unit_policy_test_tokens_SOURCES = tests/unit/policy/test-tokens.c
tests_unit_policy_test_tokens_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_tokens_LDADD = libpolicy.a libbase.a $(JANSSON_LIBS) $(CRYPTO_LIBS) $(TEST_LIBS)
tests_unit_base_test_userdir_SOURCES = tests/unit/base/test-userdir.c
tests_unit_base_test_userdir_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_base_test_userdir_LDADD = $(POLICY_TEST_LDADD)
tests_unit_base_test_why_SOURCES = tests/unit/base/test-why.c
tests_unit_base_test_why_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_base_test_why_LDADD = $(POLICY_TEST_LDADD)

# ---- client ----
CLIENT_TESTS = \
	tests/unit/client/test-bridge \
	tests/unit/client/test-cell \
	tests/unit/client/test-options \
	tests/unit/client/test-prompt \
	tests/unit/client/test-refused \
	tests/unit/client/test-reply \
	tests/unit/client/test-run \
	tests/unit/client/test-table \
	tests/unit/client/test-when \
	tests/unit/client/test-text
check_PROGRAMS += $(CLIENT_TESTS)
TESTS += $(CLIENT_TESTS)
CLIENT_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(TEST_CFLAGS)
CLIENT_TEST_LDADD = libclient.a libpolicy.a libbase.a $(JANSSON_LIBS) $(CRYPTO_LIBS) $(EDIT_LIBS) $(TEST_LIBS)
tests_unit_client_test_bridge_SOURCES = tests/unit/client/test-bridge.c \
	tests/unit/client/cmocka_all.h
tests_unit_client_test_bridge_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_bridge_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_cell_SOURCES = tests/unit/client/test-cell.c
tests_unit_client_test_cell_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_cell_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_options_SOURCES = tests/unit/client/test-options.c
tests_unit_client_test_options_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_options_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_prompt_SOURCES = tests/unit/client/test-prompt.c
tests_unit_client_test_prompt_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_prompt_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_refused_SOURCES = tests/unit/client/test-refused.c
tests_unit_client_test_refused_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_refused_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_reply_SOURCES = tests/unit/client/test-reply.c
tests_unit_client_test_reply_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_reply_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_run_SOURCES = tests/unit/client/test-run.c
tests_unit_client_test_run_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_run_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_when_SOURCES = tests/unit/client/test-when.c
tests_unit_client_test_when_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_when_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_table_SOURCES = tests/unit/client/test-table.c
tests_unit_client_test_table_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_table_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_text_SOURCES = tests/unit/client/test-text.c
tests_unit_client_test_text_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_text_LDADD = $(CLIENT_TEST_LDADD)

# ---- worker ----
include tests/unit/worker/local.mk

# ---- supervisor: engine ----
ENGINE_TESTS = \
	tests/unit/host/test-cgroup-text \
	tests/unit/engine/test-engine \
	tests/unit/host/test-fence \
	tests/unit/host/test-directory \
	tests/unit/host/test-filestore \
	tests/unit/host/test-launcher \
	tests/unit/engine/test-learning \
	tests/unit/engine/test-load \
	tests/unit/engine/test-mounts \
	tests/unit/engine/test-tables \
	tests/unit/engine/test-verdict \
	tests/unit/engine/test-output \
	tests/unit/engine/test-waits \
	tests/unit/host/test-privilege \
	tests/unit/host/test-scope \
	tests/unit/host/test-secret \
	tests/unit/host/test-startup \
	tests/unit/host/test-subordinate \
	tests/unit/engine/test-repl \
	tests/unit/engine/test-scheduler \
	tests/unit/host/test-usage \
	tests/unit/host/test-watchdog \
	tests/unit/engine/test-worker \
	tests/unit/engine/test-zygote
check_PROGRAMS += $(ENGINE_TESTS)
TESTS += $(ENGINE_TESTS)
ENGINE_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(TEST_CFLAGS)
ENGINE_TEST_LDADD = $(SUPERVISOR_LIBS) $(TEST_LIBS)
ENGINE_RIG = tests/unit/engine/engine_rig.c tests/unit/engine/engine_rig.h $(BASE_TURNS)
tests_unit_host_test_cgroup_text_SOURCES = tests/unit/host/test-cgroup-text.c
tests_unit_host_test_cgroup_text_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_host_test_cgroup_text_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_engine_test_engine_SOURCES = tests/unit/engine/test-engine.c $(ENGINE_RIG) $(LINGER)
tests_unit_engine_test_engine_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_engine_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_host_test_fence_SOURCES = tests/unit/host/test-fence.c
tests_unit_host_test_fence_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_host_test_fence_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_host_test_directory_SOURCES = tests/unit/host/test-directory.c
tests_unit_host_test_directory_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_host_test_directory_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_host_test_filestore_SOURCES = tests/unit/host/test-filestore.c tests/unit/base/set_clock.h
tests_unit_host_test_filestore_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_host_test_filestore_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_host_test_launcher_SOURCES = tests/unit/host/test-launcher.c $(ENGINE_RIG)
tests_unit_host_test_launcher_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_host_test_launcher_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_engine_test_repl_SOURCES = tests/unit/engine/test-repl.c $(ENGINE_RIG)
tests_unit_engine_test_repl_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_repl_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_engine_test_learning_SOURCES = tests/unit/engine/test-learning.c
tests_unit_engine_test_learning_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_learning_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_engine_test_load_SOURCES = tests/unit/engine/test-load.c
tests_unit_engine_test_load_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_load_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_engine_test_mounts_SOURCES = tests/unit/engine/test-mounts.c $(ENGINE_RIG)
tests_unit_engine_test_mounts_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_mounts_LDADD = $(ENGINE_TEST_LDADD)
# A keeper that takes every order.
tests_unit_engine_test_mounts_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=keeper_is_there -Wl,--wrap=keeper_attach_files
tests_unit_engine_test_tables_SOURCES = tests/unit/engine/test-tables.c
tests_unit_engine_test_tables_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_tables_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_engine_test_verdict_SOURCES = tests/unit/engine/test-verdict.c
tests_unit_engine_test_verdict_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_verdict_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_engine_test_output_SOURCES = tests/unit/engine/test-output.c
tests_unit_engine_test_output_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_output_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_engine_test_waits_SOURCES = tests/unit/engine/test-waits.c
tests_unit_engine_test_waits_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_waits_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_host_test_privilege_SOURCES = tests/unit/host/test-privilege.c
tests_unit_host_test_privilege_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_host_test_privilege_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_host_test_secret_SOURCES = tests/unit/host/test-secret.c
tests_unit_host_test_secret_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_host_test_secret_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_engine_test_scheduler_SOURCES = tests/unit/engine/test-scheduler.c
tests_unit_engine_test_scheduler_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_scheduler_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_host_test_scope_SOURCES = tests/unit/host/test-scope.c
tests_unit_host_test_scope_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_host_test_scope_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_host_test_startup_SOURCES = tests/unit/host/test-startup.c
tests_unit_host_test_startup_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_host_test_startup_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_host_test_subordinate_SOURCES = tests/unit/host/test-subordinate.c
tests_unit_host_test_subordinate_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_host_test_subordinate_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_host_test_usage_SOURCES = tests/unit/host/test-usage.c tests/unit/base/refuse_syscall.h
tests_unit_host_test_usage_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_host_test_usage_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_host_test_watchdog_SOURCES = tests/unit/host/test-watchdog.c
tests_unit_host_test_watchdog_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_host_test_watchdog_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_engine_test_worker_SOURCES = tests/unit/engine/test-worker.c
tests_unit_engine_test_worker_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_worker_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_engine_test_zygote_SOURCES = tests/unit/engine/test-zygote.c \
	tests/unit/proto/few_fds.h tests/unit/proto/no_memory.h
tests_unit_engine_test_zygote_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_engine_test_zygote_LDADD = $(ENGINE_TEST_LDADD)

# ---- supervisor: mcp ----
# serve-fake is a live server over an engine without processes; the two scripts drive it.
MCP_TESTS = \
	tests/unit/govern/test-approvals \
	tests/unit/govern/test-audit \
	tests/unit/govern/test-advisories \
	tests/unit/govern/test-alarms \
	tests/unit/govern/test-gate \
	tests/unit/tools/test-environment \
	tests/unit/mcp/test-arguments \
	tests/unit/mcp/test-eras \
	tests/unit/mcp/test-listing \
	tests/unit/base/test-jsonbound \
	tests/unit/base/test-jsonout \
	tests/unit/mcp/test-jsonrpc \
	tests/unit/supervisor/test-configuration \
	tests/unit/supervisor/test-handover \
	tests/unit/supervisor/test-laptop \
	tests/unit/tools/test-handover-table \
	tests/unit/base/test-log \
	tests/unit/govern/test-ledger \
	tests/unit/govern/test-metrics \
	tests/unit/mcp/test-mcp \
	tests/unit/tools/test-files \
	tests/unit/tools/test-install-build \
	tests/unit/tools/test-media \
	tests/unit/tools/test-results \
	tests/unit/tools/test-job \
	tests/unit/tools/test-run-repl \
	tests/unit/tools/test-run-script \
	tests/unit/tools/test-script-input \
	tests/unit/tools/test-toolsets \
	tests/unit/mcp/test-seal \
	tests/unit/supervisor/test-stream \
	tests/unit/tools/test-owned \
	tests/unit/tools/test-set \
	tests/unit/base/test-socketfile
MCP_LIVE_TESTS = \
	tests/unit/mcp/live-corpus.sh \
	tests/unit/mcp/live-schema.sh
check_PROGRAMS += $(MCP_TESTS) tests/unit/mcp/serve-fake
dist_check_SCRIPTS += $(MCP_LIVE_TESTS)
TESTS += $(MCP_TESTS) $(MCP_LIVE_TESTS)
MCP_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS) $(TEST_CFLAGS)
MCP_TEST_LDADD = $(SUPERVISOR_LIBS) $(TEST_LIBS)
MCP_FAKE = tests/unit/tools/fake_engine.c tests/unit/tools/fake_engine.h \
	tests/unit/tools/fake_repl.c
MCP_BENCH = $(MCP_FAKE) \
	tests/unit/mcp/bench_stream.c tests/unit/mcp/bench_stream.h
tests_unit_govern_test_approvals_SOURCES = tests/unit/govern/test-approvals.c tests/unit/base/set_clock.h
tests_unit_govern_test_approvals_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_govern_test_approvals_LDADD = $(MCP_TEST_LDADD)
tests_unit_govern_test_advisories_SOURCES = tests/unit/govern/test-advisories.c
tests_unit_govern_test_advisories_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_govern_test_advisories_LDADD = $(MCP_TEST_LDADD)
tests_unit_govern_test_alarms_SOURCES = tests/unit/govern/test-alarms.c
tests_unit_govern_test_alarms_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_govern_test_alarms_LDADD = $(MCP_TEST_LDADD)
tests_unit_govern_test_gate_SOURCES = tests/unit/govern/test-gate.c
tests_unit_govern_test_gate_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_govern_test_gate_LDADD = $(MCP_TEST_LDADD)
tests_unit_govern_test_audit_SOURCES = tests/unit/govern/test-audit.c
tests_unit_govern_test_audit_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_govern_test_audit_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_environment_SOURCES = \
	tests/unit/tools/test-environment.c $(MCP_BENCH)
tests_unit_tools_test_environment_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_environment_LDADD = $(MCP_TEST_LDADD)
tests_unit_mcp_test_eras_SOURCES = tests/unit/mcp/test-eras.c \
	tests/unit/mcp/test_catalog.c tests/unit/mcp/test_catalog.h $(MCP_BENCH)
tests_unit_mcp_test_eras_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_mcp_test_eras_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_configuration_SOURCES = tests/unit/supervisor/test-configuration.c
tests_unit_supervisor_test_configuration_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_configuration_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_handover_SOURCES = tests/unit/supervisor/test-handover.c
tests_unit_supervisor_test_handover_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_handover_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_laptop_SOURCES = tests/unit/supervisor/test-laptop.c
tests_unit_supervisor_test_laptop_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_laptop_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_handover_table_SOURCES = \
	tests/unit/tools/test-handover-table.c
tests_unit_tools_test_handover_table_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_handover_table_LDADD = $(MCP_TEST_LDADD)
tests_unit_base_test_jsonbound_SOURCES = tests/unit/base/test-jsonbound.c
tests_unit_base_test_jsonbound_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_base_test_jsonbound_LDADD = $(MCP_TEST_LDADD)
tests_unit_base_test_jsonout_SOURCES = tests/unit/base/test-jsonout.c
tests_unit_base_test_jsonout_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_base_test_jsonout_LDADD = $(MCP_TEST_LDADD)
tests_unit_mcp_test_jsonrpc_SOURCES = tests/unit/mcp/test-jsonrpc.c
tests_unit_mcp_test_jsonrpc_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_mcp_test_jsonrpc_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_owned_SOURCES = tests/unit/tools/test-owned.c
tests_unit_tools_test_owned_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_owned_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_install_build_SOURCES = tests/unit/tools/test-install-build.c
tests_unit_tools_test_install_build_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_install_build_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_set_SOURCES = tests/unit/tools/test-set.c
tests_unit_tools_test_set_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_set_LDADD = $(MCP_TEST_LDADD)
tests_unit_govern_test_ledger_SOURCES = tests/unit/govern/test-ledger.c
tests_unit_govern_test_ledger_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_govern_test_ledger_LDADD = $(MCP_TEST_LDADD)
tests_unit_govern_test_metrics_SOURCES = tests/unit/govern/test-metrics.c
tests_unit_govern_test_metrics_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_govern_test_metrics_LDADD = $(MCP_TEST_LDADD)
tests_unit_base_test_log_SOURCES = tests/unit/base/test-log.c
tests_unit_base_test_log_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_base_test_log_LDADD = $(MCP_TEST_LDADD)
tests_unit_mcp_test_mcp_SOURCES = tests/unit/mcp/test-mcp.c $(MCP_BENCH)
tests_unit_mcp_test_mcp_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_mcp_test_mcp_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_files_SOURCES = tests/unit/tools/test-files.c
tests_unit_tools_test_files_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_files_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_media_SOURCES = tests/unit/tools/test-media.c
tests_unit_tools_test_media_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_media_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_results_SOURCES = tests/unit/tools/test-results.c $(MCP_FAKE)
tests_unit_tools_test_results_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_results_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_job_SOURCES = tests/unit/tools/test-job.c \
	$(MCP_BENCH)
tests_unit_tools_test_job_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_job_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_run_repl_SOURCES = tests/unit/tools/test-run-repl.c tests/unit/base/effort.h \
	$(MCP_BENCH)
tests_unit_tools_test_run_repl_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_run_repl_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_run_script_SOURCES = tests/unit/tools/test-run-script.c \
	$(MCP_BENCH)
tests_unit_tools_test_run_script_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_run_script_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_script_input_SOURCES = tests/unit/tools/test-script-input.c \
	$(MCP_BENCH)
tests_unit_tools_test_script_input_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_script_input_LDADD = $(MCP_TEST_LDADD)
tests_unit_tools_test_toolsets_SOURCES = tests/unit/tools/test-toolsets.c \
	$(MCP_BENCH)
tests_unit_tools_test_toolsets_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_tools_test_toolsets_LDADD = $(MCP_TEST_LDADD)
tests_unit_mcp_test_arguments_SOURCES = tests/unit/mcp/test-arguments.c
tests_unit_mcp_test_arguments_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_mcp_test_arguments_LDADD = $(MCP_TEST_LDADD)
tests_unit_mcp_test_listing_SOURCES = tests/unit/mcp/test-listing.c
tests_unit_mcp_test_listing_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_mcp_test_listing_LDADD = $(MCP_TEST_LDADD)
tests_unit_mcp_test_seal_SOURCES = tests/unit/mcp/test-seal.c
tests_unit_mcp_test_seal_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_mcp_test_seal_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_stream_SOURCES = tests/unit/supervisor/test-stream.c $(MCP_FAKE)
tests_unit_supervisor_test_stream_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_stream_LDADD = $(MCP_TEST_LDADD)
tests_unit_base_test_socketfile_SOURCES = tests/unit/base/test-socketfile.c
tests_unit_base_test_socketfile_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_base_test_socketfile_LDADD = $(MCP_TEST_LDADD)
tests_unit_mcp_serve_fake_SOURCES = tests/unit/mcp/serve-fake.c $(MCP_FAKE)
tests_unit_mcp_serve_fake_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_mcp_serve_fake_LDADD = $(SUPERVISOR_LIBS)

# ---- supervisor: http ----
HTTP_TESTS = \
	tests/unit/http/test-http-account \
	tests/unit/http/test-http-framing \
	tests/unit/http/test-http-head \
	tests/unit/http/test-http-ladder \
	tests/unit/http/test-http-links \
	tests/unit/http/test-http-replay
check_PROGRAMS += $(HTTP_TESTS)
TESTS += $(HTTP_TESTS)
tests_unit_http_test_http_account_SOURCES = \
	tests/unit/http/test-http-account.c $(MCP_FAKE)
tests_unit_http_test_http_account_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_http_test_http_account_LDADD = $(MCP_TEST_LDADD)
tests_unit_http_test_http_framing_SOURCES = tests/unit/http/test-http-framing.c
tests_unit_http_test_http_framing_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_http_test_http_framing_LDADD = $(MCP_TEST_LDADD)
tests_unit_http_test_http_head_SOURCES = tests/unit/http/test-http-head.c
tests_unit_http_test_http_head_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_http_test_http_head_LDADD = $(MCP_TEST_LDADD)
tests_unit_http_test_http_ladder_SOURCES = tests/unit/http/test-http-ladder.c
tests_unit_http_test_http_ladder_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_http_test_http_ladder_LDADD = $(MCP_TEST_LDADD)
tests_unit_http_test_http_links_SOURCES = \
	tests/unit/http/test-http-links.c $(MCP_FAKE)
tests_unit_http_test_http_links_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_http_test_http_links_LDADD = $(MCP_TEST_LDADD)
tests_unit_http_test_http_replay_SOURCES = tests/unit/http/test-http-replay.c tests/unit/base/effort.h
tests_unit_http_test_http_replay_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_http_test_http_replay_LDADD = $(MCP_TEST_LDADD)

# ---- supervisor: authentication ----
AUTH_TESTS = \
	tests/unit/auth/test-auth \
	tests/unit/auth/test-auth-jwt
check_PROGRAMS += $(AUTH_TESTS)
TESTS += $(AUTH_TESTS)
AUTH_RIG = tests/unit/auth/auth_rig.c tests/unit/auth/auth_rig.h
AUTH_TEST_CPPFLAGS = $(MCP_TEST_CPPFLAGS) $(CJOSE_CFLAGS) $(CRYPTO_CFLAGS)
tests_unit_auth_test_auth_SOURCES = tests/unit/auth/test-auth.c $(AUTH_RIG)
tests_unit_auth_test_auth_CPPFLAGS = $(AUTH_TEST_CPPFLAGS)
tests_unit_auth_test_auth_LDADD = $(MCP_TEST_LDADD)
tests_unit_auth_test_auth_jwt_SOURCES = tests/unit/auth/test-auth-jwt.c \
	$(AUTH_RIG)
tests_unit_auth_test_auth_jwt_CPPFLAGS = $(AUTH_TEST_CPPFLAGS)
tests_unit_auth_test_auth_jwt_LDADD = $(MCP_TEST_LDADD)

# ---- upstream ----
UPSTREAM_TESTS = \
	tests/unit/upstream/test-events \
	tests/unit/upstream/test-outbox \
	tests/unit/upstream/test-token
check_PROGRAMS += $(UPSTREAM_TESTS)
TESTS += $(UPSTREAM_TESTS)
tests_unit_upstream_test_events_SOURCES = tests/unit/upstream/test-events.c
tests_unit_upstream_test_events_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_upstream_test_events_LDADD = libupstream.a libbase.a $(TEST_LIBS)
tests_unit_upstream_test_outbox_SOURCES = tests/unit/upstream/test-outbox.c
tests_unit_upstream_test_outbox_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(TEST_CFLAGS)
tests_unit_upstream_test_outbox_LDADD = libupstream.a libproto.a libbase.a $(EVENT_LIBS) $(MSGPACK_LIBS) $(TEST_LIBS)
tests_unit_upstream_test_token_SOURCES = tests/unit/upstream/test-token.c
tests_unit_upstream_test_token_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(TEST_CFLAGS)
tests_unit_upstream_test_token_LDADD = libupstream.a libpolicy.a libproto.a libbase.a $(JANSSON_LIBS) \
	$(TEST_LIBS)

# ---- egress ----
EGRESS_TESTS = \
	tests/unit/egress/test-answer \
	tests/unit/egress/test-connection \
	tests/unit/egress/test-head
check_PROGRAMS += $(EGRESS_TESTS)
TESTS += $(EGRESS_TESTS)
tests_unit_egress_test_answer_SOURCES = tests/unit/egress/test-answer.c
tests_unit_egress_test_answer_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(TEST_CFLAGS)
tests_unit_egress_test_answer_LDADD = libegress.a libpolicy.a libbase.a $(EVENT_LIBS) $(TEST_LIBS)
tests_unit_egress_test_connection_SOURCES = tests/unit/egress/test-connection.c \
	tests/unit/base/linger.h $(BASE_TURNS)
tests_unit_egress_test_connection_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(TEST_CFLAGS)
tests_unit_egress_test_connection_LDADD = libegress.a libpolicy.a libproto.a libbase.a $(EVENT_TLS_LIBS) $(EVENT_LIBS) \
	$(TEST_LIBS)
tests_unit_egress_test_head_SOURCES = tests/unit/egress/test-head.c
tests_unit_egress_test_head_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_egress_test_head_LDADD = libegress.a libpolicy.a libbase.a $(TEST_LIBS)

# ---- keeper ----
KEEPER_TESTS = \
	tests/unit/keeper/test-intake \
	tests/unit/keeper/test-unpack \
	tests/unit/keeper/test-volume \
	tests/unit/keeper/test-walls \
	tests/unit/keeper/test-wheel
check_PROGRAMS += $(KEEPER_TESTS)
TESTS += $(KEEPER_TESTS)
KEEPER_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
KEEPER_WHEELS = tests/unit/keeper/wheels.c tests/unit/keeper/wheels.h
tests_unit_keeper_test_intake_SOURCES = tests/unit/keeper/test-intake.c
tests_unit_keeper_test_intake_CPPFLAGS = $(KEEPER_TEST_CPPFLAGS)
tests_unit_keeper_test_intake_LDADD = $(KEEPER_LIBS) $(TEST_LIBS)
tests_unit_keeper_test_unpack_SOURCES = tests/unit/keeper/test-unpack.c $(KEEPER_WHEELS)
tests_unit_keeper_test_unpack_CPPFLAGS = $(KEEPER_TEST_CPPFLAGS)
tests_unit_keeper_test_unpack_LDADD = $(KEEPER_LIBS) $(TEST_LIBS)
tests_unit_keeper_test_volume_SOURCES = tests/unit/keeper/test-volume.c
tests_unit_keeper_test_volume_CPPFLAGS = $(KEEPER_TEST_CPPFLAGS)
tests_unit_keeper_test_volume_LDADD = $(KEEPER_LIBS) $(TEST_LIBS)
tests_unit_keeper_test_walls_SOURCES = tests/unit/keeper/test-walls.c
tests_unit_keeper_test_walls_CPPFLAGS = $(KEEPER_TEST_CPPFLAGS)
tests_unit_keeper_test_walls_LDADD = $(KEEPER_LIBS) $(TEST_LIBS)
tests_unit_keeper_test_wheel_SOURCES = tests/unit/keeper/test-wheel.c $(KEEPER_WHEELS)
tests_unit_keeper_test_wheel_CPPFLAGS = $(KEEPER_TEST_CPPFLAGS)
tests_unit_keeper_test_wheel_LDADD = $(KEEPER_LIBS) $(TEST_LIBS)
