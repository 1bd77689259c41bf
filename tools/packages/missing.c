/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   the error of an outcome, which a script wrote. */
#include "tools/packages/missing.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/why.h"
#include "policy/config.h"
#include "policy/packages.h"
#include "policy/requirement.h"
#include "tools/packages/install.h"
#include "tools/shared/environment.h"

#define MODULE_MAX MODULE_NAME_MAX	/* bytes of a name that is repeated */
#define ENDS (16 * 1024)	/* bytes at the ends of an output that are searched */
#define LIST_MAX ((MODULES_OF_RUN_MAX + 1) * (MODULE_MAX + 4) + 1)	/* bytes of a list */

static const struct {
	const char *module, *package;
} other_name[] = {
#define OTHER(module, package) { module, package },
#include "tools/packages/modules.def"
};

static const char *const same_name[] = {
#define SAME(package) package,
#include "tools/packages/modules.def"
};

static const char *const of_python[] = {
#define OF_PYTHON(module) module,
#include "tools/packages/modules.def"
};

/* How messages of exceptions, and notes of worker/lacks.py in the traceback, name what is missing,
 * in the order of preference. */
static const struct form {
	const char *before;
	const char *type;	/* of the exception, whose message is this alone; NULL: any */
	char after;		/* what follows the name; 0: any end of a word */
	bool is_note;		/* it is in the traceback */
} forms[] = {
	{ "No module named '", "ModuleNotFoundError", '\'', false },
	{ "Missing optional dependency '", NULL, '\'', false },
	{ "\nthis needs the module ", NULL, ',', true },
	{ "pip install -U ", NULL, 0, false },
	{ "pip install ", NULL, 0, false },
};

static bool
is_of_name(char c)
{
	return c == '_' || (isascii(c) && isalnum((unsigned char)c));
}

/* Reads the name behind the first place of the message that has this form. A package may have "-"
 * in its name. */
static bool
read_form(const struct form *form, const char *message, char name_r[MODULE_MAX + 1])
{
	const char *name = strstr(message, form->before);
	size_t len = 0;

	if (!name)
		return false;
	name += strlen(form->before);
	while (is_of_name(name[len]) || (form->after == 0 && len > 0 && name[len] == '-' &&
					 is_of_name(name[len + 1])))
		len++;
	if (len == 0 || len > MODULE_MAX || *name == '_' ||
	    (form->after != 0 && name[len] != form->after) ||
	    (form->type && (name != message + strlen(form->before) || name[len + 1] != '\0')))
		return false;
	memcpy(name_r, name, len);
	name_r[len] = '\0';
	return true;
}

/* What was not found, if it has an ordinary name: a module of the top level, or a package that a
 * library asks for. */
static bool
read_missing(const struct outcome *outcome, char name_r[MODULE_MAX + 1])
{
	if (outcome->status != OUTCOME_ERROR || !outcome->error_type || !outcome->error_message)
		return false;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		const char *in = forms[i].is_note ? outcome->error_traceback
						  : outcome->error_message;

		if (in && (!forms[i].type || strcmp(outcome->error_type, forms[i].type) == 0) &&
		    read_form(&forms[i], in, name_r))
			return true;
	}
	return false;
}

/* Finds a text in the first or last bytes of a long one: each search of megabytes would delay all
 * other calls by a millisecond. */
static const char *
find_at_ends(const char *in, size_t len, const char *text)
{
	const char *at = memmem(in, len < ENDS ? len : ENDS, text, strlen(text));

	return at || len <= ENDS ? at : memmem(in + len - ENDS, ENDS, text, strlen(text));
}

/* Is one of the texts in what the run has written, or in its error? Returns the end of the text
 * there, *end_r: the end of what it is in. NULL: none is. */
