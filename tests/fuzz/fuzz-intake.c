/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of files from the reader of a wheel. The first two bytes are the most files and pages.
 * The target asserts:
 *
 * - intake_read() returns 0, or an error with a text.
 * - The tree has directories and regular files only, at safe paths and within the limits.
 * - Each listed file exists and has the listed sum.
 * - The same stream is accepted again, and changes nothing. */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/why.h"
#include "keeper/digest.h"
#include "keeper/intake.h"
#include "keeper/path.h"

#define PAGE 4096

static char place[] = "/tmp/fuzz-intake-XXXXXX";
static int stream = -1;

static void
remove_place(void)
{
	(void)rmdir(place);
}

/* ---- the tree ---- */

struct there {
	size_t files, pages;
};

static struct there
look(bool removes)
{
	char *paths[] = { place, NULL };
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	struct there there = { .files = 0 };
	const FTSENT *entry;

	MUST(tree);
	while ((entry = fts_read(tree))) {
		const char *path = entry->fts_path + sizeof(place);

		if (entry->fts_info == FTS_D || entry->fts_level == 0)
			continue;
		MUST(entry->fts_info == FTS_DP || entry->fts_info == FTS_F);
		MUST(path_is_safe(path, strlen(path)));
		there.pages++;
		if (entry->fts_info == FTS_F) {
			size_t size = (size_t)entry->fts_statp->st_size;

			MUST(!(entry->fts_statp->st_mode & 07222));
			there.files++;
			there.pages += size ? (size - 1) / PAGE : 0;
		}
		if (removes)
			MUST(remove(entry->fts_accpath) == 0);
	}
	fts_close(tree);
	return there;
}

static void
check_file(const char *sum, const char *path)
{
	unsigned char bytes[PAGE], made[DIGEST_BYTES];
	struct digest digest = { NULL };
	char whole[sizeof(place) + PATH_BYTES_MAX + 1], text[DIGEST_HEX + 1];
	ssize_t n;
	int fd;

	snprintf(whole, sizeof(whole), "%s/%s", place, path);
	fd = open(whole, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	MUST(fd >= 0);
	digest_begin(&digest);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		digest_add(&digest, bytes, (size_t)n);
	digest_end(&digest, made);
	digest_free(&digest);
	digest_hex(made, text);
	MUST(strcmp(text, sum) == 0);
	close(fd);
}

/* Returns the number of lines. */
static size_t
check_list(char *list)
{
	static const char between[] = "  tree/";
	size_t n = 0;

	for (char *line = list, *end; *line; line = end + 1, n++) {
		end = strchr(line, '\n');
		MUST(end && end - line > DIGEST_HEX + 7);
		*end = '\0';
		MUST(strncmp(line + DIGEST_HEX, between, strlen(between)) == 0);
		line[DIGEST_HEX] = '\0';
		check_file(line, line + DIGEST_HEX + strlen(between));
	}
	return n;
}

/* ---- one stream ---- */

static int
take(struct intake *intake, char **list_r)
{
	struct why why = { .text = "" };
	size_t len;
	int r;

	intake->list = open_memstream(list_r, &len);
	MUST(lseek(stream, 0, SEEK_SET) == 0);
	r = intake_read(intake, stream, &why);
	fclose(intake->list);
	MUST((r < 0) == (*why.text != '\0'));
	MUST(r == 0 || r == -EBADMSG || r == -EFBIG || r == -EEXIST || r == -EPIPE ||
	     r == -EISDIR || r == -ENOTDIR || r == -ENAMETOOLONG);
	MUST(intake->bytes <= intake->bytes_max && intake->files <= intake->files_max);
	return r;
}

static void
take_twice(struct intake *intake)
{
	struct there there;
	char *list, *again;
	int r = take(intake, &list);
	size_t lines = check_list(list);

	there = look(false);
	MUST(lines == intake->files);
	/* After an error one more file may be incomplete. */
	MUST(r < 0 ? there.files <= lines + 1 : there.files == lines);
	MUST(r < 0 || there.pages * PAGE == intake->bytes);
	if (r == 0 && intake->files < intake->files_max) {
		MUST(take(intake, &again) == 0 && *again == '\0');
		MUST(look(false).files == there.files);
		free(again);
	}
	free(list);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rest rest = { data, size };
	struct intake intake = { .files_max = rest_byte(&rest),
				 .bytes_max = (uint64_t)rest_byte(&rest) * PAGE };

	if (stream < 0) {
		stream = memfd_create("stream", MFD_CLOEXEC);
		MUST(stream >= 0 && digest_prepare() == 0);
		MUST(mkdtemp(place) && atexit(remove_place) == 0);
		umask(022);
	}
	intake.tree = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	MUST(ftruncate(stream, 0) == 0);
	MUST(pwrite(stream, rest.at, rest.len, 0) == (ssize_t)rest.len);
	take_twice(&intake);
	close(intake.tree);
	(void)look(true);
	return 0;
}
