# SPDX-License-Identifier: Apache-2.0
# image: the program that unpacks images and archives of Pythons; libarchive, jansson, libcrypto, base.
noinst_LIBRARIES += libimage.a
libexec_PROGRAMS += mcp-python-unpack

libimage_a_SOURCES = \
	image/blobs.c image/blobs.h \
	image/image.c image/image.h \
	image/layer.c image/layer.h \
	image/place.c image/place.h \
	image/spool.c image/spool.h
libimage_a_CPPFLAGS = $(AM_CPPFLAGS) $(ARCHIVE_CFLAGS) $(CRYPTO_CFLAGS) $(JANSSON_CFLAGS)
IMAGE_LIBS = libimage.a libbase.a $(ARCHIVE_LIBS) $(CRYPTO_LIBS) $(JANSSON_LIBS)
mcp_python_unpack_SOURCES = image/main.c
mcp_python_unpack_LDADD = $(IMAGE_LIBS)
