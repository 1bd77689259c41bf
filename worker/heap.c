/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote, before it is used; and a session's first process.
 * Owns:    the region from which Python's arenas are cut, and in it the objects that lie side by
 *          side. Arenas are freed one by one by their users. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "worker/heap.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "worker/hugepage.h"

#define REGION (64UL << 20)		/* profiles that need more continue outside of it */

static PyObjectArenaAllocator usual;
static uintptr_t region, next;		/* 0: none */
static uintptr_t heap;			/* where libc's heap continues; UINTPTR_MAX: nowhere */

static void
heap_unmap(uintptr_t from, uintptr_t to)
{
	if (from < to)
		munmap((void *)from, to - from);
}

static void
heap_collapse(uintptr_t from, uintptr_t to)
{
	if (from < to)
		madvise((void *)from, to - from, MADV_COLLAPSE);
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

/* Python also takes parts of its stack from here, and gives them back again and again: the region
 * would soon be used up. */
static void
arena_free(void *ctx, void *at, size_t size)
{
	if ((uintptr_t)at >= region && (uintptr_t)at + size == next)
		next = (uintptr_t)at;
	else
		usual.free(ctx, at, size);
}

void
heap_gather(void)
{
	void *mapped = mmap(NULL, REGION + HUGE_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	PyObjectArenaAllocator allocator = { .alloc = arena_alloc, .free = arena_free };

	/* libc's heap begins on a huge page. */
	heap = huge_up((uintptr_t)sbrk(0));
	if (brk((void *)heap) < 0)
		heap = UINTPTR_MAX;
	if (mapped == MAP_FAILED)
		return;
	region = next = huge_up((uintptr_t)mapped);
	heap_unmap((uintptr_t)mapped, region);
	heap_unmap(region + REGION, (uintptr_t)mapped + REGION + HUGE_PAGE);
	/* What imports write is on huge pages from the first write on. */
	madvise((void *)region, REGION, MADV_HUGEPAGE);
	PyObject_GetArenaAllocator(&usual);
	allocator.ctx = usual.ctx;
	PyObject_SetArenaAllocator(&allocator);
}

/* The bytes of this process that are on huge pages. */
static uintptr_t
huge_bytes(void)
{
	FILE *memory = fopen("/proc/self/smaps_rollup", "re");
	unsigned long kib = 0;
	char line[128];

	while (memory && fgets(line, sizeof(line), memory))
		if (sscanf(line, "AnonHugePages: %lu", &kib) == 1)
			break;
	if (memory)
		fclose(memory);
	return (uintptr_t)kib << 10;
}

void
heap_settle(bool in_haste)
{
	const uintptr_t end = huge_up(next);

	/* For a collapse each processor has to come to rest: that takes long while others work. */
	if (region && !in_haste && huge_bytes() < end - region)
		heap_collapse(region, end);
	if (!in_haste)
		heap_collapse(heap, huge_down((uintptr_t)sbrk(0)));
	if (!region)
		return;
	PyObject_SetArenaAllocator(&usual);
	heap_unmap(end, region + REGION);
	/* The kernel leaves the pages of workers as they are. */
	madvise((void *)region, end - region, MADV_NOHUGEPAGE);
}

/* ---- side by side ---- */

#define DENSE (1UL << 20)		/* bytes, of the region */

static PyMemAllocatorEx usual_objects;
static uintptr_t dense, dense_next;	/* 0: nothing lies side by side */
static bool is_dense;			/* allocates there now */

static bool
in_dense(const void *block)
{
	return (uintptr_t)block - dense < DENSE;
}

static void *
dense_malloc(void *ctx, size_t size)
{
	uintptr_t at = dense_next;

	if (!is_dense || size >= dense + DENSE - at)
		return usual_objects.malloc(ctx, size);
	dense_next += (size + 15) & ~(size_t)15;
	return (void *)at;
}

/* The place of such a block is not used again: few are freed. */
static void
dense_free(void *ctx, void *block)
{
	if (!in_dense(block))
		usual_objects.free(ctx, block);
}

static void *
dense_realloc(void *ctx, void *block, size_t size)
{
	size_t most = dense + DENSE - (uintptr_t)block;
	void *moved;

	if (!in_dense(block))
		return usual_objects.realloc(ctx, block, size);
	moved = usual_objects.malloc(ctx, size);
	if (moved)
		memcpy(moved, block, size < most ? size : most);
	return moved;
}

/* False: there is no room, or memory. */
static bool
dense_begin(void)
{
	PyMemAllocatorEx objects;

	if (dense || !region || region + REGION - next < DENSE)
		return dense != 0;
	dense = dense_next = next;
	next += DENSE;
	PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &usual_objects);
	objects = usual_objects;
	objects.malloc = dense_malloc;
	objects.realloc = dense_realloc;
	objects.free = dense_free;
	PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &objects);
	return true;
}

