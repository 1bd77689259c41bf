/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before it drops privilege.   Owns: a config and its strings.
 * This file judges lines, sections and repeated keys; keys.c judges values; inih splits lines. */

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

static bool
is_plain_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_-.", name[i]))
			return false;
	return len > 0;
}

#define PLAIN_NAME is_plain_name, "letters, digits, \"_\", \"-\" and \".\""
#define ARRAY(member) \
	(char *)config->member, sizeof(config->member[0]), sizeof(config->member[0].name)
#define COUNT(member) config->member, (size_t *)&config->member

bool
config_sections(const struct config *config, size_t i, struct config_section *section_r)
{
	const struct config_section sections[] = {
		{ "interpreter", ARRAY(interpreter), COUNT(n_interpreters),
		  CONFIG_INTERPRETERS_MAX, "interpreters", PLAIN_NAME },
		{ "profile", ARRAY(profile), COUNT(n_profiles), CONFIG_PROFILES_MAX, "profiles",
		  PLAIN_NAME },
		{ "tools", ARRAY(tools), COUNT(n_tools), CONFIG_TOOLS_MAX, "servers",
		  word_is_tool_server, "a-z, 0-9 and \"_\", begins with a letter, and is not "
				       "search, describe, servers or client" },
		{ "secret", ARRAY(secret), COUNT(n_secrets), CONFIG_SECRETS_MAX, "secrets",
		  PLAIN_NAME },
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

/* Adds a section of a kind that has room for it. name: one that fits. */
static void
add_named(const struct config_section *kind, const char *name)
{
	char *at = kind->first + kind->size * kind->n;

	set_standards(kind->section, at);
	assert(strlen(name) < kind->name_size);
	memcpy(at, name, strlen(name) + 1);
	++*kind->count;
}

struct config *
config_new(void)
{
	struct config *config = xcalloc(1, sizeof(*config));
	struct config_section kind;

	config->origin = xcalloc(1, sizeof(*config->origin));
	config->origin->holders = 1;
	set_standards(NULL, config);
	/* no cap: clients cannot ask for these, and the table's ranges bound them */
	config->limits.cap.output_bytes = UINT64_MAX;
	config->limits.cap.output_total = UINT64_MAX;
	for (size_t i = 0; config_sections(config, i, &kind); i++)
		if (strcmp(kind.section, "profile") == 0)
			add_named(&kind, "basic");
	return config;
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

/* Enters a section of a kind that has names, which is made if it does not exist. */
static void
enter_named(struct reading *reading, const struct config_section *kind, const char *name)
{
	size_t i = 0;

	if (!kind->fits(name, strlen(name)) || strlen(name) >= kind->name_size) {
		config_mistake(reading, "[%s %s]: the name is made of %s; it has at most %zu bytes",
			       kind->section, name, kind->form, kind->name_size - 1);
		return;
	}
	while (i < kind->n && strcmp(kind->first + i * kind->size, name) != 0)
		i++;
	if (i == kind->most) {
		config_mistake(reading, "[%s %s]: there can be at most %zu %s", kind->section, name,
			       kind->most, kind->things);
		return;
	}
	if (i == kind->n)
		add_named(kind, name);
	reading->section = kind->section;
	reading->instance = i;
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
	struct config_section kind;
	const struct key *key;
	const char *blank;

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

	blank = strchr(name, ' ');
	for (size_t i = 0; blank && config_sections(reading->config, i, &kind); i++)
		if (strncmp(name, kind.section, (size_t)(blank - name)) == 0 &&
		    kind.section[blank - name] == '\0') {
			enter_named(reading, &kind, blank + 1);
			return;
		}
	if (strncmp(name, "tenant ", strlen("tenant ")) == 0) {
		enter_tenant(reading, name + strlen("tenant "));
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
