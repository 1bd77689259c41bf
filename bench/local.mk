# SPDX-License-Identifier: Apache-2.0
# The physical limit and a load client; bench/run drives both. Not installed, not built by default.
EXTRA_PROGRAMS = bench/limit bench/load
bench_limit_SOURCES = bench/limit.c
bench_limit_CPPFLAGS = $(AM_CPPFLAGS) $(PYTHON_CFLAGS)
bench_limit_LDADD = $(PYTHON_LIBS)
bench_load_SOURCES = bench/load.c
bench_load_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
bench_load_LDADD = $(JANSSON_LIBS)
EXTRA_DIST += bench/doors bench/first-answer bench/hello bench/imports bench/interpreters bench/native bench/packages bench/programs bench/repl bench/run bench/profiles bench/session.py bench/sessions bench/tools bench/transports bench/where bench/reference.mjs bench/RESULTS.md

bench: bench/limit bench/load
.PHONY: bench
