/* Runs in: mcp-python repl.   Owns: the session that it began.
 * Reads cells from standard input and runs them one after the other in a session of the tool
 * run_repl. Ctrl-C cancels the running cell or its prompt. */
#include "client/repl.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/call.h"
#include "client/cell.h"
#include "client/exits.h"
#include "client/inputs.h"
#include "client/options.h"
#include "client/prompt.h"
#include "client/repl_input.h"
#include "client/say.h"
#include "client/service.h"
#include "client/show.h"
#include "client/text.h"
#include "client/verdict.h"

#define EXIT_INTERRUPTED 130 /* 128 + SIGINT */

struct text {
	char *bytes;
	size_t len, room;
};

struct repl {
	const struct options *options;
	struct repl_input *input;
	struct call_channel channel;
	struct prompt prompt;
	int id;
	char *session;	/* NULL: the next cell begins one */
	bool began;	/* by this program, which closes it at the end */
	bool ended;	/* by the code, or because it cannot continue */
	int code;	/* the exit code */
	struct text cell, held; /* held: a line that belongs to the next cell */
	bool holds;
};

static volatile sig_atomic_t interrupted;

static void
on_interrupt(int signal_number)
{
	(void)signal_number;
	interrupted = 1;
}

/* SIGINT is delivered only while the program waits. */
static void
catch_interrupt(sigset_t *waiting_r)
{
	struct sigaction action = {.sa_handler = on_interrupt};
	sigset_t block;

	sigemptyset(&block);
	sigaddset(&block, SIGINT);
	sigprocmask(SIG_BLOCK, &block, waiting_r);
	sigdelset(waiting_r, SIGINT);
	sigaction(SIGINT, &action, NULL);
}

static void
append(struct text *text, const char *bytes, size_t len)
{
	if (text->room - text->len < len + 1) {
		text->room = (text->len + len + 1) * 2;
		text->bytes = realloc(text->bytes, text->room);
		if (!text->bytes)
			abort();
	}
	if (len > 0)
		memcpy(text->bytes + text->len, bytes, len);
	text->len += len;
	text->bytes[text->len] = '\0';
}

static bool
is_typed(const struct repl *repl)
{
	return repl_input_is_terminal(repl->input);
}

/* ---- showing an answer ---- */

static void
show_text(const char *text, size_t len, bool ends_line)
{
	(void)show_bytes(STDOUT_FILENO, text, len);
	if (ends_line && len > 0 && text[len - 1] != '\n')
		(void)show_bytes(STDOUT_FILENO, "\n", 1);
}

/* Shows displayed texts; for pictures and the like it says that they exist. */
static void
show_displays(const struct reply *answer)
{
	const json_t *content = json_object_get(answer->result, "content");
	const json_t *block;
	size_t i, len;

	json_array_foreach(content, i, block) {
		const char *kind = reply_string(block, "type", NULL);
		const char *text = reply_string(block, "text", &len);

		if (i == 0 || !kind)
			continue;
		if (strcmp(kind, "text") == 0 && text)
			show_text(text, len, true);
		else if (strcmp(kind, "image") == 0)
			say("an image (%s) is not shown here",
			    reply_string(block, "mimeType", NULL));
	}
}

static void
show_result(const json_t *outcome)
{
	size_t len;
	const char *repr =
		reply_string(json_object_get(outcome, "result"), "repr", &len);

	if (repr)
		show_text(repr, len, true);
}

static void
show_state(const json_t *outcome)
{
	const char *state = reply_string(outcome, "state", NULL);
	const char *text = reply_string(outcome, "state_text", NULL);
	const json_t *note;
	size_t i;

	if (text && (!state || strcmp(state, "kept") != 0))
		say("%s", text);
	json_array_foreach(json_object_get(outcome, "not_carried"), i, note)
		say("%s", json_string_value(note) ? json_string_value(note) : "");
}

/* Follows the session, which may have changed or ended. */
static void
follow_session(struct repl *repl, const json_t *outcome)
{
	const char *session = reply_string(outcome, "session", NULL);

	if (repl->session && session && strcmp(repl->session, session) == 0)
		return;
	free(repl->session);
	repl->session = session ? strdup(session) : NULL;
	if (session)
		repl->began = true;
}

