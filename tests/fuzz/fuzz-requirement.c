/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements, and scripts with blocks of them. Must hold: a requirement that is taken is one
 * printable line, is taken again from its parts, and merged with itself stays itself; a block's
 * content is never longer than its script, and its line is within it. */
#include "fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/pep723.h"
#include "policy/requirement.h"
#include "policy/version.h"

static const char *
value(void *arg, const char *variable)
{
	(void)arg;
	return strcmp(variable, "os_name") == 0 ? NULL : "3.11.2";
}

static void
check_again(const struct requirement *a)
{
	const struct marker_environment environment = { value, NULL };
	struct requirements list = { .n = 0 };
	struct requirement again;
	char *text;
	int n = asprintf(&text, "%s[%s]%s%s%s%s%s", a->name, a->extras, a->specifiers,
			 a->url ? " @ " : "", a->url ? a->url : "", a->marker ? " ; " : "",
			 a->marker ? a->marker : "");
	bool contained;

	MUST(n >= 0);
	(void)requirement_applies(a, &environment, "x");
	MUST(specifiers_check(a->specifiers, strlen(a->specifiers), "1.0", &contained) == 0);
	if (n <= REQUIREMENT_MAX) {
		MUST(requirement_read(text, (size_t)n, &again) == 0);
		MUST(strcmp(again.name, a->name) == 0 && strcmp(again.extras, a->extras) == 0);
		MUST(strcmp(again.specifiers, a->specifiers) == 0);
		MUST(requirements_add(&list, &again) == 0);
		MUST(requirement_read(text, (size_t)n, &again) == 0);
		MUST(requirements_add(&list, &again) == 0);
		MUST(list.n == 1 && strcmp(list.item[0].written, text) == 0);
		requirements_done(&list);
	}
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct requirement requirement;
	struct pep723 found;
	struct version version;
	bool contained;
	int r = requirement_read(text, size, &requirement);

	MUST(r == 0 || r == -EINVAL);
	if (r == 0) {
		for (size_t i = 0; i < size; i++)
			MUST(text[i] >= ' ' && text[i] <= '~' && text[i] != '$');
		check_again(&requirement);
		requirement_done(&requirement);
	}
	(void)specifiers_check(text, size, "1!2.0rc1.post3.dev4+a.5", &contained);
	if (version_read(text, size, &version) == 0)
		MUST(version_compare(&version, &version) == 0);
	MUST(pep723_find(text, size, &found) == 0);
	MUST((found.n > 0) == (found.toml != NULL));
	MUST(found.toml_len <= size);
	if (found.toml)
		MUST(pep723_line_of(&found, "a", 1, "dependencies") >= found.line);
	pep723_done(&found);
	return 0;
}
