/* SPDX-License-Identifier: Apache-2.0 */
/* Which packages may be installed: a row per rule, and that neither one more package nor one
 * more deny makes a verdict milder. */
#include "policy/packages.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/why.h"
#include "policy/config.h"
#include "policy/keys.h"
#include "policy/requirement.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define ORIGIN "https://index.example"
#define INDEX ORIGIN "/simple"
#define HASH "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void
set(struct config *config, const char *section, const char *name, const char *value)
{
	const struct key *key = key_at((size_t)key_find(section, name));

	assert_int_equal(key_set(key, config, value, (key->flags & KEY_ADDS) != 0, NULL), 0);
}

/* settings: "KEY=VALUE;KEY=VALUE" of [packages], and "tool=VERDICT". */
static struct config *
make(const char *settings)
{
	struct config *config = config_new();
	char *copy = strdup(settings), *rest = copy, *one;

	set(config, "packages", "index", INDEX);
	while ((one = strsep(&rest, ";")) && *one) {
		char *value = strchr(one, '=');

		*value++ = '\0';
		if (strcmp(one, "tool") == 0)
			set(config, "policy", "install_package", value);
		else
			set(config, "packages", one, value);
	}
	free(copy);
	return config;
}

static struct package
good(const char *name, const char *version)
{
	return (struct package){ .name = name, .version = version, .hash = HASH,
				 .index = INDEX, .size = 1000 };
}

