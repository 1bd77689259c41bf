/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

static int saved;

/* Standard error becomes a pipe; its reading end is returned. */
static int
catch_stderr(void)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	saved = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	return fds[0];
}

static char *
caught(int fd)
{
	static char text[100000];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void
release(int fd)
{
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
}

static void
a_line_is_one_line(void **state)
{
	int fd = catch_stderr();

	(void)state;
	unsetenv("JOURNAL_STREAM");
	log_init(LOG_INFO);
	log_line(LOG_INFO, "event", "n=%d text=%s", 7, "a\nb\x1b[0m\x7f");
	assert_string_equal(caught(fd), "event n=7 text=a\\x0ab\\x1b[0m\\x7f\n");
	log_line(LOG_INFO, "event", "text=%s", "\xc2\x9b" "31m\xe2\x80\xae\x9b");
	assert_string_equal(caught(fd), "event text=\\u009b31m\\u202e\\x9b\n");
	log_line(LOG_DEBUG, "event", "not=%s", "shown");
	assert_string_equal(caught(fd), "");
	release(fd);
}

static void
a_long_line_is_cut(void **state)
{
	int fd = catch_stderr();
	char *text = malloc(10000);

	(void)state;
	memset(text, 'x', 9999);
	text[9999] = '\0';
	log_init(LOG_INFO);
	log_line(LOG_INFO, "event", "%s", text);
	free(text);
	text = caught(fd);
	assert_true(strlen(text) <= LOG_LINE_MAX);
	assert_int_equal(text[strlen(text) - 1], '\n');
	release(fd);
}

static void
the_journal_gets_levels(void **state)
{
	int fd = catch_stderr();
	struct stat st;
	char stream[64];

	(void)state;
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%lu:%lu", (unsigned long)st.st_dev,
		 (unsigned long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_init(LOG_INFO);
	log_line(LOG_WARNING, "event", "a=1");
	assert_string_equal(caught(fd), "<4>event a=1\n");
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_init(LOG_INFO);
	log_line(LOG_WARNING, "event", "a=1");
	assert_string_equal(caught(fd), "event a=1\n");
	unsetenv("JOURNAL_STREAM");
	release(fd);
}

static void
nobody_is_waited_for(void **state)
{
	int fd = catch_stderr();
	char text[1500];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_init(LOG_INFO);
	for (int i = 0; i < LOG_BURST; i++)	/* far more than a pipe holds */
		log_line(LOG_INFO, "long-event", "number=%d text=%s", i, text);
	while (*caught(fd))
		;
	log_line(LOG_INFO, "event", "again=1");
	assert_non_null(strstr(caught(fd), "lines lost] event again=1\n"));
	log_line(LOG_INFO, "event", "again=2");
	assert_string_equal(caught(fd), "event again=2\n");
	release(fd);
}

static void
quoted_text_stays_in_its_quotes(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		const char *quoted;
	} rows[] = {
		{ "", 0, "\"\"" },
		{ "plain text", 10, "\"plain text\"" },
		{ "a\" b=1", 6, "\"a\\\" b=1\"" },
		{ "\\", 1, "\"\\\\\"" },
		{ "\0\n\x7f\xc3", 4, "\"\\x00\\x0a\\x7f\\xc3\"" },
		{ "\xc2\x9b\xe2\x80\xae\xc3\xa9", 7, "\"\\u009b\\u202e\xc3\xa9\"" },
	};
	struct log_quoted quoted;
	char longer[1000];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_string_equal(log_quote(&quoted, rows[i].text, rows[i].len),
				    rows[i].quoted);
	for (size_t len = 0; len < sizeof(longer); len++) {
		memset(longer, '\n', sizeof(longer));
		assert_true(strlen(log_quote(&quoted, longer, len)) < LOG_QUOTED_MAX);
		assert_int_equal(quoted.text[strlen(quoted.text) - 1], '"');
	}
	assert_non_null(strstr(quoted.text, "...\""));
}

static unsigned long
count_lines(int fd)
{
	unsigned long n = 0;
	const char *text;

	while (*(text = caught(fd)))
		for (; (text = strchr(text, '\n')); text++)
			n++;
	return n;
}

/* What a client can cause as often as it likes does not fill the journal, and hides nothing
 * else. */
static void
lines_of_one_event_are_bounded(void **state)
{
	int fd = catch_stderr();
	unsigned long n, left_out;
	const char *text;

	(void)state;
	log_init(LOG_INFO);
	for (int i = 0; i < 1000; i++)
		log_line(LOG_INFO, "frequent", "n=%d", i);
	n = count_lines(fd);
	/* The bucket fills meanwhile, on a slow machine. */
	assert_in_range(n, LOG_BURST, LOG_BURST + 60);
	log_line(LOG_INFO, "rare", "n=%d", 1);
	assert_string_equal(caught(fd), "rare n=1\n");
	do {
		usleep(10000);
		log_line(LOG_INFO, "frequent", "n=%d", 0);
		text = caught(fd);
	} while (!*text);
	assert_int_equal(sscanf(text, "frequent left-out=%lu n=0\n", &left_out), 1);
	assert_true(left_out >= 1000 - n);
	release(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_one_line),
		cmocka_unit_test(a_long_line_is_cut),
		cmocka_unit_test(the_journal_gets_levels),
		cmocka_unit_test(nobody_is_waited_for),
		cmocka_unit_test(lines_of_one_event_are_bounded),
		cmocka_unit_test(quoted_text_stays_in_its_quotes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
