/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python repl.   Owns: the terminal while a line is typed, and the file of the
 * history, $XDG_STATE_HOME/mcp-python/history (by default below ~/.local/state). */
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

#include "base/own.h"
#include "base/userdir.h"
#include "base/xalloc.h"

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
	int error; /* of the last character: -errno */
	char *(*complete)(void *arg, const char *word);
	void *complete_arg;
	bool brackets;	/* the terminal marks pasted text */
	char *paste;	/* its remaining part; NULL: none */
	bool is_pasted;
	/* For other input: bytes that were read and not yet returned. */
	char *bytes; /* of a terminal: the line that was pasted */
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
		input->error = wait_readable(input);
		if (input->error < 0) {
			errno = EINTR;
			return -1;
		}
		got = read(STDIN_FILENO, &byte, 1);
		if (got < 0)
			input->error = -errno;
		if (got <= 0)
			return (int)got;
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

/* ---- paste ---- */

#define PASTE_MAX ((size_t)4 << 20)
#define PASTE_BEGINS "\033[200~"
#define PASTE_ENDS "\033[201~"

/* Reads to the end of the pasted text. Returns it, malloc'd, without control characters except tabs
 * and line ends. */
static char *
read_paste(const struct repl_input *input)
{
	size_t end = strlen(PASTE_ENDS), len = 0, room = 4096;
	char *text = malloc(room);

	while (text && len < PASTE_MAX) {
		char byte;

		if (wait_readable(input) < 0 || read(STDIN_FILENO, &byte, 1) <= 0)
			break;
		if (len + 2 > room)
			text = realloc(text, room *= 2);
		if (!text)
			break;
		text[len++] = byte == '\r' ? '\n' : byte;
		if (len >= end && memcmp(text + len - end, PASTE_ENDS, end) == 0) {
			len -= end;
			break;
		}
	}
	if (!text)
		xalloc_fail(0);
	text[len] = '\0';
	return text;
}

static void
drop_controls(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++)
		if (*at == '\n' || *at == '\t' || ((unsigned char)*at >= ' ' && *at != 0x7f))
			*to++ = *at;
	*to = '\0';
}

/* Pasted text of one line is added to the typed line. If there are more lines, type_line takes one
 * after the other, and the typed text is the beginning of the first. */
static unsigned char
on_paste(EditLine *edit, int)
{
	const LineInfo *line;
	struct repl_input *input;
	char *text;

	el_get(edit, EL_CLIENTDATA, &input);
	text = read_paste(input);
	drop_controls(text);
	if (!strchr(text, '\n')) {
		if (*text)
			el_insertstr(edit, text);
		free(text);
		return CC_REFRESH;
	}
	free(input->paste);
	line = el_line(edit);
	if (asprintf(&input->paste, "%.*s%s", (int)(line->lastchar - line->buffer), line->buffer,
		     text) < 0)
		xalloc_fail(0);
	free(text);
	return CC_NEWLINE;
}

/* Shows the next complete pasted line as if it had been typed. False: the rest is not a complete
 * line, and is put before the cursor. */
static bool
next_pasted(struct repl_input *input, const char *prompt, const char **line_r, size_t *len_r)
{
	char *end = input->paste ? strchr(input->paste, '\n') : NULL;
	char *line = input->paste;

	if (!line)
		return false;
	if (!end) {
		for (char *at = line; *at; at++)
			if (*at == '\t')
				*at = ' ';
		if (*line)
			el_push(input->edit, line);
		free(line);
		input->paste = NULL;
		return false;
	}
	*end = '\0';
	input->paste = xstrdup(end + 1);
	printf("\r%s%s\n", prompt, line);
	fflush(stdout);
	free(input->bytes);
	input->bytes = line;
	*line_r = line;
	*len_r = strlen(line);
	input->is_pasted = true;
	return true;
}

/* ---- completion ---- */

#define CHOICES_SHOWN 60

static bool
is_word_byte(char c)
{
	return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	       (c >= 'a' && c <= 'z') || (unsigned char)c >= 0x80;
}

