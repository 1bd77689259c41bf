/* Runs in: the supervisor, before it gives up anything.   Owns: strings in a config.
 * Reads:   values that an administrator wrote: trusted, but not to be without mistakes. */
#include "policy/keys.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "policy/config.h"
#include "policy/network.h"
#include "policy/why.h"

#define KiB UINT64_C(1024)
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)

/* Modules that scripts import most, and that import without a side effect (no thread, no
 * descriptor left open). What is not here is imported by the script, at its own cost. */
#define BASIC_MODULES \
	"abc argparse array ast asyncio base64 binascii bisect builtins bz2 calendar cmath " \
	"codecs collections collections.abc concurrent.futures contextlib contextvars copy " \
	"csv dataclasses datetime decimal difflib enum errno fnmatch fractions functools " \
	"gc glob gzip hashlib heapq hmac html importlib inspect io itertools json keyword " \
	"linecache locale logging lzma math numbers operator os pathlib pickle platform " \
	"pprint queue random re secrets select selectors shlex shutil signal socket sqlite3 " \
	"stat statistics string struct subprocess sys tempfile textwrap threading time " \
	"token tokenize traceback types typing unicodedata urllib.parse uuid warnings " \
	"weakref zipfile zlib zoneinfo"

#define KEY(section, name, kind, member, least, most, unit, standard) \
	{ section, name, KEY_##kind, offsetof(struct config, member), least, most, unit, standard }
#define PROFILE_KEY(name, kind, member, least, most, standard) \
	{ "profile", name, KEY_##kind, offsetof(struct config_profile, member), least, most, 1, \
	  standard }

static const struct key keys[] = {
	/* clang-format off */
	KEY("service", "socket",              PATH,  service.socket,              1, 107,        1, ""),
	KEY("service", "user",                NAME,  service.user,                1, 32,         1, "mcp-python"),
	KEY("service", "subuid_base",         U32,   service.subuid_base,     65536, 4294836223, 1, "1879048192"),
	KEY("service", "subuid_count",        U32,   service.subuid_count,        3, 65536,      1, "65536"),
	KEY("service", "sessions_max",        U32,   service.sessions_max,        1, 65536,      1, "1024"),
	KEY("service", "sessions_per_tenant", U32,   service.sessions_per_tenant, 1, 65536,      1, "512"),
	KEY("service", "line_max_bytes",      BYTES, service.line_max,        65536, GiB,        1, "32M"),

	KEY("http", "listen",               ADDRESS, http.listen,               1, 64,    1, ""),
	KEY("http", "socket",               PATH,    http.socket,               1, 107,   1, ""),
	KEY("http", "allowed_hosts",        HOSTS,   http.hosts,                0, CONFIG_LIST_MAX, 1, ""),
	KEY("http", "allowed_origins",      ORIGINS, http.origins,              0, CONFIG_LIST_MAX, 1, ""),
	KEY("http", "insecure",             BOOL,    http.insecure,             0, 1,     1, "no"),
	KEY("http", "body_max_bytes",       BYTES,   http.body_max,         65536, GiB,   1, "32M"),
	KEY("http", "connections_max",      U32,     http.connections_max,      1, 65536, 1, "1024"),
	KEY("http", "connections_per_peer", U32,     http.connections_per_peer, 1, 65536, 1, "512"),
	KEY("http", "sessions_max",         U32,     http.sessions_max,         1, 1000000, 1, "16384"),
	KEY("http", "sessions_per_tenant",  U32,     http.sessions_per_tenant,  1, 1000000, 1, "8192"),
	KEY("http", "session_idle_seconds", U32,     http.session_idle_seconds, 1, 604800, 1, "3600"),
	KEY("http", "idle_seconds",         U32,     http.idle_seconds,         1, 86400, 1, "60"),
	KEY("http", "request_seconds",      U32,     http.request_seconds,      1, 86400, 1, "60"),

	KEY("mcp", "toolsets",           TOOLSETS, mcp.toolsets,        0, 3,         1, "native"),
	KEY("mcp", "state_key_file",     PATH,  mcp.state_key_file,     1, 4095,      1, ""),
	KEY("mcp", "ask_seconds",        U32,   mcp.ask_seconds,        1, 86400,     1, "300"),
	KEY("mcp", "parked_per_tenant",  U32,   mcp.parked_per_tenant,  0, 4096,      1, "32"),
	KEY("mcp", "tasks_per_tenant",   U32,   mcp.tasks_per_tenant,   0, 65536,     1, "64"),
	KEY("mcp", "task_ttl_seconds",   U32,   mcp.task_ttl_seconds,   60, 604800,   1, "3600"),
	KEY("mcp", "task_after_seconds", U32,   mcp.task_after_seconds, 0, 86400,     1, "10"),
	KEY("mcp", "repeat_seconds",     U32,   mcp.repeat_seconds,     1, 86400,     1, "600"),
	KEY("mcp", "jobs_per_tenant",    U32,   mcp.jobs_per_tenant,    0, 4096,      1, "32"),
	KEY("mcp", "job_seconds",        U32,   mcp.job_seconds,        1, 604800,    1, "3600"),
	KEY("mcp", "job_bytes",          BYTES, mcp.job_bytes,          65536, 16 * GiB, 1, "64M"),
	KEY("mcp", "kept_bytes",         BYTES, mcp.kept_bytes,         65536, 16 * GiB, 1, "64M"),

	/* as the server has it whose place it takes */
	KEY("exec-sandbox", "default_timeout",  U32,   exec_sandbox.default_timeout,  1, 86400,       1, "30"),
	KEY("exec-sandbox", "max_timeout",      U32,   exec_sandbox.max_timeout,      1, 86400,       1, "300"),
	KEY("exec-sandbox", "max_output_bytes", BYTES, exec_sandbox.max_output_bytes, 1024, 64 * MiB, 1, "100K"),

	KEY("auth", "token_file",         PATH,   auth.token_file,         1, 4095, 1, ""),
	KEY("auth", "jwks_file",          PATH,   auth.jwks_file,          1, 4095, 1, ""),
	KEY("auth", "issuer",             URI,    auth.issuer,             1, 255,  1, ""),
	KEY("auth", "resource",           URI,    auth.resource,           1, 255,  1, ""),
	KEY("auth", "required_scopes",    SCOPES, auth.required_scopes,    0, 16,   1, ""),
	KEY("auth", "leeway_seconds",     U32,    auth.leeway_seconds,     0, 600,  1, "30"),
	KEY("auth", "trusted_header",     HEADER, auth.trusted_header,     1, 64,   1, ""),
	KEY("auth", "trusted_proxy_user", NAME,   auth.trusted_proxy_user, 1, 32,   1, ""),

	KEY("pool", "warm",               U32, pool.warm,               0, 512,     1, "4"),
	KEY("pool", "warm_max",           U32, pool.warm_max,           0, 4096,    1, "64"),
	KEY("pool", "workers_max",        U32, pool.workers_max,        1, 16384,   1, "256"),
	KEY("pool", "tenant_running_max", U32, pool.tenant_running_max, 1, 16384,   1, "64"),
	KEY("pool", "tenant_queue_max",   U32, pool.tenant_queue_max,   0, 1000000, 1, "512"),
	KEY("pool", "idle_seconds",       U32, pool.idle_seconds,       1, 86400,   1, "60"),

	KEY("repl", "sessions_max",    U32,   repl.sessions_max, 0, 65536,   1,   "16"),
	KEY("repl", "memory_total_mb", U64,   repl.memory_total, 0, 16777216, MiB, "8192"),
	KEY("repl", "idle_seconds",    U32,   repl.idle_seconds, 1, 2592000, 1,   "3600"),
	KEY("repl", "age_seconds",     U32,   repl.age_seconds,  1, 2592000, 1,   "86400"),

	KEY("limits", "timeout_seconds", U32, limits.standard.wall_ms,      1, 86400,   1000, "30"),
	KEY("limits", "timeout_max",     U32, limits.cap.wall_ms,           1, 86400,   1000, "600"),
	KEY("limits", "cpu_seconds",     U32, limits.standard.cpu_ms,       1, 86400,   1000, "30"),
	KEY("limits", "cpu_max",         U32, limits.cap.cpu_ms,            1, 86400,   1000, "600"),
	KEY("limits", "cpu_percent",     U32, limits.cpu_percent,           1, 1000000,    1, "400"),
	KEY("limits", "memory_mb",       U64, limits.standard.memory_bytes, 16, 1048576, MiB, "512"),
	KEY("limits", "memory_max_mb",   U64, limits.cap.memory_bytes,      16, 1048576, MiB, "2048"),
	KEY("limits", "pids",            U32, limits.standard.pids,         1, 65536,      1, "64"),
	KEY("limits", "pids_max",        U32, limits.cap.pids,              1, 65536,      1, "512"),
	KEY("limits", "output_kb",       U64, limits.standard.output_bytes, 1, 65536,    KiB, "1024"),
	KEY("limits", "output_total_mb", U64, limits.standard.output_total, 1, 1048576,  MiB, "64"),

	KEY("network", "allow",              RULES,  network.allow,              0, CONFIG_LIST_MAX, 1, ""),
	KEY("network", "allow_private",      RANGES, network.allow_private,      0, CONFIG_LIST_MAX, 1, ""),
	KEY("network", "nameserver",         ADDRESS, network.nameserver,        1, 64,       1, ""),
	KEY("network", "bytes_max",          BYTES,  network.bytes_max,          1, 1024 * GiB, 1, "256M"),
	KEY("network", "rate_max",           BYTES,  network.rate_max,        4096, GiB,      1, "16M"),
	KEY("network", "connections",        U32,    network.connections,        1, 1024,     1, "32"),
	KEY("network", "connections_max",    U32,    network.connections_max,    1, 1000000,  1, "1000"),
	KEY("network", "idle_seconds",       U32,    network.idle_seconds,       1, 86400,    1, "60"),
	KEY("network", "connection_seconds", U32,    network.connection_seconds, 1, 86400,    1, "600"),

	PROFILE_KEY("modules",     MODULES, modules,     0, CONFIG_LIST_MAX, BASIC_MODULES),
	PROFILE_KEY("paths",       PATHS,   paths,       0, CONFIG_LIST_MAX, ""),
	PROFILE_KEY("disk_bytes",  BYTES,   disk_bytes,  65536, 1024 * GiB,  "256M"),
	PROFILE_KEY("disk_inodes", U64,     disk_inodes, 64,    100000000,   "65536"),
	/* clang-format on */
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

const struct key *
key_at(size_t i)
{
	return i < N_KEYS ? &keys[i] : NULL;
}

bool
key_is_list(const struct key *key)
{
	return key->kind == KEY_MODULES || key->kind == KEY_PATHS ||
	       key->kind == KEY_HOSTS || key->kind == KEY_ORIGINS ||
	       key->kind == KEY_SCOPES || key->kind == KEY_RULES ||
	       key->kind == KEY_RANGES || key->kind == KEY_TOOLSETS;
}

int
key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < N_KEYS; i++)
		if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

/* ---- values ---- */

static char *
copy_of(const char *text, size_t len)
{
	char *copy = strndup(text, len);

	if (!copy)
		abort();
	return copy;
}

/* Digits, with one letter behind them where suffixes may be. UINT64_MAX also stands for
 * whatever is larger: it is above every row's range. */
static int
parse_number(const char *value, bool suffixes, uint64_t *number_r)
{
	uint64_t number, factor = 1;
	char *end;

	if (!isdigit((unsigned char)value[0]))
		return -EINVAL;
	errno = 0;
	number = strtoull(value, &end, 10);
	if (errno == ERANGE)
		number = UINT64_MAX;
	if (suffixes && *end) {
		const char *letter = strchr("KMG", *end);

		if (!letter)
			return -EINVAL;
		factor = *letter == 'K' ? KiB : *letter == 'M' ? MiB : GiB;
		end++;
	}
	if (*end)
		return -EINVAL;
	if (__builtin_mul_overflow(number, factor, number_r))
		*number_r = UINT64_MAX;
	return 0;
}

static int
set_number(const struct key *key, void *base, const char *value, struct why *why_r)
{
	void *slot = (char *)base + key->offset;
	bool suffixes = key->kind == KEY_BYTES;
	uint64_t number;

	if (parse_number(value, suffixes, &number) < 0 ||
	    number < key->least || number > key->most)
		return why_say(why_r, -EINVAL, key->name,
			       "\"%.40s\" is not a %s from %" PRIu64 " to %" PRIu64, value,
			       suffixes ? "number of bytes (K, M or G may follow)"
					: "whole number",
			       key->least, key->most);
	if (key->kind == KEY_U32)
		*(uint32_t *)slot = (uint32_t)(number * key->unit);
	else
		*(uint64_t *)slot = number * key->unit;
	return 0;
}

/* A dotted name: what may stand after import. */
static bool
is_module(const char *word, size_t len)
{
	bool starts = true;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)word[i];

		if (c == '.' && !starts)
			starts = true;
		else if (isalpha(c) || c == '_' || (isdigit(c) && !starts))
			starts = false;
		else
			return false;
	}
	return !starts;
}

