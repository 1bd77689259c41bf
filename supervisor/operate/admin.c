/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the operators' socket and its connections.
 * Reads:   lines of local users, hostile. Every local user may connect, and may be refused. */
#include "supervisor/operate/admin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <jansson.h>

#include "base/accepting.h"
#include "base/log.h"
#include "base/own.h"
#include "base/watched.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/ready.h"
#include "govern/approvals.h"
#include "govern/gate.h"
#include "govern/writer.h"
#include "policy/config.h"
#include "supervisor/operate/operation.h"
#include "supervisor/operate/operator_tools.h"
#include "supervisor/operate/packages.h"
#include "supervisor/operate/running.h"

#define CONNECTIONS_MAX 64		/* operators have room even if all others have used
					 * theirs */
#define STRANGERS_MAX 32		/* of users who are not operators */
#define STRANGERS_PER_USER 4
#define LINE_MAX_BYTES 65536
#define WAITING_MAX (64 * 1024 * 1024)	/* bytes of unread answers; above that the connection is
					 * closed */
#define UNREAD_MAX (256 * 1024)	/* bytes of answers; above that requests are not read */
#define REASON_MAX 400
#define IDLE_S 600

struct peer {
	LIST_ENTRY(peer) link;
	struct admin *admin;
	struct bufferevent *buffer;
	uid_t uid;
	char principal[32];
	bool owner_known;		/* the uid is an account's, or nobody can say whose it is */
	json_t *request;		/* the request to answer; NULL: none, or not JSON */
	bool is_asked;			/* a request waits until all principals in it are known */
	struct operator_call *call;	/* whose result is the answer; NULL: none */
	struct writing_wait noted;	/* the answer follows when a decision is in the file */
	struct gate_wait identity;
	bool is_admitted;		/* the peer was known, and there was room */
	bool watches, is_stranger;
	bool is_behind;			/* the state that it watches has changed since the last
					 * answer */
};

struct admin {
	struct admin_options options;
	struct evconnlistener *listener[ADMIN_SOCKETS];
	struct accepting accepting;
	LIST_HEAD(, peer) peers;
	unsigned int n;
};

static void
close_peer(struct peer *peer)
{
	LIST_REMOVE(peer, link);
	peer->admin->n--;
	gate_unwait(&peer->identity);
	writing_unwait(&peer->noted);
	operator_tools_drop(peer->call);
	bufferevent_free(peer->buffer);
	json_decref(peer->request);
	free(peer);
}

static void
admin_free_text(const void *, size_t, void *arg)
{
	free(arg);
}

/* The text is not copied: a request for an approval may show a MiB. */
static void
admin_send_line(struct peer *peer, json_t *answer)
{
	char *text = xalloc_check(json_dumps(answer, JSON_COMPACT));
	struct evbuffer *out = bufferevent_get_output(peer->buffer);
	size_t len = strlen(text);

	json_decref(answer);
	text[len] = '\n';	/* replaces its NUL */
	if (evbuffer_get_length(out) >= WAITING_MAX ||
	    evbuffer_add_reference(out, text, len + 1, admin_free_text, text) < 0)
		free(text);
}

