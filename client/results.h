/* SPDX-License-Identifier: Apache-2.0 */
/* What a script showed and left: said, and with --save written into a directory. */
#ifndef CLIENT_RESULTS_H
#define CLIENT_RESULTS_H

#include <stdbool.h>

#include <jansson.h>

struct call_channel;
struct reply;

/* A line on standard error for each picture and each file. saves: results_save comes next, so only
 * those are said that it cannot have. */
void results_say(const json_t *outcome, bool saves);

/* Where results are written. */
struct results_place {
	const char *directory;
	bool pictures;		/* as picture-1.png ... */
	bool force;		/* any file of the same name is replaced */
	const json_t *handed_in;	/* inputs_hashes: so are files that are still as they were
					 * handed in, and keep their mode; what --dir leaves out is
					 * never written. NULL: none */
};

/* Writes pictures, and files under their names, which it asks the service for, and says where each
 * one is. id: of the next request. 0, or negative: what could not be saved was said. */
int results_save(const struct results_place *place, struct call_channel *channel, int *id,
		 const struct reply *answer);

/* Saves one file, of a resource that the request id reads; no file is replaced. */
int results_save_one(const char *directory, struct call_channel *channel, int id, const char *path,
		     const char *uri);

#endif
