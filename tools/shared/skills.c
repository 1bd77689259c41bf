/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the skills, until the service ends.
 * Reads:   files of the administrator; of their YAML only what is the same text in any reader. */
#include "tools/shared/skills.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/jsonout.h"
#include "base/log.h"
#include "base/own.h"
#include "base/ownerfile.h"
#include "base/utf8.h"
#include "base/xalloc.h"
#include "mcp/jsonrpc.h"
#include "policy/chain.h"
#include "policy/config.h"
#include "tools/shared/skills_built_in.h"

#define SKILLS_MAX 64
#define SKILL_BYTES 65536
#define SKILL_NAME 64

static struct skill skills[SKILLS_MAX];
static size_t room;			/* for skills now: some is left for the built-in ones */
static struct skill_provider provider = { .skill = skills, .find = skills_find };

/* ---- the frontmatter ---- */

/* What a frontmatter may have, and how many characters. */
static const struct {
	const char *name;
	size_t most;
} keys[] = { { "name", SKILL_NAME }, { "description", 1024 }, { "license", 500 },
	     { "compatibility", 500 } };

#define N(array) (sizeof(array) / sizeof(*(array)))

/* Lower-case letters and digits, with single hyphens between them. */
static bool
is_skill_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= SKILL_NAME && name[0] != '-' && name[len - 1] != '-' &&
	       !strstr(name, "--") &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

/* Is the value a string in YAML, and the same as it stands there? */
static bool
is_plain(const char *value)
{
	static const char *const words[] = { "true", "false", "null", "yes", "no", "on", "off",
					     "y", "n" };
	size_t len = strlen(value);

	for (size_t i = 0; i < N(words); i++)
		if (strcasecmp(value, words[i]) == 0)
			return false;
	for (const char *at = value; *at; at++)
		if (iscntrl((unsigned char)*at))
			return false;
	return len > 0 && isalpha((unsigned char)*value) && !strstr(value, ": ") &&
	       !strstr(value, " #") && value[len - 1] != ':' && value[len - 1] != ' ';
}

/* Reads one line into front. Returns NULL, or what is wrong with it. */
static const char *
read_line(const char *line, size_t len, json_t *front)
{
	for (size_t i = 0; i < N(keys); i++) {
		size_t n = strlen(keys[i].name);
		own_mem char *value = NULL;

		if (len < n + 2 || memcmp(line, keys[i].name, n) != 0 || memcmp(line + n, ": ", 2) != 0)
			continue;
		value = xmemdup0(line + n + 2, len - n - 2);
		if (!is_plain(value) || utf8_count(value, strlen(value)) > keys[i].most)
			return "a value of its frontmatter is no plain text on one line, or too long";
		if (json_object_get(front, keys[i].name))
			return "a key of its frontmatter stands there twice";
		json_object_set_new(front, keys[i].name, xalloc_check(json_string(value)));
		return NULL;
	}
	return "its frontmatter has another key than name, description, license, compatibility";
}

static const char *
read_front(const char *text, json_t *front)
{
	const char *at = text + 4, *end, *wrong;

	if (strncmp(text, "---\n", 4) != 0)
		return "it does not begin with a frontmatter";
	for (; (end = strchr(at, '\n')); at = end + 1) {
		if (strncmp(at, "---\n", 4) == 0)
			return json_object_get(front, "name") && json_object_get(front, "description")
				       ? NULL : "its frontmatter needs name and description";
		wrong = read_line(at, (size_t)(end - at), front);
		if (wrong)
			return wrong;
	}
	return "its frontmatter does not end";
}

/* ---- one skill ---- */

/* The skill as skills/list shows it, malloc'd. */
static char *
describe_skill(const struct skill *skill, const json_t *front)
{
	char digest[sizeof("sha256:") + CHAIN_DIGITS] = "sha256:";
	struct jsonout out;

	chain_hash(skill->text, skill->len, digest + strlen(digest));
	jsonout_init(&out);
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "uri", skill->uri);
	jsonout_key(&out, "frontmatter");
	jsonrpc_write_value(&out, front);
	jsonout_member_open(&out, "resources", '[');
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "uri", skill->uri);
	jsonout_member_text(&out, "digest", digest);
	jsonout_member_uint(&out, "size", skill->len);
	jsonout_close(&out, '}');
	jsonout_close(&out, ']');
	jsonout_close(&out, '}');
	return jsonout_take(&out);
}

