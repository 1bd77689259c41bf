/* Runs in: the supervisor, before it gives up anything.   Owns: a config and its strings.
 * Lines, sections and repeated keys are judged here, values in keys.c; inih splits lines. */
#include "policy/config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <ini.h>

#include "policy/keys.h"
#include "policy/why.h"

#define KEYS_MAX 128		/* rows in keys.c, for what was seen in a file */
#define SECTION_MAX 48		/* inih cuts longer ones without a word */
#define PROFILE_PREFIX "profile "

/* All but the profiles', in the order in which they are printed. */
static const char *const sections[] = {
	"service", "http", "auth", "mcp", "exec-sandbox", "pool", "repl", "limits", "network",
};

/* One file on its way in. */
struct reading {
	struct config *config;
	const char *path;
	FILE *file, *errors;
	unsigned int line;	/* the one in hand */
	unsigned int mistakes;
	int error;		/* of the file itself */

	const char *section;	/* of the table; NULL: unknown, its keys are passed over */
	size_t profile;		/* which, in section "profile" */
	const struct key *key;	/* that a further line would continue; NULL: a wrong one */
	bool any_section;
	bool any_key;		/* in this section: inih has something to continue */
	bool continues;		/* the line in hand is a further line */
	unsigned int seen[CONFIG_PROFILES_MAX][KEYS_MAX];	/* line, by profile and row */
};

/* ---- a config ---- */

static void
set_standards(const char *section, void *base)
{
	const struct key *key;

	for (size_t i = 0; (key = key_at(i)); i++) {
		int r = 0;

		if ((strcmp(key->section, "profile") == 0) == (section != NULL))
			r = key_set(key, base, key->standard, false, NULL);
		assert(r == 0);
	}
}

static struct config_profile *
add_profile(struct config *config, const char *name)
{
	struct config_profile *profile = &config->profile[config->n_profiles++];

	set_standards("profile", profile);
	snprintf(profile->name, sizeof(profile->name), "%s", name);
	return profile;
}

struct config *
config_new(void)
{
	struct config *config = calloc(1, sizeof(*config));

	if (!config)
		abort();
	set_standards(NULL, config);
	/* no client can ask for these, so that nothing but the rows bounds them */
	config->limits.cap.output_bytes = UINT64_MAX;
	config->limits.cap.output_total = UINT64_MAX;
	add_profile(config, "basic");
	return config;
}

void
config_free(struct config *config)
{
	const struct key *key;

	if (!config)
		return;
	for (size_t i = 0; (key = key_at(i)); i++) {
		if (strcmp(key->section, "profile") != 0) {
			key_clear(key, config);
			continue;
		}
		for (size_t p = 0; p < config->n_profiles; p++)
			key_clear(key, &config->profile[p]);
	}
	free(config->mcp.toolsets_at);
	free(config);
}

const struct config_profile *
config_find_profile(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->n_profiles; i++)
		if (strcmp(config->profile[i].name, name) == 0)
			return &config->profile[i];
	return NULL;
}

/* ---- reading ---- */

static void mistake(struct reading *reading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints FILE:LINE: and the sentence, in which a file's own bytes are made harmless. */
static void
mistake(struct reading *reading, const char *format, ...)
{
	char text[640];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	fprintf(reading->errors, "%s:%u: %s\n", reading->path, reading->line, text);
	reading->mistakes++;
}

static bool
is_profile_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-' && *c != '.')
			return false;
	return *name != '\0';
}

static void
enter_profile(struct reading *reading, const char *name)
{
	struct config *config = reading->config;
	size_t p = 0;

	if (!is_profile_name(name)) {
		mistake(reading, "[profile %s]: a profile's name is made of letters, digits, "
			"\"_\", \"-\" and \".\"", name);
		return;
	}
	while (p < config->n_profiles && strcmp(config->profile[p].name, name) != 0)
		p++;
	if (p == CONFIG_PROFILES_MAX) {
		mistake(reading, "[profile %s]: there can be at most %d profiles", name,
			CONFIG_PROFILES_MAX);
		return;
	}
	if (p == config->n_profiles)
		add_profile(config, name);
	reading->section = "profile";
	reading->profile = p;
}

static void
refuse_section(struct reading *reading, const char *name)
{
	char right[256];
	size_t len = 0;

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		len += (size_t)snprintf(right + len, sizeof(right) - len, "%s[%s]",
					i ? ", " : "", sections[i]);
	assert(len < sizeof(right));
	mistake(reading, "[%s]: unknown section; right are %s and [profile NAME]", name, right);
}