static const struct row {
	const char *settings;
	struct package package;
	enum policy_verdict verdict;
	const char *why;		/* a part of it */
} rows[] = {
#define P(version, hash, index, url, size) \
	{ "numpy", version, hash, index, url, size, false }
#define BUILT { "numpy", "1.26.4", HASH, INDEX, NULL, 1000, true }
#define NUMPY P("1.26.4", HASH, INDEX, NULL, 1000)
	{ "", NUMPY, POLICY_APPROVE, "numpy 1.26.4: needs an approval" },
	{ "tool=allow", NUMPY, POLICY_ALLOW, "" },
	{ "tool=deny", NUMPY, POLICY_DENY, "install_package is deny" },
	{ "tool=deny;allow=numpy", NUMPY, POLICY_DENY, "install_package is deny" },
	{ "allow=numpy", NUMPY, POLICY_ALLOW, "" },
	{ "allow=NumPy", NUMPY, POLICY_ALLOW, "" },
	{ "allow=*", NUMPY, POLICY_ALLOW, "" },
	{ "allow=pandas", NUMPY, POLICY_APPROVE, "needs an approval" },
	{ "allow=numpy>=1,<2", NUMPY, POLICY_ALLOW, "" },
	{ "allow=numpy>=2", NUMPY, POLICY_APPROVE, "" },
	{ "allow=numpy>=1,<2 pandas", P("2.0", HASH, INDEX, NULL, 1000), POLICY_APPROVE, "" },
	{ "deny=numpy", NUMPY, POLICY_DENY, "denied by numpy" },
	{ "deny=numpy<1.20", NUMPY, POLICY_APPROVE, "" },
	{ "deny=numpy<1.20", P("1.19.5", HASH, INDEX, NULL, 1000), POLICY_DENY, "denied by numpy<1.20" },
	{ "deny=*;allow=numpy", NUMPY, POLICY_DENY, "denied by *" },
	{ "deny=numpy;allow=numpy", NUMPY, POLICY_DENY, "denied by numpy" },
	{ "others=deny", NUMPY, POLICY_DENY, "not in [packages] allow" },
	{ "others=deny;allow=numpy", NUMPY, POLICY_ALLOW, "" },
	{ "others=allow", NUMPY, POLICY_ALLOW, "" },
	{ "tool=allow;others=approve", NUMPY, POLICY_APPROVE, "needs an approval" },
	{ "allow=*", P("1.26.4", HASH, INDEX "/", NULL, 1000), POLICY_ALLOW, "" },
	{ "allow=*", P("1.26.4", HASH, "https://other.example/simple", NULL, 1000), POLICY_DENY, "an index" },
	{ "allow=*", P("1.26.4", HASH, NULL, NULL, 1000), POLICY_DENY, "an index" },
	{ "allow=*;extra_indexes=https://other.example/simple",
	  P("1.26.4", HASH, "https://other.example/simple/", NULL, 1000), POLICY_ALLOW, "" },
	{ "allow=*", P("1.26.4", NULL, INDEX, NULL, 1000), POLICY_DENY, "require_hashes" },
	{ "allow=*", P("1.26.4", "md5:00", INDEX, NULL, 1000), POLICY_DENY, "require_hashes" },
	{ "allow=*", P("1.26.4", "sha256:00", INDEX, NULL, 1000), POLICY_DENY, "require_hashes" },
	{ "allow=*;require_hashes=no", P("1.26.4", NULL, INDEX, NULL, 1000), POLICY_ALLOW, "" },
	{ "allow=*", P("1.26.4", HASH, NULL, "https://x/numpy.whl", 1000), POLICY_DENY, "URL" },
	{ "allow=*;allow_urls=yes;file_hosts=x", P("1.26.4", HASH, NULL, "https://x/numpy.whl", 1000),
	  POLICY_ALLOW, "" },
	{ "allow=*;allow_urls=yes", P("1.26.4", HASH, NULL, "https://x/numpy.whl", 1000),
	  POLICY_DENY, "file_hosts" },
	{ "allow=*", P("not a version", HASH, INDEX, NULL, 1000), POLICY_DENY, "cannot be read" },
	{ "allow=*", P(NULL, HASH, INDEX, NULL, 1000), POLICY_DENY, "cannot be read" },
	{ "allow=*;max_bytes=64K", P("1.26.4", HASH, INDEX, NULL, 65537), POLICY_DENY, "max_bytes" },
	{ "allow=*;max_bytes=64K", P("1.26.4", HASH, INDEX, NULL, 65536), POLICY_ALLOW, "" },
	{ "allow=*", P("1.26.4", HASH, INDEX, NULL, UINT64_MAX), POLICY_DENY, "max_bytes" },
	{ "allow=*", BUILT, POLICY_DENY, "has no wheel, and [packages] build is deny" },
	{ "allow=*;build=deny", BUILT, POLICY_DENY, "build is deny" },
	{ "allow=*;build=allow", BUILT, POLICY_ALLOW, "" },
	{ "build=allow", BUILT, POLICY_APPROVE, "needs an approval" },
	{ "build=allow;deny=numpy", BUILT, POLICY_DENY, "denied by numpy" },
	{ "allow=*;build=allow", NUMPY, POLICY_ALLOW, "" },
};

static void
each_rule_holds(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		struct config *config = make(rows[i].settings);
		enum policy_verdict each = POLICY_UNSAID;
		struct why why = { .field = "" };

		if (packages_decide(config, &rows[i].package, 1, &each, &why) !=
		    rows[i].verdict || !strstr(why.text, rows[i].why))
			fail_msg("%zu: %s: %s", i, rows[i].settings, why.text);
		assert_true(each != POLICY_UNSAID);
		config_free(config);
	}
}

static void
the_strictest_counts(void **state)
{
	struct config *config = make("allow=a;deny=c;max_packages=3");
	const struct package set[] = { good("a", "1"), good("b", "1"), good("c", "1"),
				       good("a", "2") };
	enum policy_verdict each[4];
	struct why why = { .field = "" };

	(void)state;
	assert_int_equal(packages_decide(config, set, 0, NULL, NULL), POLICY_ALLOW);
	assert_int_equal(packages_decide(config, set, 1, NULL, NULL), POLICY_ALLOW);
	assert_int_equal(packages_decide(config, set, 2, each, &why), POLICY_APPROVE);
	assert_non_null(strstr(why.text, "b 1: needs"));
	assert_int_equal(packages_decide(config, set, 3, each, &why), POLICY_DENY);
	assert_non_null(strstr(why.text, "c 1: is denied"));
	assert_int_equal(each[0], POLICY_ALLOW);
	assert_int_equal(each[1], POLICY_APPROVE);
	assert_int_equal(each[2], POLICY_DENY);
	assert_int_equal(packages_decide(config, set, 4, each, &why), POLICY_DENY);
	assert_non_null(strstr(why.text, "max_packages is 3"));
	config_free(config);
	config = make("tool=deny");
	assert_int_equal(packages_decide(config, set, 0, NULL, NULL), POLICY_DENY);
	config_free(config);
}