static PyObject *
call_dense(PyObject *, PyObject *function)
{
	PyObject *result;

	is_dense = dense_begin();
	result = PyObject_CallNoArgs(function);
	is_dense = false;
	return result;
}

PyObject *
heap_dense_caller(void)
{
	static PyMethodDef method = { "call_dense", call_dense, METH_O, NULL };

	return PyCFunction_New(&method, NULL);
}

/* ---- looking for objects ---- */

/* Those of a list whose type is one of the other arguments. There are tens of thousands: Python
 * would take ten times as long. */
static PyObject *
of_types(PyObject *, PyObject *const *args, Py_ssize_t n)
{
	PyObject *found = n > 0 && PyList_Check(args[0]) ? PyList_New(0) : PyErr_Format(
		PyExc_TypeError, "the first argument has to be a list");

	for (Py_ssize_t at = 0; found && at < PyList_GET_SIZE(args[0]); at++) {
		PyObject *one = PyList_GET_ITEM(args[0], at), *type = (PyObject *)Py_TYPE(one);
		Py_ssize_t i = 1;

		while (i < n && args[i] != type)
			i++;
		if (i < n && PyList_Append(found, one) < 0)
			Py_CLEAR(found);
	}
	return found;
}

PyObject *
heap_type_finder(void)
{
	static PyMethodDef method = {
		"of_types", (PyCFunction)(void (*)(void))of_types, METH_FASTCALL, NULL
	};

	return PyCFunction_New(&method, NULL);
}

/* ---- sessions ---- */

#define USUAL_ARENAS 8			/* a session that needs no more has no huge page */
#define LARGE (4UL << 20)		/* a block that has a huge page in it, and more */

static PyMemAllocatorEx usual_raw;
static uintptr_t chunk;			/* what is left of it */
static size_t n_arenas, chunk_left;

/* Pages that a block covers only in part do not change. */
static void *
heap_advise(void *block, size_t size)
{
	uintptr_t from = huge_up((uintptr_t)block), to = huge_down((uintptr_t)block + size);

	if (block && size >= LARGE && from < to)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
	return block;
}

static void *
session_malloc(void *ctx, size_t size)
{
	return heap_advise(usual_raw.malloc(ctx, size), size);
}

static void *
session_calloc(void *ctx, size_t n, size_t size)
{
	return heap_advise(usual_raw.calloc(ctx, n, size), n * size);
}

static void *
session_realloc(void *ctx, void *block, size_t size)
{
	return heap_advise(usual_raw.realloc(ctx, block, size), size);
}

/* Maps memory for a huge page of arenas. False: there is none. */
static bool
map_chunk(void)
{
	void *mapped = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mapped == MAP_FAILED)
		return false;
	chunk = huge_up((uintptr_t)mapped);
	heap_unmap((uintptr_t)mapped, chunk);
	heap_unmap(chunk + HUGE_PAGE, (uintptr_t)mapped + 2 * HUGE_PAGE);
	madvise((void *)chunk, HUGE_PAGE, MADV_HUGEPAGE);
	chunk_left = HUGE_PAGE;
	return true;
}

static void *
session_arena(void *ctx, size_t size)
{
	void *at;

	if (n_arenas++ < USUAL_ARENAS || HUGE_PAGE % size != 0 ||
	    (chunk_left < size && !map_chunk()))
		return usual.alloc(ctx, size);
	at = (void *)chunk;
	chunk += size;
	chunk_left -= size;
	return at;
}

void
heap_session(void)
{
	PyObjectArenaAllocator arenas;
	PyMemAllocatorEx raw;

	PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &usual_raw);
	raw = usual_raw;
	raw.malloc = session_malloc;
	raw.calloc = session_calloc;
	raw.realloc = session_realloc;
	PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &raw);
	PyObject_GetArenaAllocator(&usual);
	arenas = usual;
	arenas.alloc = session_arena;
	PyObject_SetArenaAllocator(&arenas);
}
