/* SPDX-License-Identifier: Apache-2.0 */
/* The zygote as its supervisor sees it: what it accepts, what it says when it cannot
 * be, and that nothing outlives whom it belongs to. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/fdpass.h"
#include "tests/unit/worker/host.h"
#include "tests/unit/worker/huge.h"

#define SERVICE_UID 1879048192u		/* tests/unit/worker/host.c */

static const struct host_options plain = { .modules = NULL };

static void
start_with(const struct host_options *options, struct host *host)
{
	int r = host_start(options, host);

	if (r < 0)
		fail_msg("%s: %s", host->failed,
			 strerror(host->error ? (int)host->error : -r));
}

static int
can_start(void **state)
{
	struct host host;
	int r = host_start(&plain, &host);

	(void)state;
	host_stop(&host);
	if (r == -EPERM) {
		fprintf(stderr, "user namespaces cannot be made here\n");
		exit(77);
	}
	return r;
}

/* Waits up to a minute until fd is readable; so is a pidfd when its process has ended.
 */
static void
await(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 60000), 1);
}

/* A directory that a jail may show, which one in /tmp is not. dir: of PATH_MAX bytes.
 */
static char *
make_dir(char *dir)
{
	char here[PATH_MAX - 32];

	strcpy(dir, "/var/lib/test-zygote-XXXXXX");
	if (!mkdtemp(dir)) {
		assert_non_null(getcwd(here, sizeof(here)));
		snprintf(dir, PATH_MAX, "%s/test-zygote-XXXXXX", here);
		if (strncmp(dir, "/tmp/", 5) == 0 ||
		    strncmp(dir, "/var/tmp/", 9) == 0 || !mkdtemp(dir))
			skip();
	}
	assert_int_equal(chmod(dir, 0755), 0);
	return dir;
}

