/* SPDX-License-Identifier: Apache-2.0 */
/* Displayed objects and files of a script: listed, and with --save written into a directory. */
#ifndef CLIENT_RESULTS_H
#define CLIENT_RESULTS_H

#include <stdbool.h>

#include <jansson.h>

struct call_channel;
struct reply;

/* Prints a line on standard error for each picture and each file. saves: results_save follows, so
 * only those are printed that it cannot save. */
void results_say(const json_t *outcome, bool saves);

/* The directory for results, and how they are written. */
struct results_place {
	const char *directory;
	bool pictures;		/* as picture-1.png ... */
	bool force;		/* any file of the same name is replaced */
	const json_t *handed_in;	/* from inputs_hashes: files that are unchanged since they
					 * were handed in are replaced too, and keep their mode;
					 * names that --dir leaves out are never written. NULL: none
					 */
};

/* Asks the service for pictures and files, writes them, files under their names, and prints their
 * paths. id: that of the next request. 0; or negative: a result could not be saved, which was
 * printed. */
int results_save(const struct results_place *place, struct call_channel *channel, int *id,
		 const struct reply *answer);

/* Saves one resource to a file, read by the request id; no file is replaced. */
int results_save_one(const char *directory, struct call_channel *channel, int id, const char *path,
		     const char *uri);

#endif
