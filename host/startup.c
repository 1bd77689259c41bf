/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, once, before it serves a client.   Owns: nothing afterwards. The order
 * matters: cgroups while they can still be handed over, the outer namespace while ids can still be
 * mapped; then all privilege is dropped, and that is proved. */
#include "host/startup.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "host/cgroup.h"
#include "host/forker.h"
#include "host/launcher.h"
#include "host/outer.h"
#include "host/privilege.h"
#include "host/programs.h"
#include "policy/id_range.h"

#define SCOPE_MOST_MS 3000

/* The user of the service, and the ids that it may map. */
struct identity {
	uid_t uid;
	gid_t gid;
	struct id_range range;	/* one id for the service, then those of workers; count 0: none */
};

/* Finds the ids for workers. Only root and the unit's user may map ids. Root with too few ids, as
 * after "unshare -r", counts as an ordinary user. */
static int
startup_find_range(const struct config *config, bool as_service, struct id_range *range_r,
		   struct why *why_r)
{
	const struct id_range wanted = { config->service.subuid_base,
					 config->service.subuid_count };
	/* The service's own, one for each worker, and those of strangers (host/launch.h). */
	int r = id_range_here(&wanted, config->pool.workers_max + (config->n_tools > 0 ? 3 : 2),
			      range_r);

	if (r < 0 && (r != -ERANGE || as_service))
		return why_say(why_r, r, "subuid_count", "[pool] workers_max = %u needs more ids "
			       "than there are here (/proc/self/uid_map)%s: %s",
			       config->pool.workers_max, r == -EPERM ? ", and root here is root "
			       "outside, too" : "", strerror(-r));
	if (r < 0)
		range_r->count = 0;
	return 0;
}

/* If root has started the service by hand, and [service] user does not exist, the service gets the
 * first id of the range, which owns no files. */
static int
find_identity(const struct config *config, bool as_service, struct identity *identity_r,
	      struct why *why_r)
{
	struct passwd *entry;
	int r;

	memset(identity_r, 0, sizeof(*identity_r));
	if (privilege_may_map()) {
		r = startup_find_range(config, as_service, &identity_r->range, why_r);
		if (r < 0)
			return r;
	}

	entry = getpwnam(config->service.user);
	if (entry == NULL && as_service)
		return why_say(why_r, -ENOENT, "user",
			       "the service's user %s does not exist",
			       config->service.user);
	if (geteuid() != 0) {
		/* The unit has set the uid before the configuration could. */
		if (as_service && entry->pw_uid != geteuid())
			return why_say(why_r, -EINVAL, "user", "[service] user = %s, and the "
				       "unit has another User=", config->service.user);
	}
	if (geteuid() != 0 || identity_r->range.count == 0) {
		identity_r->uid = geteuid();
		identity_r->gid = getegid();
		return 0;
	}
	identity_r->uid = entry ? entry->pw_uid : identity_r->range.first;
	identity_r->gid = entry ? entry->pw_gid : identity_r->range.first;
	if (identity_r->uid == 0 || identity_r->gid == 0)
		return why_say(why_r, -EINVAL, "user",
			       "the service's user may not be root");
	return 0;
}

uid_t
startup_service_uid(const struct config *config)
{
	struct identity identity;

	return find_identity(config, false, &identity, NULL) == 0 ? identity.uid : (uid_t)-1;
}

static int
make_outer(const struct identity *identity, struct outer_namespace **outer_r, struct why *why_r)
{
	const char *reason = NULL;
	struct log_quoted quoted;
	uint32_t slots;
	int r;

	if (identity->range.count > 0) {
		slots = identity->range.count - 1;
		return outer_new_mapped(identity->uid, identity->gid, identity->range.first,
					slots > 65535 ? 65535 : slots, outer_r, why_r);
	}
	r = outer_new_as_user(outer_r, &reason, why_r);
	if (r == 0 && reason != NULL) {
		if (privilege_may_map())
			reason = "too few ids are mapped here (/proc/self/uid_map)";
		log_line(LOG_DEBUG, "one-uid", "why=%s text=%s",
			 log_quote(&quoted, reason, strlen(reason)),
			 "\"all workers share your own uid\"");
	}
	return r;
}

