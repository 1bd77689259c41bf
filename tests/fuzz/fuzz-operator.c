/* SPDX-License-Identifier: Apache-2.0 */
/* The operators' socket. The first byte says whether the client is an operator, and the size of the
 * pieces; the rest is its stream. A byte @ in it stands for the id of a request that waits for a
 * decision. The target asserts:
 *
 * - Each line has one answer. With "watch" each change has one more.
 * - An answer is an object that says whether it is ok, and why if it is not.
 * - A client that is no operator decides nothing and sees nothing of the service. */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>
#include <jansson.h>

#include "base/log.h"
#include "base/why.h"
#include "engine/engine_parts.h"
#include "engine/ready.h"
#include "govern/approvals.h"
#include "govern/gate.h"
#include "policy/config.h"
#include "supervisor/operate/admin.h"
#include "supervisor/operate/operation.h"
#include "supervisor/operate/operator_tools.h"

#define STREAM_MAX 4096
#define QUIET_TURNS 4		/* without a byte: all answers have come */
#define TENANT "uid:123456789"

static struct {
	struct event_base *base;
	struct engine engine;		/* only what a revocation asks */
	struct gate *gate;
	struct approvals *approvals;
	struct admin *admin;
	const char *id;			/* of the request */
	bool is_operator;
	size_t heard;
	char answers[1 << 20];
} rig;

/* ---- in place of operation.c ---- */

json_t *
operation_status(const struct operation *operation)
{
	(void)operation;
	MUST(rig.is_operator);
	return json_object();
}

json_t *
operation_status_of(const struct operation *operation, const char *principal)
{
	(void)operation;
	MUST(strncmp(principal, "uid:", 4) == 0);
	return json_object();
}

char *
operation_metrics(const struct operation *operation, bool tenants, bool plain, size_t *len_r)
{
	(void)operation;
	MUST(rig.is_operator && tenants && !plain);
	*len_r = strlen("# EOF\n");
	return strdup("# EOF\n");
}

/* ---- in place of operator_tools.c: a server that answers in a later turn ---- */

struct operator_call {
	struct event *later;
	void (*done)(void *arg, json_t *answer);
	void *arg;
};

json_t *
operator_tools_list(const struct engine *engine)
{
	(void)engine;
	MUST(rig.is_operator);
	return json_pack("{s:b,s:[]}", "ok", 1, "tools");
}

json_t *
operator_tools_describe(const struct engine *engine, const json_t *request, struct why *why_r)
{
	(void)engine;
	MUST(rig.is_operator);
	if (json_is_string(json_object_get(request, "tool")))
		return json_pack("{s:b,s:{}}", "ok", 1, "about");
	why_say(why_r, -ENOENT, "tool", "the server has no such tool");
	return NULL;
}

void
operator_tools_drop(struct operator_call *call)
{
	if (call == NULL)
		return;
	event_free(call->later);
	free(call);
}

static void
on_later(evutil_socket_t fd, short what, void *arg)
{
	struct operator_call call = *(struct operator_call *)arg;

	(void)fd;
	(void)what;
	operator_tools_drop(arg);
	call.done(call.arg, json_pack("{s:b,s:{}}", "ok", 1, "result"));
}

struct operator_call *
operator_tools_call(const struct engine *engine, struct audit *audit, const char *principal,
		    const json_t *request, void (*done)(void *arg, json_t *answer), void *arg,
		    struct why *why_r)
{
	struct operator_call *call;

	(void)engine;
	(void)audit;
	MUST(rig.is_operator && strncmp(principal, "uid:", 4) == 0);
	if (!json_is_string(json_object_get(request, "tool"))) {
		why_say(why_r, -ENOENT, "tool", "the server has no such tool");
		return NULL;
	}
	call = calloc(1, sizeof(*call));
	MUST(call);
	call->done = done;
	call->arg = arg;
	call->later = evtimer_new(rig.base, on_later, call);
	event_active(call->later, EV_TIMEOUT, 0);
	return call;
}

/* ---- the service ---- */

