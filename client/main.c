/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python: the command that people type and that MCP clients start.
 *
 *   connect                    bridge.c copies standard input and output to and from the
 *                              service's socket, without parsing them
 *   run                        run.c: script.c reads a file, call.c sends it as one tools/call
 *                              and reads lines, reply.c parses them, verdict.c makes an exit code
 *   repl                       repl.c: repl_input.c reads lines, cell.c finds the end of a cell,
 *                              call.c sends it as a tools/call of run_repl
 *                              run and repl both show prompts at the terminal: prompt.c
 *   get                        get.c reads a kept file, by parts: resource.c
 *   put                        put.c writes a file into the pipe that the service passes it
 *   approvals, approve, deny   operator.c, by the operators' socket
 *   ps, stop, suspend, resume, status, metrics, top
 *                              ps.c, status.c, top.c, by the same socket; table.c prints
 *   packages                   packages.c, by the same socket: sets of packages in the store
 *   tools                      tools_command.c, by the same socket: tools of other servers
 *   gateway, interpreter, kernel
 *                              interpreter.c starts mcp-python-gateway and the like: scripts
 *   check-host                 check_host.c tests what the service would need; probe.c has the
 *                              trials
 *   audit                      audit.c checks the audit log, audit_show.c prints it, without
 *                              the service
 *   token                      token.c keeps the file of bearer tokens, without the service
 *
 * It is an ordinary program of an ordinary user, without privilege. Apart from files that a command
 * is asked to write, it writes only the history of typed lines and, in repl, pictures that the
 * terminal cannot show. The service learns from the kernel who the caller is. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "client/bridge.h"
#include "client/endpoint.h"
#include "client/exits.h"
#include "client/get.h"
#include "client/operator.h"
#include "client/options.h"
#include "client/put.h"
#include "client/repl.h"
#include "client/run.h"
#include "client/say.h"
#include "client/show.h"
#include "client/token.h"

static int
connect_command(const struct options *options)
{
	const char *what = NULL;
	int fd, r;

	fd = endpoint_connect(options->socket);
	if (fd < 0)
		return EX_UNAVAILABLE;
	r = bridge(STDIN_FILENO, STDOUT_FILENO, fd, &what);
	close(fd);
	if (r < 0) {
		say("%s: %s", what, strerror(-r));
		return EX_IOERR;
	}
	return 0;
}

/* Otherwise a socket could become standard output. */
static int
open_standard_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

int
main(int argc, char **argv)
{
	struct options options;
	operator_run *command;
	struct why why;

	if (open_standard_streams() < 0) {
		say("/dev/null: %s", strerror(errno));
		return EX_OSERR;
	}
	json_set_alloc_funcs(xmalloc, free);
	xalloc_for_openssl();
	/* A client that starts this program may ignore SIGTERM, and the program inherits that. */
	signal(SIGTERM, SIG_DFL);
	command = argc > 1 ? operator_command(argv[1]) : NULL;
	if (command) {
		signal(SIGPIPE, SIG_IGN);
		return show_conclude(command(argc - 1, argv + 1));
	}
	if (options_parse(argc, (const char *const *)argv, &options, &why) < 0) {
		say("%s", why.text);
		return EX_USAGE;
	}
	switch (options.command) {
	case COMMAND_CONNECT:
		signal(SIGPIPE, SIG_IGN);
		return connect_command(&options);
	case COMMAND_RUN:
		return show_conclude(run_command(&options));
	case COMMAND_REPL:
		return show_conclude(repl_command(&options));
	case COMMAND_GET:
		return get_command(&options);
	case COMMAND_PUT:
		return show_conclude(put_command(&options));
	case COMMAND_TOKEN:
		return show_conclude(token_command(&options));
	case COMMAND_VERSION:
		puts("mcp-python " PACKAGE_VERSION);
		break;
	case COMMAND_HELP:
		fputs(options_help(options.help_about), stdout);
		break;
	}
	return show_conclude(0);
}
