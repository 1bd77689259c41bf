/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python-egress: connects to the outside for scripts, where the policy allows it.
 *
 * mcp-pythond starts one process for all workers, when the first execution with network access
 * begins. A worker has only its own loopback device. There it makes a listening socket before a
 * script runs. The socket reaches this process through the supervisor, with the permitted targets
 * (EGRESS_OPEN). Scripts find it by HTTP_PROXY and HTTPS_PROXY.
 *
 * Bytes of scripts and origins are hostile. So this process has a uid of its own where spare uids
 * exist, no capability, no file and a syscall filter. It has the secrets that it puts into requests
 * (secret.h) and no others, and is told the permitted targets of each execution. It reports the end
 * of each connection.
 *
 *   1. descriptor 3 is the supervisor's socket; EGRESS_CONFIGURE is read from it
 *   2. /etc/resolv.conf and /etc/hosts are read, the sockets for name servers opened, certificates
 *      read if there are secrets
 *   3. the jail is closed (filter.c) and proved; EGRESS_READY is sent
 *   4. the loop: one thread, in which nothing may wait (base/stall.h) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>

#include "base/turns.h"
#include "base/xalloc.h"
#include "egress/filter.h"
#include "egress/proxy.h"
#include "egress/secret.h"
#include "proto/control.h"

#define PROGRAM "mcp-python-egress"
#define WRITER_MAX (4 * 1024 * 1024)	/* reports that the supervisor has not read */
#define DESCRIPTORS_KEPT 512		/* for listening sockets, lookups and the process itself */

#ifdef WITH_SANITIZERS
const char *__asan_default_options(void);

/* The leak checker looks into /proc, which is closed. */
const char *
__asan_default_options(void)
{
	return "detect_leaks=0:abort_on_error=1";
}
#endif

struct egress {
	struct proxy proxy;
	struct secrets secrets;
	struct control control;
};

static _Noreturn void
egress_main_give_up(const char *what, int error)
{
	fprintf(stderr, PROGRAM ": %s: %s\n", what, strerror(error));
	exit(EXIT_FAILURE);
}

/* ---- the supervisor ---- */

static void
egress_tell(void *arg, const struct msg *msg)
{
	struct egress *e = arg;

	/* Without a report connections must not be made. */
	if (control_send(&e->control, msg) < 0)
		egress_main_give_up("a report", ENOBUFS);
}

static void
on_frame(void *arg, struct frame *frame)
{
	struct egress *e = arg;
	const struct msg_egress_open *open = &frame->msg.egress_open;
	int r;

	if (frame->msg.type == MSG_EGRESS_OPEN) {
		r = grant_open(&e->proxy, open, frame_take_fd(frame, 0));
		if (r == -EEXIST)
			egress_main_give_up("the supervisor", EBADMSG);
		if (r < 0 && r != -ENOTSOCK)
			fprintf(stderr, PROGRAM ": a grant: %s\n", strerror(-r));
	} else if (frame->msg.type == MSG_EGRESS_CLOSE) {
		grant_close(&e->proxy, frame->msg.egress_close.execution);
	} else {
		egress_main_give_up("the supervisor", EBADMSG);
	}
}

/* ---- start ---- */

/* libevent's warnings are dropped: scripts could cause any number of them, about name servers. */
static void
say_nothing(int, const char *)
{
}

/* Names are complete: no search domains of this machine are tried. */
static struct evdns_base *
open_dns(struct event_base *base, const struct msg_egress_configure *configure)
{
	static const struct {
		const char *name, *value;
	} options[] = {
		{ "timeout:", "3" }, { "attempts:", "2" }, { "max-inflight:", "4096" },
		{ "getaddrinfo-allow-skew:", "1" },
	};
	struct evdns_base *dns = evdns_base_new(base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	char text[128];

	if (!dns)
		return NULL;
	evdns_set_log_fn(say_nothing);
	if (configure->has_nameserver) {
		snprintf(text, sizeof(text), "%.*s", (int)configure->nameserver.len,
			 configure->nameserver.at);
		if (evdns_base_load_hosts(dns, "/etc/hosts") < 0)
			evdns_base_load_hosts(dns, NULL);
		if (evdns_base_nameserver_ip_add(dns, text) != 0)
			egress_main_give_up(text, EINVAL);
	} else {
		/* Without the file libevent uses the server on this machine. */
		evdns_base_resolv_conf_parse(dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
	}
	evdns_base_search_clear(dns);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		evdns_base_set_option(dns, options[i].name, options[i].value);
	return dns;
}

/* There are two descriptors for each connection, and memory for all. */
static unsigned int
connections_max(void)
{
	struct rlimit limit;
	rlim_t most;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < 2 * DESCRIPTORS_KEPT)
		return 64;
	most = (limit.rlim_max - DESCRIPTORS_KEPT) / 2;
	return (unsigned int)(most < PROXY_CONNECTIONS_MAX ? most : PROXY_CONNECTIONS_MAX);
}

/* Secrets are copied; they are overwritten in the memory of the message. */
static void
egress_main_take_secrets(struct egress *e, const struct msg_egress_configure *configure)
{
	int r = secrets_take(&e->secrets, configure);

	for (size_t i = 0; i < configure->values.n; i++)
		explicit_bzero((void *)configure->values.item[i].at,
			       configure->values.item[i].len);
	if (r < 0)
		egress_main_give_up("the secrets", -r);
	e->proxy.secrets = &e->secrets;
}

static void
egress_start_process(struct egress *e)
{
	struct msg ready = { .type = MSG_EGRESS_READY };
	struct frame frame = { 0 };
	const char *what;
	int r;

	r = control_configure(&e->control, WRITER_MAX, MSG_EGRESS_CONFIGURE, &frame);
	if (r < 0)
		egress_main_give_up("the configuration", -r);
	e->proxy.base = event_base_new();
	if (!e->proxy.base || evutil_secure_rng_init() < 0)
		egress_main_give_up("the loop", ENOMEM);
	r = turns_guard(e->proxy.base, NULL);
	if (r < 0)
		egress_main_give_up("the guard against waits", -r);
	e->proxy.dns = open_dns(e->proxy.base, &frame.msg.egress_configure);
	if (!e->proxy.dns)
		egress_main_give_up("names", ENOMEM);
	egress_main_take_secrets(e, &frame.msg.egress_configure);
	frame_done(&frame);
	e->proxy.connections_max = connections_max();
	e->proxy.tell = egress_tell;
	e->proxy.tell_arg = e;
	LIST_INIT(&e->proxy.grants);
	r = control_start(&e->control, e->proxy.base, on_frame, e);
	if (r < 0)
		egress_main_give_up("the control socket", -r);
	r = filter_enter(&ready.egress_ready.landlock_abi, &what);
	if (r < 0)
		egress_main_give_up(what, -r);
	ready.egress_ready.build = msg_str(PROTO_BUILD);
	egress_tell(e, &ready);
}

int
main(int argc, char **)
{
	static struct egress egress;

	event_set_mem_functions(xmalloc, xrealloc, free);
	xalloc_for_openssl();
	if (argc != 1 || !control_is_given()) {
		fprintf(stderr, PROGRAM " is started by mcp-pythond, with a socket on descriptor "
			"%d.\n", CONTROL_FD);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	egress_start_process(&egress);
	event_base_dispatch(egress.proxy.base);
	return EXIT_SUCCESS;
}
