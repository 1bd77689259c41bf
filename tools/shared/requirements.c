/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the findings about a script until they are told.
 * Reads:   scripts and lists of clients, and a worker's answers about a block's TOML.
 *
 * Up to two probes go to workers, one after the other: one for the contents of the block (with the
 * client's text, so its answer is not kept), and one for the environment (without it). */
#include "tools/shared/requirements.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "policy/pep723.h"
#include "policy/version.h"
#include "tools/shared/environment.h"
#include "tools/shared/inside.h"
#include "tools/shared/look_script.h"

#define SHOWN_MAX 120		/* bytes of a requirement in a message */
#define MESSAGE_MAX 600
#define MISSING_SHOWN 20	/* names in one sentence */

struct requirements_check {
	struct tool_host host;
	struct requirements_probe probe;
	char *requires_python;			/* a copy of the probe's */
	requirements_found *found;
	void *arg;
	struct pep723 block;
	struct findings findings;
	struct inside *inside;			/* at most one of them */
	struct environment_ask *ask;
	bool starting;				/* requirements_start() has not returned yet */
	bool told;
};

static void __attribute__((format(printf, 3, 4)))
note(struct findings *findings, unsigned int line, const char *format, ...)
{
	struct finding_error *error = &findings->error[findings->n_errors];
	va_list args;

	if (findings->n_errors == FINDING_ERRORS_MAX)
		return;
	findings->n_errors++;
	error->line = line;
	if (findings->n_errors == FINDING_ERRORS_MAX) {
		error->line = 0;
		error->message = xstrdup("there are more errors than these");
		return;
	}
	va_start(args, format);
	error->message = xvasprintf(format, args);
	va_end(args);
}

static void
free_check(struct requirements_check *check)
{
	struct findings *findings = &check->findings;

	pep723_done(&check->block);
	requirements_done(&findings->list);
	for (size_t i = 0; i < findings->n_errors; i++)
		free(findings->error[i].message);
	free(findings->requires_python);
	free(check->requires_python);
	free(findings->missing);
	json_decref(findings->environment);
	free(check);
}

/* Reports the result, then frees the check. If requirements_start() has not returned yet, that
 * function frees the check. */
static void
requirements_tell(struct requirements_check *check, const struct outcome *trouble)
{
	check->findings.trouble = trouble;
	check->found(check->arg, &check->findings);
	check->told = true;
	if (!check->starting)
		free_check(check);
}

/* ---- requirements ---- */

/* A requirement as a message shows it: bounded, on one line. */
static const char *
requirements_show(const json_t *text, char *shown)
{
	size_t len = jsonout_fit(json_string_value(text), json_string_length(text), SHOWN_MAX);

	for (size_t i = 0; i < len; i++) {
		char c = json_string_value(text)[i];

		shown[i] = (unsigned char)c < ' ' ? '?' : c;
	}
	shown[len] = '\0';
	return shown;
}

static unsigned int
line_of_dependency(const struct requirements_check *check, const json_t *text)
{
	return pep723_line_of(&check->block, json_string_value(text),
			      json_string_length(text), "dependencies");
}

/* From the block (its lines are known) or from the client's list. */
static void
read_dependencies(struct requirements_check *check, const json_t *list, bool of_block)
{
	struct findings *findings = &check->findings;
	const json_t *text;
	size_t i;

	if (json_array_size(list) > REQUIREMENTS_MAX) {
		note(findings, check->block.line, "there are more than %d dependencies",
		     REQUIREMENTS_MAX);
		return;
	}
	json_array_foreach(list, i, text) {
		struct requirement requirement;
		char shown[SHOWN_MAX + 1];
		int r = -EINVAL;

		if (!json_is_string(text) || findings->n_errors == FINDING_ERRORS_MAX)
			continue;
		r = requirement_read(json_string_value(text), json_string_length(text),
				     &requirement);
		if (r == 0)
			r = requirements_add(&findings->list, &requirement);
		xassert(r != -ENOMEM);
		if (r < 0)
			note(findings, of_block ? line_of_dependency(check, text) : 0, "'%s' %s%s",
			     requirements_show(text, shown), r == -EINVAL ? "is not a requirement (PEP 508)"
			     : "is one too many", of_block ? "" : ", in the argument "
			     "dependencies");
	}
}

/* ---- the environment ---- */

static void
hold_against(struct requirements_check *check, json_t *environment)
{
	struct findings *findings = &check->findings;

	findings->environment = environment;
	findings->python_fits = !findings->requires_python ||
				environment_fits(environment, findings->requires_python);
	findings->missing = xcalloc(findings->list.n, sizeof(*findings->missing));
	for (size_t i = 0; i < findings->list.n; i++) {
		findings->missing[i] = !environment_satisfies(environment,
							      &findings->list.item[i]);
		findings->n_missing += findings->missing[i];
	}
	requirements_tell(check, NULL);
}

static void
requirements_on_environment(void *arg, const json_t *environment, const struct outcome *outcome)
{
	struct requirements_check *check = arg;

	check->ask = NULL;
	if (environment)
		hold_against(check, json_incref((json_t *)environment));
	else
		requirements_tell(check, outcome);
}

/* The caller's requirement of the Python version, beside the block's. */
static void
add_requires_python(struct requirements_check *check)
{
	char *block = check->findings.requires_python, *both;

	if (!check->requires_python)
		return;
	both = xasprintf("%s%s%s", check->requires_python, block ? "," : "",
			 block ? block : "");
	free(block);
	check->findings.requires_python = both;
}

static int
look_at_environment(struct requirements_check *check, struct why *why_r)
{
	struct findings *findings = &check->findings;
	json_t *environment;
	int r;

	if (check->probe.dependencies_replace) {
		const json_t *text;
		size_t i;

		/* Removes the requirements of the block whose package is also in the client's list.
		 */
		json_array_foreach(check->probe.dependencies, i, text) {
			struct requirement requirement;

			if (!json_is_string(text) ||
			    requirement_read(json_string_value(text), json_string_length(text),
					     &requirement) < 0)
				continue;
			requirements_remove(&check->findings.list, requirement.name);
			requirement_done(&requirement);
		}
	}
	read_dependencies(check, check->probe.dependencies, false);
	add_requires_python(check);
	if (findings->n_errors || (!findings->list.n && !findings->requires_python)) {
		requirements_tell(check, NULL);
		return 0;
	}
	r = environment_get(&check->host, check->probe.profile, requirements_on_environment, check,
			    &environment, &check->ask, why_r);
	if (r > 0)
		hold_against(check, environment);
	return r < 0 ? r : 0;
}

/* ---- the block ---- */

static void
read_requires_python(struct requirements_check *check, const json_t *text)
{
	struct findings *findings = &check->findings;
	unsigned int line;
	char shown[SHOWN_MAX + 1];
	bool contained;

	if (!json_is_string(text))
		return;
	line = pep723_line_of(&check->block, NULL, 0, "requires-python");
	if (json_string_length(text) > REQUIREMENT_MAX ||
	    specifiers_check(json_string_value(text), json_string_length(text), NULL,
			     &contained) < 0) {
		note(findings, line, "requires-python: '%s' is not a version specifier "
		     "(PEP 440)", requirements_show(text, shown));
		return;
	}
	findings->requires_python = xmemdup0(json_string_value(text),
					     json_string_length(text));
}

/* The line of the script that a worker means. */
static unsigned int
line_of(const struct requirements_check *check, const char *key, const json_t *line)
{
	json_int_t number = json_integer_value(line);

	if (number < 1 || number > 100000000)
		number = 0;
	if (strcmp(key, "script") == 0)
		return (unsigned int)number;
	if (number)
		return check->block.line + (unsigned int)number;
	return strcmp(key, "toml") == 0 ? check->block.line
					: pep723_line_of(&check->block, NULL, 0, key);
}

static void
read_errors(struct requirements_check *check, const json_t *errors)
{
	const json_t *error;
	size_t i;

	json_array_foreach(errors, i, error) {
		const char *key = json_string_value(json_object_get(error, "key"));
		const json_t *message = json_object_get(error, "message");

		if (!key || !json_is_string(message))
			continue;
		note(&check->findings, line_of(check, key, json_object_get(error, "line")),
		     "%s%.*s", strcmp(key, "toml") == 0 ? "the metadata is not TOML: " : "",
		     (int)jsonout_fit(json_string_value(message), json_string_length(message),
				      MESSAGE_MAX), json_string_value(message));
	}
}

static void
read_imports(struct findings *findings, const json_t *imports)
{
	const json_t *one;
	size_t i;

	json_array_foreach(imports, i, one) {
		const char *module = json_string_value(json_object_get(one, "module"));
		json_int_t line = json_integer_value(json_object_get(one, "line"));
		struct finding_import *import = &findings->import[findings->n_imports];

		if (findings->n_imports == FINDING_IMPORTS_MAX)
			return;
		if (!module || !*module || line < 0 || line > 100000000 ||
		    strlen(module) >= sizeof(import->module) ||
		    module[strspn(module, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789_")])
			continue;
		memcpy(import->module, module, strlen(module) + 1);
		import->line = (unsigned int)line;
		findings->n_imports++;
	}
}

/* Is it a failure that is not the script's fault? */
static bool
is_trouble(enum outcome_status status)
{
	return status == OUTCOME_CANCELLED || !outcome_ran(status) ||
	       status == OUTCOME_WORKER_PROTOCOL_ERROR;
}

/* The script was read; or its text broke the reader, which is the script's error. */
static void
on_script(void *arg, const json_t *answer, const struct outcome *outcome)
{
	struct requirements_check *check = arg;
	struct why why = { .field = "" };

	check->inside = NULL;
	if (is_trouble(outcome->status)) {
		requirements_tell(check, outcome);
		return;
	}
	if (answer) {
		read_errors(check, json_object_get(answer, "errors"));
		read_imports(&check->findings, json_object_get(answer, "imports"));
		read_dependencies(check, json_object_get(answer, "dependencies"), true);
		read_requires_python(check, json_object_get(answer, "requires_python"));
	} else {
		note(&check->findings, check->block.line, "the script could not be examined: "
		     "%.*s", MESSAGE_MAX, outcome->message ? outcome->message
							   : "it is too much");
	}
	/* This probe was started in the profile a moment ago. */
	if (look_at_environment(check, &why) < 0)
		requirements_tell(check, outcome);
}

static int
look_at_script(struct requirements_check *check, struct why *why_r)
{
	const struct requirements_probe *asked = &check->probe;
	struct inside_probe probe = {
		.program = look_script,
		.profile = asked->profile,
		.lists = asked->compile ? LISTS_NOW : LISTS_NONE,
	};
	struct jsonout input;
	int r;

	jsonout_init(&input);
	jsonout_open(&input, '{');
	jsonout_member_string(&input, "toml", check->findings.n_errors ? NULL : check->block.toml,
			      check->block.toml_len);
	jsonout_member_bool(&input, "compile", asked->compile);
	jsonout_close(&input, '}');
	probe.input_len = input.len + 1 + (asked->compile ? asked->script_len : 0);
	input.at = xrealloc(input.at, probe.input_len + 1);
	input.at[input.len] = '\n';
	input.at[probe.input_len] = '\0';
	if (asked->compile)
		memcpy(input.at + input.len + 1, asked->script, asked->script_len);
	probe.input = input.at;
	r = inside_ask(&check->host, &probe, on_script, check, &check->inside, why_r);
	jsonout_done(&input);
	return r;
}

static void
find_block(struct requirements_check *check)
{
	const struct pep723 *block = &check->block;
	struct findings *findings = &check->findings;

	xassert(pep723_find(check->probe.script, check->probe.script_len, &check->block) >= 0);
	findings->found = block->n > 0;
	if (block->n > 1)
		note(findings, block->second_line, "there is a second block '# /// script'; "
		     "the first one is in line %u", block->line);
	else if (block->toml_len > PEP723_TOML_MAX)
		note(findings, block->line, "the metadata has %zu bytes; at most %d are "
		     "allowed", block->toml_len, PEP723_TOML_MAX);
}

/* ---- for the tools ---- */

bool
requirements_any(const char *script, size_t len, const json_t *dependencies)
{
	return json_array_size(dependencies) > 0 || memmem(script, len, "# /// script", 12);
}

int
requirements_start(const struct tool_host *host,
		   const struct requirements_probe *probe, requirements_found *found,
		   void *arg, struct requirements_check **check_r, struct why *why_r)
{
	struct requirements_check *check = xcalloc(1, sizeof(*check));
	bool ask;
	int r;

	check->host = *host;
	check->probe = *probe;
	if (probe->requires_python)
		check->requires_python = xstrdup(probe->requires_python);
	check->found = found;
	check->arg = arg;
	check->findings.python_fits = true;
	check->starting = true;
	find_block(check);
	ask = probe->compile || (check->block.toml && !check->findings.n_errors);
	r = ask ? look_at_script(check, why_r) : look_at_environment(check, why_r);
	check->starting = false;
	*check_r = NULL;
	if (r < 0 || check->told)
		free_check(check);
	else
		*check_r = check;
	return r;
}

void
requirements_cancel(struct requirements_check *check, enum cancel_reason reason)
{
	if (check->inside)
		inside_cancel(check->inside, reason);
	if (check->ask)
		environment_cancel(check->ask, reason);
	free_check(check);
}

char *
requirements_missing_text(const struct findings *findings, const char *profile)
{
	size_t len, shown = 0;
	char *text = NULL;
	FILE *to = open_memstream(&text, &len);

	xalloc_check(to);
	fprintf(to, "not installed in the profile %s:", profile);
	for (size_t i = 0; i < findings->list.n && shown < MISSING_SHOWN; i++)
		if (findings->missing[i])
			fprintf(to, "%s %.*s", shown++ ? "," : "", SHOWN_MAX,
				findings->list.item[i].written);
	if (findings->n_missing > shown)
		fprintf(to, ", and %zu more", findings->n_missing - shown);
	fputs(". Nothing was run; check_environment lists what is installed", to);
	xassert(fclose(to) == 0);
	return text;
}

char *
requirements_python_text(const struct findings *findings, const char *profile)
{
	return xasprintf("requires-python is %.*s, but the profile %s has Python %s. "
			 "Nothing was run", SHOWN_MAX, findings->requires_python, profile,
			 environment_python(findings->environment));
}

int
requirements_check_list(const json_t *value, struct why *why_r)
{
	const json_t *text;
	size_t i;

	if (!json_is_array(value) || json_array_size(value) > REQUIREMENTS_MAX)
		return why_say(why_r, -EINVAL, "dependencies",
			       "dependencies must be an array of at most %d strings",
			       REQUIREMENTS_MAX);
	json_array_foreach(value, i, text)
		if (!json_is_string(text) || json_string_length(text) > REQUIREMENT_MAX)
			return why_say(why_r, -EINVAL, "dependencies",
				       "dependencies: item %zu must be a string of at most "
				       "%d bytes", i, REQUIREMENT_MAX);
	return 0;
}
