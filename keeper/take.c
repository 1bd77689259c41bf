/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the taker, a child of the keeper for one set, without a capability and under a filter
 * of its own.
 * Owns:    the directory of a set until it has its name.
 * Reads:   wheels, only to compute their SHA-256; a wheel with another hash is not parsed. */
#include "keeper/take.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/remove.h"
#include "base/why.h"
#include "base/writeall.h"
#include "keeper/compile.h"
#include "keeper/digest.h"
#include "keeper/intake.h"
#include "keeper/path.h"
#include "keeper/unpack.h"

#define WORD_MAX 256

/* A wheel as it was approved: an item of TAKE's list. */
struct expected {
	char name[WORD_MAX + 1], version[WORD_MAX + 1], hash[DIGEST_HEX + 1];
	uint64_t size;
};

static int
read_expected(const struct msg_str *item, struct expected *to)
{
	char text[2 * WORD_MAX + DIGEST_HEX + 32];
	int end = 0;

	if (item->len >= sizeof(text))
		return -EBADMSG;
	memcpy(text, item->at, item->len);
	text[item->len] = '\0';
	if (sscanf(text, "%256s %256s %64[0-9a-f] %" SCNu64 "%n", to->name, to->version,
		   to->hash, &to->size, &end) != 4 || (size_t)end != item->len ||
	    strlen(to->hash) != DIGEST_HEX)
		return -EBADMSG;
	return 0;
}

/* ---- one wheel ---- */

/* A nameless file in the directory of unfinished sets. */
static int
take_make_file(int dir)
{
	int fd = openat(dir, "wheel", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || unlinkat(dir, "wheel", 0) < 0) {
		int r = -errno;

		if (fd >= 0)
			close(fd);
		return r;
	}
	return fd;
}

/* Copies the stream to the file, and computes its digest. */
static int
take_copy(int from, int to, uint64_t size, char hash_r[DIGEST_HEX + 1])
{
	unsigned char sum[DIGEST_BYTES];
	struct digest digest = { NULL };
	char bytes[65536];
	int r = 0;

	digest_begin(&digest);
	while (size && r == 0) {
		size_t now = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);

		r = intake_bytes(from, bytes, now);
		if (r == 0) {
			digest_add(&digest, bytes, now);
			r = write_all(to, bytes, now);
		}
		size -= now;
	}
	digest_end(&digest, sum);
	digest_free(&digest);
	digest_hex(sum, hash_r);
	return r;
}

static int
take_wheel(const struct take *take, int dir, const struct msg_str *item,
	   struct intake *intake, struct why *why_r)
{
	const struct msg_str *python = &take->asked->python;
	struct expected expected;
	char hash[DIGEST_HEX + 1], interpreter[PYTHON_PATH_MAX + 1];
	own_fd int file = take_make_file(dir);
	int r = file < 0 ? file : read_expected(item, &expected);

	if (r < 0)
		return why_say(why_r, r, "", "a file for a wheel");
	r = take_copy(take->wheels, file, expected.size, hash);
	if (r < 0)
		return why_say(why_r, r, "", "the wheel of %s %s", expected.name,
			       expected.version);
	if (strcmp(hash, expected.hash) != 0)
		return why_say(why_r, -EBADMSG, "", "%s %s: its wheel is not the one that was "
			       "decided about: its SHA-256 is %s", expected.name,
			       expected.version, hash);
	snprintf(interpreter, sizeof(interpreter), "%.*s", (int)python->len, python->at);
	return wheel_unpack(file, expected.size, &(struct wheel_asked){
		.name = expected.name, .version = expected.version, .python = interpreter,
		.bytes_max = intake->bytes_max, .files_max = intake->files_max,
	}, intake, why_r);
}

/* ---- the set ---- */

static int
take_write_file(int dir, const char *name, const char *text, size_t len)
{
	own_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	return fd < 0 ? -errno : write_all(fd, text, len);
}

