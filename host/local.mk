# SPDX-License-Identifier: Apache-2.0
# host: what is asked of the kernel at start-up and per worker: namespaces, cgroups, processes.
noinst_LIBRARIES += libhost.a
libhost_a_SOURCES = \
	host/cgroup.c host/cgroup.h \
	host/cgroup_leaf.c \
	host/cgroup_parts.h \
	host/cgroup_text.c host/cgroup_text.h \
	host/child.c host/child.h \
	host/directory.c host/directory.h \
	host/directory_process.c host/subordinate.c \
	host/fence.c host/fence.h \
	host/fence_files.c host/fence_files.h \
	host/filestore.c host/filestore.h \
	host/filestore_disk.c host/filestore_parts.h host/filestore_process.c \
	host/forker.c host/forker.h \
	host/forker_process.c \
	host/helper.c host/helper.h \
	host/jobs.c host/jobs.h \
	host/launch.c host/launch.h \
	host/launcher.c host/launcher.h \
	host/launcher_process.c \
	host/outer.c host/outer.h \
	host/privilege.c host/privilege.h \
	host/programs.c host/programs.h \
	host/scope.c \
	host/secret.c host/secret.h \
	host/startup.c host/startup.h \
	host/tasks.c host/tasks.h \
	host/usage.c host/usage.h \
	host/usage_process.c \
	host/watchdog.c host/watchdog.h
libhost_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS) $(SECCOMP_CFLAGS) $(SYSTEMD_CFLAGS)