/* Sends the reason at once, as far as the socket takes it, and closes the connection. */
static void
turn_away(struct peer *peer, const char *why)
{
	char *text = xalloc_check(json_dumps(json_pack("{s:b,s:s}", "ok", 0, "error", why),
					     JSON_COMPACT));
	size_t len = strlen(text);

	text[len] = '\n';	/* replaces its NUL */
	(void)!send(bufferevent_getfd(peer->buffer), text, len + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	log_line(LOG_WARNING, "operator-refused", "uid=%u why=%s", peer->uid, why);
	free(text);
	close_peer(peer);
}

/* ---- requests ---- */

/* A request that is being answered. */
struct asked {
	struct peer *peer;
	const json_t *request;
	const char *id;			/* of the request; NULL: it has none */
	int value;			/* of the row */
	struct why *why;		/* set if the answer is NULL and does not come later */
};

static json_t *
admin_say_error(const char *text)
{
	return json_pack("{s:b,s:s}", "ok", 0, "error", text);
}

static bool
is_operator(const struct peer *peer)
{
	struct gate *gate = peer->admin->options.gate;

	return policy_is_any(gate_subject(gate, peer->principal),
			     &gate_common_config(gate)->admin.operators);
}

static json_t *
make_list(struct peer *peer, bool all)
{
	struct gate *gate = peer->admin->options.gate;

	return json_pack("{s:b,s:o}", "ok", 1, "approvals",
			 approvals_list(gate_approvals(gate), gate_subject(gate, peer->principal),
					is_operator(peer), all));
}

static json_t *
admin_answer_list(const struct asked *asked)
{
	return make_list(asked->peer, json_is_true(json_object_get(asked->request, "all")));
}

static json_t *
answer_watch(const struct asked *asked)
{
	asked->peer->watches = true;
	return make_list(asked->peer, false);
}

static json_t *
answer_show(const struct asked *asked)
{
	struct gate *gate = asked->peer->admin->options.gate;
	json_t *approval = approvals_show(gate_approvals(gate), asked->id,
					  gate_subject(gate, asked->peer->principal),
					  is_operator(asked->peer));

	if (approval)
		return json_pack("{s:b,s:o}", "ok", 1, "approval", approval);
	why_say(asked->why, -ENOENT, "id", "there is no such request that you may see");
	return NULL;
}

static void admin_give(struct peer *peer, json_t *answer);

static json_t *
admin_say_noted(int error)
{
	return error == 0 ? json_pack("{s:b}", "ok", 1)
			  : admin_say_error("this is in force, but cannot be written down yet: a "
					    "restart may not know it");
}

static void
admin_on_noted(void *arg, int error)
{
	admin_give(arg, admin_say_noted(error));
}

/* The answer to a decision, which may come later. r: 0, or -errno: there was none. */
static json_t *
admin_answer_noted(struct peer *peer, int r)
{
	if (r < 0)
		return NULL;
	peer->noted = (struct writing_wait){ .on_written = admin_on_noted, .arg = peer };
	r = approvals_sync(gate_approvals(peer->admin->options.gate), &peer->noted);
	return r == -EINPROGRESS ? NULL : admin_say_noted(r);
}

/* value: the new state. */
static json_t *
answer_decide(const struct asked *asked)
{
	struct gate *gate = asked->peer->admin->options.gate;
	const struct policy_subject *by = gate_subject(gate, asked->peer->principal);
	const struct approval_decision decision = {
		.state = (enum approval_state)asked->value,
		.why = json_string_value(json_object_get(asked->request, "reason")),
		.for_run = json_is_true(json_object_get(asked->request, "for_run")),
	};

	if (decision.why && strlen(decision.why) > REASON_MAX) {
		why_say(asked->why, -EINVAL, "reason", "reason: is too long");
		return NULL;
	}
	return admin_answer_noted(asked->peer, approvals_decide(gate_approvals(gate), asked->id, by,
								&decision, asked->why));
}

/* The tenant's ready workers may have packages that it may no longer use. */
static json_t *
answer_revoke(const struct asked *asked)
{
	const struct admin_options *options = &asked->peer->admin->options;
	own_mem char *tenant = NULL;
	int r = approvals_revoke(gate_approvals(options->gate), asked->id,
		gate_subject(options->gate, asked->peer->principal), &tenant, asked->why);

	if (r == 0)
		ready_forget(options->engine, tenant, NULL);
	return admin_answer_noted(asked->peer, r);
}

static json_t *
answer_status(const struct asked *asked)
{
	const struct operation *operation = asked->peer->admin->options.operation;
	bool operator = is_operator(asked->peer);
	json_t *answer = operator ? operation_status(operation)
				  : operation_status_of(operation, asked->peer->principal);

	json_object_set_new(answer, "ok", json_true());
	json_object_set_new(answer, "scope", json_string(operator ? "service" : "self"));
	return answer;
}

static json_t *
answer_metrics(const struct asked *asked)
{
	size_t len;
	own_mem char *text = operation_metrics(asked->peer->admin->options.operation, true,
					       false, &len);

	return json_pack("{s:b,s:s%}", "ok", 1, "metrics", text, len);
}

static json_t *
answer_executions(const struct asked *asked)
{
	return running_list(asked->peer->admin->options.engine);
}

static json_t *
answer_stop(const struct asked *asked)
{
	const struct admin_options *options = &asked->peer->admin->options;

	return running_stop(options->engine, gate_audit(options->gate), asked->peer->principal,
			    asked->request, asked->why);
}

/* value: 1, to suspend the tenant; 0, to resume it. */
static json_t *
answer_suspend(const struct asked *asked)
{
	const struct admin_options *options = &asked->peer->admin->options;

	return running_suspend(options->engine, options->gate, asked->peer->principal,
			       asked->request, asked->value, asked->why);
}

static json_t *
answer_suspended(const struct asked *asked)
{
	return running_suspended(asked->peer->admin->options.gate);
}

static json_t *
answer_packages(const struct asked *asked)
{
	const struct admin_options *options = &asked->peer->admin->options;

	return packages_list(gate_common_config(options->gate)->packages.store,
			     is_operator(asked->peer) ? NULL : asked->peer->principal);
}

static json_t *
answer_remove_packages(const struct asked *asked)
{
	const struct admin_options *options = &asked->peer->admin->options;

	return packages_remove(options->engine, options->gate, asked->peer->principal,
			       is_operator(asked->peer), asked->request, asked->why);
}

static json_t *
answer_tools(const struct asked *asked)
{
	return operator_tools_list(asked->peer->admin->options.engine);
}

static json_t *
answer_describe_tool(const struct asked *asked)
{
	return operator_tools_describe(asked->peer->admin->options.engine, asked->request,
				       asked->why);
}

static void
admin_on_called(void *arg, json_t *answer)
{
	struct peer *peer = arg;

	peer->call = NULL;
	admin_give(peer, answer);
}

/* The answer comes later, unless nothing was called. */
static json_t *
answer_call_tool(const struct asked *asked)
{
	struct peer *peer = asked->peer;
	const struct admin_options *options = &peer->admin->options;

	peer->call = operator_tools_call(options->engine, gate_audit(options->gate),
					 peer->principal, asked->request, admin_on_called, peer,
					 asked->why);
	return NULL;
}

/* Whose request it may be, and what it must have. */
enum { OPERATORS = 1, WITH_ID = 2 };

static const struct {
	const char *name;
	json_t *(*answer)(const struct asked *asked);
	unsigned int rules;
	int value;
} requests[] = {
	{ "list", admin_answer_list, 0, 0 },
	{ "watch", answer_watch, 0, 0 },
	{ "show", answer_show, WITH_ID, 0 },
	{ "approve", answer_decide, WITH_ID, APPROVAL_GRANTED },
	{ "deny", answer_decide, WITH_ID, APPROVAL_REFUSED },
	{ "revoke", answer_revoke, WITH_ID, 0 },
	{ "status", answer_status, 0, 0 },
	{ "metrics", answer_metrics, OPERATORS, 0 },
	{ "executions", answer_executions, OPERATORS, 0 },
	{ "stop", answer_stop, OPERATORS, 0 },
	{ "suspend", answer_suspend, OPERATORS, 1 },
	{ "resume", answer_suspend, OPERATORS, 0 },
	{ "suspended", answer_suspended, OPERATORS, 0 },
	{ "packages", answer_packages, 0, 0 },
	{ "remove-packages", answer_remove_packages, 0, 0 },
	{ "tools", answer_tools, OPERATORS, 0 },
	{ "describe-tool", answer_describe_tool, OPERATORS, 0 },
	{ "call-tool", answer_call_tool, OPERATORS, 0 },
};

/* NULL: the answer comes later. */
static json_t *
admin_answer(struct peer *peer)
{
	const char *what = json_string_value(json_object_get(peer->request, "do"));
	struct why why = { .text = "not understood" };
	struct asked asked = { peer, peer->request,
			       json_string_value(json_object_get(peer->request, "id")), 0, &why };
	size_t i = 0, n = sizeof(requests) / sizeof(requests[0]);
	json_t *result = NULL;

	while (i < n && !(what && strcmp(requests[i].name, what) == 0))
		i++;
	if (i < n && (requests[i].rules & OPERATORS) && !is_operator(peer))
		return admin_say_error("you are not an operator ([admin] operators)");
	if (i < n && (requests[i].rules & WITH_ID) && !asked.id)
		return admin_say_error("id: which one?");
	if (i < n) {
		asked.value = requests[i].value;
		result = requests[i].answer(&asked);
	}
	return result || peer->call || peer->noted.place ? result : admin_say_error(why.text);
}

/* ---- whom it is about ---- */

/* Is there room for the peer? Users who are not operators have few places, so that they cannot keep
 * operators out. is_known false: it is not known yet whether the user is an operator. */
static bool
admin_has_room(struct peer *peer, bool is_known)
{
	const struct peer *other;
	unsigned int strangers = 0, all = 0, own = 0;

	peer->is_stranger = is_known && !is_operator(peer);
	LIST_FOREACH(other, &peer->admin->peers, link) {
		if (other == peer)
			continue;
		all++;
		strangers += other->is_stranger;
		own += strcmp(other->principal, peer->principal) == 0;
	}
	if (all >= CONNECTIONS_MAX || (peer->is_stranger && strangers >= STRANGERS_MAX))
		return false;
	return own < STRANGERS_PER_USER || (is_known && !peer->is_stranger);
}

/* Is the peer's uid that of an account? A subordinate uid does not act for its owner here: an
 * operator's container is not an operator. If the directory does not answer, the uid alone counts,
 * which can give it fewer rights. False: it is looked up; or the peer was closed and freed. */
static bool
admin_knows_owner(struct peer *peer)
{
	struct why why = { .text = "" };
	uid_t owner = peer->uid;
	int r = peer->owner_known ? 0 : gate_owner(peer->admin->options.gate, peer->uid,
						   &peer->identity, &owner, &why);

	if (r == -EINPROGRESS)
		return false;
	if (r == 0 && owner != peer->uid)
		why_say(&why, r = -EACCES, "", "uid %u is a subordinate uid of uid %u: connect as "
			"that user itself", peer->uid, owner);
	peer->owner_known = r != -EACCES && r != -EMLINK;
	if (!peer->owner_known)
		turn_away(peer, why.text);
	return peer->owner_known;
}

/* If the directory does not answer about a user, only its uid counts, which can give it fewer
 * rights. */
static bool
is_settled(void *arg, const char *principal)
{
	struct peer *peer = arg;

	return gate_identify(peer->admin->options.gate, principal, &peer->identity, NULL) !=
	       -EINPROGRESS;
}

/* Are all principals that the request concerns identified? False: the peer is woken when this may
 * have changed; or there was no room for it, and it was closed and freed. */
static bool
all_are_settled(struct peer *peer)
{
	const char *id = json_string_value(json_object_get(peer->request, "id"));

	if (!admin_knows_owner(peer) || !is_settled(peer, peer->principal))
		return false;
	if (!peer->is_admitted && !admin_has_room(peer, true)) {
		close_peer(peer);
		return false;
	}
	peer->is_admitted = true;
	return approvals_each_tenant(gate_approvals(peer->admin->options.gate), id, is_settled,
				     peer);
}

/* ---- connections ---- */

/* The peer has passed descriptors that take long to close. True: the connection is closed. */
static bool
admin_has_stalled(struct peer *peer)
{
	if (!watched_stalled("admin", peer->principal))
		return false;
	close_peer(peer);
	return true;
}

static void
admin_give(struct peer *peer, json_t *answer)
{
	struct evbuffer *in = bufferevent_get_input(peer->buffer);

	admin_send_line(peer, answer);
	json_decref(peer->request);
	peer->request = NULL;
	peer->is_asked = false;
	/* one request per turn of the loop, so that other peers are served in between */
	if (evbuffer_get_length(in) > 0)
		bufferevent_trigger(peer->buffer, EV_READ, BEV_TRIG_DEFER_CALLBACKS |
				    BEV_TRIG_IGNORE_WATERMARKS);
}

/* Answers the request, now or later. */
static void
admin_serve(struct peer *peer)
{
	json_t *given;

	if (!all_are_settled(peer))
		return;
	given = admin_answer(peer);
	if (given)
		admin_give(peer, given);
}

static void
on_settled(void *arg)
{
	struct peer *peer = arg;

	if (!admin_knows_owner(peer))
		return;
	if (peer->is_asked && !peer->call && !peer->noted.place)
		admin_serve(peer);
}

static void
admin_on_read(struct bufferevent *buffer, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(buffer);
	struct peer *peer = arg;
	size_t len;
	char *line;

	if (admin_has_stalled(peer))
		return;
	if (peer->is_asked || evbuffer_get_length(bufferevent_get_output(buffer)) >= UNREAD_MAX)
		return;		/* on_settled() or on_written() follows */
	line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF);
	if (line) {
		peer->request = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
		peer->is_asked = true;
		free(line);
		admin_serve(peer);
	} else if (evbuffer_get_length(in) >= LINE_MAX_BYTES) {
		close_peer(peer);
	}
}

