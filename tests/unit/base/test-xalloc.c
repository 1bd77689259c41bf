/* SPDX-License-Identifier: Apache-2.0 */
/* No memory, or a condition that does not hold: the process ends, with a line that says so. */
#include "base/xalloc.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <jansson.h>
#include <openssl/crypto.h>

#define LARGE (256UL << 20)

static char text[1024];

static void
by_calloc(void)
{
	xcalloc(LARGE, 1);
}

static void
by_realloc(void)
{
	xrealloc(xmalloc(1), LARGE);
}

static void
by_format(void)
{
	xasprintf("%*s", (int)LARGE, "");
}

static void
by_jansson(void)
{
	json_set_alloc_funcs(xmalloc, free);
	for (json_t *list = json_array();;)
		json_array_append_new(list, json_stringn(text, sizeof(text)));
}

static void
by_libevent(void)
{
	event_set_mem_functions(xmalloc, xrealloc, free);
	evbuffer_expand(evbuffer_new(), LARGE);
}

static void
by_openssl(void)
{
	xalloc_for_openssl();
	OPENSSL_realloc(OPENSSL_malloc(16), LARGE);
}

enum { ASSERT_LINE = __LINE__ + 6 };

static void
by_xassert(void)
{
	errno = ENOMEM;
	xassert(text[0] == '\0' && LARGE == 0);
}

/* With little memory, allocate ends the process and says why. */
static void
check_end(void (*allocate)(void), const char *begins, const char *ends)
{
	char said[256] = "";
	int pipe_fd[2], status;
	pid_t pid;

	assert_int_equal(pipe(pipe_fd), 0);
	pid = fork();
	if (pid == 0) {
		const struct rlimit little = { LARGE / 2, LARGE / 2 }, no_core = { 0, 0 };

		signal(SIGABRT, SIG_DFL);
		setrlimit(RLIMIT_CORE, &no_core);
		setrlimit(RLIMIT_DATA, &little);
		dup2(pipe_fd[1], STDERR_FILENO);
		allocate();
		_exit(0);
	}
	close(pipe_fd[1]);
	assert_true(read(pipe_fd[0], said, sizeof(said) - 1) > 0);
	close(pipe_fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_int_equal(strncmp(said, begins, strlen(begins)), 0);
	assert_string_equal(said + strlen(said) - strlen(ends), ends);
}

static void
no_memory_ends_it_by_name(void **state)
{
	static void (*const allocate[])(void) = {
		by_calloc, by_realloc, by_format, by_jansson, by_libevent, by_openssl,
	};

	(void)state;
#if defined(__SANITIZE_ADDRESS__)
	skip();		/* its allocator ends the process by itself */
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
	skip();
#endif
#endif
	for (size_t i = 0; i < sizeof(allocate) / sizeof(allocate[0]); i++)
		check_end(allocate[i], "test-xalloc: out of memory: ", " bytes\n");
}

static void
what_does_not_hold_ends_it_by_place(void **state)
{
	char ends[128];

	(void)state;
	xassert(text[0] == '\0');
	/* What stands before the path differs between compilers. */
	snprintf(ends, sizeof(ends), "tests/unit/base/test-xalloc.c:%d: failed: "
		 "text[0] == '\\0' && LARGE == 0: Cannot allocate memory\n", ASSERT_LINE);
	check_end(by_xassert, "test-xalloc: ", ends);
}

/* OpenSSL frees what it allocates again with a size of 0. */
static void
openssl_reallocates_to_nothing(void **state)
{
	void *mem;

	(void)state;
	xalloc_for_openssl();
	mem = OPENSSL_malloc(16);
	assert_null(OPENSSL_realloc(mem, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_memory_ends_it_by_name),
		cmocka_unit_test(what_does_not_hold_ends_it_by_place),
		cmocka_unit_test(openssl_reallocates_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
