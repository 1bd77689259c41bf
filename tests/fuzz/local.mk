# Fuzz targets. make check replays their corpora (tests/fuzz/corpus/NAME); configured with
# --enable-fuzzing they are linked with the fuzzing engine, and make fuzz-short runs each
# for FUZZ_SECONDS, FUZZ_JOBS of them at a time. A target tests/fuzz/fuzz-NAME adds itself to
# FUZZ_TARGETS and has $(FUZZ_MAIN) among its sources and $(FUZZ_ENGINE) behind its libraries.
FUZZ_TARGETS = \
	tests/fuzz/fuzz-codec \
	tests/fuzz/fuzz-config \
	tests/fuzz/fuzz-frame
FUZZ_SECONDS = 30
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
tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz-frame.c $(FUZZ_MAIN)
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
		$$target -max_total_time=$(FUZZ_SECONDS) -malloc_limit_mb=64 -rss_limit_mb=1024 \
			-print_final_stats=1 -artifact_prefix=crash-$$name- \
			tests/fuzz/found/$$name $(srcdir)/tests/fuzz/corpus/$$name'

# ---- supervisor: jsonrpc ----
FUZZ_TARGETS += tests/fuzz/fuzz-jsonrpc
tests_fuzz_fuzz_jsonrpc_SOURCES = tests/fuzz/fuzz-jsonrpc.c $(FUZZ_MAIN)
tests_fuzz_fuzz_jsonrpc_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_jsonrpc_LDADD = libmcp.a libbase.a $(JANSSON_LIBS) $(FUZZ_ENGINE)

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
FUZZ_TARGETS += tests/fuzz/fuzz-egress
tests_fuzz_fuzz_egress_SOURCES = tests/fuzz/fuzz-egress.c $(FUZZ_MAIN)
tests_fuzz_fuzz_egress_LDADD = libegress.a libpolicy.a libbase.a $(FUZZ_ENGINE)

# ---- keeper ----
FUZZ_TARGETS += tests/fuzz/fuzz-wheel
tests_fuzz_fuzz_wheel_SOURCES = tests/fuzz/fuzz-wheel.c $(FUZZ_MAIN)
tests_fuzz_fuzz_wheel_LDADD = $(KEEPER_LIBS) $(FUZZ_ENGINE)
