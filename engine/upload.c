/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the store's job of each file that comes in.
 * Reads:   names that clients give to files. */
#include "engine/upload.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/quote.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/file_uri.h"
#include "host/filestore.h"

struct upload {
	struct tenant *tenant;
	struct upload_calls calls;
	struct filestore_job *job;
	char *uri;
};

static void
upload_free(struct upload *upload)
{
	free(upload->uri);
	free(upload);
}

static const char *
upload_say_why(int error)
{
	switch (error) {
	case -EFBIG:
		return "it is larger than a file may be";
	case -EDQUOT:
		return "there is no room among your files: scripts or sessions use them";
	case -ENOSPC:
		return "there is no room for it";
	case -ESTALE:
		return "fewer bytes came than were announced";
	case -ETIMEDOUT:
		return "it took too long";
	case -EBUSY:
		return "too many files come in or go out already; try again";
	default:
		return strerror(-error);
	}
}

static void
on_begin(void *arg, int fd)
{
	struct upload *upload = arg;

	upload->calls.begin(upload->calls.arg, fd);
}

static void
on_end(void *arg, int error)
{
	struct upload *upload = arg;
	const struct upload_calls calls = upload->calls;
	struct upload_end end = { .uri = upload->uri };
	struct filestore_file file;

	if (error == 0 && filestore_find(tenant_filestore(upload->tenant),
					 tenant_principal(upload->tenant), upload->uri, &file))
		end.sha256 = file.sha256;
	else
		end.error = error < 0 ? error : -ENOSPC;
	end.why = end.error < 0 ? upload_say_why(end.error) : NULL;
	calls.end(calls.arg, &end);
	upload_free(upload);
}

static bool
upload_is_name(const char *name, size_t len)
{
	if (len == 0 || len > UPLOAD_NAME_MAX || memchr(name, '/', len) ||
	    !quote_is_plain(name, len))
		return false;
	return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

static void
new_id(char id_r[UPLOAD_ID + 1])
{
	id_new_short(stpcpy(id_r, "u-"));
}

static struct upload *
upload_start(struct tenant *tenant, const char *id, const char *name, size_t name_len,
	     uint64_t size, const struct upload_calls *calls, const char **why_r)
{
	struct filestore *store = tenant_filestore(tenant);
	struct upload *upload;

	*why_r = !store ? "the service keeps no files on disk ([files] directory)"
		: !upload_is_name(name, name_len)
			? "a name has 1 to 255 bytes of UTF-8, no / and no character that is not shown"
			: size == 0 ? "the file is empty" : NULL;
	if (*why_r)
		return NULL;
	upload = xcalloc(1, sizeof(*upload));
	upload->tenant = tenant;
	upload->calls = *calls;
	upload->uri = file_uri(id, name, name_len);
	upload->job = filestore_keep(store, tenant_principal(tenant), upload->uri, name, name_len,
				     size, &(struct filestore_calls){
					     .begin = on_begin, .end = on_end, .arg = upload,
					     .is_slow = true });
	return upload;
}

struct upload *
upload_new(struct tenant *tenant, const char *name, size_t name_len, uint64_t size,
	   const struct upload_calls *calls, const char **why_r)
{
	char id[UPLOAD_ID + 1];

	new_id(id);
	return upload_start(tenant, id, name, name_len, size, calls, why_r);
}

/* ---- addresses that are given before the file comes ---- */

static int
upload_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes the name of a file. Returns its length; 0: it is not valid. */
static size_t
upload_read_name(const char *escaped, char name_r[UPLOAD_NAME_MAX + 1])
{
	size_t len = 0;

	for (; *escaped && len < UPLOAD_NAME_MAX; escaped++, len++) {
		name_r[len] = *escaped;
		if (*escaped != '%')
			continue;
		if (upload_digit(escaped[1]) < 0 || upload_digit(escaped[2]) < 0)
			return 0;
		name_r[len] = (char)(upload_digit(escaped[1]) << 4 | upload_digit(escaped[2]));
		escaped += 2;
	}
	return *escaped || !upload_is_name(name_r, len) ? 0 : len;
}

char *
upload_uri(const char *name)
{
	char id[UPLOAD_ID + 1], text[UPLOAD_NAME_MAX + 1];
	size_t len = upload_read_name(name, text);

	if (len == 0)
		return NULL;
	new_id(id);
	return file_uri(id, text, len);
}

struct upload *
upload_new_at(struct tenant *tenant, const char *place, uint64_t size,
	      const struct upload_calls *calls, const char **why_r)
{
	char id[UPLOAD_ID + 1] = "", name[UPLOAD_NAME_MAX + 1];
	struct filestore_file earlier;
	own_mem char *uri = NULL;
	size_t len;

	*why_r = "this is no address of an upload";
	if (strlen(place) <= UPLOAD_ID || memcmp(place, "u-", 2) != 0 ||
	    !id_is_valid(place + 2, ID_SHORT) || place[UPLOAD_ID] != '/')
		return NULL;
	memcpy(id, place, UPLOAD_ID);
	len = upload_read_name(place + UPLOAD_ID + 1, name);
	uri = len > 0 ? file_uri(id, name, len) : NULL;
	/* What was looked at, or approved, is not replaced by a link that others may have. */
	if (uri && tenant_filestore(tenant) &&
	    filestore_find(tenant_filestore(tenant), tenant_principal(tenant), uri, &earlier)) {
		*why_r = "this link was used for an upload already: ask for another one";
		return NULL;
	}
	return upload_start(tenant, id, name, len, size, calls, why_r);
}

void
upload_cancel(struct upload *upload)
{
	if (!upload)
		return;
	filestore_cancel(upload->job);
	upload_free(upload);
}
