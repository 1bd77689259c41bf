/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before it drops privilege.   Owns: the child that asks pip.
 * Reads:   the user's environment, and what pip says of its own configuration. */
#include "supervisor/laptop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/userdir.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "policy/keys.h"

#define ANSWER_MAX 8192
#define SERVICES_MAX 16		/* of one user, at the same time */
#define INDEX "index"
#define EXTRA "extra_indexes"
#define HOSTS "file_hosts"

/* Prints lines "KEY VALUE" of [packages]. pip has had these modules since its version 10; a pip
 * without them is reported as missing. */
static const char ask_pip[] =
	"try:\n"
	"    from pip._internal.configuration import Configuration\n"
	"    from pip._internal.models.index import PyPI\n"
	"except ImportError as e:\n"
	"    raise SystemExit('pip is needed for that (package python3-pip): %s' % e)\n"
	"settings = Configuration(isolated=False)\n"
	"settings.load()\n"
	"said = dict(settings.items())\n"
	"def of(name):\n"
	"    places = (':env:.', 'install.', 'global.')\n"
	"    return next((' '.join(said[at + name].split()) for at in places if said.get(at + name)), '')\n"
	"index = of('index-url')\n"
	"print('" INDEX "', index or PyPI.simple_url)\n"
	"print('" EXTRA "', of('extra-index-url'))\n"
	"print('" HOSTS "', '' if index else PyPI.file_storage_domain)\n";

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
	ssize_t n;
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
	answer[len] = '\0';
	close(pair[0]);
	if (r == 0)
		r = waitpid(pid, &status, 0) < 0 ? -errno : status;
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
		if (line && (strcmp(name, INDEX) == 0 || strcmp(name, EXTRA) == 0 ||
			     strcmp(name, HOSTS) == 0))
			r = laptop_set(config, "packages", name, line, "pip's configuration", errors);
	}
	return r;
}

/* ---- what is kept ---- */

/* The directory for what is kept. Root's is one that the uids of workers may enter. Malloc'd; NULL:
 * the user has no home. */
static char *
cache_directory(void)
{
	const char *cache = getenv("XDG_CACHE_HOME");

	if (geteuid() == 0 && !(cache && *cache == '/'))
		return xstrdup("/var/cache/mcp-pythond");
	return userdir("XDG_CACHE_HOME", ".cache", "mcp-pythond");
}

/* Makes the directory and locks it until this process ends. -EWOULDBLOCK: another service has it.
 */
static int
lock_directory(char *directory)
{
	own_mem char *path = NULL;
	own_fd int fd = -1;
	int r = userdir_make(directory, geteuid() == 0 ? 0755 : 0700);

	if (r < 0)
		return r;
	path = xasprintf("%s/lock", directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	/* Where files cannot be locked, the keeper still locks its store. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return -EWOULDBLOCK;
	(void)give_fd(fd);
	return 0;
}

/* Takes the first of TOP, TOP/2, TOP/3 ... that no other service of the user has locked. A user has
 * several services if several clients start one with --stdio. A reload keeps the directory. */
static int
take_directory(const char *top, const char **directory_r)
{
	static char *taken;
	int r = taken ? 0 : -EWOULDBLOCK;

	for (unsigned int i = 1; r == -EWOULDBLOCK && i <= SERVICES_MAX; i++) {
		own_mem char *directory = i == 1 ? xstrdup(top) : xasprintf("%s/%u", top, i);

		r = lock_directory(directory);
		if (r == 0)
			taken = give_ptr(directory);
	}
	*directory_r = taken;
	return r;
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

/* Sets the places of the packages, of the user's decisions about them, and of the files that
 * scripts leave. */
static int
set_places(struct config *config, FILE *errors)
{
	own_mem char *top = cache_directory();
	const char *directory;
	int r;

	if (!top) {
		fputs("--packages: neither HOME nor XDG_CACHE_HOME says where packages can be kept; "
		      "name a directory: [packages] store\n", errors);
		return -EINVAL;
	}
	r = take_directory(top, &directory);
	if (r < 0) {
		fprintf(errors, "--packages: the directory %s: %s\n", top,
			r == -EWOULDBLOCK ? "too many services use it already" : strerror(-r));
		return -EINVAL;
	}
	r = set_place(config, "packages", "store", directory, "packages", errors);
	if (r == 0)
		r = set_place(config, "admin", "approvals", directory, "approvals.jsonl", errors);
	if (r == 0)
		r = set_place(config, "files", "directory", directory, "files", errors);
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
