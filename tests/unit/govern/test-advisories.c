/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of advisories: which versions they are about, and the file that they are read from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "govern/advisories.h"
#include "policy/advisory.h"

/* The advisory of a record about "Some_Pkg", with these members of "affected". */
static json_t *
advisory(const char *members)
{
	char text[4096];
	json_t *record, *taken;
	char *name = NULL;

	snprintf(text, sizeof(text), "{\"id\": \"T-1\", \"summary\": \"s\", \"affected\": [{"
		 "\"package\": {\"ecosystem\": \"PyPI\", \"name\": \"Some_Pkg\"}, %s}]}", members);
	record = json_loads(text, 0, NULL);
	assert_non_null(record);
	taken = advisory_take(record, json_array_get(json_object_get(record, "affected"), 0), &name);
	assert_non_null(taken);
	assert_string_equal(name, "some-pkg");
	free(name);
	json_decref(record);
	return taken;
}

#define RANGE(events) "\"ranges\": [{\"type\": \"ECOSYSTEM\", \"events\": [" events "]}]"
#define I(v) "{\"introduced\": \"" v "\"}"
#define F(v) "{\"fixed\": \"" v "\"}"
#define L(v) "{\"last_affected\": \"" v "\"}"

static const struct {
	const char *members, *version;
	const char *fixed;		/* NULL: it is affected, and nothing is said of a fix; "-":
					 * it is not affected */
} rows[] = {
	{ RANGE(I("0") "," F("1.5")), "1.4.9", "1.5" },
	{ RANGE(I("0") "," F("1.5")), "1.5", "-" },
	{ RANGE(I("0") "," F("1.5")), "1.5.0", "-" },
	/* by number, not by letter */
	{ RANGE(I("0") "," F("1.10")), "1.9", "1.10" },
	{ RANGE(I("0") "," F("1.10")), "1.11", "-" },
	/* pre-releases, development releases, post-releases */
	{ RANGE(I("0") "," F("1.5")), "1.5rc1", "1.5" },
	{ RANGE(I("0") "," F("1.5")), "1.5.dev3", "1.5" },
	{ RANGE(I("0") "," F("1.5")), "1.5.post1", "-" },
	{ RANGE(I("0") "," F("1.5.post1")), "1.5", "1.5.post1" },
	{ RANGE(I("0") "," F("1.5rc2")), "1.5b9", "1.5rc2" },
	{ RANGE(I("0") "," F("1.5rc2")), "1.5rc2", "-" },
	{ RANGE(I("0") "," F("1.5")), "0.dev0", "1.5" },
	/* epochs */
	{ RANGE(I("0") "," F("1.5")), "1!0.1", "-" },
	{ RANGE(I("0") "," F("1!0.2")), "2024.1", "1!0.2" },
	{ RANGE(I("1!0") "," F("1!0.2")), "2024.1", "-" },
	/* a local build is as its version, where the bound names no local build */
	{ RANGE(I("0") "," F("1.5")), "1.5+cu118", "-" },
	{ RANGE(I("0") "," F("1.5")), "1.4+cu118", "1.5" },
	{ RANGE(I("0") "," L("1.5")), "1.5+cu118", NULL },
	{ RANGE(I("0") "," F("1.5+patch.1")), "1.5+patch.1", "-" },
	{ RANGE(I("0") "," F("1.5+patch.2")), "1.5+patch.1", "1.5+patch.2" },
	{ RANGE(I("0") "," F("1.5+patch.2")), "1.5", "1.5+patch.2" },
	/* introduced, last_affected */
	{ RANGE(I("1.2") "," F("1.5")), "1.1", "-" },
	{ RANGE(I("1.2") "," F("1.5")), "1.2", "1.5" },
	{ RANGE(I("1.2") "," F("1.5")), "1.2rc1", "-" },
	{ RANGE(I("1.2") "," L("1.5")), "1.5", NULL },
	{ RANGE(I("1.2") "," L("1.5")), "1.5.1", "-" },
	{ RANGE(I("1.2")), "99", NULL },
	/* several times in and out, in any order */
	{ RANGE(F("2.3") "," I("2.0") "," F("1.5") "," I("0")), "1.4", "1.5" },
	{ RANGE(F("2.3") "," I("2.0") "," F("1.5") "," I("0")), "1.7", "-" },
	{ RANGE(F("2.3") "," I("2.0") "," F("1.5") "," I("0")), "2.1", "2.3" },
	{ RANGE(F("2.3") "," I("2.0") "," F("1.5") "," I("0")), "2.3", "-" },
	{ "\"ranges\": [{\"type\": \"ECOSYSTEM\", \"events\": [" I("0") "," F("1.5") "]},"
	  "{\"type\": \"ECOSYSTEM\", \"events\": [" I("3") "," F("3.1") "]}]", "3.0.5", "3.1" },
	/* commits are no versions */
	{ "\"ranges\": [{\"type\": \"GIT\", \"events\": [" I("0") "," F("f00d") "]}]", "1.0", "-" },
	/* lists of versions */
	{ "\"versions\": [\"1.0\", \"1.1\"]", "1.1", NULL },
	{ "\"versions\": [\"1.0\", \"1.1\"]", "1.2", "-" },
	{ "\"versions\": [\"1.0\", \"1.1\"]", "1.1.0", NULL },
	{ "\"versions\": [\"1.0\", \"2004d\"]", "2004d", NULL },
	{ RANGE(I("0") "," F("1.0")) ", \"versions\": [\"2.7\"]", "2.7", NULL },
	/* nothing is said, or nothing that can be read */
	{ "\"versions\": []", "1.0", "-" },
	{ RANGE(I("nonsense") "," F("1.5")), "1.0", "-" },
	{ RANGE(I("0") "," F("1.5")), "nonsense", "-" },
	{ "\"ranges\": [{\"type\": \"ECOSYSTEM\", \"events\": 7}], \"versions\": [7, null]", "1.0", "-" },
};

