/* The audit log's file: its chain holds over restarts, rotation, a line torn at any byte and a
 * full disk; and what is no chain is put aside, not continued. */
#include "supervisor/govern/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/chain.h"
#include "policy/config.h"
#include "policy/why.h"
#include "supervisor/govern/audit_file.h"

struct rig {
	char directory[64], path[96];
	struct config *config;
};

static int
set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	strcpy(rig->directory, "test-audit-XXXXXX");
	assert_non_null(mkdtemp(rig->directory));
	snprintf(rig->path, sizeof(rig->path), "%s/log", rig->directory);
	rig->config = config_new();
	rig->config->audit.journal = false;
	*state = rig;
	return 0;
}

static int
tear_down(void **state)
{
	struct rig *rig = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", rig->directory);
	assert_int_equal(system(command), 0);
	config_free(rig->config);
	free(rig);
	return 0;
}

static struct audit *
start(struct rig *rig)
{
	struct audit *audit;
	struct why why = { .field = "" };

	if (audit_new(rig->config, rig->path, &audit, &why) < 0)
		fail_msg("%s", why.text);
	return audit;
}

static char *
slurp(const char *path, size_t *len_r)
{
	FILE *file = fopen(path, "re");
	char *text;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*len_r = (size_t)ftell(file);
	rewind(file);
	text = calloc(1, *len_r + 1);
	assert_int_equal(fread(text, 1, *len_r, file), *len_r);
	fclose(file);
	return text;
}

static void
put(const char *path, const char *text, size_t len)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	fclose(file);
}

/* Follows the chain through one file; *n_r counts its lines that have the word. */
static void
follow(const char *path, struct chain_link *last, const char *word, unsigned int *n_r)
{
	size_t len;
	char *text = slurp(path, &len), *rest = text, *line;

	assert_true(len == 0 || text[len - 1] == '\n');
	while ((line = strsep(&rest, "\n")) && *line) {
		struct chain_link link;

		assert_int_equal(chain_read(line, strlen(line), &link), 0);
		assert_true(chain_follows(last, &link));
		*last = link;
		*n_r += strstr(line, word) != NULL;
	}
	free(text);
}

static void
the_chain_goes_on_after_a_restart(void **state)
{
	struct rig *rig = *state;
	struct chain_link last;
	unsigned int n = 0;

	for (int i = 0; i < 3; i++) {
		struct audit *audit = start(rig);

		for (int k = 0; k < 4; k++)
			assert_int_equal(audit_write(audit, AUDIT_DENIED, "uid:1", "x-1",
						     json_pack("{s:s,s:s,s:i}", "hash", "no",
							       "tenant", "uid:0", "k", k)), 0);
		audit_free(audit);
	}
	chain_init(&last);
	follow(rig->path, &last, "\"tenant\":\"uid:1\"", &n);
	assert_int_equal(n, 12);
	assert_int_equal(last.n, 12);
	assert_int_equal(audit_write(NULL, AUDIT_DENIED, NULL, NULL, json_object()), 0);
}

static void
rotation_keeps_the_chain(void **state)
{
	struct rig *rig = *state;
	struct audit *audit;
	struct chain_link last;
	unsigned int n = 0;
	char path[128];

	rig->config->audit.rotate_bytes = 1000;
	for (int i = 0; i < 2; i++) {
		audit = start(rig);
		for (int k = 0; k < 10; k++)
			audit_write(audit, AUDIT_STARTED, NULL, NULL, NULL);
		audit_free(audit);
	}
	chain_init(&last);
	for (int i = 1;; i++) {
		snprintf(path, sizeof(path), "%s.%d", rig->path, i);
		if (access(path, F_OK) < 0)
			break;
		follow(path, &last, "\"started\"", &n);
		assert_true(i < 100);
	}
	assert_true(strcmp(path, rig->path) != 0 && strstr(path, ".1") == NULL);
	follow(rig->path, &last, "\"started\"", &n);
	assert_int_equal(n, 20);
}

/* As a crash between the two steps of a rotation leaves it. */
static void
an_empty_file_goes_on_from_the_one_before(void **state)
{
	struct rig *rig = *state;
	struct audit *audit = start(rig);
	struct chain_link last;
	unsigned int n = 0;
	char path[128];

	audit_write(audit, AUDIT_STARTED, NULL, NULL, NULL);
	audit_free(audit);
	snprintf(path, sizeof(path), "%s.1", rig->path);
	assert_int_equal(rename(rig->path, path), 0);
	audit = start(rig);
	audit_write(audit, AUDIT_STOPPED, NULL, NULL, NULL);
	audit_free(audit);
	chain_init(&last);
	follow(path, &last, "started", &n);
	follow(rig->path, &last, "stopped", &n);
	assert_int_equal(n, 2);
}

