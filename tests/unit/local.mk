# Unit tests, one program per module. Each folder's block stands by itself.

# ---- proto ----
PROTO_TESTS = \
	tests/unit/proto/test-codec \
	tests/unit/proto/test-fdpass \
	tests/unit/proto/test-frame \
	tests/unit/proto/test-own \
	tests/unit/proto/test-walk
check_PROGRAMS += $(PROTO_TESTS)
TESTS += $(PROTO_TESTS)
PROTO_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(MSGPACK_CFLAGS) $(TEST_CFLAGS)
PROTO_TEST_LDADD = libproto.a $(MSGPACK_LIBS) $(TEST_LIBS)
tests_unit_proto_test_codec_SOURCES = tests/unit/proto/test-codec.c \
	tests/unit/proto/sample.c tests/unit/proto/sample.h
tests_unit_proto_test_codec_CPPFLAGS = $(PROTO_TEST_CPPFLAGS)
tests_unit_proto_test_codec_LDADD = $(PROTO_TEST_LDADD)
tests_unit_proto_test_fdpass_SOURCES = tests/unit/proto/test-fdpass.c
tests_unit_proto_test_fdpass_CPPFLAGS = $(PROTO_TEST_CPPFLAGS)
tests_unit_proto_test_fdpass_LDADD = $(PROTO_TEST_LDADD)
tests_unit_proto_test_frame_SOURCES = tests/unit/proto/test-frame.c \
	tests/unit/proto/sample.c tests/unit/proto/sample.h
tests_unit_proto_test_frame_CPPFLAGS = $(PROTO_TEST_CPPFLAGS)
tests_unit_proto_test_frame_LDADD = $(PROTO_TEST_LDADD)
tests_unit_proto_test_own_SOURCES = tests/unit/proto/test-own.c
tests_unit_proto_test_own_CPPFLAGS = $(PROTO_TEST_CPPFLAGS)
tests_unit_proto_test_own_LDADD = $(PROTO_TEST_LDADD)
tests_unit_proto_test_walk_SOURCES = tests/unit/proto/test-walk.c
tests_unit_proto_test_walk_CPPFLAGS = $(PROTO_TEST_CPPFLAGS)
tests_unit_proto_test_walk_LDADD = $(PROTO_TEST_LDADD)

# ---- policy ----
POLICY_TESTS = \
	tests/unit/policy/test-config \
	tests/unit/policy/test-imports \
	tests/unit/policy/test-limits \
	tests/unit/policy/test-network \
	tests/unit/policy/test-packages \
	tests/unit/policy/test-pep723 \
	tests/unit/policy/test-quota \
	tests/unit/policy/test-requirement \
	tests/unit/policy/test-rules \
	tests/unit/policy/test-tokens \
	tests/unit/policy/test-why
check_PROGRAMS += $(POLICY_TESTS)
TESTS += $(POLICY_TESTS)
POLICY_TEST_LDADD = libpolicy.a $(INIH_LIBS) $(TEST_LIBS)
tests_unit_policy_test_config_SOURCES = tests/unit/policy/test-config.c
tests_unit_policy_test_config_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_config_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_imports_SOURCES = tests/unit/policy/test-imports.c
tests_unit_policy_test_imports_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_imports_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_limits_SOURCES = tests/unit/policy/test-limits.c
tests_unit_policy_test_limits_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_limits_LDADD = $(POLICY_TEST_LDADD)
tests_unit_policy_test_network_SOURCES = tests/unit/policy/test-network.c
tests_unit_policy_test_network_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_network_LDADD = libpolicy.a $(TEST_LIBS)
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
tests_unit_policy_test_tokens_SOURCES = tests/unit/policy/test-tokens.c
tests_unit_policy_test_tokens_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_tokens_LDADD = libpolicy.a $(JANSSON_LIBS) $(TEST_LIBS)
tests_unit_policy_test_why_SOURCES = tests/unit/policy/test-why.c
tests_unit_policy_test_why_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_policy_test_why_LDADD = $(POLICY_TEST_LDADD)

# ---- client ----
CLIENT_TESTS = \
	tests/unit/client/test-bridge \
	tests/unit/client/test-cell \
	tests/unit/client/test-options \
	tests/unit/client/test-question \
	tests/unit/client/test-reply \
	tests/unit/client/test-run \
	tests/unit/client/test-table \
	tests/unit/client/test-utf8
