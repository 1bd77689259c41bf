/* SPDX-License-Identifier: Apache-2.0 */
/* The physical limit, with which the service is compared: the bare clone.
 *
 * A process that already holds libpython and the default profile's modules is cloned into the same
 * seven namespaces and a cgroup leaf of its own, runs one statement, ends and is reaped. No jail is
 * built, no uid is mapped, and there is no protocol. A service that gives every execution a fresh
 * process with these namespaces cannot be faster than this.
 *
 *   limit [--count N] [--parallel N] [--cgroup DIR] [--kept-net] [--no-namespaces] [--statement PY]
 *   limit --floor [--count N] [--pace-ms MS] [--burst N] [--statement PY]
 *   limit --relay [--count N] [--pace-ms MS] [--burst N]
 *
 * The second form is the floor of a call that finds its process waiting: client, relay and
 * interpreter, three processes that exist already, with the same hops and message sizes as in the
 * service, and without any other work. One statement is compiled and run per call, always in the
 * same interpreter.
 *
 * The third form is the floor of the hops alone: the same three processes, and the last one hands
 * the message back without an interpreter and without output.
 *
 * --kept-net: clones are made in network namespaces that exist already, one for each clone in
 * flight, and that are used again. Needs root.
 *
 * DIR is a cgroup v2 directory in which leaves may be made; without it the clones stay in their
 * parent's cgroup. Prints one line of JSON. Needs root, or a kernel that allows user namespaces.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PARALLEL_MAX 256
#define SEVEN_NAMESPACES                                                           \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP | CLONE_NEWNET)

static const char preload[] =
	"import asyncio, base64, collections, csv, dataclasses, datetime, decimal, functools,"
	"hashlib, io, itertools, json, linecache, math, os, pathlib, pickle, queue, random, re,"
	"sqlite3, statistics, string, struct, subprocess, sys, tempfile, textwrap, threading,"
	"time, traceback, typing, uuid, zlib, gc\n"
	"gc.collect(); gc.freeze()\n";

struct options {
	unsigned int count, parallel, pace_ms, burst;
	bool floor, relay, kept_net;
	const char *cgroup;	/* NULL: none */
	const char *statement;
	uint64_t namespaces;
};

/* One clone in flight. */
struct cycle {
	pid_t pid;
	uint64_t started_ns;
	char leaf[4096];
	int net;	/* with kept_net: its network namespace */
};

