/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between the supervisor and its children, in C: numbers, structs and bounds. They are
 * made from proto/messages.def.
 *
 *   struct msg m = { .type = MSG_READY, .ready = { .worker = 7 } };
 *   struct msg m = { .type = MSG_DONE, .done = { .id = 1,
 *           .has_value_repr = true, .value_repr = msg_str("42") } };
 *
 * A field that is declared OPTIONAL has a bool has_FIELD beside it. If it is false, the field is
 * not sent, or was not received.
 */
#ifndef PROTO_MESSAGE_H
#define PROTO_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The first byte of every frame. Every change of messages.def or of the form of frames has to raise
 * it, because both sides must be of the same build. */
#define PROTO_VERSION 21

/* Names the build of a program. HELLO has it, to compare both sides. */
#define PROTO_BUILD PACKAGE_VERSION "/" PROTO_STRING(PROTO_VERSION)
#define PROTO_STRING(x) PROTO_STRING_(x)
#define PROTO_STRING_(x) #x

#define SCRIPT_MAX (4 * 1024 * 1024)	/* bytes of a script */
#define ARGS_MAX 256			/* elements of sys.argv, without the first */
#define IMPORTS_MAX 4096		/* modules that a script may import */
#define REFUSED_IMPORTS_MAX 16		/* names that one run reports */
#define IMPORTED_MAX 16			/* modules of packages that one run reports as imported */
#define IMPORTED_NAME_MAX 100		/* bytes of such a name */
#define PREPARED_TROUBLE_MAX 300	/* bytes of the reason why a worker cannot be made ready */
#define STRS_ITEM_MAX (128 * 1024)	/* bytes of one string of any STRS */
#define PACKAGES_TEXT_MAX 255	/* bytes of names of modules: "numpy, pandas" */
#define GLOBALS_MAX (1024 * 1024)	/* bytes of a script's variables at its start */
#define WHERE_MAX 8192			/* bytes of the stacks of a script that is being ended */
#define VALUE_MAX (256 * 1024)		/* bytes of one text of a result */
#define PATH_TEXT_MAX 4096		/* bytes of a path in /workspace */
#define SCRIPT_NAME_MAX 255	/* bytes */
#define INPUTS_MAX 256	/* files that are put into /workspace */
#define INPUT_FILE_MAX (16 * 1024 * 1024)	/* bytes of one such file */
#define INPUTS_BYTES_MAX (32 * 1024 * 1024)	/* bytes of all such files */
#define DISPLAY_OBJECTS_MAX 200	/* objects of one run; the configuration may allow fewer */
#define DISPLAY_FORMS_MAX 4		/* forms of one object */
#define DISPLAY_BYTES_MAX (4 * 1024 * 1024)	/* bytes of all objects of one run */
#define LEFT_FILES_MAX 1000	/* files that a run reports; the configuration may allow fewer */
#define LEFT_DATA_MAX (4 * 1024 * 1024)	/* bytes of a file whose content is kept */
#define LEFT_BYTES_MAX (64 * 1024 * 1024)	/* bytes of all kept contents of a run */
#define REPL_SNAPSHOTS_MAX 16		/* states of a session */
#define REPL_COPYING_MAX 8		/* while a state is copied: processes of the worker that
					 * neither hold a state nor belong to a script, such as
					 * init */
#define HANDOVER_SESSIONS_MAX 1023	/* sessions that one supervisor leaves to the next. Each has
					 * four descriptors in systemd's store, and the table of
					 * sessions has one; the store has room for 4096 */
#define HANDLE_TEXT_MAX 76		/* bytes of a session's handle */
#define CHECKPOINT_TEXT_MAX 64		/* bytes of a checkpoint's name */
#define PRINCIPAL_TEXT_MAX 4096		/* bytes of a principal */
#define NOTES_MAX 16			/* notes of AT_STAKE, about what an undone cell loses */
#define BACKGROUND_MAX 32768		/* bytes of a stream from threads of earlier cells */
#define PROMPTS_OF_RUN_MAX 100	/* prompts of one script */
#define PROMPT_MAX 1024			/* bytes of a prompt */
#define ANSWER_CHARACTERS 4096		/* characters of a line that answers a prompt */
#define MODULES_OF_RUN_MAX 16		/* missing modules for which the imports of a script
					 * may ask the supervisor */
#define MODULE_NAME_MAX 64		/* bytes of the name of such a module */
#define TOOL_SERVERS_MAX 17		/* other MCP servers, whose tools scripts call, and the
					 * client itself */
