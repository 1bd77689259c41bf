/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of an outcome, which itself is valid only during its callback. */
#ifndef TOOLS_SCRIPT_OUTCOME_COPY_H
#define TOOLS_SCRIPT_OUTCOME_COPY_H

#include "engine/execution.h"

struct outcome_copy;

struct outcome_copy *outcome_copy_new(const struct outcome *outcome);
const struct outcome *outcome_copy_get(const struct outcome_copy *copy);
void outcome_copy_free(struct outcome_copy *copy);	/* NULL is fine */

#endif
