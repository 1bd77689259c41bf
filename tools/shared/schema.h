/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON schemas of tools. Each schema is a file, tools/FOLDER/schema/NAME.json; the build makes
 * a C string NAME_schema of it (embed.py). A tool whose schema depends on the configuration parses
 * it by schema_load, changes some keywords, and gets the text by schema_take.
 */
#ifndef TOOLS_SHARED_SCHEMA_H
#define TOOLS_SHARED_SCHEMA_H

#include <jansson.h>

struct config;

/* Parses the string of a schema. schema_take releases the object. */
json_t *schema_load(const char *text);

/* Sets a keyword of an existing property; value is taken over. */
void schema_set(json_t *schema, const char *property, const char *keyword, json_t *value);

/* Appends a text to the description of a property. */
void schema_say(json_t *schema, const char *property, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets enum and default of a property that names a profile; if there is only one profile, the
 * property is not listed. */
void schema_set_profiles(json_t *schema, const char *property, const struct config *config);

/* Removes a property, which may be a required one. */
void schema_drop(json_t *schema, const char *property);

/* The number as JSON: an integer if it is whole, otherwise a real. */
json_t *schema_number(double number);

/* Returns the text of the schema on one line, malloc'd, and releases the schema. */
char *schema_take(json_t *schema);

#endif
