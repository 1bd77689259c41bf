# SPDX-License-Identifier: Apache-2.0
# policy: decisions only; no sockets, no events, no clock or privilege of its own.
noinst_LIBRARIES += libpolicy.a
libpolicy_a_SOURCES = \
	policy/advisory.c policy/advisory.h \
	policy/chain.c policy/chain.h \
	policy/config_read.c policy/config.h policy/config_parts.h \
	policy/config_check.c policy/config_print.c policy/config_take.c \
	policy/id_range.c policy/id_range.h \
	policy/imports.c policy/imports.h \
	policy/key_value.c \
	policy/learnable.c policy/learnable.h \
	policy/keys.c policy/keys.h policy/keys.def \
	policy/limits.c policy/limits.h \
	policy/look_alike.c \
	policy/marker.c \
	policy/network.c policy/network.h \
	policy/packages.c policy/packages.h \
	policy/people.c policy/people.h \
	policy/pep723.c policy/pep723.h \
	policy/quota.c policy/quota.h \
	policy/requirement.c policy/requirement.h \
	policy/rules.c policy/rules.h \
	policy/tenants.c \
	policy/shape.c policy/shape.h \
	policy/shown.c policy/shown.h \
	policy/sandbox_environment.c policy/sandbox_environment.h \
	policy/tokens.c policy/tokens.h \
	policy/tools.c policy/tools.h \
	policy/version.c policy/version.h \
	policy/words.c policy/words.h
libpolicy_a_CPPFLAGS = $(AM_CPPFLAGS) $(INIH_CFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS)
