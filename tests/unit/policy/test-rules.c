/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: presets, verdicts, sections of tenants in their order, approvers. And
 * with any rules, an additional "deny" never allows more. */
#include "policy/rules.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/config.h"
#include "policy/people.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static struct config *
read_text(const char *text)
{
	char path[] = "test-rules-XXXXXX";
	struct config *config = config_new();
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(config_read(config, path, stderr), 0);
	assert_int_equal(config_check(config, path, stderr), 0);
	unlink(path);
	return config;
}

static const char *const alice_groups[] = { "alice", "devs" };
static const struct policy_subject alice = { "uid:1000", "alice", alice_groups, 2 };
static const struct policy_subject bob = { "uid:1001", "bob", NULL, 0 };
static const struct policy_subject ci = { "token:ci", NULL, NULL, 0 };
static const struct policy_subject proxied = { "user:alice", NULL, NULL, 0 };

static const struct verdict_case {
	const char *text;
	const struct policy_subject *who;
	const char *verdicts;	/* of run_script, run_repl and install_package */
} verdict_cases[] = {
	{ "", &alice, "allow allow approve" },
	{ "[policy]\npreset = strict\n", &alice, "approve approve approve" },
	{ "[policy]\npreset = open\n", &alice, "allow allow allow" },
	{ "[policy]\npreset = open\nrun_repl = deny\n", &alice, "allow deny allow" },
	{ "[policy]\nrun_repl = deny\npreset = open\n", &alice, "allow deny allow" },
	{ "[tenant uid:1000]\npolicy.run_script = deny\n", &alice, "deny allow approve" },
	{ "[tenant uid:1000]\npolicy.run_script = deny\n", &bob, "allow allow approve" },
	{ "[tenant user:alice]\npolicy.run_script = deny\n", &alice, "deny allow approve" },
	{ "[tenant user:alice]\npolicy.run_script = deny\n", &proxied, "deny allow approve" },
	{ "[tenant user:alice]\npolicy.run_script = deny\n", &bob, "allow allow approve" },
	{ "[tenant group:devs]\npolicy.run_script = deny\n", &alice, "deny allow approve" },
	{ "[tenant group:devs]\npolicy.run_script = deny\n", &proxied, "allow allow approve" },
	{ "[tenant token:ci]\npolicy.install_package = allow\n", &ci, "allow allow allow" },
	/* a preset of a tenant stands for what was said further away */
	{ "[policy]\nrun_repl = deny\n[tenant uid:1000]\npolicy.preset = strict\n", &alice,
	  "approve approve approve" },
	/* the nearer one wins, wherever it stands */
	{ "[tenant uid:1000]\npolicy.run_script = deny\n[tenant user:alice]\n"
	  "policy.run_script = allow\npolicy.run_repl = deny\n[tenant group:devs]\n"
	  "policy.run_script = approve\npolicy.run_repl = approve\n"
	  "policy.install_package = deny\n", &alice, "deny deny deny" },
	{ "[tenant group:devs]\npolicy.run_script = deny\n[tenant group:alice]\n"
	  "policy.run_script = approve\n", &alice, "approve allow approve" },
};

static void
verdicts_follow_the_nearest_word(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(verdict_cases); i++) {
		struct config *config = read_text(verdict_cases[i].text);
		const struct config *mine = config_for(config, verdict_cases[i].who);
		char got[64];

		snprintf(got, sizeof(got), "%s %s %s",
			 policy_verdict_name(policy_tool(mine, "run_script")),
			 policy_verdict_name(policy_tool(mine, "run_repl")),
			 policy_verdict_name(policy_tool(mine, "install_package")));
		if (strcmp(got, verdict_cases[i].verdicts) != 0)
			fail_msg("%s\n%s, not %s", verdict_cases[i].text, got,
				 verdict_cases[i].verdicts);
		assert_int_equal(policy_tool(mine, "validate_script"), POLICY_ALLOW);
		config_free(config);	/* the tenant's one keeps what it needs */
		config_free(mine);
	}
}

static void
values_come_from_the_nearest_section(void **state)
{
	struct config *config = read_text(
		"[limits]\nmemory_mb = 100\npids = 9\n[packages]\ndeny = a\nallow = x\n"
		"[tenant group:devs]\nlimits.memory_mb = 200\npackages.deny = b\n\tc\n"
		"packages.allow = y\nquota.executions_per_minute = 3\n"
		"[tenant uid:1000]\nlimits.memory_mb = 300\npackages.deny = d\n");
	const struct config *mine = config_for(config, &alice);
	const struct config *others = config_for(config, &bob);

	(void)state;
	assert_int_equal(mine->limits.standard.memory_bytes, 300 << 20);
	assert_int_equal(mine->limits.standard.pids, 9);
	assert_int_equal(mine->limits.cap.output_bytes, UINT64_MAX);
	assert_int_equal(mine->quota.per_minute, 3);
	assert_int_equal(mine->packages.deny.n, 4);
	assert_string_equal(mine->packages.deny.item[0], "a");
	assert_string_equal(mine->packages.deny.item[3], "d");
	assert_int_equal(mine->packages.allow.n, 1);
	assert_string_equal(mine->packages.allow.item[0], "y");
	assert_ptr_equal(others, config);
	assert_int_equal(config->packages.deny.n, 1);
	assert_int_equal(config->limits.standard.memory_bytes, 100 << 20);
	config_free(mine);
	config_free(others);
	config_free(config);
}

