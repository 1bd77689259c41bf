/* Contents that the service keeps after an answer: files that a script left, and long output. */
#ifndef CLIENT_RESOURCE_H
#define CLIENT_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct call_channel;
struct shown;

/* Reads the resource with this uri by the request id. *bytes_r is malloc'd. 0, -ENOENT: the service
 * does not have it (any more); or an error of call_wait. */
int resource_read(struct call_channel *channel, int id, const char *uri, char **bytes_r,
		  size_t *len_r);

/* Does the answer lack a part of its stream of this name? */
bool resource_is_cut(const json_t *outcome, const char *name);

/* Prints what was not shown yet of a stream that was cut in the answer, from the parts that the
 * service kept (spill). The requests have *id and the ids after it. 0; -ENODATA: some of it was
 * not kept, which was said; or -errno. */
int resource_show_stream(struct call_channel *channel, int *id, const struct shown *shown,
			 const json_t *outcome, const char *name);

#endif
