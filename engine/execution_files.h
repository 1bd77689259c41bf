/* SPDX-License-Identifier: Apache-2.0 */
/* Files of an execution that are kept on disk (host/filestore.h). The worker offers one file after
 * the other and waits for each answer; the bytes go from the worker to the store's helper.
 */
#ifndef ENGINE_EXECUTION_FILES_H
#define ENGINE_EXECUTION_FILES_H

struct execution;
struct frame;

/* The files of one execution that its worker offers. */
struct execution_files;

void execution_files_free(struct execution_files *files);	/* NULL is fine */

/* Takes an OFFER: 0, and the frame is emptied; or -EBADMSG. */
int execution_on_offer(struct execution *execution, struct frame *frame);

/* The run has ended: no further file is kept. */
void execution_files_end(struct execution *execution);

/* To be called when the execution's init begins to report all files itself, in place of the script:
 * removes the files that were kept already. */
void execution_files_restart(struct execution *execution);

#endif
