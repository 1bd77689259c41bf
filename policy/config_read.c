/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before it drops privilege.   Owns: a config and its strings.
 * This file judges lines, sections and repeated keys; keys.c judges values; inih splits lines. */
#include "policy/config.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config_parts.h"
#include "policy/keys.h"
#include "policy/words.h"

#define SECTION_MAX 184		/* slightly less than the longest line */
#define PROFILE_PREFIX "profile "
#define INTERPRETER_PREFIX "interpreter "
#define TOOLS_PREFIX "tools "
#define SECRET_PREFIX "secret "
#define TENANT_PREFIX "tenant "

/* The state of reading one file. */
struct reading {
	struct config *config;
	const char *path;
	FILE *file, *errors;
	unsigned int line;	/* the current line */
	unsigned int mistakes;
	int error;		/* an error of the file itself */

	const char *section;	/* a name in the table; NULL: unknown, its keys are skipped */
	size_t instance;	/* its number, if it is one of several: [profile NAME] */
	struct config_tenant *tenant;	/* the tenant, in section "tenant" */
	struct config *scratch;	/* a configuration on which tenants' values are tried */
	const struct key *key;	/* the key that a further line would continue; NULL: the key was
				 * wrong */
	bool any_section;
	bool any_key;		/* in this section: inih has something to continue */
	bool continues;		/* the current line continues a value */
	unsigned int seen[CONFIG_PROFILES_MAX][KEYS_MAX];	/* the line of each key, by
								 * instance and row */
};

/* ---- a config ---- */

bool
config_sections(const struct config *config, size_t i, struct config_section *section_r)
{
	const struct config_section sections[] = {
		{ "interpreter", (char *)config->interpreter, sizeof(config->interpreter[0]),
		  config->n_interpreters },
		{ "profile", (char *)config->profile, sizeof(config->profile[0]),
		  config->n_profiles },
		{ "tools", (char *)config->tools, sizeof(config->tools[0]), config->n_tools },
		{ "secret", (char *)config->secret, sizeof(config->secret[0]), config->n_secrets },
	};

	_Static_assert(CONFIG_TOOLS_MAX <= CONFIG_PROFILES_MAX &&
		       CONFIG_SECRETS_MAX <= CONFIG_PROFILES_MAX &&
		       CONFIG_INTERPRETERS_MAX <= CONFIG_PROFILES_MAX,
		       "struct reading has room for each");
	if (i >= sizeof(sections) / sizeof(sections[0]))
		return false;
	*section_r = sections[i];
	return true;
}

/* Sets the keys of a section to their defaults. section NULL: of all sections that exist only
 * once. */
static void
set_standards(const char *section, void *base)
{
	const struct key *key;

	for (size_t i = 0; (key = key_at(i)); i++) {
		int r = 0;

		if (section ? strcmp(key->section, section) == 0 : !key_is_named(key))
			r = key_set(key, base, key->standard, false, NULL);
		assert(r == 0);
	}
}

static struct config_profile *
add_profile(struct config *config, const char *name)
{
	struct config_profile *profile = &config->profile[config->n_profiles++];

	set_standards("profile", profile);
	assert(strlen(name) < sizeof(profile->name));
	memcpy(profile->name, name, strlen(name) + 1);
	return profile;
}

struct config *
config_new(void)
{
	struct config *config = xcalloc(1, sizeof(*config));

	config->origin = xcalloc(1, sizeof(*config->origin));
	config->origin->holders = 1;
	set_standards(NULL, config);
	/* no cap: clients cannot ask for these, and the table's ranges bound them */
	config->limits.cap.output_bytes = UINT64_MAX;
	config->limits.cap.output_total = UINT64_MAX;
	add_profile(config, "basic");
	return config;
}

static void
add_tools(struct config *config, const char *name)
{
	struct config_tools *tools = &config->tools[config->n_tools++];

	set_standards("tools", tools);
	assert(strlen(name) < sizeof(tools->name));
	memcpy(tools->name, name, strlen(name) + 1);
}

uint64_t
config_disk_bytes(const struct config *config, const struct config_profile *profile)
{
	uint64_t bytes = profile->disk_bytes > 0 ? profile->disk_bytes
						 : config->limits.cap.memory_bytes;

	return bytes > DISK_BYTES_MIN ? bytes : DISK_BYTES_MIN;
}

const struct config_profile *
config_find_profile(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->n_profiles; i++)
		if (strcmp(config->profile[i].name, name) == 0)
			return &config->profile[i];
	return NULL;
}

const struct config_interpreter *
config_interpreter_of(const struct config *config, const struct config_profile *profile)
{
	for (size_t i = 0; profile->interpreter && i < config->n_interpreters; i++)
		if (strcmp(config->interpreter[i].name, profile->interpreter) == 0)
			return &config->interpreter[i];
	return NULL;
}

