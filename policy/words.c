/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before it drops privilege.   Owns: nothing.
 * Reads:   words that an administrator wrote: trusted, but perhaps mistaken. */
#include "policy/words.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/network.h"
#include "policy/requirement.h"

#define UNIX_PATH_MAX 108	/* bytes of a socket's path, with NUL */

/* A dotted name, as in an import statement. */
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

/* Absolute, printable ASCII without blanks, no component empty, "." or "..": the path in the
 * jail is the one that was written. */
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

/* NAME, NAME:PORT, or an IPv6 address in brackets instead of NAME. */
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

/* Numbers only: a name could later mean another machine. */
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

/* A URI that can be copied into headers and JSON strings unchanged; RFC 9728 allows no fragment. */
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

/* unix:PATH or unix:PATH:TARGET, with the request's target ("/mcp" if not given), or a URI. */
static bool
is_server_url(const char *word, size_t len)
{
	const char *path, *target, *end = word + len;

	if (len <= 5 || memcmp(word, "unix:", 5) != 0)
		return is_uri(word, len);
	path = word + 5;
	target = memchr(path, ':', len - 5);
	if (!is_path(path, (size_t)((target ? target : end) - path)) ||
	    (target ? target : end) - path >= UNIX_PATH_MAX)
		return false;
	for (const char *at = target; at && at < end; at++)
		if (strchr("\"<>\\^`{|}#", *at))
			return false;
	return !target || (end - target > 1 && target[1] == '/');
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

/* Numbers with dots between them. */
static bool
words_is_version(const char *word, size_t len)
{
	bool digit = false;

	for (size_t i = 0; i < len; i++) {
		if (word[i] != '.' ? !isdigit((unsigned char)word[i]) : !digit)
			return false;
		digit = word[i] != '.';
	}
	return digit;
}

static bool
is_toolset(const char *word, size_t len)
{
	static const char *const sets[] = { "native", "exec-sandbox", "python-sandbox", "run-python" };

	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		if (strlen(sets[i]) == len && memcmp(sets[i], word, len) == 0)
			return true;
	return false;
}

bool
word_is_subject(const char *word, size_t len)
{
	static const char *const prefixes[] = { "uid:", "user:", "group:", "token:", "sub:" };
	size_t prefix = 0;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (len > strlen(prefixes[i]) &&
		    memcmp(word, prefixes[i], strlen(prefixes[i])) == 0)
			prefix = strlen(prefixes[i]);
	for (size_t i = prefix; i < len; i++)
		if (word[i] <= ' ' || word[i] > '~' ||
		    (prefix == 4 && word[0] == 'u' && !isdigit((unsigned char)word[i])))
			return false;
	return prefix > 0;
}

static bool
is_who(const char *word, size_t len)
{
	return (len == 4 && memcmp(word, "self", 4) == 0) || word_is_subject(word, len);
}

/* NAME, NAME>=1,<2, or * for every package. */
static bool
is_package(const char *word, size_t len)
{
	struct requirement requirement;
	bool right;

	if (len == 1 && *word == '*')
		return true;
	if (memchr(word, '@', len) || memchr(word, ';', len) || memchr(word, '[', len) ||
	    requirement_read(word, len, &requirement) < 0)
		return false;
	right = !requirement.url && !requirement.marker;
	requirement_done(&requirement);
	return right;
}

static bool
is_profile(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)word[i]) && !strchr("_-.", word[i]))
			return false;
	return len > 0 && len <= 64;
}

static bool
is_secret(const char *word, size_t len)
{
	return (len == 1 && *word == '*') || is_profile(word, len);
}

static bool
is_target(const char *word, size_t len)
{
	struct network_target target;

	return network_target_parse(word, len, 443, &target) == 0;
}

static bool
is_argument(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (word[i] <= ' ' || word[i] > '~')
			return false;
	return len > 0;
}

bool
word_is_tool_server(const char *word, size_t len)
{
	static const char *const taken[] = { "search", "describe", "servers", "client" };

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (strlen(taken[i]) == len && memcmp(taken[i], word, len) == 0)
			return false;
	for (size_t i = 0; i < len; i++)
		if (!islower((unsigned char)word[i]) &&
		    (i == 0 || (!isdigit((unsigned char)word[i]) && word[i] != '_')))
			return false;
	return len > 0 && len <= 64;
}

static bool
is_tool_server(const char *word, size_t len)
{
	return (len == 1 && *word == '*') || (len == 6 && memcmp(word, "client", 6) == 0) ||
	       word_is_tool_server(word, len);
}

/* A pattern has the characters of tools' names, * and ?. */
static bool
is_tool_pattern(const char *word, size_t len)
{
	const char *dot = memchr(word, '.', len);
	size_t server = dot ? (size_t)(dot - word) : len;

	for (size_t i = server + 1; i < len; i++)
		if (!isalnum((unsigned char)word[i]) && !strchr("_-./:*?", word[i]))
			return false;
	return len > server + 1 && is_tool_server(word, server);
}

const struct word_kind *
word_kind(enum key_kind kind)
{
	static const struct word_kind kinds[] = {
		[KEY_PATH] = { is_path, "an absolute path without blanks, \".\" or \"..\"" },
		[KEY_NAME] = { is_user, "a user name" },
		[KEY_ADDRESS] = { is_address,
				  "a numeric address and a port such as 127.0.0.1:8080" },
		[KEY_HEADER] = { is_header, "the name of a header" },
		[KEY_URI] = { is_uri, "http:// or https://, a host and a path, if need be," },
		[KEY_SERVER_URL] = { is_server_url, "http:// or https://, a host and a path, or "
				     "unix:PATH or unix:PATH:/TARGET" },
		[KEY_MODULES] = { is_module, "the name of a Python module" },
		[KEY_PATHS] = { is_path, "an absolute path without blanks, \".\" or \"..\"" },
		[KEY_HOSTS] = { is_host, "the name of a host, with or without a port" },
		[KEY_ORIGINS] = { is_origin, "http:// or https:// and the name of a host, "
				  "with or without a port" },
		[KEY_SCOPES] = { is_scope, "a scope" },
		[KEY_VERSION] = { words_is_version, "a version such as 3.11" },
		[KEY_RULES] = { is_rule, "HOST, .SUFFIX or *, with or without :PORT" },
		[KEY_RANGES] = { is_range, "an address, or one with /BITS and nothing set "
				 "behind them" },
		[KEY_TOOLSETS] = { is_toolset, "native, exec-sandbox, python-sandbox or run-python" },
		[KEY_WHO] = { is_who, "uid:NUMBER, user:NAME, group:NAME, token:NAME, "
			      "sub:NAME or self" },
		[KEY_PACKAGES] = { is_package, "the name of a package, with or without "
				   "versions such as >=1,<2" },
		[KEY_URIS] = { is_uri, "http:// or https://, a host and a path, if need be" },
		[KEY_COMMAND] = { is_argument, "a word of printable ASCII" },
		[KEY_SERVERS] = { is_tool_server, "the name of a [tools NAME], client, or *" },
		[KEY_ID] = { is_argument, "a word of printable ASCII" },
		[KEY_SECRETS] = { is_secret, "the name of a [secret NAME], or *" },
		[KEY_TARGET] = { is_target, "HOST or HOST:PORT" },
		[KEY_TOOLS] = { is_tool_pattern, "SERVER.TOOL such as github.list_*" },
		[KEY_WORD] = { is_profile, "a word of letters, digits, \"_\", \"-\" and \".\"" },
		[KEY_PROFILES] = { is_profile, "the name of a profile" },
	};

	return &kinds[kind];
}
