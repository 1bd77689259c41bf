/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Finds names that differ in one slip from a well-known name, so that the approver can be
 * warned. */
#include "policy/packages.h"

#include <string.h>

#define SHORT 4		/* bytes: too many names this short are close to each other */

static const char *const well_known[] = {
	"aiohttp", "asyncpg", "attrs", "beautifulsoup4", "black", "boto3", "botocore",
	"certifi", "charset-normalizer", "click", "colorama", "coverage", "cryptography",
	"dask", "django", "docker", "fastapi", "flask", "fsspec", "google-auth", "gunicorn",
	"html5lib", "httpx", "importlib-metadata", "jinja2", "jsonschema", "keras",
	"lxml", "markupsafe", "matplotlib", "mypy", "networkx", "nltk", "numba", "numpy",
	"opencv-python", "openpyxl", "packaging", "pandas", "paramiko", "pillow", "poetry",
	"polars", "protobuf", "psutil", "psycopg2", "pyarrow", "pydantic", "pygments",
	"pymongo", "pymysql", "pyparsing", "pytest", "python-dateutil", "pytz", "pyyaml",
	"redis", "requests", "scikit-learn", "scipy", "seaborn", "selenium", "setuptools",
	"sqlalchemy", "starlette", "statsmodels", "sympy", "tensorflow", "tokenizers", "torch",
	"torchvision", "tornado", "tqdm", "transformers", "typing-extensions", "urllib3",
	"uvicorn", "virtualenv", "websockets", "werkzeug", "wheel", "xgboost",
};

/* Do the names differ in one letter that is added, missing or replaced, or in two neighbours that
 * are swapped? */
static bool
is_one_slip(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b), same = 0;

	if (a_len > b_len)
		return is_one_slip(b, a);
	if (b_len - a_len > 1)
		return false;
	while (same < a_len && a[same] == b[same])
		same++;
	a += same;
	b += same;
	if (a_len < b_len)
		return strcmp(a, b + 1) == 0;
	if (!*a)
		return false;
	return strcmp(a + 1, b + 1) == 0 ||
	       (a[1] && a[0] == b[1] && a[1] == b[0] && strcmp(a + 2, b + 2) == 0);
}

/* Do the names differ only in separators between words, or in usual additions at their ends? */
static bool
is_dressed_up(const char *name, const char *known)
{
	static const char *const before[] = { "python-", "py-", "python", "py" };
	static const char *const behind[] = { "-python", "-py", "-lib", "py", "lib" };
	size_t len = strlen(name), known_len = strlen(known);

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		if (strncmp(name, before[i], strlen(before[i])) == 0 &&
		    strcmp(name + strlen(before[i]), known) == 0)
			return true;
	for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++)
		if (len == known_len + strlen(behind[i]) &&
		    memcmp(name, known, known_len) == 0 &&
		    strcmp(name + known_len, behind[i]) == 0)
			return true;
	while (*name && *known) {
		name += *name == '-';
		known += *known == '-';
		if (*name != *known)
			return false;
		name += *name != '\0';
		known += *known != '\0';
	}
	return !*name && !*known;
}

bool
packages_are_alike(const char *name, const char *known)
{
	return (strlen(known) > SHORT && is_one_slip(name, known)) || is_dressed_up(name, known);
}

bool
packages_is_well_known(const char *name)
{
	for (size_t i = 0; i < sizeof(well_known) / sizeof(well_known[0]); i++)
		if (strcmp(name, well_known[i]) == 0)
			return true;
	return false;
}

const char *
packages_look_alike(const char *name)
{
	if (packages_is_well_known(name))
		return NULL;
	for (size_t i = 0; i < sizeof(well_known) / sizeof(well_known[0]); i++)
		if (packages_are_alike(name, well_known[i]))
			return well_known[i];
	return NULL;
}