static void
a_line_torn_at_any_byte_is_mended(void **state)
{
	struct rig *rig = *state;
	struct audit *audit = start(rig);
	size_t len, first, whole;
	char *text;

	audit_write(audit, AUDIT_STARTED, NULL, NULL, NULL);
	audit_write(audit, AUDIT_STOPPED, NULL, NULL, json_pack("{s:s}", "source", "a\nb"));
	audit_free(audit);
	text = slurp(rig->path, &len);
	first = (size_t)(strchr(text, '\n') - text) + 1;
	for (size_t cut = first; cut <= len; cut++)
		for (int zeros = 0; zeros < 2; zeros++) {
			struct chain_link last;
			unsigned int n = 0;

			put(rig->path, text, cut);
			if (zeros)
				assert_int_equal(truncate(rig->path, (off_t)cut + 100), 0);
			audit = start(rig);
			audit_free(audit);
			chain_init(&last);
			follow(rig->path, &last, "\"mended\"", &n);
			whole = cut == len ? 2 : 1;
			assert_int_equal(n, zeros || (cut != first && cut != len));
			assert_int_equal(last.n, whole + n);
		}
	free(text);
}

static void
what_is_no_chain_is_put_aside(void **state)
{
	static const char junk[] = "{\"n\":1}\nsomething else\n";
	struct rig *rig = *state;
	struct audit *audit;
	struct chain_link last;
	unsigned int n = 0;
	char path[128], *text;
	size_t len;

	put(rig->path, junk, strlen(junk));
	audit = start(rig);
	audit_free(audit);
	chain_init(&last);
	follow(rig->path, &last, "\"broken\"", &n);
	assert_int_equal(n, 1);
	snprintf(path, sizeof(path), "%s.1", rig->path);
	text = slurp(path, &len);
	assert_string_equal(text, junk);
	free(text);
}

static void
changed_lines_are_found(void **state)
{
	struct chain_link link, out;
	size_t len;
	char *line;

	(void)state;
	chain_init(&link);
	line = chain_append(&link, "\"event\":\"x\"", 11, &len);
	assert_int_equal(chain_read(line, len - 1, &out), 0);
	assert_int_equal(out.n, 1);
	for (size_t i = 0; i < len - 1; i++) {
		line[i] ^= 1;
		assert_int_equal(chain_read(line, len - 1, &out), -EBADMSG);
		line[i] ^= 1;
		assert_int_equal(chain_read(line, i, &out), -EBADMSG);
	}
	free(line);
}

static void
limit_size(rlim_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	setrlimit(RLIMIT_FSIZE, &limit);
}

/* A bound on the file's size is a disk that is full in the middle of a line. */
static void
a_full_disk_stops_or_is_counted(void **state)
{
	struct rig *rig = *state;

	signal(SIGXFSZ, SIG_IGN);
	for (uint32_t on_failure = 1; on_failure <= 2; on_failure++) {
		struct chain_link last;
		unsigned int n = 0;
		struct audit *audit;
		struct audit_counts counts;
		struct stat st;

		unlink(rig->path);
		rig->config->audit.on_failure = on_failure;
		audit = start(rig);
		assert_int_equal(audit_write(audit, AUDIT_STARTED, NULL, NULL, NULL), 0);
		assert_int_equal(stat(rig->path, &st), 0);
		limit_size((rlim_t)st.st_size + 50);
		for (int i = 0; i < 3; i++)
			assert_int_equal(audit_write(audit, AUDIT_DENIED, NULL, NULL, NULL) < 0,
					 on_failure == 1);
		assert_true(audit_is_failing(audit));
		limit_size(RLIM_INFINITY);
		assert_int_equal(audit_write(audit, AUDIT_STOPPED, NULL, NULL, NULL), 0);
		assert_false(audit_is_failing(audit));
		audit_count(audit, &counts);
		assert_int_equal(counts.lost, 3);
		audit_free(audit);
		chain_init(&last);
		follow(rig->path, &last, "\"event\":\"lost\",\"records\":3", &n);
		assert_int_equal(n, 1);
		assert_int_equal(last.n, 3);
	}
}

static void
two_services_do_not_share_a_file(void **state)
{
	struct rig *rig = *state;
	struct audit *audit = start(rig), *other;
	struct why why = { .field = "" };

	assert_int_equal(audit_new(rig->config, rig->path, &other, &why), -EWOULDBLOCK);
	assert_non_null(strstr(why.text, "another service"));
	audit_free(audit);
	assert_int_equal(audit_new(rig->config, "no/such/directory/log", &other, &why), -ENOENT);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_chain_goes_on_after_a_restart),
		TEST(rotation_keeps_the_chain),
		TEST(an_empty_file_goes_on_from_the_one_before),
		TEST(a_line_torn_at_any_byte_is_mended),
		TEST(what_is_no_chain_is_put_aside),
		TEST(changed_lines_are_found),
		TEST(a_full_disk_stops_or_is_counted),
		TEST(two_services_do_not_share_a_file),
	};

	return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
