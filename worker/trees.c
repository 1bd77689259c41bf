/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a session's init; trees_follow and trees_settle in the process of a copy.
 * Owns:    which slot has which tree, and which tree is in /workspace.
 * Reads:   names of files, which scripts chose. Links are not followed. Init has no heap. */
#include "worker/trees.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "worker/descriptors.h"
#include "worker/slots.h"
#include "worker/workspace.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* The directory that WORKSPACE shows. Files can be renamed between directories of one mount only,
 * and the other trees are in this one. */
#define PLACE "/run" WORKSPACE
#define HOME "/run/home"
#define ENTRIES_MAX (1 << 19)	/* a process that evades its stop could add names for ever */

/* By slot; 0: none. The first head has the first tree. */
static unsigned int tree[REPL_SNAPSHOTS_MAX] = { 1 };
static unsigned int placed = 1;		/* the tree in PLACE */

/* ---- directories ---- */

/* Opens a directory, with the right to change it. */
static int
open_folder(int at, const char *name)
{
	int fd = openat(at, name, FOLDER);
	struct stat st;

	if (fd < 0 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0)
		fd = openat(at, name, FOLDER);
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		fchmod(fd, (st.st_mode & 07777) | 0700);
	return fd;
}

static int
open_numbered(int at, const char *prefix, unsigned int number, bool make)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%u", prefix, number);
	if (make)
		mkdirat(at, name, 0700);
	return open_folder(at, name);
}

/* Called for each entry of a directory. True: the entry is no longer there. */
typedef bool (*taker)(int dir, const char *name, int to);

/* Calls take for each entry, until a round has taken none. */
static void
take_all(int dir, taker take, int to)
{
	struct entry {
		uint64_t ino, off;
		unsigned short len;
		unsigned char type;
		char name[];
	};
	_Alignas(struct entry) char list[4096];
	unsigned int taken = 0, before;
	long n;

	do {
		before = taken;
		lseek(dir, 0, SEEK_SET);
		while (taken < ENTRIES_MAX &&
		       (n = syscall(SYS_getdents64, dir, list, sizeof(list))) > 0)
			for (char *at = list; at < list + n;
			     at += ((struct entry *)(void *)at)->len) {
				const char *name = ((struct entry *)(void *)at)->name;

				if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
					taken += take(dir, name, to);
			}
	} while (taken != before);
}

/* Renames the entry. A directory that moves has to be writable. */
static bool
rename_entry(int from, const char *name, int to, const char *new_name)
{
	struct stat st;
	bool moved;

	if (renameat2(from, name, to, new_name, RENAME_NOREPLACE) == 0)
		return true;
	if (errno != EACCES || fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode) || fchmodat(from, name, 0700, 0) < 0)
		return false;
	moved = renameat2(from, name, to, new_name, RENAME_NOREPLACE) == 0;
	return fchmodat(moved ? to : from, moved ? new_name : name, st.st_mode & 07777, 0) == 0 &&
	       moved;
}

static bool
take_over(int dir, const char *name, int to)
{
	return rename_entry(dir, name, to, name);
}

static bool
remove_one(int dir, const char *name)
{
	return unlinkat(dir, name, 0) == 0 || unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

/* Removes the entry, or moves it up into the directory "top" if it has entries itself. */
static bool
take_up(int dir, const char *name, int top)
{
	static unsigned int number;
	char new_name[32];

	if (remove_one(dir, name))
		return true;
	snprintf(new_name, sizeof(new_name), ".%u.%d", ++number, (int)getpid());
	return rename_entry(dir, name, top, new_name);
}

/* Removes the entry with all below it, without recursion: a script chose how deep it is. */
static bool
take_away(int top, const char *name, int)
{
	own_fd int dir = -1;

	if (remove_one(top, name))
		return true;
	dir = open_folder(top, name);
	if (dir >= 0)
		take_all(dir, take_up, top);
	return unlinkat(top, name, AT_REMOVEDIR) == 0;
}

static void
take_away_numbered(int at, const char *prefix, unsigned int number)
{
	char name[32];
	struct stat st;

	snprintf(name, sizeof(name), "%s%u", prefix, number);
	for (int i = 0; i < 2 && fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0; i++) {
		own_fd int dir = open_folder(at, name);

		if (dir >= 0)
			take_all(dir, take_away, -1);
		remove_one(at, name);
	}
}

/* ---- trees ---- */

static int
open_trees(void)
{
	own_fd int home = open(HOME, FOLDER);

	return home < 0 ? -1 : open_folder(home, ".branches");
}

/* The number of slots that have the tree. */
static unsigned int
users_of(unsigned int one)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < REPL_SNAPSHOTS_MAX; i++)
		n += tree[i] == one;
	return n;
}