/* The peer has read an answer. */
static void
admin_on_written(struct bufferevent *buffer, void *arg)
{
	struct peer *peer = arg;

	if (peer->is_behind) {
		peer->is_behind = false;
		admin_send_line(peer, make_list(peer, false));
	}
	admin_on_read(buffer, arg);
}

static void
admin_on_event(struct bufferevent *buffer, short what, void *arg)
{
	struct peer *peer = arg;

	(void)buffer;
	if (admin_has_stalled(peer))
		return;
	/* a peer that watches may be silent for any time */
	if ((what & BEV_EVENT_TIMEOUT) && peer->watches)
		bufferevent_enable(buffer, EV_READ);
	else
		close_peer(peer);
}

static void
on_accept(struct evconnlistener *, evutil_socket_t fd, struct sockaddr *, int, void *arg)
{
	static const struct timeval idle = { IDLE_S, 0 };
	struct admin *admin = arg;
	struct ucred who;
	socklen_t len = sizeof(who);
	struct peer *peer;
	uid_t owner;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0) {
		close(fd);
		return;
	}
	peer = xcalloc(1, sizeof(*peer));
	peer->admin = admin;
	peer->uid = who.uid;
	snprintf(peer->principal, sizeof(peer->principal), "uid:%u", who.uid);
	peer->identity.on_known = on_settled;
	peer->identity.arg = peer;
	peer->is_admitted = gate_owner(admin->options.gate, who.uid, NULL, &owner, NULL) == 0 &&
			    gate_identify(admin->options.gate, peer->principal, NULL, NULL) !=
				    -EINPROGRESS;
	if (!admin_has_room(peer, peer->is_admitted)) {
		free(peer);
		close(fd);
		return;
	}
	peer->buffer = xalloc_check(bufferevent_socket_new(admin->options.base, fd,
							   BEV_OPT_CLOSE_ON_FREE));
	bufferevent_setwatermark(peer->buffer, EV_READ, 0, LINE_MAX_BYTES);
	bufferevent_setcb(peer->buffer, admin_on_read, admin_on_written, admin_on_event, peer);
	watched_buffers(peer->buffer, peer->principal);
	bufferevent_set_timeouts(peer->buffer, &idle, NULL);
	bufferevent_enable(peer->buffer, EV_READ | EV_WRITE);
	LIST_INSERT_HEAD(&admin->peers, peer, link);
	admin->n++;
	(void)admin_knows_owner(peer);
}