#define TOOL_LISTS_MAX 1000		/* how often a run may ask for the tools of servers */
#define EGRESS_SECRETS_MAX 16		/* secrets that the proxy puts into requests */
#define TOOL_SERVER_MAX 64		/* bytes of the name of another server */
#define TOOL_NAME_MAX 128		/* bytes of the name of a tool */
#define TOOLS_MAX 512			/* tools of one server */
#define TOOL_ABOUT_MAX (64 * 1024)	/* bytes of the description of a tool, as JSON */
#define TOOLS_ABOUT_MAX (2 * 1024 * 1024)	/* bytes of the descriptions of a server's tools */
#define TOOLS_VALUES_MAX 100000		/* values of these (base/jsonbound.h) */
#define TOOL_CALLS_MAX 10000		/* calls of a run; the configuration may allow fewer */
#define TOOL_CALLS_AT_ONCE 64		/* open calls of a run; the configuration may allow fewer */
#define TOOL_ARGUMENTS_MAX (1024 * 1024)	/* bytes of the arguments of a call, as JSON */
#define TOOL_RESULT_MAX (8 * 1024 * 1024)	/* bytes of a result, as JSON; the configuration may
						 * allow fewer */
#define TOOL_TROUBLE_MAX 1024		/* bytes of the reason why there is no result */
#define TOOL_PROGRESS_MAX 256		/* bytes of a text about the progress of a call */
#define ENVIRONMENT_NAME 64		/* bytes: a SHA-256 in hexadecimal, lower case */
#define MANIFEST_MAX (1024 * 1024)	/* bytes of an environment's manifest */
#define ENVIRONMENT_PLACE "/environment"	/* an empty directory of every jail; the keeper mounts
					 * a set of packages on it */
#define WHEELS_MAX 500			/* wheels of one set */
#define PYTHON_PATH_MAX 120		/* bytes of an interpreter's path: it must fit into the
					 * first line of a script */

#define DIRECTORY_GROUPS_MAX 8192	/* names of groups in a configuration */
#define DIRECTORY_USER_MAX 256		/* bytes of a login name */

#define FILE_NAME 26			/* bytes of a stored file's name: an id (base/id.h) */
#define FILE_DIRECTORY 66		/* bytes of the name of a tenant's directory of files */
#define FILE_PLACES 64			/* stored files that one worker can have mounted */
#define FILE_PLACES_DIRECTORY "/kept-files"	/* of every jail: empty files 00, 01, ...; the
					 * keeper mounts stored files on them */
#define VOLUME_TENANT_MAX 39		/* bytes of the name of a tenant's directory of volumes */
#define VOLUME_NAME_MAX 64		/* bytes of the name of a volume */
#define VOLUME_PLACE "/volume/data"	/* an empty directory of every jail; the keeper mounts a
					 * volume on it. Landlock has a rule for /volume */
#define FOLDER_PLACE "/volume/folder"	/* as VOLUME_PLACE, for the user's folder; /folder is a
					 * link to it, where the service has one */
#define FILE_URI_MAX (3 * PATH_TEXT_MAX + 64)	/* bytes of the address of a stored file */
#define FILE_BYTES_MAX (1ULL << 40)	/* bytes of a stored file */

/* The kinds of programs that the launcher starts. */
enum launch_kind {
	LAUNCH_ZYGOTE,
	LAUNCH_KEEPER,
	LAUNCH_EGRESS,
	LAUNCH_TOOLS,
	LAUNCH_KIND_COUNT
};

/* The kinds of helpers: processes that are forked copies of the supervisor (host/helper.h). */
enum helper_kind {
	HELPER_LAUNCHER,
	HELPER_DIRECTORY,
	HELPER_USAGE,
	HELPER_FILES,
	HELPER_FORKER,
	HELPER_KIND_COUNT
};

/* Forms in which an object is shown; worker/rich.py has them in this order. */
enum display_kind {
	DISPLAY_PNG,
	DISPLAY_JPEG,
	DISPLAY_SVG,
	DISPLAY_HTML,
	DISPLAY_MARKDOWN,
	DISPLAY_PLAIN,
	DISPLAY_JSON,
	DISPLAY_KIND_COUNT
};

/* The result of a connection to the outside. */
enum egress_verdict {
#define VERDICT(verdict, name) EGRESS_##verdict,
#include "proto/verdicts.def"
	EGRESS_VERDICT_COUNT
};

/* The result of a call of another server's tool; worker/tools_module.py has the names in this
 * order. */
enum tool_status {
	TOOL_RETURNED,			/* a result */
	TOOL_RAISED,			/* a result that the server calls an error */
	TOOL_REFUSED,			/* policy or a person has refused it, or a bound was reached
					 */
	TOOL_FAILED,			/* no result came, or it was not valid */
	TOOL_STATUS_COUNT
};

