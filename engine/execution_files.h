/* SPDX-License-Identifier: Apache-2.0 */
/* Files of an execution that are kept on disk (host/filestore.h). The worker offers one after the
 * other and waits for the answer to each; the bytes go from it to the store's helper.
 */
#ifndef ENGINE_EXECUTION_FILES_H
#define ENGINE_EXECUTION_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct execution;
struct filestore_job;
struct frame;

/* Time for keeping files that does not count as the run's own, in all. */
#define FILES_EXCUSED_MS 60000

/* Its members belong to execution_files.c. Zeroed: nothing is offered. */
struct execution_files {
	bool open;			/* an offer has no answer yet */
	bool pulled;			/* ... but its worker has the pipe */
	bool no_place;			/* one has waited in vain: no further one waits */
	struct filestore_job *job;	/* NULL: none */
	char *uri;			/* of the file that is offered */
	size_t at;			/* its number among the results */
	uint64_t since_us, waited_us;
};

/* Takes an OFFER: 0, and the frame is emptied; or -EBADMSG. */
int execution_on_offer(struct execution *execution, struct frame *frame);

/* Nothing is kept any more: the run is over. */
void execution_files_end(struct execution *execution);

/* Its init reports all files itself: what was kept of them is removed. */
void execution_files_anew(struct execution *execution);

/* Time that the wall clock does not count, and how much more that may be while one is kept. */
uint64_t execution_files_excused_us(const struct execution_files *files, uint64_t now_us);
uint64_t execution_files_patience_ms(const struct execution_files *files, uint64_t now_us);

#endif