static const char *
find_said(const struct outcome *outcome, const char *const *texts, size_t n, const char **end_r)
{
	const char *const in[] = { outcome->stream[STREAM_STDOUT].text,
				   outcome->stream[STREAM_STDERR].text,
				   outcome->error_message, outcome->error_traceback };
	const char *at;

	for (size_t i = 0; i < sizeof(in) / sizeof(*in); i++) {
		size_t len = !in[i] ? 0 : i < STREAM_COUNT ? outcome->stream[i].len : strlen(in[i]);

		for (size_t t = 0; len > 0 && t < n; t++)
			if ((at = find_at_ends(in[i], len, texts[t]))) {
				*end_r = in[i] + len;
				return at + strlen(texts[t]);
			}
	}
	return NULL;
}

#define SAID(outcome, texts, end_r) \
	find_said(outcome, texts, sizeof(texts) / sizeof(*(texts)), end_r)

/* A module that a Python which the run has started has not found, "python3: No module named NAME" or
 * in a traceback. */
static bool
read_module_of_child(const struct outcome *outcome, char name_r[MODULE_MAX + 1])
{
	static const char *const texts[] = { "Error: No module named '", "/python: No module named ",
					     "/python3: No module named " };
	const char *end, *name = SAID(outcome, texts, &end);
	size_t len = 0;

	while (name && name + len < end && len < MODULE_MAX && is_of_name(name[len]))
		len++;
	if (len == 0 || name + len == end || !strchr("'\n\\", name[len]))
		return false;
	memcpy(name_r, name, len);
	name_r[len] = '\0';
	return true;
}

/* A program that a shell has not found: "sh: 1: NAME: not found", "bash: line 1: NAME: command not
 * found". */
static bool
read_program(const struct outcome *outcome, char name_r[MODULE_MAX + 1])
{
	static const char *const shells[] = { "sh: 1: ", "sh: line 1: ", "bash: line 1: " };
	static const char *const ends[] = { ": not found", ": command not found" };
	const char *end, *name = SAID(outcome, shells, &end);
	size_t len = 0;

	while (name && name + len < end && len < MODULE_MAX &&
	       (is_of_name(name[len]) || strchr("-.+", name[len])))
		len++;
	for (size_t i = 0; len > 0 && i < sizeof(ends) / sizeof(*ends); i++) {
		size_t most = strlen(ends[i]);

		if ((size_t)(end - name) >= len + most && memcmp(name + len, ends[i], most) == 0) {
			memcpy(name_r, name, len);
			name_r[len] = '\0';
			return true;
		}
	}
	return false;
}

/* Has the run tried to install packages, in whatever way? */
static bool
ran_pip(const struct outcome *outcome)
{
	static const char *const refused[] = {
		"error: externally-managed-environment", "pip cannot install packages here",
		"ERROR: No matching distribution found for ", "ensurepip is disabled",
		"there is no program pip", "there is no program uv ", "there is no program conda",
		"there is no program mamba", "there is no program poetry",
	};
	static const char *const installers[] = {
		"pip", "pip3", "uv", "conda", "mamba", "micromamba", "pipx", "poetry", "easy_install",
	};
	char program[MODULE_MAX + 1];
	const char *end;

	if (SAID(outcome, refused, &end))
		return true;
	if (!read_program(outcome, program))
		return false;
	for (size_t i = 0; i < sizeof(installers) / sizeof(*installers); i++)
		if (strcmp(program, installers[i]) == 0)
			return true;
	return false;
}

/* The errors of libc, and of programs, if there is only a loopback device. Libraries repeat them in
 * their own errors, and scripts print them. */
static bool
lacked_network(const struct outcome *outcome)
{
	static const char *const texts[] = {
		"Name or service not known", "Temporary failure in name resolution",
		"Network is unreachable", "No route to host", "Could not resolve host",
		"No address associated with hostname", "socket.gaierror: ",
		"Could not connect to the endpoint URL", "Failed to resolve '",
	};
	const char *end;

	return SAID(outcome, texts, &end);
}

static bool
is_of_python(const char *module)
{
	for (size_t i = 0; i < sizeof(of_python) / sizeof(*of_python); i++)
		if (strcmp(module, of_python[i]) == 0)
			return true;
	return false;
}

/* The name of the package that has the module, normalised. *known_r: it is certain; false: it is
 * the module's own name, and a package of that name may be anything. */