static const struct approver_case {
	const char *text;
	const struct policy_subject *approver, *requester;
	bool may;
} approver_cases[] = {
	{ "", &alice, &bob, false },
	{ "[policy]\napprovers = user:alice\n", &alice, &bob, true },
	{ "[policy]\napprovers = group:devs\n", &alice, &ci, true },
	{ "[policy]\napprovers = group:devs\n", &bob, &ci, false },
	{ "[policy]\napprovers = user:alice\n", &alice, &alice, false },
	{ "[policy]\napprovers = user:alice self\n", &alice, &alice, true },
	{ "[policy]\napprovers = self\n", &alice, &bob, false },
	{ "[policy]\napprovers =\n", &alice, &bob, false },
	/* whom a proxy calls alice is she herself */
	{ "[policy]\napprovers = uid:1000\n", &alice, &proxied, false },
	{ "[policy]\napprovers = user:alice\n", &proxied, &alice, false },
	{ "[policy]\napprovers = user:alice self\n", &proxied, &alice, true },
	{ "[policy]\napprovers = user:alice\n", &proxied, &bob, true },
	/* the requester's sections count */
	{ "[tenant token:ci]\npolicy.approvers = uid:1000\n", &alice, &ci, true },
	{ "[tenant token:ci]\npolicy.approvers = uid:1000\n", &alice, &bob, false },
	{ "[tenant uid:1000]\npolicy.approvers = uid:1000\n", &alice, &bob, false },
};

static void
only_named_approvers_may(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(approver_cases); i++) {
		const struct approver_case *c = &approver_cases[i];
		struct config *config = read_text(c->text);
		const struct config *theirs = config_for(config, c->requester);

		if (policy_may_approve(theirs, c->approver, c->requester) != c->may)
			fail_msg("%zu: %s", i, c->text);
		config_free(theirs);
		config_free(config);
	}
}

static void
profiles_can_be_few(void **state)
{
	struct config *config = read_text("[profile a]\n[profile b]\n[tenant uid:1001]\n"
					  "policy.profiles = b\n");
	const struct config *few = config_for(config, &bob);

	(void)state;
	assert_true(policy_allows_profile(config, "a"));
	assert_true(policy_allows_profile(few, "b"));
	assert_false(policy_allows_profile(few, "a"));
	assert_false(policy_allows_profile(few, "basic"));
	config_free(few);
	config_free(config);
}

static void
scripts_ask_where_it_is_said(void **state)
{
	static const struct {
		const char *text;
		bool may, bob;
	} cases[] = {
		{ "", false, false },
		{ "[policy]\ninput = allow\n", true, true },
		{ "[policy]\npreset = open\n", true, true },
		{ "[policy]\npreset = strict\n", false, false },
		{ "[policy]\npreset = open\ninput = deny\n", false, false },
		{ "[tenant uid:1001]\npolicy.input = allow\n", false, true },
		{ "[policy]\ninput = allow\n[tenant uid:1001]\npolicy.input = deny\n", true, false },
		{ "[policy]\ninput = allow\n[tenant uid:1001]\npolicy.preset = strict\n", true,
		  false },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		struct config *config = read_text(cases[i].text);
		const struct config *theirs = config_for(config, &bob);

		if (policy_allows_input(config) != cases[i].may ||
		    policy_allows_input(theirs) != cases[i].bob)
			fail_msg("%zu: %s", i, cases[i].text);
		config_free(theirs);
		config_free(config);
	}
}

/* ---- one more deny ---- */

static const char *const tools[] = { "run_script", "run_repl", "install_package" };

static unsigned int
pick(unsigned int *seed, unsigned int n)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 16) % n;
}

/* Some files of verdicts by chance; place: where one of them is a deny instead, and 9 is
 * nowhere. Each place is one key of one section. */
static struct config *
by_chance(unsigned int seed, unsigned int place)
{
	static const char *const sections[] = { "policy", "tenant group:devs", "tenant uid:1000" };
	static const char *const verdicts[] = { "", "allow", "approve", "deny" };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct config *config;

	assert_non_null(out);
	for (unsigned int s = 0; s < N(sections); s++) {
		fprintf(out, "[%s]\n", sections[s]);
		for (unsigned int t = 0; t < N(tools); t++) {
			const char *verdict = verdicts[pick(&seed, 4)];

			if (s * N(tools) + t == place)
				verdict = "deny";
			if (*verdict)
				fprintf(out, "%s%s = %s\n", s ? "policy." : "", tools[t],
					verdict);
		}
	}
	fclose(out);
	config = read_text(text);
	free(text);
	return config;
}