/* line: "[...", without blanks around it. */
static void
enter_section(struct reading *reading, const char *line)
{
	size_t len = strlen(line);
	char name[SECTION_MAX + 1];
	const struct key *key;

	reading->section = NULL;
	reading->profile = 0;
	reading->key = NULL;
	reading->any_section = true;
	reading->any_key = false;
	if (line[len - 1] != ']' || strchr(line, ']') != line + len - 1) {
		mistake(reading, "a section is one [NAME] alone on its line");
		return;
	}
	if (len - 2 > SECTION_MAX) {
		mistake(reading, "the name of a section has at most %d bytes", SECTION_MAX);
		return;
	}
	memcpy(name, line + 1, len - 2);
	name[len - 2] = '\0';

	if (strncmp(name, PROFILE_PREFIX, sizeof(PROFILE_PREFIX) - 1) == 0) {
		enter_profile(reading, name + sizeof(PROFILE_PREFIX) - 1);
		return;
	}
	for (size_t i = 0; (key = key_at(i)); i++)
		if (strcmp(key->section, name) == 0 && strcmp(name, "profile") != 0)
			reading->section = key->section;
	if (!reading->section)
		refuse_section(reading, name);
}

/* Looks at a line before inih does. Whether inih may have it. */
static bool
judge_line(struct reading *reading, char *line)
{
	const char *text = line + strspn(line, " \t");

	reading->continues = false;
	if (*text == '\0' || *text == ';' || *text == '#')
		return true;
	if (text != line) {
		if (!reading->any_key)
			mistake(reading, "a line that begins with a blank continues a list, "
				"and there is none above it");
		reading->continues = reading->any_key;
		return reading->any_key;
	}
	if (*text == '[') {
		enter_section(reading, text);
		return true;
	}
	reading->key = NULL;
	if (text[strcspn(text, "=:")] == '\0') {
		mistake(reading, "neither [SECTION] nor KEY = VALUE");
		return false;
	}
	return true;
}

/* Reads one line into at most size bytes, without its end. False at the end of the file. */
static bool
read_line(struct reading *reading, char *line, int size)
{
	bool too_long = false, strange = false;
	int c, len = 0;

	while ((c = getc(reading->file)) != EOF && c != '\n') {
		if (c < ' ' && c != '\t' && c != '\r')
			strange = true;
		if (len == size - 1)
			too_long = true;
		else
			line[len++] = (char)c;
	}
	if (c == EOF && ferror(reading->file))
		reading->error = -errno;
	if (c == EOF && len == 0)
		return false;
	while (len > 0 && strchr(" \t\r", line[len - 1]))
		len--;
	line[len] = '\0';
	reading->line++;
	if (!too_long && !strange)
		return true;

	if (too_long)
		mistake(reading, "the line is longer than %d bytes", size - 1);
	else
		mistake(reading, "the line holds a control character");
	reading->key = NULL;
	line[0] = '\0';
	return true;
}

/* inih's source of lines: like fgets. What was refused is an empty line to it. */
static char *
next_line(char *line, int size, void *arg)
{
	struct reading *reading = arg;

	if (!read_line(reading, line, size - 1))
		return NULL;
	if (!judge_line(reading, line))
		line[0] = '\0';
	strcat(line, "\n");
	return line;
}

/* Which tools a set has is not known here: whoever finds two sets at odds names the line. */
static void
remember_toolsets(struct reading *reading)
{
	char **at = &reading->config->mcp.toolsets_at;

	free(*at);
	if (asprintf(at, "%s:%u", reading->path, reading->line) < 0)
		abort();
}

static void
set_value(struct reading *reading, const char *value)
{
	const struct key *key = reading->key;
	struct why why;
	void *base = reading->config;

	if (strcmp(key->section, "profile") == 0)
		base = &reading->config->profile[reading->profile];
	if (key_set(key, base, value, reading->continues, &why) < 0) {
		mistake(reading, "%s: %s", key->name, why.text);
		reading->key = NULL;
	} else if (key->kind == KEY_TOOLSETS && !reading->continues) {
		remember_toolsets(reading);
	}
}

/* inih's callback, for KEY = VALUE and for each line that continues one. */
static int
on_value(void *arg, const char *section, const char *name, const char *value)
{
	struct reading *reading = arg;
	unsigned int *seen;
	int row;

	(void)section;		/* cut when it is long; judge_line has seen it whole */
	reading->any_key = true;
	if (reading->continues) {
		if (reading->key && !key_is_list(reading->key)) {
			mistake(reading, "%s: the value is one line", reading->key->name);
			reading->key = NULL;
		}
		if (reading->key)
			set_value(reading, value);
		return 1;
	}
	if (!reading->section) {
		if (!reading->any_section)
			mistake(reading, "%s: stands before any [SECTION]", name);
		return 1;
	}
	row = key_find(reading->section, name);
	if (row < 0) {
		mistake(reading, "%s: unknown key in [%s]", name, reading->section);
		return 1;
	}
	seen = &reading->seen[reading->profile][row];
	if (*seen) {
		mistake(reading, "%s: said twice, first in line %u", name, *seen);
		return 1;
	}
	*seen = reading->line;
	reading->key = key_at((size_t)row);
	set_value(reading, value);
	return 1;
}

