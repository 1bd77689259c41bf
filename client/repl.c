/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python repl.   Owns: the session that it began.
 * Reads cells from standard input and runs them one after the other in a session of the tool
 * run_repl. Ctrl-C cancels the running cell or its prompt. */
#include "client/repl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "client/cell.h"
#include "client/exits.h"
#include "client/inputs.h"
#include "client/options.h"
#include "client/repl_input.h"
#include "client/repl_parts.h"
#include "client/say.h"
#include "client/service.h"
#include "client/show.h"
#include "client/text.h"
#include "client/verdict.h"

static volatile sig_atomic_t interrupted;

static void
on_interrupt(int)
{
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
repl_append(struct text *text, const char *bytes, size_t len)
{
	if (text->room - text->len < len + 1) {
		text->room = (text->len + len + 1) * 2;
		text->bytes = xrealloc(text->bytes, text->room);
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

void
repl_show_line(const char *text, size_t len)
{
	(void)show_bytes(STDOUT_FILENO, text, len);
	if (len > 0 && text[len - 1] != '\n')
		(void)show_bytes(STDOUT_FILENO, "\n", 1);
}

static char *
run_in_copy(void *arg, const char *code)
{
	return repl_look(arg, code);
}

/* Shows displayed texts and pictures. */
static void
show_displays(struct repl *repl, const struct reply *answer)
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
			repl_show_line(text, len);
		else if (strcmp(kind, "image") == 0)
			pictures_show(&repl->pictures, block, run_in_copy, repl);
	}
}

static void
show_result(const json_t *outcome)
{
	size_t len;
	const char *repr =
		reply_string(json_object_get(outcome, "result"), "repr", &len);

	if (repr)
		repl_show_line(repr, len);
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
	repl->verdict = verdict_exit_code(outcome);
	if (json_is_true(json_object_get(outcome, "exited"))) {
		repl->ended = true;
		repl->code = repl->verdict;
	} else if (repl->verdict && !is_typed(repl)) {
		repl->code = EXIT_FAILURE;
	}
}

/* Notes the files and checkpoints of an answer: %save needs the uris of the files; %checkpoint and
 * %restore without a name list the checkpoints. */
static void
note_things(struct repl *repl, const json_t *outcome)
{
	const json_t *file;
	size_t i;

	if (!repl->files)
		repl->files = json_object();
	json_array_foreach(json_object_get(outcome, "files"), i, file) {
		const char *path = reply_string(file, "path", NULL);

		if (path)
			json_object_set(repl->files, path, json_object_get(file, "uri"));
	}
	json_decref(repl->checkpoints);
	repl->checkpoints = json_incref(json_object_get(outcome, "checkpoints"));
}

/* The prompt must begin a line. */
static void
repl_end_line(const struct repl *repl, const json_t *outcome, const char *name, size_t seen, int fd)
{
	size_t len = 0;
	const char *text = reply_string(outcome, name, &len);

	if (is_typed(repl) && len > seen && text[len - 1] != '\n')
		(void)show_bytes(fd, "\n", 1);
}

/* Output of threads and processes of earlier cells since the last answer. */
static void
show_background(const struct repl *repl, const json_t *outcome, const char *name, int fd)
{
	size_t len;
	const char *text = reply_string(outcome, name, &len);

	if (text)
		(void)show_bytes(fd, text, len);
	repl_end_line(repl, outcome, name, 0, fd);
}

static void
show_answer(struct repl *repl, const struct shown *shown, const struct reply *answer)
{
	const json_t *outcome = answer->outcome;

	(void)show_rest(&shown[REPLY_STDOUT], outcome, "stdout");
	repl_end_line(repl, outcome, "stdout", repl->prompt.out_seen, STDOUT_FILENO);
	(void)show_rest(&shown[REPLY_STDERR], outcome, "stderr");
	repl_end_line(repl, outcome, "stderr", 0, STDERR_FILENO);
	show_background(repl, outcome, "background_stdout", STDOUT_FILENO);
	show_background(repl, outcome, "background_stderr", STDERR_FILENO);
	(void)show_traceback(outcome);
	show_result(outcome);
	show_displays(repl, answer);
	verdict_say(outcome);
	show_state(outcome);
	follow_session(repl, outcome);
	note_exit(repl, outcome);
	note_things(repl, outcome);
}

/* ---- calls ---- */

json_t *
repl_arguments(const struct repl *repl)
{
	json_t *arguments = json_object();

	if (repl->session)
		call_set(arguments, "session", json_string(repl->session));
	call_add_limits(arguments, repl->options);
	return arguments;
}

static void
repl_send_cancelled(struct repl *repl, int id)
{
	json_t *message = json_pack("{s:s, s:s, s:{s:i, s:s}}", "jsonrpc", "2.0", "method",
				    "notifications/cancelled", "params", "requestId", id,
				    "reason", "interrupted");

	if (!message)
		xalloc_fail(0);
	call_send(&repl->channel, message);
}

/* Waits for the answer to the last call, and shows it. 0, or -errno: there is none, or it is a
 * refusal; the REPL has ended then, unless it is -EINTR. */
static int
repl_take_answer(struct repl *repl)
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
	repl_send_cancelled(repl, repl->id);
	(void)show_bytes(STDERR_FILENO, "\nKeyboardInterrupt\n", 19);
	call_send(&repl->channel,
		  call_message(&repl->channel, ++repl->id, "run_repl", repl_arguments(repl), true));
	if (repl_take_answer(repl) == -EINTR) {
		say("interrupted again: the session may still be busy");
		repl->ended = true;
	}
	if (!is_typed(repl) || repl->ended) {
		repl->ended = true;
		repl->code = EXIT_INTERRUPTED;
	}
}

