/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-pythond, before anything else.   Owns: nothing; all strings are argv's. */
#include "supervisor/arguments.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/auth.h"
#include "supervisor/configuration.h"

static const struct option options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "http", required_argument, NULL, 't' },
	{ "http-socket", required_argument, NULL, 'u' },
	{ "config", required_argument, NULL, 'c' },
	{ "stdio", no_argument, NULL, 'i' },
	{ "private", no_argument, NULL, 'o' },
	{ "packages", optional_argument, NULL, 'a' },
	{ "folder", required_argument, NULL, 'f' },
	{ "roots", no_argument, NULL, 'R' },
	{ "toolsets", required_argument, NULL, 'l' },
	{ "verbose", no_argument, NULL, 'b' },
	{ "trace", optional_argument, NULL, 'r' },
	{ "check-config", no_argument, NULL, 'k' },
	{ "dump-config", no_argument, NULL, 'd' },
	{ "show-policy", required_argument, NULL, 'p' },
	{ "sweep", no_argument, NULL, 'w' },
	{ "version", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void
arguments_print_help(FILE *to)
{
	fputs("Usage: mcp-pythond [OPTION]...\n"
	      "Serve the Model Context Protocol and run Python scripts in jails.\n\n"
	      "  --socket PATH       listen on this unix socket\n"
	      "  --http ADDR:PORT    serve HTTP there too, at " HTTP_PATH "; port 0: any\n"
	      "  --http-socket PATH  serve HTTP on this unix socket too\n"
	      "  --config FILE       read this configuration instead of\n"
	      "                      " CONFIGURATION_INSTALLED "\n"
	      "  --stdio             serve one client on standard input and output\n"
	      "  --private           as --stdio, for mcp-python run and repl: input() asks, long\n"
	      "                      output is kept, and only errors are logged\n"
	      "  --packages[=URL]    with --stdio or --private: scripts may have packages from this\n"
	      "                      index, or from the one that pip uses here; you are asked first\n"
	      "  --folder DIR[:rw]   with --stdio or --private: scripts have this directory at\n"
	      "                      /folder, to read only or, with :rw, to write, with your rights\n"
	      "  --roots             with --stdio: scripts can have copies of files below the directories\n"
	      "                      that your client offers (roots), and new files can be written\n"
	      "                      there; you are asked for each\n"
	      "  --toolsets SETS     with --stdio or --private: offer these sets of tools, in the\n"
	      "                      place of [mcp] toolsets, such as python-sandbox\n"
	      "  --verbose           log why a limit is not the kernel's\n"
	      "  --trace[=execution] write frames, changes of state and decisions, without\n"
	      "                      contents; only those of executions\n"
	      "  --check-config      say what is wrong with the configuration and exit\n"
	      "  --dump-config       print the configuration in force and exit\n"
	      "  --show-policy WHO   print what is in force for a user, a uid or a principal\n"
	      "                      such as token:ci, and exit\n"
	      "  --sweep             end what a service that failed has left; for its unit\n"
	      "  --version           print the version and exit\n"
	      "  --help              print this and exit\n\n"
	      "Sockets that systemd hands over are used instead of --socket. Exit status:\n"
	      "0 ended as asked, 1 failure, 2 wrong arguments, 75 a helper was lost for\n"
	      "good and a restart mends it, 78 wrong configuration.\n",
	      to);
}

static const char *
arguments_conflict(const struct arguments *arguments, bool any_left)
{
	if (any_left)
		return "mcp-pythond takes options only.\n";
	if (arguments->stdio && arguments->endpoints.socket)
		return "--stdio and --socket exclude each other.\n";
	if (arguments->stdio && (arguments->endpoints.http || arguments->endpoints.http_socket))
		return "--stdio and HTTP exclude each other.\n";
	if (arguments->toolsets && !arguments->stdio)
		return "--toolsets needs --stdio: for other services, the configuration names "
		       "[mcp] toolsets.\n";
	if (arguments->folder && !arguments->stdio)
		return "--folder needs --stdio: a service of several users cannot read files with the "
		       "rights of each.\n";
	if (arguments->roots && !arguments->stdio)
		return "--roots needs --stdio: files are read as the user who starts the service.\n";
	if (arguments->packages && !arguments->stdio)
		return "--packages needs --stdio: for other services, the configuration names "
		       "[packages] index and store.\n";
	return NULL;
}

void
arguments_read(int argc, char **argv, struct arguments *arguments_r)
{
	const char *wrong;
	int option;

	*arguments_r = (struct arguments){ .action = SERVE };
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			arguments_r->endpoints.socket = optarg;
			break;
		case 't':
			arguments_r->endpoints.http = optarg;
			break;
		case 'u':
			arguments_r->endpoints.http_socket = optarg;
			break;
		case 'c':
			arguments_r->config = optarg;
			break;
		case 'i':
			arguments_r->stdio = true;
			break;
		case 'o':
			arguments_r->stdio = arguments_r->private = true;
			break;
		case 'a':
			arguments_r->packages = optarg ? optarg : "";
			break;
		case 'f':
			arguments_r->folder = optarg;
			break;
		case 'R':
			arguments_r->roots = true;
			break;
		case 'l':
			arguments_r->toolsets = optarg;
			break;
		case 'b':
			arguments_r->verbose = true;
			break;
		case 'r':
			if (optarg && strcmp(optarg, "execution") != 0) {
				fputs("--trace: its value can only be execution.\n", stderr);
				exit(EXIT_USAGE);
			}
			arguments_r->trace = optarg ? TRACE_EXECUTIONS : TRACE_ALL;
			break;
		case 'k':
			arguments_r->action = CHECK_CONFIG;
			break;
		case 'd':
			arguments_r->action = DUMP_CONFIG;
			break;
		case 'p':
			arguments_r->action = SHOW_POLICY;
			arguments_r->who = optarg;
			break;
		case 'w':
			arguments_r->action = SWEEP;
			break;
		case 'v':
			puts(PACKAGE_NAME " " PACKAGE_VERSION);
			exit(EXIT_FINE);
		case 'h':
			arguments_print_help(stdout);
			exit(EXIT_FINE);
		default:
			fputs("Try mcp-pythond --help.\n", stderr);
			exit(EXIT_USAGE);
		}
	}
	wrong = arguments_conflict(arguments_r, optind < argc);
	if (wrong) {
		fputs(wrong, stderr);
		exit(EXIT_USAGE);
	}
}
