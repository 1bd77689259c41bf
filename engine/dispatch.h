/* Brings together what waits (executions, sessions that have no worker yet, cells) and the
 * workers that are warm. For struct pool_hooks.
 */
#ifndef ENGINE_DISPATCH_H
#define ENGINE_DISPATCH_H

struct share;
struct tenant;

/* Gives warm workers to executions and sessions that wait, then asks for what is still needed. */
void dispatch_workers(struct tenant *tenant, unsigned int profile);

/* Starts cells that wait for others of the tenant to end. */
void dispatch_cells(struct tenant *tenant);

/* What waits in the share ends: its jail cannot be built, for the reason in text. */
void dispatch_refuse(struct share *share, const char *text);

#endif
