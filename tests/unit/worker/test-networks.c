/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of workers, as the supervisor has them used again: which script gets whose, and what it
 * finds in there. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/worker/host.h"

/* The name of the network, "net:[4026532000]". One that is used or rests is open in the zygote, so
 * no other has its name. */
#define NAME "import os\nprint(os.readlink('/proc/self/ns/net'), end='')\n"

static const struct host_options plain = { .modules = NULL };
static struct host host;

static int
set_up(void **state)
{
	int r = host_start(&plain, &host);

	(void)state;
	if (r == -EPERM) {
		fprintf(stderr, "user namespaces cannot be made here\n");
		exit(77);
	}
	return r;
}

static int
take_down(void **state)
{
	(void)state;
	host_stop(&host);
	return 0;
}

/* Runs the script as the owner's, and gives what it printed. */
static void
run_as(uint64_t owner, const char *script, char *text, size_t size)
{
	struct host_run run = { .script = script };
	struct host_result r;

	host.owner = owner;
	host_run(&host, &run, &r);
	if (r.end != HOST_DONE || r.done->exit_code != 0)
		fail_msg("%s%s", r.out, r.err);
	snprintf(text, size, "%s", r.out);
	host_result_done(&r);
}

static void
say_free(uint64_t worker, bool keep)
{
	struct msg msg = { .type = MSG_NETWORK_FREE,
			   .network_free = { .worker = worker, .keep = keep } };

	assert_int_equal(frame_send(host.control, &msg, NULL, 0), 0);
}

/* ... and says that its worker has ended. */
static void
use(uint64_t owner, const char *script, char *text, size_t size)
{
	run_as(owner, script, text, size);
	say_free(host.serial, true);
}

/* How many networks the zygote has open. The last message is read before its next answer. */
static unsigned int
count_open(void)
{
	char path[64], name[64], link[64];
	struct dirent *entry;
	unsigned int n = 0;
	DIR *dir;

	run_as(1000, NAME, name, sizeof(name));
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)host.zygote);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link));

		n += len > 5 && memcmp(link, "net:[", 5) == 0;
	}
	closedir(dir);
	say_free(host.serial, false);
	return n - 1;
}

static void
it_is_used_again_by_its_owner_alone(void **state)
{
	char first[64], again[64], other[64];

	(void)state;
	use(1, NAME, first, sizeof(first));
	assert_memory_equal(first, "net:[", 5);
	use(1, NAME, again, sizeof(again));
	assert_string_equal(first, again);
	use(2, NAME, other, sizeof(other));
	assert_string_not_equal(first, other);
	use(1, NAME, again, sizeof(again));
	assert_string_equal(first, again);
}

static void
two_workers_never_share_one(void **state)
{
	struct host_run run = { .script = NAME };
	struct host_worker worker[2];
	struct host_result r[2];

	(void)state;
	host.owner = 1;
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(host_spawn(&host, &worker[i], NULL), 0);
	for (size_t i = 0; i < 2; i++)
		host_finish(&worker[i], &run, &r[i]);
	assert_memory_equal(r[0].out, "net:[", 5);
	assert_string_not_equal(r[0].out, r[1].out);
	for (size_t i = 0; i < 2; i++)
		host_result_done(&r[i]);
}

/* Until the supervisor says that a worker has ended, its network is that worker's. */
static void
one_that_is_used_is_not_given(void **state)
{
	char first[64], second[64];

	(void)state;
	run_as(1, NAME, first, sizeof(first));
	run_as(1, NAME, second, sizeof(second));
	assert_string_not_equal(first, second);
	say_free(12345, true);
	say_free(host.serial, true);
	say_free(host.serial, true);
	run_as(1, NAME, first, sizeof(first));
	assert_string_equal(first, second);
	run_as(1, NAME, first, sizeof(first));
	assert_string_not_equal(first, second);
}