static void
die(const char *what)
{
	fprintf(stderr, "limit: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int
make_leaf(const struct options *o, struct cycle *cycle, unsigned int number)
{
	int fd;

	if (!o->cgroup)
		return -1;
	snprintf(cycle->leaf, sizeof cycle->leaf, "%s/limit-%u", o->cgroup, number);
	if (mkdir(cycle->leaf, 0755) < 0)
		die(cycle->leaf);
	fd = open(cycle->leaf, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		die(cycle->leaf);
	return fd;
}

static void
start(const struct options *o, struct cycle *cycle, unsigned int number)
{
	int leaf;

	cycle->started_ns = now_ns();
	if (o->kept_net && setns(cycle->net, CLONE_NEWNET) < 0)
		die("setns");
	leaf = make_leaf(o, cycle, number);
	struct clone_args args = {
		.flags = o->namespaces | (leaf >= 0 ? CLONE_INTO_CGROUP : 0),
		.exit_signal = SIGCHLD,
		.cgroup = leaf >= 0 ? (uint64_t)leaf : 0,
	};
	PyOS_BeforeFork();
	cycle->pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (cycle->pid == 0) {
		PyOS_AfterFork_Child();
		_exit(PyRun_SimpleString(o->statement) < 0 ? 1 : fflush(stdout));
	}
	PyOS_AfterFork_Parent();
	if (cycle->pid < 0)
		die("clone3");
	if (leaf >= 0)
		close(leaf);
}

static void
reaped(const struct options *o, struct cycle *cycle, int status)
{
	if (status != 0) {
		fprintf(stderr, "limit: a clone ended with status %#x\n", (unsigned int)status);
		exit(1);
	}
	if (o->cgroup && rmdir(cycle->leaf) < 0)
		die(cycle->leaf);
	cycle->pid = 0;
}

static struct cycle *
find(struct cycle *cycle, unsigned int n, pid_t pid)
{
	for (unsigned int i = 0; i < n; i++)
		if (cycle[i].pid == pid)
			return &cycle[i];
	return NULL;
}

static int
by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
tell(const struct options *o, uint64_t *took, uint64_t all_ns)
{
	qsort(took, o->count, sizeof *took, by_size);
	fprintf(stderr,
		"{\"count\": %u, \"parallel\": %u, \"cgroup\": %s, \"p50_ms\": %.3f, "
		"\"p99_ms\": %.3f, \"per_second\": %.1f}\n",
		o->count, o->parallel, o->cgroup ? "true" : "false",
		(double)took[o->count / 2] / 1e6, (double)took[o->count * 99ul / 100] / 1e6,
		o->count / ((double)all_ns / 1e9));
}

static void
make_nets(struct cycle *cycle, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (unshare(CLONE_NEWNET) < 0)
			die("unshare");
		cycle[i].net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		if (cycle[i].net < 0)
			die("/proc/self/ns/net");
	}
}

static void
run(const struct options *o)
{
	static struct cycle cycle[PARALLEL_MAX];
	uint64_t *took, began;
	unsigned int started = 0, ended = 0;

	took = calloc(o->count, sizeof *took);
	if (!took)
		die("calloc");
	if (o->kept_net)
		make_nets(cycle, o->parallel);
	began = now_ns();
	while (ended < o->count) {
		struct cycle *c;
		int status;
		pid_t pid;

		while (started < o->count && (c = find(cycle, o->parallel, 0)))
			start(o, c, started++);
		pid = waitpid(-1, &status, 0);
		if (pid < 0)
			die("waitpid");
		c = find(cycle, o->parallel, pid);
		if (!c)
			continue;
		took[ended++] = now_ns() - c->started_ns;
		reaped(o, c, status);
	}
	tell(o, took, now_ns() - began);
	free(took);
}

/* ---- the floor ---- */

/* Bytes, as on the path of the service. */
enum { REQUEST = 231, RUN = 106, DONE = 32, ANSWER = 655 };

static void
transfer(int fd, bool out, size_t len)
{
	char bytes[4096] = { 0 };

	while (len > 0) {
		ssize_t n = out ? write(fd, bytes, len) : read(fd, bytes, len);

		if (n == 0)
			exit(0);
		if (n < 0)
			die("transfer");
		len -= (size_t)n;
	}
}

static _Noreturn void
live_as_interpreter(const struct options *o, int control, int output)
{
	if (dup2(output, STDOUT_FILENO) < 0)
		die("dup2");
	for (;;) {
		transfer(control, false, RUN);
		if (PyRun_SimpleString(o->statement) < 0)
			exit(1);
		transfer(control, true, DONE);
	}
}

/* With relay: the last of the three processes. */
static _Noreturn void
live_as_end(int control)
{
	for (;;) {
		transfer(control, false, RUN);
		transfer(control, true, DONE);
	}
}

/* With relay: the one between the two. */
static _Noreturn void
live_as_middle(int client, int control)
{
	for (;;) {
		transfer(client, false, REQUEST);
		transfer(control, true, RUN);
		transfer(control, false, DONE);
		transfer(client, true, ANSWER);
	}
}

static _Noreturn void
live_as_relay(int client, int control, int output)
{
	struct pollfd fd[] = { { .fd = control, .events = POLLIN },
			       { .fd = output, .events = POLLIN } };
	char bytes[4096];

	for (;;) {
		transfer(client, false, REQUEST);
		transfer(control, true, RUN);
		do {
			if (poll(fd, 2, -1) < 0)
				die("poll");
			if ((fd[1].revents & POLLIN) && read(output, bytes, sizeof bytes) < 0)
				die("output");
			if ((fd[0].revents | fd[1].revents) & (POLLHUP | POLLERR))
				exit(1);
		} while (!(fd[0].revents & POLLIN));
		transfer(control, false, DONE);
		transfer(client, true, ANSWER);
	}
}

/* The relay's end for the client; both children end with it. */
static int
start_floor(const struct options *o)
{
	int client[2], control[2], output[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0 ||
	    pipe2(output, O_CLOEXEC) < 0)
		die("channels");
	if (!o->relay)
		PyOS_BeforeFork();
	if (fork() == 0) {
		close(client[0]);
		close(client[1]);
		close(control[0]);
		if (o->relay)
			live_as_end(control[1]);
		PyOS_AfterFork_Child();
		live_as_interpreter(o, control[1], output[1]);
	}
	if (fork() == 0) {
		close(client[0]);
		close(control[1]);
		close(output[1]);
		if (o->relay)
			live_as_middle(client[1], control[0]);
		live_as_relay(client[1], control[0], output[0]);
	}
	if (!o->relay)
		PyOS_AfterFork_Parent();
	close(client[1]);
	close(control[0]);
	close(control[1]);
	close(output[0]);
	close(output[1]);
	return client[0];
}

static void
run_floor(const struct options *o)
{
	const struct timespec pause = { o->pace_ms / 1000, o->pace_ms % 1000 * 1000000L };
	uint64_t *took = calloc(o->count, sizeof *took), began = now_ns();
	int client = start_floor(o);

	if (!took)
		die("calloc");
	for (unsigned int i = 0; i < o->count; i++) {
		uint64_t since = now_ns();

		transfer(client, true, REQUEST);
		transfer(client, false, ANSWER);
		took[i] = now_ns() - since;
		if (o->pace_ms > 0 && (i + 1) % o->burst == 0)
			nanosleep(&pause, NULL);
	}
	tell(o, took, now_ns() - began);
	close(client);
	while (wait(NULL) > 0)
		;
	free(took);
}

static void
usage(FILE *out)
{
	fputs("Usage: limit [--count N] [--parallel N] [--cgroup DIR] [--kept-net]\n"
	      "             [--no-namespaces] [--statement PY]\n"
	      "       limit --floor [--count N] [--pace-ms MS] [--burst N] [--statement PY]\n"
	      "       limit --relay [--count N] [--pace-ms MS] [--burst N]\n"
	      "The bare clone of a warm interpreter, the bare call of a waiting one, or the bare hops\n"
	      "of such a call; prints one line of JSON on standard error, and what clones print on\n"
	      "standard output.\n", out);
}

static unsigned int
number(const char *text, unsigned int most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text == '\0' || *end != '\0' || n == 0 || n > most) {
		fprintf(stderr, "limit: %s: not a number from 1 to %u\n", text, most);
		exit(2);
	}
	return (unsigned int)n;
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "count", required_argument, NULL, 'n' },
		{ "parallel", required_argument, NULL, 'p' },
		{ "cgroup", required_argument, NULL, 'c' },
		{ "kept-net", no_argument, NULL, 'k' },
		{ "no-namespaces", no_argument, NULL, 'x' },
		{ "statement", required_argument, NULL, 's' },
		{ "floor", no_argument, NULL, 'f' },
		{ "relay", no_argument, NULL, 'r' },
		{ "pace-ms", required_argument, NULL, 'm' },
		{ "burst", required_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = {
		.count = 500, .parallel = 1, .burst = 1, .statement = "print('hello', flush=True)",
		.namespaces = SEVEN_NAMESPACES,
	};
	PyConfig config;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		switch (c) {
		case 'n': o.count = number(optarg, 1000000); break;
		case 'p': o.parallel = number(optarg, PARALLEL_MAX); break;
		case 'c': o.cgroup = optarg; break;
		case 'k': o.kept_net = true; o.namespaces &= ~(uint64_t)CLONE_NEWNET; break;
		case 'x': o.namespaces = 0; break;
		case 'f': o.floor = true; break;
		case 'r': o.relay = true; break;
		case 'm': o.pace_ms = number(optarg, 60000); break;
		case 'b': o.burst = number(optarg, 10000); break;
		case 's': o.statement = optarg; break;
		case 'h': usage(stdout); return 0;
		default: usage(stderr); return 2;
		}
	if (o.relay) {
		run_floor(&o);
		return 0;
	}
	PyConfig_InitIsolatedConfig(&config);
	if (PyStatus_Exception(Py_InitializeFromConfig(&config)) ||
	    PyRun_SimpleString(preload) < 0) {
		fputs("limit: the interpreter did not start\n", stderr);
		return 1;
	}
	if (o.floor)
		run_floor(&o);
	else
		run(&o);
	return 0;
}
