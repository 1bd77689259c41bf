/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's cgroup and mount files as text: pure parsing, no I/O.
 */
#ifndef HOST_CGROUP_TEXT_H
#define HOST_CGROUP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path after "0::" in the text of /proc/PID/cgroup. 0, -ENOENT when there is no
 * cgroup v2 line, -ENAMETOOLONG. */
int cgroup_text_own(const char *text, char *path_r, size_t size);

/* The directory of the cgroup with the path own, below the first cgroup2 mount in the text of
 * /proc/self/mountinfo that shows it. 0, -ENOENT, -ENAMETOOLONG. */
int cgroup_text_directory(const char *mountinfo, const char *own, char *path_r,
			  size_t size);

/* The number after key in "key value" lines. 0, -ENOENT, -EBADMSG when it is no number. */
int cgroup_text_counter(const char *text, const char *key, uint64_t *value_r);

/* One number, or "max" which gives UINT64_MAX, then a newline or the end. */
int cgroup_text_number(const char *text, uint64_t *value_r);

/* Whether a word is in a list separated by blanks ("cpu io memory\n"). */
bool cgroup_text_has_word(const char *text, const char *word);

#endif
