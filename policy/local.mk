# policy: decisions only; no sockets, no events, no clock or privilege of its own.
noinst_LIBRARIES += libpolicy.a
libpolicy_a_SOURCES = \
	policy/config.c policy/config.h \
	policy/keys.c policy/keys.h \
	policy/limits.c policy/limits.h \
	policy/marker.c policy/marker.h \
	policy/network.c policy/network.h \
	policy/pep723.c policy/pep723.h \
	policy/requirement.c policy/requirement.h \
	policy/tokens.c policy/tokens.h \
	policy/version.c policy/version.h \
	policy/why.c policy/why.h
libpolicy_a_CPPFLAGS = $(AM_CPPFLAGS) $(INIH_CFLAGS) $(JANSSON_CFLAGS)
