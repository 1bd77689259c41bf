/* SPDX-License-Identifier: Apache-2.0 */
/* Where cells end, as people type them and as a pipe brings them. */
#include "client/cell.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/client/cmocka_all.h"

#define N(array) (sizeof(array) / sizeof(array)[0])

static struct cell
fed(const char *text)
{
	struct cell cell = {0};

	for (;;) {
		size_t len = strcspn(text, "\n");

		cell_feed(&cell, text, len);
		if (!text[len])
			return cell;
		text += len + 1;
	}
}

static const struct state_case {
	const char *text;
	enum cell_state state;
} states[] = {
	{ "", CELL_EMPTY },
	{ "  \t", CELL_EMPTY },
	{ "# a comment: with ( brackets", CELL_EMPTY },
	{ "#\n\n  # x", CELL_EMPTY },
	{ "1 + 1", CELL_WHOLE },
	{ "x = 1  # (", CELL_WHOLE },
	{ "x: int", CELL_WHOLE },
	{ "d = {1: 2}", CELL_WHOLE },
	{ "a[1:]", CELL_WHOLE },
	{ "lambda: 0", CELL_WHOLE },
	{ "iffy = 1", CELL_WHOLE },
	{ "\xc3\xa9t\xc3\xa9 = 1", CELL_WHOLE },
	{ "'(' + \"[\"", CELL_WHOLE },
	{ "'\\'' + '('", CELL_WHOLE },
	{ "r'\\' '", CELL_WHOLE },
	{ "'not closed (", CELL_WHOLE },
	{ ")", CELL_WHOLE },
	{ "'''a\nb'''", CELL_WHOLE },
	{ "\"\"\"a\n'''\n\"\"\"", CELL_WHOLE },
	{ "'''a\\'''\nb'''", CELL_WHOLE },
	{ "f(1,\n  2)", CELL_WHOLE },
	{ "x = 1 + \\\n 2", CELL_WHOLE },
	{ "'a\\\nb'", CELL_WHOLE },
	{ "''''quoted' '''", CELL_WHOLE },

	{ "f(", CELL_OPEN },
	{ "f(1,\n\n", CELL_OPEN },
	{ "[ # ]", CELL_OPEN },
	{ "{'a':", CELL_OPEN },
	{ "'''a", CELL_OPEN },
	{ "'''a\n''", CELL_OPEN },
	{ "x = '''a' ''", CELL_OPEN },
	{ "x = 1 + \\", CELL_OPEN },
	{ "'a\\", CELL_OPEN },
	{ "if f(a,\n     b", CELL_OPEN },

	{ "if x:", CELL_BLOCK },
	{ "if x: print(1)", CELL_BLOCK },
	{ "for i in x:\n    pass", CELL_BLOCK },
	{ "while True:  # why", CELL_BLOCK },
	{ "def f(a,\n      b):", CELL_BLOCK },
	{ "class A: pass", CELL_BLOCK },
	{ "async def f():", CELL_BLOCK },
	{ "match x:", CELL_BLOCK },
	{ "@decorated", CELL_BLOCK },
	{ "try:\n    a\nexcept:\n    b", CELL_BLOCK },
	{ "if x:\n    a = '''\n", CELL_OPEN },
};

static void
states_are_python_s(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(states); i++) {
		struct cell cell = fed(states[i].text);

		if (cell_state(&cell) != states[i].state)
			fail_msg("%s: %d", states[i].text, (int)cell_state(&cell));
	}
}

static const struct next_case {
	const char *text, *next;
	bool ends;
} nexts[] = {
	{"x = 1", "y = 2", true},
	{"x = 1", "  y", false},
	{"x = 1", "", false},
	{"x = 1", "# more", false},
	{"# only this", "x = 1", false},
	{"if x:\n    pass", "print()", true},
	{"if x:\n    pass", "    print()", false},
	{"if x:\n    pass\n", "else:", false},
	{"if x:\n    pass", "elif y:", false},
	{"try:\n    pass", "except* E:", false},
	{"try:\n    pass", "finally:", false},
	{"x = 1", "elsewhere = 2", true},
	{"@decorated", "def f(): pass", false},
	{"@decorated\ndef f(): pass", "f()", true},
	{"f(", "x)", false},
	{"'''", "x", false},
	{"x = \\", "1", false},
	{"def f():\n    a = 1\n\n    return a", "f()", true},
};

static void
a_pipe_s_cells_end_before_the_next_statement(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(nexts); i++) {
		struct cell cell = fed(nexts[i].text);

		if (cell_ends_before(&cell, nexts[i].next, strlen(nexts[i].next)) !=
		    nexts[i].ends)
			fail_msg("%s, then %s", nexts[i].text, nexts[i].next);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_are_python_s),
		cmocka_unit_test(a_pipe_s_cells_end_before_the_next_statement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
