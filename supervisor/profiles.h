/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that a reload adds or changes.
 */
#ifndef SUPERVISOR_PROFILES_H
#define SUPERVISOR_PROFILES_H

#include <stdio.h>

struct config;
struct engine;
struct launcher;

/* Puts those profiles of read in force that running lacks or has with other settings: the launcher
 * takes them, then running has them, and zygotes are started. If the worker of a profile cannot be
 * opened, the profile stays as it was, and the reason is logged and written to the stream later. */
void profiles_take(struct config *running, const struct config *read, struct launcher *launcher,
		   struct engine *engine, FILE *later);

#endif
