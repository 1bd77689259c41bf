/* SPDX-License-Identifier: Apache-2.0 */
/* Wheels, as the keeper has them read: any bytes, whose hash is the right one. Must hold: it
 * ends with 0 or in words; a file that goes to the sink has a path that is safe and gets as many
 * bytes as was said; they are no more than they may be; and a wheel that is taken has told of
 * itself. */
#include "fuzz.h"

#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/why.h"
#include "keeper/digest.h"
#include "keeper/path.h"
#include "keeper/wheel.h"

#define BYTES_MAX (8 << 20)
#define FILES_MAX 100

struct got {
	uint64_t left, bytes;
	uint32_t files;
	bool record;
};

static int
on_file(void *arg, const char *path, bool executable, uint64_t size)
{
	struct got *got = arg;
	const char *name = strrchr(path, '/');

	(void)executable;
	MUST(got->left == 0);
	MUST(path_is_safe(path, strlen(path)));
	MUST(strncmp(path, "__pycache__/", 12) != 0 && !strstr(path, "/__pycache__/"));
	got->files++;
	got->left = size;
	got->record = name && strcmp(name, "/RECORD") == 0;
	return 0;
}

static int
on_bytes(void *arg, const void *bytes, size_t len)
{
	struct got *got = arg;

	MUST(len == 0 || bytes);
	MUST(len <= got->left);
	got->left -= len;
	got->bytes += len;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct wheel_asked asked = { "a-b", "1.0", "/usr/bin/python3", BYTES_MAX,
						  FILES_MAX };
	static int wheel = -1;
	struct got got = { .files = 0 };
	const struct wheel_sink sink = { on_file, on_bytes, &got };
	struct why why = { .text = "" };
	int r;

	if (wheel < 0) {
		wheel = memfd_create("wheel", MFD_CLOEXEC);
		MUST(wheel >= 0 && digest_prepare() == 0 && setlocale(LC_CTYPE, "C.UTF-8"));
	}
	MUST(ftruncate(wheel, 0) == 0 && pwrite(wheel, data, size, 0) == (ssize_t)size);
	r = wheel_read(wheel, size, &asked, &sink, &why);
	MUST(r == 0 || r == -EBADMSG || r == -EFBIG);
	MUST(r == 0 || *why.text);
	/* A script's first line may be longer than its own; RECORD comes last. */
	MUST(got.bytes <= 2 * BYTES_MAX + FILES_MAX * 512);
	MUST(got.files <= 2 * FILES_MAX);
	MUST(r < 0 || (got.left == 0 && got.record));
	return 0;
}
