/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of glibc 2.36 that Debian's static libraries call, so that the programs of a bundle
 * run with glibc 2.34, too. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

void
arc4random_buf(void *at, size_t len)
{
	uint8_t *p = at;

	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);

		/* Interrupted, or a kernel without it: numbers that can be guessed are worse. */
		if (n < 0)
			continue;
		p += n;
		len -= (size_t)n;
	}
}

uint32_t
arc4random(void)
{
	uint32_t number;

	arc4random_buf(&number, sizeof(number));
	return number;
}