static void
write_module(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s.py", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void
remove_dir(const char *dir, const char *const *modules)
{
	for (; *modules; modules++) {
		char path[PATH_MAX + 64];

		snprintf(path, sizeof(path), "%s/%s.py", dir, *modules);
		unlink(path);
	}
	assert_int_equal(rmdir(dir), 0);
}

/* ---- what cannot be ---- */

static void
a_path_that_must_not_be_shown_is_refused(void **state)
{
	static const char *const paths[] = {
		"/proc",	"/sys",	      "/dev/shm",
		"/run/systemd", "/tmp",	      "/",
		"/usr/../etc",	"/usr/./lib", "relative",
		"/etc//passwd", "/workspace", "/usr/..",
		"/var/tmp/x",	"/var/run",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const char *const one[] = { paths[i], NULL };
		struct host_options options = { .paths = one };
		struct host host;

		assert_int_equal(host_start(&options, &host), -ECANCELED);
		assert_int_equal(host.error, EPERM);
		if (!strstr(host.failed, paths[i]))
			fail_msg("%s: %s", paths[i], host.failed);
		host_stop(&host);
	}
}

static void
a_link_to_such_a_path_is_refused(void **state)
{
	char dir[PATH_MAX], link[PATH_MAX + 8];
	const char *const one[] = { link, NULL };
	struct host_options options = { .paths = one };
	struct host host;

	(void)state;
	make_dir(dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink("/proc", link), 0);
	assert_int_equal(host_start(&options, &host), -ECANCELED);
	assert_int_equal(host.error, EPERM);
	host_stop(&host);
	unlink(link);
	rmdir(dir);
}

static void
an_import_that_leaves_a_thread_is_refused(void **state)
{
	static const char *const modules[] = { "threads", NULL };
	char dir[PATH_MAX];
	struct host_options options = { .packages = make_dir(dir), .modules = modules };
	struct host host;

	(void)state;
	write_module(dir, "threads",
		     "import threading\n"
		     "threading.Thread(target=threading.Event().wait, "
		     "daemon=True).start()\n");
	assert_int_equal(host_start(&options, &host), -ECANCELED);
	assert_string_equal(host.failed, "an import has started a thread");
	host_stop(&host);
	remove_dir(dir, modules);
}

static void
imports_that_fail_are_told_and_the_others_are_there(void **state)
{
	static const char *const modules[] = { "exits", "reads", "talks", NULL };
	char dir[PATH_MAX];
	struct host_options options = { .packages = make_dir(dir), .modules = modules };
	struct host_run run = { .script = "import sys\nprint('talks' in sys.modules, "
					  "'reads' in sys.modules)\n"
					  "import os, reads\nprint(reads.said, "
					  "os.environ.get('OPENBLAS_NUM_THREADS'))\n" };
	struct host_result r;
	struct host host;

	(void)state;
	write_module(dir, "exits", "raise SystemExit(3)\n");
	write_module(dir, "reads",
		     "import os, sys\nsaid = [sys.stdin.read(), "
		     "os.environ['OPENBLAS_NUM_THREADS']]\n");
	write_module(dir, "talks", "print('in the zygote')\n");
	start_with(&options, &host);
	assert_int_equal(host.n_missing, 1);
	assert_string_equal(host.missing, "exits");
	host_run(&host, &run, &r);
	assert_string_equal(r.out, "True True\n['', '1'] None\n");
	host_result_done(&r);
	host_stop(&host);
	remove_dir(dir, modules);
}

/* As around any fork, and not again for each process of a worker. */
static void
hooks_of_a_module_run_once(void **state)
{
	static const char *const modules[] = { "hooks", NULL };
	char dir[PATH_MAX];
	struct host_options options = { .packages = make_dir(dir), .modules = modules };
	struct host_run run = { .script = "import hooks\n"
					  "print(hooks.ran, hooks.lock.locked())\n" };
	struct host_result r;
	struct host host;

	(void)state;
	write_module(dir, "hooks",
		     "import os, threading\n"
		     "lock = threading.Lock()\n"
		     "ran = []\n"
		     "def before():\n    lock.acquire()\n    ran.append('before')\n"
		     "def child():\n    ran.append('child')\n    lock.release()\n"
		     "os.register_at_fork(before=before, after_in_child=child)\n");
	start_with(&options, &host);
	host_run(&host, &run, &r);
	assert_string_equal(r.out, "['before', 'child'] False\n");
	host_result_done(&r);
	host_stop(&host);
	remove_dir(dir, modules);
}

static void
prints(const struct host_options *options, const char *script, const char *out)
{
	struct host_run run = { .script = script };
	struct host_result r;
	struct host host;

	start_with(options, &host);
	host_run(&host, &run, &r);
	assert_string_equal(r.err, "");
	assert_string_equal(r.out, out);
	host_result_done(&r);
	host_stop(&host);
}

/* What the hook of threading would make in a worker is not there, even if a .pth file imports
 * threading when Python starts. After a fork of the script it is there: the lock of logging is
 * free, and the other thread is gone. */
static void
hooks_about_threads_run_at_forks_of_the_script_only(void **state)
{
	static const char *const modules[] = { "logging", "concurrent.futures.thread", NULL };
	static const char script[] =
		"import gc, logging, os, threading, warnings\n"
		"warnings.simplefilter('ignore')  # of a fork beside a thread\n"
		"locks = getattr(threading, '_shutdown_locks', None)\n"
		"print(any(each is locks for each in gc.get_objects()))\n"
		"print(os.register_at_fork.__module__)\n"
		"print(threading.main_thread().native_id == os.getpid(), threading.active_count())\n"
		"end = threading.Event()\n"
		"threading.Thread(target=end.wait).start()\n"
		"pid = os.fork()\n"
		"if pid == 0:\n"
		"    alone, got = threading.active_count() == 1, []\n"
		"    take = lambda: got.append(logging._lock.acquire(timeout=60))\n"
		"    thread = threading.Thread(target=take)\n"
		"    thread.start()\n"
		"    thread.join()\n"
		"    os._exit(3 if alone and got == [True] else 1)\n"
		"print(threading.active_count(), os.waitpid(pid, 0)[1] >> 8)\n"
		"end.set()\n";

	static const char pth[] = "import threading\n";
	char dir[PATH_MAX], path[PATH_MAX + 16];
	struct host_options options = { .packages = make_dir(dir), .modules = modules };
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/early.pth", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fputs(pth, f) < 0 || fclose(f) != 0, 0);
	prints(&options, script, "False\nposix\nTrue 1\n2 3\n");
	unlink(path);
	remove_dir(dir, modules);
}

/* Blocks of each size that Python's allocator has. Those of the zygote have holes between them.
 * If nothing fills these, blocks of some sizes lie on five to nine pages. With Python 3.13 the
 * smallest lie on four all the same. */
static void
new_objects_lie_side_by_side(void **state)
{
	static const char *const modules[] = { "asyncio", "json", "logging", "random", NULL };
	static const char script[] =
		"def pages(size):\n"
		"    blocks = [bytes(size - 33) for _ in range(16)]\n"
		"    return len({id(block) >> 12 for block in blocks})\n"
		"print([size for size in range(64, 513, 16) if pages(size) > size // 256 + 4])\n";

	(void)state;
	prints(&(struct host_options){ .modules = modules }, script, "[]\n");
}

/* Also in init, which each worker's script is forked of: nothing there writes to it. */
static void
its_heap_is_on_huge_pages(void **state)
{
	struct host_worker worker;
	struct host host;

	(void)state;
	if (geteuid() != 0 || !huge_kernel_can(16 << 20))
		skip();
	start_with(&plain, &host);
	assert_true(huge_kib(host.zygote, "AnonHugePages:") >= 2048);
	assert_int_equal(host_spawn(&host, &worker, NULL), 0);
	assert_true(huge_kib(worker.pid, "AnonHugePages:") >= 2048);
	host_kill(&worker);
	host_stop(&host);
}

/* Does a mapping have a whole huge page in it, of a file whose pages can be on one? */
static bool
has_huge(unsigned long from, unsigned long to, unsigned long offset)
{
	const unsigned long page = 2UL << 20;

	return from % page == offset % page && ((from + page - 1) & ~(page - 1)) + page <= to;
}

/* The read-only part of a library is one mapping, and nothing that can be written is executable.
 * An imported library has one more, its data; for libcrypto, which has many that are zero in the
 * beginning, that is a copy without a file. The relocations of the C library stay read-only.
 * *huge_r: the program is as large as a huge page. */
static void
check_mappings(pid_t zygote, bool *huge_r)
{
	unsigned long from, to, offset;
	unsigned int n = 0, relocated = 0;
	char path[64], line[512], may[5];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)zygote);
	maps = fopen(path, "re");
	assert_non_null(maps);
	*huge_r = false;
	while (fgets(line, sizeof(line), maps)) {
		assert_int_equal(sscanf(line, "%lx-%lx %4s %lx", &from, &to, may, &offset), 4);
		assert_false(may[1] == 'w' && may[2] == 'x');
		assert_false(strstr(line, "/lib-dynload/") && strcmp(may, "r--p") == 0);
		assert_false(may[1] == 'w' && strstr(line, "/libcrypto.so"));
		*huge_r |= may[2] == 'x' && has_huge(from, to, offset) &&
			   strstr(line, "/memfd:mcp-python-worker ") != NULL;
		if (!strstr(line, "/libc.so.6"))
			continue;
		relocated += strcmp(may, "r--p") == 0;
		if (may[2] != 'x')
			continue;
		assert_int_equal(offset, 0);
		n++;
	}
	fclose(maps);
	assert_int_equal(n, 1);
	assert_int_equal(relocated, 1);
}

