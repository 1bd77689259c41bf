/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python run. A file, one call, its output and its exit code.
 *
 * When a connection ends, the service stops its calls. So signals keep their default actions here,
 * also during a prompt: if a signal ends this program, the call is cancelled. */
#include "client/run.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quote.h"
#include "base/xalloc.h"
#include "client/call.h"
#include "client/exits.h"
#include "client/inputs.h"
#include "client/options.h"
#include "client/prompt.h"
#include "client/resource.h"
#include "client/results.h"
#include "client/say.h"
#include "client/script.h"
#include "client/service.h"
#include "client/show.h"
#include "client/text.h"
#include "client/verdict.h"
#include "policy/shown.h"

#define REQUEST_ID 1
#define ASK_AGAIN_S 2	/* seconds between two calls that wait for a decision */

static int
show_json(const json_t *outcome)
{
	char *text = shown_json(outcome, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	int r;

	r = show_bytes(STDOUT_FILENO, text, strlen(text));
	if (r == 0)
		r = show_bytes(STDOUT_FILENO, "\n", 1);
	free(text);
	return r;
}

/* If standard output is not a terminal, all of the script's output is needed. */
static bool
wants_whole(const struct options *options)
{
	return !options->json && !isatty(STDOUT_FILENO);
}

static int
show_stream(const struct options *options, struct call_channel *channel, int *id,
	    const struct shown *shown, const json_t *outcome, const char *name)
{
	if (wants_whole(options) && resource_is_cut(outcome, name) && !isatty(shown->fd))
		return resource_show_stream(channel, id, shown, outcome, name);
	return show_rest(shown, outcome, name);
}

/* Output comes as text, in which each byte that is not UTF-8 is replaced. If a file or another
 * program gets it, the user is told. */
static void
warn_of_replaced(const struct shown *shown, const json_t *outcome)
{
	static const char replaced[] = "\xef\xbf\xbd";
	size_t len = 0;
	const char *text = reply_string(outcome, "stdout", &len);

	if ((text && memmem(text, len, replaced, 3)) ||
	    (shown->len > 0 && memmem(shown->bytes, shown->len, replaced, 3)))
		say("the output has U+FFFD, which also stands for bytes that are not UTF-8; binary "
		    "data is kept in files: --save DIR");
}

/* Shows the answer; returns the exit code. id: of the next request. */
static int
run_conclude(const struct options *options, struct call_channel *channel, int *id,
	     const struct shown *shown, const struct reply *answer)
{
	int r;

	if (answer->kind == REPLY_RESOURCE)
		return call_failed(-EBADMSG);
	if (answer->kind == REPLY_REFUSED) {
		say("the service refused this: %.*s", (int)answer->text_len,
		    answer->text);
		return answer->result ? EX_USAGE : EX_PROTOCOL;
	}
	if (options->json) {
		r = show_json(answer->outcome);
	} else {
		r = show_stream(options, channel, id, &shown[REPLY_STDOUT], answer->outcome,
				"stdout");
		if (r == 0 && wants_whole(options))
			warn_of_replaced(&shown[REPLY_STDOUT], answer->outcome);
		if (r == 0)
			r = show_stream(options, channel, id, &shown[REPLY_STDERR],
					answer->outcome, "stderr");
		if (r == 0)
			r = show_traceback(answer->outcome);
	}
	if (r == -ENODATA)
		return EX_IOERR;
	if (r < 0) {
		say("cannot write the output: %s", strerror(-r));
		return EX_IOERR;
	}
	if (!options->json)
		verdict_say(answer->outcome);
	return verdict_exit_code(answer->outcome);
}

/* Saves the script's files in the directories of --save and --rw. 0; or negative: an error was
 * printed. */
static int
run_save(const struct options *options, struct call_channel *channel, int *id,
	 const struct reply *answer, const json_t *handed_in)
{
	const struct results_place saved = { .directory = options->save, .pictures = true,
					     .force = options->force };
	const struct results_place back = { .directory = options->dirs.at[0],
					    .force = options->force, .handed_in = handed_in };
	int r = 0;

	if (options->rw)
		r = results_save(&back, channel, id, answer);
	if (options->save && results_save(&saved, channel, id, answer) < 0)
		r = -EIO;
	return r;
}

static bool
is_pending(const struct reply *answer)
{
	const char *status = answer->kind == REPLY_OUTCOME
			     ? reply_string(answer->outcome, "status", NULL) : NULL;

	return status && strcmp(status, "approval_pending") == 0;
}

/* Makes the call; with --wait again and again until an operator has decided about it: the service
 * has one request for all of them. *id: of the last one. */
static int
call_until_decided(const struct options *options, struct call_channel *channel, int *id,
		   json_t *arguments, struct shown *shown, struct reply *answer_r)
{
	bool told = false;
	int r;

	for (;;) {
		call_send(channel, call_message(channel, *id, "run_script", json_incref(arguments),
						!options->json));
		r = call_wait(channel, *id, show_piece, shown, answer_r);
		if (r < 0 || !options->wait || !is_pending(answer_r))
			return r;
		if (!told) {
			verdict_say(answer_r->outcome);
			say_more("this waits for the decision; Ctrl-C gives up, the request stays");
		}
		told = true;
		reply_free(answer_r);
		sleep(ASK_AGAIN_S);
		*id += 1;
	}
}

/* Sends the call, and shows its output and answer. */
static int
call_and_show(const struct options *options, struct call_channel *channel, json_t *arguments)
{
	struct shown shown[REPLY_STREAMS] = {
		[REPLY_STDOUT] = {.fd = STDOUT_FILENO},
		[REPLY_STDERR] = {.fd = STDERR_FILENO},
	};
	json_t *handed_in = inputs_hashes(arguments);
	struct reply answer;
	int code, r, id = REQUEST_ID;

	if (channel->prompt)
		prompt_watch(channel->prompt, &shown[REPLY_STDOUT]);
	r = call_until_decided(options, channel, &id, arguments, shown, &answer);
	json_decref(arguments);
	id++;
	if (r == 0) {
		code = run_conclude(options, channel, &id, shown, &answer);
		inputs_forget(handed_in, answer.outcome);
		if (answer.kind == REPLY_OUTCOME && !options->json)
			results_say(answer.outcome, options->save || options->rw);
		if (answer.kind == REPLY_OUTCOME &&
		    run_save(options, channel, &id, &answer, handed_in) < 0 && code == 0)
			code = EX_IOERR;
		reply_free(&answer);
	} else {
		code = call_failed(r);
	}
	json_decref(handed_in);
	show_done(shown);
	return code;
}

/* PEP 723: the line that begins a script's own list. The service reads that list. */
static bool
needs_packages(const struct options *options, const json_t *arguments)
{
	const char *script = json_string_value(json_object_get(arguments, "script"));

	return options->with.n > 0 || (script && strstr(script, "# /// script"));
}

/* Takes ownership of arguments. */
static int
connect_and_call(const struct options *options, json_t *arguments)
{
	struct options in_force = *options;
	struct call_channel channel = {.fd = -1};
	struct prompt prompt = {.id = NULL};
	struct service service;
	int code;

	if (service_open(options, needs_packages(options, arguments), &service) < 0) {
		json_decref(arguments);
		return EX_UNAVAILABLE;
	}
	channel.fd = service.fd;
	if (service.pid)
		in_force.wait = false;	/* a private service has no operators */
	if (prompt_has_terminal()) {
		channel.prompt = &prompt;
		call_greet(&channel);
	}
	code = call_and_show(&in_force, &channel, arguments);
	service_close(&service, code != 0);
	call_channel_done(&channel);
	return code;
}

/* Tracebacks name the file as the user did. */
static void
add_name(json_t *arguments, const char *path)
{
	struct text_position where;
	size_t len = strlen(path);

	if (strcmp(path, "-") != 0 && len <= NAME_MAX && text_check(path, len, true, &where) &&
	    quote_is_plain(path, len))
		call_set(arguments, "script_name", json_string(path));
}

/* NULL: an argument is not UTF-8; the error was printed. */
static json_t *
make_arguments(const struct options *options, const struct script_text *script,
	       const struct script_text *stdin_text)
{
	json_t *arguments = json_object(), *list = json_array();
	struct text_position where;

	for (size_t i = 0; i < options->n_args; i++) {
		if (!text_check(options->args[i], strlen(options->args[i]), true,
				&where)) {
			say("argument %zu of the script is not UTF-8", i + 1);
			json_decref(list);
			json_decref(arguments);
			return NULL;
		}
		xassert(json_array_append_new(list, json_string(options->args[i])) == 0);
	}
	if (options->n_args > 0)
		call_set(arguments, "args", list);
	else
		json_decref(list);
	call_set(arguments, "script",
		 json_stringn(script->bytes ? script->bytes : "", script->len));
	add_name(arguments, options->file);
	if (stdin_text)
		call_set(arguments, "stdin",
			 json_stringn(stdin_text->bytes ? stdin_text->bytes : "",
				      stdin_text->len));
	call_add_limits(arguments, options);
	call_add_packages(arguments, options);
	if (wants_whole(options))
		call_set(arguments, "spill", json_true());
	return arguments;
}

static bool
takes_stdin(const struct options *options)
{
	return options->pass_stdin ||
	       (!options->leave_stdin && strcmp(options->file, "-") != 0 && script_has_stdin());
}

int
run_command(const struct options *options)
{
	struct script_text script = {0}, stdin_text = {0};
	bool with_stdin = takes_stdin(options);
	json_t *arguments = NULL;
	int code;

	code = script_load(options->file, &script);
	if (code == 0 && with_stdin)
		code = script_load_stdin(&stdin_text);
	if (code == 0) {
		arguments = make_arguments(options, &script, with_stdin ? &stdin_text : NULL);
		code = arguments ? inputs_add(arguments, options) : EX_DATAERR;
	}
	script_text_free(&script);
	script_text_free(&stdin_text);
	if (code == 0)
		return connect_and_call(options, arguments);
	json_decref(arguments);
	return code;
}
