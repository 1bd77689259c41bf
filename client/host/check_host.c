/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python check-host.   Owns: the findings of the trials of probe.h.
 * As root it reports what a system service would have, else what this user's own service would. */
#include "client/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "client/exits.h"
#include "client/host/probe.h"
#include "client/say.h"

#define STORE "/var/lib/mcp-pythond"
#define EXIT_NOT_ALL 1
#define DELEGATED "MCP_PYTHON_CHECK_DELEGATED"	/* set by this program, see go_to_manager() */

static const char help[] =
	"Usage: mcp-python check-host [--json] [--store DIR]\n"
	"\n"
	"Tests what this machine can enforce, and says what to change. As root: for a system\n"
	"service; otherwise for one of yours. Exit status: 0 everything, 1 something is missing.\n"
	"\n"
	"  --json         as JSON\n"
	"  --store DIR    where packages are to be kept; otherwise " STORE "\n"
	"  --help         this text\n";

static const struct {
	const char *name;
	probe_run *run;
} probes[] = {
	{ "kernel", probe_kernel },
	{ "namespaces", probe_user_namespace },
	{ "mounts", probe_mounts },
	{ "proc", probe_proc },
	{ "network", probe_network },
	{ "subordinate ids", probe_ids },
	{ "no_new_privs", probe_no_new_privs },
	{ "seccomp", probe_seccomp },
	{ "landlock", probe_landlock },
	{ "core dumps", probe_core },
	{ "cgroup v2", probe_cgroup },
	{ "memory", probe_memory },
	{ "pids", probe_pids },
	{ "cpu", probe_cpu },
	{ "cgroup.kill", probe_cgroup_kill },
	{ "systemd", probe_systemd },
	{ "programs", probe_programs },
	{ "interpreters", probe_interpreters },
	{ "python", probe_python },
	{ "space", probe_space },
	{ "first call", probe_call },
};

#define N (sizeof(probes) / sizeof(probes[0]))

static const char *const verdicts[] = { "ok", "weaker", "missing" };

static bool
check_host_has_colour(void)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static void
print_finding(const struct finding *finding, bool colour)
{
	static const char *const codes[] = { "\033[32m", "\033[33m", "\033[1;31m" };

	printf("%s%-8s%s %-16s %s\n", colour ? codes[finding->verdict] : "",
	       verdicts[finding->verdict], colour ? "\033[0m" : "", finding->name,
	       finding->found);
	if (finding->cost)
		printf("%-25s costs: %s\n", "", finding->cost);
	if (*finding->advice)
		printf("%-25s to do: %s\n", "", finding->advice);
}

static json_t *
check_host_describe(const struct finding *finding)
{
	return json_pack("{s:s,s:s,s:s,s:s?,s:s?}", "name", finding->name, "verdict",
			 verdicts[finding->verdict], "found", finding->found, "cost",
			 finding->cost, "advice", *finding->advice ? finding->advice : NULL);
}

/* Commands that start a unit of the user's manager. The first needs no user bus; the second needs
 * no help of the system's manager. */
static const char *const units[][8] = {
	{ "systemd-run", "--user", "--quiet", "--collect", "--scope", NULL },
	{ "systemd-run", "--user", "--quiet", "--collect", "--pipe", "--wait", NULL },
};

/* The arguments that run program in such a unit; the caller frees them. */
static char **
in_unit(const char *const *unit, const char *program, int argc, char **argv)
{
	char **words = xcalloc((size_t)argc + 16, sizeof(*words));
	size_t n = 0;

	while (unit[n]) {
		words[n] = (char *)unit[n];
		n++;
	}
	words[n++] = (char *)"--property=Delegate=yes";
	words[n++] = (char *)"--setenv=" DELEGATED "=yes";
	words[n++] = (char *)"--";
	words[n++] = (char *)program;
	if (argc > 0)
		memcpy(words + n, argv, (size_t)argc * sizeof(*words));
	return words;
}

static int
try_unit(void *unit)
{
	char **words = in_unit(unit, "true", 0, NULL);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	execvp(words[0], words);
	return ENOENT;
}

static int
check_host_check(const struct probe_place *place, bool as_json)
{
	json_t *list = json_array(), *answer;
	bool all = true, colour = check_host_has_colour();
	struct utsname name;

	for (size_t i = 0; i < N; i++) {
		struct finding finding = { .name = probes[i].name };

		fflush(stdout);	/* otherwise children would have the buffered text too */
		probes[i].run(place, &finding);
		all = all && finding.verdict != VERDICT_MISSING;
		if (as_json)
			json_array_append_new(list, check_host_describe(&finding));
		else
			print_finding(&finding, colour);
	}
	uname(&name);
	answer = json_pack("{s:s,s:s,s:b,s:o}", "host", name.nodename, "for",
			   geteuid() == 0 ? "system" : "user", "enforceable", all, "checks", list);
	if (as_json && answer) {
		json_dumpf(answer, stdout, JSON_COMPACT);
		putchar('\n');
	}
	json_decref(answer);
	return all ? 0 : EXIT_NOT_ALL;
}

/* Runs this program again under the user's manager, with a cgroup of its own, as a user's service
 * would run. Returns if that is not possible. */
static void
go_to_manager(int argc, char **argv)
{
	char own[PATH_MAX], **words;
	ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);

	own[len > 0 ? len : 0] = '\0';
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (probe_in_child(try_unit, (void *)units[i]) != 0)
			continue;
		words = in_unit(units[i], own, argc, argv);
		execvp(words[0], words);
		free(words);
	}
}

int
check_host_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "store", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct probe_place place = { .store = STORE };
	bool as_json = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			as_json = true;
			break;
		case 's':
			place.store = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return EX_USAGE;
		}
	}
	if (optind < argc) {
		say("check-host: there is an extra word");
		return EX_USAGE;
	}
	if (getenv(DELEGATED))
		probe_cgroup_settle();
	else if (getuid() != 0)
		go_to_manager(argc, argv);
	return check_host_check(&place, as_json);
}
