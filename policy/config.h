/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration. A table has all keys with their ranges and defaults (policy/keys.h). The
 * values are read from INI files by inih, and checked as a whole before they are used. An unknown
 * section or key is an error.
 */
#ifndef POLICY_CONFIG_H
#define POLICY_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "policy/limits.h"

#define CONFIG_PROFILES_MAX 16
#define CONFIG_INTERPRETERS_MAX 16
#define CONFIG_TOOLS_MAX 16	/* TOOL_SERVERS_MAX of proto/message.h, without the client
				 * itself */
#define CONFIG_SECRETS_MAX 16	/* EGRESS_SECRETS_MAX of proto/message.h */
#define CONFIG_LIST_MAX 512

/* A list of words, NULL-terminated; owned by the config. */
struct config_list {
	char **item;		/* NULL when there is none */
	size_t n;
};

/* [network]: the hosts that scripts may connect to, and the bounds. */
struct config_network {
	struct config_list allow;	/* rules (policy/network.h); none: no network at all */
	struct config_list allow_private;	/* ranges that are not public, but may be reached */
	struct config_list secrets;	/* names of secrets that scripts may use; or *: all */
	char *nameserver;		/* ADDRESS:PORT; NULL: those of /etc/resolv.conf */
	uint64_t bytes_max;		/* of an execution, in both directions together */
	uint64_t rate_max;		/* bytes of an execution in a second */
	uint32_t connections;		/* of an execution at a time */
	uint32_t connections_max;	/* of an execution in total */
	uint32_t idle_seconds;		/* a connection without a byte for this time is ended */
	uint32_t connection_seconds;	/* of one connection, at most */
};

/* [interpreter NAME]: a Python, and a worker program that was built for its version. */
struct config_interpreter {
	char name[33];
	char *worker;			/* path; NULL: mcp-python-worker-NAME in the usual directory
					 */
	char *program;			/* the Python's path (in root); NULL: the one that the
					 * worker program was built for */
	char *root;			/* the directory that is "/" in its jails; NULL: the host's
					 * "/" */
};

/* [profile NAME]: the modules that the zygote imports, and the paths that are visible in the jail.
 */
struct config_profile {
	char name[65];
	char *interpreter;		/* its [interpreter NAME]; NULL: the usual one */
	struct config_list modules;	/* imported in the zygote */
	struct config_list paths;	/* bound read-only beside the built-in list */
	uint64_t disk_bytes;		/* see config_disk_bytes */
	uint64_t disk_inodes;
	bool terminals;			/* scripts can make pseudo-terminals */
	bool zygote_per_tenant;		/* each tenant has a zygote of its own */
};

/* [tools NAME]: another MCP server, whose tools scripts may call. */
struct config_tools {
	char name[65];			/* an identifier of Python */
	struct config_list command;	/* a program and its arguments; empty: it has a url */
	char *url;			/* http://, https:// or unix:PATH[:TARGET] */
	char *ca_file;			/* NULL: the machine's own */
	char *credential_file;		/* NULL: none */
	char *credential_header;	/* NULL: Authorization: Bearer */
	char *oauth_token_url;		/* NULL: no OAuth */
	char *oauth_client_id, *oauth_client_secret_file;	/* with oauth_token_url */
	struct config_list oauth_scope;
};

/* [secret NAME]: a text that the egress proxy puts into requests of scripts, which never see it. */
struct config_secret {
	char name[65];
	char *host;			/* HOST (port 443) or HOST:PORT: the only one that gets it
					 */
	char *header;			/* the only header that it can be in */
	char *value_file;
	char *ca_file;			/* NULL: the machine's own */
};

/* [tool-calls]: which tools of other servers scripts may call, and the bounds. */
struct config_tool_calls {
	struct config_list servers;	/* names; or *: all */
	struct config_list allow, approve, deny;	/* SERVER.TOOL, with * and ? */
	uint32_t read_only, others;	/* enum policy_verdict, for tools that no pattern names */
	uint32_t calls, at_once;	/* of a run, in total and at a time */
	uint32_t seconds;		/* of a call */
	uint64_t result_bytes, results_bytes;	/* of a call; of a run */
};