/* sys.exit() ends a REPL, too. */
static void
note_exit(struct repl *repl, const json_t *outcome)
{
	const char *type =
		reply_string(json_object_get(outcome, "error"), "type", NULL);
	const char *state = reply_string(outcome, "state", NULL);
	bool is_ok = verdict_exit_code(outcome) == 0;

	/* os._exit() reports the same, but was undone. */
	if (type && strcmp(type, "SystemExit") == 0 && state && strcmp(state, "kept") == 0) {
		repl->ended = true;
		repl->code = verdict_exit_code(outcome);
	} else if (!is_ok && !is_typed(repl)) {
		repl->code = EXIT_FAILURE;
	}
}

static void
show_answer(struct repl *repl, const struct shown *shown, const struct reply *answer)
{
	const json_t *outcome = answer->outcome;
	size_t len = 0;
	const char *out = reply_string(outcome, "stdout", &len);

	(void)show_rest(&shown[REPLY_STDOUT], outcome, "stdout");
	/* The prompt must begin a line. */
	if (is_typed(repl) && len > repl->prompt.out_seen && out[len - 1] != '\n')
		(void)show_bytes(STDOUT_FILENO, "\n", 1);
	(void)show_rest(&shown[REPLY_STDERR], outcome, "stderr");
	(void)show_traceback(outcome);
	show_result(outcome);
	show_displays(answer);
	verdict_say(outcome);
	show_state(outcome);
	follow_session(repl, outcome);
	note_exit(repl, outcome);
}

/* ---- calls ---- */

static json_t *
make_arguments(const struct repl *repl)
{
	json_t *arguments = json_object();

	if (repl->session)
		call_set(arguments, "session", json_string(repl->session));
	call_add_limits(arguments, repl->options);
	return arguments;
}

static void
send_cancelled(struct repl *repl, int id)
{
	json_t *message = json_pack("{s:s, s:s, s:{s:i, s:s}}", "jsonrpc", "2.0", "method",
				    "notifications/cancelled", "params", "requestId", id,
				    "reason", "interrupted");

	if (!message)
		abort();
	call_send(&repl->channel, message);
}

/* Waits for the answer to the last call, and shows it. 0, or -errno: there is none, or it is a
 * refusal; the REPL has ended then, unless it is -EINTR. */
static int
take_answer(struct repl *repl)
{
	struct shown shown[REPLY_STREAMS] = {
		[REPLY_STDOUT] = {.fd = STDOUT_FILENO},
		[REPLY_STDERR] = {.fd = STDERR_FILENO},
	};
	struct reply answer;
	int r;

	prompt_watch(&repl->prompt, &shown[REPLY_STDOUT]);
	r = call_wait(&repl->channel, repl->id, show_piece, shown, &answer);
	if (r == 0 && answer.kind == REPLY_REFUSED) {
		say("the service refused this: %.*s", (int)answer.text_len, answer.text);
		repl->ended = true;
		repl->code = EX_PROTOCOL;
		reply_free(&answer);
		r = -EPROTO;
	} else if (r == 0) {
		show_answer(repl, shown, &answer);
		reply_free(&answer);
	} else if (r != -EINTR) {
		repl->ended = true;
		repl->code = call_failed(r);
	}
	prompt_watch(&repl->prompt, NULL);
	show_done(shown);
	return r;
}

/* A cancelled call has no answer, so an empty cell queries the session afterwards. */
static void
cancel_cell(struct repl *repl)
{
	interrupted = 0;
	send_cancelled(repl, repl->id);
	(void)show_bytes(STDERR_FILENO, "\nKeyboardInterrupt\n", 19);
	call_send(&repl->channel,
		  call_message(&repl->channel, ++repl->id, "run_repl", make_arguments(repl), true));
	if (take_answer(repl) == -EINTR) {
		say("interrupted again: the session may still be busy");
		repl->ended = true;
	}
	if (!is_typed(repl) || repl->ended) {
		repl->ended = true;
		repl->code = EXIT_INTERRUPTED;
	}
}