static void
put_in_place(int trees, unsigned int one)
{
	own_fd int place = open_folder(AT_FDCWD, PLACE);
	own_fd int out = -1, in = -1;

	if (placed > 0)
		out = open_numbered(trees, "", placed, true);
	in = open_numbered(trees, "", one, false);
	if (place < 0 || (placed > 0 && out < 0))
		return;
	if (out >= 0)
		take_all(place, take_over, out);
	if (in >= 0)
		take_all(in, take_over, place);
	placed = one;
	workspace_written();
}

void
trees_place(unsigned int slot)
{
	own_fd int trees = -1;

	if (tree[slot] == 0 || tree[slot] == placed)
		return;
	trees = open_trees();
	if (trees >= 0)
		put_in_place(trees, tree[slot]);
}

void
trees_copied(unsigned int from, unsigned int to)
{
	char new_name[32], name[32];
	own_fd int trees = open_trees();
	unsigned int one = 1;

	tree[to] = tree[from];
	if (trees < 0)
		return;
	while (one == placed || users_of(one) > 0)
		one++;
	snprintf(new_name, sizeof(new_name), "new-%u", to);
	snprintf(name, sizeof(name), "%u", one);
	if (renameat2(trees, new_name, trees, name, RENAME_NOREPLACE) == 0)
		tree[to] = one;
}

/* The last tree needs no directory beside /workspace. */
static void
leave_one(int trees)
{
	unsigned int last = 0;

	for (unsigned int i = 0; i < REPL_SNAPSHOTS_MAX; i++)
		if (tree[i] > 0 && last > 0 && tree[i] != last)
			return;
		else if (tree[i] > 0)
			last = tree[i];
	if (last > 0 && last != placed)
		put_in_place(trees, last);
	take_away_numbered(trees, "", last);
	rmdir(HOME "/.branches");
}

static void
drop_copies(unsigned int slot)
{
	own_fd int home = open(HOME, FOLDER);
	own_fd int kept = home < 0 ? -1 : open_folder(home, ".checkpoints");

	if (kept < 0)
		return;
	take_away_numbered(kept, "", slot);
	take_away_numbered(kept, "making-", slot);
}

void
trees_drop(unsigned int slot)
{
	unsigned int one = tree[slot];
	own_fd int trees = open_trees();

	tree[slot] = 0;
	drop_copies(slot);
	if (trees < 0)
		return;
	take_away_numbered(trees, "making-", slot);
	take_away_numbered(trees, "new-", slot);
	if (one > 0 && users_of(one) == 0) {
		if (one == placed) {
			own_fd int place = open_folder(AT_FDCWD, PLACE);

			if (place >= 0)
				take_all(place, take_away, -1);
			placed = 0;
		}
		take_away_numbered(trees, "", one);
	}
	leave_one(trees);
}

/* ---- in the process of a copy ---- */

static bool working_directory_moved;

/* What of a path is below /workspace, by either of its names; NULL: nothing. */
static const char *
below_place(const char *path)
{
	const char *at = strncmp(path, "/run/", 5) == 0 ? path + 4 : path;

	return strncmp(at, WORKSPACE "/", sizeof(WORKSPACE)) == 0 ? at + sizeof(WORKSPACE) : NULL;
}

/* Opens what the descriptor fd refers to again, in the tree at "to". */
static void
follow(int fd, const char *to)
{
	char link[32], path[PATH_MAX], there[PATH_MAX + 64];
	int flags = fcntl(fd, F_GETFL), closes = fcntl(fd, F_GETFD);
	struct stat st, other;
	const char *below;
	own_fd int one = -1;
	ssize_t n;

	if (flags < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0 ||
	    !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return;
	path[n] = '\0';
	below = below_place(path);
	if (!below)
		return;
	snprintf(there, sizeof(there), "%s/%s", to, below);
	one = open(there, (flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_NOFOLLOW | O_CLOEXEC);
	if (one < 0 || fstat(one, &other) < 0 || (other.st_mode ^ st.st_mode) & S_IFMT)
		return;
	lseek(one, lseek(fd, 0, SEEK_CUR), SEEK_SET);
	dup3(one, fd, closes & FD_CLOEXEC ? O_CLOEXEC : 0);
}

bool
trees_follow(unsigned int slot)
{
	char to[sizeof(TREES_NEW) + 16], path[PATH_MAX], there[PATH_MAX + 64];
	struct stat st;
	const char *below;

	snprintf(to, sizeof(to), TREES_NEW, slot);
	if (lstat(to, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
		follow(fd, to);
	below = getcwd(path, sizeof(path)) ? below_place(path) : NULL;
	if (!below)
		return true;
	snprintf(there, sizeof(there), "%s/%s", to, below);
	working_directory_moved = chdir(there) == 0;
	return true;
}

void
trees_settle(void)
{
	char path[PATH_MAX];

	if (working_directory_moved && getcwd(path, sizeof(path)) && below_place(path) &&
	    chdir(path + strlen("/run")) == 0)
		working_directory_moved = false;
}
