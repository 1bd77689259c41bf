/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: audit log, approvals and gate. */
#include "supervisor/operate/governance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "base/own.h"
#include "base/socketfile.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "govern/advisories.h"
#include "govern/approvals.h"
#include "govern/audit.h"
#include "govern/gate.h"
#include "govern/ledger.h"
#include "govern/whole_file.h"
#include "host/fence_files.h"
#include "host/startup.h"
#include "policy/config.h"
#include "policy/id_range.h"
#include "supervisor/configuration.h"
#include "supervisor/endpoints.h"

struct governance {
	const struct config *config;	/* held; the configuration in force */
	const struct config *started;	/* held; that of the start, with the profiles that were
					 * taken since */
	struct audit *audit;
	struct approvals *approvals;
	struct advisories *advisories;
	struct ledger *ledger;
	struct gate *gate;
	struct event_base *base;	/* borrowed */
	struct whole_file *learned;	/* NULL: it is not kept */
	struct governance_reloads reloads;
	char *unrecorded;		/* the changes of a reload that need a restart, until it is
					 * in the audit log; NULL: each reload is */
};

static const struct policy_subject *
subject_of(void *arg, const char *principal)
{
	return gate_subject(arg, principal);
}

static const struct config *
governance_config_of(void *arg, const char *principal)
{
	return gate_config_named(arg, principal);
}

static const char *
in_records(bool as_service, const char *path)
{
	return as_service && access(GOVERNANCE_RECORDS, W_OK) == 0 ? path : NULL;
}

int
governance_new(const struct config *config, bool as_service,
	       struct governance **governance_r, struct why *why_r)
{
	struct governance *g = xcalloc(1, sizeof(*g));
	const char *file;
	int r;

	g->config = config_hold(config);
	g->started = config_hold(config);
	g->advisories = advisories_new();
	file = config->audit.file ? NULL : in_records(as_service, GOVERNANCE_RECORDS "/audit.jsonl");
	r = audit_new(config, file, &g->audit, why_r);
	file = config->admin.approvals ? config->admin.approvals
				       : in_records(as_service, GOVERNANCE_RECORDS "/approvals.jsonl");
	if (r == 0)
		r = approvals_new(file, g->audit, &g->approvals, why_r);
	file = config->mcp.repeat_file ? config->mcp.repeat_file
				       : in_records(as_service, GOVERNANCE_RECORDS "/calls");
	if (r == 0)
		r = ledger_new(file, config->mcp.repeat_seconds, &g->ledger, why_r);
	if (r < 0) {
		governance_free(g);
		return r;
	}
	file = config->pool.learned_file ? config->pool.learned_file
					 : in_records(as_service, GOVERNANCE_RECORDS "/learned");
	g->learned = whole_file_new(file, "learned");
	*governance_r = g;
	return 0;
}

/* Takes the socket that systemd passes as "admin"; supervisor/endpoints.c takes all others. */
static int
governance_take_handed_socket(int *fd_r, struct why *why_r)
{
	own_mem char **names = NULL;
	int r = 0, n = sd_listen_fds_with_names(0, &names);

	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (strcmp(names[i], PLACE_ADMIN) != 0)
			continue;
		if (*fd_r >= 0 || sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) <= 0)
			r = why_say(why_r, -EINVAL, "socket", "what was handed over as \"%s\" is "
				    "not one listening unix stream socket", PLACE_ADMIN);
		else
			*fd_r = fd;
	}
	for (int i = 0; names && names[i]; i++)
		free(names[i]);
	return r;
}

static bool
is_at(int fd, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNSPEC };
	socklen_t len = sizeof(address) - 1;

	return fd >= 0 && getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
	       strcmp(address.sun_path, path) == 0;
}

/* Every user may connect to this socket: the kernel identifies the user, and policy decides. */
int
governance_listen(const struct config *config, struct socketfile **file_r,
		  int fd_r[ADMIN_SOCKETS], struct why *why_r)
{
	const char *path = config->admin.socket;
	int r;

	fd_r[0] = fd_r[1] = -1;
	r = governance_take_handed_socket(&fd_r[0], why_r);
	/* The permissions of an existing socket are its unit's decision. */
	if (r < 0 || !path || is_at(fd_r[0], path))
		return r;
	r = socketfile_open(path, startup_service_uid(config), file_r, &fd_r[1], why_r);
	if (r == 0 && chmod(path, 0666) < 0)
		r = why_say(why_r, -errno, "socket", "[admin] socket = %s: %s", path,
			    strerror(errno));
	return r;
}