/* Absolute, printable ASCII without blanks, and no component empty, "." or "..": what is
 * bound into a jail is where it says that it is. */
static bool
is_path(const char *word, size_t len)
{
	size_t part = 0;

	if (len < 2 || word[0] != '/' || word[len - 1] == '/')
		return false;
	for (size_t i = 1; i <= len; i++) {
		if (i < len && (word[i] <= ' ' || word[i] > '~'))
			return false;
		if (i < len && word[i] != '/') {
			part++;
			continue;
		}
		if (part <= 2 && memcmp(word + i - part, "..", part) == 0)
			return false;
		part = 0;
	}
	return true;
}

static bool
is_user(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)word[i];

		if (!isalpha(c) && c != '_' && (i == 0 || (!isdigit(c) && c != '-' && c != '.')))
			return false;
	}
	return len > 0;
}

/* NAME, NAME:PORT, or a number of version 6 in brackets in the place of NAME. */
static bool
is_host(const char *word, size_t len)
{
	const char *end = word + len, *at = word;

	if (len > 0 && *at == '[') {
		while (++at < end && (isxdigit((unsigned char)*at) || *at == ':' || *at == '.'))
			;
		if (at == end || *at++ != ']')
			return false;
	} else {
		while (at < end && (isalnum((unsigned char)*at) || strchr("-._", *at)))
			at++;
	}
	if (at == word || at == end)
		return at != word;
	if (*at++ != ':' || at == end || end - at > 5)
		return false;
	while (at < end && isdigit((unsigned char)*at))
		at++;
	return at == end;
}

