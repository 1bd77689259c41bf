/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of mcp-pythond.
 */
#ifndef SUPERVISOR_ARGUMENTS_H
#define SUPERVISOR_ARGUMENTS_H

#include <stdbool.h>
#include <sysexits.h>

#include "base/trace.h"
#include "supervisor/endpoints.h"

enum exit_code {
	EXIT_FINE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_AGAIN = EX_TEMPFAIL,	/* a failure; the next service takes the sessions */
	EXIT_CONFIGURATION = EX_CONFIG,
};

enum action { SERVE, CHECK_CONFIG, DUMP_CONFIG, SHOW_POLICY, SWEEP };

/* The arguments. Strings are borrowed from argv. */
struct arguments {
	enum action action;
	struct endpoints_asked endpoints;
	const char *config;		/* NULL: not given */
	const char *who;		/* with SHOW_POLICY */
	const char *packages;		/* a URL; "": --packages without one; NULL: no --packages */
	const char *folder;		/* DIR or DIR:rw; NULL: not given */
	bool roots;			/* with stdio: files below the client's roots count */
	const char *toolsets;		/* in the place of [mcp] toolsets; NULL: not given */
	bool stdio;
	bool private;			/* with stdio: only for the user at a terminal who has
					 * started it */
	bool verbose;
	enum trace trace;
};

/* Reads the arguments. Exits after --help and --version, and if the arguments are wrong. */
void arguments_read(int argc, char **argv, struct arguments *arguments_r);

#endif
