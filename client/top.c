/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python top.   Owns: the terminal while it runs, and its earlier settings; the
 * last answer, for the differences.
 * Signals come through a descriptor, so a single poll() waits for everything. */
#include "client/commands.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "client/admin.h"
#include "client/exits.h"
#include "client/say.h"
#include "client/show.h"
#include "client/table.h"

#define ENTER "\033[?1049h\033[?25l"	/* a screen of its own, no cursor */
#define LEAVE "\033[?25h\033[?1049l"
#define HEAD_LINES 5
#define ANSWER_S 10
#define INTERVAL_MAX 3600

static const char help[] =
	"Usage: mcp-python top [--sort KEY] [--interval SECONDS] [--once]\n"
	"                      [--admin-socket PATH]\n"
	"\n"
	"Shows tenants by their use of resources, and refreshes that. Ends with q or Ctrl-C.\n"
	"\n"
	"  --sort KEY            cpu, memory, running, queued, sessions, executions or name;\n"
	"                        while it runs c, m, r, w, s, e and n\n"
	"  --interval SECONDS    between two looks; otherwise 2\n"
	"  --once                one table, as when standard output is not a terminal\n"
	ADMIN_SOCKET_HELP
	"  --help                this text\n";

static const struct sort {
	const char *name, *member;	/* member NULL: the name */
	char key;
} sorts[] = {
	{ "cpu", "cpu_seconds", 'c' }, { "memory", "memory_bytes", 'm' },
	{ "running", "running", 'r' }, { "queued", "queued", 'w' },
	{ "sessions", "sessions", 's' }, { "executions", "executions", 'e' },
	{ "name", NULL, 'n' },
};

struct row {
	const json_t *tenant;
	double value;			/* the key for sorting */
	double processors, per_second;	/* since the last look */
};

struct top {
	const struct sort *sort;
	double interval;
	bool once;
	const char *socket;
	FILE *stream;
	json_t *answer, *before;	/* before NULL: the first look */
	struct timespec at, at_before;
	bool colour;
	size_t lines, columns;		/* of the screen; 0: there is none */
	bool explains;			/* shows the keys in place of the tenants */
	char complaint[256];		/* printed after the screen was restored */
};

/* ---- one look ---- */

static const json_t *
find_before(const struct top *top, const char *name)
{
	const json_t *list = json_object_get(top->before, "tenants");

	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(admin_text(json_array_get(list, i), "tenant"), name) == 0)
			return json_array_get(list, i);
	return NULL;
}

static double
grown(const json_t *now, const json_t *before, const char *key, double seconds)
{
	double more = before ? admin_number(now, key) - admin_number(before, key) : 0;

	return more > 0 && seconds > 0 ? more / seconds : 0;
}

static int
top_compare(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->value != other->value)
		return one->value > other->value ? -1 : 1;
	return strcmp(admin_text(one->tenant, "tenant"), admin_text(other->tenant, "tenant"));
}

static struct row *
make_rows(const struct top *top, size_t *n_r)
{
	const json_t *list = json_object_get(top->answer, "tenants");
	double seconds = (double)(top->at.tv_sec - top->at_before.tv_sec) +
			 (double)(top->at.tv_nsec - top->at_before.tv_nsec) / 1e9;
	struct row *row = xcalloc(json_array_size(list) + 1, sizeof(*row));

	*n_r = json_array_size(list);
	for (size_t i = 0; i < *n_r; i++) {
		const json_t *now = json_array_get(list, i);
		const json_t *before = find_before(top, admin_text(now, "tenant"));

		row[i].tenant = now;
		row[i].processors = grown(now, before, "cpu_seconds", seconds);
		row[i].per_second = grown(now, before, "executions", seconds);
		if (top->sort->key == 'c' && top->before)
			row[i].value = row[i].processors;
		else if (top->sort->member)
			row[i].value = admin_number(now, top->sort->member);
	}
	qsort(row, *n_r, sizeof(*row), top_compare);
	return row;
}

static void
add_rate(struct table *table, const struct top *top, double rate)
{
	if (top->before)
		table_add(table, "%.1f", rate);
	else
		table_add(table, "-");
}

static void
top_add_row(struct table *table, const struct top *top, const struct row *row)
{
	const json_t *tenant = row->tenant;

	table_add(table, "%s", admin_name(admin_text(tenant, "tenant")));
	add_rate(table, top, 100 * row->processors);
	table_add(table, "%s", figure_bytes((uint64_t)admin_number(tenant, "memory_bytes")));
	table_add(table, "%ld", admin_count(tenant, "running"));
	table_add(table, "%ld", admin_count(tenant, "queued"));
	table_add(table, "%ld", admin_count(tenant, "sessions"));
	table_add(table, "%ld", admin_count(tenant, "jobs"));
	table_add(table, "%ld", admin_count(tenant, "workers"));
	add_rate(table, top, row->per_second);
	table_add(table, "%ld", admin_count(tenant, "executions"));
	table_add(table, "%s", figure_time(admin_number(tenant, "cpu_seconds")));
}