static void
its_libraries_are_joined(void **state)
{
	static const char *const modules[] = { "sqlite3", "decimal", "ssl", NULL };
	struct host host;
	bool huge;

	(void)state;
	start_with(&(struct host_options){ .modules = modules }, &host);
	check_mappings(host.zygote, &huge);
	host_stop(&host);
}

/* May a kernel that has huge pages put files in memory on them? */
static bool
may_share_huge(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
	char text[256] = "[deny]";

	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	return !strstr(text, "[deny]");
}

static void
its_program_is_on_huge_pages(void **state)
{
	struct host_run run = { .script =
		"lines = open('/proc/self/smaps_rollup').read().splitlines()\n"
		"print([line.split()[1] != '0' for line in lines if line.startswith('ShmemPmd')])\n" };
	struct host_result r;
	struct host host;
	bool huge;

	(void)state;
	start_with(&plain, &host);
	check_mappings(host.zygote, &huge);
	if (huge && may_share_huge() && huge_kernel_can(16 << 20)) {
		host_run(&host, &run, &r);
		assert_string_equal(r.out, "[True]\n");
		host_result_done(&r);
	}
	host_stop(&host);
}

static void
only_configure_comes_first(void **state)
{
	struct msg run = { .type = MSG_RUN, .run = { .id = 1, .value_max = 4096 } };
	struct frame frame;
	struct host host;

	(void)state;
	/* A zygote that is ready takes nothing but SPAWN, one that is not only
	 * CONFIGURE; the first is asked here, with a message that belongs to a worker.
	 */
	start_with(&plain, &host);
	assert_int_equal(frame_send(host.control, &run, NULL, 0), 0);
	assert_int_equal(host_receive(&host.reader, host.control, &frame), -EPIPE);
	host_stop(&host);
}