static void
versions_are_compared(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *taken = advisory(rows[i].members), *found = NULL;
		bool wanted = !rows[i].fixed || strcmp(rows[i].fixed, "-") != 0;
		const char *fixed;

		if (advisory_affects(taken, rows[i].version, &found) != wanted)
			fail_msg("%s: %s", rows[i].members, rows[i].version);
		fixed = json_string_value(json_object_get(found, "fixed"));
		if (wanted && (!fixed != !rows[i].fixed ||
			       (fixed && strcmp(fixed, rows[i].fixed) != 0)))
			fail_msg("%s: %s: fixed in %s", rows[i].members, rows[i].version, fixed);
		json_decref(found);
		json_decref(taken);
	}
}

/* ---- a file ---- */

#define FIFO "test-advisories-fifo"

static const char records[] =
	"{\"id\": \"GHSA-1\", \"aliases\": [\"CVE-1\", \"PYSEC-1\"], \"summary\": \"one\\nmore\",\n"
	" \"database_specific\": {\"severity\": \"HIGH\"}, \"affected\": [\n"
	"  {\"package\": {\"ecosystem\": \"PyPI\", \"name\": \"Alpha.Beta\"}, " RANGE(I("0") "," F("2")) "},\n"
	"  {\"package\": {\"ecosystem\": \"PyPI\", \"name\": \"gamma\"}, \"versions\": [\"1\"]},\n"
	"  {\"package\": {\"ecosystem\": \"npm\", \"name\": \"delta\"}, \"versions\": [\"1\"]}]}"
	"{\"id\": \"PYSEC-1\", \"aliases\": [\"CVE-1\", \"GHSA-1\"], \"details\": \"the same\", \"affected\": ["
	"  {\"package\": {\"ecosystem\": \"PyPI\", \"name\": \"alpha-beta\"}, \"versions\": [\"1.0\"]}]}\n"
	"{\"id\": \"GHSA-2\", \"withdrawn\": \"2024-01-01T00:00:00Z\", \"affected\": ["
	"  {\"package\": {\"ecosystem\": \"PyPI\", \"name\": \"gamma\"}, \"versions\": [\"1\"]}]}\n"
	"{\"id\": \"MAL-3\", \"summary\": \"bad\", \"affected\": ["
	"  {\"package\": {\"ecosystem\": \"PyPI\", \"name\": \"evil\"}, " RANGE(I("0")) "}]}\n";

/* What is known of a version, as "ID severity fixed|..."; malloc'd. */
static char *
known(const struct advisories *advisories, const char *name, const char *version)
{
	json_t *list = advisories_of(advisories, name, version), *one;
	char *text = calloc(1, 1000);
	size_t i;

	json_array_foreach(list, i, one) {
		const char *fixed = json_string_value(json_object_get(one, "fixed"));

		snprintf(text + strlen(text), 900, "%s%s %s %s", i > 0 ? "|" : "",
			 json_string_value(json_object_get(one, "id")),
			 json_string_value(json_object_get(one, "severity")), fixed ? fixed : "-");
	}
	json_decref(list);
	return text;
}

