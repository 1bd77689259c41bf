/* SPDX-License-Identifier: Apache-2.0 */
/* Inline script metadata (PEP 723): finds the block "# /// script" in a script's text.
 *
 * Only the finding is done here, linear in the script's length. The block's content is
 * TOML, for which Debian has no C library that is kept up, and a parser of our own would
 * meet hostile text in the process that guards everyone: Python's tomllib reads it, in a
 * jailed worker (tools/shared/requirements.h). What comes back is a few strings, which
 * policy/requirement.h and policy/version.h check. No I/O.
 */
#ifndef POLICY_PEP723_H
#define POLICY_PEP723_H

#include <stddef.h>

#define PEP723_TOML_MAX (64 * 1024)	/* bytes of a block's content that are looked at */

struct pep723 {
	unsigned int n;			/* blocks of the type script: 0, 1 or more */
	unsigned int line;		/* of the first one's opening line, from 1 */
	unsigned int second_line;	/* of the second one's; 0: there is none */
	char *toml;			/* the first one's content, malloc'd, NUL after it; NULL:
					 * none */
	size_t toml_len;
};

/* Finds what the reference expression of the specification finds, in text whose line ends
 * (LF, CRLF, CR) were made LF first, as Python's own reader does; a byte order mark in
 * front is passed over. Blocks of other types are not counted, nor looked into. Returns 0,
 * or -ENOMEM; pep723_done releases *found_r. */
int pep723_find(const char *script, size_t len, struct pep723 *found_r);
void pep723_done(struct pep723 *found);

/* The line of the script in which the first block says text between quotes, or else as a
 * key at the start of a line (key not NULL); the opening line when neither is found. A
 * help for readers: TOML can write a string in ways that are not looked for. */
unsigned int pep723_line_of(const struct pep723 *found, const char *text, size_t len,
			    const char *key);

#endif
