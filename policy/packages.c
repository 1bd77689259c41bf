/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. Decisions without I/O.
 * Reads:   names and versions from an index and from a client, hostile. */
#include "policy/packages.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/why.h"
#include "policy/advisory.h"
#include "policy/config.h"
#include "policy/network.h"
#include "policy/requirement.h"
#include "policy/version.h"

/* Finds the first word of a list that matches the package; NULL: there is none. version NULL: only
 * words without versions match. unreadable: does a word with versions match if version is not
 * valid? */
static const char *
find_word(const struct config_list *list, const char *name, const char *version,
	  bool unreadable)
{
	for (size_t i = 0; i < list->n; i++) {
		const char *word = list->item[i];
		struct requirement rule;
		bool named, contained = false;

		if (strcmp(word, "*") == 0)
			return word;
		if (requirement_read(word, strlen(word), &rule) < 0)
			continue;
		named = strcmp(rule.name, name) == 0;
		if (named && !*rule.specifiers)
			contained = true;
		else if (named && version &&
			 specifiers_check(rule.specifiers, strlen(rule.specifiers), version,
					  &contained) < 0)
			contained = unreadable;
		requirement_done(&rule);
		if (contained)
			return word;
	}
	return NULL;
}

/* Does the list name this package, with or without versions? */
static bool
is_named(const struct config_list *list, const char *name)
{
	bool named = false;

	for (size_t i = 0; !named && i < list->n; i++) {
		struct requirement rule;

		if (requirement_read(list->item[i], strlen(list->item[i]), &rule) < 0)
			continue;
		named = strcmp(rule.name, name) == 0;
		requirement_done(&rule);
	}
	return named;
}

static bool
packages_is_version(const char *text)
{
	struct version version;

	return text && strlen(text) <= VERSION_MAX &&
	       version_read(text, strlen(text), &version) == 0;
}

static bool
has_hash(const struct package *package)
{
	const char *hex = package->hash ? package->hash + strlen("sha256:") : NULL;

	return hex && strncmp(package->hash, "sha256:", strlen("sha256:")) == 0 &&
	       strlen(hex) == 64 && strspn(hex, "0123456789abcdef") == 64;
}

static size_t
length_of_url(const char *url)
{
	size_t len = strlen(url);

	while (len > 0 && url[len - 1] == '/')
		len--;
	return len;
}

static bool
same_url(const char *a, const char *b)
{
	size_t len = length_of_url(a);

	return len == length_of_url(b) && memcmp(a, b, len) == 0;
}

static bool
is_index(const struct config *config, const char *index)
{
	if (!index)
		return false;
	if (config->packages.index && same_url(config->packages.index, index))
		return true;
	for (size_t i = 0; i < config->packages.extra_indexes.n; i++)
		if (same_url(config->packages.extra_indexes.item[i], index))
			return true;
	return false;
}

/* ---- direct references ---- */

bool
packages_is_wheel_url(const char *url)
{
	static const char suffix[] = ".whl";
	size_t len = strcspn(url, "?#");

	return strstr(url, "://") && len > strlen(suffix) &&
	       strncmp(url + len - strlen(suffix), suffix, strlen(suffix)) == 0;
}

/* The length of "https://host:port", up to the path. */
static size_t
length_of_origin(const char *url)
{
	const char *host = strstr(url, "://");

	return host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : 0;
}

static bool
is_of_origin(const char *url, const char *index)
{
	size_t len = length_of_origin(url);

	return index && len > 0 && len == length_of_origin(index) &&
	       strncasecmp(url, index, len) == 0;
}

static bool
is_of_file_hosts(const struct config *config, const char *url)
{
	static const char https[] = "https://";
	const struct config_list *hosts = &config->packages.file_hosts;
	const char *host = url + strlen(https);
	struct network_target target;
	struct network_rule rule;

	if (strncmp(url, https, strlen(https)) != 0 ||
	    network_target_parse(host, strcspn(host, "/?#"), 443, &target) < 0)
		return false;
	for (size_t i = 0; i < hosts->n; i++)
		if (network_rule_parse(hosts->item[i], strlen(hosts->item[i]), &rule) == 0 &&
		    network_rule_allows(&rule, &target))
			return true;
	return false;
}

/* 0, or -EACCES with why_r. name: the package. */
static int
check_url(const struct config *config, const char *name, const char *url,
	  struct why *why_r)
{
	bool known = is_of_origin(url, config->packages.index) ||
		     is_of_file_hosts(config, url);

	if (!config->packages.allow_urls)
		return why_say(why_r, -EACCES, "packages", "%.100s: packages come from an "
			       "index here, not from a URL: [packages] allow_urls is no", name);
	if (!packages_is_wheel_url(url))
		return why_say(why_r, -EACCES, "packages", "%.100s: is no URL of a wheel: "
			       "nothing else is installed from one", name);
	for (size_t i = 0; !known && i < config->packages.extra_indexes.n; i++)
		known = is_of_origin(url, config->packages.extra_indexes.item[i]);
	return known ? 0
		: why_say(why_r, -EACCES, "packages", "%.100s: its URL is not https of a host "
			  "that [packages] file_hosts names", name);
}

/* ---- verdicts ---- */

#define SAY(code, ...) \
	(why_say(why_r, 0, "packages", __VA_ARGS__), (code))

/* The rules for each package that come before the lists. POLICY_UNSAID: the package breaks none of
 * them. */
