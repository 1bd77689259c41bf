/* Runs in: the supervisor.   Owns: the store's job of each file that comes in.
 * Reads:   names that clients give to files. */
#include "engine/upload.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/own.h"
#include "base/utf8.h"
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
why(int error)
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
	end.why = end.error < 0 ? why(end.error) : NULL;
	calls.end(calls.arg, &end);
	upload_free(upload);
}

static bool
is_name(const char *name, size_t len)
{
	if (len == 0 || len > UPLOAD_NAME_MAX || utf8_prefix(name, len) < len)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == '\177' || name[i] == '/')
			return false;
	return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

struct upload *
upload_new(struct tenant *tenant, const char *name, size_t name_len, uint64_t size,
	   const struct upload_calls *calls, const char **why_r)
{
	struct filestore *store = tenant_filestore(tenant);
	char id[ID_CHARACTERS + 1], own[sizeof(id) + 2];
	struct upload *upload;

	*why_r = !store ? "the service keeps no files on disk ([files] directory)"
		: !is_name(name, name_len)
			? "a name has 1 to 255 bytes of UTF-8, no / and no control character"
			: size == 0 ? "the file is empty" : NULL;
	if (*why_r)
		return NULL;
	upload = xcalloc(1, sizeof(*upload));
	upload->tenant = tenant;
	upload->calls = *calls;
	id_new(id);
	snprintf(own, sizeof(own), "u-%s", id);
	upload->uri = file_uri(own, name, name_len);
	upload->job = filestore_keep(store, tenant_principal(tenant), upload->uri, name, name_len,
				     size, &(struct filestore_calls){ on_begin, on_end, upload });
	return upload;
}

void
upload_cancel(struct upload *upload)
{
	if (!upload)
		return;
	filestore_cancel(upload->job);
	upload_free(upload);
}
