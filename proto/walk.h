/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the bytes of a body before memory is allocated for them. A count in msgpack can be false:
 * with a few bytes a peer could make a decoder allocate gigabytes.
 */
#ifndef PROTO_WALK_H
#define PROTO_WALK_H

#include <stddef.h>

/* Checks that body is one well-formed msgpack object, up to its exact end. It may consist of maps,
 * arrays, integers, booleans, strings and binaries; of at most objects_max objects, itself
 * included; and of containers in at most two levels. 0 or -EBADMSG. */
int walk_body(const void *body, size_t len, size_t objects_max);

#endif
