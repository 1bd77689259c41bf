/* SPDX-License-Identifier: Apache-2.0 */
/* An execution's copy of its request, from which the worker's messages are made; and the checks of
 * a request before there is an execution.
 */
#ifndef ENGINE_EXECUTION_REQUEST_H
#define ENGINE_EXECUTION_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/request.h"
#include "proto/message.h"

struct config;
struct tenant;
struct why;

struct request_copy {
	struct msg_str script;			/* followed by NUL */
	struct msg_str script_name;		/* .at NULL: the usual one */
	struct msg_str stdin_text;		/* .at NULL: empty standard input */
	struct msg_strs args;
	struct msg_strs imports;		/* item NULL: any */
	struct msg_str globals;			/* .at NULL: none */
	struct msg_input *input;
	size_t n_inputs;
	char environment[ENVIRONMENT_NAME + 1];	/* "": none */
	struct msg_egress_open *network;	/* NULL: none is allowed */
	int channel;				/* -1: none, or given away */
	unsigned int snapshot, cell;
	enum background_mode background;
	uint32_t background_ms;
	uint32_t prompts;			/* how many prompts it may show */
	uint32_t modules;			/* how many modules it may ask for */
	struct msg_strs tools;			/* n 0: none */
	uint32_t tool_calls, tool_calls_at_once;
	bool tell_names, internal, patient, inspect;
	char *bytes;				/* the memory of the texts and inputs */
};

/* Copies the request, and takes over its channel. */
void request_copy_init(struct request_copy *copy, const struct execution_request *request);
void request_copy_done(struct request_copy *copy);

/* Closes the channel. */
void request_copy_close_channel(struct request_copy *copy);

/* Checks that the inputs, rounded up to pages and with a directory for each slash, fill at most
 * half of the space that a script of this profile may write to. 0, or -EFBIG with why_r. */
int request_check_inputs(const struct execution_request *request,
			 const struct config *config, unsigned int profile, struct why *why_r);

/* The profile of that name (NULL: the default one), if the tenant may use it. 0, or -ENOENT or
 * -EACCES with why_r. */
int request_choose_profile(const struct tenant *tenant, const char *name, unsigned int *index_r,
			   struct why *why_r);

#endif
