/* SPDX-License-Identifier: Apache-2.0 */
/* Files of an execution that are kept on disk (host/filestore.h). The worker offers one file after
 * the other and waits for each answer; the bytes go from the worker to the store's helper.
 */
#ifndef ENGINE_EXECUTION_FILES_H
#define ENGINE_EXECUTION_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct execution;
struct filestore_job;
struct frame;

/* Its members belong to execution_files.c. Zeroed: nothing is offered. */
struct execution_files {
	bool open;			/* an offer has no answer yet */
	bool pulled;			/* ... but its worker has the pipe */
	bool no_place;			/* one file has waited without success: no further one waits
					 */
	struct filestore_job *job;	/* NULL: none */
	char *uri;			/* of the file that is offered */
	size_t at;			/* its number among the results */
};

/* Takes an OFFER: 0, and the frame is emptied; or -EBADMSG. */
int execution_on_offer(struct execution *execution, struct frame *frame);

/* The run has ended: no further file is kept. */
void execution_files_end(struct execution *execution);

/* Its init reports all files itself: files that were kept already are removed. */
void execution_files_anew(struct execution *execution);

#endif
