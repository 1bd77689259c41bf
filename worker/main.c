/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python-worker: runs Python scripts that are not trusted.
 *
 * The program is three kinds of process:
 *
 *   zygote   The supervisor starts it in the service's own user namespace, with one socket on
 *            descriptor 3. CONFIGURE describes the jail of its profile, once. The zygote builds
 *            that file tree, makes it its root, starts Python inside, imports the profile's
 *            modules and compiles the syscall filter. From then on it clones a worker for each
 *            SPAWN, keeps networks for them, and does nothing else. It reads from the supervisor
 *            alone and never runs a line that a client wrote.
 *
 *   init     The first process of a worker, cloned into six new namespaces, a network in which
 *            nothing is left (worker/networks.h), and its cgroup. It builds the walls in order
 *            (worker/jail.c), forks the script's process, reaps, and reports how that process
 *            ended if the process did not report it itself.
 *
 *   script   Proves the walls from inside, sends READY, waits for RUN, runs the script to its very
 *            end and sends DONE. Its messages after RUN are not trusted.
 *
 * A worker runs one script, or the cells of one session, and is never used again. It is a child of
 * the supervisor, which holds its pidfd and learns its end from the kernel.
 *
 * The program executes a sealed copy of python3 in memory (worker/program.h), with an environment
 * of its own. So a script that inspects its process finds nothing of the host's environment, and
 * the file behind /proc/self/exe cannot be written.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "worker/hello.h"
#include "worker/program.h"
#include "worker/python.h"
#include "worker/root.h"
#ifndef WITH_PYTHON_PROGRAM
#include "worker/title.h"
#endif
#include "worker/zygote.h"

#define MEMFD_EXEC 0x0010U	/* since Linux 6.3; older kernels imply it */

#ifdef WITH_SANITIZERS
const char *__asan_default_options(void);

/* The leak checker traces its own process, which no jail allows. Freed memory that the sanitizer
 * keeps counts against a script's limit: 32 MiB of it instead of 256. */
const char *
__asan_default_options(void)
{
	return "detect_leaks=0:abort_on_error=1:handle_segv=0:allocator_may_return_null=1:"
	       "quarantine_size_mb=32";
}
#endif

static char preload[64] = PRELOAD "=";
static char libraries[PATH_MAX + sizeof(LIBRARIES "=/lib")];

/* The variables in the script's os.environ, and those for the dynamic linker. */
static char *environment[] = {
	(char[]){ "PATH=/usr/local/bin:/usr/bin:/bin" },
	(char[]){ "HOME=/home/python" },
	(char[]){ "USER=python" },
	(char[]){ "LOGNAME=python" },
	(char[]){ "LANG=C.UTF-8" },
	(char[]){ "COLUMNS=160" },		/* tables are read, not shown on a terminal */
	(char[]){ "PYTHONDONTWRITEBYTECODE=1" },
	(char[]){ BIND_NOW "=1" },
	preload,
	NULL,				/* LIBRARIES, for a Python with a tree of its own */
	NULL,
};

/* A file in memory, which is closed by an exec. */
static int
memory_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MEMFD_EXEC);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

static int
worker_seal(int fd)
{
	/* F_SEAL_WRITE would add nothing, and fails while the kernel moves pages of the file. */
	return fchmod(fd, 0555) < 0 ||
	       fcntl(fd, F_ADD_SEALS,
		     F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) < 0
	       ? -errno : 0;
}

/* A Python with a directory of its own finds its libraries there. */
static void
offer_tree(void)
{
	const char *tree = python_chosen()->tree;

	if (!*tree)
		return;
	snprintf(libraries, sizeof(libraries), LIBRARIES "=%s/lib", tree);
	environment[sizeof(environment) / sizeof(environment[0]) - 2] = libraries;
}

#ifdef WITH_PYTHON_PROGRAM
/* The bytes of the worker's library, which the build has made before this program. Both labels are
 * local: not hidden, they may share one slot of the table of global offsets (AArch64, ld 2.40). */
extern const char library_start[] __attribute__((visibility("hidden")));
extern const char library_end[] __attribute__((visibility("hidden")));
__asm__(".pushsection .rodata\n"
	"library_start: .incbin \"" WORKER_LIBRARY "\"\n"
	"library_end: .byte 0\n"
	".popsection");

