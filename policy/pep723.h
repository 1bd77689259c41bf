/* SPDX-License-Identifier: Apache-2.0 */
/* Inline script metadata (PEP 723): finds the block "# /// script" in a script's text.
 *
 * This only finds the block, in time linear in the script's length. The block's content is TOML,
 * for which Debian has no maintained C library. A parser of this service would read hostile text in
 * the supervisor, so Python's tomllib reads it in a jailed worker (tools/shared/requirements.h).
 * Its result is a few strings, which policy/requirement.h and policy/version.h check. No I/O.
 */
#ifndef POLICY_PEP723_H
#define POLICY_PEP723_H

#include <stddef.h>

#define PEP723_TOML_MAX (64 * 1024)	/* bytes of a block's content that are parsed */

struct pep723 {
	unsigned int n;			/* blocks of the type script: 0, 1 or more */
	unsigned int line;		/* of the first block's opening line, from 1 */
	unsigned int second_line;	/* of the second block's; 0: there is none */
	char *toml;			/* the first block's content, malloc'd, with NUL after it;
					 * NULL: none */
	size_t toml_len;
};

/* Finds the blocks of a script, with the same result as the reference expression of the
 * specification. Line ends (LF, CRLF, CR) count as LF, as in Python's own reader, and a byte order
 * mark at the start is skipped. Blocks of other types are not counted or parsed. 0, and pep723_done
 * releases *found_r; or -ENOMEM. */
int pep723_find(const char *script, size_t len, struct pep723 *found_r);
void pep723_done(struct pep723 *found);

/* Finds the line of the first block that has the string text (NULL: none) in quotes. If there is
 * none, the line that begins with key (NULL: none); otherwise the opening line. Returns its number
 * in the script. It is only a hint for people: TOML has other ways to write a string. */
unsigned int pep723_line_of(const struct pep723 *found, const char *text, size_t len,
			    const char *key);

#endif