static void
print_keys(FILE *out)
{
	fputs("\n", out);
	for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++)
		fprintf(out, "  %c      sort by %s\n", sorts[i].key, sorts[i].name);
	fputs("  space  look again now\n  q      leave\n  ?      the table again\n", out);
}

static void
print_head(const struct top *top, FILE *out)
{
	const json_t *service = json_object_get(top->answer, "service");
	const json_t *executions = json_object_get(top->answer, "executions");
	const json_t *profiles = json_object_get(top->answer, "profiles");
	const json_t *clients = json_object_get(top->answer, "clients");
	long warm = 0, busy = 0, sessions = 0, waiting = 0;

	for (size_t i = 0; i < json_array_size(profiles); i++) {
		const json_t *one = json_array_get(profiles, i);

		warm += admin_count(one, "warm");
		busy += admin_count(one, "busy");
		sessions += admin_count(one, "sessions");
		waiting += admin_count(one, "waiting");
	}
	fprintf(out, "%s %s, up %s, sorted by %s%s\n", admin_text(service, "name"),
		admin_text(service, "version"), figure_time(admin_number(service, "uptime_seconds")),
		top->sort->name, top->lines > 0 ? "; keys: c m r w s e n, ? explains, q leaves" : "");
	if (!executions) {
		fputs("what you use yourself\n\n\n", out);
		return;
	}
	fprintf(out, "%ld running, %ld queued; %ld ended, %ld by a limit\n",
		admin_count(executions, "running"), admin_count(executions, "queued"),
		admin_count(executions, "ended"), admin_count(executions, "limits_hit"));
	fprintf(out, "workers: %ld warm, %ld busy, %ld of idle sessions; %ld waiting for one\n",
		warm, busy, sessions, waiting);
	fprintf(out, "%ld connected, %ld over HTTP; %ld approvals pending\n",
		admin_count(clients, "connections"), admin_count(clients, "http_connections"),
		admin_count(json_object_get(top->answer, "approvals"), "pending"));
}

static void
top_print_tenants(const struct top *top, FILE *out, size_t rows, size_t width)
{
	static const char *const titles[] = { "TENANT", ">%CPU", ">MEMORY", ">RUNNING", ">QUEUED",
					      ">SESSIONS", ">JOBS", ">WORKERS", ">RUNS/S",
					      ">RUNS", ">CPU", NULL };
	struct table *table = table_new(titles);
	size_t n;
	struct row *row = make_rows(top, &n);

	for (size_t i = 0; i < n; i++)
		top_add_row(table, top, &row[i]);
	table_print(table, out, rows, width, top->colour ? "\033[7m" : "",
		    top->colour ? "\033[0m" : "");
	table_free(table);
	free(row);
}

/* 0 or an exit code. */
static int
top_look(struct top *top)
{
	int code;

	json_decref(top->before);
	top->before = top->answer;
	top->at_before = top->at;
	top->answer = admin_ask_for(top->stream, "status", &code, top->complaint,
				    sizeof(top->complaint));
	clock_gettime(CLOCK_MONOTONIC, &top->at);
	return code;
}

/* ---- a terminal ---- */

static void
measure_screen(struct top *top)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	top->lines = size.ws_row;
	top->columns = size.ws_col;
}

/* One write, so that nothing flickers; the rest of each line is cleared. */
static int
draw(const struct top *top)
{
	size_t room = top->lines > HEAD_LINES ? top->lines - HEAD_LINES - 1 : 0, len, n = 0;
	char *text = NULL, *frame;
	FILE *out = open_memstream(&text, &len);
	int r;

	if (!out)
		xalloc_fail(0);
	print_head(top, out);
	if (top->explains)
		print_keys(out);
	else
		top_print_tenants(top, out, room, top->columns);
	fclose(out);
	frame = xmalloc(5 * len + 16);
	memcpy(frame, "\033[H", 3);
	n = 3;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n') {
			memcpy(frame + n, "\033[K", 3);
			n += 3;
		}
		frame[n++] = text[i];
	}
	memcpy(frame + n, "\033[J", 3);
	r = show_bytes(STDOUT_FILENO, frame, n + 3);
	free(frame);
	free(text);
	return r;
}

static int
catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