/* The state of another server. */
enum tool_server_state {
	TOOL_SERVER_STARTING,
	TOOL_SERVER_SERVING,		/* its tools are known */
	TOOL_SERVER_DOWN,		/* it is started again later */
	TOOL_SERVER_STATE_COUNT
};

/* The fate of threads and processes that a cell leaves when it ends by itself. */
enum background_mode {
	BACKGROUND_UNSAID,	/* not given: as BACKGROUND_FREEZE */
	BACKGROUND_RUN,		/* they continue */
	BACKGROUND_FREEZE,	/* they are stopped until the next cell */
	BACKGROUND_END,		/* processes are ended, threads are stopped */
	BACKGROUND_MODES
};

/* The fate of the state that a cell of a session ran in. */
enum cell_state {
	CELL_COMMITTED,		/* it has the changes of the cell */
	CELL_ROLLED_BACK,	/* it is as before the cell */
	CELL_LOST,		/* it is lost: its snapshot is empty */
	CELL_STATE_COUNT
};

/* The values of fields. STR: UTF-8 without NUL; BIN: any bytes. No NUL follows, and at may be NULL
 * if len is 0. The bytes are borrowed: from the frame in a received message, from the caller in a
 * message that is sent. */
struct msg_str {
	const char *at;
	size_t len;
};

struct msg_bin {
	const char *at;
	size_t len;
};

/* STRS. In a received message item belongs to the message (codec_free). */
struct msg_strs {
	struct msg_str *item;
	size_t n;
};

enum msg_from {
	FROM_SUPERVISOR,
	FROM_ZYGOTE,
	FROM_WORKER,
	FROM_EGRESS,
	FROM_TOOLS,
	FROM_KEEPER,
	FROM_PREDECESSOR,	/* the supervisor before this one */
	FROM_FORKER,
	FROM_LAUNCHER,
	FROM_DIRECTORY,
	FROM_FILESTORE,
	FROM_COUNT,
	FROM_CHILD = FROM_COUNT,	/* of a message: FROM_ZYGOTE, _KEEPER, _EGRESS or _TOOLS */
};

/* MSG_HELLO = 1 ... */
enum msg_type {
#define MESSAGE(NAME, name, number, from, body_max, fds_min, fds_max) MSG_##NAME = (number),
#define FIELD(name, field, type, need, least, most)
#define END(name)
#include "proto/messages.def"
#undef MESSAGE
#undef FIELD
#undef END
};

/* struct msg_hello ... */
#define MSG_C_U32 uint32_t
#define MSG_C_U64 uint64_t
#define MSG_C_I32 int32_t
#define MSG_C_BOOL bool
#define MSG_C_STR struct msg_str
#define MSG_C_BIN struct msg_bin
#define MSG_C_STRS struct msg_strs
#define MSG_HAS_REQUIRED(field)
#define MSG_HAS_OPTIONAL(field) bool has_##field;
#define MESSAGE(NAME, name, number, from, body_max, fds_min, fds_max) struct msg_##name {
#define FIELD(name, field, type, need, least, most) MSG_C_##type field; MSG_HAS_##need(field)
#define END(name) };
#include "proto/messages.def"
#undef MESSAGE
#undef FIELD
#undef END

/* One message of any type. */
struct msg {
	enum msg_type type;
	union {
#define MESSAGE(NAME, name, number, from, body_max, fds_min, fds_max) struct msg_##name name;
#define FIELD(name, field, type, need, least, most)
#define END(name)
#include "proto/messages.def"
#undef MESSAGE
#undef FIELD
#undef END
	};
};

/* The size of a union is that of its largest member. These two unions are used only for that: their
 * sizes give the largest numbers in a column of the table. */
union msg_fds_bound {
#define MESSAGE(NAME, name, number, from, body_max, fds_min, fds_max) char name[(fds_max) + 1];
#define FIELD(name, field, type, need, least, most)
#define END(name)
#include "proto/messages.def"
#undef MESSAGE
#undef FIELD
#undef END
};

union msg_body_bound {
#define MESSAGE(NAME, name, number, from, body_max, fds_min, fds_max) char name[(body_max)];
#define FIELD(name, field, type, need, least, most)
#define END(name)
#include "proto/messages.def"
#undef MESSAGE
#undef FIELD
#undef END
};

#define MSG_FDS_MAX (sizeof(union msg_fds_bound) - 1)	/* descriptors of any message */
#define MSG_BODY_MAX sizeof(union msg_body_bound)	/* bytes of any message's body */

/* Makes a STR of a text that ends with NUL; NULL counts as empty. */
static inline struct msg_str
msg_str(const char *text)
{
	return (struct msg_str){ .at = text, .len = text ? strlen(text) : 0 };
}

#endif