static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct admin *admin = arg;

	accepting_pause(&admin->accepting, errno);
	evconnlistener_disable(listener);
}

static void
on_resume(void *arg)
{
	struct admin *admin = arg;

	for (size_t i = 0; i < ADMIN_SOCKETS; i++)
		if (admin->listener[i])
			evconnlistener_enable(admin->listener[i]);
}

static void
on_change(void *arg)
{
	struct admin *admin = arg;
	struct peer *peer;

	LIST_FOREACH(peer, &admin->peers, link) {
		if (!peer->watches)
			continue;
		/* a peer that does not read gets the current state when it does */
		if (evbuffer_get_length(bufferevent_get_output(peer->buffer)) >= UNREAD_MAX)
			peer->is_behind = true;
		else
			admin_send_line(peer, make_list(peer, false));
	}
}

struct admin *
admin_new(const struct admin_options *options)
{
	struct admin *admin;
	bool any = false;

	for (size_t i = 0; i < ADMIN_SOCKETS; i++)
		any |= options->fd[i] >= 0;
	if (!any)
		return NULL;
	admin = xcalloc(1, sizeof(*admin));
	admin->options = *options;
	LIST_INIT(&admin->peers);
	accepting_init(&admin->accepting, options->base, on_resume, admin, false);
	for (size_t i = 0; i < ADMIN_SOCKETS; i++) {
		if (options->fd[i] < 0)
			continue;
		watched_refuse(options->fd[i]);
		evutil_make_socket_nonblocking(options->fd[i]);
		admin->listener[i] = xalloc_check(evconnlistener_new(options->base,
			on_accept, admin, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
			0, options->fd[i]));
		evconnlistener_set_error_cb(admin->listener[i], on_accept_error);
	}
	approvals_on_change(gate_approvals(options->gate), on_change, admin);
	return admin;
}

void
admin_free(struct admin *admin)
{
	struct peer *peer;

	if (!admin)
		return;
	approvals_on_change(gate_approvals(admin->options.gate), NULL, NULL);
	while ((peer = LIST_FIRST(&admin->peers)))
		close_peer(peer);
	for (size_t i = 0; i < ADMIN_SOCKETS; i++)
		if (admin->listener[i])
			evconnlistener_free(admin->listener[i]);
	accepting_free(&admin->accepting);
	free(admin);
}
