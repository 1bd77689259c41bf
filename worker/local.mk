# SPDX-License-Identifier: Apache-2.0
# worker: the program that runs scripts; libseccomp, Python, the SHA-256 of libmd and proto, nothing else.
# A header that could not be written whole is not there for the next call.
.DELETE_ON_ERROR:
noinst_LIBRARIES += libworker.a
libexec_PROGRAMS += mcp-python-worker

libworker_a_SOURCES = \
	worker/ask.c worker/ask.h \
	worker/cell.c worker/cell.h \
	worker/display.c worker/display.h \
	worker/prompt.c worker/prompt.h \
	worker/descriptors.c worker/descriptors.h \
	worker/execution.c worker/execution.h \
	worker/heap.c worker/heap.h worker/hugepage.h \
	worker/hello.c worker/hello.h \
	worker/hooks.c worker/hooks.h \
	worker/interfaces.c \
	worker/interpreter.c worker/interpreter.h \
	worker/jail.c worker/jail.h \
	worker/landlock.c worker/landlock.h \
	worker/libraries.c worker/libraries.h \
	worker/listener.c worker/listener.h \
	worker/modes.c \
	worker/modules.c worker/modules.h \
	worker/mounts.c worker/mounts.h \
	worker/networks.c worker/networks.h \
	worker/parallel.c worker/parallel.h \
	worker/snapshot.c worker/snapshot.h worker/line.h \
	worker/priority.c \
	worker/processes.c worker/processes.h \
	worker/procfs.c worker/procfs.h \
	worker/program.c worker/program.h \
	worker/python.c worker/python.h \
	worker/reaper.c worker/reaper.h \
	worker/root.c worker/root.h \
	worker/seccomp.c worker/seccomp.h \
	worker/session.c worker/session.h \
	worker/sharedmap.c worker/sharedmap.h \
	worker/slots.c worker/slots.h \
	worker/spare.c worker/spare.h \
	worker/states.c worker/states.h \
	worker/sync.c \
	worker/title.c worker/title.h \
	worker/tools.c worker/tools.h \
	worker/trees.c worker/trees.h \
	worker/turns.c worker/turns.h \
	worker/twister.c worker/twister.h \
	worker/warm.c worker/warm.h \
	worker/where.c worker/where.h \
	worker/workspace.c worker/workspace.h \
	worker/zygote.c worker/zygote.h
mcp_python_worker_SOURCES = worker/main.c
# The warnings do not apply to Python's headers.
libworker_a_CPPFLAGS = $(AM_CPPFLAGS) $(PYTHON_CFLAGS:-I%=-isystem%) $(SECCOMP_CFLAGS) \
	$(MD_CFLAGS) -DPYTHON_PROGRAM='"$(PYTHON3)"'
libworker_a_CFLAGS = $(AM_CFLAGS) $(PIC_CFLAGS)
# The archive of libmd, not the shared library: names of a program's own libraries come before those of
# extension modules, and many of these bring their own MD5Init or SHA1Init, with other structures.
WORKER_MD = $(MD_LIBS:-lmd=-l:libmd.a)
WORKER_LIBS = libproto.a libbase.a $(SECCOMP_LIBS) $(WORKER_MD) $(MSGPACK_LIBS)
# All of it: the worker's own versions of functions of the C library are called by others alone.
WHOLE_WORKER = -Wl,--whole-archive,libworker.a,--no-whole-archive
WHOLE_DEBUG_WORKER = -Wl,--whole-archive,libworker-debug.a,--no-whole-archive

# The debug build of the interpreter has a program of its own: [profile] interpreter = debug. What
# is frozen in is good for both.
if DEBUG_PYTHON
noinst_LIBRARIES += libworker-debug.a
libexec_PROGRAMS += mcp-python-worker-debug
libworker_debug_a_SOURCES = $(libworker_a_SOURCES)
libworker_debug_a_CPPFLAGS = $(AM_CPPFLAGS) $(DEBUG_PYTHON_CFLAGS:-I%=-isystem%) \
	$(SECCOMP_CFLAGS) $(MD_CFLAGS) -DPYTHON_PROGRAM='"$(DEBUG_PYTHON3)"'
libworker_debug_a_CFLAGS = $(AM_CFLAGS) $(PIC_CFLAGS)
mcp_python_worker_debug_SOURCES = worker/main.c
worker/libworker_debug_a-interpreter.$(OBJEXT): $(FROZEN_CODE)
endif

# The program runs python3, with the worker as a library that is loaded before all others
# (worker/program.h). The library is in the program.
if PYTHON_PROGRAM
# In another Python's process these libraries would be looked for in that Python's places: the worker
# brings what it needs, but for the C library.
WORKER_OWN_LIBS = libproto.a libbase.a $(SECCOMP_LIBS:-lseccomp=-l:libseccomp.a) $(WORKER_MD) \
	$(MSGPACK_LIBS:-lmsgpackc=-l:libmsgpackc.a)
WORKER_SHARED = $(AM_LDFLAGS:-pie=) -shared -Wl,-S -Wl,--version-script,$(srcdir)/worker/preloaded.map
noinst_PROGRAMS += worker/preloaded.so
worker_preloaded_so_SOURCES = worker/preloaded.c
worker_preloaded_so_CFLAGS = $(AM_CFLAGS) $(PIC_CFLAGS)
worker_preloaded_so_LDFLAGS = $(WORKER_SHARED) $(WHOLE_WORKER)
worker_preloaded_so_LDADD = $(WORKER_OWN_LIBS)
worker_preloaded_so_DEPENDENCIES = libworker.a libproto.a libbase.a worker/preloaded.map
mcp_python_worker_CPPFLAGS = $(AM_CPPFLAGS) -DWORKER_LIBRARY='"worker/preloaded.so"' \
	-DPYTHON_PROGRAM='"$(PYTHON3)"'
