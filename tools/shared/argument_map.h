/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a tool as a map: a row for each argument, with the function that reads it. A
 * name without a row is refused, and the refusal lists the names of all rows, so that a model can
 * correct itself at once.
 */
#ifndef TOOLS_SHARED_ARGUMENT_MAP_H
#define TOOLS_SHARED_ARGUMENT_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct config;
struct why;

/* One reading of a call's arguments. */
struct reading {
	const char *tool;
	unsigned int which;		/* bits of struct argument.tools; 0: all rows */
	const struct config *config;
	void *to;			/* what the arguments are read into */
	struct why *why;
};

struct argument {
	const char *name;
	/* Checks a value of any type, and reads it. 0, or -EINVAL with in->why. */
	int (*read)(const struct argument *a, const json_t *value, struct reading *in);
	size_t at;			/* offset in reading.to of the member for the value */
	double least, most;		/* of a number; of a text its bytes, of a list its items */
	bool whole;			/* of a number: an integer */
	const char *needed;		/* what it must be; NULL: it may be left out */
	unsigned int tools;		/* of a map for several tools: those that have it, bits */
};

/* The member that a row names, of the given type. */
#define ARGUMENT_MEMBER(type, a, in) ((type *)(void *)((char *)(in)->to + (a)->at))

/* Reads all arguments of an object, up to the first wrong one. 0, or -EINVAL with in->why, which
 * names the argument. */
int argument_map_read(const struct argument *map, size_t n, const json_t *json, struct reading *in);

/* Functions for rows. The members are a bool, and a const char * that borrows the value: a string
 * of at most a->most bytes (0: of any length) without NUL. */
int argument_flag(const struct argument *a, const json_t *value, struct reading *in);
int argument_string(const struct argument *a, const json_t *value, struct reading *in);

/* Reads a number within the bounds of its row; most is also what a refusal says. */
int argument_number(const struct argument *a, const json_t *value, double most, double *number_r,
		    struct why *why_r);

#endif
