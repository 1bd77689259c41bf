/* SPDX-License-Identifier: Apache-2.0 */
/* A lean load client: N connections to a supervisor's socket, each with one call in flight.
 *
 *   load --socket PATH [--clients N] [--count N] [--pace-ms MS] [--burst N] [--script PY]
 *
 * Speaks the stateless revision (2026-07-28), so there is no handshake. Every answer must be
 * status ok and hold the line "hello", or the run fails. With --pace-ms each client
 * waits that long between an answer and its next call, which lets a pool stay warm; with --burst
 * only after every N calls. Prints one line of JSON.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 1024
#define ANSWER_MAX 65536

struct options {
	const char *socket, *script;
	unsigned int clients, count, pace_ms, burst;
};

struct client {
	int fd;
	bool waiting;		/* for an answer; else for its next turn */
	uint64_t since_ns;	/* the call was sent; or when the next one is due */
	unsigned int answers;
	size_t len;
	char answer[ANSWER_MAX];
};

static char *request;
static size_t request_len;

static void
die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
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
connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof address.sun_path)
		die(path);
	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		die(path);
	return fd;
}

static void
make_request(const char *script)
{
	json_t *line = json_pack(
		"{s:s, s:i, s:s, s:{s:s, s:{s:s}, s:{s:s, s:{}}}}", "jsonrpc", "2.0", "id", 1,
		"method", "tools/call", "params", "name", "run_script", "arguments", "script",
		script, "_meta", "io.modelcontextprotocol/protocolVersion", "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities");
	char *text = json_dumps(line, JSON_COMPACT);

	if (!text || asprintf(&request, "%s\n", text) < 0)
		die("request");
	request_len = strlen(request);
	free(text);
	json_decref(line);
}

static void
call(struct client *c)
{
	c->since_ns = now_ns();
	c->waiting = true;
	c->len = 0;
	if (send(c->fd, request, request_len, MSG_NOSIGNAL) != (ssize_t)request_len)
		die("send");
}

/* true once the whole answer is there. */
static bool
take(struct client *c)
{
	ssize_t n = recv(c->fd, c->answer + c->len, sizeof c->answer - 1 - c->len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		fprintf(stderr, "load: the supervisor closed a connection\n");
		exit(1);
	}
	c->len += (size_t)n;
	c->answer[c->len] = '\0';
	if (c->answer[c->len - 1] != '\n')
		return false;
	if (!strstr(c->answer, "\"status\":\"ok\"") || !strstr(c->answer, "hello\\n")) {
		fprintf(stderr, "load: not the expected answer: %s", c->answer);
		exit(1);
	}
	return true;
}

static int
by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* How long poll may wait until a paced client's turn; -1: only for answers. */
static int
start_those_due(const struct options *o, struct client *client, unsigned int *started)
{
	uint64_t now = now_ns(), next = UINT64_MAX;

	for (unsigned int i = 0; i < o->clients && *started < o->count; i++) {
		struct client *c = &client[i];

		if (c->waiting)
			continue;
		if (c->since_ns <= now) {
			call(c);
			++*started;
		} else if (c->since_ns < next) {
			next = c->since_ns;
		}
	}
	return next == UINT64_MAX ? -1 : (int)((next - now) / 1000000 + 1);
}

static void
run(const struct options *o)
{
	static struct client client[CLIENTS_MAX];
	static struct pollfd fd[CLIENTS_MAX];
	uint64_t *took = calloc(o->count, sizeof *took), began;
	unsigned int started = 0, ended = 0;

	if (!took)
		die("calloc");
	for (unsigned int i = 0; i < o->clients; i++) {
		client[i].fd = fd[i].fd = connect_to(o->socket);
		fd[i].events = POLLIN;
	}
	began = now_ns();
	while (ended < o->count) {
		int wait_ms = start_those_due(o, client, &started);

		if (poll(fd, o->clients, wait_ms) < 0 && errno != EINTR)
			die("poll");
		for (unsigned int i = 0; i < o->clients; i++) {
			struct client *c = &client[i];

			if (!fd[i].revents || !take(c))
				continue;
			took[ended++] = now_ns() - c->since_ns;
			c->waiting = false;
			c->since_ns = now_ns();
			if (++c->answers % o->burst == 0)
				c->since_ns += o->pace_ms * 1000000ull;
		}
	}
	began = now_ns() - began;
	qsort(took, o->count, sizeof *took, by_size);
	printf("{\"count\": %u, \"clients\": %u, \"pace_ms\": %u, \"p50_ms\": %.3f, "
	       "\"p99_ms\": %.3f, \"per_second\": %.1f}\n",
	       o->count, o->clients, o->pace_ms, (double)took[o->count / 2] / 1e6,
	       (double)took[o->count * 99ul / 100] / 1e6, o->count / ((double)began / 1e9));
	free(took);
}

static unsigned int
number(const char *text, unsigned int most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text == '\0' || *end != '\0' || n == 0 || n > most) {
		fprintf(stderr, "load: %s: not a number from 1 to %u\n", text, most);
		exit(2);
	}
	return (unsigned int)n;
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "clients", required_argument, NULL, 'c' },
		{ "count", required_argument, NULL, 'n' },
		{ "pace-ms", required_argument, NULL, 'p' },
		{ "burst", required_argument, NULL, 'b' },
		{ "script", required_argument, NULL, 'x' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .clients = 1, .count = 1000, .burst = 1,
			     .script = "print('hello')" };
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		switch (c) {
		case 's': o.socket = optarg; break;
		case 'c': o.clients = number(optarg, CLIENTS_MAX); break;
		case 'n': o.count = number(optarg, 10000000); break;
		case 'p': o.pace_ms = number(optarg, 60000); break;
		case 'b': o.burst = number(optarg, 10000); break;
		case 'x': o.script = optarg; break;
		default:
			fprintf(c == 'h' ? stdout : stderr,
				"Usage: load --socket PATH [--clients N] [--count N] [--pace-ms MS] "
				"[--burst N] [--script PY]\n");
			return c == 'h' ? 0 : 2;
		}
	if (!o.socket) {
		fputs("load: --socket PATH is needed\n", stderr);
		return 2;
	}
	make_request(o.script);
	run(&o);
	free(request);
	return 0;
}
