/* SPDX-License-Identifier: Apache-2.0 */
/* The store of files: what is kept, for whom, how much of it, and what a crash leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>
#include <openssl/evp.h>

#include "base/clock.h"
#include "host/filestore.h"
#include "host/filestore_parts.h"
#include "host/helper.h"

#include "../base/set_clock.h"

#define MiB (1024 * 1024)
#define PATIENCE_MS 60000

static char top[] = "/tmp/test-filestore-XXXXXX", directory[sizeof(top) + 16];
static struct event_base *base;
static struct filestore *store;
static struct filestore_bounds bounds;
static uint64_t the_time = 1000;

static uint64_t
test_clock(void)
{
	return the_time;
}

/* ---- jobs ---- */

struct job {
	int fd, error;
	bool begun, ended;
};

static void
on_begin(void *arg, int fd)
{
	struct job *job = arg;

	assert_false(job->begun || job->ended);
	job->begun = true;
	job->fd = fd;
}

static void
on_end(void *arg, int error)
{
	struct job *job = arg;

	assert_false(job->ended);
	job->ended = true;
	job->error = error;
}

static struct filestore_calls
calls_of(struct job *job)
{
	*job = (struct job){ .fd = -1 };
	return (struct filestore_calls){ .begin = on_begin, .end = on_end, .arg = job };
}

/* Runs the loop until *flag. */
static void
until(const bool *flag)
{
	uint64_t late = clock_ms() + PATIENCE_MS;

	while (!*flag) {
		const struct timeval slice = { .tv_usec = 20000 };

		assert_true(clock_ms() < late);
		event_base_loopexit(base, &slice);
		event_base_loop(base, EVLOOP_ONCE);
	}
}

static unsigned char
byte_at(uint64_t offset, unsigned int seed)
{
	return (unsigned char)(offset * 7 + offset / 251 + seed);
}

/* Writes len bytes; the helper is another process, so this may wait for it. */
static void
feed(int fd, uint64_t len, unsigned int seed)
{
	static unsigned char chunk[65536];

	for (uint64_t at = 0; at < len;) {
		size_t n = len - at < sizeof(chunk) ? (size_t)(len - at) : sizeof(chunk);
		ssize_t done;

		for (size_t i = 0; i < n; i++)
			chunk[i] = byte_at(at + i, seed);
		done = write(fd, chunk, n);
		if (done < 0) {
			assert_int_equal(errno, EPIPE);
			return;
		}
		at += (uint64_t)done;
	}
}

static int
keep(const char *principal, const char *uri, uint64_t size, uint64_t written, unsigned int seed)
{
	struct job job;
	struct filestore_calls calls = calls_of(&job);

	filestore_keep(store, principal, uri, "a/b.bin", 7, size, &calls);
	/* Orders are sent from the loop. */
	while (!job.begun && !job.ended)
		event_base_loop(base, EVLOOP_ONCE);
	if (job.begun) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		feed(job.fd, written, seed);
		close(job.fd);
	}
	until(&job.ended);
	return job.error;
}

/* -errno, or the number of bytes, which were as expected. */
static int64_t
fetch(const char *principal, const char *uri, uint64_t offset, uint64_t len, unsigned int seed)
{
	static unsigned char chunk[65536];
	struct job job;
	struct filestore_calls calls = calls_of(&job);
	int64_t got = 0;
	ssize_t n;

	filestore_fetch(store, principal, uri, offset, len, 60, &calls);
	if (job.begun) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		while ((n = read(job.fd, chunk, sizeof(chunk))) > 0) {
			for (ssize_t i = 0; i < n; i++)
				assert_int_equal(chunk[i],
						 byte_at(offset + (uint64_t)(got + i), seed));
			got += n;
		}
		close(job.fd);
	}
	until(&job.ended);
	return job.error ? job.error : got;
}

static bool
has(const char *principal, const char *uri)
{
	struct filestore_file file;

	return filestore_find(store, principal, uri, &file);
}

/* ---- the directory ---- */

