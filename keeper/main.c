/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python-keeper: keeps the installed packages of mcp-pythond.
 *
 * The supervisor starts it, with a socket on descriptor 3, as root of the outer namespace. Only the
 * keeper uses the store of sets of packages (keeper.c). It has children for work that takes long or
 * reads hostile data. None of them has a capability:
 *
 *   keeper ── taker     makes one set (take.c): compares wheels with the approved hashes, writes
 *     │         │       their files (intake.c), has sources compiled by a worker (compile.c), and
 *     │         │       gives the set its name when it is on the disk
 *     │         └─ reader   of one wheel (unpack.c, wheel.c): can read it and write to a pipe
 *     ├─ a child that removes a set
 *     └─ servers of volumes (volumes.c), each in a root that is the volume's directory (volume.c)
 *
 * No process that has talked to a network decides what is in a set: data from a network is not
 * parsed until its hash is known to be right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/xalloc.h"
#include "keeper/keeper.h"

#define PROGRAM "mcp-python-keeper"

#ifdef WITH_SANITIZERS
const char *__asan_default_options(void);

/* The leak checker traces its own process, which no filter allows. */
const char *
__asan_default_options(void)
{
	return "detect_leaks=0:abort_on_error=1:handle_segv=0";
}
#endif

static const char help[] =
	"Usage: " PROGRAM " [--version | --help]\n"
	"\n"
	"Keeps the packages that were installed for scripts, on behalf of mcp-pythond, which starts\n"
	"it with a socket on descriptor 3. It is of no use when started by hand.\n";

int
main(int argc, char **argv)
{
	struct stat st;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts(PROGRAM " " PACKAGE_VERSION);
		return EXIT_SUCCESS;
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(help, stdout);
		return EXIT_SUCCESS;
	}
	if (argc == 1 && fstat(KEEPER_CONTROL, &st) == 0 && S_ISSOCK(st.st_mode)) {
		xalloc_for_openssl();
		return keeper_main();
	}
	fputs(help, stderr);
	return EXIT_FAILURE;
}