static bool
is_origin(const char *word, size_t len)
{
	size_t scheme = len > 7 && memcmp(word, "http://", 7) == 0 ? 7 :
			len > 8 && memcmp(word, "https://", 8) == 0 ? 8 : 0;

	return scheme && is_host(word + scheme, len - scheme);
}

/* Numbers only: a name could come to mean another machine. */
static bool
is_address(const char *word, size_t len)
{
	const char *port = memrchr(word, ':', len);
	bool six = len > 0 && word[0] == '[';
	char host[INET6_ADDRSTRLEN];
	unsigned char number[16];
	size_t host_len;

	if (!port || !is_host(word, len) || atoi(port + 1) > UINT16_MAX)
		return false;
	host_len = (size_t)(port - word) - (six ? 2 : 0);
	if (host_len >= sizeof(host) || (six && port[-1] != ']'))
		return false;
	memcpy(host, word + (six ? 1 : 0), host_len);
	host[host_len] = '\0';
	return inet_pton(six ? AF_INET6 : AF_INET, host, number) == 1;
}

/* RFC 9110, "token". */
static bool
is_header(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)word[i]) && !strchr("!#$%&'*+-.^_`|~", word[i]))
			return false;
	return len > 0;
}

/* It goes into headers and JSON between quotes as it is; RFC 9728 wants no fragment. */
static bool
is_uri(const char *word, size_t len)
{
	size_t scheme = len > 7 && memcmp(word, "http://", 7) == 0 ? 7 :
			len > 8 && memcmp(word, "https://", 8) == 0 ? 8 : 0;
	const char *path = scheme ? memchr(word + scheme, '/', len - scheme) : NULL;
	size_t host = path ? (size_t)(path - word) : len;

	for (size_t i = 0; i < len; i++)
		if (word[i] <= ' ' || word[i] > '~' || strchr("\"<>\\^`{|}#?", word[i]))
			return false;
	return scheme && is_host(word + scheme, host - scheme);
}

