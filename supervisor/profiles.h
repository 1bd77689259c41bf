/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that a reload adds or changes.
 */
#ifndef SUPERVISOR_PROFILES_H
#define SUPERVISOR_PROFILES_H

#include <stdio.h>

struct config;
struct engine;
struct launcher;

/* Puts new and changed profiles in force. read: the configuration that was just read; running: the
 * one in use. Passes each profile of read that is missing or different in running to the launcher,
 * copies it to running, and starts its zygotes. If this fails for a profile, for example because
 * its worker cannot be opened, the profile stays as it was; the reason is logged, and written to
 * the stream "later". A profile whose zygote_per_tenant has changed stays as it was, too. */
void profiles_take(struct config *running, const struct config *read, struct launcher *launcher,
		   struct engine *engine, FILE *later);

#endif
