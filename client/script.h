/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what is sent: the script, and the standard input that goes with it. */
#ifndef CLIENT_SCRIPT_H
#define CLIENT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#define SCRIPT_FILE_MAX ((size_t)4 << 20) /* what the service takes, too */
#define SCRIPT_STDIN_MAX ((size_t)8 << 20)

struct script_text {
	char *bytes; /* owned: script_text_free; not terminated */
	size_t len;
};

/* Reads fd to its end, at most max bytes. 0, -EFBIG when there is more, or -errno. */
int script_read_fd(int fd, size_t max, struct script_text *text_r);

/* Reads path ("-": standard input) and checks that it is a script the service takes. 0,
 * or the exit code after saying on standard error what is wrong with it and where. */
int script_load(const char *path, struct script_text *text_r);

/* Is standard input something that was given to this command: a pipe, a socket or a file? */
bool script_has_stdin(void);

/* Reads standard input for the script; the same. */
int script_load_stdin(struct script_text *text_r);

void script_text_free(struct script_text *text);

#endif