/* RFC 6749, "scope-token". */
static bool
is_scope(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (word[i] <= ' ' || word[i] > '~' || word[i] == '"' || word[i] == '\\')
			return false;
	return len > 0 && len <= 128;
}

static bool
is_rule(const char *word, size_t len)
{
	struct network_rule rule;

	return network_rule_parse(word, len, &rule) == 0;
}

static bool
is_range(const char *word, size_t len)
{
	struct network_range range;

	return network_range_parse(word, len, &range) == 0;
}

static bool
is_toolset(const char *word, size_t len)
{
	static const char *const sets[] = { "native", "exec-sandbox" };

	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		if (strlen(sets[i]) == len && memcmp(sets[i], word, len) == 0)
			return true;
	return false;
}

struct word_kind {
	bool (*fits)(const char *word, size_t len);
	const char *what;
};

/* Of strings, and of the words of lists. */
static const struct word_kind *
word_kind(const struct key *key)
{
	static const struct word_kind kinds[] = {
		[KEY_PATH] = { is_path, "an absolute path without blanks, \".\" or \"..\"" },
		[KEY_NAME] = { is_user, "a user name" },
		[KEY_ADDRESS] = { is_address,
				  "a numeric address and a port such as 127.0.0.1:8080" },
		[KEY_HEADER] = { is_header, "the name of a header" },
		[KEY_URI] = { is_uri, "http:// or https://, a host and a path, if need be," },
		[KEY_MODULES] = { is_module, "the name of a Python module" },
		[KEY_PATHS] = { is_path, "an absolute path without blanks, \".\" or \"..\"" },
		[KEY_HOSTS] = { is_host, "the name of a host, with or without a port" },
		[KEY_ORIGINS] = { is_origin, "http:// or https:// and the name of a host, "
				  "with or without a port" },
		[KEY_SCOPES] = { is_scope, "a scope" },
		[KEY_RULES] = { is_rule, "HOST, .SUFFIX or *, with or without :PORT" },
		[KEY_RANGES] = { is_range, "an address, or one with /BITS and nothing set "
				 "behind them" },
		[KEY_TOOLSETS] = { is_toolset, "native or exec-sandbox" },
	};

	return &kinds[key->kind];
}

