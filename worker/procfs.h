/* SPDX-License-Identifier: Apache-2.0 */
/* The /proc of a worker. It has the worker's processes, and a few files that describe the worker as
 * if it were the machine: its memory limit, its processors and its age. The kernel's own files do
 * not exist in it.
 *
 * A procfs with subset=pid has processes only. But libraries (psutil, and with it joblib and dask)
 * do not work without /proc/stat and /proc/meminfo, and nothing can be mounted on a name that does
 * not exist. So a worker mounts a whole procfs, mounts its files on those names, and then sets
 * subset=pid. From then on the kernel finds no other name, but names with a mount on them stay.
 */
#ifndef WORKER_PROCFS_H
#define WORKER_PROCFS_H

#include <stdbool.h>
#include <stdint.h>

/* In the zygote, where the host's /proc is visible: makes a time namespace for its workers, in
 * which the boot time counts from now, and writes the files that are the same for all workers to
 * /etc/proc below root, a directory descriptor. 0, or -errno with the name of the file in *what_r
 * (static). */
int procfs_prepare(int root, const char **what_r);

/* In a worker, once its own file system is on /run: mounts its procfs, with the worker's files on
 * it. memory_bytes: the limit that most workers get. 0 or -errno. */
int procfs_mount(uint64_t memory_bytes);

/* In a process that init has forked, before any line of a script: closes the descriptors by which
 * the files are written. */
void procfs_leave(void);

/* In the script's process, once, before any line of a script: writes /proc/uptime, and also
 * /proc/meminfo if memory_bytes is not the usual limit. Closes the descriptors of these files,
 * starts the timer, and closes this process's descriptor of it. 0 or -errno. */
int procfs_tell(uint64_t memory_bytes);

/* Is it one of the three descriptors that procfs_tell closes? */
bool procfs_holds(int fd);

/* A timer, which belongs to this module, as a descriptor for poll(); for init, and for a script's
 * process before its run. From procfs_tell on it is readable each PROCFS_TICK_MS; procfs_on_tick()
 * reads it. */
int procfs_tick(void);
void procfs_on_tick(void);
void procfs_end_tick(void);

/* To be called in init when the limit of a session was raised: writes /proc/meminfo again. */
void procfs_tell_memory(uint64_t memory_bytes);

/* To be called in init, at least every PROCFS_TICK_MS while a script or cell runs: writes
 * /proc/uptime again. The time counts from the zygote's start, and is 0.00 if the kernel has no
 * time namespaces. */
#define PROCFS_TICK_MS 500
void procfs_tell_uptime(void);

#endif