enum wish { GO_ON, LOOK, DRAW, QUIT };

static enum wish
top_read_key(struct top *top)
{
	char key;

	if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q')
		return QUIT;
	if (key == ' ')
		return LOOK;
	if (key == '?') {
		top->explains = !top->explains;
		return DRAW;
	}
	for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++)
		if (sorts[i].key == key) {
			top->sort = &sorts[i];
			return DRAW;
		}
	return GO_ON;
}

static enum wish
read_signal(struct top *top, int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info) || info.ssi_signo != SIGWINCH)
		return QUIT;
	measure_screen(top);
	return DRAW;
}

static int
top_left_ms(const struct top *top)
{
	struct timespec now;
	double left;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left = top->interval - (double)(now.tv_sec - top->at.tv_sec) -
	       (double)(now.tv_nsec - top->at.tv_nsec) / 1e9;
	return left > 0 ? (int)(left * 1000) + 1 : 0;
}

/* Waits for the next look or for a key. */
static enum wish
wait_for_wish(struct top *top, int signals)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = signals, .events = POLLIN } };
	int n = poll(fds, 2, top_left_ms(top));

	if (n == 0)
		return LOOK;
	if (n < 0)
		return errno == EINTR ? GO_ON : QUIT;
	return fds[1].revents ? read_signal(top, signals) : top_read_key(top);
}

static int
top_watch(struct top *top, int signals)
{
	enum wish wish = LOOK;
	int code = 0;

	measure_screen(top);
	while (code == 0 && wish != QUIT) {
		if (wish == LOOK)
			code = top_look(top);
		if (code == 0 && wish != GO_ON && draw(top) < 0)
			break;
		if (code == 0)
			wish = wait_for_wish(top, signals);
	}
	return code;
}

static int
watch_on_terminal(struct top *top)
{
	const char *no_colour = getenv("NO_COLOR");
	int code, signals = catch_signals();
	struct termios before, raw;

	if (signals < 0 || tcgetattr(STDIN_FILENO, &before) < 0) {
		say("the terminal: %s", strerror(errno));
		return EX_OSERR;
	}
	raw = before;
	raw.c_lflag &= (tcflag_t)~(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	raw.c_cc[VSUSP] = _POSIX_VDISABLE;	/* a shell expects other settings of the terminal */
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
	show_bytes(STDOUT_FILENO, ENTER, strlen(ENTER));
	top->colour = !(no_colour && *no_colour);
	code = top_watch(top, signals);
	show_bytes(STDOUT_FILENO, LEAVE, strlen(LEAVE));
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	close(signals);
	return code;
}

/* ---- command ---- */

static int
print_once(struct top *top)
{
	int code = top_look(top);

	if (code != 0)
		return code;
	print_head(top, stdout);
	top_print_tenants(top, stdout, SIZE_MAX, 4096);
	return 0;
}

static bool
is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
	       strcmp(term, "dumb") != 0;
}

static int
top_run(struct top *top)
{
	static const struct timeval most = { .tv_sec = ANSWER_S };
	int code;

	top->stream = admin_connect(admin_path(top->socket, NULL), false);
	if (!top->stream)
		return EX_UNAVAILABLE;
	admin_bound(top->stream, &most);
	code = top->once || !is_terminal() ? print_once(top) : watch_on_terminal(top);
	if (top->complaint[0])
		say("%s", top->complaint);
	json_decref(top->answer);
	json_decref(top->before);
	fclose(top->stream);
	return code;
}

static int
top_wrong(const char *text)
{
	say("top: %s", text);
	return EX_USAGE;
}

static const struct sort *
find_sort(const char *name)
{
	for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++)
		if (strcmp(sorts[i].name, name) == 0)
			return &sorts[i];
	return NULL;
}

int
top_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "sort", required_argument, NULL, 's' },
		{ "interval", required_argument, NULL, 'i' },
		{ "once", no_argument, NULL, 'o' },
		{ "admin-socket", required_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct top top = { .sort = sorts, .interval = 2 };
	int option;
	char *end;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			top.sort = find_sort(optarg);
			if (!top.sort)
				return top_wrong("--sort: cpu, memory, running, queued, sessions, "
						 "executions or name");
			break;
		case 'i':
			top.interval = strtod(optarg, &end);
			if (end == optarg || *end || !(top.interval >= 0.1) ||
			    top.interval > INTERVAL_MAX)
				return top_wrong("--interval: a number of seconds, 0.1 to 3600");
			break;
		case 'o':
			top.once = true;
			break;
		case 'a':
			top.socket = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return EX_USAGE;
		}
	}
	return optind < argc ? top_wrong("there is an extra word") : top_run(&top);
}
