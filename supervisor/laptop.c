/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before it drops privilege.   Owns: the child that asks pip, and the lock
 * of the directory for what is kept.
 * Reads:   the user's environment, and what pip says of its own configuration. */
#include "supervisor/laptop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "base/remove.h"
#include "base/userdir.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "policy/keys.h"
#include "supervisor/ask_pip.h"

#define ANSWER_MAX 8192
#define SERVICES_MAX 64		/* of one user, at the same time */
#define FILES "files"		/* the directory of kept files */
#define FILES_DEPTH 4		/* of what is in it */

static _Noreturn void
become_pip(int answer)
{
	if (dup2(answer, STDOUT_FILENO) >= 0 && dup2(answer, STDERR_FILENO) >= 0)
		execl(PYTHON_PROGRAM, PYTHON_PROGRAM, "-I", "-c", ask_pip, NULL);
	dprintf(answer, "%s: %s\n", PYTHON_PROGRAM, strerror(errno));
	_exit(EXIT_FAILURE);
}

/* Finds out what pip prints, or why it fails. It is asked once: a service that reloads can start no
 * process any more. 0, an exit status, or -errno. */
static int
laptop_ask(const char **answer_r)
{
	static char answer[ANSWER_MAX];
	static int failed;
	size_t len = strlen(answer);
	int pair[2], status, r = 0;
	ssize_t n = 0;
	pid_t pid;

	*answer_r = answer;
	if (len > 0 || failed)
		return failed;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become_pip(pair[1]);
	r = pid < 0 ? -errno : 0;
	close(pair[1]);
	while (pid > 0 && (n = read(pair[0], answer + len, ANSWER_MAX - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		r = -errno;
	answer[len] = '\0';
	close(pair[0]);
	if (pid > 0 && waitpid(pid, &status, 0) < 0 && r == 0)
		r = -errno;
	else if (r == 0)
		r = status;
	failed = r;
	return r;
}

/* ---- setting ---- */

static bool
is_said(const struct config *config, const char *section, const char *name)
{
	char place[PATH_MAX + 32];

	config_place(config, section, name, place, sizeof(place));
	return place[0] != '[';
}

/* from: where the value is from, for errors. */
static int
laptop_set(struct config *config, const char *section, const char *name, const char *value,
	   const char *from, FILE *errors)
{
	struct why why;

	if (key_set(key_at((size_t)key_find(section, name)), config, value, false, &why) == 0)
		return 0;
	fprintf(errors, "%s: %s\n", from, why.text);
	return -EINVAL;
}

static int
set_from_pip(struct config *config, FILE *errors)
{
	const char *answer;
	int status = laptop_ask(&answer), r = 0;
	own_mem char *text = xstrdup(answer);
	char *rest = text, *line;

	if (status != 0) {
		line = strsep(&rest, "\n");
		fprintf(errors, "--packages: %s\n", status < 0 ? strerror(-status)
						   : *line ? line : "pip does not say its index");
		return -EINVAL;
	}
	while (r == 0 && (line = strsep(&rest, "\n"))) {
		const char *name = strsep(&line, " ");

		/* Anything else is a warning. */
		if (line && (strcmp(name, "index") == 0 || strcmp(name, "extra_indexes") == 0 ||
			     strcmp(name, "file_hosts") == 0))
			r = laptop_set(config, "packages", name, line, "pip's configuration", errors);
	}
	return r;
}

/* ---- what is kept ---- */

/* A directory of the user's for this service. Root's is one that the uids of workers may enter.
 * Malloc'd; NULL: the user has no home. */
static char *
own_directory(const char *variable, const char *usual, const char *name)
{
	const char *named = getenv(variable);

	if (geteuid() == 0 && !(named && *named == '/'))
		return xasprintf("/var/cache/%s", name);
	return userdir(variable, usual, name);
}

/* Makes the directory and opens it. -EPERM: it is not this user's own, or others may write to it;
 * -ENOTDIR: it is a symbolic link. */
static int
open_directory(char *path)
{
	own_fd int fd = -1;
	struct stat st;
	int r = userdir_make(path, geteuid() == 0 ? 0755 : 0700);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) ? -EPERM : give_fd(fd);
}

/* Locks a directory until the descriptor *lock_r is closed. alone: fail where files cannot be
 * locked; otherwise the lock of the store that will be in the directory has to do. -EWOULDBLOCK:
 * another service has it. */
static int
lock_directory(int directory, bool alone, int *lock_r)
{
	own_fd int fd = openat(directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && (alone || errno == EWOULDBLOCK))
		return -errno;
	*lock_r = give_fd(fd);
	return 0;
}

/* Locks the directory NUMBER of top: TOP, TOP/2, TOP/3 ... make: also if it does not exist yet.
 * passing: what is in it ends with its service, so what another one has left there is removed. The
 * descriptor of the lock, or -errno. */
static int
lock_number(const char *top, unsigned int number, bool make, bool passing, char **path_r)
{
	own_mem char *path = number == 1 ? xstrdup(top) : xasprintf("%s/%u", top, number);
	own_fd int directory = -1, lock = -1;
	int r = 0;

	if (!make && access(path, F_OK) < 0)
		return -errno;
	directory = open_directory(path);
	if (directory < 0)
		return directory;
	r = lock_directory(directory, passing, &lock);
	if (r == 0 && passing)
		r = remove_tree(directory, FILES, FILES_DEPTH);
	if (r < 0)
		return r;
	*path_r = give_ptr(path);
	return give_fd(lock);
}

/* Takes the first of TOP, TOP/2, TOP/3 ... that no other service of the user has locked, until this
 * process ends. A user has several services if several clients start one with --stdio. A reload
 * keeps the directory. passing: as in lock_number, for those behind the first one, too. */
static int
take_directory(const char *top, bool passing, const char **directory_r)
{
	static char *taken;
	static int lock = -EWOULDBLOCK;
	unsigned int i = 1;

	*directory_r = taken;
	if (taken)
		return 0;
	do
		lock = lock_number(top, i++, true, passing, &taken);
	while (lock == -EWOULDBLOCK && i <= SERVICES_MAX);
	for (; lock >= 0 && passing && i <= SERVICES_MAX; i++) {
		own_mem char *other = NULL;
		own_fd int left = lock_number(top, i, false, true, &other);

		if (left == -ENOENT)
			break;
	}
	*directory_r = taken;
	return lock < 0 ? lock : 0;
}

/* name: of a file or directory that its owner makes. */
static int
set_place(struct config *config, const char *section, const char *key, const char *directory,
	  const char *name, FILE *errors)
{
	own_mem char *path = NULL;

	if (is_said(config, section, key))
		return 0;
	path = xasprintf("%s/%s", directory, name);
	return laptop_set(config, section, key, path, "--packages", errors);
}

/* Sets the places of the packages, of the user's decisions about them, of what is learned, and of
 * the files that scripts leave. */
static int
set_places(struct config *config, FILE *errors)
{
	own_mem char *top = own_directory("XDG_CACHE_HOME", ".cache", "mcp-pythond");
	const char *directory;
	int r;

	if (!top) {
		fputs("--packages: neither HOME nor XDG_CACHE_HOME says where packages can be kept; "
		      "name a directory: [packages] store\n", errors);
		return -EINVAL;
	}
	r = take_directory(top, false, &directory);
	if (r < 0) {
		fprintf(errors, "--packages: the directory %s: %s\n", top,
			r == -EWOULDBLOCK ? "too many services use it already" : strerror(-r));
		return -EINVAL;
	}
	r = set_place(config, "packages", "store", directory, "packages", errors);
	if (r == 0)
		r = set_place(config, "admin", "approvals", directory, "approvals.jsonl", errors);
	if (r == 0)
		r = set_place(config, "pool", "learned_file", directory, "learned", errors);
	if (r == 0)
		r = set_place(config, "files", "directory", directory, FILES, errors);
	return r;
}

int
laptop_packages(struct config *config, const char *index, FILE *errors)
{
	int r = 0;

	if (*index)
		r = laptop_set(config, "packages", "index", index, "--packages", errors);
	else if (!config->packages.index)
		r = set_from_pip(config, errors);
	if (r == 0)
		r = set_places(config, errors);
	if (r == 0 && !is_said(config, "policy", "approvers"))
		r = laptop_set(config, "policy", "approvers", "self", "--packages", errors);
	return r;
}

void
laptop_files(struct config *config, FILE *errors)
{
	/* The second one, if there is no home or it cannot be written to. */
	static const char *const variables[] = { "XDG_STATE_HOME", "XDG_RUNTIME_DIR" };
	const char *directory = NULL;
	int r = -ENOENT;

	if (is_said(config, "files", "directory") || config->files.file_bytes == 0)
		return;
	for (size_t i = 0; r < 0 && i < sizeof(variables) / sizeof(variables[0]); i++) {
		own_mem char *top = own_directory(variables[i], ".local/state",
						  "mcp-pythond-private");

		r = top ? take_directory(top, true, &directory) : -ENOENT;
	}
	if (r < 0)
		log_line(LOG_WARNING, "files-none", "err=%s text=\"no directory for large files\"",
			 strerrorname_np(-r));
	else
		config->files.passing = set_place(config, "files", "directory", directory, FILES,
						  errors) == 0;
}

/* ---- the user's folder ---- */

/* Is it on a file system whose files are not data, such as /proc? */
static bool
is_of_kernel(const char *path)
{
	static const unsigned long kinds[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
		DEVPTS_SUPER_MAGIC,
	};
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((unsigned long)fs.f_type == kinds[i])
			return true;
	return false;
}

/* Why the directory cannot be shown; NULL: it can. */
static const char *
folder_is_wrong(const char *path)
{
	struct stat st;

	if (!path || stat(path, &st) < 0)
		return strerror(errno);
	if (!S_ISDIR(st.st_mode))
		return "it is no directory";
	if (strcmp(path, "/") == 0)
		return "name a directory of yours, not the whole machine";
	return is_of_kernel(path) ? "its files belong to the kernel" : NULL;
}

int
laptop_folder(struct config *config, const char *folder, FILE *errors)
{
	static char *path;		/* found once: later this process may look for no files */
	const char *end = strrchr(folder, ':'), *wrong;
	bool has_word = end && (strcmp(end, ":rw") == 0 || strcmp(end, ":ro") == 0);
	own_mem char *named = xasprintf("%.*s", (int)(has_word ? (size_t)(end - folder)
							       : strlen(folder)), folder);

	if (!path) {
		path = realpath(named, NULL);
		wrong = folder_is_wrong(path);
		if (wrong) {
			fprintf(errors, "--folder: %s: %s\n", named, wrong);
			return -EINVAL;
		}
	}
	config->folder.path = path;
	config->folder.is_writable = has_word && strcmp(end, ":rw") == 0;
	return 0;
}
