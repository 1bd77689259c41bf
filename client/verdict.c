/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python run, on the answer. The table is the one in doc/man/mcp-python.1.
 */
#include "client/verdict.h"

#include <stdbool.h>
#include <string.h>

#include "client/exits.h"
#include "client/reply.h"
#include "client/say.h"

#define OF_PYTHON "belongs to Python itself"	/* in the advice: no package has the module */

enum rule {
	SCRIPTS, /* the script's exit code; 1 if it has none */
	FIXED,
};

static const struct verdict_row {
	const char *status;
	enum rule rule;
	int code;
	const char *text;	/* NULL: the script ended by itself; nothing is printed */
} rows[] = {
	{ "ok",            SCRIPTS, 0, NULL },
	{ "error",         SCRIPTS, 0, NULL },
	{ "killed",        SCRIPTS, 0, "the script was killed by a signal" },
	{ "crashed",       SCRIPTS, 0, "the script crashed" },
	{ "pids_limit",    SCRIPTS, 0, "the limit on processes was reached" },
	{ "timeout",       FIXED, EXIT_TIMEOUT,      "the time limit was reached" },
	{ "cpu_limit",     FIXED, EXIT_CPU_LIMIT,    "the processor time was used up" },
	{ "memory_limit",  FIXED, EXIT_MEMORY_LIMIT, "the memory limit was reached" },
	{ "output_limit",  FIXED, EXIT_SPACE_LIMIT,  "too much output" },
	{ "disk_limit",    FIXED, EXIT_SPACE_LIMIT,  "the disk limit was reached" },
	{ "cancelled",     FIXED, EX_TEMPFAIL,       "the service stopped the script" },
	{ "overloaded",    FIXED, EX_TEMPFAIL,       "too much is waiting; try again later" },
	{ "jail_failed",   FIXED, EX_SOFTWARE,       "the jail could not be made; nothing was run" },
	{ "no_session",    FIXED, EX_NOINPUT,        "there is no such session" },
	{ "no_checkpoint", FIXED, EX_NOINPUT,        "there is no such checkpoint" },
	{ "session_limit", FIXED, EX_TEMPFAIL,       "there are too many sessions" },
	{ "session_busy",  FIXED, EX_TEMPFAIL,       "too many calls wait for the session" },
	{ "invalid_arguments", FIXED, EX_USAGE,      "the service refused the arguments" },
	{ "denied",        FIXED, EX_NOPERM,         "policy does not allow it" },
	{ "approval_pending",  FIXED, EX_TEMPFAIL,   "it needs an approval first" },
	{ "quota_exceeded",    FIXED, EX_TEMPFAIL,   "a quota is used up; try again later" },
	{ "audit_unavailable", FIXED, EX_TEMPFAIL,   "the audit log cannot be written" },
	{ "dependency_unavailable", FIXED, EX_USAGE, "a requirement is not installed" },
	{ "python_unavailable", FIXED, EX_USAGE,     "that version of Python is not available" },
	{ "worker_protocol_error", FIXED, EX_SOFTWARE, "the worker broke its protocol" },
};

static const struct verdict_row *
verdict_find_row(const json_t *outcome)
{
	const char *status = reply_string(outcome, "status", NULL);

	for (size_t i = 0; status && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].status, status) == 0)
			return &rows[i];
	return NULL;
}

int
verdict_exit_code(const json_t *outcome)
{
	const struct verdict_row *row = verdict_find_row(outcome);
	const json_t *code = json_object_get(outcome, "exit_code");
	json_int_t value = json_is_integer(code) ? json_integer_value(code) : -1;

	if (!row)
		return EX_PROTOCOL;
	if (row->rule == FIXED)
		return row->code;
	/* Only "ok" may look like success. */
	if (value >= 0 && value <= 255 &&
	    (value != 0 || strcmp(row->status, "ok") == 0))
		return (int)value;
	return strcmp(row->status, "ok") == 0 ? EX_PROTOCOL : 1;
}

const char *
verdict_text(const json_t *outcome)
{
	const struct verdict_row *row = verdict_find_row(outcome);
	const char *message;

	if (!row)
		return "the answer has a status that this program does not know";
	if (!row->text)
		return NULL;
	message = reply_string(json_object_get(outcome, "error"), "message", NULL);
	return message && *message ? message : row->text;
}

/* Does text begin with the status, in its own spelling or with blanks? */
static bool
begins_with(const char *text, const char *status)
{
	size_t i = 0;

	while (status[i] && (text[i] == status[i] || (text[i] == ' ' && status[i] == '_')))
		i++;
	return !status[i];
}

/* The service's advice is for agents. People add packages by an option. */
static void
say_advice(const json_t *outcome)
{
	const json_t *error = json_object_get(outcome, "error");
	const char *advice = reply_string(error, "advice", NULL);
	const char *type = reply_string(error, "type", NULL);

	if (!advice)
		return;
	if (type && strcmp(type, "ModuleNotFoundError") == 0 && !strstr(advice, OF_PYTHON))
		say("a package is missing: --with PACKAGE adds it, if policy lets you");
	else
		say("%s", advice);
}

/* Prints the status (may be "") and the first line of text on one line. Prints further lines below,
 * with a mark, because a stranger may have written them. */
static void
say_lines(const char *status, const char *text)
{
	size_t len = strcspn(text, "\n");

	say("%s%s%.*s", status, *status ? ": " : "", (int)len, text);
	for (text += len; *text; text += len) {
		text++;
		len = strcspn(text, "\n");
		say_more("> %.*s", (int)len, text);
	}
}

void
verdict_say(const json_t *outcome)
{
	const char *status = reply_string(outcome, "status", NULL);
	const char *text = verdict_text(outcome);

	if (!text)
		say_advice(outcome);
	else
		say_lines(begins_with(text, status) ? "" : status, text);
	if (text && strcmp(status, "jail_failed") == 0)
		say_more("\"mcp-python check-host\" on the service's machine says what to change");
}
