/* Runs in: mcp-python repl.   Owns: the terminal while a line is typed, and the history, which
 * is the only file that mcp-python writes by itself: $XDG_STATE_HOME/mcp-python/history. */
#include "client/repl_input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include <histedit.h>

#define HISTORY_MAX 2000 /* lines */
#define LINE_PIECE 65536

struct repl_input {
	const sigset_t *mask;
	const volatile sig_atomic_t *interrupted;
	/* A terminal's. */
	EditLine *edit; /* NULL: not a terminal */
	History *history;
	HistEvent event;
	char path[PATH_MAX]; /* of the history; "": none */
	const char *prompt;
	mbstate_t decoding;
	/* For other input: bytes that were read and not yet returned. */
	char *bytes;
	size_t len, room, at, scanned;
	bool ended;
};

/* Waits for input. 0, or -EINTR after an interruption only. */
static int
wait_readable(const struct repl_input *input)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

	for (;;) {
		if (*input->interrupted)
			return -EINTR;
		if (ppoll(&p, 1, NULL, input->mask) > 0)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

/* ---- a terminal ---- */

/* libedit's own function continues after a signal; this one ends the line. */
static int
read_character(EditLine *edit, wchar_t *to)
{
	struct repl_input *input;
	char byte;
	size_t n;

	el_get(edit, EL_CLIENTDATA, &input);
	do {
		ssize_t got;

		n = (size_t)-2;
		if (wait_readable(input) < 0) {
			errno = EINTR;
			return -1;
		}
		got = read(STDIN_FILENO, &byte, 1);
		if (got <= 0)
			return got < 0 ? -1 : 0;
		/* The byte for a Ctrl-D that was typed while a cell ran; libedit would take it
		 * for the quoting key. */
		if (byte == '\0')
			continue;
		n = mbrtowc(to, &byte, 1, &input->decoding);
		if (n == (size_t)-1) {
			memset(&input->decoding, 0, sizeof(input->decoding));
			*to = L'?';
		}
	} while (n == (size_t)-2);
	return 1;
}

static char *
give_prompt(EditLine *edit)
{
	struct repl_input *input;

	el_get(edit, EL_CLIENTDATA, &input);
	return (char *)(uintptr_t)input->prompt;
}

/* Makes the directory. Its parent must exist, except for the default one, which is made too. */
static void
find_history(struct repl_input *input)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char directory[PATH_MAX - 16];
	int n;

	if (state && *state == '/') {
		n = snprintf(directory, sizeof(directory), "%s", state);
	} else if (home && *home == '/') {
		n = snprintf(directory, sizeof(directory), "%s/.local", home);
		(void)mkdir(directory, 0700);
		n = snprintf(directory, sizeof(directory), "%s/.local/state", home);
	} else {
		return;
	}
	if (n < 0 || (size_t)n >= sizeof(directory) - sizeof("/mcp-python"))
		return;
	(void)mkdir(directory, 0700);
	strcat(directory, "/mcp-python");
	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		return;
	snprintf(input->path, sizeof(input->path), "%s/history", directory);
}

static void
open_terminal(struct repl_input *input)
{
	/* Typed text is sent as UTF-8, so it must be read as UTF-8. */
	if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
	input->edit = el_init("mcp-python", stdin, stdout, stderr);
	input->history = history_init();
	if (!input->edit || !input->history)
		abort();
	find_history(input);
	history(input->history, &input->event, H_SETSIZE, HISTORY_MAX);
	history(input->history, &input->event, H_SETUNIQUE, 1);
	if (*input->path)
		history(input->history, &input->event, H_LOAD, input->path);
	el_set(input->edit, EL_CLIENTDATA, input);
	el_set(input->edit, EL_EDITOR, "emacs");
	el_set(input->edit, EL_SIGNAL, 1);
	el_set(input->edit, EL_PROMPT, give_prompt);
	el_set(input->edit, EL_HIST, history, input->history);
	el_set(input->edit, EL_GETCFN, read_character);
	el_set(input->edit, EL_BIND, "-s", "\t", "    ", NULL);
	el_set(input->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
	/* ~/.editrc overrides these. */
	(void)el_source(input->edit, NULL);
}

static int
type_line(struct repl_input *input, const char *prompt, const char **line_r, size_t *len_r)
{
	const char *line;
	int n = 0;

	input->prompt = prompt;
	memset(&input->decoding, 0, sizeof(input->decoding));
	/* Before the prompt appears, so that an answer to it is not taken for an earlier line. */
	el_set(input->edit, EL_PREP_TERM, 1);
	line = el_gets(input->edit, &n);
	if (*input->interrupted) {
		el_reset(input->edit);
		return -EINTR;
	}
	if (!line || n <= 0)
		return 1;
	*line_r = line;
	*len_r = (size_t)n - (line[n - 1] == '\n');
	return 0;
}

/* ---- anything else ---- */

static int
read_more(struct repl_input *input)
{
	ssize_t n;
	int r;

	if (input->at > 0) {
		memmove(input->bytes, input->bytes + input->at, input->len - input->at);
		input->len -= input->at;
		input->scanned -= input->at;
		input->at = 0;
	}
	if (input->room - input->len < LINE_PIECE) {
		input->room = (input->room + LINE_PIECE) * 2;
		input->bytes = realloc(input->bytes, input->room);
		if (!input->bytes)
			abort();
	}
	r = wait_readable(input);
	if (r < 0)
		return r;
	n = read(STDIN_FILENO, input->bytes + input->len, LINE_PIECE);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	input->len += (size_t)n;
	input->ended = n == 0;
	return 0;
}

static int
read_line(struct repl_input *input, const char **line_r, size_t *len_r)
{
	char *end;
	int r;

	for (;;) {
		end = input->scanned < input->len
			      ? memchr(input->bytes + input->scanned, '\n',
				       input->len - input->scanned)
			      : NULL;
		if (end || input->ended)
			break;
		input->scanned = input->len;
		r = read_more(input);
		if (r < 0)
			return r;
	}
	if (!end && input->at == input->len)
		return 1;
	*line_r = input->bytes + input->at;
	*len_r = (end ? (size_t)(end - input->bytes) : input->len) - input->at;
	input->at += *len_r + (end != NULL);
	input->scanned = input->at;
	return 0;
}

/* ---- both ---- */

struct repl_input *
repl_input_new(const sigset_t *mask, const volatile sig_atomic_t *interrupted)
{
	struct repl_input *input = calloc(1, sizeof(*input));

	if (!input)
		abort();
	input->mask = mask;
	input->interrupted = interrupted;
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		open_terminal(input);
	return input;
}

void
repl_input_free(struct repl_input *input)
{
	mode_t old;

	if (!input)
		return;
	if (input->edit) {
		el_end(input->edit);
		old = umask(077); /* the history is private */
		if (*input->path)
			history(input->history, &input->event, H_SAVE, input->path);
		umask(old);
		history_end(input->history);
	}
	free(input->bytes);
	free(input);
}

bool
repl_input_is_terminal(const struct repl_input *input)
{
	return input->edit != NULL;
}

int
repl_input_line(struct repl_input *input, const char *prompt, const char **line_r,
		size_t *len_r)
{
	return input->edit ? type_line(input, prompt, line_r, len_r)
			   : read_line(input, line_r, len_r);
}

void
repl_input_remember(struct repl_input *input, const char *line)
{
	if (input->edit && *line)
		history(input->history, &input->event, H_ENTER, line);
}