/* Every row with one more word in deny: never milder. */
static void
one_more_deny_never_allows_more(void **state)
{
	static const char *const words[] = { "numpy", "numpy<2", "pandas", "*", "numpy>9" };

	(void)state;
	for (size_t i = 0; i < N(rows); i++)
		for (size_t w = 0; w < N(words); w++) {
			struct config *config = make(rows[i].settings);
			enum policy_verdict before, after;

			before = packages_decide(config, &rows[i].package, 1, NULL, NULL);
			set(config, "packages", "deny", words[w]);
			after = packages_decide(config, &rows[i].package, 1, NULL, NULL);
			assert_true(after >= before);
			config_free(config);
		}
}

static void
whom_everything_is_allowed(void **state)
{
	static const struct {
		const char *settings;
		bool all;
	} cases[] = {
		{ "", false },
		{ "tool=allow", true },
		{ "tool=allow;others=approve", false },
		{ "tool=allow;others=deny", false },
		{ "tool=allow;deny=numpy<1", false },
		{ "tool=allow;allow=numpy", true },
		{ "others=allow", true },
		{ "others=deny;allow=*", true },
		{ "allow=numpy *", true },
		{ "allow=numpy>=1", false },
		{ "allow=*;deny=pandas", false },
		{ "tool=deny;others=allow", false },
		{ "tool=deny;allow=*", false },
	};
	struct config *config;
	bool all;

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		config = make(cases[i].settings);
		if (packages_allows_all(config) != cases[i].all)
			fail_msg("%s", cases[i].settings);
		config_free(config);
	}
	/* Then no verdict about a package is milder than it says. */
	for (size_t i = 0; i < N(rows); i++) {
		const struct package numpy = good("numpy", "1.26.4");

		config = make(rows[i].settings);
		all = packages_allows_all(config);
		if (all && packages_decide(config, &numpy, 1, NULL, NULL) != POLICY_ALLOW)
			fail_msg("%zu: %s", i, rows[i].settings);
		config_free(config);
	}
}

static void
a_package_without_a_version_has_a_verdict(void **state)
{
	static const struct { const char *settings; enum policy_verdict verdict; } cases[] = {
		{ "", POLICY_APPROVE }, { "tool=allow", POLICY_ALLOW }, { "tool=deny", POLICY_DENY },
		{ "tool=deny;allow=numpy", POLICY_DENY }, { "deny=numpy", POLICY_DENY },
		{ "tool=allow;deny=*", POLICY_DENY }, { "deny=numpy<1", POLICY_APPROVE },
		{ "allow=numpy", POLICY_ALLOW }, { "others=deny", POLICY_DENY },
		{ "others=deny;allow=numpy", POLICY_ALLOW },
		{ "others=deny;allow=numpy>=1", POLICY_APPROVE },
		{ "others=deny;allow=pandas", POLICY_DENY },
		{ "tool=allow;others=approve", POLICY_APPROVE },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		struct config *config = make(cases[i].settings);

		if (packages_expect(config, "numpy") != cases[i].verdict)
			fail_msg("%s", cases[i].settings);
		config_free(config);
	}
}