/* What records of ends have of outputs. */
enum config_outputs { OUTPUTS_HASH = 1, OUTPUTS_WHOLE };

/* [alarms]: what a tenant may use in ten minutes before it is reported; 0: any amount. */
struct config_alarms {
	uint32_t executions, failures, denials, new_hosts, cpu_seconds;
	uint32_t unusual_times;		/* and at least so many times as much as is usual for it */
	uint32_t period_seconds;	/* one alarm of a kind for a tenant in this time */
};

/* The form of answers in the set of tools run-python. */
enum config_return { RETURN_XML = 1, RETURN_JSON };

/* The arguments of tools that tools/list shows (mcp/tool_list.h). */
enum config_arguments { ARGUMENTS_COMMON = 1, ARGUMENTS_ALL };

/* May clients connect whose uid is no user's of the host? */
enum config_unknown_uids { UNKNOWN_UIDS_REFUSE = 1, UNKNOWN_UIDS_ALLOW };

/* Which clients get structuredContent, and outputSchema if output_schemas is set. */
enum config_structured { STRUCTURED_AUTO = 1, STRUCTURED_YES, STRUCTURED_NO };

/* Which clients get views: those that show them, or none. */
enum config_views { VIEWS_AUTO = 1, VIEWS_NO };

struct config {
	struct {
		char *socket;		/* path; NULL: chosen at start */
		char *user;		/* service user when started as root */
		uint32_t directory_seconds;	/* time limit for the host's directory of users */
		uint32_t identity_seconds;	/* how long an answer of the directory is valid */
		uint32_t unknown_uids;	/* enum config_unknown_uids */
		uint32_t subuid_base;	/* first host uid of the workers' range */
		uint32_t subuid_count;
		uint32_t sessions_max;	/* connections at a time, of all tenants */
		uint32_t sessions_per_tenant;
		uint64_t line_max;	/* bytes of one JSON-RPC line */
	} service;
	struct {
		uint32_t warm;		/* idle workers kept for an active tenant and profile */
		uint32_t warm_max;	/* idle workers in total */
		uint32_t workers_max;	/* workers in total, in any state */
		uint32_t tenant_running_max;	/* running executions of one tenant */
		uint32_t tenant_queue_max;	/* waiting executions of one tenant */
		uint32_t wait_seconds;	/* the longest wait for a worker, or for its own time */
		uint32_t idle_seconds;	/* after this time a tenant's warm workers are ended */
		uint32_t zygote_seconds;	/* after this time a zygote is renewed; 0: never */
		uint32_t tenant_zygotes_max;	/* zygotes that belong to one tenant, in total */
		uint32_t ready_max;	/* workers that are made ready, in total: engine/ready.h */
		uint32_t tenant_ready_max;	/* and for one tenant; 0: none */
		struct config_list learn;	/* modules that zygotes may learn: learnable.h */
		char *learned_file;	/* path; NULL: the default of a system service, or none */
	} pool;
	struct {
		char *listen;		/* ADDRESS:PORT; NULL: not on TCP */
		char *socket;		/* path; NULL: none */
		struct config_list hosts;	/* names of this server, beside the loopback ones */
		struct config_list origins;	/* origins of web pages that may call the service */
		char *links;		/* URL at which clients reach the service; NULL: no signed
					 * links */
		uint32_t link_seconds;	/* how long a link is valid */
		bool insecure;		/* serve other machines without authentication */
		uint64_t body_max;	/* bytes of one request's body */
		uint32_t connections_max;
		uint32_t connections_per_peer;	/* of one uid, or one address */
		uint32_t sessions_max;	/* of legacy revisions, of all tenants */
		uint32_t sessions_per_tenant;
		uint32_t session_idle_seconds;	/* after this time an unused session is closed */
		uint32_t resume_seconds;	/* how long a stream can be resumed after its end;
						 * 0: not at all */
		uint32_t stream_seconds;	/* after this time a stream is closed, and the
						 * client has to resume it; 0: never */
		uint32_t keepalive_seconds;	/* an open stream gets a message at least this often
						 */
		uint32_t idle_seconds;	/* how long a connection waits for its next request */
		uint32_t request_seconds;	/* time limit for a whole request to arrive */
	} http;
	struct {
		char *token_file;	/* path; NULL: there are no tokens of the service */
		char *jwks_file;	/* path; NULL: no OAuth */
		char *issuer;		/* of OAuth tokens; with jwks_file */
		char *resource;		/* URI of the service's endpoint: the audience of OAuth
					 * tokens */
		struct config_list required_scopes;
		uint32_t leeway_seconds;	/* largest difference between the issuer's clock and
						 * this machine's */
		char *trusted_header;	/* header in which the proxy names the user; NULL: none */
		char *trusted_proxy_user;	/* the user of this machine that the proxy runs as
						 */
	} auth;
	struct {
		struct config_list toolsets;	/* names of the offered sets */
		uint32_t arguments;	/* which ones tools/list shows: enum config_arguments */
		uint32_t structured;	/* enum config_structured */
		uint32_t output_schemas;	/* tools/list has the schemas of answers */
		uint32_t views;		/* enum config_views */
		uint32_t text_tokens;	/* length of an answer's text, roughly; 0: any */
		char *state_key_file;	/* path; NULL: a new key at each start */
		uint32_t ask_seconds;	/* the time that a client has to answer a question */
		uint32_t parked_per_tenant;	/* runs of modern clients that wait for answers */
		uint32_t tasks_per_tenant;
		uint32_t task_ttl_seconds;	/* from a task's beginning until it is dropped */
		uint32_t task_after_seconds;	/* a call that runs longer becomes a task */
		uint32_t repeat_seconds;	/* how long the answer of a call with an idempotency
						 * key is kept */
		uint32_t repeat_calls;	/* of one tenant, within that time */
		char *repeat_file;	/* path; NULL: the default of a system service, or none */
		uint32_t jobs_per_tenant;	/* runs in the background, and their answers */
		uint32_t job_seconds;	/* how long a job is kept after its end */
		uint64_t job_bytes;	/* of one tenant's jobs: output and answers */
		uint64_t kept_bytes;	/* of the answers of one tenant's tasks; the same for its
					 * calls with an idempotency key */
	} mcp;
	struct {
		char *directory;	/* path; NULL: the service's own alone */
	} skills;
	struct {			/* the set of tools exec-sandbox; [limits] bounds it, too */
		uint32_t text_tokens;	/* as in mcp */
		char *python_version;	/* the version that scripts must get; NULL: any */
		uint32_t default_timeout, max_timeout;	/* seconds */
		uint64_t max_output_bytes;	/* kept of each stream */
	} exec_sandbox;
	struct {
		uint32_t sessions_max;	/* sessions of run_repl of one tenant; 0: none */
		uint64_t memory_total;	/* bound on the sum of the memory limits of a tenant's
					 * sessions */
		uint32_t idle_seconds;	/* a session is closed after this time without a cell */
		uint32_t age_seconds;	/* a session is closed after this time since its beginning
					 */
		uint32_t background;	/* enum background_mode */
		uint32_t background_ms;	/* with BACKGROUND_RUN */
	} repl;
	struct {			/* the set of tools python-sandbox; as exec_sandbox */
		uint32_t text_tokens;	/* as in mcp */
		uint32_t default_timeout, max_timeout;	/* seconds */
		uint64_t max_output_bytes;	/* kept of each stream */
		uint64_t memory_limit;	/* bytes, unless a call sets it */
		bool data_science, network, filesystem;	/* which tiers are allowed beside basic */
		struct config_list allowed_imports;	/* in place of tiers; empty: tiers count */
	} python_sandbox;
	struct {			/* the set of tools */
		uint32_t text_tokens;	/* as in mcp */
		struct config_list dependencies;	/* requirements that all scripts have */
		uint32_t return_mode;	/* enum config_return */
	} run_python;
	struct {			/* modules that scripts of a tier may import */
		struct config_list basic, data_science, network, filesystem;
	} tiers;
	struct limits_policy limits;
	struct config_network network;
	struct config_tool_calls tool_calls;
	struct {			/* bounds of one tenant; 0: only keys of other sections,
					 * such as [pool], set bounds */
		uint32_t per_minute;	/* executions started */
		uint32_t concurrent;	/* running executions; further ones wait */
		uint32_t queued;	/* waiting executions; further ones are refused */
		uint32_t cpu_seconds_per_hour;
		uint32_t sessions;
		uint64_t disk_bytes;	/* of all its executions together */
		uint64_t audit_bytes_per_hour;
	} quota;
	struct {
		uint32_t preset;	/* enum policy_preset */
		uint32_t run_script, run_repl, install_package;	/* enum policy_verdict */
		uint32_t input;		/* enum policy_input; 0: by the preset */
		struct config_list profiles;	/* those that scripts may use; none: all */
		struct config_list approvers;
		uint32_t approval_seconds;	/* after this time an undecided request expires */
		uint32_t denied_seconds;	/* how long a refusal is in force; 0: not at all */
	} policy;
	struct {
		char *index;		/* NULL: nothing can be installed */
		struct config_list extra_indexes;
		struct config_list file_hosts;	/* hosts that serve the files of these indexes,
						 * beside the indexes' own hosts */
		char *store;		/* directory; NULL: nothing can be installed */
		uint64_t store_bytes;	/* of all environments; those unused for longest are removed
					 */
		uint32_t keep_seconds;	/* how long an environment is kept after its last use */
		uint32_t timeout_ms;	/* of one step: resolving, building, installing */
		uint64_t memory_bytes;	/* of the installer's worker */
		uint64_t environment_bytes;	/* of one environment, in whole pages */
		uint32_t environment_files;
		struct config_list allow, deny;
		uint32_t others;	/* enum policy_verdict */
		char *advisories;	/* file; NULL: none */
		uint32_t advisories_deny;	/* enum advisory_severity: this one and higher */
		uint32_t build;		/* enum packages_build */
		bool require_hashes, allow_urls;
		uint32_t max_packages;	/* of one resolved set */
		uint64_t max_bytes;	/* of all files of a set together */
	} packages;
	struct {
		char *file;		/* NULL: none */
		bool journal, source, sync;
		uint32_t outputs;	/* enum config_outputs */
		uint32_t on_failure;	/* enum audit_on_failure */
		uint64_t text_bytes;	/* of one text in a record; the rest is cut off */
		uint64_t rotate_bytes;
		uint64_t keep_bytes;	/* of the renamed files; 0: all are kept */
	} audit;
	struct config_alarms alarms;
	struct {
		char *listen;		/* ADDRESS:PORT of the loopback device; NULL: none */
		bool tenants;		/* also serve numbers of each tenant */
	} metrics;
	struct {
		char *socket;		/* NULL: none */
		char *approvals;	/* file; NULL: approvals end with the service */
		struct config_list operators;
	} admin;
	struct {			/* of the user who has started the service: --folder */
		const char *path;	/* absolute, and no link; borrowed. NULL: none */
		bool is_writable;
	} folder;
	struct {
		char *directory;	/* NULL: nothing is kept on disk */
		bool passing;		/* the files end with the service */
		bool roots;		/* files below the client's roots may be taken: --roots */
		uint64_t file_bytes;	/* of one file; 0: nothing is kept on disk */
		uint64_t tenant_bytes, bytes_max;	/* of one tenant's files; of all files */
		uint32_t tenant_files;	/* files of one tenant */
		uint32_t keep_seconds;
	} files;			/* files that are kept on disk */
	struct {
		bool volume;		/* scripts may ask for volumes */
		char *directory;	/* NULL: there are no volumes */
		uint64_t volume_bytes, volume_files;	/* of one volume */
		uint32_t volumes;	/* of one tenant */
		uint64_t bytes_max;	/* of all volumes together */
	} workspace;
	struct {
		uint32_t keep_seconds;	/* how long files can be read after the call that left them
					 */
		uint64_t keep_bytes;	/* of one tenant's files and kept output. The output that
					 * its running scripts spill is counted separately, and
					 * has the same bound */
		uint64_t keep_bytes_max;	/* as keep_bytes, of all tenants together */
		uint32_t inputs;	/* the most files in a call */
		uint32_t input_bytes, inputs_bytes;	/* of one such file; of all of them */
	} results;
	struct config_profile profile[CONFIG_PROFILES_MAX];	/* [0] is the default one */
	size_t n_profiles;
	struct config_interpreter interpreter[CONFIG_INTERPRETERS_MAX];
	size_t n_interpreters;
	struct config_tools tools[CONFIG_TOOLS_MAX];
	size_t n_tools;
	struct config_secret secret[CONFIG_SECRETS_MAX];
	size_t n_secrets;
	struct config_origin *origin;	/* where each value was set: policy/config_parts.h */
};