/* Leaves the library open over the exec. */
static int
offer_library(void)
{
	int fd = memory_file(PROGRAM "-library"), r;

	if (fd < 0)
		return fd;
	for (const char *at = library_start; at < library_end;) {
		ssize_t n = write(fd, at, (size_t)(library_end - at));

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
	}
	/* The file knows: the compiler assumes that two labels are different places. */
	r = lseek(fd, 0, SEEK_CUR) > 0 ? worker_seal(fd) : -ENOEXEC;
	if (r == 0 && fcntl(fd, F_SETFD, 0) < 0)
		r = -errno;
	/* The linker keeps this name. It is not the usual one, under which a script may load a
	 * file of its own. */
	snprintf(preload, sizeof(preload), PRELOAD "=/proc/self/./fd/%d", fd);
	return r;
}
#else
static int
offer_library(void)
{
	return 0;
}
#endif

/* Returns only on failure, -errno. */
static int
start_sealed(void)
{
	const struct python *python = python_chosen();
	const char *const argv[] = { PROGRAM, python->in_root ? PROGRAM_IN_ROOT : PROGRAM_ZYGOTE,
				     python->program, NULL };
#ifdef WITH_PYTHON_PROGRAM
	own_fd int from = open(python->program, O_RDONLY | O_CLOEXEC);
#else
	own_fd int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
#endif
	own_fd int to = memory_file(PROGRAM);
	struct stat st;
	int r;

	if (to < 0)
		return to;
	if (from < 0 || fstat(from, &st) < 0)
		return -errno;
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(to, from, NULL, (size_t)left);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		left -= n;
	}
	r = worker_seal(to);
	if (r == 0)
		r = offer_library();
	if (r < 0)
		return r;
	offer_tree();
	syscall(SYS_execveat, to, "", argv, environment, AT_EMPTY_PATH);
	return -errno;
}

/* root: the directory that becomes "/" for the zygote and its workers; NULL: the host's. program: of
 * the Python; NULL: that of the build. */
static int
worker_run_zygote(const char *root, const char *program)
{
	static char starting[PATH_MAX + 32];
	const char *what = "starting";
	struct stat st;
	int r;

	if (fstat(ZYGOTE_CONTROL, &st) < 0 || !S_ISSOCK(st.st_mode)) {
		fprintf(stderr,
			PROGRAM
			": --zygote is started by mcp-pythond, with a socket on "
			"descriptor %d\n",
			ZYGOTE_CONTROL);
		return EXIT_FAILURE;
	}
	/* Only the control socket and standard error survive the exec. */
	r = fcntl(ZYGOTE_CONTROL, F_SETFD, 0) < 0 ? -errno : 0;
	if (r == 0 && root)
		r = root_enter(root, &what);
	if (r == 0)
		r = python_choose(program, root != NULL, &what);
	if (r == 0) {
		snprintf(starting, sizeof(starting), "starting %s from memory",
			 python_chosen()->program);
		what = starting;
		r = start_sealed();
	}
	hello_fail(what, -r);
	return EXIT_FAILURE;
}

static const char help[] =
	"Usage: " PROGRAM " --zygote [--root DIR] [--program PYTHON]\n"
	"       " PROGRAM " --python | --version | --help\n"
	"\n"
	"Runs Python scripts in jails on behalf of mcp-pythond, which starts it with\n"
	"--zygote and a socket on descriptor 3. It is of no use when started by hand: to run a\n"
	"script, use `mcp-python run FILE`.\n"
	"\n"
	"  --zygote             serve mcp-pythond\n"
	"  --root DIR           the Python's own root, which its jails have as \"/\"\n"
	"  --program PYTHON     another CPython " PYTHON_VERSION ", by its path (in that root);\n"
	"                       otherwise " PYTHON_PROGRAM "\n"
	"  --python             print the version and the path of the usual Python\n";

/* The options after --zygote. */
static int
zygote_with(char **argv)
{
	const char *root = NULL, *program = NULL;

	for (; argv[0] && argv[1]; argv += 2) {
		if (!root && strcmp(argv[0], "--root") == 0)
			root = argv[1];
		else if (!program && strcmp(argv[0], "--program") == 0)
			program = argv[1];
		else
			break;
	}
	if (!*argv)
		return worker_run_zygote(root, program);
	fputs(help, stderr);
	return EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
#ifndef WITH_PYTHON_PROGRAM
	if (program_is_sealed()) {
		title_keep(argv);
		return program_run(argc, argv);
	}
#endif
	if (argc >= 2 && strcmp(argv[1], PROGRAM_ZYGOTE) == 0)
		return zygote_with(&argv[2]);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts(PROGRAM " " PACKAGE_VERSION);
		return EXIT_SUCCESS;
	}
	if (argc == 2 && strcmp(argv[1], "--python") == 0) {
		puts(PYTHON_VERSION ", " PYTHON_PROGRAM);
		return EXIT_SUCCESS;
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(help, stdout);
		return EXIT_SUCCESS;
	}
	fputs(help, stderr);
	return EXIT_FAILURE;
}