void
governance_start(struct governance *g, struct event_base *base, struct directory *directory)
{
	const struct gate_options gate = { .base = base, .config = g->config,
					   .audit = g->audit, .approvals = g->approvals,
					   .advisories = g->advisories, .directory = directory,
					   .lacks_uids = !id_range_has_all_uids() };
	struct approvals_policy policy = { subject_of, governance_config_of, NULL };

	g->gate = policy.arg = gate_new(&gate);
	approvals_start(g->approvals, base, &policy);
	g->base = base;
	audit_write(g->audit, AUDIT_STARTED, NULL, NULL,
		    json_pack("{s:s,s:i}", "version", PACKAGE_VERSION, "pid", getpid()));
}

int
governance_start_threads(void *arg)
{
	const struct governance *g = arg;
	int r = audit_start(g->audit, g->base);

	if (r == 0)
		r = approvals_start_thread(g->approvals);
	if (r == 0)
		r = whole_file_start(g->learned, g->base);
	if (r == 0 && g->started->packages.advisories)
		r = advisories_start(g->advisories, g->base);
	if (r == 0)
		advisories_load(g->advisories, g->started->packages.advisories);
	return r;
}

void
governance_free(struct governance *g)
{
	bool ran;

	if (!g)
		return;
	ran = g->gate != NULL;
	governance_record_reload(g);
	approvals_free(g->approvals);
	advisories_free(g->advisories);
	ledger_free(g->ledger);
	gate_free(g->gate);
	if (ran)
		audit_write(g->audit, AUDIT_STOPPED, NULL, NULL, NULL);
	audit_free(g->audit);
	whole_file_free(g->learned);
	config_free(g->started);
	config_free(g->config);
	free(g->reloads.text);
	free(g);
}

struct gate *
governance_gate(struct governance *g)
{
	return g->gate;
}

struct whole_file *
governance_learned(struct governance *g)
{
	return g->learned;
}

struct ledger *
governance_ledger(struct governance *g)
{
	return g->ledger;
}

/* ---- reading again ---- */

static void
log_mistakes(char *text)
{
	struct log_quoted quoted;
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			log_line(LOG_ERR, "reload-mistake", "text=%s",
				 log_quote(&quoted, line, strlen(line)));
}

static void
note_reload(struct governance *g, bool done, const char *text)
{
	free(g->reloads.text);
	g->reloads.text = *text ? xstrdup(text) : NULL;
	g->reloads.last = time(NULL);
	g->reloads.last_done = done;
	done ? g->reloads.succeeded++ : g->reloads.failed++;
}

const struct governance_reloads *
governance_reloads(const struct governance *g)
{
	return &g->reloads;
}

/* The settings that need a restart to take effect, as words between commas: those that differ from
 * the configuration of the start, and those that on_read writes. Malloc'd. */
static char *
what_is_left(const struct governance *g, const struct config *config,
	     const struct governance_watcher *watcher)
{
	own_mem char *keys = NULL;
	char *said = NULL, *text;
	size_t len;
	FILE *out = xalloc_check(open_memstream(&said, &len));

	watcher->on_read(watcher->arg, config, out);
	fclose(out);
	keys = config_needs_restart(g->started, config);
	text = xasprintf("%s%s%s", keys, *keys && *said ? ", " : "", said);
	free(said);
	return text;
}

/* A file outside of the folders of the start cannot be opened any more (supervisor/fences.h). */
static void
explain_refusals(FILE *out, char *const *errors)
{
	fflush(out);
	if (fence_files_entered() && strstr(*errors, strerror(EACCES)))
		fputs("The running service opens files only below the folders that were named when "
		      "it started; restart it to read others.\n", out);
}

void
governance_record_reload(struct governance *g)
{
	if (g->unrecorded)
		audit_write(g->audit, AUDIT_RELOADED, NULL, NULL,
			    json_pack("{s:b,s:s}", "done", 1, "after_restart", g->unrecorded));
	free(g->unrecorded);
	g->unrecorded = NULL;
}

void
governance_reload(struct governance *g, const struct configuration_source *source,
		  const struct governance_watcher *watcher)
{
	own_mem char *errors = NULL;
	own_mem char *later = NULL;
	size_t len;
	FILE *out = xalloc_check(open_memstream(&errors, &len));
	struct config *config;

	config = configuration_read(source, out);
	if (!config)
		explain_refusals(out, &errors);
	fclose(out);
	if (!config) {
		audit_write(g->audit, AUDIT_RELOADED, NULL, NULL,
			    json_pack("{s:b,s:s}", "done", 0, "why", errors));
		note_reload(g, false, errors);
		log_mistakes(errors);
		log_line(LOG_ERR, "reload-failed", "kept=yes");
		watcher->on_done(watcher->arg);
		return;
	}
	later = what_is_left(g, config, watcher);
	config_free(g->config);
	g->config = config;
	advisories_load(g->advisories, g->started->packages.advisories);
	note_reload(g, true, later);
	governance_record_reload(g);	/* the last one, if it was overtaken */
	g->unrecorded = xstrdup(later);
	gate_reload(g->gate, config, watcher->on_done, watcher->arg);
}
