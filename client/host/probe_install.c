/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python check-host.   Owns: nothing.
 * Checks required programs by running them. */
#include "client/host/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <jansson.h>

#include "base/programs.h"
#include "base/xalloc.h"
#include "client/table.h"

#define SYSTEMD_TESTED 252
#define SPACE_WANTED (UINT64_C(1) << 30)

/* The first word that program --version prints. False: it is missing, or does not run. */
static bool
ask_version(const char *program, char *text, size_t size)
{
	ssize_t n = 0, more;
	int out[2], r;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		probe_child_begins();
		dup2(out[1], STDOUT_FILENO);
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		execlp(program, program, "--version", (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	while (n < (ssize_t)size - 1 &&
	       (more = read(out[0], text + n, size - 1 - (size_t)n)) > 0)
		n += more;
	close(out[0]);
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	r = probe_wait(pid);
	return r == 0 && *text;
}

void
probe_systemd(const struct probe_place *, struct finding *finding_r)
{
	bool booted = access("/run/systemd/system", F_OK) == 0;
	char text[256];
	unsigned int version = 0;

	if (ask_version("systemctl", text, sizeof(text)))
		sscanf(text, "systemd %u", &version);
	if (booted && version >= SYSTEMD_TESTED) {
		finding_ok(finding_r, "%u, and it started this machine", version);
	} else if (booted && version > 0) {
		finding_not(finding_r, VERDICT_WEAKER, "the units were not tested there", "%u",
			    version);
		finding_advise(finding_r, "use %u or newer", SYSTEMD_TESTED);
	} else {
		finding_not(finding_r, VERDICT_WEAKER,
			    "by hand only: systemd cannot hand sockets over, start the service "
			    "again or delegate cgroups", booted ? "systemctl does not run"
							: "it did not start this machine");
		finding_advise(finding_r, "use a machine, or a container, that systemd started");
	}
}

/* ---- programs ---- */

void
probe_programs(const struct probe_place *, struct finding *finding_r)
{
	static const char *const names[] = { "mcp-pythond", "mcp-python-worker" };
	static const struct {
		const char *name, *without;
	} more[] = {
		{ "mcp-python-egress", "no script can have network access" },
		{ "mcp-python-keeper", "no packages can be installed" },
	};
	char path[PATH_MAX], text[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!program_path(names[i], path, sizeof(path)) ||
		    !ask_version(path, text, sizeof(text))) {
			finding_not(finding_r, VERDICT_MISSING, "nothing is served",
				    "%s is missing, or does not start", names[i]);
			finding_advise(finding_r, "install the whole package, and what it needs "
				       "(ldd says which library is missing)");
			return;
		}
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		if (!program_path(more[i].name, path, sizeof(path))) {
			finding_not(finding_r, VERDICT_WEAKER, more[i].without, "%s is missing",
				    more[i].name);
			finding_advise(finding_r, "install the whole package");
			return;
		}
	finding_ok(finding_r, "%s", text);
}

/* ---- the first call ---- */

static const char first_call[] =
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
	"\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"check-host\",\"version\":"
	"\"1\"}}}\n"
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"run_script\","
	"\"arguments\":{\"script\":\"6 * 7\"}}}\n";

/* A service with the built-in configuration, whose only client is the other end of the socket. */
static pid_t
start_service(const char *path, int socket, int log)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	probe_child_begins();
	dup2(socket, STDIN_FILENO);
	dup2(socket, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	execl(path, path, "--stdio", "--config", "/dev/null", (char *)NULL);
	_exit(127);
}

/* The answer to the call; NULL: there is none. */
static json_t *
probe_install_read_answer(FILE *from)
{
	json_t *answer = NULL;
	char *line = NULL;
	size_t size = 0;

	while (!answer && getline(&line, &size, from) > 0) {
		answer = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		if (json_integer_value(json_object_get(answer, "id")) == 1)
			break;
		json_decref(answer);
		answer = NULL;
	}
	free(line);
	return answer;
}

/* The last line that the service has logged, which says why it ended. */
static void
read_last_line(int log, char *text, size_t size)
{
	off_t end = lseek(log, 0, SEEK_END), from = end > (off_t)size ? end - (off_t)size : 0;
	ssize_t n = pread(log, text, size - 1, from);
	char *last;

	text[n > 0 ? n : 0] = '\0';
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	last = strrchr(text, '\n');
	if (last)
		memmove(text, last + 1, strlen(last + 1) + 1);
}

/* error: why the call was not sent; 0: it was. */
static void
judge_answer(const json_t *answer, int error, int log, struct finding *finding_r)
{
	const json_t *structured = json_object_get(json_object_get(answer, "result"),
						   "structuredContent");
	const char *status = json_string_value(json_object_get(structured, "status"));
	const char *message = json_string_value(
		json_object_get(json_object_get(structured, "error"), "message"));
	char text[1024];

	if (status && strcmp(status, "ok") == 0) {
		finding_ok(finding_r, "a script runs");
		return;
	}
	if (error) {
		finding_not(finding_r, VERDICT_MISSING, "no script runs",
			    "mcp-pythond cannot be asked: %s", strerror(error));
		return;
	}
	read_last_line(log, text, sizeof(text));
	finding_not(finding_r, VERDICT_MISSING, "no script runs", "%s: %.200s",
		    status ? status : "mcp-pythond does not answer", message ? message : text);
	finding_advise(finding_r, "see the findings above; in a container, its filter of system "
		       "calls and what it masks in /proc may be the cause");
}

void
probe_call(const struct probe_place *, struct finding *finding_r)
{
	int pair[2], error = 0, log = memfd_create("check-host", MFD_CLOEXEC);
	char path[PATH_MAX];
	json_t *answer;
	FILE *from;
	pid_t pid;

	if (!program_path("mcp-pythond", path, sizeof(path)) || log < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		finding_not(finding_r, VERDICT_MISSING, "nothing is served",
			    "mcp-pythond cannot be started: %s", strerror(errno));
		if (errno == ENOENT)
			finding_advise(finding_r, "install the whole package");
		if (log >= 0)
			close(log);
		return;
	}
	pid = start_service(path, pair[1], log);
	if (pid < 0 || send(pair[0], first_call, strlen(first_call), MSG_NOSIGNAL) < 0)
		error = errno;
	close(pair[1]);
	if (error)
		shutdown(pair[0], SHUT_RDWR);	/* it ends without a call */
	from = xalloc_check(fdopen(pair[0], "r"));
	answer = probe_install_read_answer(from);
	fclose(from);
	if (pid > 0)
		probe_wait(pid);
	judge_answer(answer, error, log, finding_r);
	json_decref(answer);
	close(log);
}

/* Finds further worker programs, such as that of a debug build: mcp-python-worker-NAME. */
void
probe_interpreters(const struct probe_place *, struct finding *finding_r)
{
	static const char prefix[] = "mcp-python-worker";
	char path[PATH_MAX], text[256], names[160] = "";
	const struct dirent *entry;
	size_t len = 0;
	DIR *folder;

	if (!program_path(prefix, path, sizeof(path))) {
		finding_not(finding_r, VERDICT_MISSING, "nothing is served",
			    "there is no mcp-python-worker");
		finding_advise(finding_r, "install the whole package");
		return;
	}
	folder = opendir(dirname(path));
	while (folder && (entry = readdir(folder))) {
		char program[PATH_MAX + 256];

		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		snprintf(program, sizeof(program), "%s/%s", path, entry->d_name);
		if (!ask_version(program, text, sizeof(text)))
			continue;
		if (len < sizeof(names) - 1)
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%.64s",
						len ? ", " : "", entry->d_name);
	}
	if (folder)
		closedir(folder);
	finding_ok(finding_r, "%s", names);
}

void
probe_python(const struct probe_place *, struct finding *finding_r)
{
	char text[256];

	if (ask_version("/usr/bin/python3", text, sizeof(text))) {
		finding_ok(finding_r, "%s", text);
		return;
	}
	finding_not(finding_r, VERDICT_WEAKER,
		    "workers have their interpreter as a library; what is installed for the system's "
		    "python3 is missing", "/usr/bin/python3 does not run");
	finding_advise(finding_r, "apt install python3");
}

void
probe_space(const struct probe_place *place, struct finding *finding_r)
{
	char path[PATH_MAX];
	struct statvfs room;
	uint64_t bytes;
	char *end;

	snprintf(path, sizeof(path), "%s", place->store);
	while (statvfs(path, &room) < 0) {
		end = strrchr(path, '/');
		if (!end || end == path)
			strcpy(path, "/");
		else
			*end = '\0';
	}
	bytes = (uint64_t)room.f_bavail * room.f_frsize;
	if (bytes >= SPACE_WANTED && !(room.f_flag & ST_RDONLY)) {
		finding_ok(finding_r, "%s free in %.150s", figure_bytes(bytes), path);
		return;
	}
	finding_not(finding_r, VERDICT_WEAKER, "packages cannot be installed, or not many",
		    "%s free in %.150s%s", figure_bytes(bytes), path,
		    room.f_flag & ST_RDONLY ? ", which is read-only" : "");
	finding_advise(finding_r, "name a directory with room: [packages] store");
}