void
repl_call(struct repl *repl, json_t *arguments)
{
	call_send(&repl->channel,
		  call_message(&repl->channel, ++repl->id, "run_repl", arguments, true));
	if (repl_take_answer(repl) == -EINTR)
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
	arguments = repl_arguments(repl);
	call_set(arguments, "code", json_stringn(repl->cell.bytes, repl->cell.len));
	repl_call(repl, arguments);
}

/* ---- reading cells ---- */

static bool
repl_is_blank(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r\f", line[i]) || !line[i])
			return false;
	return true;
}

static int
repl_next_line(struct repl *repl, const char **line_r, size_t *len_r)
{
	int r;

	if (repl->holds) {
		repl->holds = false;
		repl->pasted = repl->held_is_pasted;
		*line_r = repl->held.bytes;
		*len_r = repl->held.len;
		return 0;
	}
	r = repl_input_line(repl->input, repl->cell.len > 0 ? "... " : ">>> ", line_r, len_r);
	repl->pasted = repl_input_is_pasted(repl->input);
	return r;
}

static void
hold(struct repl *repl, const char *line, size_t len)
{
	repl->held.len = 0;
	repl_append(&repl->held, line, len);
	repl->holds = true;
	repl->held_is_pasted = repl->pasted;
}

/* Is this line typed by a user, who ends a block with an empty line? */
static bool
ends_blocks(const struct repl *repl)
{
	return is_typed(repl) && !repl->pasted;
}

/* Does the cell end before this line? Only without a user who ends it with an empty line. */
static bool
is_next(const struct repl *repl, const struct cell *cell, const char *line, size_t len)
{
	return !ends_blocks(repl) && cell_ends_before(cell, line, len);
}

/* A cell that is another program's text, such as that of %%bash, ends with an empty line. */
static bool
is_other_text(const struct repl *repl)
{
	return repl->cell.len > 1 && strncmp(repl->cell.bytes, "%%", 2) == 0;
}

static bool
is_command(const struct repl *repl, size_t len)
{
	return repl->cell.bytes[0] == '%' && repl->cell.len == len + 1 && !is_other_text(repl);
}

static bool
repl_is_over(const struct repl *repl, const struct cell *cell, const char *line, size_t len)
{
	enum cell_state state = cell_state(cell);

	if (is_command(repl, len))
		return true;
	if (is_other_text(repl))
		return repl_is_blank(line, len);
	if (!ends_blocks(repl))
		return repl->pasted && state == CELL_WHOLE && !repl_input_has_paste(repl->input);
	return state == CELL_WHOLE || (state == CELL_BLOCK && repl_is_blank(line, len));
}

/* Does this line of unattended input begin a command? */
static bool
begins_command(const struct repl *repl, const struct cell *cell, const char *line, size_t len)
{
	return cell->any && cell_state(cell) != CELL_OPEN && !ends_blocks(repl) &&
	       !is_other_text(repl) && len > 0 && line[0] == '%';
}

