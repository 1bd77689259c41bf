/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote (prepare), init (ask) and, on a signal, a script's process in any
 * state.   Owns: the handlers, their stack and their memory.
 * A handler may interrupt malloc() while malloc's lock is held. So all memory is reserved
 * beforehand, and only functions that are safe in handlers are called. No function of Python's API
 * can write stacks in a handler. Instead the stacks are written by the handler that Python's module
 * faulthandler installs. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "worker/where.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/frame.h"
#include "worker/jail.h"

#define ASK (SIGRTMAX - 1)
#define DUMP_MAX (64 * 1024)	/* bytes: what a pipe holds */
#define FRAME_ROOM (WHERE_MAX + 1024)
#define DUMP_FD 500		/* where faulthandler writes; a script with it ends anyway */

static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

static void (*write_stacks)(int signal);	/* faulthandler's; needs no lock of Python's */
static char stack[64 * 1024];	/* a stack that has overflowed is no place for a handler */
static char dump[DUMP_MAX + 1];
static unsigned char frame_room[FRAME_ROOM];
static struct codec_buffer frame = { .at = frame_room, .size = FRAME_ROOM };
static struct {
	uint64_t id;
	pid_t pid;		/* 0: nothing runs */
	char file[SCRIPT_NAME_MAX + 40];	/* how a line about the script's own file begins */
	volatile sig_atomic_t held, told;
} run;

/* ---- in a handler ---- */

/* Leaves out the frames that led to the script. Returns the length. */
static size_t
where_leave_out_frames(char *text)
{
	char *to = text, *line = text;

	while (*line) {
		size_t len = strcspn(line, "\n");

		len += line[len] == '\n';
		if (strncmp(line, "  File \"<mcp-python>\"", 21) != 0) {
			memmove(to, line, len);
			to += len;
		}
		line += len;
	}
	*to = '\0';
	return (size_t)(to - text);
}

/* Writes Python's text about all threads to dump. Returns its length; 0: there is none. */
static size_t
take_stacks(void)
{
	int pipe[2];
	ssize_t n;

	if (pipe2(pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return 0;
	if (dup3(pipe[1], DUMP_FD, O_CLOEXEC) == DUMP_FD)
		write_stacks(ASK);
	n = read(pipe[0], dump, DUMP_MAX);
	close(pipe[0]);
	close(pipe[1]);
	close(DUMP_FD);
	dump[n > 0 ? n : 0] = '\0';
	return where_leave_out_frames(dump);
}

/* The thread that matters: the one that crashed, or the main thread, which is the last one. */
static const char *
find_thread(bool crashed)
{
	const char *at = crashed ? strstr(dump, "Current thread") : NULL, *next = dump;

	if (at)
		return at;
	at = dump;
	while ((next = strstr(next, "hread 0x")) != NULL) {
		while (next > dump && next[-1] != '\n')
			next--;
		at = next;
		next = strchr(next, '\n');
		if (!next)
			break;
	}
	return at;
}

static uint32_t
line_after(const char *text)
{
	const char *at = strstr(text, run.file);
	uint32_t line = 0;

	for (at = at ? at + strlen(run.file) : ""; *at >= '0' && *at <= '9'; at++)
		if (line < INT32_MAX / 10)
			line = line * 10 + (uint32_t)(*at - '0');
	return line;
}

static void
send_frame(void)
{
	size_t sent = 0;

	while (sent < frame.len) {
		ssize_t n = send(JAIL_CONTROL, frame.at + sent, frame.len - sent, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return;
		sent += n > 0 ? (size_t)n : 0;
	}
}

static void
where_tell(bool crashed)
{
	struct msg msg = { .type = MSG_WHERE, .where.id = run.id };
	size_t len = take_stacks();
	const char *thread = find_thread(crashed), *text = dump;

	if (len == 0)
		return;
	msg.where.line = line_after(thread);
	if (msg.where.line == 0)
		msg.where.line = line_after(dump);
	msg.where.has_line = msg.where.line > 0;
	if (len > WHERE_MAX)
		text = crashed && dump + len - thread > WHERE_MAX ? thread
								  : dump + len - WHERE_MAX;
	msg.where.text = (struct msg_str){ text, strnlen(text, WHERE_MAX) };
	frame.len = 0;
	if (frame_encode(&msg, 0, &frame) == 0)
		send_frame();
}

static bool
may_tell(void)
{
	return run.pid != 0 && getpid() == run.pid && !run.held && !run.told++;
}

/* The signal has its default action again (SA_RESETHAND), so raise() ends the process. */
static void
on_crash(int signal)
{
	int error = errno;

	if (may_tell())
		where_tell(true);
	errno = error;
	raise(signal);
}

static void
on_ask(int signal, siginfo_t *info, void *)
{
	if (info->si_code != SI_USER || info->si_pid != 1) {
		/* A signal of the script itself has its default effect: it ends the process, but
		 * not init. */
		raise(signal);
		return;
	}
	if (may_tell())
		where_tell(false);
	kill(getpid(), SIGKILL);
}

/* ---- outside ---- */

/* Has faulthandler install its handler, and keeps the handler's address. Scripts find the module as
 * if it had not been imported. */
static int
find_writer(void)
{
	static const char name[] = "faulthandler";
	PyObject *modules = PyImport_GetModuleDict();
	bool there = PyDict_GetItemString(modules, name) != NULL;
	PyObject *module = PyImport_ImportModule(name), *result = NULL;
	struct sigaction installed;

	if (module)
		result = PyObject_CallMethod(module, "register", "iiO", ASK, DUMP_FD, Py_True);
	Py_XDECREF(module);
	if (!result || (!there && PyDict_DelItemString(modules, name) < 0)) {
		Py_XDECREF(result);
		PyErr_Print();
		return -EIO;
	}
	Py_DECREF(result);
	if (sigaction(ASK, NULL, &installed) < 0)
		return -errno;
	write_stacks = installed.sa_handler;
	return 0;
}

int
where_prepare(void)
{
	const stack_t own_stack = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction ask = { .sa_sigaction = on_ask,
				 .sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_SIGINFO };
	struct sigaction crash = { .sa_handler = on_crash,
				   .sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_ONSTACK };
	int r = find_writer();

	if (r < 0)
		return r;
	if (sigaltstack(&own_stack, NULL) < 0 || sigaction(ASK, &ask, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(fatal) / sizeof(*fatal); i++)
		if (sigaction(fatal[i], &crash, NULL) < 0)
			return -errno;
	return 0;
}

void
where_begin(uint64_t id, unsigned int cell, const struct msg_str *name)
{
	run.id = id;
	run.held = run.told = 0;
	if (cell)
		snprintf(run.file, sizeof(run.file), "  File \"<cell %u>\", line ", cell);
	else
		snprintf(run.file, sizeof(run.file), "  File \"%.*s\", line ",
			 name ? (int)name->len : SCRIPT_NAME_MAX, name ? name->at : "script.py");
	run.pid = getpid();
}

void
where_end(void)
{
	run.pid = 0;
}

void
where_hold(void)
{
	run.held = 1;
}

void
where_release(void)
{
	run.held = 0;
}

void
where_ask(pid_t script)
{
	kill(script, ASK);
}
