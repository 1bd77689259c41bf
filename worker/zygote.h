/* SPDX-License-Identifier: Apache-2.0 */
/* The zygote: one process per profile that holds a started interpreter in a finished
 * file tree and clones workers from it.
 */
#ifndef WORKER_ZYGOTE_H
#define WORKER_ZYGOTE_H

#define ZYGOTE_CONTROL 3	/* the control socket's descriptor */

/* Speaks the protocol on ZYGOTE_CONTROL until the supervisor closes its end. Returns
 * the exit status. */
int zygote_main(void);

#endif
