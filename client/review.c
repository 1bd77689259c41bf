/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python approvals review.   Owns: two connections to the operators' socket: one says
 *          what waits, the other shows a request and decides about it.
 * Reads:   texts of tenants, hostile to a terminal; approval.c quotes them. */
#include "client/approval.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "client/admin.h"
#include "client/exits.h"
#include "client/say.h"

struct review {
	FILE *watch, *ask;
	json_t *later;		/* the ids that are left for later, as keys */
	bool was_told;		/* that nothing waits now */
	bool ended;		/* the user leaves */
};

/* Sends a request and reads the answer. NULL: it was refused, or there is none; the reason was
 * printed. */
static json_t *
review_ask(struct review *review, json_t *request)
{
	json_t *answer = admin_send(review->ask, request) ? admin_read(review->ask) : NULL;

	if (json_is_true(json_object_get(answer, "ok")))
		return answer;
	say("%s", answer ? admin_text(answer, "error") : "the service does not answer");
	json_decref(answer);
	return NULL;
}

/* Reads a line of the user. NULL: there are no more. */
static char *
read_words(const char *prompt)
{
	char *line = NULL;
	size_t size = 0;

	fputs(prompt, stdout);
	fflush(stdout);
	if (getline(&line, &size, stdin) <= 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static void
review_decide(struct review *review, const char *id, const char *what, const char *reason)
{
	json_t *request = json_pack("{s:s,s:s}", "do", what, "id", id), *answer;

	if (reason && *reason)
		json_object_set_new(request, "reason", json_string(reason));
	answer = review_ask(review, request);
	if (answer)
		printf("%s %s\n", strcmp(what, "deny") == 0 ? "denied" : "approved", id);
	json_decref(answer);
}

/* One of "adlq"; the end of standard input is 'q'. */
static char
read_choice(void)
{
	for (;;) {
		own_mem char *word = read_words("a: approve, d: deny, l: later, q: leave > ");

		if (!word)
			return 'q';
		if (strlen(word) == 1 && strchr("adlq", *word))
			return *word;
	}
}

/* What the user wants done with the request that they have just read. */
static void
ask_user(struct review *review, const char *id)
{
	own_mem char *reason = NULL;

	switch (read_choice()) {
	case 'a':
		review_decide(review, id, "approve", NULL);
		break;
	case 'd':
		reason = read_words("reason, or nothing > ");
		review_decide(review, id, "deny", reason);
		break;
	case 'q':
		review->ended = true;
		break;
	default:
		break;
	}
	json_object_set_new(review->later, id, json_true());
}

/* The list may be old: what waits no longer is not shown. */
static void
review_one(struct review *review, const char *id)
{
	json_t *answer, *approval;

	if (json_object_get(review->later, id))
		return;
	answer = review_ask(review, json_pack("{s:s,s:s}", "do", "show", "id", id));
	approval = json_object_get(answer, "approval");
	if (strcmp(admin_text(approval, "state"), "pending") == 0) {
		putchar('\n');
		approval_print_all(approval);
		review->was_told = false;
		ask_user(review, id);
	}
	json_decref(answer);
}

/* Reads what waits, and goes through it. False: the connection has ended. */
static bool
review_list(struct review *review)
{
	json_t *answer = admin_read(review->watch), *one;
	size_t i;

	json_array_foreach(json_object_get(answer, "approvals"), i, one)
		if (!review->ended)
			review_one(review, admin_text(one, "id"));
	if (answer && !review->ended && !review->was_told) {
		puts("Waiting for requests; Ctrl-C leaves.");
		fflush(stdout);
		review->was_told = true;
	}
	json_decref(answer);
	return answer;
}

int
approval_review(const char *path)
{
	struct review review = { .watch = admin_connect(path, false) };
	int code = 0;

	if (!review.watch)
		return EX_UNAVAILABLE;
	review.ask = admin_connect(path, false);
	review.later = json_object();
	if (review.ask)
		admin_send(review.watch, json_pack("{s:s}", "do", "watch"));
	else
		code = EX_UNAVAILABLE;
	while (code == 0 && !review.ended)
		if (!review_list(&review)) {
			say("the service does not answer");
			code = EX_UNAVAILABLE;
		}
	json_decref(review.later);
	if (review.ask)
		fclose(review.ask);
	fclose(review.watch);
	return code;
}
