/* mcp-python-worker: runs Python scripts that are not trusted.
 *
 * The program is three kinds of process:
 *
 *   zygote   The supervisor starts it in the service's own user namespace, with one socket on
 *            descriptor 3. CONFIGURE describes the jail of its profile, once. The zygote builds
 *            that file tree, makes it its root, starts Python inside, imports the profile's
 *            modules and compiles the syscall filter. From then on it clones a worker for each
 *            SPAWN and does nothing else. It reads from the supervisor alone and never runs a
 *            line that a client wrote.
 *
 *   init     The first process of a worker, cloned into seven new namespaces and its cgroup. It
 *            builds the walls in order (worker/jail.c), forks the script's process, reaps, and
 *            reports how that process ended if the process did not report it itself.
 *
 *   script   Proves the walls from inside, sends READY, waits for RUN, runs the script to its very
 *            end and sends DONE. Its messages after RUN are not trusted.
 *
 * A worker runs one script, or the cells of one session, and is never used again. It is a child of
 * the supervisor, which holds its pidfd and learns its end from the kernel.
 *
 * The program executes itself again from a sealed copy in memory, with its own environment. So a
 * script that inspects its process finds nothing of the host's environment, and the file behind
 * /proc/self/exe cannot be written.
 */
#include <errno.h>
#include <fcntl.h>
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
#include "proto/message.h"
#include "worker/zygote.h"

#define PROGRAM "mcp-python-worker"
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

/* The variables in the script's os.environ. One makes the dynamic linker resolve all symbols of
 * libraries now, and not in each worker again. */
#define BIND_NOW "LD_BIND_NOW"
static char *const environment[] = {
	(char[]){ "PATH=/usr/local/bin:/usr/bin:/bin" },
	(char[]){ "HOME=/home/python" },
	(char[]){ "USER=python" },
	(char[]){ "LOGNAME=python" },
	(char[]){ "LANG=C.UTF-8" },
	(char[]){ BIND_NOW "=1" },
	NULL,
};

static bool
is_sealed(void)
{
	static const char name[] = "/memfd:" PROGRAM;
	char exe[sizeof(name)];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	return n == (ssize_t)sizeof(name) - 1 && memcmp(exe, name, (size_t)n) == 0;
}

/* Returns only on failure, -errno. */
static int
start_sealed(char **argv)
{
	own_fd int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	own_fd int to =
		memfd_create(PROGRAM, MFD_CLOEXEC | MFD_ALLOW_SEALING | MEMFD_EXEC);
	struct stat st;

	if (to < 0 && errno == EINVAL)
		to = memfd_create(PROGRAM, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (from < 0 || to < 0 || fstat(from, &st) < 0)
		return -errno;
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(to, from, NULL, (size_t)left);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		left -= n;
	}
	/* F_SEAL_WRITE would add nothing, and fails while the kernel moves pages of the file. */
	if (fchmod(to, 0555) < 0 ||
	    fcntl(to, F_ADD_SEALS,
		  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) < 0)
		return -errno;
	syscall(SYS_execveat, to, "", argv, environment, AT_EMPTY_PATH);
	return -errno;
}

/* Programs that scripts start resolve their symbols by their own settings. /proc/self/environ
 * shows the memory where a variable was, so its bytes are erased. */
static void
forget_binding(void)
{
	char *value = getenv(BIND_NOW);

	if (!value)
		return;
	unsetenv(BIND_NOW);
	value -= sizeof(BIND_NOW);
	memset(value, 0, strlen(value));
}

static int
zygote(char **argv)
{
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
	if (is_sealed()) {
		forget_binding();
		return zygote_main();
	}
	/* Only the control socket and standard error survive the exec. */
	if (fcntl(ZYGOTE_CONTROL, F_SETFD, 0) < 0) {
		r = -errno;
	} else {
		r = start_sealed(argv);
	}
	zygote_fail("starting from memory", -r);
	return EXIT_FAILURE;
}

static const char help[] =
	"Usage: " PROGRAM " --zygote | --version | --help\n"
	"\n"
	"Runs Python scripts in jails on behalf of mcp-pythond, which starts it with\n"
	"--zygote and a socket on descriptor 3. It is of no use when started by hand: to run a\n"
	"script, use `mcp-python run FILE`.\n";

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--zygote") == 0)
		return zygote(argv);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts(PROGRAM " " PACKAGE_VERSION);
		return EXIT_SUCCESS;
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(help, stdout);
		return EXIT_SUCCESS;
	}
	fputs(help, stderr);
	return EXIT_FAILURE;
}
