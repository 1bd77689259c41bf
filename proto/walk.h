/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the bytes of a body before anything is allocated for them. A count in msgpack can be
 * false: with a few bytes a peer could make a decoder allocate gigabytes.
 */
#ifndef PROTO_WALK_H
#define PROTO_WALK_H

#include <stddef.h>

/* Whether body is one msgpack object of maps, arrays, integers, booleans, strings and
 * binaries, well-formed to its exact end, of at most objects_max objects, itself
 * included, with no container deeper than the second. 0 or -EBADMSG. */
int walk_body(const void *body, size_t len, size_t objects_max);

#endif