static int
take_wheels(const struct take *take, int dir, struct intake *intake, struct why *why_r)
{
	const struct msg_strs *wheels = &take->asked->wheels;
	int r = 0;

	for (size_t i = 0; i < wheels->n && r == 0; i++)
		r = take_wheel(take, dir, &wheels->item[i], intake, why_r);
	return r;
}

/* The list holds the files of the wheels at this point; compiled files are added after them. */
static int
take_compile(const struct take *take, int dir, struct intake *intake, struct why *why_r)
{
	own_fd int fd = openat(dir, "files", O_RDONLY | O_CLOEXEC);
	FILE *sources = fd < 0 ? NULL : fdopen(fd, "r");
	int r;

	if (!sources || fflush(intake->list) != 0) {
		r = why_say(why_r, -errno, "", "the list of the files");
	} else {
		give_fd(fd);
		r = compile_sources(intake, take->compiler, sources, ftell(intake->list), why_r);
	}
	if (sources)
		fclose(sources);
	return r;
}

/* Takes the files in, and lists them in the form of sha256sum, so that the disk can be checked. */
static int
take_files(const struct take *take, int dir, struct intake *intake, struct why *why_r)
{
	own_fd int fd = openat(dir, "files", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	int r;

	intake->list = fd < 0 ? NULL : fdopen(fd, "w");
	if (!intake->list)
		return why_say(why_r, -errno, "", "the list of the files");
	give_fd(fd);
	r = take_wheels(take, dir, intake, why_r);
	if (r == 0)
		r = take_compile(take, dir, intake, why_r);
	if (fclose(intake->list) != 0 && r == 0)
		r = why_say(why_r, -errno, "", "the list of the files");
	return r;
}

/* Syncs the set to the disk before it gets its name, and the name afterwards. */
static int
put_in_place(const struct take *take, struct why *why_r)
{
	char name[ENVIRONMENT_NAME + 1];

	memcpy(name, take->asked->name.at, ENVIRONMENT_NAME);
	name[ENVIRONMENT_NAME] = '\0';
	if (syncfs(take->store) < 0)
		return why_say(why_r, -errno, "", "writing to the disk");
	/* Another taker may have been faster with the same set. */
	if ((renameat2(take->store, take->half, take->store, name, RENAME_NOREPLACE) < 0 &&
	     errno != EEXIST) || fsync(take->store) < 0)
		return why_say(why_r, -errno, "", "the name of the set");
	return 0;
}

static int
make_set(struct take *take, int dir, int tree, struct why *why_r)
{
	const struct msg_take *asked = take->asked;
	struct intake intake = { .tree = tree, .bytes_max = asked->bytes_max,
				 .files_max = asked->files_max };
	char size[32];
	int r = take_write_file(dir, "manifest", asked->manifest.at, asked->manifest.len);

	if (r < 0)
		return why_say(why_r, r, "", "the manifest of the set");
	r = take_files(take, dir, &intake, why_r);
	take->bytes = intake.bytes;
	take->files = intake.files;
	if (r < 0)
		return r;
	snprintf(size, sizeof(size), "%" PRIu64 "\n", intake.bytes);
	r = take_write_file(dir, "bytes", size, strlen(size));
	return r < 0 ? why_say(why_r, r, "", "the size of the set")
		     : put_in_place(take, why_r);
}

int
take_set(struct take *take, struct why *why_r)
{
	own_fd int dir = -1, tree = -1;
	int r = 0;

	if (mkdirat(take->store, take->half, 0755) < 0 ||
	    (dir = openat(take->store, take->half, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	    mkdirat(dir, "tree", 0755) < 0 ||
	    (tree = openat(dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		r = why_say(why_r, -errno, "", "making room in the store");
	if (r == 0)
		r = make_set(take, dir, tree, why_r);
	/* A set that is in place has another name by now, so this removes what is unfinished. */
	remove_tree(take->store, take->half, SET_DEPTH_MAX);
	return r;
}
