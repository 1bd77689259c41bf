/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the reader of a wheel.   Owns: nothing.
 * Reads:   RECORD, which a stranger wrote. */
#include "keeper/record.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Reads one field of CSV into to, which has room for size bytes with a NUL. *at: the character
 * after the field. */
static int
read_field(const char **at, const char *end, char *to, size_t size)
{
	bool quoted = *at < end && **at == '"';
	const char *from = *at + quoted;
	size_t len = 0;

	for (;; from++) {
		if (from == end) {
			if (quoted)
				return -EBADMSG;
			break;
		}
		if (quoted && *from == '"') {
			if (++from == end || *from != '"')
				break;
		} else if (!quoted && strchr(",\r\n", *from)) {
			break;
		}
		if (*from == '\0' || len + 1 >= size)
			return -EBADMSG;
		to[len++] = *from;
	}
	to[len] = '\0';
	*at = from;
	return 0;
}

static int
record_take(const char **at, const char *end, char c)
{
	if (*at == end || **at != c)
		return -EBADMSG;
	(*at)++;
	return 0;
}

static int
end_row(const char **at, const char *end)
{
	if (*at < end && **at == '\r')
		(*at)++;
	return *at == end ? 0 : record_take(at, end, '\n');
}

int
record_read(const char **at, const char *end, struct record_row *row_r)
{
	while (*at < end && strchr("\r\n", **at) && **at)
		(*at)++;
	if (*at == end)
		return 0;
	if (read_field(at, end, row_r->path, sizeof(row_r->path)) < 0 ||
	    record_take(at, end, ',') < 0 ||
	    read_field(at, end, row_r->hash, sizeof(row_r->hash)) < 0 ||
	    record_take(at, end, ',') < 0 ||
	    read_field(at, end, row_r->size, sizeof(row_r->size)) < 0 || end_row(at, end) < 0)
		return -EBADMSG;
	return 1;
}

void
record_hash(const unsigned char sum[DIGEST_BYTES], char *text_r)
{
	digest_base64(sum, stpcpy(text_r, "sha256="));
}

void
record_write(FILE *to, const char *path, const unsigned char *sum, uint64_t size)
{
	char hash[sizeof(((struct record_row *)NULL)->hash)];
	bool quoted = strpbrk(path, ",\"") != NULL;

	if (quoted)
		putc('"', to);
	for (const char *c = path; *c; c++) {
		if (*c == '"')
			putc('"', to);
		putc(*c, to);
	}
	if (quoted)
		putc('"', to);
	if (!sum) {
		fputs(",,\n", to);
		return;
	}
	record_hash(sum, hash);
	fprintf(to, ",%s,%" PRIu64 "\n", hash, size);
}
