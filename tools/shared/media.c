/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   names and first bytes, chosen by a script. */
#include "tools/shared/media.h"

#include <string.h>
#include <strings.h>

#include "proto/codec.h"

#define PNG_PIXELS_MAX 0x7fffffff	/* the limit of its specification */

static const unsigned char png_signature[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
static const unsigned char jpeg_signature[] = { 0xff, 0xd8, 0xff };

const char *
media_of_display(enum display_kind kind)
{
	static const char *const types[DISPLAY_KIND_COUNT] = {
		[DISPLAY_PNG] = "image/png",
		[DISPLAY_JPEG] = "image/jpeg",
		[DISPLAY_SVG] = "image/svg+xml",
		[DISPLAY_HTML] = "text/html",
		[DISPLAY_MARKDOWN] = "text/markdown",
		[DISPLAY_PLAIN] = "text/plain",
		[DISPLAY_JSON] = "application/json",
	};

	return types[kind];
}

const char *
media_end_of_display(enum display_kind kind)
{
	static const char *const ends[DISPLAY_KIND_COUNT] = {
		[DISPLAY_PNG] = "png",
		[DISPLAY_JPEG] = "jpg",
		[DISPLAY_SVG] = "svg",
		[DISPLAY_HTML] = "html",
	};

	return ends[kind];
}

static bool
media_begins(const void *data, size_t len, const unsigned char *with, size_t with_len)
{
	return len > with_len && memcmp(data, with, with_len) == 0;
}

static uint32_t
big_endian(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

bool
media_png_size(const void *data, size_t len, uint32_t *width_r, uint32_t *height_r)
{
	const unsigned char *at = data;
	uint32_t width, height;

	/* Signature, then the chunk IHDR: length, name, width, height, 5 bytes, sum. */
	if (!media_begins(data, len, png_signature, sizeof(png_signature)) || len < 33 ||
	    big_endian(at + 8) != 13 || memcmp(at + 12, "IHDR", 4) != 0)
		return false;
	width = big_endian(at + 16);
	height = big_endian(at + 20);
	if (width == 0 || height == 0 || width > PNG_PIXELS_MAX || height > PNG_PIXELS_MAX)
		return false;
	*width_r = width;
	*height_r = height;
	return true;
}

bool
media_fits(enum display_kind kind, const void *data, size_t len)
{
	uint32_t width, height;

	if (kind == DISPLAY_PNG)
		return media_png_size(data, len, &width, &height);
	if (kind == DISPLAY_JPEG)
		return media_begins(data, len, jpeg_signature, sizeof(jpeg_signature));
	return codec_text_prefix(data, len) == len;
}

#define OFFICE "application/vnd.openxmlformats-officedocument."

const char *
media_of_path(const char *path, size_t len)
{
	static const struct {
		const char *end, *type;
	} types[] = {
		{ ".csv", "text/csv" },
		{ ".tsv", "text/tab-separated-values" },
		{ ".txt", "text/plain" },
		{ ".log", "text/plain" },
		{ ".md", "text/markdown" },
		{ ".htm", "text/html" },
		{ ".html", "text/html" },
		{ ".css", "text/css" },
		{ ".xml", "application/xml" },
		{ ".json", "application/json" },
		{ ".jsonl", "application/jsonl" },
		{ ".yaml", "application/yaml" },
		{ ".yml", "application/yaml" },
		{ ".toml", "application/toml" },
		{ ".py", "text/x-python" },
		{ ".js", "text/javascript" },
		{ ".png", "image/png" },
		{ ".jpg", "image/jpeg" },
		{ ".jpeg", "image/jpeg" },
		{ ".gif", "image/gif" },
		{ ".webp", "image/webp" },
		{ ".svg", "image/svg+xml" },
		{ ".pdf", "application/pdf" },
		{ ".zip", "application/zip" },
		{ ".gz", "application/gzip" },
		{ ".tar", "application/x-tar" },
		{ ".parquet", "application/vnd.apache.parquet" },
		{ ".sqlite", "application/vnd.sqlite3" },
		{ ".wav", "audio/wav" },
		{ ".mp3", "audio/mpeg" },
		{ ".mp4", "video/mp4" },
		{ ".xlsx", OFFICE "spreadsheetml.sheet" },
		{ ".docx", OFFICE "wordprocessingml.document" },
		{ ".pptx", OFFICE "presentationml.presentation" },
		{ ".xls", "application/vnd.ms-excel" },
		{ ".doc", "application/msword" },
		{ ".odt", "application/vnd.oasis.opendocument.text" },
		{ ".ods", "application/vnd.oasis.opendocument.spreadsheet" },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t n = strlen(types[i].end);

		if (len > n && strncasecmp(path + len - n, types[i].end, n) == 0)
			return types[i].type;
	}
	return "application/octet-stream";
}

bool
media_is_text(const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)data[i];

		if (c < ' ' && c != '\n' && c != '\t' && c != '\r' && c != '\f')
			return false;
	}
	return codec_text_prefix(data, len) == len;
}
