/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before it drops privilege, and when it reads the files again.
 * Owns:    nothing. Checks of several keys at once. */
#include "policy/config_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "policy/keys.h"

struct relation {
	const char *section, *small, *large;
	uint64_t a, b;
	const char *in;		/* the section of large */
	const char *less;	/* the number that is subtracted from large, in words */
};

#define WITHIN(section, small, large, a, b) { section, small, large, a, b, section, "" }
#define ACROSS(section, small, in, large, less, a, b) \
	{ section, small, large, a, b, in, less }

static const struct config_said *
said_of(const struct config *config, const char *section, const char *name)
{
	int row = key_find(section, name);

	return row < 0 ? &config->origin->said[KEYS_MAX - 1] : &config->origin->said[row];
}

static const struct config_origin *
first_origin(const struct config *config)
{
	return config->origin->base ? config->origin->base->origin : config->origin;
}

static void
config_print_said(const struct config *config, const struct config_said *said,
		  const char *path, FILE *errors)
{
	const struct config_origin *origin = first_origin(config);

	if (said->line)
		fprintf(errors, "%s:%u: ", origin->file[said->file], said->line);
	else
		fprintf(errors, "%s: ", path);
}

void
config_place(const struct config *config, const char *section, const char *name,
	     char *text, size_t size)
{
	const struct config_said *said = said_of(config, section, name);
	const struct config_origin *origin = first_origin(config);

	if (said->line)
		snprintf(text, size, "%s:%u", origin->file[said->file], said->line);
	else
		snprintf(text, size, "[%s]", section);
}

void
config_unsay(struct config *config, const char *section, const char *name)
{
	int row = key_find(section, name);
	const struct key *key = key_at((size_t)row);
	struct why why;

	xassert(key_set(key, config, key->standard, false, &why) == 0);
	config->origin->said[row].line = 0;
}

/* Reports what is wrong with a key, by its file and line. */
static void __attribute__((format(printf, 6, 7)))
report(const struct config *config, const char *section, const char *key, const char *path,
       FILE *errors, const char *format, ...)
{
	va_list args;

	config_print_said(config, said_of(config, section, key), path, errors);
	va_start(args, format);
	vfprintf(errors, format, args);
	va_end(args);
	fputc('\n', errors);
}

/* An incomplete authentication section is worse than none, and is refused. */
static int
check_auth(const struct config *config, const char *path, FILE *errors)
{
	const struct {
		bool wrong;
		const char *key, *text;
	} rules[] = {
		{ config->auth.jwks_file && !config->auth.issuer, "jwks_file",
		  "needs an issuer" },
		{ config->auth.jwks_file && !config->auth.resource, "jwks_file",
		  "needs a resource: the URI by which clients know this service" },
		{ !config->auth.jwks_file && config->auth.issuer, "issuer",
		  "needs a jwks_file" },
		{ !config->auth.jwks_file && config->auth.required_scopes.n > 0,
		  "required_scopes", "needs a jwks_file" },
		{ config->auth.trusted_header && !config->auth.trusted_proxy_user,
		  "trusted_header", "needs a trusted_proxy_user" },
		{ !config->auth.trusted_header && config->auth.trusted_proxy_user,
		  "trusted_proxy_user", "needs a trusted_header" },
		{ config->auth.trusted_header &&
		  strcasecmp(config->auth.trusted_header, "Authorization") == 0,
		  "trusted_header", "Authorization has a meaning of its own" },
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!rules[i].wrong)
			continue;
		report(config, "auth", rules[i].key, path, errors, "[auth] %s: %s", rules[i].key,
		       rules[i].text);
		r = -EINVAL;
	}
	return r;
}

bool
config_has_keeper(const struct config *config)
{
	return config->packages.store != NULL || config->files.directory != NULL ||
	       config->workspace.volume || config->folder.path != NULL;
}

bool
config_has_auth(const struct config *config)
{
	return config->auth.token_file || config->auth.jwks_file;
}

