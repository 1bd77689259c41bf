/* SPDX-License-Identifier: Apache-2.0 */
/* The directory helper's answers to the supervisor. Each bit of the first byte cancels a lookup;
 * the second byte is the size of the pieces. The rest is the answers: frames, then the end. The
 * target asserts:
 *
 * - Each lookup that was not cancelled is answered once: by an error, or by a person with one
 *   membership for each group and a name of limited length.
 * - The helper is lost in the end, and is made again. */
#include "fuzz.h"

#include <errno.h>
#include <stdbool.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/utf8.h"
#include "host/directory.h"
#include "host/helper.h"
#include "tests/fuzz/frames.h"
#include "tests/fuzz/helper.h"

#define ANSWERS_MAX 60000	/* bytes; fits a socket's buffer */
#define QUESTIONS 8

static struct event_base *base;

static struct asked {
	struct directory_lookup *question;
	size_t groups;
	unsigned int answered;
} asked[QUESTIONS];

void
directory_live(const void *look_up, int socket, pid_t supervisor)
{
	(void)supervisor;
	(void)look_up;
	helper_give(socket);
}

/* Used by the helper only. */
int
directory_look_up(uid_t uid, const char *const *group, size_t n, struct directory_person *person_r)
{
	(void)uid;
	(void)group;
	(void)n;
	(void)person_r;
	abort();
}

static void
on_answer(void *arg, int error, const struct directory_person *person)
{
	struct asked *question = arg;
	unsigned char any = 0;

	MUST(question->answered++ == 0);
	MUST(error == 0 ? person != NULL : error < 0 && !person);
	if (error < 0)
		return;
	for (size_t i = 0; i < question->groups; i++)
		any |= person->member[i];
	MUST(any || question->groups <= QUESTIONS);
	if (person->user)
		MUST(*person->user && strlen(person->user) <= DIRECTORY_USER_MAX &&
		     utf8_prefix(person->user, strlen(person->user)) == strlen(person->user));
}

static void
turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static void
ask_all(struct directory *directory, uint8_t given_up)
{
	static const char *const group[QUESTIONS] = { "a", "b", "c", "d", "e", "f", "g", "h" };

	for (size_t i = 0; i < QUESTIONS; i++) {
		asked[i] = (struct asked){ .groups = i };
		asked[i].question = directory_ask(directory, (uid_t)i, group, i, 5, on_answer,
						  &asked[i]);
	}
	for (size_t i = 0; i < QUESTIONS; i++)
		if (given_up & 1U << i)
			directory_cancel(asked[i].question);
}

static void
answer(int socket, struct rest rest, uint8_t most)
{
	while (rest.len > 0) {
		struct rest piece = rest_take(&rest, most ? most : rest.len);

		/* The supervisor does not read from a lost helper. */
		if (send(socket, piece.at, piece.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			MUST(errno == EPIPE || errno == EAGAIN);
			break;
		}
		turn();
	}
	MUST(shutdown(socket, SHUT_WR) == 0);
	turn();
}

/* The next helper ends at once; then all lookups have failed that were sent to both. */
static void
end_all(uint8_t given_up)
{
	for (size_t i = 0; i < QUESTIONS; i++)
		while (!(given_up & 1U << i) && asked[i].answered == 0)
			event_base_loop(base, EVLOOP_ONCE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t frames[ANSWERS_MAX];
	struct directory *directory;
	uint64_t lost = helper_state(HELPER_DIRECTORY).lost;
	int socket;

	if (size < 2 || size > ANSWERS_MAX)
		return 0;
	if (!base) {
		log_init(LOG_CRIT);
		base = event_base_new();
	}
	helper_prepare();
	MUST(directory_new(NULL, &directory) == 0);
	directory_watch(directory, base);
	socket = helper_take();
	memcpy(frames, data + 2, size - 2);
	frames_set_versions(frames, size - 2);
	ask_all(directory, data[0]);
	answer(socket, (struct rest){ frames, size - 2 }, data[1]);
	end_all(data[0]);
	for (size_t i = 0; i < QUESTIONS; i++)
		MUST(asked[i].answered == (data[0] & 1U << i ? 0 : 1));
	MUST(helper_state(HELPER_DIRECTORY).lost > lost);
	directory_free(directory);
	helper_reap_all();
	close(socket);
	return 0;
}
