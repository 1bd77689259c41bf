/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log's file: its chain holds over restarts, rotation, a line torn at any byte and a
 * full disk; and what is no chain is put aside, not continued. */
#include "govern/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/log.h"
#include "base/why.h"
#include "govern/audit_file.h"
#include "policy/chain.h"
#include "policy/config.h"

/* The disk: with [audit] sync each record calls this function, not the C library's. */
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static int disk_error;
static bool end_is_late;	/* no time is left to wait for the disk at the end */

int
pthread_cond_clockwait(pthread_cond_t *progress, pthread_mutex_t *lock, clockid_t,
		       const struct timespec *)
{
	return end_is_late ? ETIMEDOUT : pthread_cond_wait(progress, lock);
}

int
fdatasync(int fd)
{
	int error;

	(void)fd;
	pthread_mutex_lock(&disk);
	error = disk_error;
	pthread_mutex_unlock(&disk);
	errno = error;
	return error ? -1 : 0;
}

/* The journal. What may not wait comes from the loop; the rest from the thread, which libsystemd
 * calls. */
static int journal_error;	/* for what may not wait */
static unsigned int sent_now, sent_later;
static char sent[4096];		/* the last one that did not wait */

ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t len = 0;

	(void)fd;
	if (!(flags & MSG_DONTWAIT)) {
		__atomic_add_fetch(&sent_later, 1, __ATOMIC_SEQ_CST);
		errno = ENOENT;
		return -1;
	}
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		assert_true(len + msg->msg_iov[i].iov_len < sizeof(sent));
		memcpy(sent + len, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
		len += msg->msg_iov[i].iov_len;
	}
	sent[len] = '\0';
	sent_now++;
	errno = journal_error;
	return journal_error ? -1 : (ssize_t)len;
}

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

	char last_path[160];

	snprintf(last_path, sizeof(last_path), "%s.last", rig->path);
	signal(SIGXFSZ, SIG_IGN);
	for (uint32_t on_failure = 1; on_failure <= 2; on_failure++) {
		struct chain_link last;
		unsigned int n = 0;
		struct audit *audit;
		struct audit_counts counts;
		struct stat st;

		unlink(rig->path);
		unlink(last_path);
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

/* It is written as soon as there is room, before anything else, and is not lost. */
static void
the_end_of_an_execution_waits_for_a_full_disk(void **state)
{
	struct rig *rig = *state;
	struct audit *audit = start(rig);
	struct audit_counts counts;
	struct chain_link last;
	unsigned int n = 0;
	struct stat st;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(audit_write(audit, AUDIT_EXECUTION_STARTED, "uid:1", "x-1", NULL), 0);
	assert_int_equal(stat(rig->path, &st), 0);
	limit_size((rlim_t)st.st_size + 50);
	assert_true(audit_write(audit, AUDIT_EXECUTION_ENDED, "uid:1", "x-1", NULL) < 0);
	assert_true(audit_write(audit, AUDIT_DENIED, NULL, NULL, NULL) < 0);
	limit_size(RLIM_INFINITY);
	assert_int_equal(audit_write(audit, AUDIT_STOPPED, NULL, NULL, NULL), 0);
	audit_count(audit, &counts);
	assert_int_equal(counts.lost, 1);
	assert_int_equal(stat(rig->path, &st), 0);
	limit_size((rlim_t)st.st_size + 50);
	assert_true(audit_write(audit, AUDIT_EXECUTION_ENDED, "uid:1", "x-2", NULL) < 0);
	limit_size(RLIM_INFINITY);
	audit_free(audit);
	chain_init(&last);
	follow(rig->path, &last, "\"event\":\"execution-ended\"", &n);
	assert_int_equal(n, 2);
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

/* A record of an execution's start, as the gate makes it. */
static void
write_start(struct audit *audit, const char *script)
{
	char hash[CHAIN_DIGITS + 1];
	json_t *more = json_object();

	chain_hash(script, strlen(script), hash);
	json_object_set_new(more, "sha256", json_string(hash));
	audit_add_source(audit, more, script, strlen(script));
	assert_int_equal(audit_write(audit, AUDIT_EXECUTION_STARTED, "uid:1", "x-1", more), 0);
}

/* The nth line of a file, from 1, as JSON. */
static json_t *
record_of(const char *path, unsigned int n)
{
	size_t len;
	char *text = slurp(path, &len), *rest = text, *line = NULL;
	json_t *record;

	while (n-- > 0)
		line = strsep(&rest, "\n");
	record = json_loads(line, 0, NULL);
	assert_non_null(record);
	free(text);
	return record;
}

static const char *
text_of(const json_t *record, const char *key)
{
	return json_string_value(json_object_get(record, key));
}

static void
a_script_is_in_each_file_once(void **state)
{
	struct rig *rig = *state;
	struct audit *audit;
	json_t *first, *second, *third;

	rig->config->audit.rotate_bytes = 4096;
	audit = start(rig);
	write_start(audit, "print(1)");
	write_start(audit, "print(2)");
	write_start(audit, "print(1)");
	first = record_of(rig->path, 1);
	second = record_of(rig->path, 2);
	third = record_of(rig->path, 3);
	assert_string_equal(text_of(first, "source"), "print(1)");
	assert_string_equal(text_of(second, "source"), "print(2)");
	assert_null(text_of(third, "source"));
	assert_string_equal(text_of(third, "sha256"), text_of(first, "sha256"));
	assert_int_equal(json_integer_value(json_object_get(third, "source_record")), 1);
	json_decref(first);
	json_decref(second);
	json_decref(third);
	/* Each file can be read without those before it. */
	for (int i = 0; i < 20; i++)
		audit_write(audit, AUDIT_DENIED, "uid:1", NULL,
			    json_pack("{s:s}", "why", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
	write_start(audit, "print(1)");
	first = record_of(rig->path, 1);
	assert_string_equal(text_of(first, "event"), "rotated");
	json_decref(first);
	for (unsigned int n = 2; !text_of(first = record_of(rig->path, n), "sha256"); n++)
		json_decref(first);
	assert_string_equal(text_of(first, "source"), "print(1)");
	json_decref(first);
	audit_free(audit);
}

static void
long_texts_are_cut(void **state)
{
	struct rig *rig = *state;
	struct audit *audit;
	char *text = calloc(1, 5000);
	json_t *record;

	rig->config->audit.text_bytes = 1000;
	/* A character of two bytes is where it is cut. */
	memset(text, 'x', 999);
	for (size_t at = 999; at < 4999; at += 2)
		memcpy(text + at, "\xc3\xa9", 2);
	audit = start(rig);
	write_start(audit, text);
	audit_write(audit, AUDIT_APPROVAL_REFUSED, "uid:1", NULL,
		    json_pack("{s:s,s:[s,s]}", "reason", text, "items", "short", text));
	record = record_of(rig->path, 1);
	assert_int_equal(strlen(text_of(record, "source")), 999);
	assert_int_equal(json_integer_value(json_object_get(record, "source_bytes")), 4999);
	assert_int_equal(strlen(text_of(record, "sha256")), CHAIN_DIGITS);
	json_decref(record);
	record = record_of(rig->path, 2);
	assert_int_equal(strncmp(text_of(record, "reason"), text, 999), 0);
	assert_non_null(strstr(text_of(record, "reason"), "x... (4999 bytes, SHA-256 "));
	assert_string_equal(json_string_value(json_array_get(json_object_get(record, "items"), 0)),
			    "short");
	assert_non_null(strstr(json_string_value(json_array_get(json_object_get(record, "items"),
								1)), "(4999 bytes"));
	json_decref(record);
	audit_free(audit);
	free(text);
}

static bool
has_text(const char *path, const char *wanted)
{
	size_t len;
	char *text = slurp(path, &len);
	bool has = strstr(text, wanted) != NULL;

	free(text);
	return has;
}

/* Follows the chain through what is left of the files, and looks for the record that tells where
 * it begins. Returns the bytes that were put aside. */
static uint64_t
look_at_rotated(struct rig *rig, unsigned int *oldest_r)
{
	unsigned int n = 1, lines = 0;
	struct chain_link last = { .n = 0 };
	char path[128], word[256];
	uint64_t bytes = 0;
	struct stat st;
	json_t *first;
	bool told;

	do
		snprintf(path, sizeof(path), "%s.%u", rig->path, n);
	while (stat(path, &st) < 0 && n++ < 1000);
	*oldest_r = n;
	first = record_of(path, 1);
	last.n = (uint64_t)json_integer_value(json_object_get(first, "n")) - 1;
	snprintf(last.hash, sizeof(last.hash), "%s", text_of(first, "prev"));
	json_decref(first);
	snprintf(word, sizeof(word), "\"last_record\":%llu,\"last_hash\":\"%s\"",
		 (unsigned long long)last.n, last.hash);
	told = has_text(rig->path, word);
	for (; stat(path, &st) == 0; snprintf(path, sizeof(path), "%s.%u", rig->path, ++n)) {
		bytes += (uint64_t)st.st_size;
		follow(path, &last, "", &lines);
		told = told || has_text(path, word);
	}
	follow(rig->path, &last, "", &lines);
	assert_true(told);
	return bytes;
}

static void
the_oldest_files_are_removed(void **state)
{
	struct rig *rig = *state;
	struct audit *audit;
	struct audit_counts counts;
	unsigned int oldest;

	rig->config->audit.rotate_bytes = 4096;
	rig->config->audit.keep_bytes = 3 * 4096 + 2048;
	for (int i = 0; i < 3; i++) {	/* over restarts, too */
		audit = start(rig);
		for (int k = 0; k < 200; k++)
			audit_write(audit, AUDIT_DENIED, "uid:1", NULL, NULL);
		audit_count(audit, &counts);
		audit_free(audit);
	}
	assert_true(counts.dropped > 0);
	assert_true(counts.file_bytes <= counts.file_bytes_max);
	assert_true(look_at_rotated(rig, &oldest) <= 3 * 4096 + 2048);
	assert_true(oldest > 3);
	/* A smaller bound holds from the start. */
	rig->config->audit.keep_bytes = 4096 + 2048;
	audit_free(start(rig));
	assert_true(look_at_rotated(rig, &oldest) <= 4096 + 2048);
}

struct budget {
	bool left;
	uint64_t spent;
	unsigned int asked;
};

static bool
may_write(void *arg, const char *tenant, enum audit_event event, bool minor)
{
	struct budget *budget = arg;

	assert_string_equal(tenant, "uid:1");
	(void)event;
	budget->asked += minor;
	return budget->left;
}

static void
spend(void *arg, const char *tenant, uint64_t bytes)
{
	struct budget *budget = arg;

	assert_string_equal(tenant, "uid:1");
	budget->spent += bytes;
}

static void
what_did_not_happen_is_left_out(void **state)
{
	struct rig *rig = *state;
	struct audit *audit = start(rig);
	struct budget budget = { .left = true };
	struct audit_counts counts;
	struct stat st;
	size_t len;
	char *text;

	audit_set_budget(audit, &(struct audit_budget){
		.may_write = may_write, .spend = spend, .arg = &budget });
	audit_write(audit, AUDIT_DENIED, "uid:1", NULL, NULL);
	assert_int_equal(stat(rig->path, &st), 0);
	assert_int_equal(budget.spent, st.st_size);
	assert_true(audit_has_room(audit, "uid:1"));
	budget.left = false;
	assert_false(audit_has_room(audit, "uid:1"));
	audit_write(audit, AUDIT_DENIED, "uid:1", NULL, NULL);
	audit_write(audit, AUDIT_SESSION_OPENED, "uid:1", NULL, NULL);
	assert_int_equal(budget.spent, st.st_size);
	/* What has happened is told all the same, and what is no tenant's. */
	audit_write(audit, AUDIT_EXECUTION_ENDED, "uid:1", "x-1", NULL);
	audit_write(audit, AUDIT_RELOADED, NULL, NULL, NULL);
	audit_count(audit, &counts);
	assert_int_equal(counts.left_out, 2);
	assert_int_equal(counts.written, 3);
	assert_int_equal(budget.asked, 3);
	text = slurp(rig->path, &len);
	assert_null(strstr(text, "session-opened"));
	assert_non_null(strstr(text, "execution-ended"));
	free(text);
	audit_free(audit);
}

/* Runs f with standard error in a file, and returns what is in it; malloc'd. */
static char *
stderr_of(const struct rig *rig, void (*f)(const struct rig *rig))
{
	char path[96];
	size_t len;
	int kept = dup(STDERR_FILENO), fd;

	snprintf(path, sizeof(path), "%s/stderr", rig->directory);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(kept >= 0 && fd >= 0);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	f(rig);
	assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
	close(kept);
	close(fd);
	return slurp(path, &len);
}

static void
write_two(const struct rig *rig)
{
	struct audit *audit;
	struct why why = { .field = "" };

	assert_int_equal(audit_new(rig->config, rig->path, &audit, &why), 0);
	log_init(LOG_INFO);
	audit_write(audit, AUDIT_EXECUTION_ENDED, "uid:1", "x-1",
		    json_pack("{s:s,s:i,s:{s:i},s:s,s:s}", "status", "ok", "ms", 3, "limits",
			      "pids", 4, "source", "print(1)", "why", "a b\n\033[0m"));
	audit_write(audit, AUDIT_STOPPED, NULL, NULL, NULL);
	audit_free(audit);
}

static void
a_fifo_in_the_place_of_the_note_holds_nobody(void **state)
{
	struct rig *rig = *state;
	char last_path[160];
	struct audit *audit;

	snprintf(last_path, sizeof(last_path), "%s.last", rig->path);
	unlink(last_path);
	assert_int_equal(mkfifo(last_path, 0600), 0);
	alarm(10);
	audit = start(rig);
	assert_int_equal(audit_write(audit, AUDIT_STARTED, NULL, NULL, NULL), 0);
	audit_free(audit);
	alarm(0);
	unlink(last_path);
}

/* Without it the chain would begin anew, as if nothing had been before it. */
static void
a_note_that_cannot_be_read_is_no_missing_note(void **state)
{
	struct rig *rig = *state;
	char last_path[160];
	struct why why;
	struct audit *audit;

	snprintf(last_path, sizeof(last_path), "%s.last", rig->path);
	unlink(last_path);
	assert_int_equal(mkdir(last_path, 0700), 0);
	assert_int_equal(audit_new(rig->config, rig->path, &audit, &why), -EISDIR);
	rmdir(last_path);
}

static void
records_are_log_lines_too(void **state)
{
	char *text = stderr_of(*state, write_two);

	assert_string_equal(text, "execution-ended tenant=uid:1 execution=x-1 status=ok ms=3 "
				  "why=\"a b\\x0a\\x1b[0m\"\nstopped\n");
	free(text);
}

/* ---- a disk that does not answer ---- */

#define WAITS 5000		/* more than the records that may wait */

struct waiter {
	struct writing_wait wait;
	int n, error;		/* calls of on_written, and the last one's error */
};

static void
on_written(void *arg, int error)
{
	struct waiter *waiter = arg;

	waiter->n++;
	waiter->error = error;
}

static int
write_first(struct audit *audit, struct waiter *waiter, const char *execution)
{
	*waiter = (struct waiter){ .wait = { .on_written = on_written, .arg = waiter } };
	return audit_write_first(audit, AUDIT_EXECUTION_STARTED, "uid:1", execution, NULL,
				 &waiter->wait);
}

static struct audit *
start_on_a_slow_disk(struct rig *rig, bool stops, struct event_base **base_r)
{
	struct audit *audit;

	rig->config->audit.sync = true;
	rig->config->audit.on_failure = stops;
	audit = start(rig);
	*base_r = event_base_new();
	assert_int_equal(audit_start(audit, *base_r), 0);
	pthread_mutex_lock(&disk);
	return audit;
}

static void
wait_for(struct event_base *base, const struct waiter *waiter)
{
	while (waiter->n == 0)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

static void
what_needs_a_record_waits_for_it(void **state)
{
	struct event_base *base;
	struct audit *audit = start_on_a_slow_disk(*state, true, &base);
	struct waiter first, gone, last;

	assert_int_equal(write_first(audit, &first, "x-1"), -EINPROGRESS);
	assert_int_equal(write_first(audit, &gone, "x-2"), -EINPROGRESS);
	assert_int_equal(audit_write(audit, AUDIT_EXECUTION_ENDED, "uid:1", "x-0", NULL), 0);
	writing_unwait(&gone.wait);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(first.n, 0);
	pthread_mutex_unlock(&disk);
	wait_for(base, &first);
	assert_int_equal(first.error, 0);
	pthread_mutex_lock(&disk);
	disk_error = EIO;
	assert_int_equal(write_first(audit, &last, "x-3"), -EINPROGRESS);
	pthread_mutex_unlock(&disk);
	wait_for(base, &last);
	assert_int_equal(last.error, -EIO);
	assert_true(audit_is_failing(audit));
	assert_int_equal(audit_write(audit, AUDIT_TENANT_RESUMED, "uid:1", NULL, NULL), -EIO);
	pthread_mutex_lock(&disk);
	disk_error = 0;
	pthread_mutex_unlock(&disk);
	assert_int_equal(first.n + last.n, 2);
	assert_int_equal(gone.n, 0);
	audit_free(audit);
	event_base_free(base);
}

/* Nothing runs unrecorded because too many records wait. */
static void
when_too_many_wait_what_needs_a_record_is_refused(void **state)
{
	struct rig *rig = *state;
	struct event_base *base;
	struct audit *audit = start_on_a_slow_disk(rig, true, &base);
	struct waiter *waiter = calloc(WAITS, sizeof(*waiter));
	struct audit_counts counts;
	struct chain_link last;
	unsigned int n = 0, began = 0, ended = 0;
	int r = -EINPROGRESS;

	assert_non_null(waiter);
	while (began < WAITS && (r = write_first(audit, &waiter[began], "x-1")) == -EINPROGRESS)
		began++;
	assert_int_equal(r, -EAGAIN);
	assert_in_range(began, 100, WAITS - 1);
	/* What those that ran before leave has room all the same, and that is bounded, too. */
	while (ended < 4 * WAITS &&
	       audit_write(audit, AUDIT_EXECUTION_ENDED, "uid:1", "x-0", NULL) == 0)
		ended++;
	assert_in_range(ended, 100, 2 * WAITS);
	pthread_mutex_unlock(&disk);
	for (unsigned int i = 0; i < began; i++)
		wait_for(base, &waiter[i]);
	/* The records for which nobody waits may still be in the queue. */
	for (audit_count(audit, &counts); counts.written < began + ended;
	     audit_count(audit, &counts))
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	assert_int_equal(write_first(audit, &waiter[0], "x-2"), -EINPROGRESS);
	wait_for(base, &waiter[0]);
	audit_free(audit);
	event_base_free(base);
	chain_init(&last);
	follow(rig->path, &last, "\"execution-", &n);
	assert_int_equal(n, began + ended + 1);
	chain_init(&last);
	n = 0;
	follow(rig->path, &last, "\"event\":\"lost\",\"records\":1,", &n);
	assert_int_equal(n, 1);
	free(waiter);
}

static void
with_continue_nothing_waits(void **state)
{
	struct event_base *base;
	struct audit *audit = start_on_a_slow_disk(*state, false, &base);
	struct audit_counts counts;
	struct waiter waiter;

	for (int i = 0; i < 3 * WAITS; i++)
		assert_int_equal(write_first(audit, &waiter, "x-1"), 0);
	audit_count(audit, &counts);
	assert_in_range(counts.lost, WAITS, 3 * WAITS - 1);
	pthread_mutex_unlock(&disk);
	assert_int_equal(waiter.n, 0);
	audit_free(audit);
	event_base_free(base);
}

/* ---- a journal, and no file ---- */

static struct audit *
start_with_a_journal(struct rig *rig, struct event_base **base_r)
{
	struct why why = { .field = "" };
	struct audit *audit;

	rig->config->audit.journal = true;
	rig->config->audit.on_failure = true;
	assert_int_equal(audit_new(rig->config, NULL, &audit, &why), 0);
	*base_r = event_base_new();
	assert_int_equal(audit_start(audit, *base_r), 0);
	journal_error = 0;
	sent_now = sent_later = 0;
	return audit;
}

static void
a_journal_that_takes_a_record_at_once_needs_no_thread(void **state)
{
	struct event_base *base;
	struct audit *audit = start_with_a_journal(*state, &base);
	struct audit_counts counts;
	struct waiter waiter;

	assert_int_equal(write_first(audit, &waiter, "x-1"), 0);
	assert_int_equal(sent_now, 1);
	assert_ptr_equal(strstr(sent, "MESSAGE=execution-started tenant=uid:1 execution=x-1\n"), sent);
	assert_non_null(strstr(sent, "\nMCP_EVENT=execution-started\nMCP_RECORD={"));
	assert_non_null(strstr(sent, "}\nMCP_TENANT=uid:1\nMCP_EXECUTION=x-1\n"));
	journal_error = ENOENT;		/* a host without one */
	assert_int_equal(write_first(audit, &waiter, "x-2"), 0);
	audit_count(audit, &counts);
	assert_int_equal(counts.written, 2);
	assert_int_equal(waiter.n, 0);
	audit_free(audit);
	event_base_free(base);
	assert_int_equal(sent_later, 0);
}

/* Also one behind it waits, so that the order holds; and one that has several lines. */
static void
a_journal_that_is_busy_holds_up_the_thread_alone(void **state)
{
	struct event_base *base;
	struct audit *audit = start_with_a_journal(*state, &base);
	struct waiter first, second;

	journal_error = EAGAIN;
	assert_int_equal(write_first(audit, &first, "x-1"), -EINPROGRESS);
	journal_error = 0;
	assert_int_equal(write_first(audit, &second, "x-2"), -EINPROGRESS);
	assert_int_equal(sent_now, 1);
	wait_for(base, &first);
	wait_for(base, &second);
	assert_int_equal(first.error + second.error, 0);
	assert_int_equal(write_first(audit, &first, "x-3"), 0);
	assert_int_equal(write_first(audit, &first, "x-4\nMCP_EVENT=forged"), -EINPROGRESS);
	wait_for(base, &first);
	assert_int_equal(sent_now, 2);
	audit_free(audit);
	event_base_free(base);
	assert_in_range(sent_later, 3, 6);
}

/* The last test: the disk never answers. */
static void
the_end_does_not_wait_for_ever(void **state)
{
	struct event_base *base;
	struct audit *audit = start_on_a_slow_disk(*state, true, &base);
	struct waiter waiter;

	assert_int_equal(write_first(audit, &waiter, "x-1"), -EINPROGRESS);
	end_is_late = true;
	audit_free(audit);
	assert_int_equal(waiter.n, 0);
	writing_unwait(&waiter.wait);
	event_base_free(base);
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
		TEST(the_end_of_an_execution_waits_for_a_full_disk),
		TEST(two_services_do_not_share_a_file),
		TEST(a_script_is_in_each_file_once),
		TEST(long_texts_are_cut),
		TEST(the_oldest_files_are_removed),
		TEST(what_did_not_happen_is_left_out),
		TEST(records_are_log_lines_too),
		TEST(a_fifo_in_the_place_of_the_note_holds_nobody),
		TEST(a_note_that_cannot_be_read_is_no_missing_note),
		TEST(what_needs_a_record_waits_for_it),
		TEST(when_too_many_wait_what_needs_a_record_is_refused),
		TEST(with_continue_nothing_waits),
		TEST(a_journal_that_takes_a_record_at_once_needs_no_thread),
		TEST(a_journal_that_is_busy_holds_up_the_thread_alone),
		TEST(the_end_does_not_wait_for_ever),
	};

	return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