static int
check_relations(const struct config *config, const char *path, FILE *errors)
{
	const struct limits *standard = &config->limits.standard, *cap = &config->limits.cap;
	const struct relation relations[] = {
		WITHIN("service", "sessions_per_tenant", "sessions_max",
		       config->service.sessions_per_tenant, config->service.sessions_max),
		WITHIN("http", "connections_per_peer", "connections_max",
		       config->http.connections_per_peer, config->http.connections_max),
		WITHIN("http", "sessions_per_tenant", "sessions_max",
		       config->http.sessions_per_tenant, config->http.sessions_max),
		WITHIN("pool", "warm", "warm_max", config->pool.warm, config->pool.warm_max),
		WITHIN("pool", "warm_max", "workers_max", config->pool.warm_max, config->pool.workers_max),
		WITHIN("pool", "tenant_running_max", "workers_max",
		       config->pool.tenant_running_max, config->pool.workers_max),
		/* Each worker has a uid of its own, as have the service and the programs that
		 * launch.h calls strangers. */
		ACROSS("pool", "workers_max", "service", "subuid_count",
		       config->n_tools > 0 ? ", less 3" : ", less 2", config->pool.workers_max,
		       config->service.subuid_count - (config->n_tools > 0 ? 3 : 2)),
		WITHIN("exec-sandbox", "default_timeout", "max_timeout",
		       config->exec_sandbox.default_timeout, config->exec_sandbox.max_timeout),
		WITHIN("python-sandbox", "default_timeout", "max_timeout",
		       config->python_sandbox.default_timeout, config->python_sandbox.max_timeout),
		WITHIN("limits", "timeout_seconds", "timeout_max", standard->wall_ms, cap->wall_ms),
		WITHIN("limits", "cpu_seconds", "cpu_max", standard->cpu_ms, cap->cpu_ms),
		WITHIN("limits", "memory_mb", "memory_max_mb", standard->memory_bytes, cap->memory_bytes),
		WITHIN("limits", "pids", "pids_max", standard->pids, cap->pids),
		WITHIN("limits", "output_kb", "output_total_mb",
		       standard->output_bytes, standard->output_total),
		/* a run in the background must fit into its room */
		ACROSS("limits", "output_kb", "mcp", "job_bytes", "",
		       standard->output_bytes, config->mcp.job_bytes),
		WITHIN("results", "file_kb", "files_kb",
		       standard->results.file_bytes, standard->results.files_bytes),
		WITHIN("results", "input_kb", "inputs_kb",
		       config->results.input_bytes, config->results.inputs_bytes),
		WITHIN("results", "keep_bytes", "keep_bytes_max",
		       config->results.keep_bytes, config->results.keep_bytes_max),
		WITHIN("files", "file_bytes", "tenant_bytes",
		       config->files.file_bytes, config->files.tenant_bytes),
		WITHIN("files", "tenant_bytes", "bytes_max",
		       config->files.tenant_bytes, config->files.bytes_max),
		WITHIN("workspace", "volume_bytes", "bytes_max",
		       config->workspace.volume_bytes, config->workspace.bytes_max),
		WITHIN("network", "connections", "connections_max",
		       config->network.connections, config->network.connections_max),
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(relations) / sizeof(relations[0]); i++) {
		const struct relation *relation = &relations[i];
		const struct config_said *said = said_of(config, relation->section,
							 relation->small);

		if (relation->a <= relation->b)
			continue;
		if (!said->line)
			said = said_of(config, relation->in, relation->large);
		config_print_said(config, said, path, errors);
		if (config->origin->base)
			fprintf(errors, "[tenant %s] ", config->origin->from[0]->name);
		fprintf(errors, "[%s] %s: is above %s", relation->section,
			relation->small, relation->large);
		if (strcmp(relation->in, relation->section) != 0)
			fprintf(errors, " in [%s]%s", relation->in, relation->less);
		fputc('\n', errors);
		r = -EINVAL;
	}
	return r;
}

static bool
has_profile(const struct config *config, const char *name)
{
	return config_find_profile(config, name);
}

static bool
has_secret(const struct config *config, const char *name)
{
	size_t s = 0;

	while (s < config->n_secrets && strcmp(config->secret[s].name, name) != 0)
		s++;
	return s < config->n_secrets || strcmp(name, "*") == 0;
}

/* Do all sections exist that keys name? Checked for each tenant, too. */
static int
check_names(const struct config *config, const char *path, FILE *errors)
{
	const struct {
		const char *section, *key, *named;
		const struct config_list *names;
		bool (*has)(const struct config *config, const char *name);
	} lists[] = {
		{ "network", "secrets", "secret", &config->network.secrets, has_secret },
		{ "policy", "profiles", "profile", &config->policy.profiles, has_profile },
	};
	int r = 0;

	for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
		for (size_t i = 0; i < lists[k].names->n; i++) {
			const char *name = lists[k].names->item[i];

			if (lists[k].has(config, name))
				continue;
			report(config, lists[k].section, lists[k].key, path, errors,
			       "[%s] %s: there is no [%s %s]", lists[k].section, lists[k].key,
			       lists[k].named, name);
			r = -EINVAL;
		}
	return r;
}

/* May a credential be sent to the URL? Only over TLS, or without it on this machine. */
static bool
is_closed(const char *url)
{
	static const char *const beginnings[] = { "https://", "unix:", "http://localhost",
						  "http://127.0.0.1", "http://[::1]" };

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
		size_t len = strlen(beginnings[i]);

		if (strncmp(url, beginnings[i], len) == 0 && (i < 2 || strchr(":/", url[len])))
			return true;
	}
	return false;
}

static bool
is_tls(const char *url)
{
	return strncmp(url, "https://", 8) == 0;
}