static bool
is_string(const struct key *key, const char *value, size_t len)
{
	/* What may be left out is what is not there by itself. */
	return len ? word_kind(key)->fits(value, len) : *key->standard == '\0';
}

static int
set_string(const struct key *key, void *base, const char *value, struct why *why_r)
{
	char **slot = (char **)((char *)base + key->offset);
	size_t len = strlen(value);

	if (len > key->most || !is_string(key, value, len))
		return why_say(why_r, -EINVAL, key->name,
			       "\"%.40s\" is not %s of at most %" PRIu64 " bytes", value,
			       word_kind(key)->what, key->most);
	free(*slot);
	*slot = len ? copy_of(value, len) : NULL;
	return 0;
}

static void
clear_list(struct config_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->item[i]);
	memset(list, 0, sizeof(*list));
}

static int
add_word(const struct key *key, struct config_list *list, const char *word, size_t len,
	 struct why *why_r)
{
	if (!word_kind(key)->fits(word, len))
		return why_say(why_r, -EINVAL, key->name, "\"%.*s\" is not %s",
			       len > 40 ? 40 : (int)len, word, word_kind(key)->what);
	if (list->n >= key->most)
		return why_say(why_r, -EINVAL, key->name, "more than %" PRIu64 " words",
			       key->most);
	list->item[list->n++] = copy_of(word, len);
	return 0;
}

static int
set_list(const struct key *key, void *base, const char *value, bool more, struct why *why_r)
{
	struct config_list *list = (struct config_list *)((char *)base + key->offset);
	static const char between[] = " \t,";

	if (!more)
		clear_list(list);
	for (value += strspn(value, between); *value; value += strspn(value, between)) {
		size_t len = strcspn(value, between);
		int r = add_word(key, list, value, len, why_r);

		if (r < 0)
			return r;
		value += len;
	}
	return 0;
}