static void
a_spawn_that_contradicts_itself_is_refused(void **state)
{
	struct msg spawn = { .type = MSG_SPAWN,
			     .spawn = { .worker = 9, .uid = 1, .into_cgroup = true,
				       .owner = 1 } };
	struct host_run run = { .script = "print(1)\n" };
	struct host_result r;
	struct frame frame = { 0 };
	struct host host;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	start_with(&plain, &host);
	assert_int_equal(
		frame_send(host.control, &spawn, (int[]){ null, null, null }, 3), 0);
	assert_int_equal(host_receive(&host.reader, host.control, &frame), 0);
	assert_int_equal(frame.msg.type, MSG_SPAWN_FAILED);
	assert_int_equal(frame.msg.spawn_failed.worker, 9);
	assert_int_equal(frame.msg.spawn_failed.error, EINVAL);
	frame_done(&frame);
	/* A leaf that is no cgroup. */
	assert_int_equal(
		frame_send(host.control, &spawn, (int[]){ null, null, null, null }, 4),
		0);
	assert_int_equal(host_receive(&host.reader, host.control, &frame), 0);
	assert_int_equal(frame.msg.type, MSG_SPAWN_FAILED);
	assert_int_equal(frame.msg.spawn_failed.error, EBADF);
	frame_done(&frame);
	host_run(&host, &run, &r);
	assert_string_equal(r.out, "1\n");
	host_result_done(&r);
	host_stop(&host);
	close(null);
}

static void
a_uid_that_is_not_ours_fails_closed(void **state)
{
	struct host_options options = { .single_id = true };
	struct frame failed = { 0 };
	struct host_worker worker;
	struct host host;

	(void)state;
	start_with(&options, &host);
	host.uid = 7;
	assert_int_equal(host_spawn(&host, &worker, &failed), -ECANCELED);
	assert_memory_equal(failed.msg.jail_failed.what.at, "uid map", 7);
	assert_int_equal(failed.msg.jail_failed.error, EPERM);
	frame_done(&failed);
	host_stop(&host);
}

/* ---- what works ---- */