int
config_read(struct config *config, const char *path, FILE *errors)
{
	struct reading reading = { .config = config, .path = path, .errors = errors };
	int r;

	assert(!key_at(KEYS_MAX));
	reading.file = fopen(path, "re");
	if (!reading.file)
		return -errno;
	r = ini_parse_stream(next_line, &reading, on_value, &reading);
	fclose(reading.file);
	if (reading.error < 0)
		return reading.error;
	if (r > 0 && reading.mistakes == 0) {
		reading.line = (unsigned int)r;
		mistake(&reading, "not understood");
	}
	if (r < 0)
		return -ENOMEM;
	return reading.mistakes ? -EINVAL : 0;
}

/* ---- checking and printing ---- */

struct relation {
	const char *section, *small, *large;
	uint64_t a, b;
};

/* Half of what makes somebody known is worse than nothing. */
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
		fprintf(errors, "%s: [auth] %s: %s\n", path, rules[i].key, rules[i].text);
		r = -EINVAL;
	}
	return r;
}

bool
config_has_auth(const struct config *config)
{
	return config->auth.token_file || config->auth.jwks_file;
}

int
config_check(const struct config *config, const char *path, FILE *errors)
{
	const struct limits *standard = &config->limits.standard, *cap = &config->limits.cap;
	const struct relation relations[] = {
		/* clang-format off */
		{ "service", "sessions_per_tenant", "sessions_max",
		  config->service.sessions_per_tenant, config->service.sessions_max },
		{ "http", "connections_per_peer", "connections_max",
		  config->http.connections_per_peer, config->http.connections_max },
		{ "http", "sessions_per_tenant", "sessions_max",
		  config->http.sessions_per_tenant, config->http.sessions_max },
		{ "pool", "warm", "warm_max", config->pool.warm, config->pool.warm_max },
		{ "pool", "warm_max", "workers_max", config->pool.warm_max, config->pool.workers_max },
		{ "pool", "tenant_running_max", "workers_max",
		  config->pool.tenant_running_max, config->pool.workers_max },
		/* each worker has a uid of its own; the first of the range is the service's, the
		 * last one mcp-python-egress's */
		{ "pool", "workers_max", "subuid_count in [service], less 2",
		  config->pool.workers_max, config->service.subuid_count - 2 },
		{ "exec-sandbox", "default_timeout", "max_timeout",
		  config->exec_sandbox.default_timeout, config->exec_sandbox.max_timeout },
		{ "limits", "timeout_seconds", "timeout_max", standard->wall_ms, cap->wall_ms },
		{ "limits", "cpu_seconds", "cpu_max", standard->cpu_ms, cap->cpu_ms },
		{ "limits", "memory_mb", "memory_max_mb", standard->memory_bytes, cap->memory_bytes },
		{ "limits", "pids", "pids_max", standard->pids, cap->pids },
		{ "limits", "output_kb", "output_total_mb",
		  standard->output_bytes, standard->output_total },
		{ "network", "connections", "connections_max",
		  config->network.connections, config->network.connections_max },
		/* clang-format on */
	};
	int r = check_auth(config, path, errors);

	if (config->mcp.toolsets.n == 0) {
		fprintf(errors, "%s: [mcp] toolsets: names no set\n", path);
		r = -EINVAL;
	}
	for (size_t i = 0; i < sizeof(relations) / sizeof(relations[0]); i++) {
		const struct relation *relation = &relations[i];

		if (relation->a <= relation->b)
			continue;
		fprintf(errors, "%s: [%s] %s: is above %s\n", path, relation->section,
			relation->small, relation->large);
		r = -EINVAL;
	}
	return r;
}

static void
dump_section(const char *section, const void *base, FILE *out)
{
	const struct key *key;

	for (size_t i = 0; (key = key_at(i)); i++)
		if (strcmp(key->section, section) == 0)
			key_print(key, base, out);
}

void
config_dump(const struct config *config, FILE *out)
{
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		fprintf(out, "[%s]\n", sections[i]);
		dump_section(sections[i], config, out);
		fputc('\n', out);
	}
	for (size_t i = 0; i < config->n_profiles; i++) {
		fprintf(out, "%s[profile %s]\n", i ? "\n" : "", config->profile[i].name);
		dump_section("profile", &config->profile[i], out);
	}
}
