# SPDX-License-Identifier: Apache-2.0
# make check: unit tests, fuzz corpora replayed, and the rules of the tree.
# Integration and system tests need a running service: tests/integration/run, tests/system/run.
TEST_CFLAGS = $(CMOCKA_CFLAGS)
TEST_LIBS = $(CMOCKA_LIBS)
AM_TESTS_ENVIRONMENT = PYTHON3=$(PYTHON3); export PYTHON3;
LOG_COMPILER = $(srcdir)/tests/twice
# Most of them run for less time than an optimiser takes. What they test is built as it is installed.
tests/unit/%.$(OBJEXT) tests/fuzz/%.$(OBJEXT): CFLAGS += -O0 -U_FORTIFY_SOURCE

# The rules of the tree: each with a test that it can fail, where it has conditions of its own.
TREE_RULES = \
	tests/check-all-fails.sh \
	tests/check-commits tests/check-commits-fails.sh \
	tests/check-corpus tests/check-corpus-fails.sh \
	tests/check-format tests/check-format-fails.sh \
	tests/check-layers tests/check-layers-fails.sh \
	tests/check-finite tests/check-finite-fails.sh \
	tests/check-docker-seccomp tests/check-docker-seccomp-fails.sh \
	tests/check-manifests \
	tests/check-license \
	tests/check-links tests/check-links-fails.sh \
	tests/check-map tests/check-map-fails.sh \
	tests/check-schemas tests/check-schemas-fails.sh \
	tests/check-size tests/check-size-fails.sh \
	tests/check-threats
dist_check_SCRIPTS += tests/twice $(TREE_RULES) tests/check-faults-fails.sh tests/check-paths.sh tests/check-standalone.sh
TESTS += $(TREE_RULES) tests/check-faults-fails.sh tests/check-paths.sh tests/check-standalone.sh
EXTRA_DIST += tests/README.md tests/check-wrappers tests/chaos tests/coverage tests/check-all tests/check-arm64 tests/check-bundle tests/check-containers tests/check-podman tests/check-pythons tests/check-release tests/check-releases \
	tests/conformance tests/corpus tests/faults tests/hooks tests/in-root.sh tests/integration tests/schema \
	tests/system \
	tests/tree.py

rules: all
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS="$(TREE_RULES)"
.PHONY: rules

include tests/fixtures/local.mk

if HAVE_CMOCKA
include tests/unit/local.mk
include tests/fuzz/local.mk
endif

# Every header, at any depth: it stands by itself, and a _SOURCES names it, or the tarball would
# lack it. One that its own .c includes first was shown to stand by itself when that was compiled.
check-headers:
	@(cd $(srcdir) && find * -type d -exec test -e '{}/config.status' \; -prune -o \
		-name 'build*' -prune -o -name '*.h' -print) | sort >headers.found
	@printf '%s\n' $(DISTFILES) | sort -u | comm -13 - headers.found | \
		sed 's/$$/: a header that no _SOURCES names/' | ( ! grep . )
	@(cd $(srcdir) && sed 's/h$$/c/' | xargs grep -sHm1 '^#include') <headers.found | \
		sed -n 's/^\(.*\)\.c:#include "\1\.h"$$/\1.h/p' | comm -13 - headers.found | \
		sed 's|^|$(srcdir)/|' | xargs -n 16 -P $$(nproc) $(CC) -include config.h \
		-I. -I$(srcdir) $(AM_CFLAGS) $(EVENT_CFLAGS) $(MSGPACK_CFLAGS) $(JANSSON_CFLAGS) \
		$(PYTHON_CFLAGS) $(SYSTEMD_CFLAGS) $(CJOSE_CFLAGS) $(CMOCKA_CFLAGS) -fsyntax-only -x c
.PHONY: check-headers
CLEANFILES += headers.found
