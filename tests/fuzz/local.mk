# SPDX-License-Identifier: Apache-2.0
# Fuzz targets. make check replays their corpora (tests/fuzz/corpus/NAME); configured with
# --enable-fuzzing they are linked with the fuzzing engine, and make fuzz-short runs each
# for FUZZ_SECONDS, FUZZ_JOBS of them at a time. A target tests/fuzz/fuzz-NAME adds itself to
# FUZZ_TARGETS and has $(FUZZ_MAIN) among its sources and $(FUZZ_ENGINE) behind its libraries.
FUZZ_TARGETS = \
	tests/fuzz/fuzz-codec \
	tests/fuzz/fuzz-config \
	tests/fuzz/fuzz-frame
FUZZ_SECONDS = 30
# -runs=0: until the corpus has been replayed.
FUZZ_UNTIL = -max_total_time=$(FUZZ_SECONDS)
FUZZ_JOBS = 1
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/replay.c

if FUZZING
FUZZ_MAIN = tests/fuzz/fuzz.h
FUZZ_ENGINE = $(LIB_FUZZING_ENGINE)
else
FUZZ_MAIN = tests/fuzz/fuzz.h tests/fuzz/replay.c
FUZZ_ENGINE =
TESTS += $(FUZZ_TARGETS)
endif
check_PROGRAMS += $(FUZZ_TARGETS)

