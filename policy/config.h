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

/* What records of ends have of outputs. */
enum config_outputs { OUTPUTS_HASH = 1, OUTPUTS_WHOLE };

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

/* A struct config_SECTION for each section of the file; policy/keys.def has their members. */
#define CONFIG_LIST struct config_list
#define CONFIG_STRING char *
#define CONFIG_BOOL bool
#define CONFIG_U32 uint32_t
#define CONFIG_U64 uint64_t
#define CONFIG_CHOICE uint32_t
#define KIND(kind, shape) typedef CONFIG_##shape config_##kind;
#define SECTION(name) struct config_##name {
#define NAMED_SECTION SECTION
#define END };
#define MEMBER(type, member) type member;
#define KEY(section, name, kind, of, member, ...) config_##kind member;
#define TENANT_KEY KEY
#define TENANT_DENY_KEY KEY
#define CHOICE_KEY(section, name, of, member, ...) config_CHOICE member;
#define TENANT_CHOICE_KEY CHOICE_KEY
#define PROFILE_KEY(name, kind, member, ...) config_##kind member;
#define TOOLS_KEY PROFILE_KEY
#define SECRET_KEY PROFILE_KEY
#define INTERPRETER_KEY(name, member) config_PATH member;
#define KEYS_OF_MEMBERS
#include "policy/keys.def"

struct config {
#define SECTION(name) struct config_##name name;
#include "policy/keys.def"
#undef KEYS_OF_MEMBERS
	struct limits_policy limits;
	struct {			/* of the user who has started the service: --folder */
		const char *path;	/* absolute, and no link; borrowed. NULL: none */
		bool is_writable;
	} folder;
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
