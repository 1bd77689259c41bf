/* SPDX-License-Identifier: Apache-2.0 */
/* Which modules a script names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/config.h"
#include "policy/learnable.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* names: of the modules that the script names, joined by blanks. */
static const struct look_case {
	const char *script, *names;
} look_cases[] = {
	{ "", "" },
	{ "print(1)", "" },
	{ "import numpy", "numpy" },
	{ "import numpy as np", "numpy" },
	{ "x = 1\n\timport numpy;x", "numpy" },
	{ "import numpy # here", "numpy" },
	{ "import numpy\r\n", "numpy" },
	{ "import os, numpy as n, pandas,requests", "numpy pandas requests" },
	{ "import os\nfrom pandas import DataFrame\n", "pandas" },
	{ "import scipy.stats", "scipy scipy.stats" },
	{ "import scipy.stats.distributions as d", "scipy scipy.stats" },
	{ "from scipy import stats, optimize as o", "scipy scipy.stats scipy.optimize" },
	{ "from scipy import (stats,", "scipy scipy.stats" },
	{ "from scipy.stats import norm", "scipy scipy.stats" },
	{ "import scipy", "scipy" },
	{ "from matplotlib import pyplot as plt", "matplotlib matplotlib.pyplot" },
	{ "import numpyx\nimport nump\nimport x.numpy\nimportnumpy\nimport\nfrom numpy\n", "" },
	{ "from . import numpy\nfrom .numpy import x\nfrom numpy.import x", "" },
	{ "# import numpy\n'import numpy'\nx; import numpy", "" },
	{ "import numpy\nimport os\nos.environ['OMP_NUM_THREADS'] = '1'", "" },
	{ "import os\nos.putenv('OPENBLAS_NUM_THREADS', '1')\nimport numpy", "" },
	{ "import os\nos.environ.update(MKL_NUM_THREADS='1')\nimport numpy", "" },
	{ "MPLBACKEND\nimport matplotlib", "" },
	{ "MPLCONFIGDIR\nimport matplotlib", "" },
	{ "PYTHONHASHSEED\nimport numpy", "" },
	{ "import usercustomize\nimport numpy", "" },
	{ "import sys\nsys.path.insert(0, 'x')\nimport numpy", "" },
};

static struct config *
read_config(const char *text)
{
	struct config *config = config_new();
	int fd = memfd_create("config", MFD_CLOEXEC);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(config_read(config, path, stderr), 0);
	close(fd);
	return config;
}

static void
look(const struct config *config, const char *script, const char *names)
{
	uint64_t found = learnable_named(config, script, strlen(script)), wanted = 0;
	char text[256], *rest = text, *name;

	snprintf(text, sizeof(text), "%s", names);
	while ((name = strtok_r(rest, " ", &rest)))
		for (size_t i = 0; i < learnable_count(config); i++)
			if (strcmp(learnable_name(config, i), name) == 0)
				wanted |= UINT64_C(1) << i;
	if (found != wanted)
		fail_msg("%s: found %llx, not %s", script, (unsigned long long)found, names);
}

static void
a_look_finds_imports(void **state)
{
	struct config *config = read_config("[pool]\nwarm = 2\n");

	(void)state;
	for (size_t i = 0; i < N(look_cases); i++)
		look(config, look_cases[i].script, look_cases[i].names);
	config_free(config);
}

/* The look reads no byte beyond the script, and at most LEARNABLE_LOOK for imports. */
static void
a_look_is_bounded(void **state)
{
	struct config *config = read_config("[pool]\nwarm = 2\n");
	static const char line[] = "from scipy import (stats, optimize\n";
	char *large = malloc(2 * LEARNABLE_LOOK);

	(void)state;
	for (size_t len = 0; len < sizeof(line); len++) {
		char *exact = malloc(len + 1);

		memcpy(exact, line, len);
		exact = realloc(exact, len > 0 ? len : 1);
		learnable_named(config, exact, len);
		free(exact);
	}
	memset(large, '\n', 2 * LEARNABLE_LOOK);
	memcpy(large + LEARNABLE_LOOK, "import numpy", 12);
	assert_int_equal(learnable_named(config, large, 2 * LEARNABLE_LOOK), 0);
	memcpy(large + LEARNABLE_LOOK - 100, "import numpy", 12);
	assert_int_not_equal(learnable_named(config, large, 2 * LEARNABLE_LOOK), 0);
	free(large);
	config_free(config);
}

/* Any names can be looked for. */
static void
a_look_is_for_any_names(void **state)
{
	char parcel[] = "parcel", inner[] = "parcel.inner", slow[] = "slow";
	char *names[] = { parcel, inner, slow };
	const struct config_list list = { .item = names, .n = N(names) };
	static const struct {
		const char *script;
		unsigned int found;
	} cases[] = {
		{ "import slow", 4 }, { "import parcel", 1 }, { "import parcel.inner, slow", 7 },
		{ "from parcel import inner", 3 }, { "print('import slow')", 0 },
		{ "import os, slow\nos.environ['OMP_NUM_THREADS'] = '1'", 0 },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++)
		assert_int_equal(learnable_look(&list, cases[i].script, strlen(cases[i].script)),
				 cases[i].found);
}

static void
the_list_can_grow_and_be_off(void **state)
{
	struct config *more = read_config("[pool]\nlearn = + geopandas my.own\n");
	struct config *off = read_config("[pool]\nlearn = no\n");
	struct config *none = read_config("[pool]\nlearn =\n");
	struct config *only = read_config("[pool]\nlearn = sympy\n");

	(void)state;
	look(more, "import my.own, geopandas, numpy", "my.own geopandas numpy");
	assert_int_equal(learnable_count(only), 1);
	look(only, "import numpy, sympy", "sympy");
	assert_int_equal(learnable_count(off), 0);
	assert_int_equal(learnable_count(none), 0);
	assert_int_equal(learnable_named(off, "import no", 9), 0);
	config_free(more);
	config_free(off);
	config_free(none);
	config_free(only);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_finds_imports),
		cmocka_unit_test(a_look_is_bounded), cmocka_unit_test(a_look_is_for_any_names),
		cmocka_unit_test(the_list_can_grow_and_be_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
