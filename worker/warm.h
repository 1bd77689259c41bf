/* SPDX-License-Identifier: Apache-2.0 */
/* The pages that every run touches, learnt once and fetched at once.
 *
 * A worker shares its memory with the zygote until it writes; then the kernel copies
 * page by page, in a fault each. Pages of files it maps again as they are touched.
 * Which pages the run of a small script touches hardly varies, so the zygote watches
 * one, and each worker asks for those pages in a few calls before it is given work.
 * Nothing depends on it but time.
 */
#ifndef WORKER_WARM_H
#define WORKER_WARM_H

/* In the zygote, single-threaded, last of all: runs rehearse in a child and keeps what
 * it touched. Failures leave nothing learnt. */
void warm_learn(void (*rehearse)(const void *arg), const void *arg);

/* In a worker's script process, right after its fork. */
void warm_up(void);

#endif
