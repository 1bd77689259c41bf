/* A process that holds a state of a session's interpreter, and waits.
 */
#ifndef WORKER_SNAPSHOT_H
#define WORKER_SNAPSHOT_H

#include <stdint.h>

#include "worker/jail.h"

/* Called in a process forked from init: becomes the first snapshot of a session, with a fresh
 * interpreter. line: its end, CLOEXEC, of the socket to init. data_bytes: as in OPEN. */
_Noreturn void snapshot_live(const struct jail *jail, int line, uint64_t data_bytes);

#endif
