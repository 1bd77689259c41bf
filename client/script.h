/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the script and its standard input. */
#ifndef CLIENT_SCRIPT_H
#define CLIENT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#define SCRIPT_FILE_MAX ((size_t)4 << 20) /* bytes; the service has the same bound */
#define SCRIPT_STDIN_MAX ((size_t)8 << 20)

struct script_text {
	char *bytes; /* owned: script_text_free; not terminated */
	size_t len;
};

/* Reads fd to its end, at most max bytes. 0; -EFBIG: there is more; or -errno. */
int script_read_fd(int fd, size_t max, struct script_text *text_r);

/* Reads a script from path ("-": standard input), and checks that the service would accept it. 0;
 * or the exit code, after the mistake and its place were printed on standard error. */
int script_load(const char *path, struct script_text *text_r);

/* Is standard input a pipe, a socket or a file? */
bool script_has_stdin(void);

/* Reads standard input, as the standard input of the script. Returns the same as script_load. */
int script_load_stdin(struct script_text *text_r);

void script_text_free(struct script_text *text);

#endif
