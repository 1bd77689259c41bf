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

/* The files of an execution that its worker offers. The members belong to execution_files.c.
 * Zeroed: nothing is offered. */
struct execution_files {
	bool open;			/* an offer has no answer yet */
	bool pulled;			/* open, and the worker has the pipe for the file's bytes */
	bool no_place;			/* one file has waited for a place of the store without
					 * success: later files do not wait, and are not kept */
	struct filestore_job *job;	/* NULL: none */
	char *uri;			/* of the file that is offered */
	size_t at;			/* the number of this file among the results */
};

/* Takes an OFFER: 0, and the frame is emptied; or -EBADMSG. */
int execution_on_offer(struct execution *execution, struct frame *frame);

/* The run has ended: no further file is kept. */
void execution_files_end(struct execution *execution);

/* To be called when the execution's init begins to report all files itself, in place of the script:
 * removes the files that were kept already. */
void execution_files_restart(struct execution *execution);

#endif
