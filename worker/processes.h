/* All processes of a worker, as its init sees them in /proc.
 */
#ifndef WORKER_PROCESSES_H
#define WORKER_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Kills every process but this one and those to be kept, until a look finds no other that is
 * alive. Nothing is reaped meanwhile: what a fork bomb has made goes on counting against its
 * limit, so that it gets no new ones. How many the first look found; 0 also when /proc
 * cannot be read. */
unsigned int processes_end_others(const pid_t *keep, size_t n);

/* Whether it is there and has not ended. */
bool processes_is_alive(pid_t pid);

#endif
