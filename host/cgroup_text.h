/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's cgroup and mount files as text: pure parsing, no I/O.
 */
#ifndef HOST_CGROUP_TEXT_H
#define HOST_CGROUP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path after "0::" in the text of /proc/PID/cgroup. 0; -ENOENT: there is no cgroup v2 line; or
 * -ENAMETOOLONG. */
int cgroup_text_own(const char *text, char *path_r, size_t size);

/* Finds the directory of the cgroup with the path own. mountinfo: the text of /proc/self/mountinfo;
 * its first cgroup2 mount that contains this cgroup counts. 0; -ENOENT: no mount contains it; or
 * -ENAMETOOLONG. */
int cgroup_text_directory(const char *mountinfo, const char *own, char *path_r,
			  size_t size);

/* The number after key in lines of the form "key value". 0; -ENOENT; or -EBADMSG: the value is not
 * a number. */
int cgroup_text_counter(const char *text, const char *key, uint64_t *value_r);

/* Reads one number, or "max", which gives UINT64_MAX. A newline or the end must follow. 0 or
 * -EBADMSG.
 */
int cgroup_text_number(const char *text, uint64_t *value_r);

/* Is word in text, a list that is separated by blanks ("cpu io memory\n")? */
bool cgroup_text_has_word(const char *text, const char *word);

#endif
