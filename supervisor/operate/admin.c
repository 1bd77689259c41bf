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
#include "base/stall.h"
#include "base/watched.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "govern/approvals.h"
#include "govern/gate.h"
#include "policy/config.h"
#include "supervisor/operate/operation.h"
#include "supervisor/operate/operator_tools.h"
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
	operator_tools_drop(peer->call);
	bufferevent_free(peer->buffer);
	json_decref(peer->request);
	free(peer);
}

static void
admin_free_text(const void *bytes, size_t len, void *arg)
{
	(void)bytes;
	(void)len;
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

static json_t *
admin_say_error(const char *text)
{
	return json_pack("{s:b,s:s}", "ok", 0, "error", text);
}

static json_t *
say_not_operator(void)
{
	return admin_say_error("you are not an operator ([admin] operators)");
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
admin_answer_list(struct peer *peer, const json_t *request)
{
	return make_list(peer, json_is_true(json_object_get(request, "all")));
}

static json_t *
answer_watch(struct peer *peer, const json_t *request)
{
	(void)request;
	peer->watches = true;
	return make_list(peer, false);
}

static json_t *
answer_show(struct peer *peer, const json_t *request)
{
	struct gate *gate = peer->admin->options.gate;
	const char *id = json_string_value(json_object_get(request, "id"));
	json_t *approval = id ? approvals_show(gate_approvals(gate), id,
					       gate_subject(gate, peer->principal),
					       is_operator(peer)) : NULL;

	if (!approval)
		return admin_say_error("there is no such request that you may see");
	return json_pack("{s:b,s:o}", "ok", 1, "approval", approval);
}

static json_t *
admin_decide(struct peer *peer, const json_t *request, enum approval_state state)
{
	struct gate *gate = peer->admin->options.gate;
	const char *id = json_string_value(json_object_get(request, "id"));
	const struct approval_decision decision = {
		.state = state,
		.why = json_string_value(json_object_get(request, "reason")),
		.for_run = json_is_true(json_object_get(request, "for_run")),
	};
	struct why why = { .field = "" };

	if (!id)
		return admin_say_error("id: which one?");
	if (decision.why && strlen(decision.why) > REASON_MAX)
		return admin_say_error("reason: is too long");
	if (approvals_decide(gate_approvals(gate), id, gate_subject(gate, peer->principal),
			     &decision, &why) < 0)
		return admin_say_error(why.text);
	return json_pack("{s:b}", "ok", 1);
}

static json_t *
answer_approve(struct peer *peer, const json_t *request)
{
	return admin_decide(peer, request, APPROVAL_GRANTED);
}

static json_t *
answer_deny(struct peer *peer, const json_t *request)
{
	return admin_decide(peer, request, APPROVAL_REFUSED);
}

static json_t *
answer_revoke(struct peer *peer, const json_t *request)
{
	struct gate *gate = peer->admin->options.gate;
	const char *id = json_string_value(json_object_get(request, "id"));
	struct why why = { .field = "" };

	if (!id)
		return admin_say_error("id: which one?");
	if (approvals_revoke(gate_approvals(gate), id, gate_subject(gate, peer->principal),
			     &why) < 0)
		return admin_say_error(why.text);
	return json_pack("{s:b}", "ok", 1);
}

static json_t *
answer_status(struct peer *peer, const json_t *request)
{
	const struct operation *operation = peer->admin->options.operation;
	bool operator = is_operator(peer);
	json_t *answer = operator ? operation_status(operation)
				  : operation_status_of(operation, peer->principal);

	(void)request;
	json_object_set_new(answer, "ok", json_true());
	json_object_set_new(answer, "scope", json_string(operator ? "service" : "self"));
	return answer;
}

static json_t *
answer_metrics(struct peer *peer, const json_t *request)
{
	json_t *answer;
	size_t len;
	own_mem char *text = NULL;

	(void)request;
	if (!is_operator(peer))
		return say_not_operator();
	text = operation_metrics(peer->admin->options.operation, true, &len);
	answer = json_pack("{s:b,s:s%}", "ok", 1, "metrics", text, len);
	return answer;
}

static json_t *
answer_executions(struct peer *peer, const json_t *request)
{
	(void)request;
	return is_operator(peer) ? running_list(peer->admin->options.engine) : say_not_operator();
}

static json_t *
answer_stop(struct peer *peer, const json_t *request)
{
	const struct admin_options *options = &peer->admin->options;
	struct why why = { .field = "" };
	json_t *answer;

	if (!is_operator(peer))
		return say_not_operator();
	answer = running_stop(options->engine, gate_audit(options->gate), peer->principal, request,
			      &why);
	return answer ? answer : admin_say_error(why.text);
}

static json_t *
change_tenant(struct peer *peer, const json_t *request, bool suspend)
{
	const struct admin_options *options = &peer->admin->options;
	struct why why = { .field = "" };
	json_t *answer;

	if (!is_operator(peer))
		return say_not_operator();
	answer = running_suspend(options->engine, options->gate, peer->principal, request, suspend,
				 &why);
	return answer ? answer : admin_say_error(why.text);
}

static json_t *
answer_suspend(struct peer *peer, const json_t *request)
{
	return change_tenant(peer, request, true);
}

static json_t *
answer_resume(struct peer *peer, const json_t *request)
{
	return change_tenant(peer, request, false);
}

static json_t *
answer_suspended(struct peer *peer, const json_t *request)
{
	(void)request;
	return is_operator(peer) ? running_suspended(peer->admin->options.gate)
				 : say_not_operator();
}

static json_t *
answer_tools(struct peer *peer, const json_t *request)
{
	(void)request;
	return is_operator(peer) ? operator_tools_list(peer->admin->options.engine)
				 : say_not_operator();
}

static json_t *
answer_describe_tool(struct peer *peer, const json_t *request)
{
	struct why why = { .field = "" };
	json_t *answer;

	if (!is_operator(peer))
		return say_not_operator();
	answer = operator_tools_describe(peer->admin->options.engine, request, &why);
	return answer ? answer : admin_say_error(why.text);
}

static void admin_give(struct peer *peer, json_t *answer);

static void
admin_on_called(void *arg, json_t *answer)
{
	struct peer *peer = arg;

	peer->call = NULL;
	admin_give(peer, answer);
}

/* NULL: the answer comes later. */
static json_t *
answer_call_tool(struct peer *peer, const json_t *request)
{
	const struct admin_options *options = &peer->admin->options;
	struct why why = { .field = "" };

	if (!is_operator(peer))
		return say_not_operator();
	peer->call = operator_tools_call(options->engine, gate_audit(options->gate),
					 peer->principal, request, admin_on_called, peer, &why);
	return peer->call ? NULL : admin_say_error(why.text);
}

static const struct {
	const char *name;
	json_t *(*answer)(struct peer *peer, const json_t *request);
} requests[] = {
	{ "list", admin_answer_list }, { "show", answer_show }, { "watch", answer_watch },
	{ "approve", answer_approve }, { "deny", answer_deny }, { "revoke", answer_revoke },
	{ "status", answer_status }, { "metrics", answer_metrics },
	{ "executions", answer_executions }, { "stop", answer_stop },
	{ "suspend", answer_suspend }, { "resume", answer_resume },
	{ "suspended", answer_suspended },
	{ "tools", answer_tools }, { "describe-tool", answer_describe_tool },
	{ "call-tool", answer_call_tool },
};

/* NULL: the answer comes later. */
static json_t *
admin_answer(struct peer *peer)
{
	const char *what = json_string_value(json_object_get(peer->request, "do"));
	json_t *result = NULL;

	for (size_t i = 0; what && i < sizeof(requests) / sizeof(requests[0]); i++)
		if (strcmp(requests[i].name, what) == 0)
			result = requests[i].answer(peer, peer->request);
	return result || peer->call ? result : admin_say_error("not understood");
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
	if (!stall_waited())
		return false;
	watched_log("admin", peer->principal);
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
	if (peer->is_asked && !peer->call)
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
on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
	  int address_len, void *arg)
{
	static const struct timeval idle = { IDLE_S, 0 };
	struct admin *admin = arg;
	struct ucred who;
	socklen_t len = sizeof(who);
	struct peer *peer;
	uid_t owner;

	(void)listener;
	(void)address;
	(void)address_len;
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
	watched_buffers(peer->buffer);
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
