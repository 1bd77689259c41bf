/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, once, before its loop.   Owns: nothing afterwards. */
#include "supervisor/fences.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/log.h"
#include "base/own.h"
#include "base/socketfile.h"
#include "host/cgroup.h"
#include "host/fence.h"
#include "host/fence_files.h"
#include "policy/config.h"
#include "supervisor/configuration.h"
#include "supervisor/endpoints.h"
#include "supervisor/operate/governance.h"

/* Adds the folders of the files that a reload reads, of those that are written, and of the socket
 * files that are removed at the end. Kept files are not among them: the file helper opens those. */
static int
add_all(struct fence_files *files, const struct fences_of *of)
{
	const struct config *config = of->config;
	const char *file = of->source->path ? of->source->path : CONFIGURATION_INSTALLED;
	const struct {
		const char *file;
		enum fence_access access;
	} around[] = {
		{ file, FENCE_READ },
		{ config->auth.token_file, FENCE_READ },
		{ config->auth.jwks_file, FENCE_READ },
		{ config->packages.advisories, FENCE_READ },
		{ config->audit.file, FENCE_WRITE },
		{ config->admin.approvals, FENCE_WRITE },
		{ config->mcp.repeat_file, FENCE_WRITE },
		{ config->pool.learned_file, FENCE_WRITE },
	};
	own_mem char *own = of->source->with_own ? configuration_own_folder() : NULL;
	int r = fence_files_add(files, GOVERNANCE_RECORDS, FENCE_WRITE);

	if (r == 0)
		r = fence_files_add(files, own, FENCE_READ);
	for (size_t i = 0; r == 0 && i < sizeof(around) / sizeof(around[0]); i++)
		r = fence_files_add_around(files, around[i].file, around[i].access);
	for (size_t i = 0; r == 0 && i < of->endpoints->n_files; i++)
		if (socketfile_is_own(of->endpoints->file[i]))
			r = fence_files_add_around(files,
						   socketfile_path(of->endpoints->file[i]),
						   FENCE_SOCKETS);
	if (r == 0)
		r = fence_files_add(files, config->packages.store, FENCE_WRITE);
	if (r == 0 && of->cgroups)
		r = fence_files_add_fd(files, cgroup_root_fd(of->cgroups), FENCE_WRITE);
#ifdef WITH_COVERAGE			/* where the counters go when it ends (tests/coverage) */
	if (r == 0 && getenv("GCOV_PREFIX"))
		r = fence_files_add(files, getenv("GCOV_PREFIX"), FENCE_WRITE);
#endif
	return r;
}

static int
enter_files(const struct fences_of *of)
{
	struct fence_files *files = fence_files_new();
	int r;

	if (!files) {
		log_line(LOG_INFO, "files-open", "err=%s text=%s", strerrorname_np(errno),
			 "\"without Landlock the service itself could open every file of its user\"");
		return 0;
	}
	r = add_all(files, of);
	if (r == 0)
		r = fence_files_enter(files);
	fence_files_free(files);
	return r;
}

int
fences_enter(const struct fences_of *of)
{
	const char *what = "files";
	int r;

	/* Later it would look for its configuration. */
	OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, NULL);
	r = enter_files(of);
	if (r == 0) {
		what = "threads";
		r = of->start_threads(of->arg);
	}
	if (r == 0)
		r = fence_supervisor(&what);
	if (r < 0)
		log_line(LOG_ERR, "fence-failed", "step=\"%s\" err=%s", what,
			 strerrorname_np(-r));
	return r;
}
