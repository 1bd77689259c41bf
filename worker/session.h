/* SPDX-License-Identifier: Apache-2.0 */
/* The init of a worker that a session uses. It has the list of snapshots, and lets cells run in
 * them.
 */
#ifndef WORKER_SESSION_H
#define WORKER_SESSION_H

#include "proto/message.h"
#include "worker/jail.h"

/* Called in init, whose only child has ended: makes the first snapshot, answers COPIED, and obeys
 * the supervisor until the control socket is closed. serial: the worker's, for PREPARED. */
_Noreturn void session_live(const struct jail *jail, uint64_t serial, const struct msg_open *open);

#endif
