/* SPDX-License-Identifier: Apache-2.0 */
/* Images and layers of containers: for any bytes,
 *
 * - there is no file beside the tree, and none in it has another kind than file, directory or link;
 * - no file has a right that other users could use: set-user-ID, or a right to write for all;
 * - the tree has no more bytes than it has room for. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/remove.h"
#include "base/why.h"
#include "image/image.h"
#include "image/layer.h"
#include "image/place.h"
#include "tests/fuzz/fuzz.h"

#define ROOM (1 << 20)
#define ENTRIES 200

static uint64_t bytes;

static int
look_at_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)path;
	(void)kind;
	(void)where;
	MUST(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode));
	MUST(S_ISLNK(st->st_mode) || !(st->st_mode & (S_ISUID | S_ISGID | S_IWOTH)));
	if (S_ISREG(st->st_mode) && st->st_nlink == 1)
		bytes += (uint64_t)st->st_blocks * 512;
	return 0;
}

/* The directory that holds the tree, made once for each process. */
static char place[] = "/tmp/fuzz-image-XXXXXX";

static void
remove_place(void)
{
	rmdir(place);
}

static void
make_place(void)
{
	static bool made;

	if (made)
		return;
	MUST(mkdtemp(place) != NULL && atexit(remove_place) == 0);
	made = true;
}

static int
open_input(const uint8_t *data, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void
must_be_alone(int dir)
{
	DIR *list = fdopendir(dup(dir));
	struct dirent *one;

	MUST(list != NULL);
	rewinddir(list);
	while ((one = readdir(list)) != NULL)
		MUST(one->d_name[0] == '.' || strcmp(one->d_name, "tree") == 0);
	closedir(list);
}

/* The first byte says what the rest is. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct layer_tree tree = { .room = { ROOM }, .entries = ENTRIES };
	struct why why = { .text = "" };
	int dir, file, r;
	char path[64];

	if (size < 1 || size > 65536)
		return 0;
	make_place();
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(dir >= 0 && mkdirat(dir, "tree", 0700) == 0);
	tree.top = openat(dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	file = open_input(data + 1, size - 1);
	MUST(tree.top >= 0);
	r = data[0] % 3 == 0 ? image_unpack(&tree, file, &why)
			     : layer_unpack(&tree, file, data[0] % 3 == 1, &why);
	MUST(r <= 0 && (r == 0 || why.text[0] != '\0'));
	must_be_alone(dir);
	bytes = 0;
	snprintf(path, sizeof(path), "%s/tree", place);
	MUST(nftw(path, look_at_one, 16, FTW_PHYS) == 0);
	MUST(bytes <= 2 * ROOM);
	close(file);
	close(tree.top);
	MUST(remove_tree(dir, "tree", PLACE_DEPTH_MAX) == 0);
	close(dir);
	return 0;
}
