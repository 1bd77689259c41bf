/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the launcher.   Owns: nothing; the caller forgets the text.
 * Reads:   a file of the administrator. */
#include "host/secret.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/ownerfile.h"

/* Cuts the line's end off. 0 or -EBADMSG. */
static int
secret_check(char *text, size_t len)
{
	if (len > 0 && text[len - 1] == '\n')
		len--;
	if (len > 0 && text[len - 1] == '\r')
		len--;
	text[len] = '\0';
	if (len < SECRET_MIN || len > SECRET_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return -EBADMSG;
	return 0;
}

int
secret_read(const char *path, char *text)
{
	char bytes[SECRET_MAX + 3];	/* with CR, LF and one that is too many */
	struct stat st;
	own_fd int fd = ownerfile_open(path, &st);
	ssize_t n;
	int r;

	if (fd < 0)
		return fd;
	n = read(fd, bytes, sizeof(bytes));
	if (n < 0)
		return -errno;
	r = (size_t)n == sizeof(bytes) ? -EBADMSG : secret_check(bytes, (size_t)n);
	if (r == 0)
		memcpy(text, bytes, strlen(bytes) + 1);
	explicit_bzero(bytes, sizeof(bytes));
	return r;
}