static void
find_package(const struct config *config, const char *module, char package_r[MODULE_MAX + 1],
	     bool *known_r)
{
	*known_r = true;
	for (size_t i = 0; i < sizeof(other_name) / sizeof(*other_name); i++)
		if (strcmp(module, other_name[i].module) == 0) {
			snprintf(package_r, MODULE_MAX + 1, "%s", other_name[i].package);
			return;
		}
	requirement_normalise(module, strlen(module), package_r);
	for (size_t i = 0; i < sizeof(same_name) / sizeof(*same_name); i++)
		if (strcmp(package_r, same_name[i]) == 0)
			return;
	*known_r = packages_is_well_known(package_r) || packages_allows(config, package_r);
}

static void
advise_installed(const struct tool_host *host, const char *module, const char *package,
		 bool configured, char advice_r[MISSING_ADVICE])
{
	const char *profile, *similar = environment_similar(host, package, &profile);
	size_t len = (size_t)snprintf(advice_r, MISSING_ADVICE, "The module %s is not installed, "
				      "and %s. ", module,
				      configured ? "policy does not let its package be installed"
						 : "no package can be installed here");

	if (similar)
		len += (size_t)snprintf(advice_r + len, MISSING_ADVICE - len, "The profile %s "
					"has a package %s. ", profile, similar);
	snprintf(advice_r + len, MISSING_ADVICE - len,
		 "check_environment lists what is installed.");
}

/* Writes the list of packages that the next call has to name: package NULL: its name is not known.
 * A script has one set, so the list also has the packages that imports of this run have found. A
 * session (outcome NULL) keeps its packages, so the list has only the missing one. */
static void
missing_list_packages(const struct config *config, const struct outcome *outcome,
		      const char *package, char list_r[LIST_MAX])
{
	char other[MODULE_MAX + 1];
	size_t len = 0;
	bool known;

	for (size_t i = 0; outcome && i < outcome->n_found_modules; i++) {
		find_package(config, outcome->found_module[i], other, &known);
		if (!package || strcmp(other, package) != 0)
			len += (size_t)snprintf(list_r + len, LIST_MAX - len, "\"%s\", ", other);
	}
	if (package)
		snprintf(list_r + len, LIST_MAX - len, "\"%s\"", package);
	else
		snprintf(list_r + len, LIST_MAX - len, "...");
}

static void
advise_install(const char *module, const char *list, const char *package, bool known,
	       bool in_session, bool must_be_approved, char advice_r[MISSING_ADVICE])
{
	const char *like = known ? NULL : packages_look_alike(package);
	size_t len = (size_t)snprintf(advice_r, MISSING_ADVICE, "The module %s is not installed. ",
				      module);

	if (like)
		len += (size_t)snprintf(advice_r + len, MISSING_ADVICE - len,
					"Did you mean %s? ", like);
	if (!known)
		len += (size_t)snprintf(advice_r + len, MISSING_ADVICE - len, "The name of its "
					"package is not known here, and a package called as the "
					"module is may be somebody else's: make sure of the name. ");
	snprintf(advice_r + len, MISSING_ADVICE - len, "%s=[%s]%s.%s",
		 in_session ? "Call install_package with this session and packages"
			    : "Make the call again with dependencies",
		 list,
		 in_session ? ", then run the cell again" : ": they are installed first",
		 must_be_approved ? " A person has to approve it, which may take a while." : "");
}

/* A module that brings a missing program, or that another Python lacks. Only one whose package is
 * certain: the name may be that of a file of the script's own. */
static bool
read_indirectly(const struct tool_host *host, const struct outcome *outcome,
		char name_r[MODULE_MAX + 1])
{
	static const char *const programs[] = {
		"black", "coverage", "flake8", "isort", "mypy", "pylint", "pytest", "ruff", "tox",
	};
	char package[MODULE_MAX + 1];
	bool known;

	if (ran_pip(outcome))
		return false;
	if (read_module_of_child(outcome, name_r)) {
		find_package(host->config, name_r, package, &known);
		return known;
	}
	known = read_program(outcome, name_r);
	for (size_t i = 0; known && i < sizeof(programs) / sizeof(*programs); i++)
		if (strcmp(name_r, programs[i]) == 0)
			return true;
	return false;
}