/* A name that continues the word, perhaps with "(" or ":" behind it; else it is not shown. */
static bool
continues(const char *choice, const char *word)
{
	size_t len = strlen(word);

	return strncmp(choice, word, len) == 0 &&
	       strspn(choice + len, "_.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			      "abcdefghijklmnopqrstuvwxyz(): ") == strlen(choice + len);
}

static size_t
common_length(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

static void
list_choices(char *const *choice, size_t n)
{
	putchar('\n');
	for (size_t i = 0; i < n && i < CHOICES_SHOWN; i++)
		printf("%s%s", choice[i], i + 1 < n && i + 1 < CHOICES_SHOWN ? "  " : "\n");
	if (n > CHOICES_SHOWN)
		printf("... and %zu more\n", n - CHOICES_SHOWN);
	fflush(stdout);
}

/* text: the names, one per line. Inserts what all of them have in common. */
static unsigned char
take_choices(EditLine *edit, const char *word, char *text)
{
	char *choice[256], *line;
	size_t n = 0, common = 0;

	while ((line = strsep(&text, "\n")) && n < sizeof(choice) / sizeof(*choice)) {
		if (!*line || !continues(line, word))
			continue;
		common = n == 0 ? strlen(line) : common_length(choice[0], line) < common
			? common_length(choice[0], line) : common;
		choice[n++] = line;
	}
	if (n == 0)
		return CC_REFRESH_BEEP;
	if (common > strlen(word)) {
		line = strndup(choice[0] + strlen(word), common - strlen(word));
		if (line)
			el_insertstr(edit, line);
		free(line);
		return CC_REFRESH;
	}
	if (n == 1)
		return CC_NORM;
	list_choices(choice, n);
	return CC_REDISPLAY;
}

static unsigned char
on_tab(EditLine *edit, int)
{
	const LineInfo *line = el_line(edit);
	const char *start = line->cursor;
	struct repl_input *input;
	unsigned char r = CC_ERROR;
	char *word, *text;

	el_get(edit, EL_CLIENTDATA, &input);
	while (start > line->buffer && is_word_byte(start[-1]))
		start--;
	if (start == line->buffer + 1 && *line->buffer == '%')
		start--;		/* a command */
	if (start == line->cursor) {
		el_insertstr(edit, "    ");
		return CC_REFRESH;
	}
	word = strndup(start, (size_t)(line->cursor - start));
	text = word && input->complete ? input->complete(input->complete_arg, word) : NULL;
	if (text)
		r = take_choices(edit, word, text);
	free(text);
	free(word);
	return r;
}

/* ---- the editor ---- */

static char *
give_prompt(EditLine *edit)
{
	struct repl_input *input;

	el_get(edit, EL_CLIENTDATA, &input);
	return (char *)(uintptr_t)input->prompt;
}

/* Makes its directory. */
static void
find_history(struct repl_input *input)
{
	own_mem char *directory = userdir("XDG_STATE_HOME", ".local/state", "mcp-python");
	int n;

	if (!directory || userdir_make(directory, 0700) < 0)
		return;
	n = snprintf(input->path, sizeof(input->path), "%s/history", directory);
	if (n < 0 || (size_t)n >= sizeof(input->path))
		*input->path = '\0';
}

static void
open_terminal(struct repl_input *input)
{
	/* Typed text is sent as UTF-8, so it must be read as UTF-8. */
	if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
	input->edit = el_init("mcp-python", stdin, stdout, stderr);
	input->history = history_init();
	xassert(input->edit && input->history);
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
	el_set(input->edit, EL_ADDFN, "complete-name", "Complete a Python name", on_tab);
	el_set(input->edit, EL_BIND, "\t", "complete-name", NULL);
	el_set(input->edit, EL_ADDFN, "take-paste", "Take pasted text", on_paste);
	el_set(input->edit, EL_BIND, PASTE_BEGINS, "take-paste", NULL);
	input->brackets = getenv("TERM") && strcmp(getenv("TERM"), "dumb") != 0;
	el_set(input->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
	/* ~/.editrc overrides these. */
	(void)el_source(input->edit, NULL);
}

/* Pasted text is marked only while a line is typed. */
static void
set_brackets(const struct repl_input *input, bool on)
{
	if (!input->brackets)
		return;
	fputs(on ? "\033[?2004h" : "\033[?2004l", stdout);
	fflush(stdout);
}

static int
type_line(struct repl_input *input, const char *prompt, const char **line_r, size_t *len_r)
{
	const char *line;
	int n = 0;

	input->is_pasted = false;
	if (next_pasted(input, prompt, line_r, len_r))
		return 0;
	input->prompt = prompt;
	memset(&input->decoding, 0, sizeof(input->decoding));
	input->error = 0;
	/* Before the prompt appears, so that an answer to it is not taken for an earlier line. */
	el_set(input->edit, EL_PREP_TERM, 1);
	set_brackets(input, true);
	line = el_gets(input->edit, &n);
	set_brackets(input, false);
	if (*input->interrupted) {
		el_reset(input->edit);
		free(input->paste);
		input->paste = NULL;
		return -EINTR;
	}
	if (next_pasted(input, prompt, line_r, len_r))
		return 0;
	if (!line || n <= 0)
		return input->error < 0 ? input->error : 1;
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
		input->bytes = xrealloc(input->bytes, input->room);
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
repl_input_read_line(struct repl_input *input, const char **line_r, size_t *len_r)
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
	struct repl_input *input = xcalloc(1, sizeof(*input));

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
	free(input->paste);
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
			   : repl_input_read_line(input, line_r, len_r);
}

bool
repl_input_is_pasted(const struct repl_input *input)
{
	return input->is_pasted;
}

bool
repl_input_has_paste(const struct repl_input *input)
{
	return input->paste && *input->paste;
}

void
repl_input_complete(struct repl_input *input, char *(*complete)(void *arg, const char *word),
		    void *arg)
{
	input->complete = complete;
	input->complete_arg = arg;
}

void
repl_input_remember(struct repl_input *input, const char *line)
{
	if (input->edit && *line)
		history(input->history, &input->event, H_ENTER, line);
}
