/* SPDX-License-Identifier: Apache-2.0 */
/* Contents that the service keeps after an answer: files that a script left, and long output. */
#ifndef CLIENT_RESOURCE_H
#define CLIENT_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct call_channel;
struct shown;

/* Bytes of each part except the last one. The service returns at most this much of a file on disk
 * in one answer. */
#define RESOURCE_PART ((size_t)4 << 20)

/* Takes a part. 0; or -errno, which ends the reading. */
typedef int resource_take(void *arg, const char *bytes, size_t len);

/* Reads the resource with this uri, in parts if it is large, and calls take for each part. id: for
 * all requests, which are sent one after the other. 0, or an error of resource_read or of take. */
int resource_each(struct call_channel *channel, int id, const char *uri, resource_take *take,
		  void *arg);

/* Reads the resource with this uri. id: for the request. *bytes_r is malloc'd. 0; -ENOENT: the
 * service does not have the resource, or not any more; or an error of call_wait. */
int resource_read(struct call_channel *channel, int id, const char *uri, char **bytes_r,
		  size_t *len_r);

/* Does the answer lack a part of its stream of this name? */
bool resource_is_cut(const json_t *outcome, const char *name);

/* Prints the rest of a stream of which the answer has only a part, from the parts that the service
 * has kept (spill). The requests have the ids from *id on. 0; -ENODATA: a part was not kept, and
 * this was printed; or another -errno. */
int resource_show_stream(struct call_channel *channel, int *id, const struct shown *shown,
			 const json_t *outcome, const char *name);

#endif