static void
one_id_is_enough(void **state)
{
	struct host_options options = { .single_id = true };
	struct host_run run = {
		.script = "import os\nprint(os.getuid(), os.getgid(), "
			  "open('/proc/self/uid_map').read().split())\n"
	};
	struct host_result r;
	struct host host;

	(void)state;
	start_with(&options, &host);
	host_run(&host, &run, &r);
	assert_string_equal(r.out, "1000 1000 ['1000', '0', '1']\n");
	host_result_done(&r);
	host_stop(&host);
}

static void
every_worker_has_the_uid_it_was_given(void **state)
{
	struct host_run run = {
		.script = "print(open('/proc/self/uid_map').read().split(), "
			  "open('/proc/self/gid_map').read().split())\n"
	};
	struct host_result r;
	struct host host;

	(void)state;
	if (geteuid() != 0)
		skip();
	start_with(&plain, &host);
	host.uid = 4711;
	host_run(&host, &run, &r);
	assert_string_equal(r.out, "['1000', '4711', '1'] ['1000', '4711', '1']\n");
	host_result_done(&r);
	host_stop(&host);
}

static void
a_configured_path_is_there_and_read_only(void **state)
{
	char dir[PATH_MAX], script[3 * PATH_MAX];
	const char *const modules[] = { "f", NULL };
	const char *const paths[] = { dir, "/usr/lib/python3", NULL };
	struct host_options options = { .paths = paths };
	struct host_run run = { .script = script };
	struct host_result r;
	struct host host;

	(void)state;
	make_dir(dir);
	write_module(dir, "f", "text");
	chmod(dir, 0777);
	snprintf(script, sizeof(script),
		 "print(open('%s/f.py').read())\ntry: open('%s/g', 'w')\n"
		 "except OSError as e: print(e.strerror)\n",
		 dir, dir);
	start_with(&options, &host);
	host_run(&host, &run, &r);
	assert_string_equal(r.out, "text\nRead-only file system\n");
	host_result_done(&r);
	host_stop(&host);
	remove_dir(dir, modules);
}

static void
own_cgroup(const char *dir)
{
	char path[160];

	if (mkdir(dir, 0755) < 0)
		fail_msg("%s: %s", dir, strerror(errno));
	assert_int_equal(chown(dir, SERVICE_UID, SERVICE_UID), 0);
	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	assert_int_equal(chown(path, SERVICE_UID, SERVICE_UID), 0);
}