/* Fills repl->cell. 0; 1: the input has ended; or -errno. */
static int
read_cell(struct repl *repl)
{
	struct cell cell = {0};
	const char *line;
	size_t len;
	int r;

	repl->cell.len = 0;
	while ((r = repl_next_line(repl, &line, &len)) == 0) {
		if ((!is_other_text(repl) && is_next(repl, &cell, line, len)) ||
		    begins_command(repl, &cell, line, len)) {
			hold(repl, line, len);
			return 0;
		}
		cell_feed(&cell, line, len);
		repl_append(&repl->cell, line, len);
		repl_append(&repl->cell, "\n", 1);
		if (repl_is_over(repl, &cell, line, len))
			return 0;
		if (!cell.any && is_typed(repl) && !is_other_text(repl))
			repl->cell.len = 0;
	}
	return r == 1 && repl->cell.len > 0 ? 0 : r;
}

static void
repl_remember(struct repl *repl)
{
	char *at = repl->cell.bytes, *end;

	for (; is_typed(repl) && *at; at = end + 1) {
		end = strchr(at, '\n');
		*end = '\0';
		repl_input_remember(repl->input, at);
		*end = '\n';
	}
}

/* exit and quit without parentheses, which Python takes too from version 3.13 on. */
static bool
is_exit(const struct repl *repl)
{
	return is_typed(repl) && (strcmp(repl->cell.bytes, "exit\n") == 0 ||
				  strcmp(repl->cell.bytes, "quit\n") == 0);
}

/* A command of this program, or a cell, which may begin with "%" too. */
static void
run_typed(struct repl *repl)
{
	char *line = repl->cell.bytes;

	if (is_exit(repl)) {
		repl->ended = true;
		return;
	}
	if (line[0] == '%' && line[1] != '%') {
		char *copy = strndup(line, repl->cell.len - 1);
		bool done = copy && repl_command_line(repl, copy);

		free(copy);
		if (done)
			return;
	}
	run_cell(repl);
}

static void
repl_work(struct repl *repl)
{
	while (!repl->ended && !show_lost()) {
		int r = read_cell(repl);

		if (r == -EINTR && is_typed(repl)) {
			interrupted = 0;
			(void)show_bytes(STDERR_FILENO, "\nKeyboardInterrupt\n", 19);
			continue;
		}
		if (r != 0) {
			if (r < 0)
				repl->code = r == -EINTR ? EXIT_INTERRUPTED : EX_IOERR;
			if (r < 0 && r != -EINTR)
				say("standard input: %s", strerror(-r));
			return;
		}
		repl_remember(repl);
		run_typed(repl);
	}
}

/* ---- begin and end ---- */

/* The session begins before the first cell, so that the cell can be cancelled. */
static bool
repl_begin(struct repl *repl)
{
	json_t *arguments = repl_arguments(repl);

	repl->code = inputs_add(arguments, repl->options);
	if (repl->code) {
		json_decref(arguments);
		repl->ended = true;
		return false;
	}
	if (!repl->session)
		call_add_packages(arguments, repl->options);
	repl_call(repl, arguments);
	if (!repl->ended && !repl->session) {
		repl->ended = true;
		repl->code = repl->verdict ? repl->verdict : EX_UNAVAILABLE;
		if (!repl->verdict)
			say("the service has begun no session");
	}
	if (!repl->ended && is_typed(repl))
		printf("mcp-python %s, session %s\n%%help tells more; exit() or Ctrl-D leaves.\n",
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
	if (service_open(options, options->with.n > 0, &service) < 0)
		return EX_UNAVAILABLE;
	repl.channel.fd = service.fd;
	repl.channel.mask = &waiting;
	repl.channel.interrupted = &interrupted;
	if (options->session)
		repl.session = strdup(options->session);
	repl.input = repl_input_new(&waiting, &interrupted);
	repl_input_complete(repl.input, repl_complete, &repl);
	if (is_typed(&repl) && prompt_has_terminal()) {
		repl.channel.prompt = &repl.prompt;
		call_greet(&repl.channel);
	}
	if (repl_begin(&repl))
		repl_work(&repl);
	end(&repl);
	repl_input_free(repl.input);
	service_close(&service, false);
	call_channel_done(&repl.channel);
	free(repl.cell.bytes);
	free(repl.held.bytes);
	json_decref(repl.files);
	json_decref(repl.checkpoints);
	free(repl.session);
	return repl.code;
}