/* Advice about something that is not a module. False: there is none. */
static bool
advise_others(const struct tool_host *host, const struct outcome *outcome, bool in_session,
	      char advice_r[MISSING_ADVICE])
{
	/* What has ended the run matters more than what it printed before. */
	const struct outcome error = { .error_message = outcome->error_message };
	char program[MODULE_MAX + 1];
	struct why why;

	if (outcome->volume_lost && outcome->status != OUTCOME_OK)
		snprintf(advice_r, MISSING_ADVICE, "The service's process for the volume has ended, "
			 "and what was open in it cannot be used (Errno 107): call again%s.",
			 in_session ? ", and name the volume" : "");
	else if (outcome->network_lost && outcome->status != OUTCOME_OK)
		snprintf(advice_r, MISSING_ADVICE, "The service's proxy for the network has ended, "
			 "and connections were cut or refused: call again.");
	else if (ran_pip(outcome))
		snprintf(advice_r, MISSING_ADVICE, "pip cannot install here, nor by subprocess. %s",
			 install_is_configured(host->config, &why) < 0
			 ? "No package can be installed; check_environment lists what is there."
			 : in_session ? "Call install_package with this session."
				      : "Make the call again with dependencies=[...], or use "
					"install_package if it is listed.");
	else if (!lacked_network(&error) && read_program(outcome, program))
		snprintf(advice_r, MISSING_ADVICE, "There is no program %s here, and none can be "
			 "installed: python -m NAME runs that of a Python package, "
			 "and ls /usr/bin lists the others.", program);
	else if (lacked_network(outcome) && host->config->network.allow.n == 0)
		snprintf(advice_r, MISSING_ADVICE, "Scripts have no network here: the operator "
			 "allows no host ([network] allow). Files can be handed in.");
	else if (lacked_network(outcome))
		snprintf(advice_r, MISSING_ADVICE, "Only the hosts that check_environment lists can "
			 "be reached, and only by the HTTP proxy that HTTP_PROXY and HTTPS_PROXY "
			 "name.");
	else
		return false;
	return true;
}

bool
missing_advise(const struct tool_host *host, const struct outcome *outcome, bool in_session,
	       char advice_r[MISSING_ADVICE])
{
	char module[MODULE_MAX + 1], package[MODULE_MAX + 1], list[LIST_MAX];
	enum policy_verdict verdict;
	bool configured, known;
	struct why why;

	if (!read_missing(outcome, module) && !read_indirectly(host, outcome, module))
		return advise_others(host, outcome, in_session, advice_r);
	configured = install_is_configured(host->config, &why) == 0;
	if (is_of_python(module)) {
		snprintf(advice_r, MISSING_ADVICE, "The module %s belongs to Python itself, but "
			 "this Python does not have it: no package brings it.", module);
		return true;
	}
	find_package(host->config, module, package, &known);
	verdict = packages_expect(host->config, package);
	missing_list_packages(host->config, in_session ? NULL : outcome, known ? package : NULL,
			      list);
	if (!configured || verdict == POLICY_DENY)
		advise_installed(host, module, package, configured, advice_r);
	else
		advise_install(module, list, package, known, in_session,
			       verdict == POLICY_APPROVE, advice_r);
	return true;
}

void
missing_advise_module(const struct tool_host *host, const char *module,
		      char advice_r[MISSING_ADVICE])
{
	char message[MODULE_MAX + 32];
	const struct outcome outcome = {
		.status = OUTCOME_ERROR, .error_type = "ModuleNotFoundError",
		.error_message = message,
	};

	snprintf(message, sizeof(message), "No module named '%s'", module);
	if (!missing_advise(host, &outcome, false, advice_r))
		snprintf(advice_r, MISSING_ADVICE, "The module %s is not installed.", module);
}

bool
missing_is_package_of(const struct config *config, const char *package, const char *module)
{
	char own[MODULE_MAX + 1];
	bool known;

	find_package(config, module, own, &known);
	if (strcmp(own, package) == 0)
		return true;
	requirement_normalise(module, strlen(module), own);
	return strcmp(own, package) == 0;
}
