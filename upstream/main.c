/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python-tools: the MCP client of the servers that [tools NAME] names, for scripts.
 *
 * If there is such a section, mcp-pythond starts one process of this program at its own start. The
 * process starts the servers that are commands, outside of every jail and with its own uid. It
 * speaks HTTP with the servers that have a url. It is the client of each server. Scripts call the
 * servers' tools through the supervisor, which decides about each call (policy/tools.h).
 *
 * All input from servers is hostile. So this process has no capability, and where spare uids exist
 * a uid that only those servers share; they cannot debug it. Its messages to the supervisor are
 * bounded, and are checked there again.
 *
 * 1. Descriptor 3 is the supervisor's socket; TOOLS_CONFIGURE is read from it.
 * 2. TOOLS_READY is sent, and the servers are started.
 * 3. The loop runs: one thread, whose waits are bounded (base/stall.h).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <event2/event.h>
#include <jansson.h>

#include "base/passrights.h"
#include "base/turns.h"
#include "base/xalloc.h"
#include "proto/control.h"
#include "upstream/outbox.h"
#include "upstream/server.h"

#define PROGRAM "mcp-python-tools"
#define END_MS 400			/* for servers to be told that their sessions are over */
#define DATA_MAX (1UL << 30)		/* bytes of memory */

#ifdef WITH_SANITIZERS
const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0:abort_on_error=1";
}
#endif

struct client {
	struct event_base *base;
	struct server *server[TOOL_SERVERS_MAX];
	uint32_t n_servers;
	struct control control;
};

static _Noreturn void
upstream_main_give_up(const char *what, int error)
{
	fprintf(stderr, PROGRAM ": %s: %s\n", what, strerror(error));
	exit(EXIT_FAILURE);
}

/* ---- the supervisor ---- */

static void
upstream_main_tell(void *arg, const struct msg *msg)
{
	struct client *c = arg;

	/* A call without a result would be waited for; all are answered when this process ends. */
	if (outbox_send(&c->control, msg) < 0)
		upstream_main_give_up("a result", ENOBUFS);
}

static bool
upstream_main_is_full(void *arg)
{
	const struct client *c = arg;

	return outbox_is_full(&c->control);
}

static void
on_frame(void *arg, struct frame *frame)
{
	struct client *c = arg;
	const struct msg *msg = &frame->msg;

	if (msg->type == MSG_TOOLS_CALL && msg->tools_call.server < c->n_servers)
		server_call(c->server[msg->tools_call.server], &msg->tools_call);
	else if (msg->type == MSG_TOOLS_CANCEL)
		for (uint32_t i = 0; i < c->n_servers; i++)
			server_cancel(c->server[i], msg->tools_cancel.call);
	else
		upstream_main_give_up("the supervisor", EBADMSG);
}

/* ---- start ---- */

/* A server can make this process use memory: that is bounded here, for this process alone
 * (upstream/process.c). A server could debug it: the kernel refuses that from now on. */
static void
upstream_confine(void)
{
	struct rlimit data;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		upstream_main_give_up("no new privileges", errno);
#ifndef WITH_SANITIZERS
	if (getrlimit(RLIMIT_DATA, &data) < 0)
		upstream_main_give_up("the limit of memory", errno);
	data.rlim_cur = data.rlim_max < DATA_MAX ? data.rlim_max : DATA_MAX;
	if (setrlimit(RLIMIT_DATA, &data) < 0)
		upstream_main_give_up("the limit of memory", errno);
#else
	(void)data;
#endif
}

/* Kept for ever. */
static const char *
text_of(const struct msg_strs *strs, size_t i)
{
	return xmemdup0(strs->item[i].at, strs->item[i].len);
}

static void
make_servers(struct client *c, const struct msg_tools_configure *configure)
{
	const struct msg_strs *all[] = { &configure->commands, &configure->urls,
					 &configure->ca_files, &configure->headers,
					 &configure->token_urls, &configure->client_ids,
					 &configure->scopes, &configure->credentials,
					 &configure->troubles };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (configure->names.n != all[i]->n)
			upstream_main_give_up("the configuration", EBADMSG);
	for (size_t i = 0; i < configure->names.n; i++) {
		const struct server_options options = {
			.base = c->base, .name = text_of(&configure->names, i),
			.number = (uint32_t)i, .command = text_of(&configure->commands, i),
			.url = text_of(&configure->urls, i),
			.ca_file = text_of(&configure->ca_files, i),
			.header = text_of(&configure->headers, i),
			.token_url = text_of(&configure->token_urls, i),
			.client_id = text_of(&configure->client_ids, i),
			.scope = text_of(&configure->scopes, i),
			.credential = text_of(&configure->credentials, i),
			.trouble = text_of(&configure->troubles, i),
			.tell = upstream_main_tell, .is_full = upstream_main_is_full, .arg = c,
		};

		c->server[c->n_servers++] = server_new(&options);
		/* Credentials are copied; they are overwritten in the memory of the message. */
		explicit_bzero((void *)configure->credentials.item[i].at,
			       configure->credentials.item[i].len);
	}
}

static void
upstream_start_process(struct client *c)
{
	struct msg ready = { .type = MSG_TOOLS_READY,
			     .tools_ready.build = msg_str(PROTO_BUILD) };
	struct frame frame = { 0 };
	int r;

	r = control_configure(&c->control, OUTBOX_MAX, MSG_TOOLS_CONFIGURE, &frame);
	if (r < 0)
		upstream_main_give_up("the configuration", -r);
	upstream_confine();
	c->base = event_base_new();
	if (!c->base)
		upstream_main_give_up("the loop", ENOMEM);
	/* No message to this process carries descriptors; an older kernel lets them arrive. */
	passrights_set(CONTROL_FD, false);
	r = turns_guard(c->base, NULL);
	if (r < 0)
		upstream_main_give_up("the guard against waits", -r);
	r = control_start(&c->control, c->base, on_frame, c);
	if (r < 0)
		upstream_main_give_up("the control socket", -r);
	make_servers(c, &frame.msg.tools_configure);
	frame_done(&frame);
	upstream_main_tell(c, &ready);
	for (uint32_t i = 0; i < c->n_servers; i++)
		server_start(c->server[i]);
}

static bool
is_busy(const struct client *c)
{
	for (uint32_t i = 0; i < c->n_servers; i++)
		if (server_is_busy(c->server[i]))
			return true;
	return false;
}

/* The supervisor is gone, or wants no more. */
static void
upstream_end(struct client *c)
{
	const struct timeval most = { .tv_usec = END_MS * 1000 };

	control_stop(&c->control);
	for (uint32_t i = 0; i < c->n_servers; i++)
		server_end(c->server[i]);
	event_base_loopexit(c->base, &most);
	while (is_busy(c)) {
		event_base_loop(c->base, EVLOOP_ONCE);
		if (event_base_got_exit(c->base))
			break;
	}
}

int
main(int argc, char **)
{
	static struct client client;

	event_set_mem_functions(xmalloc, xrealloc, free);
	json_set_alloc_funcs(xmalloc, free);
	xalloc_for_openssl();
	if (argc != 1 || !control_is_given()) {
		fprintf(stderr, PROGRAM " is started by mcp-pythond, with a socket on descriptor "
			"%d.\n", CONTROL_FD);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	upstream_start_process(&client);
	event_base_dispatch(client.base);
	upstream_end(&client);
	return EXIT_SUCCESS;
}