struct policy_subject;		/* policy/rules.h */

/* Makes a config with the built-in values and one profile, "basic". It has one holder. Aborts when
 * out of memory. */
struct config *config_new(void);

/* Adds a holder. Returns config. */
const struct config *config_hold(const struct config *config);
void config_free(const struct config *config);	/* removes a holder; NULL is fine */

/* Makes the configuration in force for one principal: config, overridden by the [tenant ...]
 * sections that name the principal; first those of its groups, then that of its user, then that of
 * the principal itself. The caller frees it by config_free. NULL: the sections contradict each
 * other, and everything must be denied. */
const struct config *config_for(const struct config *config,
				const struct policy_subject *subject);

/* Reads an INI file; its values replace those in *config. All mistakes are printed to errors, in
 * the form FILE:LINE: KEY: the mistake and the right range. 0; -EINVAL: there were mistakes; or
 * another -errno: the file cannot be read. */
int config_read(struct config *config, const char *path, FILE *errors);

/* As config_read, for all files *.conf of a directory, in the order of their names; later files
 * override earlier ones. 0 if there is no such directory. */
int config_read_directory(struct config *config, const char *path, FILE *errors);

/* Checks the rules about several keys (such as a default above its cap, or warm above warm_max),
 * also in the tenants' sections. path: the file that is named in errors about values that no file
 * sets. 0; or -EINVAL: there were mistakes, which were printed. */