static void
one_more_deny_never_allows_more(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 9 * 40; i++) {
		struct config *before = by_chance(i / 9 + 1, 9);
		struct config *after = by_chance(i / 9 + 1, i % 9);
		const struct policy_subject *const who[] = { &alice, &bob, &ci };

		for (size_t w = 0; w < N(who); w++) {
			const struct config *a = config_for(before, who[w]);
			const struct config *b = config_for(after, who[w]);

			for (size_t t = 0; t < N(tools); t++)
				assert_true(policy_tool(b, tools[t]) >= policy_tool(a, tools[t]));
			config_free(a);
			config_free(b);
		}
		config_free(before);
		config_free(after);
	}
}

static const struct people_case {
	const char *text;
	bool any;
	const char *groups;
} people_cases[] = {
	{ "", false, "" },
	{ "[tenant uid:7]\npolicy.run_script = deny\n[tenant token:ci]\n[tenant sub:a@b]\n", false, "" },
	{ "[tenant user:alice]\n", true, "" },
	{ "[policy]\napprovers = uid:0 user:alice\n", true, "" },
	{ "[admin]\noperators = group:wheel, group:adm\n", true, "adm wheel" },
	{ "[tenant group:b]\n[tenant group:a]\n[tenant uid:7]\n"
	  "policy.approvers = group:teachers user:bob\n\tgroup:b group:a\n", true, "a b teachers" },
	{ "[tenant uid:7]\npackages.allow = group\npolicy.approvers = self\n", false, "" },
};

static void
all_who_are_named_are_asked_about(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(people_cases); i++) {
		struct config *config = read_text(people_cases[i].text);
		struct people people, again;
		char got[128] = "";

		people_of(config, &people);
		people_of(config, &again);
		assert_true(people_are_same(&people, &again));
		for (size_t k = 0; k < people.n; k++) {
			strcat(got, k ? " " : "");
			strcat(got, people.group[k]);
		}
		assert_int_equal(people.any, people_cases[i].any);
		assert_string_equal(got, people_cases[i].groups);
		people_done(&again);
		assert_int_equal(people_are_same(&people, &again), !people.any);
		people_done(&people);
		config_free(config);
	}
}

static void
only_what_needs_a_start_is_named(void **state)
{
	struct config *a = read_text("[pool]\nwarm = 3\n");
	struct config *b = read_text("[pool]\nwarm = 4\n[limits]\npids = 5\n[audit]\nfile = /x\n"
				     "[profile basic]\nmodules =\n[tenant uid:1]\n");
	char *text = config_needs_restart(a, b);

	(void)state;
	assert_string_equal(text, "[pool] warm, [audit] file, [profile]");
	free(text);
	text = config_needs_restart(a, a);
	assert_string_equal(text, "");
	free(text);
	config_free(a);
	config_free(b);
}

/* Afterwards both are the same, and neither has texts of the other. */
static void
profiles_are_taken(void **state)
{
	struct config *a = read_text("[profile old]\nmodules = json\n[interpreter x]\nroot = /a\n"
				     "[profile x]\ninterpreter = x\n");
	struct config *b = read_text("[profile new]\nmodules = re\n[interpreter x]\nroot = /b\n"
				     "[profile x]\ninterpreter = x\n[profile old]\nmodules = json\n");
	char *text;

	(void)state;
	assert_true(config_same_profile(a, b, "basic"));
	assert_true(config_same_profile(a, b, "old"));
	assert_false(config_same_profile(a, b, "x"));	/* its root */
	assert_false(config_same_profile(a, b, "new"));
	assert_int_equal(config_take_profile(a, b, "new"), 3);
	assert_int_equal(config_take_profile(a, b, "x"), 2);
	text = config_needs_restart(a, b);
	config_free(b);
	assert_string_equal(text, "");
	free(text);
	assert_int_equal(a->n_profiles, 4);
	assert_string_equal(a->profile[3].modules.item[0], "re");
	assert_string_equal(config_interpreter_of(a, &a->profile[2])->root, "/b");
	config_free(a);
}

static void
no_more_profiles_than_fit_are_taken(void **state)
{
	struct config *a = config_new(), *b;
	char text[4096] = "";
	size_t len = 0;

	(void)state;
	for (int i = 1; i < CONFIG_PROFILES_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "[profile p%d]\n", i);
	b = read_text(text);
	for (int i = 1; i < CONFIG_PROFILES_MAX; i++)
		assert_int_equal(config_take_profile(a, b, b->profile[i].name), i);
	config_free(b);
	b = read_text("[profile last]\n");
	assert_int_equal(config_take_profile(a, b, "last"), -ENOSPC);
	assert_int_equal(a->n_profiles, CONFIG_PROFILES_MAX);
	config_free(a);
	config_free(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts_follow_the_nearest_word),
		cmocka_unit_test(values_come_from_the_nearest_section),
		cmocka_unit_test(only_named_approvers_may),
		cmocka_unit_test(profiles_can_be_few),
		cmocka_unit_test(scripts_ask_where_it_is_said),
		cmocka_unit_test(one_more_deny_never_allows_more),
		cmocka_unit_test(all_who_are_named_are_asked_about),
		cmocka_unit_test(only_what_needs_a_start_is_named),
		cmocka_unit_test(profiles_are_taken),
		cmocka_unit_test(no_more_profiles_than_fit_are_taken),
	};

	return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