/* Returns what is wrong with the key *name_r; NULL: nothing is wrong. */
static const char *
wrong_of_oauth(const struct config_tools *tools, const char **name_r)
{
	*name_r = tools->oauth_client_id ? "oauth_client_id" : tools->oauth_client_secret_file
		? "oauth_client_secret_file" : "oauth_scope";
	if (!tools->oauth_token_url)
		return tools->oauth_client_id || tools->oauth_client_secret_file ||
		       tools->oauth_scope.n > 0 ? "oauth: there is no oauth_token_url" : NULL;
	*name_r = "oauth_token_url";
	if (!tools->oauth_client_id || !tools->oauth_client_secret_file)
		return "oauth_token_url: needs oauth_client_id and oauth_client_secret_file";
	if (tools->credential_file)
		return "oauth_token_url: there is a credential_file too";
	if (!tools->url || !is_closed(tools->url) || !is_closed(tools->oauth_token_url))
		return "oauth_token_url: is https://, or of this machine, and for a url that is so";
	return NULL;
}

/* As above. */
static const char *
wrong_of_tools(const struct config_tools *tools, const char **name_r)
{
	bool has_url = tools->url != NULL;

	*name_r = "command";
	if (tools->command.n == 0 && !has_url)
		return "has neither command nor url";
	if (tools->command.n > 0 && has_url)
		return "has a command and a url: it can be reached in one way only";
	if (!has_url && tools->command.item[0][0] != '/')
		return "command: its first word is not an absolute path";
	*name_r = "ca_file";
	if (tools->ca_file && !(has_url && is_tls(tools->url)) &&
	    !(tools->oauth_token_url && is_tls(tools->oauth_token_url)))
		return "ca_file: is for a url with https:// alone";
	*name_r = "credential_header";
	if (tools->credential_header && !tools->credential_file)
		return "credential_header: there is no credential_file";
	*name_r = "credential_file";
	if (tools->credential_file && (!has_url || !is_closed(tools->url)))
		return "credential_file: is for a url with https:// or unix:, or of this machine";
	return wrong_of_oauth(tools, name_r);
}

/* Returns what is wrong with the key *name_r; NULL: nothing is wrong. */
static const char *
wrong_of_secret(const struct config_secret *secret, const char **name_r)
{
	static const char *const written[] = {	/* by the proxy, for each request */
		"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive",
		"Proxy-Authorization", "Proxy-Connection", "TE", "Transfer-Encoding", "Upgrade",
	};

	*name_r = "host";
	if (!secret->host)
		return "has no host";
	*name_r = "value_file";
	if (!secret->value_file)
		return "has no value_file";
	*name_r = "header";
	if (!secret->header)
		return "has no header";
	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++)
		if (strcasecmp(secret->header, written[i]) == 0)
			return "header: is one that the proxy writes itself";
	return NULL;
}

/* Checks the sections [tools NAME] and [secret NAME]. */
static int
check_named(const struct config *config, const char *path, FILE *errors)
{
	const char *key, *wrong;
	int r = 0;

	for (size_t i = 0; i < config->n_tools; i++)
		if ((wrong = wrong_of_tools(&config->tools[i], &key))) {
			report(config, "tools", key, path, errors, "[tools %s] %s",
			       config->tools[i].name, wrong);
			r = -EINVAL;
		}
	for (size_t i = 0; i < config->n_secrets; i++)
		if ((wrong = wrong_of_secret(&config->secret[i], &key))) {
			report(config, "secret", key, path, errors, "[secret %s] %s",
			       config->secret[i].name, wrong);
			r = -EINVAL;
		}
	return r;
}

/* Every client that can connect reads the metrics: the port has no authentication. */
static int
check_metrics(const struct config *config, const char *path, FILE *errors)
{
	const char *listen = config->metrics.listen;

	if (!listen || strncmp(listen, "127.", 4) == 0 || strncmp(listen, "[::1]:", 6) == 0)
		return 0;
	report(config, "metrics", "listen", path, errors, "[metrics] listen: has to be an address of "
	       "the loopback device, 127.0.0.1:PORT or [::1]:PORT");
	return -EINVAL;
}

/* Mistakes outside the tenants' sections are reported once, not for each tenant. */
int
config_check(const struct config *config, const char *path, FILE *errors)
{
	const struct config_origin *origin = config->origin;
	bool wrong = check_auth(config, path, errors) < 0, wrong_itself;

	wrong |= check_relations(config, path, errors) < 0;
	if (config->mcp.toolsets.n == 0) {
		report(config, "mcp", "toolsets", path, errors, "[mcp] toolsets: names no set");
		wrong = true;
	}
	wrong |= check_metrics(config, path, errors) < 0;
	wrong |= check_named(config, path, errors) < 0;
	wrong |= check_names(config, path, errors) < 0;
	wrong_itself = wrong;
	for (size_t i = 0; !wrong_itself && i < origin->n_tenants; i++) {
		const struct config_tenant *tenant = origin->tenant[i];
		const struct config *derived = config_derive(config, &tenant, 1);

		if (!derived) {
			config_print_said(config, &tenant->setting[0].said, path, errors);
			fprintf(errors, "[tenant %s]: a list is too long\n", tenant->name);
			wrong = true;
			continue;
		}
		wrong |= check_relations(derived, path, errors) < 0;
		wrong |= check_names(derived, path, errors) < 0;
		config_free(derived);
	}
	return wrong ? -EINVAL : 0;
}
