/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables by which the server is configured whose place the set of tools
 * python-sandbox takes. For a supervisor that is run by hand.
 */
#ifndef POLICY_SANDBOX_ENVIRONMENT_H
#define POLICY_SANDBOX_ENVIRONMENT_H

#include <stdio.h>

struct config;

/* Sets the keys of [python-sandbox] that the environment has variables for. 0, or -EINVAL and
 * a line on errors for each variable that is wrong. */
int sandbox_environment_read(struct config *config, FILE *errors);

#endif
