/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote, before it is used.   Owns: the region from which Python's arenas are cut.
 * Arenas are freed one by one by their users. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "worker/heap.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25		/* since Linux 6.1 */
#endif

#define HUGE_PAGE (2UL << 20)		/* of x86-64, and of arm64 with pages of 4 KiB */
#define REGION (64UL << 20)		/* profiles that need more continue outside of it */

static PyObjectArenaAllocator usual;
static uintptr_t region, next;		/* 0: none */
static uintptr_t heap;			/* where libc's heap continues; UINTPTR_MAX: nowhere */

static uintptr_t
round_down(uintptr_t at)
{
	return at & ~(HUGE_PAGE - 1);
}

static uintptr_t
round_up(uintptr_t at)
{
	return round_down(at + HUGE_PAGE - 1);
}

static void
unmap(uintptr_t from, uintptr_t to)
{
	if (from < to)
		munmap((void *)from, to - from);
}

static void
collapse(uintptr_t from, uintptr_t to)
{
	for (; from < to; from += HUGE_PAGE)
		madvise((void *)from, HUGE_PAGE, MADV_COLLAPSE);
}

static void *
arena_alloc(void *ctx, size_t size)
{
	uintptr_t at = next;

	(void)ctx;
	if (size > region + REGION - at)
		return usual.alloc(usual.ctx, size);
	next += size;
	return (void *)at;
}

void
heap_gather(void)
{
	void *mapped = mmap(NULL, REGION + HUGE_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	PyObjectArenaAllocator ours = { .alloc = arena_alloc };

	/* libc's heap begins on a huge page. */
	heap = round_up((uintptr_t)sbrk(0));
	if (brk((void *)heap) < 0)
		heap = UINTPTR_MAX;
	if (mapped == MAP_FAILED)
		return;
	region = next = round_up((uintptr_t)mapped);
	unmap((uintptr_t)mapped, region);
	unmap(region + REGION, (uintptr_t)mapped + REGION + HUGE_PAGE);
	PyObject_GetArenaAllocator(&usual);
	ours.ctx = usual.ctx;
	ours.free = usual.free;
	PyObject_SetArenaAllocator(&ours);
}

void
heap_settle(void)
{
	collapse(heap, round_down((uintptr_t)sbrk(0)));
	if (!region)
		return;
	PyObject_SetArenaAllocator(&usual);
	collapse(region, round_up(next));
	unmap(round_up(next), region + REGION);
}
