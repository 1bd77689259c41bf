/* SPDX-License-Identifier: Apache-2.0 */
/* Gives warm workers to waiting executions and sessions, and starts waiting cells. The pool calls
 * these functions through struct pool_hooks.
 */
#ifndef ENGINE_DISPATCH_H
#define ENGINE_DISPATCH_H

struct share;
struct tenant;

/* Gives warm workers to executions and sessions that wait, then asks the zygotes for the workers
 * that are still missing. */
void dispatch_workers(struct tenant *tenant, unsigned int kind);

/* Starts cells that wait because too many executions of their tenant run. */
void dispatch_cells(struct tenant *tenant);

/* Ends the executions and sessions that wait in the share, because the jail for its workers cannot
 * be built. text: the reason. */
void dispatch_refuse(struct share *share, const char *text);

/* Makes the executions and sessions that wait in the share of a learned zygote wait for the usual
 * one. */
void dispatch_fall_back(struct share *share);

#endif
