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
#define LIST_MAX ((MODULES_OF_RUN_MAX + 1) * (MODULE_MAX + 4) + 1)	/* bytes of a list */

/* Modules whose package has another name. A package with the name of the module may be an
 * attacker's, so these names are given. */
static const struct {
	const char *module, *package;
} other_name[] = {
	{ "Crypto", "pycryptodome" }, { "OpenSSL", "pyopenssl" }, { "PIL", "pillow" },
	{ "attr", "attrs" }, { "bs4", "beautifulsoup4" }, { "cv2", "opencv-python-headless" },
	{ "dateutil", "python-dateutil" }, { "docx", "python-docx" },
	{ "dotenv", "python-dotenv" }, { "fitz", "pymupdf" }, { "git", "gitpython" },
	{ "jwt", "pyjwt" }, { "magic", "python-magic" }, { "pptx", "python-pptx" },
	{ "serial", "pyserial" }, { "skimage", "scikit-image" }, { "sklearn", "scikit-learn" },
	{ "yaml", "pyyaml" }, { "zmq", "pyzmq" },
};

/* Modules of Python itself that some Pythons lack, because a distribution has split them off, or a
 * version has removed them. */
static const char *const of_python[] = {
	"asynchat", "asyncore", "cgi", "cgitb", "crypt", "distutils", "ensurepip", "idlelib",
	"imghdr", "imp", "lib2to3", "msilib", "msvcrt", "nntplib", "pipes", "smtpd", "sndhdr",
	"telnetlib", "tkinter", "turtledemo", "uu", "venv", "winreg", "winsound", "xdrlib",
};

/* How the messages of exceptions name what is missing, in the order of preference. */
static const struct form {
	const char *before;
	const char *type;	/* of the exception, whose message is this alone; NULL: any */
	char after;		/* what follows the name; 0: any end of a word */
} forms[] = {
	{ "No module named '", "ModuleNotFoundError", '\'' },
	{ "Missing optional dependency '", NULL, '\'' },
	{ "pip install -U ", NULL, 0 },
	{ "pip install ", NULL, 0 },
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
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if ((!forms[i].type || strcmp(outcome->error_type, forms[i].type) == 0) &&
		    read_form(&forms[i], outcome->error_message, name_r))
			return true;
	return false;
}

/* Has pip refused to install something, in whatever way it was started? */
static bool
ran_pip(const struct outcome *outcome)
{
	static const char refused[] = "error: externally-managed-environment";

	for (size_t i = 0; i < STREAM_COUNT; i++)
		if (outcome->stream[i].text &&
		    memmem(outcome->stream[i].text, outcome->stream[i].len, refused,
			   strlen(refused)))
			return true;
	return false;
}

/* The errors of libc if there is only a loopback device. Libraries repeat them in their own
 * errors. */
static bool
lacked_network(const struct outcome *outcome)
{
	static const char *const texts[] = {
		"Name or service not known", "Temporary failure in name resolution",
		"Network is unreachable",
	};

	if (outcome->status != OUTCOME_ERROR || !outcome->error_message)
		return false;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (strstr(outcome->error_message, texts[i]))
			return true;
	return false;
}

static bool
is_of_python(const char *module)
{
	for (size_t i = 0; i < sizeof(of_python) / sizeof(*of_python); i++)
		if (strcmp(module, of_python[i]) == 0)
			return true;
	return false;
}

/* The name of the package that has the module, normalised. *known_r: true: it is from the table;
 * false: it is the module's own name, which the package may not have. */
static void
find_package(const char *module, char package_r[MODULE_MAX + 1], bool *known_r)
{
	for (size_t i = 0; i < sizeof(other_name) / sizeof(*other_name); i++)
		if (strcmp(module, other_name[i].module) == 0) {
			snprintf(package_r, MODULE_MAX + 1, "%s", other_name[i].package);
			*known_r = true;
			return;
		}
	requirement_normalise(module, strlen(module), package_r);
	*known_r = false;
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

/* Writes the list of packages that the next call has to name. A script has one set, so the list
 * also has the packages that imports of this run have found. A session (outcome NULL) keeps its
 * packages, so the list has only the missing one. */
static void
missing_list_packages(const struct outcome *outcome, const char *package, char list_r[LIST_MAX])
{
	char other[MODULE_MAX + 1];
	size_t len = 0;
	bool known;

	for (size_t i = 0; outcome && i < outcome->n_found_modules; i++) {
		find_package(outcome->found_module[i], other, &known);
		if (strcmp(other, package) != 0)
			len += (size_t)snprintf(list_r + len, LIST_MAX - len, "\"%s\", ", other);
	}
	snprintf(list_r + len, LIST_MAX - len, "\"%s\"", package);
}

static void
advise_install(const char *module, const char *list, bool known, bool in_session,
	       bool must_be_approved, char advice_r[MISSING_ADVICE])
{
	snprintf(advice_r, MISSING_ADVICE, "The module %s is not installed. %s=[%s]%s.%s%s",
		 module,
		 in_session ? "Call install_package with this session and packages"
			    : "Make the call again with dependencies",
		 list,
		 in_session ? ", then run the cell again" : ": they are installed first",
		 known ? "" : " (Some packages are not called as their modules are.)",
		 must_be_approved ? " A person has to approve it, which may take a while." : "");
}

bool
missing_advise(const struct tool_host *host, const struct outcome *outcome, bool in_session,
	       char advice_r[MISSING_ADVICE])
{
	char module[MODULE_MAX + 1], package[MODULE_MAX + 1], list[LIST_MAX];
	enum policy_verdict verdict;
	bool configured, known;
	struct why why;

	if (host->config->network.allow.n == 0 && lacked_network(outcome)) {
		snprintf(advice_r, MISSING_ADVICE, "Scripts have no network here: the operator "
			 "allows no host ([network] allow). Files can be handed in.");
		return true;
	}
	configured = install_is_configured(host->config, &why) == 0;
	if (!read_missing(outcome, module)) {
		if (ran_pip(outcome))
			snprintf(advice_r, MISSING_ADVICE, "pip cannot install here. %s",
				 !configured ? "No package can be installed; check_environment "
					       "lists what is there."
				 : in_session ? "Call install_package with this session."
					      : "Make the call again with dependencies=[...].");
		return ran_pip(outcome);
	}
	if (is_of_python(module)) {
		snprintf(advice_r, MISSING_ADVICE, "The module %s belongs to Python itself, but "
			 "this Python does not have it: no package brings it.", module);
		return true;
	}
	find_package(module, package, &known);
	verdict = packages_expect(host->config, package);
	missing_list_packages(in_session ? NULL : outcome, package, list);
	if (!configured || verdict == POLICY_DENY)
		advise_installed(host, module, package, configured, advice_r);
	else
		advise_install(module, list, known, in_session, verdict == POLICY_APPROVE,
			       advice_r);
	return true;
}