/* Its last process may be reaped a moment before it leaves. */
static void
remove_cgroup(const char *dir)
{
	char path[160], text[128];
	struct pollfd events = { .events = POLLPRI };
	ssize_t n;

	snprintf(path, sizeof(path), "%s/cgroup.events", dir);
	events.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(events.fd >= 0);
	for (;;) {
		n = pread(events.fd, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		if (strstr(text, "populated 0"))
			break;
		assert_int_equal(poll(&events, 1, 60000), 1);
	}
	close(events.fd);
	assert_int_equal(rmdir(dir), 0);
}

static void
a_worker_is_born_in_its_cgroup(void **state)
{
	static const char *const roots[] = { "/sys/fs/cgroup/unified",
					     "/sys/fs/cgroup" };
	char base[96] = "", a[128], b[128], text[160], expected[96];
	struct host_run run = {
		.script = "import os, subprocess\nprint(subprocess.run(['cat', "
			  "'/proc/self/cgroup'], capture_output=True, "
			  "text=True).stdout.splitlines()[-1])\n"
	};
	struct host_worker worker;
	struct host_result r;
	struct host host;
	FILE *f;

	(void)state;
	for (size_t i = 0; i < 2 && !base[0] && geteuid() == 0; i++) {
		snprintf(a, sizeof(a), "%s/cgroup.procs", roots[i]);
		if (access(a, W_OK) == 0)
			snprintf(base, sizeof(base), "%s/test-zygote-%d", roots[i],
				 (int)getpid());
	}
	if (!base[0])
		skip();
	snprintf(a, sizeof(a), "%s/a", base);
	snprintf(b, sizeof(b), "%s/b", base);
	own_cgroup(base);
	own_cgroup(a);
	own_cgroup(b);
	start_with(&plain, &host);
	snprintf(text, sizeof(text), "%s/cgroup.procs", a);
	f = fopen(text, "we");
	fprintf(f, "%d", (int)host.zygote);
	assert_int_equal(fclose(f), 0);
	host.leaf = open(b, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(host_spawn(&host, &worker, NULL), 0);
	snprintf(text, sizeof(text), "/proc/%d/cgroup", (int)worker.pid);
	snprintf(expected, sizeof(expected), "/test-zygote-%d/b\n", (int)getpid());
	f = fopen(text, "re");
	while (fgets(text, sizeof(text), f) && strncmp(text, "0::", 3) != 0)
		;
	fclose(f);
	assert_string_equal(text + 3, expected);
	/* Seen from inside it is the root: the cgroup namespace. */
	host_finish(&worker, &run, &r);
	assert_string_equal(r.out, "0::/\n");
	host_result_done(&r);
	close(host.leaf);
	host_stop(&host);
	remove_cgroup(b);
	remove_cgroup(a);
	remove_cgroup(base);
}

/* ---- ends ---- */

static void
the_zygote_ends_with_its_socket(void **state)
{
	struct host host;
	int status;

	(void)state;
	start_with(&plain, &host);
	close(host.control);
	assert_int_equal(waitpid(host.zygote, &status, 0), host.zygote);
	assert_int_equal(status, 0);
	host.control = -1;
	host.zygote = -1;
	host_stop(&host);
}

static void
an_idle_worker_ends_with_its_socket(void **state)
{
	struct host_worker worker;
	struct host host;
	siginfo_t info;

	(void)state;
	start_with(&plain, &host);
	assert_int_equal(host_spawn(&host, &worker, NULL), 0);
	shutdown(worker.control, SHUT_RDWR);
	await(worker.pidfd);
	assert_int_equal(waitid(P_PIDFD, (id_t)worker.pidfd, &info, WEXITED), 0);
	assert_int_equal(info.si_status, 0);
	close(worker.pidfd);
	worker.pidfd = -1;
	host_kill(&worker);
	host_stop(&host);
}

static void
a_worker_outlives_the_zygote(void **state)
{
	struct host_run run = { .script = "print('still here')\n" };
	struct host_worker worker;
	struct host_result r;
	struct host host;

	(void)state;
	start_with(&plain, &host);
	assert_int_equal(host_spawn(&host, &worker, NULL), 0);
	kill(host.zygote, SIGKILL);
	assert_int_equal(waitpid(host.zygote, NULL, 0), host.zygote);
	host.zygote = -1;
	host_finish(&worker, &run, &r);
	assert_string_equal(r.out, "still here\n");
	host_result_done(&r);
	host_stop(&host);
}

/* Plays the supervisor in a process of its own, gives its sockets away so that their
 * end is not reported, and it waits to be killed. */
static _Noreturn void
be_supervisor(int back)
{
	struct host_run run = {
		.script = "import signal\nfor s in signal.valid_signals():\n"
			  "    try: signal.signal(s, signal.SIG_IGN)\n    except "
			  "OSError: pass\n"
			  "print('on', flush=True)\nwhile True: signal.pause()\n"
	};
	struct msg msg = { .type = MSG_RUN, .run = { .id = 1, .value_max = 4096,
		.script = { run.script, strlen(run.script) } } };
	struct host_worker running, idle;
	struct host host;
	int fds[3];
	char c;

	if (host_start(&plain, &host) < 0 || host_spawn(&host, &running, NULL) < 0 ||
	    host_spawn(&host, &idle, NULL) < 0)
		_exit(1);
	if (frame_send(running.control, &msg, NULL, 0) < 0 ||
	    read(running.out, &c, 1) != 1)
		_exit(2);
	fds[0] = (int)syscall(SYS_pidfd_open, host.zygote, 0);
	fds[1] = running.pidfd;
	fds[2] = idle.pidfd;
	fdpass_send(back, "p", 1, fds, 3, 0);
	fds[0] = host.control;
	fds[1] = running.control;
	fds[2] = idle.control;
	fdpass_send(back, "s", 1, fds, 3, 0);
	for (;;)
		pause();
}

static void
nothing_outlives_the_supervisor(void **state)
{
	struct fdpass_set processes = { 0 }, sockets = { 0 };
	int pair[2];
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0)
		be_supervisor(pair[1]);
	close(pair[1]);
	assert_int_equal(fdpass_recv(pair[0], &c, 1, &processes), 1);
	assert_int_equal(fdpass_recv(pair[0], &c, 1, &sockets), 1);
	assert_int_equal(processes.n, 3);
	assert_int_equal(sockets.n, 3);
	kill(pid, SIGKILL);
	for (size_t i = 0; i < 3; i++)
		await(processes.fd[i]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	fdpass_close(&processes);
	fdpass_close(&sockets);
	close(pair[0]);
}

/* ---- by hand ---- */

static int
run_by_hand(const char *argument, char *text, size_t size)
{
	const char *program = getenv("MCP_PYTHON_WORKER");
	int out[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		dup2(out[1], 2);
		close(3);
		execl(program ? program : "./mcp-python-worker", "mcp-python-worker",
		      argument, NULL);
		_exit(127);
	}
	close(out[1]);
	while (len < size - 1 && (n = read(out[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
by_hand_it_explains_itself(void **state)
{
	char text[4096];

	(void)state;
	assert_int_equal(run_by_hand("--version", text, sizeof(text)), 0);
	assert_string_equal(text, "mcp-python-worker " PACKAGE_VERSION "\n");
	assert_int_equal(run_by_hand("--help", text, sizeof(text)), 0);
	assert_non_null(strstr(text, "mcp-python run FILE"));
	assert_int_equal(run_by_hand(NULL, text, sizeof(text)), 1);
	assert_non_null(strstr(text, "Usage: "));
	assert_int_equal(run_by_hand("--frobnicate", text, sizeof(text)), 1);
	assert_int_equal(run_by_hand("--zygote", text, sizeof(text)), 1);
	assert_non_null(strstr(text, "descriptor 3"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand_it_explains_itself),
		cmocka_unit_test(a_path_that_must_not_be_shown_is_refused),
		cmocka_unit_test(a_link_to_such_a_path_is_refused),
		cmocka_unit_test(an_import_that_leaves_a_thread_is_refused),
		cmocka_unit_test(imports_that_fail_are_told_and_the_others_are_there),
		cmocka_unit_test(hooks_of_a_module_run_once),
		cmocka_unit_test(hooks_about_threads_run_at_forks_of_the_script_only),
		cmocka_unit_test(new_objects_lie_side_by_side),
		cmocka_unit_test(its_heap_is_on_huge_pages),
		cmocka_unit_test(its_libraries_are_joined),
		cmocka_unit_test(its_program_is_on_huge_pages),
		cmocka_unit_test(only_configure_comes_first),
		cmocka_unit_test(a_spawn_that_contradicts_itself_is_refused),
		cmocka_unit_test(a_uid_that_is_not_ours_fails_closed),
		cmocka_unit_test(one_id_is_enough),
		cmocka_unit_test(every_worker_has_the_uid_it_was_given),
		cmocka_unit_test(a_configured_path_is_there_and_read_only),
		cmocka_unit_test(a_worker_is_born_in_its_cgroup),
		cmocka_unit_test(the_zygote_ends_with_its_socket),
		cmocka_unit_test(an_idle_worker_ends_with_its_socket),
		cmocka_unit_test(a_worker_outlives_the_zygote),
		cmocka_unit_test(nothing_outlives_the_supervisor),
	};

	return cmocka_run_group_tests(tests, can_start, NULL);
}
