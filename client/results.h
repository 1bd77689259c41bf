/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the displayed objects and files of a script, and writes them into a directory (--save,
 * --rw). */
#ifndef CLIENT_RESULTS_H
#define CLIENT_RESULTS_H

#include <stdbool.h>

#include <jansson.h>

struct call_channel;
struct reply;

/* Prints a line on standard error for each picture and each file. saves: results_save will be
 * called, so only those that it cannot save are printed. */
void results_say(const json_t *outcome, bool saves);

/* The directory for results, and how they are written. */
struct results_place {
	const char *directory;
	bool pictures;		/* pictures are written, too, as picture-1.png ... */
	bool force;		/* any file of the same name is replaced */
	bool from_repl;		/* by %save, which has no --force */
	const json_t *handed_in;	/* from inputs_hashes. Files that were sent, and have not
					 * changed since, are replaced, too, and keep their mode.
					 * Names that --dir leaves out are never written. NULL: no
					 * files were sent */
};

/* Reads pictures and files from the service, writes them (files under their own names), and prints
 * their paths. *id: of the next request. 0; or negative: a result could not be saved, and this was
 * printed. */
int results_save(const struct results_place *place, struct call_channel *channel, int *id,
		 const struct reply *answer);

/* Saves one resource to a new file; no file is replaced. id: for the request. 0, or negative: an
 * error was printed. */
int results_save_one(const char *directory, struct call_channel *channel, int id, const char *path,
		     const char *uri);

#endif