/* Takes ownership of arguments. */
static void
call(struct repl *repl, json_t *arguments)
{
	call_send(&repl->channel,
		  call_message(&repl->channel, ++repl->id, "run_repl", arguments, true));
	if (take_answer(repl) == -EINTR)
		cancel_cell(repl);
}

static void
run_cell(struct repl *repl)
{
	struct text_position where;
	json_t *arguments;

	if (!text_check(repl->cell.bytes, repl->cell.len, true, &where)) {
		say("that is not UTF-8 text");
		repl->code = EX_DATAERR;
		return;
	}
	arguments = make_arguments(repl);
	call_set(arguments, "code", json_stringn(repl->cell.bytes, repl->cell.len));
	call(repl, arguments);
}

/* ---- commands ---- */

static void
show_help(void)
{
	static const char help[] =
		"Python, a cell at a time; an empty line ends a block. Ctrl-C cancels the cell "
		"that\nruns, Ctrl-D ends. What begins with %% is for mcp-python:\n"
		"  %checkpoint NAME   keep the state under a name\n"
		"  %restore NAME      go back to it\n"
		"  %reset             forget everything\n"
		"  %session           say the session's handle, for --session\n";

	(void)show_bytes(STDOUT_FILENO, help, sizeof(help) - 1);
}

static void
run_command_line(struct repl *repl, char *line)
{
	char *name = strtok(line + 1, " \t\r"), *word = strtok(NULL, " \t\r");
	json_t *arguments;

	if (!name || strcmp(name, "help") == 0) {
		show_help();
		return;
	}
	if (strcmp(name, "session") == 0) {
		if (repl->session)
			show_text(repl->session, strlen(repl->session), true);
		return;
	}
	arguments = make_arguments(repl);
	if (strcmp(name, "reset") == 0) {
		call_set(arguments, "reset", json_true());
	} else if (word && text_check(word, strlen(word), true, &(struct text_position){0}) &&
		   (strcmp(name, "checkpoint") == 0 || strcmp(name, "restore") == 0)) {
		call_set(arguments, name, json_string(word));
	} else {
		say("there is no such command, or its NAME is missing; see %%help");
		json_decref(arguments);
		return;
	}
	call(repl, arguments);
}

/* ---- reading cells ---- */

static bool
is_blank(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r\f", line[i]) || !line[i])
			return false;
	return true;
}

static int
next_line(struct repl *repl, const char **line_r, size_t *len_r)
{
	if (repl->holds) {
		repl->holds = false;
		*line_r = repl->held.bytes;
		*len_r = repl->held.len;
		return 0;
	}
	return repl_input_line(repl->input, repl->cell.len > 0 ? "... " : ">>> ", line_r,
			       len_r);
}

static void
hold(struct repl *repl, const char *line, size_t len)
{
	repl->held.len = 0;
	append(&repl->held, line, len);
	repl->holds = true;
}

/* Does the cell end before this line? Only without a user who ends it with an empty line. */
static bool
is_next(const struct repl *repl, const struct cell *cell, const char *line, size_t len)
{
	return !is_typed(repl) && cell_ends_before(cell, line, len);
}

static bool
is_over(const struct repl *repl, const struct cell *cell, const char *line, size_t len)
{
	enum cell_state state = cell_state(cell);

	if (!is_typed(repl))
		return false;
	return state == CELL_WHOLE || (state == CELL_BLOCK && is_blank(line, len));
}

/* Fills repl->cell. 0; 1: there is no more input; or -errno. */
static int
read_cell(struct repl *repl)
{
	struct cell cell = {0};
	const char *line;
	size_t len;
	int r;

	repl->cell.len = 0;
	while ((r = next_line(repl, &line, &len)) == 0) {
		if (is_next(repl, &cell, line, len) ||
		    (cell.any && cell_state(&cell) != CELL_OPEN && !is_typed(repl) &&
		     len > 0 && line[0] == '%')) {
			hold(repl, line, len);
			return 0;
		}
		cell_feed(&cell, line, len);
		append(&repl->cell, line, len);
		append(&repl->cell, "\n", 1);
		if (!cell.any && is_typed(repl))
			repl->cell.len = 0;
		if ((len > 0 && line[0] == '%' && repl->cell.len == len + 1) ||
		    is_over(repl, &cell, line, len))
			return 0;
	}
	return r == 1 && cell.any ? 0 : r;
}

