/* What the keeper's children give up: capabilities, and what they may ask of the kernel, which is
 * rows of call and reason for the child that works in the store and for the one that reads a wheel.
 */
#ifndef KEEPER_WALLS_H
#define KEEPER_WALLS_H

enum walls_for {
	WALLS_STORE = 1,	/* files of the store, and children of its own */
	WALLS_READER = 2,	/* descriptors that are open, and memory */
};

/* Of a child, whose end comes with its parent's. It has no capability afterwards and can get
 * none; any other call fails with EPERM. For good, and proved. 0 or -errno. */
int walls_enter(enum walls_for whom);

#endif