/* ---- reading ---- */

static void config_mistake(struct reading *reading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints FILE:LINE: and the sentence. The bytes of the file that it quotes are made harmless. */
static void
config_mistake(struct reading *reading, const char *format, ...)
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

/* The sections of the table, as "[service], [http], ". */
static const char *
known_sections(char *text, size_t size)
{
	const char *last = "";
	const struct key *key;
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; (key = key_at(i)); i++) {
		if (strcmp(key->section, last) == 0 || key_is_named(key))
			continue;
		last = key->section;
		len += (size_t)snprintf(text + len, size - len, "[%s], ", last);
		assert(len < size);
	}
	return text;
}

static void
enter_profile(struct reading *reading, const char *name)
{
	struct config *config = reading->config;
	size_t p = 0;

	if (!is_profile_name(name)) {
		config_mistake(reading, "[profile %s]: a profile's name is made of letters, digits, "
			       "\"_\", \"-\" and \".\"", name);
		return;
	}
	if (strlen(name) >= sizeof(config->profile[0].name)) {
		config_mistake(reading, "[profile %s]: a profile's name has at most %zu bytes", name,
			       sizeof(config->profile[0].name) - 1);
		return;
	}
	while (p < config->n_profiles && strcmp(config->profile[p].name, name) != 0)
		p++;
	if (p == CONFIG_PROFILES_MAX) {
		config_mistake(reading, "[profile %s]: there can be at most %d profiles", name,
			       CONFIG_PROFILES_MAX);
		return;
	}
	if (p == config->n_profiles)
		add_profile(config, name);
	reading->section = "profile";
	reading->instance = p;
}

static void
enter_interpreter(struct reading *reading, const char *name)
{
	struct config *config = reading->config;
	struct config_interpreter *next = &config->interpreter[config->n_interpreters];
	size_t i = 0;

	if (!is_profile_name(name) || strlen(name) >= sizeof(config->interpreter[0].name)) {
		config_mistake(reading, "[interpreter %s]: the name is made of letters, digits, \"_\", "
			       "\"-\" and \".\", at most %zu of them", name,
			       sizeof(config->interpreter[0].name) - 1);
		return;
	}
	while (i < config->n_interpreters && strcmp(config->interpreter[i].name, name) != 0)
		i++;
	if (i == CONFIG_INTERPRETERS_MAX) {
		config_mistake(reading, "[interpreter %s]: there can be at most %d interpreters", name,
			       CONFIG_INTERPRETERS_MAX);
		return;
	}
	if (i == config->n_interpreters) {
		set_standards("interpreter", next);
		memcpy(next->name, name, strlen(name) + 1);
		config->n_interpreters++;
	}
	reading->section = "interpreter";
	reading->instance = i;
}

static void
enter_tools(struct reading *reading, const char *name)
{
	struct config *config = reading->config;
	size_t t = 0;

	if (!word_is_tool_server(name, strlen(name))) {
		config_mistake(reading, "[tools %s]: the name of a server is made of a-z, 0-9 and \"_\", "
			       "begins with a letter, and is none of search, describe, servers", name);
		return;
	}
	while (t < config->n_tools && strcmp(config->tools[t].name, name) != 0)
		t++;
	if (t == CONFIG_TOOLS_MAX) {
		config_mistake(reading, "[tools %s]: there can be at most %d servers", name,
			       CONFIG_TOOLS_MAX);
		return;
	}
	if (t == config->n_tools)
		add_tools(config, name);
	reading->section = "tools";
	reading->instance = t;
}

static void
enter_secret(struct reading *reading, const char *name)
{
	struct config *config = reading->config;
	struct config_secret *next = &config->secret[config->n_secrets];
	size_t s = 0;

	if (!is_profile_name(name) || strlen(name) >= sizeof(next->name)) {
		config_mistake(reading, "[secret %s]: the name is made of letters, digits, \"_\", "
			       "\"-\" and \".\", at most %zu of them", name, sizeof(next->name) - 1);
		return;
	}
	while (s < config->n_secrets && strcmp(config->secret[s].name, name) != 0)
		s++;
	if (s == CONFIG_SECRETS_MAX) {
		config_mistake(reading, "[secret %s]: there can be at most %d secrets", name,
			       CONFIG_SECRETS_MAX);
		return;
	}
	if (s == config->n_secrets) {
		set_standards("secret", next);
		memcpy(next->name, name, strlen(name) + 1);
		config->n_secrets++;
	}
	reading->section = "secret";
	reading->instance = s;
}

