/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the pages of memory that every run uses, by a few system calls.
 *
 * A worker shares its memory with the zygote. When it first writes to a page, the kernel copies the
 * page in a page fault. Pages of files are mapped in page faults, too. Small scripts use nearly
 * always the same pages. So the zygote observes one run, and each worker asks for these pages in a
 * few calls before it gets work. This saves time and has no other effect.
 */
#ifndef WORKER_WARM_H
#define WORKER_WARM_H

/* In the zygote, single-threaded, as the last step: runs rehearse in a child and notes the pages
 * that it uses. After a failure no pages are known. */
void warm_learn(void (*rehearse)(const void *arg), const void *arg);

/* To be called in the script's process, right after its fork: asks for the pages. */
void warm_up(void);

#endif