static struct config *
configure(void)
{
	int fd = memfd_create("config", MFD_CLOEXEC);
	unsigned int uid = rig.is_operator ? getuid() : getuid() + 1;
	struct config *config = config_new();
	char path[64];

	MUST(dprintf(fd, "[admin]\noperators = uid:%u\n[policy]\napprovers = uid:%u\n", uid,
		     uid) > 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	MUST(config_read(config, path, stderr) == 0);
	close(fd);
	return config;
}

static const struct policy_subject *
subject_of(void *arg, const char *principal)
{
	(void)arg;
	return gate_subject(rig.gate, principal);
}

static const struct config *
config_of(void *arg, const char *principal)
{
	(void)arg;
	return gate_config_named(rig.gate, principal);
}

static void
ask(const struct config *config)
{
	static const char *const item = "run_script 0";
	static const struct policy_subject requester = { .principal = TENANT };
	json_t *shown = json_pack("{s:s}", "script", "print(1)");
	const struct approval_request request = {
		.requester = &requester, .config = config, .tool = "run_script",
		.item = &item, .n_items = 1, .shown = shown };
	const struct approval *approval;

	MUST(approvals_ask(rig.approvals, &request, NULL, NULL, &approval, NULL) == 0);
	rig.id = approval_id(approval);
	json_decref(shown);
}

/* Returns the address, which the kernel chooses. */
static struct sockaddr_un
serve(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct admin_options options = {
		.base = rig.base, .engine = &rig.engine, .gate = rig.gate, .fd = { -1, -1 } };
	socklen_t len = sizeof(address);

	options.fd[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(bind(options.fd[0], (struct sockaddr *)&address, sizeof(sa_family_t)) == 0);
	MUST(listen(options.fd[0], 1) == 0);
	MUST(getsockname(options.fd[0], (struct sockaddr *)&address, &len) == 0);
	rig.admin = admin_new(&options);
	return address;
}

static int
begin(void)
{
	const struct approvals_policy policy = { subject_of, config_of, NULL };
	struct config *config = configure();
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!rig.base) {
		log_init(LOG_CRIT);
		rig.base = event_base_new();
		rig.engine.ready = ready_new(&rig.engine);
	}
	MUST(approvals_new(NULL, NULL, &rig.approvals, NULL) == 0);
	rig.gate = gate_new(&(struct gate_options){ .base = rig.base, .config = config,
						    .approvals = rig.approvals });
	approvals_start(rig.approvals, rig.base, &policy);
	ask(config);
	config_free(config);
	address = serve();
	MUST(connect(fd, (struct sockaddr *)&address, sizeof(sa_family_t) + 6) == 0);
	MUST(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	rig.heard = 0;
	return fd;
}

static void
end(int fd)
{
	close(fd);
	admin_free(rig.admin);
	approvals_free(rig.approvals);
	gate_free(rig.gate);
}

/* ---- one stream ---- */

static bool
hear(int fd)
{
	ssize_t n;

	event_base_loop(rig.base, EVLOOP_NONBLOCK);
	if (rig.heard >= sizeof(rig.answers))
		abort();
	n = read(fd, rig.answers + rig.heard, sizeof(rig.answers) - rig.heard);
	rig.heard += n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* Returns the number of lines. */
static size_t
say(int fd, struct rest rest, size_t most)
{
	size_t lines = 0;

	while (rest.len > 0) {
		struct rest piece = rest_take(&rest, most);

		for (size_t i = 0; i < piece.len; i++) {
			bool is_id = piece.at[i] == '@';
			const void *bytes = is_id ? rig.id : (const char *)&piece.at[i];
			size_t len = is_id ? strlen(rig.id) : 1;

			MUST(send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
			lines += piece.at[i] == '\n';
		}
		(void)hear(fd);
	}
	for (int quiet = 0; quiet < QUIET_TURNS;)
		quiet = hear(fd) ? 0 : quiet + 1;
	return lines;
}

static void
check_answers(size_t lines)
{
	const char *at = rig.answers, *last = rig.answers + rig.heard, *end;
	bool watches = false;
	size_t n = 0;

	for (; at < last; at = end + 1, n++) {
		json_t *answer, *ok;

		end = memchr(at, '\n', (size_t)(last - at));
		MUST(end);
		answer = json_loadb(at, (size_t)(end - at), JSON_REJECT_DUPLICATES, NULL);
		ok = json_object_get(answer, "ok");
		MUST(json_is_boolean(ok));
		MUST(json_is_true(ok) || *json_string_value(json_object_get(answer, "error")));
		watches = watches || json_object_get(answer, "approvals");
		json_decref(answer);
	}
	MUST(watches ? n >= lines : n == lines);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rest rest = { data, size };
	uint8_t who = rest_byte(&rest);
	size_t lines;
	int fd;

	if (size > STREAM_MAX)
		return 0;
	rig.is_operator = who & 1;
	fd = begin();
	lines = say(fd, rest, 1 + who / 2U);
	check_answers(lines);
	MUST(rig.is_operator || approvals_pending(rig.approvals) == 1);
	end(fd);
	return 0;
}