tests_fuzz_fuzz_codec_SOURCES = tests/fuzz/fuzz-codec.c $(FUZZ_MAIN)
tests_fuzz_fuzz_codec_CPPFLAGS = $(AM_CPPFLAGS) $(MSGPACK_CFLAGS)
tests_fuzz_fuzz_codec_LDADD = libproto.a libbase.a $(MSGPACK_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz-frame.c tests/fuzz/frames.h $(FUZZ_MAIN)
tests_fuzz_fuzz_frame_CPPFLAGS = $(AM_CPPFLAGS) $(MSGPACK_CFLAGS)
tests_fuzz_fuzz_frame_LDADD = libproto.a libbase.a $(MSGPACK_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz-config.c $(FUZZ_MAIN)
tests_fuzz_fuzz_config_LDADD = libpolicy.a libbase.a $(INIH_LIBS) $(FUZZ_ENGINE)

fuzz-targets: $(FUZZ_TARGETS)

# What is found new goes to the build tree; an input that fails is left in crash-NAME-*.
fuzz-short: $(FUZZ_TARGETS)
	@printf '%s\n' $(FUZZ_TARGETS) | xargs -P $(FUZZ_JOBS) -I '{}' $(SHELL) -c ' \
		target={}; name=$${target#tests/fuzz/fuzz-}; \
		mkdir -p tests/fuzz/found/$$name && \
		case $$name in image) most=2048;; *) most=64;; esac; \
		$$target $(FUZZ_UNTIL) -malloc_limit_mb=$$most -rss_limit_mb=1024 \
			-print_final_stats=1 -artifact_prefix=crash-$$name- \
			tests/fuzz/found/$$name $(srcdir)/tests/fuzz/corpus/$$name'

# ---- supervisor: jsonrpc ----
FUZZ_TARGETS += tests/fuzz/fuzz-jsonrpc
tests_fuzz_fuzz_jsonrpc_SOURCES = tests/fuzz/fuzz-jsonrpc.c $(FUZZ_MAIN)
tests_fuzz_fuzz_jsonrpc_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_jsonrpc_LDADD = libmcp.a libbase.a $(JANSSON_LIBS) $(CRYPTO_LIBS) $(FUZZ_ENGINE)

# ---- supervisor: http ----
FUZZ_TARGETS += tests/fuzz/fuzz-http
tests_fuzz_fuzz_http_SOURCES = tests/fuzz/fuzz-http.c $(FUZZ_MAIN)
tests_fuzz_fuzz_http_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_http_LDADD = $(SUPERVISOR_LIBS) $(FUZZ_ENGINE)

# ---- supervisor: authentication ----
FUZZ_TARGETS += tests/fuzz/fuzz-auth
tests_fuzz_fuzz_auth_SOURCES = tests/fuzz/fuzz-auth.c $(FUZZ_MAIN)
tests_fuzz_fuzz_auth_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(CJOSE_CFLAGS)
tests_fuzz_fuzz_auth_LDADD = $(SUPERVISOR_LIBS) $(FUZZ_ENGINE)

# ---- policy: requirements ----
FUZZ_TARGETS += tests/fuzz/fuzz-requirement
tests_fuzz_fuzz_requirement_SOURCES = tests/fuzz/fuzz-requirement.c $(FUZZ_MAIN)
tests_fuzz_fuzz_requirement_LDADD = libpolicy.a libbase.a $(FUZZ_ENGINE)

# ---- egress ----
FUZZ_TARGETS += tests/fuzz/fuzz-answer tests/fuzz/fuzz-egress
tests_fuzz_fuzz_answer_SOURCES = tests/fuzz/fuzz-answer.c $(FUZZ_MAIN)
tests_fuzz_fuzz_answer_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS)
tests_fuzz_fuzz_answer_LDADD = libegress.a libpolicy.a libbase.a $(EVENT_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_egress_SOURCES = tests/fuzz/fuzz-egress.c $(FUZZ_MAIN)
tests_fuzz_fuzz_egress_LDADD = libegress.a libpolicy.a libbase.a $(FUZZ_ENGINE)

# ---- keeper ----
FUZZ_TARGETS += tests/fuzz/fuzz-wheel
tests_fuzz_fuzz_wheel_SOURCES = tests/fuzz/fuzz-wheel.c $(FUZZ_MAIN)
tests_fuzz_fuzz_wheel_LDADD = $(KEEPER_LIBS) $(FUZZ_ENGINE)

# ---- supervisor: what clients and workers send beside that ----
FUZZ_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS) $(MSGPACK_CFLAGS)
FUZZ_LDADD = $(SUPERVISOR_LIBS) $(FUZZ_ENGINE)
FUZZ_TARGETS += \
	tests/fuzz/fuzz-files \
	tests/fuzz/fuzz-handover \
	tests/fuzz/fuzz-media \
	tests/fuzz/fuzz-operator \
	tests/fuzz/fuzz-output \
	tests/fuzz/fuzz-replay \
	tests/fuzz/fuzz-seal \
	tests/fuzz/fuzz-set \
	tests/fuzz/fuzz-text
tests_fuzz_fuzz_files_SOURCES = tests/fuzz/fuzz-files.c $(FUZZ_MAIN)
tests_fuzz_fuzz_files_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_files_LDADD = libkeeper.a $(FUZZ_LDADD)
tests_fuzz_fuzz_handover_SOURCES = tests/fuzz/fuzz-handover.c tests/fuzz/frames.h $(FUZZ_MAIN)
tests_fuzz_fuzz_handover_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_handover_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_media_SOURCES = tests/fuzz/fuzz-media.c $(FUZZ_MAIN)
tests_fuzz_fuzz_media_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_media_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_operator_SOURCES = tests/fuzz/fuzz-operator.c $(FUZZ_MAIN)
tests_fuzz_fuzz_operator_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_operator_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_output_SOURCES = tests/fuzz/fuzz-output.c $(FUZZ_MAIN)
tests_fuzz_fuzz_output_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_output_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_replay_SOURCES = tests/fuzz/fuzz-replay.c $(FUZZ_MAIN)
tests_fuzz_fuzz_replay_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_replay_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_seal_SOURCES = tests/fuzz/fuzz-seal.c $(FUZZ_MAIN)
tests_fuzz_fuzz_seal_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_seal_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_set_SOURCES = tests/fuzz/fuzz-set.c $(FUZZ_MAIN)
tests_fuzz_fuzz_set_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_set_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_text_SOURCES = tests/fuzz/fuzz-text.c $(FUZZ_MAIN)
tests_fuzz_fuzz_text_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_text_LDADD = $(FUZZ_LDADD)

# ---- on the fake engine of the unit tests ----
FUZZ_TARGETS += \
	tests/fuzz/fuzz-inside \
	tests/fuzz/fuzz-lines \
	tests/fuzz/fuzz-param \
	tests/fuzz/fuzz-results
tests_fuzz_fuzz_lines_SOURCES = tests/fuzz/fuzz-lines.c $(MCP_FAKE) $(FUZZ_MAIN)
tests_fuzz_fuzz_lines_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_lines_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_param_SOURCES = tests/fuzz/fuzz-param.c $(MCP_FAKE) $(FUZZ_MAIN)
tests_fuzz_fuzz_param_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_param_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_results_SOURCES = tests/fuzz/fuzz-results.c tests/fuzz/frames.h $(MCP_FAKE) \
	$(FUZZ_MAIN)
tests_fuzz_fuzz_results_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_results_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_inside_SOURCES = tests/fuzz/fuzz-inside.c $(MCP_BENCH) $(FUZZ_MAIN)
tests_fuzz_fuzz_inside_CPPFLAGS = $(FUZZ_CPPFLAGS) $(TEST_CFLAGS)
tests_fuzz_fuzz_inside_LDADD = $(FUZZ_LDADD) $(TEST_LIBS)

# ---- keeper: files of wheels ----
FUZZ_TARGETS += tests/fuzz/fuzz-intake
tests_fuzz_fuzz_intake_SOURCES = tests/fuzz/fuzz-intake.c $(FUZZ_MAIN)
tests_fuzz_fuzz_intake_LDADD = $(KEEPER_LIBS) $(FUZZ_ENGINE)

# ---- the supervisor's helpers ----
FUZZ_TARGETS += \
	tests/fuzz/fuzz-directory \
	tests/fuzz/fuzz-keeper \
	tests/fuzz/fuzz-launch \
	tests/fuzz/fuzz-launcher
tests_fuzz_fuzz_directory_SOURCES = tests/fuzz/fuzz-directory.c tests/fuzz/frames.h tests/fuzz/helper.h $(FUZZ_MAIN)
tests_fuzz_fuzz_directory_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_directory_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_launch_SOURCES = tests/fuzz/fuzz-launch.c tests/fuzz/frames.h $(FUZZ_MAIN)
tests_fuzz_fuzz_launch_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_launch_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_launcher_SOURCES = tests/fuzz/fuzz-launcher.c tests/fuzz/frames.h tests/fuzz/helper.h $(FUZZ_MAIN)
tests_fuzz_fuzz_launcher_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_launcher_LDADD = $(FUZZ_LDADD)
tests_fuzz_fuzz_keeper_SOURCES = tests/fuzz/fuzz-keeper.c tests/fuzz/frames.h $(FUZZ_MAIN)
tests_fuzz_fuzz_keeper_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_keeper_LDADD = $(FUZZ_LDADD)

# ---- other MCP servers ----
FUZZ_TARGETS += tests/fuzz/fuzz-events tests/fuzz/fuzz-shape tests/fuzz/fuzz-token
tests_fuzz_fuzz_events_SOURCES = tests/fuzz/fuzz-events.c $(FUZZ_MAIN)
tests_fuzz_fuzz_events_LDADD = libupstream.a libbase.a $(FUZZ_ENGINE)
tests_fuzz_fuzz_shape_SOURCES = tests/fuzz/fuzz-shape.c $(FUZZ_MAIN)
tests_fuzz_fuzz_shape_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_shape_LDADD = libmcp.a libpolicy.a libproto.a libbase.a $(JANSSON_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_token_SOURCES = tests/fuzz/fuzz-token.c $(FUZZ_MAIN)
tests_fuzz_fuzz_token_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_token_LDADD = libupstream.a libpolicy.a libbase.a $(JANSSON_LIBS) $(FUZZ_ENGINE)

# ---- images of containers; what is compressed says how much memory is asked for ----
FUZZ_TARGETS += tests/fuzz/fuzz-image
tests_fuzz_fuzz_image_SOURCES = tests/fuzz/fuzz-image.c $(FUZZ_MAIN)
tests_fuzz_fuzz_image_CPPFLAGS = $(AM_CPPFLAGS) $(ARCHIVE_CFLAGS) $(CRYPTO_CFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_image_LDADD = $(IMAGE_LIBS) $(FUZZ_ENGINE)