check_PROGRAMS += $(CLIENT_TESTS)
TESTS += $(CLIENT_TESTS)
CLIENT_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(TEST_CFLAGS)
CLIENT_TEST_LDADD = libclient.a libpolicy.a $(JANSSON_LIBS) $(CRYPTO_LIBS) $(EDIT_LIBS) $(TEST_LIBS)
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
tests_unit_client_test_question_SOURCES = tests/unit/client/test-question.c
tests_unit_client_test_question_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_question_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_reply_SOURCES = tests/unit/client/test-reply.c
tests_unit_client_test_reply_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_reply_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_run_SOURCES = tests/unit/client/test-run.c
tests_unit_client_test_run_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_run_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_table_SOURCES = tests/unit/client/test-table.c
tests_unit_client_test_table_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_table_LDADD = $(CLIENT_TEST_LDADD)
tests_unit_client_test_utf8_SOURCES = tests/unit/client/test-utf8.c
tests_unit_client_test_utf8_CPPFLAGS = $(CLIENT_TEST_CPPFLAGS)
tests_unit_client_test_utf8_LDADD = $(CLIENT_TEST_LDADD)

# ---- worker ----
include tests/unit/worker/local.mk

# ---- supervisor: engine ----
ENGINE_TESTS = \
	tests/unit/supervisor/test-cgroup-text \
	tests/unit/supervisor/test-engine \
	tests/unit/supervisor/test-outcome \
	tests/unit/supervisor/test-output \
	tests/unit/supervisor/test-privilege \
	tests/unit/supervisor/test-repl \
	tests/unit/supervisor/test-scheduler \
	tests/unit/supervisor/test-watchdog \
	tests/unit/supervisor/test-worker
check_PROGRAMS += $(ENGINE_TESTS)
TESTS += $(ENGINE_TESTS)
ENGINE_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(TEST_CFLAGS)
ENGINE_TEST_LDADD = $(SUPERVISOR_LIBS) $(TEST_LIBS)
tests_unit_supervisor_test_cgroup_text_SOURCES = tests/unit/supervisor/test-cgroup-text.c
tests_unit_supervisor_test_cgroup_text_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_supervisor_test_cgroup_text_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_supervisor_test_engine_SOURCES = tests/unit/supervisor/test-engine.c \
	tests/unit/supervisor/engine_rig.c tests/unit/supervisor/engine_rig.h
tests_unit_supervisor_test_engine_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_supervisor_test_engine_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_supervisor_test_repl_SOURCES = tests/unit/supervisor/test-repl.c \
	tests/unit/supervisor/engine_rig.c tests/unit/supervisor/engine_rig.h
tests_unit_supervisor_test_repl_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_supervisor_test_repl_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_supervisor_test_outcome_SOURCES = tests/unit/supervisor/test-outcome.c
tests_unit_supervisor_test_outcome_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_supervisor_test_outcome_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_supervisor_test_output_SOURCES = tests/unit/supervisor/test-output.c
tests_unit_supervisor_test_output_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_supervisor_test_output_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_supervisor_test_privilege_SOURCES = tests/unit/supervisor/test-privilege.c
tests_unit_supervisor_test_privilege_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_supervisor_test_privilege_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_supervisor_test_scheduler_SOURCES = tests/unit/supervisor/test-scheduler.c
tests_unit_supervisor_test_scheduler_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_supervisor_test_scheduler_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_supervisor_test_watchdog_SOURCES = tests/unit/supervisor/test-watchdog.c
tests_unit_supervisor_test_watchdog_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_supervisor_test_watchdog_LDADD = $(ENGINE_TEST_LDADD)
tests_unit_supervisor_test_worker_SOURCES = tests/unit/supervisor/test-worker.c
tests_unit_supervisor_test_worker_CPPFLAGS = $(ENGINE_TEST_CPPFLAGS)
tests_unit_supervisor_test_worker_LDADD = $(ENGINE_TEST_LDADD)

