/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds the random generator that the functions of numpy.random share. Its own function for that
 * takes half a millisecond, and writes to 140 pages that a worker shares with the zygote. */
#ifndef WORKER_TWISTER_H
#define WORKER_TWISTER_H

struct _object;

/* A function of Python with two arguments: the capsule of a numpy.random.MT19937, and the 624 words
 * of its key as bytes. Returns whether the key lies where it is expected. If so, the generator must
 * stay for as long as the process. NULL, with an exception set: there is no memory. */
struct _object *twister_noter(void);

/* A function of Python without arguments: gives that generator a new key, from the kernel. NULL as
 * above. */
struct _object *twister_seeder(void);

#endif