static void
requirements_are_checked_before(void **state)
{
	static const struct {
		const char *settings, *text, *why;	/* why NULL: fine */
	} cases[] = {
		{ "", "numpy>=1", NULL },
		{ "deny=numpy<1", "numpy", NULL },
		{ "deny=numpy", "NumPy>=1", "denied by numpy" },
		{ "deny=*", "numpy", "denied by *" },
		{ "", "numpy @ https://x/y.whl", "not from a URL" },
		{ "allow_urls=yes", "numpy @ https://x/y.whl", "file_hosts" },
		{ "allow_urls=yes;file_hosts=x", "numpy @ https://x/y.whl", NULL },
		{ "allow_urls=yes;file_hosts=x", "numpy @ https://x/y.whl#sha256=00", NULL },
		{ "allow_urls=yes;file_hosts=.x", "numpy @ https://files.x/a/y.whl", NULL },
		{ "allow_urls=yes;file_hosts=x", "numpy @ http://x/y.whl", "not https" },
		{ "allow_urls=yes;file_hosts=x", "numpy @ https://y/y.whl", "file_hosts" },
		{ "allow_urls=yes;file_hosts=x", "numpy @ https://u@x/y.whl", "file_hosts" },
		{ "allow_urls=yes;file_hosts=x", "numpy @ https://x:8443/y.whl", "file_hosts" },
		{ "allow_urls=yes;file_hosts=x", "numpy @ https://x/y.tar.gz", "no URL of a wheel" },
		{ "allow_urls=yes;file_hosts=x", "numpy @ https://x/y.zip?.whl", "no URL of a wheel" },
		{ "allow_urls=yes;file_hosts=x", "numpy @ git+https://x/y.whl", "file_hosts" },
		{ "allow_urls=yes;file_hosts=x", "numpy @ file:///x/y.whl", "file_hosts" },
		{ "allow_urls=yes", "numpy @ " ORIGIN "/files/y.whl", NULL },
		{ "allow_urls=yes", "numpy @ " ORIGIN ".evil/y.whl", "file_hosts" },
		{ "allow_urls=yes;deny=numpy;file_hosts=x", "numpy @ https://x/y.whl", "denied by" },
		{ "tool=deny", "numpy", "install_package is deny" },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		struct config *config = make(cases[i].settings);
		struct requirement requirement;
		struct why why = { .field = "" };
		int r;

		assert_int_equal(requirement_read(cases[i].text, strlen(cases[i].text),
						  &requirement), 0);
		r = packages_check_requirement(config, &requirement, &why);
		if (r != (cases[i].why ? -EACCES : 0) ||
		    (cases[i].why && !strstr(why.text, cases[i].why)))
			fail_msg("%s: %s", cases[i].text, why.text);
		requirement_done(&requirement);
		config_free(config);
	}
}

static void
look_alikes_are_known(void **state)
{
	static const struct { const char *name, *known; } cases[] = {
		{ "numpy", NULL }, { "nunpy", "numpy" }, { "numpyy", "numpy" }, { "nmpy", "numpy" },
		{ "nupmy", "numpy" }, { "reqeusts", "requests" }, { "python-requests", "requests" },
		{ "scikitlearn", "scikit-learn" }, { "ty-ping-exten-sions", "typing-extensions" },
		{ "my-own-thing", NULL }, { "tor", NULL }, { "dusk", NULL }, { "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		const char *known = packages_look_alike(cases[i].name);

		if (known != cases[i].known &&
		    (!known || !cases[i].known || strcmp(known, cases[i].known) != 0))
			fail_msg("%s: %s", cases[i].name, known ? known : "none");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_holds),
		cmocka_unit_test(the_strictest_counts),
		cmocka_unit_test(one_more_deny_never_allows_more),
		cmocka_unit_test(whom_everything_is_allowed),
		cmocka_unit_test(requirements_are_checked_before),
		cmocka_unit_test(look_alikes_are_known),
		cmocka_unit_test(a_package_without_a_version_has_a_verdict),
	};

	return cmocka_run_group_tests_name("packages", tests, NULL, NULL);
}