/* Adds a skill, unless one of its name is there. folder: the name that it must have; NULL: any.
 * Returns NULL, or what is wrong with it. */
static const char *
add_skill(const char *text, size_t len, const char *folder)
{
	json_auto_t *front = xalloc_check(json_object());
	struct skill *skill = &skills[provider.n];
	own_mem char *uri = NULL;
	const char *wrong, *name;

	if (strlen(text) != len || utf8_prefix(text, len) != len)
		return "it is no text in UTF-8";
	wrong = read_front(text, front);
	if (wrong)
		return wrong;
	name = json_string_value(json_object_get(front, "name"));
	if (folder && strcmp(name, folder) != 0)
		return "its name is not that of its folder";
	uri = xasprintf("skill://mcp-pythond/%s/SKILL.md", name);
	if (skills_find(uri))
		return NULL;
	if (provider.n == room)
		return "there are too many skills";
	*skill = (struct skill){ .text = xmemdup0(text, len), .len = len };
	skill->uri = give_ptr(uri);
	skill->listed = describe_skill(skill, front);
	provider.n++;
	return NULL;
}

/* ---- the operator's ---- */

static const char *
read_skill(const char *directory, const char *folder)
{
	own_mem char *path = xasprintf("%s/%s/SKILL.md", directory, folder);
	own_mem char *text = NULL;
	struct stat st;
	own_fd int fd = -1;

	if (!is_skill_name(folder))
		return "its folder's name is none of a skill";
	fd = ownerfile_open(path, &st);
	if (fd < 0)
		return fd == -EPERM ? "others than its owner may write to its SKILL.md"
				    : "its SKILL.md cannot be read";
	if (st.st_size > SKILL_BYTES)
		return "its SKILL.md is too long";
	text = xcalloc(1, (size_t)st.st_size + 1);
	if (read(fd, text, (size_t)st.st_size) != st.st_size)
		return "its SKILL.md cannot be read";
	return add_skill(text, (size_t)st.st_size, folder);
}

static int
is_visible(const struct dirent *entry)
{
	return *entry->d_name != '.';
}

static void
read_directory(const char *directory)
{
	struct log_quoted quoted;
	struct dirent **entry;
	int n = scandir(directory, &entry, is_visible, alphasort);

	if (n < 0) {
		log_line(LOG_WARNING, "skills-unreadable", "error=%s", strerrorname_np(errno));
		return;
	}
	for (int i = 0; i < n; i++) {
		const char *folder = entry[i]->d_name, *wrong = read_skill(directory, folder);

		if (wrong)
			log_line(LOG_WARNING, "skill-refused", "folder=%s why=\"%s\"",
				 log_quote(&quoted, folder, strlen(folder)), wrong);
		free(entry[i]);
	}
	free(entry);
}

/* ---- all of them ---- */

const struct skill_provider *
skills_load(const struct config *config)
{
	room = SKILLS_MAX - N(skills_built_in);
	if (config->skills.directory)
		read_directory(config->skills.directory);
	room = SKILLS_MAX;
	for (size_t i = 0; i < N(skills_built_in); i++)
		xassert(!add_skill(skills_built_in[i], strlen(skills_built_in[i]), NULL));
	return &provider;
}

const struct skill *
skills_find(const char *uri)
{
	for (size_t i = 0; i < provider.n; i++)
		if (strcmp(skills[i].uri, uri) == 0)
			return &skills[i];
	return NULL;
}

void
skills_forget(void)
{
	for (; provider.n > 0; provider.n--) {
		free(skills[provider.n - 1].uri);
		free(skills[provider.n - 1].text);
		free(skills[provider.n - 1].listed);
	}
}