bool
startup_is_unit(void)
{
	const char *pid = getenv("SYSTEMD_EXEC_PID");

	return pid != NULL && strtol(pid, NULL, 10) == getpid();
}

static bool
are_counted(const struct cgroup_root *cgroups)
{
	return cgroups != NULL && cgroup_root_controllers(cgroups)->memory &&
	       cgroup_root_controllers(cgroups)->pids;
}

/* error: of the search for them. Whoever starts this by hand expects what the machine lacks, but
 * not a shortage of the moment. */
static void
warn_about_cgroups(const struct cgroup_root *cgroups, int error, const struct why *why)
{
	static const struct cgroup_controllers none;
	const struct cgroup_controllers *have =
		cgroups ? cgroup_root_controllers(cgroups) : &none;
	/* No property of the machine, whose owner knows of it. */
	bool is_failure = error == -EMFILE || error == -ENFILE || error == -ENOMEM ||
			  error == -ENOSPC || error == -EIO || error == -EINTR || error == -EAGAIN;
	struct log_quoted quoted;

	if (are_counted(cgroups))
		return;
	log_line(is_failure ? LOG_WARNING : LOG_DEBUG, "fallback", "memory=%s pids=%s why=%s text=%s",
		 have->memory ? "counted" : "sampled", have->pids ? "counted" : "sampled",
		 cgroups ? "no-controller"
			 : log_quote(&quoted, why->text, strlen(why->text)),
		 "\"limits are kept by rlimits and by sampling\"");
}

/* A user who has logged in does not own the cgroup of the login session. The cgroup of a terminal
 * has other processes in it, so it allows no controllers. In both cases the user's manager is asked
 * for a scope. */
static void
find_cgroups_by_hand(const struct identity *identity, struct cgroup_root **cgroups_r)
{
	struct cgroup_root *cgroups = NULL;
	struct why why = { .text = "" };
	struct log_quoted quoted;

	int r = cgroup_root_new(false, identity->uid, identity->gid, &cgroups, &why);

	if (!are_counted(cgroups) && geteuid() != 0 && !startup_is_unit()) {
		cgroup_root_free(cgroups);
		cgroups = NULL;
		if (scope_enter(SCOPE_MOST_MS, &why) < 0)
			log_line(LOG_DEBUG, "no-scope", "why=%s",
				 log_quote(&quoted, why.text, strlen(why.text)));
		r = cgroup_root_new(false, identity->uid, identity->gid, &cgroups, &why);
	}
	warn_about_cgroups(cgroups, r, &why);
	*cgroups_r = cgroups;
}

/* Each worker needs five descriptors, and all tasks of workers count for the service's user: the
 * soft limits are raised to the hard limits. */
static void
raise_limits(void)
{
	static const int raised[] = { RLIMIT_NOFILE, RLIMIT_NPROC };

	for (size_t i = 0; i < sizeof(raised) / sizeof(raised[0]); i++) {
		struct rlimit limit;

		if (getrlimit(raised[i], &limit) == 0) {
			limit.rlim_cur = limit.rlim_max;
			setrlimit(raised[i], &limit);
		}
	}
}

/* With a limit of 0 a crash still starts the host's core handler, as root, if kernel.core_pattern
 * is a program; with a limit of 1 it starts nothing and writes nothing (core(5)). All processes of
 * the service inherit it. Only root may raise a hard limit of 0: if it stays, zygotes look whether
 * there is a handler (worker/jail.c). */
static void
dump_no_cores(void)
{
	static const struct rlimit one = { 1, 1 }, zero = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &one) < 0)
		setrlimit(RLIMIT_CORE, &zero);
}

