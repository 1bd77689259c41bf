/* SPDX-License-Identifier: Apache-2.0 */
/* What an execution keeps of its request: copies, which the worker's messages are made of; and
 * what is checked before there is an execution.
 */
#ifndef ENGINE_EXECUTION_REQUEST_H
#define ENGINE_EXECUTION_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/execution.h"
#include "proto/message.h"

struct config_profile;

struct request_copy {
	struct msg_str script;			/* a NUL is behind it */
	struct msg_str script_name;		/* at NULL: the usual one */
	struct msg_str stdin_text;		/* at NULL: none */
	struct msg_strs args;
	struct msg_strs imports;		/* item NULL: any */
	struct msg_str globals;			/* at NULL: none */
	struct msg_input *input;
	size_t n_inputs;
	char environment[ENVIRONMENT_NAME + 1];	/* "": none */
	struct msg_egress_open *network;	/* NULL: none is allowed */
	int channel;				/* -1: none, or given away */
	unsigned int snapshot, cell;
	enum background_mode background;
	uint32_t background_ms;
	uint32_t prompts;			/* that it may ask */
	uint32_t modules;			/* that it may ask for */
	struct msg_strs tools;			/* n 0: none */
	uint32_t tool_calls, tool_calls_at_once;
	bool tell_names, internal, inspect;
	char *bytes;				/* that the texts and inputs are in */
};

/* Copies the request; its channel is the copy's from now on. */
void request_copy_init(struct request_copy *copy, const struct execution_request *request);
void request_copy_done(struct request_copy *copy);

/* Gives the channel up. */
void request_copy_close_channel(struct request_copy *copy);

/* The inputs, rounded up to pages and with a directory for each slash, may fill at most half of
 * what a script of this profile may write: 0, or -EFBIG with why_r. */
int request_check_inputs(const struct execution_request *request,
			 const struct config_profile *profile, struct why *why_r);

/* The profile of that name (NULL: the default one), within what the tenant may have: 0, or
 * -ENOENT or -EACCES with why_r. */
int request_choose_profile(const struct tenant *tenant, const char *name, unsigned int *index_r,
			   struct why *why_r);

#endif