int config_check(const struct config *config, const char *path, FILE *errors);

/* Prints every key with its value in force, as an INI file that config_read takes. */
void config_dump(const struct config *config, FILE *out);

/* Prints the sections of tenants that config was made from, as comments, and then the keys that can
 * differ between tenants. config: made by config_for. */
void config_dump_policy(const struct config *config, FILE *out);

/* Gives a setting its default again, as if no file had set it. config: one that was read. */
void config_unsay(struct config *config, const char *section, const char *name);

/* Writes the place of a setting, FILE:LINE, to text; "[SECTION]" if no file sets it. */
void config_place(const struct config *config, const char *section, const char *name,
		  char *text, size_t size);

/* Do both have a profile of this name, with the same settings and the same interpreter? */
bool config_same_profile(const struct config *a, const struct config *b, const char *name);

/* Copies a profile and its [interpreter NAME] from another configuration; they replace those of the
 * same names, or are added. The profile's number, or -ENOSPC. */
int config_take_profile(struct config *to, const struct config *from, const char *name);

/* The names of the keys that differ and take effect only at a start, separated by ", ". Keys of
 * tenants are left out. "": there are none. Malloc'd. */
char *config_needs_restart(const struct config *old, const struct config *new);

/* Is a keeper needed, because something may have to be mounted in workers? */
bool config_has_keeper(const struct config *config);

/* Must clients on TCP authenticate? */
bool config_has_auth(const struct config *config);

/* The [interpreter NAME] of a profile; NULL: there is no such section, or the profile names none.
 */
const struct config_interpreter *config_interpreter_of(const struct config *config,
						       const struct config_profile *profile);

#define DISK_BYTES_MIN 65536

/* The bytes of /workspace, /tmp, /dev/shm and HOME together: what memory a call may ask for, unless
 * the profile has a bound of its own. */
uint64_t config_disk_bytes(const struct config *config, const struct config_profile *profile);

const struct config_profile *config_find_profile(const struct config *config,
						 const char *name);

#endif
