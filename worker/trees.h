/* SPDX-License-Identifier: Apache-2.0 */
/* The files of branches, for a session's init. A tree is what one head, or several, see in
 * /workspace. A session has one tree until a branch has a copy of it (worker/checkpoints.py). Then
 * the tree of the head that runs is in /workspace, and each other one is in a directory beside it.
 * They change places by renames, so an open file stays the same file, and nothing is copied.
 *
 * What lies there belongs to the session's scripts, which can change all of it: a script that does
 * so harms its own session. Nothing outside of these directories is touched.
 */
#ifndef WORKER_TREES_H
#define WORKER_TREES_H

#include <stdbool.h>

/* Where the copy of the files for a slot is, when it is complete (worker/checkpoints.py). */
#define TREES_NEW "/run/home/.branches/new-%u"

/* Puts the tree of the slot into /workspace. What was renamed for this does not count as written by
 * a cell that begins afterwards (workspace_begin). All other heads must have stopped. */
void trees_place(unsigned int slot);

/* A copy of the state in "from" is in the slot "to". It has the same tree, or a tree of its own if
 * there is a copy of the files for it. */
void trees_copied(unsigned int from, unsigned int to);

/* The slot's state was dropped: removes its tree, unless another slot has the same one, and its
 * copies of files. */
void trees_drop(unsigned int slot);

/* In the process of a copy that gets a tree of its own: opens the descriptors of files and
 * directories below /workspace again, in the copy of the files for this slot, at the same offsets.
 * The working directory follows, too. What cannot be opened there stays as it is. Returns whether
 * there is such a copy. */
bool trees_follow(unsigned int slot);

/* In that process, when its tree is in /workspace: names the working directory by that path. */
void trees_settle(void);

#endif