static unsigned int n_found;
static char last_found[512];

static int
on_found(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)at;
	if (type == FTW_F) {
		n_found++;
		snprintf(last_found, sizeof(last_found), "%s", path);
		/* Workers read the bytes through a mount; no other user may pass the
		 * directories. */
		assert_int_equal(st->st_mode & 07777, strchr(path + at->base, '.') ? 0600 : 0644);
	}
	return 0;
}

/* Regular files below the store; each file is two. */
static unsigned int
files_on_disk(void)
{
	n_found = 0;
	nftw(directory, on_found, 16, FTW_PHYS);
	return n_found;
}

static int
on_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void
open_store(void)
{
	assert_int_equal(filestore_new(directory, &bounds, &store), 0);
	filestore_watch(store, base);
}

static void
restart(void)
{
	filestore_free(store);
	open_store();
}

static int
set_up(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	filestore_set_clock(NULL);
	strcpy(top + strlen(top) - 6, "XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(directory, sizeof(directory), "%s/files", top);
	bounds = (struct filestore_bounds){ .file_bytes = 8 * MiB, .tenant_bytes = 16 * MiB,
					    .bytes_max = 24 * MiB, .tenant_files = 5,
					    .keep_seconds = 3600, .place_seconds = 60 };
	base = event_base_new();
	open_store();
	return 0;
}

static int
take_down(void **state)
{
	(void)state;
	filestore_free(store);
	store = NULL;
	event_base_free(base);
	nftw(top, on_remove, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* ---- tests ---- */

/* Also those that still expire, and those of several tenants; and nothing else in the directory. */
static void
test_passing_files_end_with_the_store(void **state)
{
	(void)state;
	assert_int_equal(keep("uid:1", "u:a", 1000, 1000, 1), 0);
	assert_int_equal(keep("uid:2", "u:b", 3 * MiB, 3 * MiB, 2), 0);
	restart();
	assert_int_not_equal(files_on_disk(), 0);
	bounds.passing = true;
	restart();
	assert_int_not_equal(files_on_disk(), 0);
	filestore_free(store);
	assert_int_equal(files_on_disk(), 0);
	open_store();
}

static void
test_a_file_comes_back(void **state)
{
	struct filestore_file file;
	unsigned char sum[32];
	unsigned char *all = malloc(5 * MiB + 3);

	(void)state;
	assert_int_equal(keep("uid:1", "u:one", 5 * MiB + 3, 5 * MiB + 3, 1), 0);
	assert_true(filestore_find(store, "uid:1", "u:one", &file));
	assert_string_equal(file.path, "a/b.bin");
	assert_int_equal(file.size, 5 * MiB + 3);
	for (size_t i = 0; i < 5 * MiB + 3; i++)
		all[i] = byte_at(i, 1);
	EVP_Digest(all, 5 * MiB + 3, sum, NULL, EVP_sha256(), NULL);
	free(all);
	assert_memory_equal(file.sha256, sum, sizeof(sum));
	assert_int_equal(fetch("uid:1", "u:one", 0, file.size, 1), file.size);
	assert_int_equal(fetch("uid:1", "u:one", 4 * MiB + 1, 77, 1), 77);
	assert_int_equal(fetch("uid:1", "u:one", file.size, 0, 1), 0);
	assert_int_equal(fetch("uid:1", "u:one", file.size, 1, 1), -ESTALE);
	assert_int_equal(fetch("uid:1", "u:one", UINT64_MAX, 2, 1), -ESTALE);
	assert_int_equal(files_on_disk(), 2);
}

/* A tenant's file is found neither under its own address nor in a list of another one. */
static void
test_it_is_one_tenants(void **state)
{
	struct filestore_file file;

	(void)state;
	assert_int_equal(keep("uid:1", "u:one", 1000, 1000, 1), 0);
	assert_false(has("uid:2", "u:one"));
	assert_false(has("uid:11", "u:one"));
	assert_false(filestore_next(store, "uid:2", "", &file));
	assert_int_equal(fetch("uid:2", "u:one", 0, 1, 1), -ESTALE);
	filestore_remove(store, "uid:2", "u:one");
	assert_true(has("uid:1", "u:one"));
	/* The same address of another tenant is another file. */
	assert_int_equal(keep("uid:2", "u:one", 500, 500, 2), 0);
	assert_int_equal(fetch("uid:1", "u:one", 0, 1000, 1), 1000);
	assert_int_equal(fetch("uid:2", "u:one", 0, 500, 2), 500);
}

static void
test_lists_are_in_order(void **state)
{
	struct filestore_file file;

	(void)state;
	assert_int_equal(keep("uid:1", "u:b", 10, 10, 1), 0);
	assert_int_equal(keep("uid:1", "u:a", 10, 10, 1), 0);
	assert_true(filestore_next(store, "uid:1", "", &file));
	assert_string_equal(file.uri, "u:a");
	assert_true(filestore_next(store, "uid:1", "u:a", &file));
	assert_string_equal(file.uri, "u:b");
	assert_false(filestore_next(store, "uid:1", "u:b", &file));
}

static void
test_it_survives_a_restart(void **state)
{
	struct filestore_file file;

	(void)state;
	assert_int_equal(keep("uid:1", "u:one", 3 * MiB, 3 * MiB, 1), 0);
	restart();
	assert_true(filestore_find(store, "uid:1", "u:one", &file));
	assert_string_equal(file.path, "a/b.bin");
	assert_int_equal(fetch("uid:1", "u:one", 0, 3 * MiB, 1), 3 * MiB);
	/* And counts against its tenant as before. */
	assert_int_equal(keep("uid:1", "u:two", 8 * MiB, 8 * MiB, 2), 0);
	assert_true(has("uid:1", "u:one"));
	assert_int_equal(keep("uid:1", "u:three", 6 * MiB, 6 * MiB, 2), 0);
	assert_false(has("uid:1", "u:one"));
}

/* A file that is cut short while it comes in, as by a script that truncates it, is not kept. */
static void
test_less_than_was_announced(void **state)
{
	(void)state;
	assert_int_equal(keep("uid:1", "u:one", 2 * MiB, 2 * MiB - 1, 1), -ESTALE);
	assert_int_equal(keep("uid:1", "u:two", 2 * MiB, 0, 1), -ESTALE);
	assert_false(has("uid:1", "u:one"));
	assert_int_equal(files_on_disk(), 0);
	/* What comes beyond the announced size is not read. */
	assert_int_equal(keep("uid:1", "u:three", MiB, 3 * MiB, 1), 0);
	assert_int_equal(fetch("uid:1", "u:three", 0, MiB, 1), MiB);
}

static void
test_bounds(void **state)
{
	(void)state;
	assert_int_equal(keep("uid:1", "u:big", 8 * MiB + 1, 0, 1), -EFBIG);
	assert_int_equal(keep("uid:1", "u:sparse", 1ULL << 40, 0, 1), -EFBIG);
	assert_int_equal(keep("uid:1", "u:1", 8 * MiB, 8 * MiB, 1), 0);
	assert_int_equal(keep("uid:1", "u:2", 8 * MiB, 8 * MiB, 2), 0);
	/* The oldest makes room, and its bytes go from the disk. */
	assert_int_equal(keep("uid:1", "u:3", 1, 1, 3), 0);
	assert_false(has("uid:1", "u:1"));
	assert_true(has("uid:1", "u:2"));
	assert_int_equal(files_on_disk(), 4);
	/* So many files, and no more. */
	for (unsigned int i = 0; i < 8; i++) {
		char uri[16];

		snprintf(uri, sizeof(uri), "u:n%u", i);
		assert_int_equal(keep("uid:1", uri, 1, 1, i), 0);
	}
	assert_int_equal(files_on_disk(), 10);
	assert_false(has("uid:1", "u:n2"));
	assert_true(has("uid:1", "u:n3"));
}

/* When the store is full, the tenant that has the most makes room. */
static void
test_the_fullest_gives_way(void **state)
{
	(void)state;
	assert_int_equal(keep("uid:1", "u:1", 8 * MiB, 8 * MiB, 1), 0);
	assert_int_equal(keep("uid:1", "u:2", 8 * MiB, 8 * MiB, 1), 0);
	assert_int_equal(keep("uid:2", "u:1", 7 * MiB, 7 * MiB, 1), 0);
	assert_int_equal(keep("uid:3", "u:1", 2 * MiB, 2 * MiB, 1), 0);
	assert_false(has("uid:1", "u:1"));
	assert_true(has("uid:1", "u:2") && has("uid:2", "u:1") && has("uid:3", "u:1"));
}

/* What is coming in counts, too; and so many at once do, while others go on. */
static void
test_jobs_at_once(void **state)
{
	struct job job[6], other;
	struct filestore_calls calls;
	struct filestore_job *handle[6];

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		char uri[16];

		snprintf(uri, sizeof(uri), "u:%u", i);
		calls = calls_of(&job[i]);
		handle[i] = filestore_keep(store, "uid:1", uri, "x", 1, 4 * MiB, &calls);
	}
	assert_true(job[3].begun);
	assert_false(job[4].begun || job[5].begun);
	calls = calls_of(&other);
	filestore_keep(store, "uid:2", "u:o", "x", 1, 1000, &calls);
	assert_true(other.begun);
	event_base_loop(base, EVLOOP_NONBLOCK);
	feed(other.fd, 1000, 1);
	until(&other.ended);
	assert_int_equal(other.error, 0);
	close(other.fd);
	/* One that is given up lets the next one begin; its bytes go. */
	filestore_cancel(handle[0]);
	until(&job[4].begun);
	assert_false(job[0].ended);
	for (unsigned int i = 1; i < 5; i++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		feed(job[i].fd, 4 * MiB, i);
		until(&job[i].ended);
		assert_int_equal(job[i].error, 0);
	}
	until(&job[5].begun);
	for (unsigned int i = 0; i < 6; i++)
		close(job[i].fd);
	until(&job[5].ended);
	assert_int_equal(job[5].error, -ESTALE);
	assert_false(has("uid:1", "u:0"));
	assert_true(has("uid:1", "u:4"));
}

/* Clients that write nothing keep no file of a script waiting, of their own tenant or another. */
static void
test_slow_jobs_leave_places(void **state)
{
	struct job slow[40], own, other;
	struct filestore_calls calls;
	unsigned int begun = 0;

	(void)state;
	for (unsigned int i = 0; i < 40; i++) {
		char principal[16], uri[16];

		snprintf(principal, sizeof(principal), "uid:%u", 1 + i / 4);
		snprintf(uri, sizeof(uri), "u:%u", i);
		calls = calls_of(&slow[i]);
		calls.is_slow = true;
		filestore_keep(store, principal, uri, "x", 1, 1000, &calls);
	}
	assert_true(slow[1].begun && !slow[2].begun);
	for (unsigned int i = 0; i < 40; i++)
		begun += slow[i].begun;
	assert_int_equal(begun, 16);
	calls = calls_of(&own);
	filestore_keep(store, "uid:1", "u:own", "x", 1, 1000, &calls);
	calls = calls_of(&other);
	filestore_keep(store, "uid:99", "u:other", "x", 1, 1000, &calls);
	assert_true(own.begun && other.begun);
	close(own.fd);
	close(other.fd);
	until(&own.ended);
	until(&other.ended);
	/* A place that becomes free goes to the next of them. */
	for (unsigned int i = 0; i < 40; i++) {
		until(&slow[i].begun);
		event_base_loop(base, EVLOOP_NONBLOCK);
		close(slow[i].fd);
		until(&slow[i].ended);
	}
}

/* A job that gets no place in its time has not begun, and says so; the others go on. */
static void
test_no_place_in_time(void **state)
{
	struct job job[5];
	struct filestore_calls calls;

	(void)state;
	filestore_free(store);
	bounds.place_seconds = 1;
	open_store();
	for (unsigned int i = 0; i < 5; i++) {
		char uri[16];

		snprintf(uri, sizeof(uri), "u:%u", i);
		calls = calls_of(&job[i]);
		filestore_keep(store, "uid:1", uri, "x", 1, 1000, &calls);
	}
	until(&job[4].ended);
	assert_int_equal(job[4].error, -EBUSY);
	assert_false(job[4].begun);
	for (unsigned int i = 0; i < 4; i++) {
		assert_true(job[i].begun && !job[i].ended);
		feed(job[i].fd, 1000, i);
		close(job[i].fd);
		until(&job[i].ended);
		assert_int_equal(job[i].error, 0);
	}
}

/* The bytes that are coming in are a tenant's own: it cannot have more by writing slowly. */
static void
test_what_comes_in_counts(void **state)
{
	struct job job[3];
	struct filestore_calls calls;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		char uri[16];

		snprintf(uri, sizeof(uri), "u:%u", i);
		calls = calls_of(&job[i]);
		filestore_keep(store, "uid:1", uri, "x", 1, 8 * MiB, &calls);
	}
	until(&job[2].ended);
	assert_int_equal(job[2].error, -EDQUOT);
	assert_true(job[0].begun && job[1].begun && !job[2].begun);
	close(job[0].fd);
	close(job[1].fd);
	until(&job[1].ended);
	until(&job[0].ended);
}

static void
test_a_clock_that_jumps_expires_nothing(void **state)
{
	(void)state;
	assert_int_equal(keep("uid:1", "u:1", 1000, 1000, 1), 0);
	the_jump = 365 * 86400;
	assert_true(has("uid:1", "u:1"));
	assert_int_equal(keep("uid:1", "u:2", 1000, 1000, 1), 0);
	the_jump = 0;
	assert_true(has("uid:1", "u:1") && has("uid:1", "u:2"));
}

static void
test_files_expire(void **state)
{
	(void)state;
	filestore_set_clock(test_clock);
	the_time = (uint64_t)time(NULL);
	assert_int_equal(keep("uid:1", "u:1", 1000, 1000, 1), 0);
	the_time += 3599;
	assert_true(has("uid:1", "u:1"));
	the_time += 1;
	assert_false(has("uid:1", "u:1"));
	assert_int_equal(fetch("uid:1", "u:1", 0, 1, 1), -ESTALE);
	/* It goes from the disk at the next start, at the latest. The helper has the real clock. */
	the_time -= 8000;
	assert_int_equal(keep("uid:1", "u:2", 1000, 1000, 1), 0);
	restart();
	assert_int_equal(files_on_disk(), 2);
	assert_false(has("uid:1", "u:2"));
}

/* Its time does not pass while it comes in. */
static void
test_a_slow_file_is_kept_as_long(void **state)
{
	struct job job;
	struct filestore_calls calls = calls_of(&job);

	(void)state;
	filestore_set_clock(test_clock);
	the_time = (uint64_t)time(NULL);
	filestore_keep(store, "uid:1", "u:1", "x", 1, 1000, &calls);
	event_base_loop(base, EVLOOP_NONBLOCK);
	the_time += 3600;
	feed(job.fd, 1000, 1);
	close(job.fd);
	until(&job.ended);
	assert_int_equal(job.error, 0);
	the_time += 3599;
	assert_true(has("uid:1", "u:1"));
	the_time += 1;
	assert_false(has("uid:1", "u:1"));
}

/* ---- what a crash leaves, and what others put there ---- */

static void
put(const char *folder, const char *name, const char *text)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, folder);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/%s", directory, folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void
test_half_files_go(void **state)
{
	char folder[256], name[256], *slash, path[512];

	(void)state;
	assert_int_equal(keep("uid:1", "u:1", 1000, 1000, 1), 0);
	assert_int_equal(keep("uid:1", "u:2", 1000, 1000, 1), 0);
	assert_int_equal(files_on_disk(), 4);
	slash = strrchr(last_found, '/');
	snprintf(name, sizeof(name), "%.26s", slash + 1);
	*slash = '\0';
	snprintf(folder, sizeof(folder), "%s", strrchr(last_found, '/') + 1);
	filestore_free(store);
	/* One of the two is shorter than it was; others never became files. */
	put(folder, name, "cut");
	put(folder, "abcdefghijkmnpqrstuvwxyz23", "half");
	put(folder, "abcdefghijkmnpqrstuvwxyz24.new", "half");
	put(folder, "abcdefghijkmnpqrstuvwxyz25.about", "no frame");
	put(folder, "something", "else");
	put("t-elsewhere", "abcdefghijkmnpqrstuvwxyz23", "half");
	open_store();
	assert_int_equal(files_on_disk(), 2);
	assert_int_equal(has("uid:1", "u:1") + has("uid:1", "u:2"), 1);
	snprintf(path, sizeof(path), "%s/t-elsewhere", directory);
	assert_int_equal(access(path, F_OK), -1);
}

