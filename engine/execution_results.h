/* SPDX-License-Identifier: Apache-2.0 */
/* The results of an execution beside its streams: objects that it displayed, and files that it
 * left. They are kept in the frames in which they arrived. Their number and their total size are
 * bounded.
 */
#ifndef ENGINE_EXECUTION_RESULTS_H
#define ENGINE_EXECUTION_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/outcome.h"
#include "proto/frame.h"

/* The result for an offered file. */
struct results_offer {
	bool kept;
	int error;				/* why it is not kept; 0: it is kept, or this is not
						 * decided yet */
	unsigned char sha256[32];
};

/* The results of an execution. The members belong to execution_results.c. */
struct execution_results {
	uint64_t id;				/* the execution's serial, which each DISPLAY names
						 */
	const struct results_limits *limits;
	struct frame *display, *left;		/* frames of DISPLAY; frames of LEFT and OFFER */
	size_t n_displays, n_left;
	struct results_offer *offer;		/* for each file; NULL: no file was offered */
	size_t display_bytes, left_bytes;
	uint64_t written;			/* bytes of the transcript so far: the place of
						 * the next DISPLAY */
	uint64_t *display_at;			/* by display: its place */
	size_t forms;				/* forms of the last object that have arrived */
	uint32_t more_left;			/* at least this many files are not reported */
	bool files_unknown;			/* perhaps not all files have been reported */
	bool is_restarted;			/* init reports the files, in place of the script */
	/* While the answer is given. */
	struct outcome_display *shown;
	struct outcome_file *file;
};

/* id: the execution's serial. limits: borrowed. */
void results_init(struct execution_results *results, uint64_t id,
		  const struct results_limits *limits);
void results_done(struct execution_results *results);

/* The execution begins to run: until results_end there may be files that are not reported. */
void results_begin(struct execution_results *results);
void results_end(struct execution_results *results);

/* Takes DISPLAY, LEFT or LEFT_MORE. 0, and the frame is emptied; or -EBADMSG: another message, or
 * more than an honest worker sends. */
int results_take(struct execution_results *results, struct frame *frame);

/* Takes OFFER, as results_take; *at_r is the number of the file. */
int results_take_offer(struct execution_results *results, struct frame *frame, size_t *at_r);

/* Notes the result for the file with this number. error 0: it is kept, and sha256 is its hash;
 * else it is not kept, and error is a code of filestore_calls.end. */
void results_offer_ended(struct execution_results *results, size_t at, int error,
			 const unsigned char *sha256);

/* The path of the first file, from number *at_io on, that is kept on disk. *at_io gets the number
 * of this file. NULL: there is none. */
const struct msg_str *results_offer_kept(const struct execution_results *results,
					 size_t *at_io);

/* Drops the files that the script has reported, because init now reports all files itself. False:
 * they were dropped before. */
bool results_restart(struct execution_results *results);

/* Puts the results into an outcome, which borrows them. Called once. */
void results_show(struct execution_results *results, struct outcome *outcome);

#endif