/* Makes the missing directories above path. The service's user has to pass through them. */
static void
make_parents(const char *path)
{
	own_mem char *above = xstrdup(path);

	for (char *slash = strchr(above + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(above, 0755);
		*slash = '/';
	}
}

/* Makes a missing store for the service's user. The keeper and the file helper examine an existing
 * store, and refuse one of another user. key: with its section, for errors. */
static int
make_store(const char *key, const char *path, uid_t uid, gid_t gid, struct why *why_r)
{
	if (path == NULL || geteuid() != 0)
		return 0;
	make_parents(path);
	if (mkdir(path, 0700) < 0)
		return errno == EEXIST ? 0
			: why_say(why_r, -errno, "store", "%s = %.200s: %s", key, path,
				  strerror(errno));
	if (chown(path, uid, gid) < 0)
		return why_say(why_r, -errno, "store", "%s = %.200s: %s", key, path,
			       strerror(errno));
	return 0;
}

static int
make_launcher(const struct config *config, const struct outer_namespace *outer,
	      const struct startup_programs *programs, const struct cgroup_root *cgroups,
	      struct launcher **launcher_r, struct why *why_r)
{
	const struct launcher_options options = {
		.config = config,
		.read = programs->read,
		.read_arg = programs->read_arg,
		.outer = outer,
		.worker_fd = programs->worker_fd,
		.interpreter_fd = programs->interpreter_fd,
		.keeper_fd = programs->keeper_fd,
		.egress_fd = programs->egress_fd,
		.tools_fd = programs->tools_fd,
		.memory_counted = cgroups != NULL && cgroup_root_controllers(cgroups)->memory,
	};

	int fd[LAUNCHER_DESCRIPTORS], r = launcher_new(&options, launcher_r, why_r);

	if (r < 0)
		return r;
	/* They have a copy of the options. */
	r = forkers_start(fd, launcher_descriptors(&options, fd));
	return r < 0 ? why_say(why_r, r, "", "fork servers: cannot start them: %s", strerror(-r))
		     : 0;
}

/* Erases the variables that the service and its helpers do not read: whoever started it, such as an
 * MCP client, may have secrets in them. */
static void
forget_environment(void)
{
	static const char *const read[] = {
		"EXIT_STATUS=", "FDSTORE=", "GCOV_", "HOME=", "JOURNAL_STREAM=", "LISTEN_", "MCP_",
		"NOTIFY_SOCKET=", "PATH=", "SANDBOX_", "SERVICE_RESULT=", "STATE_DIRECTORY=",
		"SYSTEMD_EXEC_PID=", "TMPDIR=", "TZ=", "WATCHDOG_", "XDG_",
	};
	char **kept = environ;

	for (char **variable = environ; variable && *variable; variable++) {
		size_t i = 0;

		while (i < sizeof(read) / sizeof(read[0]) &&
		       strncmp(*variable, read[i], strlen(read[i])) != 0)
			i++;
		if (i < sizeof(read) / sizeof(read[0]))
			*kept++ = *variable;
		else
			explicit_bzero(*variable, strlen(*variable));
	}
	if (kept)
		*kept = NULL;
}

int
startup_privilege(const struct config *config, bool as_service,
		  const struct startup_programs *programs, struct launcher **launcher_r,
		  struct cgroup_root **cgroups_r, struct why *why_r)
{
	struct cgroup_root *cgroups = NULL;
	struct outer_namespace *outer = NULL;
	struct identity identity;
	int r;

	r = find_identity(config, as_service, &identity, why_r);
	if (r < 0)
		return r;
	r = make_store("[packages] store", config->packages.store, identity.uid, identity.gid,
		       why_r);
	if (r == 0)
		r = make_store("[files] directory", config->files.directory, identity.uid,
			       identity.gid, why_r);
	if (r < 0)
		return r;
	raise_limits();
	dump_no_cores();
	if (as_service)
		r = cgroup_root_new(true, identity.uid, identity.gid, &cgroups, why_r);
	else
		find_cgroups_by_hand(&identity, &cgroups);
	if (r < 0)
		return r;
	r = make_outer(&identity, &outer, why_r);
	if (r < 0 && programs->answers_without) {
		outer = outer_new_missing(r);
		/* Otherwise it is this user already. */
		r = identity.uid == geteuid() ? 0 : privilege_become(identity.uid, identity.gid);
	}
	if (r == 0) {
		r = privilege_drop();
		if (r < 0)
			why_say(why_r, r, "", "privilege: cannot drop it: %s",
				strerror(-r));
	}
	if (r == 0)
		r = privilege_prove(identity.uid, identity.gid, why_r);
	forget_environment();
	if (r == 0)
		r = make_launcher(config, outer, programs, cgroups, launcher_r, why_r);
	outer_namespace_free(outer);
	if (r < 0) {
		cgroup_root_free(cgroups);
		return r;
	}
	*cgroups_r = cgroups;
	return 0;
}

int
startup_open_programs(const struct config *config, bool as_service,
		      struct startup_programs *programs_r, struct why *why_r)
{
	*programs_r = (struct startup_programs){ .worker_fd = -1, .keeper_fd = -1,
						 .egress_fd = -1, .tools_fd = -1 };
	memset(programs_r->interpreter_fd, -1, sizeof(programs_r->interpreter_fd));
	programs_r->egress_fd = programs_find("mcp-python-egress", "MCP_PYTHON_EGRESS", as_service);
	if (programs_r->egress_fd < 0 && programs_r->egress_fd != -ENOENT)
		return why_say(why_r, programs_r->egress_fd, "network", "mcp-python-egress: %s",
			       strerror(-programs_r->egress_fd));
	programs_r->worker_fd = programs_find("mcp-python-worker", "MCP_PYTHON_WORKER", as_service);
	if (programs_r->worker_fd < 0)
		return why_say(why_r, programs_r->worker_fd, "worker", "mcp-python-worker, or that of "
			       "the version of /usr/bin/python3: %s",
			       strerror(-programs_r->worker_fd));
	if (config_has_keeper(config)) {
		programs_r->keeper_fd = programs_find("mcp-python-keeper", "MCP_PYTHON_KEEPER",
						       as_service);
		if (programs_r->keeper_fd < 0)
			return why_say(why_r, programs_r->keeper_fd, "store",
				       "mcp-python-keeper: %s", strerror(-programs_r->keeper_fd));
	}
	if (config->n_tools > 0) {
		programs_r->tools_fd = programs_find("mcp-python-tools", "MCP_PYTHON_TOOLS",
						     as_service);
		if (programs_r->tools_fd < 0)
			return why_say(why_r, programs_r->tools_fd, "tools",
				       "mcp-python-tools: %s", strerror(-programs_r->tools_fd));
	}
	for (size_t i = 0; i < config->n_profiles; i++) {
		programs_r->interpreter_fd[i] = programs_of_profile(config, &config->profile[i],
								  why_r);
		if (config->profile[i].interpreter != NULL && programs_r->interpreter_fd[i] < 0)
			return programs_r->interpreter_fd[i];
	}
	return 0;
}

void
startup_close_programs(const struct startup_programs *programs)
{
	if (programs->worker_fd >= 0)
		close(programs->worker_fd);
	if (programs->keeper_fd >= 0)
		close(programs->keeper_fd);
	if (programs->egress_fd >= 0)
		close(programs->egress_fd);
	if (programs->tools_fd >= 0)
		close(programs->tools_fd);
	for (size_t i = 0; i < CONFIG_PROFILES_MAX; i++)
		if (programs->interpreter_fd[i] >= 0)
			close(programs->interpreter_fd[i]);
}