static void
enter_tenant(struct reading *reading, const char *name)
{
	if (!word_is_subject(name, strlen(name))) {
		config_mistake(reading, "[tenant %s]: a tenant is uid:NUMBER, user:NAME, group:NAME, "
			       "token:NAME or sub:NAME", name);
		return;
	}
	reading->tenant = config_tenant_find(reading->config, name);
	if (!reading->tenant) {
		config_mistake(reading, "[tenant %s]: there can be at most %d tenants", name,
			       TENANTS_MAX);
		return;
	}
	reading->section = "tenant";
}

/* line: "[...", without blanks around it. */
static void
enter_section(struct reading *reading, const char *line)
{
	size_t len = strlen(line);
	char name[SECTION_MAX + 1], sections[256];
	const struct key *key;

	reading->section = NULL;
	reading->tenant = NULL;
	reading->instance = 0;
	reading->key = NULL;
	reading->any_section = true;
	reading->any_key = false;
	if (line[len - 1] != ']' || strchr(line, ']') != line + len - 1) {
		config_mistake(reading, "a section is one [NAME] alone on its line");
		return;
	}
	if (len - 2 > SECTION_MAX) {
		config_mistake(reading, "the name of a section has at most %d bytes", SECTION_MAX);
		return;
	}
	memcpy(name, line + 1, len - 2);
	name[len - 2] = '\0';

	if (strncmp(name, PROFILE_PREFIX, sizeof(PROFILE_PREFIX) - 1) == 0) {
		enter_profile(reading, name + sizeof(PROFILE_PREFIX) - 1);
		return;
	}
	if (strncmp(name, INTERPRETER_PREFIX, sizeof(INTERPRETER_PREFIX) - 1) == 0) {
		enter_interpreter(reading, name + sizeof(INTERPRETER_PREFIX) - 1);
		return;
	}
	if (strncmp(name, TOOLS_PREFIX, sizeof(TOOLS_PREFIX) - 1) == 0) {
		enter_tools(reading, name + sizeof(TOOLS_PREFIX) - 1);
		return;
	}
	if (strncmp(name, SECRET_PREFIX, sizeof(SECRET_PREFIX) - 1) == 0) {
		enter_secret(reading, name + sizeof(SECRET_PREFIX) - 1);
		return;
	}
	if (strncmp(name, TENANT_PREFIX, sizeof(TENANT_PREFIX) - 1) == 0) {
		enter_tenant(reading, name + sizeof(TENANT_PREFIX) - 1);
		return;
	}
	for (size_t i = 0; (key = key_at(i)); i++)
		if (strcmp(key->section, name) == 0 && !key_is_named(key))
			reading->section = key->section;
	if (!reading->section)
		config_mistake(reading, "[%s]: unknown section; right are %s[profile NAME], "
			       "[interpreter NAME], [tools NAME], [secret NAME] and [tenant WHO]", name, known_sections(sections, sizeof(sections)));
}

/* Judges a line before inih reads it. False: inih must not read it. */
static bool
judge_line(struct reading *reading, char *line)
{
	const char *text = line + strspn(line, " \t");

	reading->continues = false;
	if (*text == '\0' || *text == ';' || *text == '#')
		return true;
	if (text != line) {
		if (!reading->any_key)
			config_mistake(reading, "a line that begins with a blank continues a list, "
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
		config_mistake(reading, "neither [SECTION] nor KEY = VALUE");
		return false;
	}
	return true;
}

/* Reads one line into at most size bytes, without its line break. False at the end of the file. */
static bool
config_read_line(struct reading *reading, char *line, int size)
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
		config_mistake(reading, "the line is longer than %d bytes; a list goes on in lines that "
			       "begin with a blank", size - 1);
	else
		config_mistake(reading, "the line holds a control character");
	reading->key = NULL;
	line[0] = '\0';
	return true;
}

/* inih's source of lines, as fgets(). A refused line is passed on as an empty one. */
static char *
config_next_line(char *line, int size, void *arg)
{
	struct reading *reading = arg;

	if (!config_read_line(reading, line, size - 1))
		return NULL;
	if (!judge_line(reading, line))
		line[0] = '\0';
	strcat(line, "\n");
	return line;
}

static struct config_said
config_here(const struct reading *reading)
{
	return (struct config_said){ .file = (unsigned int)reading->config->origin->n_files - 1,
				     .line = reading->line };
}

/* The struct of the section being read, such as [profile NAME]. key: a key of such a section. */
static void *
instance_of(const struct reading *reading, const struct key *key)
{
	struct config_section section;
	size_t i = 0;

	while (config_sections(reading->config, i, &section) &&
	       strcmp(section.section, key->section) != 0)
		i++;
	return section.first + reading->instance * section.size;
}