static void
they_are_bounded_and_go_with_their_owner(void **state)
{
	static const struct msg drop = { .type = MSG_NETWORK_DROP, .network_drop.owner = 1 };
	struct host_run run = { .script = "pass\n" };
	struct host_worker worker[20];
	struct host_result r;
	uint64_t serial[20];
	char name[64];

	(void)state;
	host.owner = 1;
	for (size_t i = 0; i < 20; i++) {
		assert_int_equal(host_spawn(&host, &worker[i], NULL), 0);
		serial[i] = worker[i].serial;
	}
	assert_int_equal(count_open(), 20);
	host.owner = 1;
	for (size_t i = 0; i < 20; i++) {
		host_finish(&worker[i], &run, &r);
		host_result_done(&r);
		say_free(serial[i], true);
	}
	assert_int_equal(count_open(), 16);
	use(2, NAME, name, sizeof(name));
	assert_int_equal(count_open(), 17);
	assert_int_equal(frame_send(host.control, &drop, NULL, 0), 0);
	assert_int_equal(count_open(), 1);
	run_as(2, NAME, name, sizeof(name));
	say_free(host.serial, false);
	assert_int_equal(count_open(), 0);
}

/* What scripts use every day leaves nothing: the next one has the same network. */
static void
what_leaves_nothing(void **state)
{
	static const char *const scripts[] = {
		"import asyncio\nasyncio.run(asyncio.sleep(0))\n" NAME,
		"import socket\ns = socket.create_server(('127.0.0.1', 4000))\n" NAME,
		"import socket\ns = socket.create_server(('::1', 4000), family=socket.AF_INET6)\n" NAME,
		"import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
		"s.bind(('127.0.0.1', 4001))\ns.sendto(b'x' * 60000, ('127.0.0.1', 4001))\n" NAME,
		"import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind('\\0left')\ns.listen()\n"
		"c = socket.socket(socket.AF_UNIX)\nc.connect('\\0left')\n" NAME,
		"import os, socket\n"
		"if os.fork() == 0:\n    os.setsid()\n    s = socket.create_server(('', 4002))\n"
		"    import time\n    time.sleep(1000)\n" NAME,
	};
	char first[64], name[64];

	(void)state;
	use(1, NAME, first, sizeof(first));
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		use(1, scripts[i], name, sizeof(name));
		if (strcmp(first, name) != 0)
			fail_msg("before script %zu: %s, not %s", i, name, first);
	}
	use(1, NAME, name, sizeof(name));
	assert_string_equal(first, name);
}

/* The end of a TCP connection is remembered for a minute: its port is taken, and so is memory of
 * the kernel that no limit counts. */
static void
what_leaves_something(void **state)
{
	static const char connection[] =
		"import socket\ns = socket.create_server(('127.0.0.1', 4000))\n"
		"c = socket.create_connection(('127.0.0.1', 4000))\na = s.accept()[0]\n"
		"a.close()\nc.close()\ns.close()\n" NAME;
	static const char takes_port[] =
		"import socket\ns = socket.socket()\ns.bind(('127.0.0.1', 4000))\n" NAME;
	char first[64], name[64];

	(void)state;
	use(1, connection, name, sizeof(name));
	assert_int_equal(count_open(), 0);
	use(1, takes_port, first, sizeof(first));
	use(1, takes_port, name, sizeof(name));
	assert_string_equal(first, name);
}

/* A script has no capability over its network, which is not its own user namespace's. */
static void
no_script_changes_it(void **state)
{
	static const char script[] =
		"import fcntl, glob, os, socket, struct\n"
		"s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
		"for call in (0x8914, 0x8916, 0x891c, 0x8922, 0x890b, 0x8923):\n"
		"    for flags in (0, 0x49):\n"
		"        try:\n"
		"            fcntl.ioctl(s, call, struct.pack('16sH22x', b'lo', flags))\n"
		"            print('done:', hex(call))\n"
		"        except OSError:\n"
		"            pass\n"
		"for name in glob.glob('/proc/self/net/**', recursive=True) + \\\n"
		"        glob.glob('/proc/sys/net/**', recursive=True):\n"
		"    if not os.path.isdir(name) and os.access(name, os.W_OK):\n"
		"        print('writable:', name)\n"
		"socket.create_server(('127.0.0.1', 0))\n"
		"try:\n"
		"    socket.create_server(('127.0.0.1', 80))\n"
		"    print('a port of root')\n"
		"except PermissionError:\n"
		"    pass\n";
	char text[4096];

	(void)state;
	run_as(1, script, text, sizeof(text));
	assert_string_equal(text, "");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)
	const struct CMUnitTest tests[] = {
		TEST(it_is_used_again_by_its_owner_alone),
		TEST(two_workers_never_share_one),
		TEST(one_that_is_used_is_not_given),
		TEST(they_are_bounded_and_go_with_their_owner),
		TEST(what_leaves_nothing),
		TEST(what_leaves_something),
		TEST(no_script_changes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
