/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroup v2 subtree that systemd has given to this service, or that the service has made:
 *
 *   BASE/supervisor               this process and the zygotes
 *   BASE/tenants/NAME             one for each active tenant; NAME: a uid, or t- and a hash
 *   BASE/tenants/NAME/SERIAL      a leaf: made for one worker, and removed after it
 *
 * BASE is the unit's cgroup, which systemd has delegated. In a service that was started by hand it
 * is mcp-pythond-PID, made below the cgroup of this process; controllers may be missing there.
 */
#ifndef HOST_CGROUP_H
#define HOST_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup_leaf;
struct cgroup_root;
struct cgroup_tenant;
struct event_base;
struct why;

/* The controllers that leaves have; io only weighs tenants against each other. */
struct cgroup_controllers {
	bool cpu, memory, pids, io;
};

struct cgroup_limits {
	uint64_t memory_bytes;
	uint32_t pids;		/* of the whole leaf */
	uint32_t cpu_percent;	/* of one processor, as cpu.max */
};

/* The kernel's counters of a leaf; 0 where no controller counts. */
struct cgroup_counters {
	uint64_t cpu_us;
	uint64_t memory_peak;	/* bytes; before Linux 5.19 it is 0 once all memory is freed */
	uint64_t oom_kills;
	uint64_t pids_hits;	/* times that pids.max refused a process */
};

/* Makes the subtree, moves this process into it, and gives it to the owner, who needs no privilege
 * to use it. Called once, before privilege is dropped. as_service: a missing controller gives
 * -ENOTSUP; otherwise the service works without it. 0 or -errno with why_r. cgroup_root_free is
 * declared in host/startup.h. */
int cgroup_root_new(bool as_service, uid_t owner_uid, gid_t owner_gid,
		    struct cgroup_root **root_r, struct why *why_r);

const struct cgroup_controllers *
cgroup_root_controllers(const struct cgroup_root *root);

/* The directory that contains everything that this process makes and changes; borrowed. */
int cgroup_root_fd(const struct cgroup_root *root);

/* Watches retired leaves that still have processes: each is removed, from this loop, once it is
 * empty. 0 or -errno. cgroup_root_unwatch must be called before the loop is freed. */
int cgroup_root_watch(struct cgroup_root *root, struct event_base *base);
void cgroup_root_unwatch(struct cgroup_root *root);

/* The number of directories of tenants and of leaves that exist, retired ones included. */
unsigned int cgroup_root_count(const struct cgroup_root *root);

/* Kills the processes in the leaves that an earlier process of the service has left, and removes
 * these leaves. is_known: is the leaf with this serial in use? If so, it stays. Waits for the
 * processes to end, for a second at most. */
void cgroup_root_sweep(struct cgroup_root *root, bool (*is_known)(void *arg, uint64_t serial),
		       void *arg);

/* From now on cgroup_root_free does not change the leaves and their processes. */
void cgroup_root_leave(struct cgroup_root *root);

/* Makes the directory of a tenant. name: of the directory, copied. 0 or -errno. */
int cgroup_tenant_new(struct cgroup_root *root, const char *name,
		      struct cgroup_tenant **tenant_r);

/* The memory of all leaves of a tenant, if a controller counts it. 0 or -errno. */
int cgroup_tenant_memory(const struct cgroup_tenant *tenant, uint64_t *bytes_r);

/* The processor time that all leaves of a tenant have used, including removed ones. 0 or -errno. */
int cgroup_tenant_cpu(const struct cgroup_tenant *tenant, uint64_t *cpu_us_r);

/* Sets the weight of a tenant against the other tenants, as cpu.weight: 1 to 10,000. 0, also if
 * there is no controller, or -errno. */
int cgroup_tenant_weigh(struct cgroup_tenant *tenant, unsigned int weight);

/* Removes the directory of a tenant as soon as its last leaf is gone. NULL is fine. */
void cgroup_tenant_release(struct cgroup_tenant *tenant);

/* Makes the leaf BASE/tenants/NAME/SERIAL with these limits. 0 or -errno. */
int cgroup_leaf_new(struct cgroup_tenant *tenant, uint64_t serial,
		    const struct cgroup_limits *limits, struct cgroup_leaf **leaf_r);

/* Opens an existing leaf with its processes; the caller sets its limits. 0 or -errno. */
int cgroup_leaf_adopt(struct cgroup_tenant *tenant, uint64_t serial,
		      struct cgroup_leaf **leaf_r);

/* A directory descriptor for CLONE_INTO_CGROUP; borrowed. */
int cgroup_leaf_fd(const struct cgroup_leaf *leaf);

/* Sets limits where they differ from those in force. 0 or -errno. */
int cgroup_leaf_limit(struct cgroup_leaf *leaf, const struct cgroup_limits *limits);

/* Sets the memory limit; does nothing if it is at least memory_bytes already. 0 or -errno. */
int cgroup_leaf_raise_memory(struct cgroup_leaf *leaf, uint64_t memory_bytes);

/* Reads cpu_us only, which is the counter that is read most often. 0 or -errno. */
int cgroup_leaf_cpu(struct cgroup_leaf *leaf, uint64_t *cpu_us_r);

/* The memory, and the number of processes, that a leaf has now, if a controller counts them. 0 or
 * -errno. */
int cgroup_leaf_memory(const struct cgroup_leaf *leaf, uint64_t *bytes_r);
int cgroup_leaf_pids(const struct cgroup_leaf *leaf, uint32_t *pids_r);

/* Reads cpu_us and memory_peak; with why_ended also oom_kills and pids_hits. A counter that cannot
 * be read is 0. */
void cgroup_leaf_counters(struct cgroup_leaf *leaf, bool why_ended,
			  struct cgroup_counters *counters_r);

/* Reads a file of the leaf ("cgroup.procs"), cut to size - 1 bytes, and adds NUL. Returns the
 * number of bytes, or -errno. */
ssize_t cgroup_leaf_read(const struct cgroup_leaf *leaf, const char *file, char *text_r,
			 size_t size);

/* Sets which processes the kernel kills when the leaf's memory runs out. together: all processes in
 * the leaf, as in a new leaf; otherwise the one that uses most. Has no effect if no controller
 * counts memory. 0 or -errno. */
int cgroup_leaf_keep_together(const struct cgroup_leaf *leaf, bool together);

/* Stops the processes of a leaf, or lets them continue. Frozen processes can be killed. 0 or
 * -errno. */
int cgroup_leaf_freeze(const struct cgroup_leaf *leaf, bool freeze);

/* Sends SIGKILL to all processes in a leaf. 0 or -errno. */
int cgroup_leaf_kill(const struct cgroup_leaf *leaf);

/* Removes the leaf: now if it is empty, otherwise when its last process has ended. NULL is fine. */
void cgroup_leaf_retire(struct cgroup_leaf *leaf);

#endif
