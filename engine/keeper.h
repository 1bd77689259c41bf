/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper as the supervisor sees it: the process that owns the store of environments
 * (keeper/keeper.h). It is started again when it ends.
 *
 * An environment is a directory of the store, named by 64 hexadecimal digits. It exists once
 * DIRECTORY/NAME/manifest exists, and never changes. The supervisor reads the manifest itself.
 */
#ifndef ENGINE_KEEPER_H
#define ENGINE_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct event_base;
struct keeper;
struct launcher;
struct mounting;
struct taking;

struct keeper_options {
	struct event_base *base;		/* all borrowed */
	struct launcher *launcher;		/* sends it the path of its store */
	bool wants_volumes;			/* if no volume can be mounted, this is logged */
};

/* Starts it. 0 or -errno; a start that fails is logged and tried again. */
int keeper_new(const struct keeper_options *options, struct keeper **keeper_r);

/* Kills it and its children, and waits for their end. NULL is fine. */
void keeper_free(struct keeper *keeper);

/* Does the keeper serve, or is it starting without a failure so far? Requests wait until it serves.
 */
bool keeper_is_there(const struct keeper *keeper);

/* How often it was started. */
unsigned int keeper_starts(const struct keeper *keeper);

/* Why it does not serve; "" if it does. Valid until the next start. */
const char *keeper_trouble(const struct keeper *keeper);

/* Mounts an environment in the worker of pidfd, which is borrowed. gate is the writing end of a
 * pipe, and belongs to the keeper from now on. The reader of the pipe gets one byte: 0, or an
 * errno; or no byte, if the keeper ends first. 0 or -errno: -ENOTCONN if the keeper is not running.
 */
int keeper_attach(struct keeper *keeper, const char *name, int pidfd, int gate);

/* As keeper_attach, but with a callback instead of a gate: mounted is called once, from the loop,
 * with 0 or a positive errno. */
int keeper_mount(struct keeper *keeper, const char *name, int pidfd,
		 void (*mounted)(void *arg, int error), void *arg,
		 struct mounting **mounting_r);
void keeper_unwait(struct mounting *mounting);	/* mounted is not called any more */

/* Mounts n stored files in a worker, at the places from number first on. directory and names: from
 * filestore_hold_directory and filestore_hold_name. n: 1 to FILE_PLACES. pidfd, gate and the
 * result: as in keeper_attach. */
int keeper_attach_files(struct keeper *keeper, const char *directory, const char *const *names,
			size_t n, unsigned int first, int pidfd, int gate);

/* Why no volume can be mounted: a positive errno. 0: volumes can be mounted, or this is not known
 * yet. */
int keeper_no_volumes(const struct keeper *keeper);

/* As keeper_no_volumes, for the user's folder. */
int keeper_no_folder(const struct keeper *keeper);

/* Mounts the user's folder in a worker. pidfd, gate and the result: as in keeper_attach. */
int keeper_attach_folder(struct keeper *keeper, int pidfd, int gate);

struct keeper_volume {
	const char *tenant, *name;	/* at most VOLUME_TENANT_MAX and VOLUME_NAME_MAX bytes */
	uint64_t bytes, files;		/* the most that the volume may have */
	unsigned int names_max;		/* the most volumes that the tenant may have */
	uint64_t bytes_max;		/* the most that all volumes together may have */
};

/* Mounts a volume in a worker. A process serves the volume; it is put into cgroup (a borrowed
 * descriptor of the directory), and ends when that cgroup is killed. pidfd, gate and the result: as
 * in keeper_attach. */
int keeper_attach_volume(struct keeper *keeper, const struct keeper_volume *volume, int cgroup,
			 int pidfd, int gate);

/* An environment to be made from a stream of wheels. Copied. */
struct taking_request {
	const char *name;
	const char *manifest;
	size_t manifest_len;
	const char *const *wheel;	/* "NAME VERSION SHA256 BYTES" of each, in their order */
	size_t n_wheels;		/* at most WHEELS_MAX */
	const char *python;		/* absolute path of the interpreter, for scripts */
	uint64_t bytes_max;
	uint32_t files_max;
	/* Sockets, which belong to the keeper from now on, even on failure: one with the wheels,
	 * and one to a worker that compiles. */
	int stream, compiler;
};

/* error 0: the environment exists. Otherwise nothing was made, and text (borrowed) gives the
 * reason. */
typedef void keeper_taken(void *arg, int error, const char *text, uint64_t bytes,
			  uint32_t files);

/* Makes the keeper build an environment. taken is called once, from the loop. 0 and *taking_r,
 * which is valid until taken is called; or -errno. */
int keeper_take(struct keeper *keeper, const struct taking_request *request,
		keeper_taken *taken, void *arg, struct taking **taking_r);

/* From now on taken is not called. The keeper's work ends when the stream of wheels ends. */
void keeper_forget(struct taking *taking);

/* Removes an environment that is not in use. 0 or -errno. */
int keeper_discard(struct keeper *keeper, const char *name);

#endif