static enum policy_verdict
judge_form(const struct config *config, const struct package *package, struct why *why_r)
{
	if (!packages_is_version(package->version))
		return SAY(POLICY_DENY, "%.100s: its version cannot be read", package->name);
	if (package->url && check_url(config, package->name, package->url, why_r) < 0)
		return POLICY_DENY;
	if (!package->url && !is_index(config, package->index))
		return SAY(POLICY_DENY, "%.100s: comes from an index that policy does not name",
			   package->name);
	if (package->built && config->packages.build != PACKAGES_BUILD_ALLOW)
		return SAY(POLICY_DENY, "%.100s %.60s: has no wheel, and [packages] build is "
			   "deny", package->name, package->version);
	if (!has_hash(package) && config->packages.require_hashes)
		return SAY(POLICY_DENY, "%.100s %.60s: has no SHA-256, and [packages] "
			   "require_hashes is yes", package->name, package->version);
	return POLICY_UNSAID;
}

static enum policy_verdict
packages_judge(const struct config *config, const struct package *package, struct why *why_r)
{
	enum policy_verdict tool = policy_tool(config, "install_package");
	enum policy_verdict others = (enum policy_verdict)config->packages.others;
	const char *word;

	if (tool == POLICY_DENY)
		return SAY(POLICY_DENY, "[policy] install_package is deny");
	if (judge_form(config, package, why_r) == POLICY_DENY)
		return POLICY_DENY;
	word = find_word(&config->packages.deny, package->name, package->version, true);
	if (word)
		return SAY(POLICY_DENY, "%.100s %.60s: is denied by %.100s in [packages] deny",
			   package->name, package->version, word);
	if (find_word(&config->packages.allow, package->name, package->version, false))
		return POLICY_ALLOW;
	if (others == POLICY_UNSAID)
		others = tool;
	if (others == POLICY_ALLOW)
		return POLICY_ALLOW;
	return SAY(others, others == POLICY_DENY
			   ? "%.100s %.60s: is not in [packages] allow"
			   : "%.100s %.60s: needs an approval",
		   package->name, package->version);
}

/* Rules for the whole set. */
static enum policy_verdict
judge_size(const struct config *config, const struct package *package, size_t n,
	   struct why *why_r)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(bytes, package[i].size, &bytes))
			bytes = UINT64_MAX;
	if (n > config->packages.max_packages)
		return SAY(POLICY_DENY, "%zu packages, and [packages] max_packages is %u", n,
			   config->packages.max_packages);
	if (bytes > config->packages.max_bytes)
		return SAY(POLICY_DENY, "%llu bytes, and [packages] max_bytes is %llu",
			   (unsigned long long)bytes,
			   (unsigned long long)config->packages.max_bytes);
	return POLICY_ALLOW;
}

enum policy_verdict
packages_decide(const struct config *config, const struct package *package, size_t n,
		enum policy_verdict *each_r, struct why *why_r)
{
	enum policy_verdict result = judge_size(config, package, n, why_r);

	/* an empty set needs no approval, but the tool may still be denied */
	if (n == 0 && policy_tool(config, "install_package") == POLICY_DENY)
		return SAY(POLICY_DENY, "[policy] install_package is deny");
	for (size_t i = 0; i < n; i++) {
		struct why why = { .field = "" };
		enum policy_verdict verdict = packages_judge(config, &package[i], &why);

		if (each_r)
			each_r[i] = verdict;
		if (verdict <= result)
			continue;
		result = verdict;
		if (why_r)
			*why_r = why;
	}
	return result;
}

bool
packages_allows_all(const struct config *config)
{
	enum policy_verdict tool = policy_tool(config, "install_package"), others;

	others = (enum policy_verdict)config->packages.others;
	if (others == POLICY_UNSAID)
		others = tool;
	return tool != POLICY_DENY && config->packages.deny.n == 0 &&
	       config->packages.advisories_deny == ADVISORY_NEVER &&
	       (others == POLICY_ALLOW ||
		find_word(&config->packages.allow, "*", NULL, false));
}

bool
packages_allows(const struct config *config, const char *name)
{
	return is_named(&config->packages.allow, name);
}

enum policy_verdict
packages_expect(const struct config *config, const char *name)
{
	enum policy_verdict tool = policy_tool(config, "install_package"), others;

	others = (enum policy_verdict)config->packages.others;
	if (others == POLICY_UNSAID)
		others = tool;
	if (tool == POLICY_DENY || find_word(&config->packages.deny, name, NULL, true))
		return POLICY_DENY;
	if (find_word(&config->packages.allow, name, NULL, false))
		return POLICY_ALLOW;
	/* A rule that names the package with versions allows some of them. */
	return others == POLICY_DENY && packages_allows(config, name)
	       ? POLICY_APPROVE : others;
}

int
packages_check_requirement(const struct config *config, const struct requirement *requirement,
			   struct why *why_r)
{
	const char *word;

	if (policy_tool(config, "install_package") == POLICY_DENY)
		return why_say(why_r, -EACCES, "packages", "[policy] install_package is deny");
	if (requirement->url &&
	    check_url(config, requirement->name, requirement->url, why_r) < 0)
		return -EACCES;
	word = find_word(&config->packages.deny, requirement->name, NULL, true);
	if (word)
		return why_say(why_r, -EACCES, "packages",
			       "%.100s: is denied by %.100s in [packages] deny",
			       requirement->name, word);
	return 0;
}
