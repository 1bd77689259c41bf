/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the launcher; secret_stamp() in the supervisor.
 * Owns:    nothing; the caller erases the text after use.
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
	char bytes[SECRET_MAX + 3];	/* with CR, LF and one byte beyond the most */
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

uint64_t
secret_stamp(const char *path, uint64_t before)
{
	struct stat st = { 0 };
	uint64_t parts[6], stamp = before * 31 + 1;

	if (path == NULL || stat(path, &st) < 0)
		return stamp;
	parts[0] = st.st_dev;
	parts[1] = st.st_ino;
	parts[2] = (uint64_t)st.st_size;
	parts[3] = (uint64_t)st.st_ctim.tv_sec;
	parts[4] = (uint64_t)st.st_ctim.tv_nsec;
	parts[5] = (uint64_t)st.st_mode;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		stamp = (stamp ^ parts[i]) * 0x100000001b3;
	return stamp;
}
