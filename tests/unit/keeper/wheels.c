/* SPDX-License-Identifier: Apache-2.0 */
#include "wheels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "keeper/digest.h"
#include "keeper/record.h"

#define FILES_MAX 64

static uint32_t
crc32_of(const char *bytes, size_t len)
{
	uint32_t crc = ~0U;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned char)bytes[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (0xedb88320U & -(crc & 1));
	}
	return ~crc;
}

static void
put(FILE *to, uint64_t number, unsigned int len)
{
	for (; len; len--, number >>= 8)
		putc((int)(number & 0xff), to);
}

static size_t
length_of(const struct zipped *file)
{
	return file->len ? file->len : file->text ? strlen(file->text) : 0;
}

/* What the local header and the central directory have in common. */
static void
put_head(FILE *to, const struct zipped *file, const char *path)
{
	size_t len = length_of(file);

	put(to, 20, 2);
	put(to, file->flags | 0x800, 2);
	put(to, file->method, 2);
	put(to, 0x00210000, 4);
	put(to, crc32_of(file->text ? file->text : "", len) ^ file->bad_crc, 4);
	put(to, len, 4);
	put(to, (uint64_t)((int64_t)len + file->lie), 4);
	put(to, strlen(path), 2);
	put(to, 0, 2);
}

struct zip
zip_make(const struct zipped *file, size_t n)
{
	struct zip zip = { NULL, 0 };
	FILE *to = xalloc_check(open_memstream((char **)&zip.at, &zip.len));
	size_t at[FILES_MAX], directory, end;

	for (size_t i = 0; i < n; i++) {
		at[i] = (size_t)ftell(to);
		put(to, 0x04034b50, 4);
		put_head(to, &file[i], file[i].path);
		fputs(file[i].path, to);
		if (file[i].text)
			fwrite(file[i].text, 1, length_of(&file[i]), to);
	}
	directory = (size_t)ftell(to);
	for (size_t i = 0; i < n; i++) {
		const char *path = file[i].other_path ? file[i].other_path : file[i].path;

		put(to, 0x02014b50, 4);
		put(to, 3 << 8 | 20, 2);
		put_head(to, &file[i], path);
		put(to, 0, 2 + 2 + 2);
		put(to, (uint64_t)(file[i].mode ? file[i].mode : 0100644) << 16, 4);
		put(to, at[i], 4);
		fputs(path, to);
	}
	end = (size_t)ftell(to);
	put(to, 0x06054b50, 4);
	put(to, 0, 4);
	put(to, n, 2);
	put(to, n, 2);
	put(to, end - directory, 4);
	put(to, directory, 4);
	put(to, 0, 2);
	if (fclose(to) != 0)
		abort();
	return zip;
}

static bool
has(const struct zipped *file, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(file[i].path, path) == 0)
			return true;
	return false;
}

static char *
record_of(const struct zipped *file, size_t n, const char *record)
{
	char *text;
	size_t len;
	FILE *to = xalloc_check(open_memstream(&text, &len));

	for (size_t i = 0; i < n; i++) {
		unsigned char sum[DIGEST_BYTES];
		struct digest digest = { NULL };

		if (file[i].path[strlen(file[i].path) - 1] == '/')
			continue;
		digest_begin(&digest);
		digest_add(&digest, file[i].text ? file[i].text : "", length_of(&file[i]));
		digest_end(&digest, sum);
		digest_free(&digest);
		record_write(to, file[i].path, sum, length_of(&file[i]));
	}
	record_write(to, record, NULL, 0);
	if (fclose(to) != 0)
		abort();
	return text;
}

struct zip
wheel_make(const char *name, const char *version, const struct zipped *file, size_t n)
{
	char path[3][256], metadata[256], *record = NULL;
	struct zipped all[FILES_MAX];
	struct zip zip;
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		all[total++] = file[i];
	snprintf(path[0], sizeof(path[0]), "%s-%s.dist-info/METADATA", name, version);
	snprintf(path[1], sizeof(path[1]), "%s-%s.dist-info/WHEEL", name, version);
	snprintf(path[2], sizeof(path[2]), "%s-%s.dist-info/RECORD", name, version);
	snprintf(metadata, sizeof(metadata), "Metadata-Version: 2.1\nName: %s\nVersion: %s\n\nName: x\n",
		 name, version);
	if (!has(file, n, path[0]))
		all[total++] = (struct zipped){ .path = path[0], .text = metadata };
	if (!has(file, n, path[1]))
		all[total++] = (struct zipped){ .path = path[1], .text = "Wheel-Version: 1.0\n" };
	if (!has(file, n, path[2])) {
		record = record_of(all, total, path[2]);
		all[total++] = (struct zipped){ .path = path[2], .text = record };
	}
	zip = zip_make(all, total);
	free(record);
	return zip;
}

int
zip_file(const struct zip *zip)
{
	int fd = memfd_create("wheel", MFD_CLOEXEC);

	if (fd < 0 || write(fd, zip->at, zip->len) != (ssize_t)zip->len)
		abort();
	return fd;
}
