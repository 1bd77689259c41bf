/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files. Must hold: a file is refused if and only if something was said of
 * it, each line of which names the file; and what an accepted one is printed as is
 * accepted and printed the same. */
#include "fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policy/config.h"

static int
read_bytes(struct config *config, const void *bytes, size_t size, char **errors_r)
{
	int fd = memfd_create("config", MFD_CLOEXEC), r;
	FILE *errors;
	size_t len;
	char path[64];

	MUST(fd >= 0);
	MUST(write(fd, bytes, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	errors = open_memstream(errors_r, &len);
	MUST(errors);
	r = config_read(config, path, errors);
	fclose(errors);
	close(fd);

	MUST(r == 0 || r == -EINVAL);
	MUST((r < 0) == (len > 0));
	for (const char *at = *errors_r; *at; at = strchr(at, '\n') + 1)
		MUST(strncmp(at, path, strlen(path)) == 0);
	return r;
}

static char *
dump(const struct config *config)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	MUST(out);
	config_dump(config, out);
	fclose(out);
	return text;
}

static void
check_dump(const struct config *config)
{
	struct config *again = config_new();
	char *text = dump(config), *errors, *second;

	MUST(read_bytes(again, text, strlen(text), &errors) == 0);
	second = dump(again);
	MUST(strcmp(text, second) == 0);
	free(errors);
	free(text);
	free(second);
	config_free(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *config = config_new();
	char *errors;

	if (read_bytes(config, data, size, &errors) == 0)
		check_dump(config);
	free(errors);
	config_free(config);
	return 0;
}