# ---- supervisor: mcp ----
# serve-fake is a live server over an engine without processes; the two scripts drive it.
MCP_TESTS = \
	tests/unit/supervisor/test-approvals \
	tests/unit/supervisor/test-audit \
	tests/unit/supervisor/test-environment \
	tests/unit/supervisor/test-eras \
	tests/unit/supervisor/test-jsonout \
	tests/unit/supervisor/test-jsonrpc \
	tests/unit/supervisor/test-handover \
	tests/unit/supervisor/test-handover-table \
	tests/unit/supervisor/test-log \
	tests/unit/supervisor/test-metrics \
	tests/unit/supervisor/test-mcp \
	tests/unit/supervisor/test-files \
	tests/unit/supervisor/test-media \
	tests/unit/supervisor/test-results \
	tests/unit/supervisor/test-job \
	tests/unit/supervisor/test-run-repl \
	tests/unit/supervisor/test-run-script \
	tests/unit/supervisor/test-script-input \
	tests/unit/supervisor/test-toolsets \
	tests/unit/supervisor/test-seal \
	tests/unit/supervisor/test-session \
	tests/unit/supervisor/test-set \
	tests/unit/supervisor/test-socketfile
MCP_LIVE_TESTS = \
	tests/unit/supervisor/live-corpus.sh \
	tests/unit/supervisor/live-schema.sh
check_PROGRAMS += $(MCP_TESTS) tests/unit/supervisor/serve-fake
dist_check_SCRIPTS += $(MCP_LIVE_TESTS)
TESTS += $(MCP_TESTS) $(MCP_LIVE_TESTS)
MCP_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS) $(TEST_CFLAGS)
MCP_TEST_LDADD = $(SUPERVISOR_LIBS) $(TEST_LIBS)
MCP_FAKE = tests/unit/supervisor/fake_engine.c tests/unit/supervisor/fake_engine.h \
	tests/unit/supervisor/fake_repl.c
MCP_BENCH = $(MCP_FAKE) \
	tests/unit/supervisor/bench_stream.c tests/unit/supervisor/bench_stream.h
tests_unit_supervisor_test_approvals_SOURCES = tests/unit/supervisor/test-approvals.c
tests_unit_supervisor_test_approvals_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_approvals_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_audit_SOURCES = tests/unit/supervisor/test-audit.c
tests_unit_supervisor_test_audit_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_audit_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_environment_SOURCES = \
	tests/unit/supervisor/test-environment.c $(MCP_BENCH)
tests_unit_supervisor_test_environment_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_environment_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_eras_SOURCES = tests/unit/supervisor/test-eras.c \
	tests/unit/supervisor/test_catalog.c tests/unit/supervisor/test_catalog.h $(MCP_BENCH)
tests_unit_supervisor_test_eras_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_eras_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_handover_SOURCES = tests/unit/supervisor/test-handover.c
tests_unit_supervisor_test_handover_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_handover_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_handover_table_SOURCES = \
	tests/unit/supervisor/test-handover-table.c
tests_unit_supervisor_test_handover_table_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_handover_table_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_jsonout_SOURCES = tests/unit/supervisor/test-jsonout.c
tests_unit_supervisor_test_jsonout_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_jsonout_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_jsonrpc_SOURCES = tests/unit/supervisor/test-jsonrpc.c
tests_unit_supervisor_test_jsonrpc_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_jsonrpc_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_set_SOURCES = tests/unit/supervisor/test-set.c
tests_unit_supervisor_test_set_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_set_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_metrics_SOURCES = tests/unit/supervisor/test-metrics.c
tests_unit_supervisor_test_metrics_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_metrics_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_log_SOURCES = tests/unit/supervisor/test-log.c
tests_unit_supervisor_test_log_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_log_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_mcp_SOURCES = tests/unit/supervisor/test-mcp.c $(MCP_BENCH)
tests_unit_supervisor_test_mcp_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_mcp_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_files_SOURCES = tests/unit/supervisor/test-files.c
tests_unit_supervisor_test_files_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_files_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_media_SOURCES = tests/unit/supervisor/test-media.c
tests_unit_supervisor_test_media_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_media_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_results_SOURCES = tests/unit/supervisor/test-results.c $(MCP_FAKE)
tests_unit_supervisor_test_results_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_results_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_job_SOURCES = tests/unit/supervisor/test-job.c \
	$(MCP_BENCH)
tests_unit_supervisor_test_job_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_job_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_run_repl_SOURCES = tests/unit/supervisor/test-run-repl.c \
	$(MCP_BENCH)
tests_unit_supervisor_test_run_repl_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_run_repl_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_run_script_SOURCES = tests/unit/supervisor/test-run-script.c \
	$(MCP_BENCH)