static void
remember(struct repl *repl)
{
	char *at = repl->cell.bytes, *end;

	for (; is_typed(repl) && *at; at = end + 1) {
		end = strchr(at, '\n');
		*end = '\0';
		repl_input_remember(repl->input, at);
		*end = '\n';
	}
}

static void
work(struct repl *repl)
{
	while (!repl->ended) {
		int r = read_cell(repl);

		if (r == -EINTR && is_typed(repl)) {
			interrupted = 0;
			(void)show_bytes(STDERR_FILENO, "\nKeyboardInterrupt\n", 19);
			continue;
		}
		if (r != 0) {
			if (r < 0)
				repl->code = r == -EINTR ? EXIT_INTERRUPTED : EX_IOERR;
			return;
		}
		remember(repl);
		if (repl->cell.bytes[0] == '%') {
			repl->cell.bytes[repl->cell.len - 1] = '\0';
			run_command_line(repl, repl->cell.bytes);
		} else {
			run_cell(repl);
		}
	}
}

/* ---- begin and end ---- */

/* The session begins before the first cell, so that the cell can be cancelled. */
static bool
begin(struct repl *repl)
{
	json_t *arguments = make_arguments(repl);

	repl->code = inputs_add(arguments, repl->options);
	if (repl->code) {
		json_decref(arguments);
		repl->ended = true;
		return false;
	}
	if (!repl->session)
		call_add_packages(arguments, repl->options);
	call(repl, arguments);
	if (!repl->ended && !repl->session) {
		repl->ended = true;
		repl->code = EX_UNAVAILABLE;
	}
	if (!repl->ended && is_typed(repl))
		printf("mcp-python %s, session %s\n%%help tells more, Ctrl-D ends.\n",
		       PACKAGE_VERSION, repl->session);
	fflush(stdout);
	return !repl->ended;
}

static void
end(struct repl *repl)
{
	json_t *arguments;
	struct reply answer;

	if (is_typed(repl) && !repl->ended)
		(void)show_bytes(STDOUT_FILENO, "\n", 1);
	if (!repl->session || !repl->began)
		return;
	if (repl->options->keep) {
		say("go on with: mcp-python repl --session %s", repl->session);
		return;
	}
	if (repl->code == EX_UNAVAILABLE || repl->code == EX_PROTOCOL)
		return;
	arguments = json_object();
	call_set(arguments, "session", json_string(repl->session));
	call_set(arguments, "close", json_true());
	call_send(&repl->channel,
		  call_message(&repl->channel, ++repl->id, "run_repl", arguments, false));
	if (call_wait(&repl->channel, repl->id, show_piece, NULL, &answer) == 0)
		reply_free(&answer);
}

int
repl_command(const struct options *options)
{
	struct repl repl = {.options = options};
	struct service service;
	sigset_t waiting;

	catch_interrupt(&waiting);
	if (service_open(options, &service) < 0)
		return EX_UNAVAILABLE;
	repl.channel.fd = service.fd;
	repl.channel.mask = &waiting;
	repl.channel.interrupted = &interrupted;
	if (options->session)
		repl.session = strdup(options->session);
	repl.input = repl_input_new(&waiting, &interrupted);
	if (is_typed(&repl) && prompt_has_terminal()) {
		repl.channel.prompt = &repl.prompt;
		call_greet(&repl.channel);
	}
	if (begin(&repl))
		work(&repl);
	end(&repl);
	repl_input_free(repl.input);
	service_close(&service);
	call_channel_done(&repl.channel);
	free(repl.cell.bytes);
	free(repl.held.bytes);
	free(repl.session);
	return repl.code;
}
