/* SPDX-License-Identifier: Apache-2.0 */
/* A loop of libevent's is guarded against what strangers pass. passrights_set() is of a kernel
 * that does not know it, or no descriptor could be passed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/passrights.h"
#include "base/stall.h"
#include "base/turns.h"
#include "base/watched.h"
#include "tests/unit/base/linger.h"
#include "tests/unit/base/refuse_syscall.h"

int
passrights_set(int socket, bool may)
{
	(void)socket;
	(void)may;
	return -ENOPROTOOPT;
}

#define MANY 60		/* waits, of which the first ones are excused */

/* The kernel has no memory for so many registrations. */
static unsigned int to_refuse, refused;

int
refuses_syscall(long number)
{
	if (number != SYS_epoll_ctl || to_refuse == 0)
		return 0;
	to_refuse--;
	refused++;
	return ENOMEM;
}

struct rig {
	struct loop *loop;
	struct peer {
		struct rig *rig;
		const char *name;
		struct bufferevent *bev;
		int fd;			/* the other end */
		unsigned int reads, blamed;
		unsigned int work_ms;	/* with each read */
	} peer[2];
	struct event *end;
	uint64_t start_ms;
};

static void
on_read(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct peer *peer = arg;

	peer->reads++;
	peer->blamed += watched_stalled("peer", peer->name);
	evbuffer_drain(in, evbuffer_get_length(in));
	for (uint64_t end_ms = clock_ms() + peer->work_ms; clock_ms() < end_ms;)
		;
	/* In a turn of its own: otherwise libevent would not look again. */
	if (peer->rig->peer[0].blamed > 0 && peer->rig->peer[1].reads > 0)
		event_active(peer->rig->end, EV_TIMEOUT, 0);
}

static void
on_end(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	loop_stop(((struct rig *)arg)->loop);
}

static void
set_up(struct rig *rig, bool any_file)
{
	*rig = (struct rig){ .loop = loop_new(any_file), .start_ms = clock_ms() };
	assert_non_null(rig->loop);
	assert_int_equal(turns_guard(loop_base(rig->loop), NULL), 0);
	rig->end = event_new(loop_base(rig->loop), -1, 0, on_end, rig);
	for (size_t i = 0; i < 2; i++) {
		struct peer *peer = &rig->peer[i];
		int pair[2];

		assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
		evutil_make_socket_nonblocking(pair[0]);
		peer->rig = rig;
		peer->name = i == 0 ? "uid:1" : "uid:2";
		peer->fd = pair[1];
		peer->bev = bufferevent_socket_new(loop_base(rig->loop), pair[0],
						   BEV_OPT_CLOSE_ON_FREE);
		bufferevent_setcb(peer->bev, on_read, NULL, NULL, peer);
		watched_buffers(peer->bev, peer->name);
		bufferevent_enable(peer->bev, EV_READ);
	}
}

static void
tear_down(struct rig *rig)
{
	for (size_t i = 0; i < 2; i++) {
		bufferevent_free(rig->peer[i].bev);
		close(rig->peer[i].fd);
	}
	event_free(rig->end);
	loop_free(rig->loop);
}

static void
a_stranger_is_ended_and_no_other(bool any_file)
{
	struct rig rig;

	set_up(&rig, any_file);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(linger_pass(rig.peer[0].fd, linger_open(NULL)), 0);
	assert_int_equal(write(rig.peer[1].fd, "x", 1), 1);
	rig.peer[1].work_ms = 3 * STALL_MS;
	assert_int_equal(loop_run(rig.loop), 0);
	assert_true(clock_ms() - rig.start_ms < HANG_MS);
	assert_in_range(rig.peer[0].blamed, 1, MANY);
	assert_int_equal(rig.peer[1].blamed, 0);
	tear_down(&rig);
}

static void
a_stranger_in_epoll(void **state)
{
	(void)state;
	a_stranger_is_ended_and_no_other(false);
}

static void
a_stranger_in_poll(void **state)
{
	(void)state;
	a_stranger_is_ended_and_no_other(true);
}

/* The peer does not read: libevent closes the socket, in a turn of its own. */
static void
what_lies_unread_is_no_wait_either(void **state)
{
	struct rig rig;

	(void)state;
	set_up(&rig, false);
	assert_int_equal(linger_pass(rig.peer[0].fd, linger_open(NULL)), 0);
	bufferevent_disable(rig.peer[0].bev, EV_READ);
	rig.peer[0].blamed = 1;
	bufferevent_free(rig.peer[0].bev);
	rig.peer[0].bev = bufferevent_socket_new(loop_base(rig.loop), -1, 0);
	assert_int_equal(write(rig.peer[1].fd, "x", 1), 1);
	assert_int_equal(loop_run(rig.loop), 0);
	assert_true(clock_ms() - rig.start_ms < HANG_MS);
	assert_int_equal(rig.peer[1].blamed, 0);
	tear_down(&rig);
	assert_true(clock_ms() - rig.start_ms < HANG_MS);
}

static void
on_byte(evutil_socket_t fd, short what, void *arg)
{
	char byte;

	(void)what;
	assert_int_equal(read((int)fd, &byte, 1), 1);
	event_base_loopbreak(arg);
}

/* Events come although their registration was refused, also with other conditions than at first. */
static void
a_refused_registration_is_repeated(void **state)
{
	struct loop *loop = loop_new(false);
	struct event_base *base = loop_base(loop);
	struct event *event, *writable;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	event = event_new(base, pair[0], EV_READ | EV_PERSIST, on_byte, base);
	writable = event_new(base, pair[0], EV_WRITE, on_byte, base);
	to_refuse = 5;
	refused = 0;
	assert_int_equal(event_add(event, NULL), 0);
	assert_int_equal(event_add(writable, NULL), 0);
	assert_int_equal(event_del(writable), 0);
	assert_int_equal(write(pair[1], "x", 1), 1);
	event_base_dispatch(base);
	assert_int_equal(to_refuse, 0);
	assert_int_equal(refused, 5);
	/* What no longer waits is not registered again. */
	to_refuse = 1;
	event_del(event);
	assert_int_equal(to_refuse, 0);
	to_refuse = 1;
	assert_int_equal(event_add(event, NULL), 0);
	event_del(event);
	event_free(event);
	event_free(writable);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(event_base_loop(base, EVLOOP_NONBLOCK), 1);
	loop_free(loop);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stranger_in_epoll),
		cmocka_unit_test(a_stranger_in_poll),
		cmocka_unit_test(what_lies_unread_is_no_wait_either),
		cmocka_unit_test(a_refused_registration_is_repeated),
	};

	log_init(LOG_ERR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
