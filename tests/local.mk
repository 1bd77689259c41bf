# make check: unit tests, fuzz corpora replayed, and the rules of the tree.
# Integration and system tests need a running service: tests/integration/run, tests/system/run.
TEST_CFLAGS = $(CMOCKA_CFLAGS)
TEST_LIBS = $(CMOCKA_LIBS)
AM_TESTS_ENVIRONMENT = PYTHON3=$(PYTHON3); export PYTHON3;

dist_check_SCRIPTS += tests/check-layers.sh
TESTS += tests/check-layers.sh
EXTRA_DIST += tests/check-all tests/conformance tests/corpus tests/integration tests/schema \
	tests/system

include tests/fixtures/local.mk

if HAVE_CMOCKA
include tests/unit/local.mk
include tests/fuzz/local.mk
endif

check-headers:
	@for h in $(srcdir)/*/*.h $(srcdir)/*/*/*.h; do \
		$(CC) -include config.h -I. -I$(srcdir) $(AM_CFLAGS) $(EVENT_CFLAGS) $(MSGPACK_CFLAGS) \
			$(JANSSON_CFLAGS) $(PYTHON_CFLAGS) $(SYSTEMD_CFLAGS) -fsyntax-only -x c "$$h" || exit 1; done
.PHONY: check-headers
