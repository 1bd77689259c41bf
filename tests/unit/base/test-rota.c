/* SPDX-License-Identifier: Apache-2.0 */
/* Who is called, in which turn of the loop, and who is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/rota.h"

#define PIECES_MAX 8

struct piece {
	struct rig *rig;
	const char *owner;
	char name;
	unsigned int again;		/* how often it waits again when it is called */
	struct piece *forgets;		/* when it is called; NULL: none */
	struct rota_entry entry;
};

struct rig {
	struct event_base *base;
	struct rota *rota;
	struct piece piece[PIECES_MAX];
	size_t n;
	char called[32];		/* names, in their order */
};

static void
on_turn(void *arg)
{
	struct piece *p = arg;
	struct rig *rig = p->rig;

	assert_false(rota_waits(&p->entry));
	rig->called[strlen(rig->called)] = p->name;
	if (p->forgets)
		rota_forget(&p->forgets->entry);
	if (p->again) {
		p->again--;
		rota_wait(rig->rota, &p->entry, p->owner);
	}
}

static void
set_up(struct rig *rig)
{
	*rig = (struct rig){ .base = event_base_new() };
	rig->rota = rota_new(rig->base);
}

static void
tear_down(struct rig *rig)
{
	rota_free(rig->rota);
	event_base_free(rig->base);
}

/* owner is gone after the call: the rota has a name of its own. */
static struct piece *
add(struct rig *rig, const char *owner, char name)
{
	struct piece *p = &rig->piece[rig->n++];
	char text[8];

	*p = (struct piece){ .rig = rig, .owner = owner, .name = name,
			     .entry = { .on_turn = on_turn, .arg = p } };
	snprintf(text, sizeof(text), "%s", owner);
	rota_wait(rig->rota, &p->entry, text);
	memset(text, 'x', sizeof(text));
	assert_true(rota_waits(&p->entry));
	return p;
}

static void
turn(struct rig *rig)
{
	event_base_loop(rig->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static void
turns(struct rig *rig, unsigned int n)
{
	while (n--)
		turn(rig);
}

static void
owners_alternate(void **state)
{
	struct rig rig;

	(void)state;
	set_up(&rig);
	add(&rig, "a", '1');
	add(&rig, "a", '2');
	add(&rig, "a", '3');
	add(&rig, "b", '4');
	add(&rig, "b", '5');
	add(&rig, "c", '6');
	turns(&rig, 12);
	assert_string_equal(rig.called, "146253");
	tear_down(&rig);
}

/* And none in the turn after that. */
static void
one_is_called_in_a_turn(void **state)
{
	struct rig rig;

	(void)state;
	set_up(&rig);
	for (char name = '1'; name <= '4'; name++)
		add(&rig, "a", name);
	for (size_t i = 1; i <= 4; i++) {
		turn(&rig);
		assert_int_equal(strlen(rig.called), i);
		turn(&rig);
		assert_int_equal(strlen(rig.called), i);
	}
	tear_down(&rig);
}

static void
on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct rig *rig = arg;

	(void)fd;
	(void)what;
	rig->called[strlen(rig->called)] = '.';
}

/* What is ready all the time is called twice between each two pieces. */
static void
other_events_come_between(void **state)
{
	const struct timeval at_once = { 0 };
	struct rig rig;
	struct event *other;

	(void)state;
	set_up(&rig);
	other = event_new(rig.base, -1, EV_PERSIST, on_ready, &rig);
	for (char name = '1'; name <= '3'; name++)
		add(&rig, "a", name);
	for (size_t i = 0; i < 5; i++) {
		event_add(other, &at_once);
		turn(&rig);
	}
	/* libevent decides which of the two is the first in a turn. */
	assert_int_equal(strlen(rig.called), 8);
	assert_true(strcmp(rig.called, ".1..2..3") == 0 || strcmp(rig.called, "1..2..3.") == 0);
	event_free(other);
	tear_down(&rig);
}

static void
one_that_waits_again_is_the_last(void **state)
{
	struct rig rig;

	(void)state;
	set_up(&rig);
	add(&rig, "a", '1')->again = 2;
	add(&rig, "a", '2');
	add(&rig, "b", '3')->again = 2;
	turn(&rig);
	assert_string_equal(rig.called, "1");	/* not again in the same turn */
	turns(&rig, 20);
	assert_string_equal(rig.called, "1323131");
	tear_down(&rig);
}

static void
what_is_forgotten_is_not_called(void **state)
{
	struct rig rig;
	struct piece *first;

	(void)state;
	set_up(&rig);
	first = add(&rig, "a", '1');
	first->forgets = add(&rig, "a", '2');
	add(&rig, "a", '3');
	rota_forget(&add(&rig, "b", '4')->entry);	/* the only one of its owner */
	rota_forget(&rig.piece[3].entry);		/* a second call does nothing */
	turns(&rig, 6);
	assert_string_equal(rig.called, "13");
	rota_forget(&add(&rig, "a", '5')->entry);	/* the only one at all */
	turns(&rig, 2);
	assert_string_equal(rig.called, "13");
	add(&rig, "a", '6');
	turns(&rig, 3);
	assert_string_equal(rig.called, "136");
	tear_down(&rig);
}

static void
it_can_end_with_its_event_pending(void **state)
{
	struct rig rig;

	(void)state;
	set_up(&rig);
	rota_forget(&add(&rig, "a", '1')->entry);
	tear_down(&rig);
	rota_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_alternate),
		cmocka_unit_test(one_is_called_in_a_turn),
		cmocka_unit_test(other_events_come_between),
		cmocka_unit_test(one_that_waits_again_is_the_last),
		cmocka_unit_test(what_is_forgotten_is_not_called),
		cmocka_unit_test(it_can_end_with_its_event_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