static int
set_bool(const struct key *key, void *base, const char *value, struct why *why_r)
{
	bool yes = strcmp(value, "yes") == 0;

	if (!yes && strcmp(value, "no") != 0)
		return why_say(why_r, -EINVAL, key->name, "\"%.40s\" is neither yes nor no",
			       value);
	*(bool *)((char *)base + key->offset) = yes;
	return 0;
}

int
key_set(const struct key *key, void *base, const char *value, bool more, struct why *why_r)
{
	switch (key->kind) {
	case KEY_U32:
	case KEY_U64:
	case KEY_BYTES:
		return set_number(key, base, value, why_r);
	case KEY_PATH:
	case KEY_NAME:
	case KEY_ADDRESS:
	case KEY_HEADER:
	case KEY_URI:
		return set_string(key, base, value, why_r);
	case KEY_BOOL:
		return set_bool(key, base, value, why_r);
	case KEY_MODULES:
	case KEY_PATHS:
	case KEY_HOSTS:
	case KEY_ORIGINS:
	case KEY_SCOPES: case KEY_RULES: case KEY_RANGES:
	case KEY_TOOLSETS:
		return set_list(key, base, value, more, why_r);
	}
	return -EINVAL;
}

void
key_clear(const struct key *key, void *base)
{
	void *slot = (char *)base + key->offset;

	if (key_is_list(key)) {
		clear_list(slot);
	} else if (key->kind == KEY_PATH || key->kind == KEY_NAME ||
		   key->kind == KEY_ADDRESS || key->kind == KEY_HEADER ||
		   key->kind == KEY_URI) {
		free(*(char **)slot);
		*(char **)slot = NULL;
	}
}

/* ---- printing ---- */

static void
print_bytes(uint64_t bytes, FILE *out)
{
	const char *suffix = "";

	if (bytes && bytes % GiB == 0) {
		bytes /= GiB;
		suffix = "G";
	} else if (bytes && bytes % MiB == 0) {
		bytes /= MiB;
		suffix = "M";
	} else if (bytes && bytes % KiB == 0) {
		bytes /= KiB;
		suffix = "K";
	}
	fprintf(out, "%" PRIu64 "%s", bytes, suffix);
}

/* In lines of a readable length; the reader of a line has its bound too. */
static void
print_list(const struct config_list *list, FILE *out)
{
	size_t column = 16;

	for (size_t i = 0; i < list->n; i++) {
		size_t len = strlen(list->item[i]);

		if (column > 8 && column + 1 + len > 80) {
			fputs("\n\t", out);
			column = 8;
		} else if (i > 0) {
			fputc(' ', out);
			column++;
		}
		fputs(list->item[i], out);
		column += len;
	}
}

void
key_print(const struct key *key, const void *base, FILE *out)
{
	const void *slot = (const char *)base + key->offset;
	const char *text;

	fprintf(out, "%s = ", key->name);
	switch (key->kind) {
	case KEY_U32:
		fprintf(out, "%" PRIu64, *(const uint32_t *)slot / key->unit);
		break;
	case KEY_U64:
		fprintf(out, "%" PRIu64, *(const uint64_t *)slot / key->unit);
		break;
	case KEY_BYTES:
		print_bytes(*(const uint64_t *)slot, out);
		break;
	case KEY_PATH:
	case KEY_NAME:
	case KEY_ADDRESS:
	case KEY_HEADER:
	case KEY_URI:
		text = *(char *const *)slot;
		fputs(text ? text : "", out);
		break;
	case KEY_BOOL:
		fputs(*(const bool *)slot ? "yes" : "no", out);
		break;
	case KEY_MODULES:
	case KEY_PATHS:
	case KEY_HOSTS:
	case KEY_ORIGINS:
	case KEY_SCOPES: case KEY_RULES: case KEY_RANGES:
	case KEY_TOOLSETS:
		print_list(slot, out);
		break;
	}
	fputc('\n', out);
}
