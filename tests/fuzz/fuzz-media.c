/* SPDX-License-Identifier: Apache-2.0 */
/* Media types of what a script shows, and of its files. The first byte is the kind; the rest is
 * content, or a name. The target asserts:
 *
 * - Content that may be sent as a picture begins as its kind does. The size of a PNG is that of its
 *   header.
 * - Content that may be sent as text is UTF-8 without control characters.
 * - The type of a name depends on its end alone, in upper or lower case. */
#include "fuzz.h"

#include <ctype.h>

#include "base/utf8.h"
#include "tools/shared/media.h"

static uint32_t
big_endian(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void
check_picture(enum display_kind kind, const uint8_t *data, size_t size)
{
	uint32_t width = 0, height = 0;
	bool has_size = media_png_size(data, size, &width, &height);

	if (has_size) {
		MUST(size >= 33 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0);
		MUST(width == big_endian(data + 16) && height == big_endian(data + 20));
		MUST(width > 0 && width <= INT32_MAX && height > 0 && height <= INT32_MAX);
	}
	if (!media_fits(kind, data, size))
		return;
	if (kind == DISPLAY_PNG)
		MUST(has_size);
	else if (kind == DISPLAY_JPEG)
		MUST(size > 3 && memcmp(data, "\xff\xd8\xff", 3) == 0);
	else
		MUST(utf8_prefix(data, size) == size && !memchr(data, '\0', size));
}

static void
check_text(const uint8_t *data, size_t size)
{
	if (!media_is_text((const char *)data, size))
		return;
	MUST(utf8_prefix(data, size) == size);
	for (size_t i = 0; i < size; i++)
		MUST(data[i] >= ' ' || memchr("\n\t\r\f", data[i], 4));
}

static void
check_name(const uint8_t *data, size_t size)
{
	const char *type = media_of_path((const char *)data, size);
	char *other = malloc(size + 2);

	MUST(strchr(type, '/') && utf8_prefix(type, strlen(type)) == strlen(type));
	other[0] = 'x';
	for (size_t i = 0; i < size; i++)
		other[i + 1] = (char)toupper(data[i]);
	/* ".csv" alone is a hidden file without an end. */
	MUST(media_of_path(other, size + 1) == type || media_of_path(other + 1, size) == type);
	free(other);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum display_kind kind;

	if (size == 0)
		return 0;
	kind = data[0] % DISPLAY_KIND_COUNT;
	MUST(strchr(media_of_display(kind), '/'));
	check_picture(kind, data + 1, size - 1);
	check_text(data + 1, size - 1);
	check_name(data + 1, size - 1);
	return 0;
}