static void
is_known(const struct advisories *advisories, const char *name, const char *version,
	 const char *wanted)
{
	char *text = known(advisories, name, version);

	assert_string_equal(text, wanted);
	free(text);
}

static void
load(struct advisories *advisories, const char *text)
{
	char path[] = "test-advisories-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	advisories_load(advisories, path);
	unlink(path);
}

/* A record with a summary of so many bytes, and lists so deep. */
static void
load_deep(struct advisories *advisories, size_t bytes, size_t depth)
{
	size_t len;
	char *text;
	FILE *memory = open_memstream(&text, &len);

	assert_non_null(memory);
	fputs("{\"summary\": \"", memory);
	for (size_t i = 0; i < bytes; i++)
		putc('s', memory);
	fputs("\", \"a\": ", memory);
	for (size_t i = 0; i < 2 * depth; i++)
		putc(i < depth ? '[' : ']', memory);
	fputs(depth ? "}" : "0}", memory);
	assert_int_equal(fclose(memory), 0);
	load(advisories, text);
	free(text);
}

static void
a_file_is_read(void **state)
{
	struct advisories *advisories = advisories_new();
	json_t *list;

	(void)state;
	assert_null(advisories_trouble(advisories));
	is_known(advisories, "alpha-beta", "1.0", "");
	load(advisories, records);
	assert_null(advisories_trouble(advisories));
	/* the two names of one advisory are one, with the severity; names are normalised */
	is_known(advisories, "alpha-beta", "1.0", "GHSA-1 high 2");
	is_known(advisories, "alpha-beta", "2.0", "");
	is_known(advisories, "alpha", "1.0", "");
	is_known(advisories, "zeta", "1.0", "");
	/* withdrawn, and of another ecosystem */
	is_known(advisories, "gamma", "1", "GHSA-1 high -");
	is_known(advisories, "delta", "1", "");
	is_known(advisories, "evil", "0.0.1", "MAL-3 critical -");
	list = advisories_of(advisories, "alpha-beta", "1.0");
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "summary")), "one");
	assert_int_equal(advisory_severity(json_array_get(list, 0)), ADVISORY_HIGH);
	json_decref(list);
	advisories_free(advisories);
}

static void
what_cannot_be_read_replaces_nothing(void **state)
{
	struct advisories *advisories = advisories_new();

	(void)state;
	advisories_load(advisories, "/nowhere/advisories.json");
	assert_non_null(advisories_trouble(advisories));
	load(advisories, records);
	assert_null(advisories_trouble(advisories));
	load(advisories, "{\"id\": \"GHSA-1\"} {\"id\": ");
	assert_non_null(strstr(advisories_trouble(advisories), "record 2: "));
	is_known(advisories, "alpha-beta", "1.0", "GHSA-1 high 2");
	/* the bounds: of a record's bytes and nesting; a FIFO and a device are not waited for */
	load_deep(advisories, ADVISORIES_RECORD_MAX + 1, 0);
	assert_string_equal(advisories_trouble(advisories), "record 1: it is too long");
	load_deep(advisories, 0, 100000);
	assert_non_null(strstr(advisories_trouble(advisories), "record 1: maximum parsing depth"));
	assert_int_equal(mkfifo(FIFO, 0600), 0);
	advisories_load(advisories, FIFO);
	unlink(FIFO);
	assert_non_null(strstr(advisories_trouble(advisories), "no regular file"));
	advisories_load(advisories, "/dev/zero");
	assert_non_null(strstr(advisories_trouble(advisories), "no regular file"));
	load(advisories, " \n");
	assert_non_null(strstr(advisories_trouble(advisories), "no advisory"));
	is_known(advisories, "alpha-beta", "1.0", "GHSA-1 high 2");
	load(advisories, "[1, 2]\n{\"affected\": 7}\n{\"id\": \"a\\u001bb\", \"affected\": [{\"package\": "
	     "{\"ecosystem\": \"PyPI\", \"name\": \"gamma\"}, \"versions\": [\"1\"]}]}");
	assert_non_null(strstr(advisories_trouble(advisories), "no advisory"));
	load(advisories, records);
	assert_null(advisories_trouble(advisories));
	advisories_load(advisories, NULL);
	assert_null(advisories_trouble(advisories));
	is_known(advisories, "alpha-beta", "1.0", "");
	advisories_free(advisories);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_compared),
		cmocka_unit_test(a_file_is_read),
		cmocka_unit_test(what_cannot_be_read_replaces_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
