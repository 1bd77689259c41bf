/* What of a text people would see, when somebody hostile wrote it. */
#ifndef POLICY_VISIBLE_H
#define POLICY_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at at, of well-formed UTF-8; *bytes_r is its length, from 1 to 4. */
uint32_t visible_code(const char *at, size_t *bytes_r);

/* Could it make the rest look like something else than it is? Controls, line ends and tabs
 * among them, and the marks that turn or hide text. */
bool visible_deceives(uint32_t code);

#endif
