/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for libFuzzer: runs a target over its corpus, and over every prefix of each
 * input, so that make check needs no special compiler. Files may be named instead. */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#define INPUT_MAX (1024 * 1024)
#define PREFIXES_MAX 600

static unsigned int inputs;

static void
run(const char *path)
{
	static uint8_t bytes[INPUT_MAX];
	FILE *file = fopen(path, "re");
	size_t size;

	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	inputs++;
	for (size_t len = size; ; len--) {
		/* a copy of its own, so that one byte read too many is seen */
		uint8_t *exact = malloc(len ? len : 1);

		if (!exact)
			abort();
		memcpy(exact, bytes, len);
		LLVMFuzzerTestOneInput(exact, len);
		free(exact);
		if (len == 0)
			break;
		if (len > PREFIXES_MAX)
			len = PREFIXES_MAX;
	}
}

static void
run_corpus(const char *directory)
{
	DIR *dir = opendir(directory);
	const struct dirent *entry;

	if (!dir) {
		fprintf(stderr, "%s: %s\n", directory, strerror(errno));
		exit(1);
	}
	while ((entry = readdir(dir))) {
		char path[4096 + sizeof(entry->d_name)];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		run(path);
	}
	closedir(dir);
}

int
main(int argc, char **argv)
{
	const char *srcdir = getenv("srcdir"), *name = strrchr(argv[0], '/');
	char directory[4096];

	for (int i = 1; i < argc; i++)
		run(argv[i]);
	if (argc == 1) {
		name = name ? name + 1 : argv[0];
		if (strncmp(name, "fuzz-", 5) == 0)
			name += 5;
		snprintf(directory, sizeof(directory), "%s/tests/fuzz/corpus/%s",
			 srcdir ? srcdir : ".", name);
		run_corpus(directory);
	}
	printf("%u inputs, and their prefixes\n", inputs);
	return inputs > 0 ? 0 : 1;
}
