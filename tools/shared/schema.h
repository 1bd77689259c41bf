/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON schemas of tools. Each is a file, tools/FOLDER/schema/NAME.json, and after the build a C
 * string NAME_schema (embed.py). A tool whose schema depends on the configuration loads it, changes
 * those keywords, and takes the text.
 */
#ifndef TOOLS_SHARED_SCHEMA_H
#define TOOLS_SHARED_SCHEMA_H

#include <jansson.h>

struct config;

/* Parses such a string. schema_take releases the object. */
json_t *schema_load(const char *text);

/* Sets a keyword of a property that the schema has; takes value. */
void schema_set(json_t *schema, const char *property, const char *keyword, json_t *value);

/* Appends to the description that a property has. */
void schema_say(json_t *schema, const char *property, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets enum and default of a property that names a profile; if there is only one profile, the
 * property is not listed. */
void schema_set_profiles(json_t *schema, const char *property, const struct config *config);

/* Removes a property, which may be a required one. */
void schema_drop(json_t *schema, const char *property);

/* A whole number without a fraction. */
json_t *schema_number(double number);

/* The text on one line, malloc'd; releases schema. */
char *schema_take(json_t *schema);

#endif