static int
on_listed(void *arg, const struct msg_stored_file *)
{
	++*(unsigned int *)arg;
	return 0;
}

/* A store that runs out of descriptors while it looks at its files does not remove them. */
static void
test_what_cannot_be_read_stays(void **state)
{
	unsigned int listed = 0;
	struct rlimit before, few;
	int root, next;

	(void)state;
	assert_int_equal(keep("uid:1", "u:1", 1000, 1000, 1), 0);
	assert_int_equal(keep("uid:2", "u:2", 1000, 1000, 1), 0);
	filestore_free(store);
	root = filestore_disk_open(directory);
	assert_true(root >= 0);
	next = dup(root);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (int more = 1; more <= 2; more++) {
		few = (struct rlimit){ (rlim_t)(next + more), before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		assert_int_equal(filestore_disk_list(root, 1, on_listed, &listed), 0);
		setrlimit(RLIMIT_NOFILE, &before);
		assert_int_equal(listed, 0);
		assert_int_equal(files_on_disk(), 4);
	}
	assert_int_equal(filestore_disk_list(root, 1, on_listed, &listed), 0);
	assert_int_equal(listed, 2);
	close(root);
	open_store();
}

/* A description that was moved to another tenant's directory, or a link, opens nothing. */
static void
test_moved_and_linked(void **state)
{
	char from[512], to[512], mine[512], *slash;

	(void)state;
	assert_int_equal(keep("uid:1", "u:1", 1000, 1000, 1), 0);
	assert_int_equal(files_on_disk(), 2);
	slash = strrchr(last_found, '/');
	*slash = '\0';
	snprintf(mine, sizeof(mine), "%s", last_found);
	assert_int_equal(keep("uid:2", "u:2", 1000, 1000, 2), 0);
	filestore_free(store);
	snprintf(from, sizeof(from), "%s", mine);
	snprintf(to, sizeof(to), "%s/t-%064d", directory, 0);
	assert_int_equal(rename(from, to), 0);
	open_store();
	assert_false(has("uid:1", "u:1"));
	assert_true(has("uid:2", "u:2"));
	assert_int_equal(files_on_disk(), 2);
	/* A link in place of the bytes is not followed. */
	snprintf(from, sizeof(from), "%.*s", (int)(strrchr(last_found, '/') - last_found + 27),
		 last_found);
	assert_int_equal(unlink(from), 0);
	assert_int_equal(symlink("/etc/passwd", from), 0);
	assert_true(fetch("uid:2", "u:2", 0, 10, 2) < 0);
	restart();
	assert_false(has("uid:2", "u:2"));
	assert_int_equal(files_on_disk(), 0);
}

static void
test_directories_that_others_can_write(void **state)
{
	struct filestore *second = NULL;

	(void)state;
	/* One supervisor at a time. */
	assert_int_equal(filestore_new(directory, &bounds, &second), -EWOULDBLOCK);
	filestore_free(store);
	store = NULL;
	assert_int_equal(chmod(directory, 0770), 0);
	assert_int_equal(filestore_new(directory, &bounds, &second), -EPERM);
	assert_int_equal(filestore_new("/nowhere/files", &bounds, &second), -ENOENT);
}

/* The helper is killed while files come in and go out: their callers get an error, and the next
 * helper has all that was kept. */
static void
test_the_helper_ends(void **state)
{
	struct job in, out;
	struct filestore_calls calls;

	(void)state;
	assert_int_equal(keep("uid:1", "u:1", 4 * MiB, 4 * MiB, 1), 0);
	calls = calls_of(&in);
	filestore_keep(store, "uid:1", "u:2", "x", 1, 4 * MiB, &calls);
	calls = calls_of(&out);
	filestore_fetch(store, "uid:1", "u:1", 0, 4 * MiB, 60, &calls);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(kill(filestore_pid(store), SIGKILL), 0);
	until(&in.ended);
	until(&out.ended);
	assert_true(in.error < 0 && out.error < 0);
	close(in.fd);
	close(out.fd);
	assert_true(has("uid:1", "u:1"));
	assert_int_equal(keep("uid:1", "u:3", 1, 1, 1), 0);
	assert_true(has("uid:1", "u:3"));
	assert_int_equal(helper_state(HELPER_FILES).away, 0);
	restart();
	assert_true(has("uid:1", "u:1") && has("uid:1", "u:3"));
	assert_int_equal(files_on_disk(), 4);
}

/* More files than a new helper's index may have in one turn of the loop. They are in the order in
 * which they came, whatever the order of the directory: the oldest make room. */
static void
test_many_files_are_read_again(void **state)
{
	const size_t many = 600;
	char uri[32];
	int r;

	(void)state;

	bounds.tenant_files = (uint32_t)many;
	restart();
	the_time = (uint64_t)time(NULL);	/* the helper has the real clock */
	filestore_set_clock(test_clock);
	for (size_t i = 0; i < many; i++) {
		snprintf(uri, sizeof(uri), "u:%zu", i);
		the_time++;		/* for its debt */
		assert_int_equal(keep("uid:1", uri, 1, 1, (unsigned char)i), 0);
	}
	assert_int_equal(kill(filestore_pid(store), SIGKILL), 0);
	do			/* until its end is noticed */
		r = keep("uid:2", "u:0", 1, 1, 1);
	while (r == -EPIPE);
	assert_int_equal(r, 0);
	for (size_t i = 0; i < many; i++) {
		snprintf(uri, sizeof(uri), "u:%zu", i);
		assert_true(has("uid:1", uri));
	}
	restart();
	assert_true(has("uid:1", "u:0") && has("uid:1", uri) && has("uid:2", "u:0"));
	assert_int_equal(keep("uid:1", "u:further", 1, 1, 1), 0);
	assert_false(has("uid:1", "u:0"));
	assert_true(has("uid:1", "u:1") && has("uid:1", uri));
}

/* A held file stays, and counts. After it has expired it is not found any more, and its last holder
 * removes it. */
static void
test_what_is_held_stays(void **state)
{
	struct filestore_hold *hold[2], *last;

	(void)state;
	assert_null(filestore_hold(store, "uid:1", "u:1"));
	assert_int_equal(keep("uid:1", "u:1", 8 * MiB, 8 * MiB, 1), 0);
	assert_null(filestore_hold(store, "uid:2", "u:1"));
	for (size_t i = 0; i < 2; i++) {
		hold[i] = filestore_hold(store, "uid:1", "u:1");
		assert_non_null(hold[i]);
	}
	assert_int_equal(strlen(filestore_hold_directory(hold[0])), 66);
	assert_string_equal(filestore_hold_name(hold[0]), filestore_hold_name(hold[1]));
	/* It gives no room: neither to its tenant nor to others. */
	assert_int_equal(keep("uid:1", "u:2", 8 * MiB, 8 * MiB, 2), 0);
	assert_int_equal(keep("uid:1", "u:3", 1, 1, 3), 0);
	assert_true(has("uid:1", "u:1"));
	assert_false(has("uid:1", "u:2"));
	last = filestore_hold(store, "uid:1", "u:3");
	assert_int_equal(keep("uid:1", "u:4", 8 * MiB, 8 * MiB, 4), -EDQUOT);
	filestore_release(last);
	assert_true(has("uid:1", "u:3"));
	/* A removed file belongs to no tenant, and still exists. */
	assert_true(filestore_hold_is(hold[0], "u:1"));
	filestore_remove(store, "uid:1", "u:1");
	assert_false(has("uid:1", "u:1") || filestore_hold_is(hold[0], "u:1"));
	assert_null(filestore_hold(store, "uid:1", "u:1"));
	assert_int_equal(keep("uid:1", "u:5", 8 * MiB, 8 * MiB, 5), 0);
	assert_int_equal(files_on_disk(), 4);
	assert_int_equal(keep("uid:1", "u:1", 1, 1, 6), 0);
	assert_int_equal(fetch("uid:1", "u:1", 0, 1, 6), 1);
	filestore_release(hold[1]);
	assert_int_equal(keep("uid:2", "u:1", 1, 1, 7), 0);
	assert_int_equal(files_on_disk(), 6);
	filestore_release(hold[0]);
	assert_int_equal(keep("uid:2", "u:2", 1, 1, 8), 0);
	assert_int_equal(files_on_disk(), 6);
	filestore_release(NULL);
}

/* A disk without room for a file says so, and keeps nothing of it. RLIMIT_FSIZE stands for a small
 * disk, and needs no privilege. */
static void
test_no_room_on_the_disk(void **state)
{
	const struct rlimit little = { MiB, RLIM_INFINITY };
	struct rlimit before;

	(void)state;
	filestore_free(store);
	getrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	open_store();
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(keep("uid:1", "u:1", 2 * MiB, 2 * MiB, 1), -EFBIG);
	assert_int_equal(files_on_disk(), 0);
	assert_int_equal(keep("uid:1", "u:2", MiB / 2, MiB / 2, 1), 0);
}

/* Each file makes the disk work, however small it is: a tenant with very many waits. */
static void
test_a_tenant_pays_for_its_files(void **state)
{
	struct job job;
	struct filestore_calls calls;

	(void)state;
	filestore_set_clock(test_clock);
	for (unsigned int i = 0; i < 256; i++) {
		assert_int_equal(keep("uid:1", "script://a", 1, 1, i), 0);
		filestore_remove(store, "uid:1", "script://a");
	}
	calls = calls_of(&job);
	filestore_keep(store, "uid:1", "script://b", "a", 1, 1, &calls);
	assert_int_equal(keep("uid:2", "script://a", 1, 1, 0), 0);
	assert_false(job.begun || job.ended);
	the_time += 1;
	until(&job.begun);
	feed(job.fd, 1, 0);
	close(job.fd);
	until(&job.ended);
	assert_int_equal(job.error, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)
	const struct CMUnitTest tests[] = {
		TEST(test_passing_files_end_with_the_store),
		TEST(test_a_clock_that_jumps_expires_nothing),
		TEST(test_a_file_comes_back),
		TEST(test_it_is_one_tenants),
		TEST(test_lists_are_in_order),
		TEST(test_it_survives_a_restart),
		TEST(test_less_than_was_announced),
		TEST(test_bounds),
		TEST(test_the_fullest_gives_way),
		TEST(test_jobs_at_once),
		TEST(test_slow_jobs_leave_places),
		TEST(test_no_place_in_time),
		TEST(test_what_comes_in_counts),
		TEST(test_files_expire),
		TEST(test_a_slow_file_is_kept_as_long),
		TEST(test_half_files_go),
		TEST(test_what_cannot_be_read_stays),
		TEST(test_moved_and_linked),
		TEST(test_directories_that_others_can_write),
		TEST(test_the_helper_ends),
		TEST(test_many_files_are_read_again),
		TEST(test_what_is_held_stays),
		TEST(test_no_room_on_the_disk),
		TEST(test_a_tenant_pays_for_its_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
