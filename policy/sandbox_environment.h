/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the environment variables of python_sandbox_server, the server that the set of tools
 * python-sandbox replaces. They count only for a supervisor that is started by hand.
 */
#ifndef POLICY_SANDBOX_ENVIRONMENT_H
#define POLICY_SANDBOX_ENVIRONMENT_H

#include <stdio.h>

struct config;

/* Sets the keys of [python-sandbox] from the environment. 0; or -EINVAL, and errors gets a line for
 * each wrong variable. */
int sandbox_environment_read(struct config *config, FILE *errors);

#endif
