/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the table of all keys; the types of their values are in
 * policy/key_value.c. */
#include "policy/keys.h"

#include <errno.h>
#include <string.h>

#include "policy/config.h"
#include "policy/learnable.h"

#define KiB UINT64_C(1024)
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)

/* The modules that scripts import most and that import without a side effect (no thread, no
 * descriptor left open). Other modules are imported by the script, at its own cost. */
#define BASIC_MODULES \
	"abc argparse array ast asyncio base64 binascii bisect builtins bz2 calendar cmath " \
	"codecs collections collections.abc concurrent.futures contextlib contextvars copy " \
	"csv dataclasses datetime decimal difflib enum errno fnmatch fractions functools " \
	"gc glob gzip hashlib heapq hmac html importlib inspect io itertools json keyword " \
	"linecache locale logging lzma math numbers operator os pathlib pickle platform " \
	"pprint queue random re secrets select selectors shlex shutil signal socket sqlite3 " \
	"stat statistics string struct subprocess sys tempfile textwrap threading time " \
	"token tokenize traceback types typing unicodedata urllib.parse uuid warnings " \
	"weakref zipfile zlib zoneinfo"

/* The modules of the standard library in the basic tier of the server python_sandbox_server. */
#define BASIC_TIER \
	"abc base64 binascii bisect calendar cmath collections configparser contextlib copy " \
	"csv dataclasses datetime decimal difflib enum fractions functools hashlib heapq hmac " \
	"html itertools json math operator random re secrets statistics string textwrap time " \
	"types typing unicodedata urllib.parse uuid xml.etree"

/* Well-known packages that take long to import, and their modules that scripts import most. A
 * zygote may import them before a script does (policy/learnable.h). */
#define LEARNABLE_MODULES \
	"numpy pandas scipy scipy.stats scipy.optimize scipy.signal scipy.sparse scipy.linalg " \
	"scipy.interpolate scipy.integrate scipy.spatial matplotlib matplotlib.pyplot seaborn " \
	"sklearn sklearn.linear_model sklearn.model_selection sklearn.metrics " \
	"sklearn.preprocessing sklearn.ensemble sklearn.cluster sklearn.decomposition " \
	"sklearn.datasets sklearn.tree sklearn.svm sklearn.neighbors sklearn.pipeline " \
	"sklearn.feature_extraction.text statsmodels.api statsmodels.formula.api " \
	"statsmodels.tsa.seasonal statsmodels.tsa.holtwinters statsmodels.tsa.arima.model sympy " \
	"requests httpx bs4 lxml.etree lxml.html yaml jinja2 networkx nltk openpyxl " \
	"docx pypdf PIL.Image plotly.express plotly.graph_objects altair polars " \
	"pydantic tabulate rich tqdm aiohttp dateutil.parser"

#define KEY(section, name, kind, of, member, least, most, unit, standard) \
	{ section, name, KEY_##kind, offsetof(struct config, of.member), least, most, unit, \
	  standard, 0, NULL },
#define TENANT_KEY(section, name, kind, of, member, least, most, unit, standard) \
	{ section, name, KEY_##kind, offsetof(struct config, of.member), least, most, unit, \
	  standard, KEY_OF_TENANT, NULL },
#define TENANT_DENY_KEY(section, name, kind, of, member, most, standard) \
	{ section, name, KEY_##kind, offsetof(struct config, of.member), 0, most, 1, standard, \
	  KEY_OF_TENANT | KEY_ADDS, NULL },
#define CHOICE_KEY(section, name, of, member, choices, standard) \
	{ section, name, KEY_CHOICE, offsetof(struct config, of.member), 0, 0, 1, standard, 0, \
	  choices },
#define TENANT_CHOICE_KEY(section, name, of, member, choices, standard) \
	{ section, name, KEY_CHOICE, offsetof(struct config, of.member), 0, 0, 1, standard, \
	  KEY_OF_TENANT, choices },
#define NAMED_KEY(of, name, kind, member, least, most, standard) \
	{ #of, name, KEY_##kind, offsetof(struct config_##of, member), least, most, 1, standard, 0, \
	  NULL },
#define PROFILE_KEY(...) NAMED_KEY(profile, __VA_ARGS__)
#define TOOLS_KEY(...) NAMED_KEY(tools, __VA_ARGS__)
#define SECRET_KEY(name, kind, member, most, standard) \
	NAMED_KEY(secret, name, kind, member, 1, most, standard)
#define INTERPRETER_KEY(name, member) NAMED_KEY(interpreter, name, PATH, member, 1, 4000, "")

#define VERDICTS "allow|approve|deny"	/* in the order of enum policy_verdict */

static const struct key keys[] = {
#include "policy/keys.def"
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

const struct key *
key_at(size_t i)
{
	return i < N_KEYS ? &keys[i] : NULL;
}

bool
key_is_named(const struct key *key)
{
	return strcmp(key->section, "profile") == 0 || strcmp(key->section, "interpreter") == 0 ||
	       strcmp(key->section, "tools") == 0 || strcmp(key->section, "secret") == 0;
}

int
key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < N_KEYS; i++)
		if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}
