# SPDX-License-Identifier: Apache-2.0
# Builds mcp-python-worker for one CPython, without configure, in the current folder:
#
#     make -f SOURCES/worker/standalone.mk PYTHON=/opt/python3.13/bin/python3.13
#
# `mcp-python interpreter add` uses it, with the sources that are installed.
# ROOT=yes: for a Python in a root of its own; then it is built in there, and linked so that it starts
# with the host's libraries or none.
# HEADERS=DIR PYTHON="chroot DIR /usr/bin/python3.13": for the Python of another system, here, with the
# headers of that system's Python in DIR. The worker then runs every Python of this version. Needs a C compiler, pkg-config, Python's headers, and those of
# msgpack, libseccomp and libmd.
.DELETE_ON_ERROR:
SOURCES := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
VERSION ?= $(shell cat $(SOURCES)/version)
ABOUT := $(shell $(PYTHON) -I - <$(SOURCES)/worker/about.py)
ifneq ($(words $(ABOUT)),4)
$(error PYTHON=$(PYTHON): no worker can be built for it)
endif
PROGRAM := $(word 4,$(ABOUT))
ifneq ($(shell $(PYTHON) -I -c 'import ctypes; ctypes.CDLL(None).Py_InitializeFromConfig; print("yes")'),yes)
$(error $(PYTHON) does not export the C API, or has no ctypes)
endif
PACKAGES := $(shell pkg-config --exists msgpack-c && echo msgpack-c || echo msgpack) libseccomp libmd
ifneq ($(shell pkg-config --exists $(PACKAGES) && echo yes),yes)
$(error the headers of $(PACKAGES) are missing (Debian: libmsgpack-dev libseccomp-dev libmd-dev))
endif

FROZEN := $(patsubst %.py,worker/%.h,import_check.py $(filter-out about.py freeze.py sixel.py,$(notdir $(wildcard $(SOURCES)/worker/*.py))))
MAIN := main preloaded
WORKER := $(filter-out $(MAIN),$(basename $(notdir $(wildcard $(SOURCES)/worker/*.c))))
# control.c is for programs with a loop of libevent's.
PROTO := $(filter-out control,$(basename $(notdir $(wildcard $(SOURCES)/proto/*.c))))
BASE := base/log.o base/quote.o base/stall.o base/trace.o base/utf8.o base/xalloc.o
LIBRARY := $(WORKER:%=worker/%.o) $(PROTO:%=proto/%.o) $(BASE)
# As configure has them.
CFLAGS := -std=gnu17 -O2 -g -fPIC -fstack-protector-strong -fstack-clash-protection \
	-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -ffile-prefix-map=$(SOURCES)/= -ffile-prefix-map=$(CURDIR)=.
CPPFLAGS := -D_GNU_SOURCE -I$(SOURCES) -I. -isystem $(HEADERS)$(word 3,$(ABOUT)) $(if $(HEADERS),-idirafter $(HEADERS)/usr/include) $(shell pkg-config --cflags $(PACKAGES)) \
	-DPACKAGE_VERSION='"$(VERSION)"' -DPYTHON_VERSION='"$(word 2,$(ABOUT))"' \
	-DPYTHON_PROGRAM='"$(PROGRAM)"' -DWITH_PYTHON_PROGRAM -DWORKER_LIBRARY='"preloaded.so"'
LDFLAGS := -Wl,-z,relro,-z,now,-z,noexecstack
# In another Python's process libraries would be looked for in that Python's places.
MSGPACK := $(patsubst -lmsgpack%,-l:libmsgpack%.a,$(shell pkg-config --libs $(firstword $(PACKAGES))))

mcp-python-worker: worker/main.o worker/hello.o worker/python.o worker/root.o $(filter proto/%,$(LIBRARY)) $(BASE)
	$(CC) $(LDFLAGS) $(if $(ROOT),-static,-pie) -o $@ $^ $(MSGPACK)
worker/main.o: preloaded.so
preloaded.so: worker/preloaded.o $(LIBRARY)
	$(CC) $(LDFLAGS) -shared -Wl,-S -Wl,--version-script,$(SOURCES)/worker/preloaded.map -o $@ $^ \
		$(patsubst -lseccomp,-l:libseccomp.a,$(shell pkg-config --libs libseccomp)) -l:libmd.a $(MSGPACK)
COMPILE = @mkdir -p $(@D); $(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
base/%.o: $(SOURCES)/base/%.c
	$(COMPILE)
proto/%.o: $(SOURCES)/proto/%.c
	$(COMPILE)
worker/%.o: $(SOURCES)/worker/%.c $(FROZEN)
	$(COMPILE)

worker/import_check.h: $(SOURCES)/policy/import_check.py
worker/%.h:
	@mkdir -p worker; $(PYTHON) -I -c "$$(cat $(SOURCES)/worker/freeze.py)" $(@:worker/%.h=%) \
		<$(or $<,$(SOURCES)/$(@:.h=.py)) >$@
