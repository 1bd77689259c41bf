/* What processes of the service give up for good before anything of a client can reach them,
 * beside what root gives up (privilege.h): most of the kernel's calls.
 */
#ifndef HOST_FENCE_H
#define HOST_FENCE_H

/* The supervisor's: it has opened its sockets and files, the launcher is there, and nobody is
 * served yet. Not dumpable, no core, and an allow-list of what its loop does: no process, no
 * program, no namespace, no mount, no socket but AF_UNIX, no memory that is made executable, no
 * signal but by a pidfd. Loads the name service's libraries first, for they could not be loaded
 * later. Proved by trying. 0, or -errno with *what_r (static) naming the step. */
int fence_supervisor(const char **what_r);

/* The launcher's, and so that of all that it starts, which goes on from there with filters of
 * its own: what not one of them does. 0 or -errno. */
int fence_family(void);

/* The directory helper's: what the family does not do, and no program, namespace, mount or signal
 * but SIGKILL. Modules of name services are loaded behind it and may use the network, so it is a
 * list of what is refused. 0 or -errno. */
int fence_directory(void);

/* In a child of the helper, which parses what a name service sends: no further process and no
 * signal to another. Beside fence_directory. 0 or -errno. */
int fence_lookup(void);

#endif