mcp_python_worker_LDADD = libworker.a libproto.a libbase.a $(MSGPACK_LIBS:-lmsgpackc=-l:libmsgpackc.a)
worker/mcp_python_worker-main.$(OBJEXT): worker/preloaded.so
if DEBUG_PYTHON
noinst_PROGRAMS += worker/preloaded-debug.so
worker_preloaded_debug_so_SOURCES = worker/preloaded.c
worker_preloaded_debug_so_CFLAGS = $(AM_CFLAGS) $(PIC_CFLAGS)
worker_preloaded_debug_so_LDFLAGS = $(WORKER_SHARED) $(WHOLE_DEBUG_WORKER)
worker_preloaded_debug_so_LDADD = $(WORKER_OWN_LIBS)
worker_preloaded_debug_so_DEPENDENCIES = libworker-debug.a libproto.a libbase.a worker/preloaded.map
mcp_python_worker_debug_CPPFLAGS = $(AM_CPPFLAGS) -DWORKER_LIBRARY='"worker/preloaded-debug.so"' \
	-DPYTHON_PROGRAM='"$(DEBUG_PYTHON3)"'
mcp_python_worker_debug_LDADD = libworker-debug.a libproto.a libbase.a $(MSGPACK_LIBS:-lmsgpackc=-l:libmsgpackc.a)
worker/mcp_python_worker_debug-main.$(OBJEXT): worker/preloaded-debug.so
endif
else
mcp_python_worker_CPPFLAGS = $(AM_CPPFLAGS) -DPYTHON_PROGRAM='"$(PYTHON3)"'
mcp_python_worker_LDFLAGS = $(AM_LDFLAGS) $(WHOLE_WORKER)
mcp_python_worker_LDADD = $(WORKER_LIBS) $(PYTHON_LIBS)
mcp_python_worker_DEPENDENCIES = libworker.a libproto.a libbase.a
if DEBUG_PYTHON
mcp_python_worker_debug_CPPFLAGS = $(AM_CPPFLAGS) -DPYTHON_PROGRAM='"$(DEBUG_PYTHON3)"'
mcp_python_worker_debug_LDFLAGS = $(AM_LDFLAGS) $(WHOLE_DEBUG_WORKER)
mcp_python_worker_debug_LDADD = $(WORKER_LIBS) $(DEBUG_PYTHON_LIBS)
mcp_python_worker_debug_DEPENDENCIES = libworker-debug.a libproto.a libbase.a
endif
endif

# Python code of the worker, frozen into it; import_check.py has its source in policy/.
FROZEN = bootstrap checkpoints history imports installed ipython jsonable lacks learned lenient \
	notebook ready renew rich tools_module variables watched
FROZEN_CODE = $(FROZEN:%=worker/%.h) worker/import_check.h
BUILT_SOURCES += $(FROZEN_CODE)
CLEANFILES += $(FROZEN_CODE)
EXTRA_DIST += $(FROZEN:%=worker/%.py) worker/freeze.py policy/import_check.py \
	worker/preloaded.map worker/about.py worker/standalone.mk

# What `mcp-python interpreter add` builds other workers from.
workersourcesdir = $(pkgdatadir)/worker
WORKER_FILES = $(libworker_a_SOURCES) worker/main.c worker/preloaded.c $(libproto_a_SOURCES) \
	base/log.c base/quote.c base/stall.c base/trace.c base/utf8.c base/xalloc.c base/*.h worker/*.py worker/preloaded.map \
	worker/standalone.mk policy/import_check.py
# Those of other versions, if ./quickstart workers has made some.
install-other-workers:
	$(MKDIR_P) "$(DESTDIR)$(libexecdir)"
	for worker in mcp-python-worker-3.*; do \
		test ! -f "$$worker" || $(INSTALL_PROGRAM) "$$worker" "$(DESTDIR)$(libexecdir)" || exit 1; \
	done
uninstall-other-workers:
	rm -f "$(DESTDIR)$(libexecdir)"/mcp-python-worker-3.*
install-worker-sources:
	$(MKDIR_P) "$(DESTDIR)$(workersourcesdir)"
	cd $(srcdir) && tar -cf - $(WORKER_FILES) | \
		tar -C "$(DESTDIR)$(workersourcesdir)" --no-same-owner --mode=u=rwX,go=rX -xf -
	echo $(PACKAGE_VERSION) >"$(DESTDIR)$(workersourcesdir)/version"
uninstall-worker-sources:
	rm -rf "$(DESTDIR)$(workersourcesdir)"
	-rmdir "$(DESTDIR)$(pkgdatadir)"
$(FROZEN:%=worker/%.h): worker/%.h: worker/%.py worker/freeze.py
	@$(MKDIR_P) worker
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/worker/freeze.py $* <$(srcdir)/worker/$*.py >$@
worker/import_check.h: policy/import_check.py worker/freeze.py
	@$(MKDIR_P) worker
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/worker/freeze.py import_check <$(srcdir)/policy/import_check.py >$@
worker/libworker_a-interpreter.$(OBJEXT): $(FROZEN_CODE)
.PHONY: install-other-workers uninstall-other-workers install-worker-sources uninstall-worker-sources