tests_unit_supervisor_test_run_script_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_run_script_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_script_input_SOURCES = tests/unit/supervisor/test-script-input.c \
	$(MCP_BENCH)
tests_unit_supervisor_test_script_input_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_script_input_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_toolsets_SOURCES = tests/unit/supervisor/test-toolsets.c \
	$(MCP_BENCH)
tests_unit_supervisor_test_toolsets_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_toolsets_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_seal_SOURCES = tests/unit/supervisor/test-seal.c
tests_unit_supervisor_test_seal_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_seal_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_session_SOURCES = tests/unit/supervisor/test-session.c $(MCP_FAKE)
tests_unit_supervisor_test_session_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_session_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_socketfile_SOURCES = tests/unit/supervisor/test-socketfile.c
tests_unit_supervisor_test_socketfile_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_socketfile_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_serve_fake_SOURCES = tests/unit/supervisor/serve-fake.c $(MCP_FAKE)
tests_unit_supervisor_serve_fake_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_serve_fake_LDADD = $(SUPERVISOR_LIBS)

# ---- supervisor: http ----
HTTP_TESTS = \
	tests/unit/supervisor/test-http-account \
	tests/unit/supervisor/test-http-head \
	tests/unit/supervisor/test-http-ladder \
	tests/unit/supervisor/test-http-replay
check_PROGRAMS += $(HTTP_TESTS)
TESTS += $(HTTP_TESTS)
tests_unit_supervisor_test_http_account_SOURCES = \
	tests/unit/supervisor/test-http-account.c $(MCP_FAKE)
tests_unit_supervisor_test_http_account_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_http_account_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_http_head_SOURCES = tests/unit/supervisor/test-http-head.c
tests_unit_supervisor_test_http_head_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_http_head_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_http_ladder_SOURCES = tests/unit/supervisor/test-http-ladder.c
tests_unit_supervisor_test_http_ladder_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_http_ladder_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_http_replay_SOURCES = tests/unit/supervisor/test-http-replay.c
tests_unit_supervisor_test_http_replay_CPPFLAGS = $(MCP_TEST_CPPFLAGS)
tests_unit_supervisor_test_http_replay_LDADD = $(MCP_TEST_LDADD)

# ---- supervisor: authentication ----
AUTH_TESTS = \
	tests/unit/supervisor/test-auth \
	tests/unit/supervisor/test-auth-jwt
check_PROGRAMS += $(AUTH_TESTS)
TESTS += $(AUTH_TESTS)
AUTH_RIG = tests/unit/supervisor/auth_rig.c tests/unit/supervisor/auth_rig.h
AUTH_TEST_CPPFLAGS = $(MCP_TEST_CPPFLAGS) $(CJOSE_CFLAGS) $(CRYPTO_CFLAGS)
tests_unit_supervisor_test_auth_SOURCES = tests/unit/supervisor/test-auth.c $(AUTH_RIG)
tests_unit_supervisor_test_auth_CPPFLAGS = $(AUTH_TEST_CPPFLAGS)
tests_unit_supervisor_test_auth_LDADD = $(MCP_TEST_LDADD)
tests_unit_supervisor_test_auth_jwt_SOURCES = tests/unit/supervisor/test-auth-jwt.c \
	$(AUTH_RIG)
tests_unit_supervisor_test_auth_jwt_CPPFLAGS = $(AUTH_TEST_CPPFLAGS)
tests_unit_supervisor_test_auth_jwt_LDADD = $(MCP_TEST_LDADD)

# ---- egress ----
EGRESS_TESTS = \
	tests/unit/egress/test-connection \
	tests/unit/egress/test-head
check_PROGRAMS += $(EGRESS_TESTS)
TESTS += $(EGRESS_TESTS)
tests_unit_egress_test_connection_SOURCES = tests/unit/egress/test-connection.c
tests_unit_egress_test_connection_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(TEST_CFLAGS)
tests_unit_egress_test_connection_LDADD = libegress.a libpolicy.a libproto.a $(EVENT_LIBS) \
	$(TEST_LIBS)
tests_unit_egress_test_head_SOURCES = tests/unit/egress/test-head.c
tests_unit_egress_test_head_CPPFLAGS = $(AM_CPPFLAGS) $(TEST_CFLAGS)
tests_unit_egress_test_head_LDADD = libegress.a libpolicy.a $(TEST_LIBS)
