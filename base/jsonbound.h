/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of JSON text from strangers, checked before it is parsed: a parsed value takes up to forty
 * times the memory of its text.
 */
#ifndef BASE_JSONBOUND_H
#define BASE_JSONBOUND_H

#include <stddef.h>

#define JSON_DEPTH_MAX 64	/* arrays and objects within each other */
#define JSON_VALUES_MAX 20000	/* of a text that the supervisor parses */

/* Returns the number of arrays and objects in a text, plus the number of commas outside strings.
 * JSON text has at most one value more than that; keys do not count as values. SIZE_MAX: the text
 * is nested more than JSON_DEPTH_MAX deep. Whether the text is JSON is left to the parser. */
size_t jsonbound_values(const char *text, size_t len);

/* Finds the end of a string. at: after the opening quote. Returns the closing quote, or end. */
const char *jsonbound_string_end(const char *at, const char *end);

#endif
