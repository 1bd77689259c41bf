# SPDX-License-Identifier: Apache-2.0
# auth: whose an HTTP request is, by tokens.
noinst_LIBRARIES += libauth.a
libauth_a_SOURCES = \
	auth/auth.c auth/auth.h \
	auth/file.c auth/file.h \
	auth/jwks.c auth/jwks.h \
	auth/jwt.c auth/jwt.h \
	auth/tokens.c auth/tokens.h
libauth_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)
