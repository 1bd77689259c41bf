/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python-unpack: unpacks an image of containers, or an archive with a Python, into a directory.
 * `mcp-python interpreter add` starts it (client/interpreter.in). */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/quote.h"
#include "base/remove.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "image/image.h"
#include "image/layer.h"
#include "image/place.h"

#define PROGRAM "mcp-python-unpack"
#define MEMORY_MAX (512UL << 20)	/* bytes */

static const char help[] =
	"Usage: " PROGRAM " --image FILE DIR\n"
	"       " PROGRAM " --tree FILE SHA256 DIR\n"
	"\n"
	"Unpacks FILE into DIR, a new directory.\n"
	"\n"
	"  --image    what docker save or podman save wrote, or an OCI layout (archive or directory)\n"
	"  --tree     a tar archive, compressed or not, that has this SHA-256\n"
	"  --help     this text\n"
	"  --version  the version\n";

/* Makes the directories that a worker mounts on. Links in their place would lead elsewhere. */
static int
make_mount_points(int top, struct why *why_r)
{
	static const char *const names[] = { "dev", "proc", "mnt" };
	struct stat st;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (mkdirat(top, names[i], 0755) < 0 && errno != EEXIST)
			return why_say(why_r, -errno, "", "/%s: %s", names[i], strerror(errno));
		if (fstatat(top, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			return why_say(why_r, -ENOTDIR, "", "/%s is not a directory", names[i]);
	}
	return 0;
}

static int
unpack_tree(struct layer_tree *tree, int file, const char *sha256, struct why *why_r)
{
	char sum[SPOOL_HEX + 1];
	own_fd int copy = spool_copy(file, tree->top, false, &tree->room, sum, why_r);

	if (copy < 0)
		return copy;
	if (strcasecmp(sum, sha256) != 0)
		return why_say(why_r, -EBADMSG, "", "its SHA-256 is %s, not %.80s", sum, sha256);
	return layer_unpack(tree, copy, false, why_r);
}

/* Raises the limit of descriptors, because the copies of an archive's files are open at the same
 * time. Limits memory, because compressed data determine how much of it their decoder uses. */
static void
set_limits(void)
{
	struct rlimit limit = { MEMORY_MAX, MEMORY_MAX };

#ifndef WITH_SANITIZERS			/* their shadow counts */
	setrlimit(RLIMIT_DATA, &limit);
#endif
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int
unpack(const char *path, const char *sha256, const char *dir, struct why *why_r)
{
	own_fd int file = open(path, O_RDONLY | O_CLOEXEC), top = -1;
	struct layer_tree tree = { .room = { LAYER_BYTES_MAX }, .entries = LAYER_ENTRIES_MAX };
	int r;

	if (file < 0)
		return why_say(why_r, -errno, "", "%s", strerror(errno));
	if (mkdir(dir, 0700) < 0)
		return why_say(why_r, -errno, "", "%.300s: %s", dir, strerror(errno));
	tree.top = top = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = top < 0 ? why_say(why_r, -errno, "", "%.300s: %s", dir, strerror(errno)) : 0;
	if (r == 0)
		r = sha256 ? unpack_tree(&tree, file, sha256, why_r)
			   : image_unpack(&tree, file, why_r);
	if (r == 0 && !sha256)
		r = make_mount_points(top, why_r);
	if (r == 0 && fchmod(top, 0755) < 0)
		r = why_say(why_r, -errno, "", "%.300s: %s", dir, strerror(errno));
	if (r < 0)
		remove_tree(AT_FDCWD, dir, PLACE_DEPTH_MAX);
	else if (tree.left_out > 0)
		fprintf(stderr, PROGRAM ": %s: %llu devices, fifos or sockets were left out\n", path,
			(unsigned long long)tree.left_out);
	return r;
}

int
main(int argc, char **argv)
{
	struct why why = { .text = "" };
	char text[2048];
	bool image = argc == 4 && strcmp(argv[1], "--image") == 0;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts(PROGRAM " " PACKAGE_VERSION);
		return EXIT_SUCCESS;
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(help, stdout);
		return EXIT_SUCCESS;
	}
	if (!image && !(argc == 5 && strcmp(argv[1], "--tree") == 0)) {
		fputs(help, stderr);
		return EXIT_FAILURE;
	}
	json_set_alloc_funcs(xmalloc, free);
	xalloc_for_openssl();
	setlocale(LC_CTYPE, "C.UTF-8");
	umask(0);
	set_limits();
	if (unpack(argv[2], image ? NULL : argv[3], argv[argc - 1], &why) < 0) {
		/* Names of the archive's entries are a stranger's. */
		quote_line(text, sizeof(text), why.text, strlen(why.text));
		fprintf(stderr, PROGRAM ": %s: %s\n", argv[2], text);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