static void
set_value(struct reading *reading, const char *value)
{
	const struct key *key = reading->key;
	struct config_setting setting = { .text = (char *)value, .said = config_here(reading),
					  .more = reading->continues };
	void *base = reading->config;
	bool more = reading->continues || (key->flags & KEY_ADDS);
	struct why why;

	if (reading->tenant) {
		base = reading->scratch;
		more = reading->continues;
	} else if (key_is_named(key)) {
		base = instance_of(reading, key);
	}
	if (key_set(key, base, value, more, &why) < 0) {
		config_mistake(reading, "%s: %s", key->name, why.text);
		reading->key = NULL;
		return;
	}
	setting.row = (size_t)key_find(key->section, key->name);
	if (reading->tenant)
		config_tenant_say(reading->tenant, &setting);
	else
		reading->config->origin->said[setting.row] = setting.said;
}

/* The row of a tenant's key, SECTION.NAME, or < 0. */
static int
find_tenant_key(struct reading *reading, const char *name)
{
	const char *dot = strchr(name, '.');
	char section[32];
	int row = -ENOENT;

	if (dot && (size_t)(dot - name) < sizeof(section)) {
		memcpy(section, name, (size_t)(dot - name));
		section[dot - name] = '\0';
		row = key_find(section, dot + 1);
	}
	if (row < 0 || key_is_named(key_at((size_t)row))) {
		config_mistake(reading, "%s: unknown key; a tenant's are SECTION.KEY, such as "
			       "limits.timeout_max", name);
		return -ENOENT;
	}
	if (!(key_at((size_t)row)->flags & KEY_OF_TENANT)) {
		config_mistake(reading, "%s: is the same for all tenants", name);
		return -EINVAL;
	}
	return row;
}

static int
find_row(struct reading *reading, const char *name)
{
	int row;

	if (reading->tenant)
		return find_tenant_key(reading, name);
	row = key_find(reading->section, name);
	if (row < 0)
		config_mistake(reading, "%s: unknown key in [%s]", name, reading->section);
	return row;
}

/* The earlier line of this file that sets the same key; 0: none. */
static unsigned int
said_before(struct reading *reading, size_t row)
{
	unsigned int *seen = &reading->seen[reading->instance][row], line = *seen;
	struct config_said said = config_here(reading);

	if (!reading->tenant) {
		if (!line)
			*seen = reading->line;
		return line;
	}
	for (size_t i = 0; i < reading->tenant->n_settings; i++)
		if (reading->tenant->setting[i].row == row &&
		    reading->tenant->setting[i].said.file == said.file)
			return reading->tenant->setting[i].said.line;
	return 0;
}

/* inih's callback, for KEY = VALUE and for each line that continues a value. */
static int
on_value(void *arg, const char *section, const char *name, const char *value)
{
	struct reading *reading = arg;
	unsigned int before;
	int row;

	(void)section;		/* cut if it is long; judge_line() has seen the whole name */
	reading->any_key = true;
	if (reading->continues) {
		if (reading->key && !key_is_list(reading->key)) {
			config_mistake(reading, "%s: the value is one line", reading->key->name);
			reading->key = NULL;
		}
		if (reading->key)
			set_value(reading, value);
		return 1;
	}
	if (!reading->section) {
		if (!reading->any_section)
			config_mistake(reading, "%s: stands before any [SECTION]", name);
		return 1;
	}
	row = find_row(reading, name);
	if (row < 0)
		return 1;
	before = said_before(reading, (size_t)row);
	if (before) {
		config_mistake(reading, "%s: said twice, first in line %u", name, before);
		return 1;
	}
	reading->key = key_at((size_t)row);
	set_value(reading, value);
	return 1;
}

static void
add_file(struct config_origin *origin, const char *path)
{
	origin->file = xrealloc(origin->file, (origin->n_files + 1) * sizeof(*origin->file));
	origin->file[origin->n_files++] = xstrdup(path);
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
	add_file(config->origin, path);
	reading.scratch = config_new();
	r = ini_parse_stream(config_next_line, &reading, on_value, &reading);
	config_free(reading.scratch);
	fclose(reading.file);
	if (reading.error < 0)
		return reading.error;
	if (r > 0 && reading.mistakes == 0) {
		reading.line = (unsigned int)r;
		config_mistake(&reading, "not understood");
	}
	if (r < 0)
		return -ENOMEM;
	return reading.mistakes ? -EINVAL : 0;
}

static int
is_conf(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 5 &&
	       strcmp(entry->d_name + len - 5, ".conf") == 0;
}

static int
config_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int
config_read_directory(struct config *config, const char *path, FILE *errors)
{
	struct dirent **entry;
	int n = scandir(path, &entry, is_conf, config_by_name), result = 0;

	if (n < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		char *file;
		int r;

		file = xasprintf("%s/%s", path, entry[i]->d_name);
		r = config_read(config, file, errors);
		if (r < 0 && r != -EINVAL)
			fprintf(errors, "%s: %s\n", file, strerror(-r));
		result = r < 0 ? -EINVAL : result;
		free(file);
		free(entry[i]);
	}
	free(entry);
	return result;
}
