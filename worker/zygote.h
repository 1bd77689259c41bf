/* SPDX-License-Identifier: Apache-2.0 */
/* The zygote: a process for each profile, which has a started interpreter in a complete file tree
 * and clones workers.
 */
#ifndef WORKER_ZYGOTE_H
#define WORKER_ZYGOTE_H

#define ZYGOTE_CONTROL 3	/* the control socket's descriptor */

/* Serves the supervisor on ZYGOTE_CONTROL until it closes its end. Returns the exit status. */
int zygote_main(void);

#endif
