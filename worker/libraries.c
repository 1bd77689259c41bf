/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote.   Owns: the number of objects that were there before imports, and where the
 * program's huge pages are. */
#include "worker/libraries.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "worker/hugepage.h"

#define DATA_MAX (1UL << 20)		/* a library with more keeps two mappings */

/* Pages that follow each other, of segments that are not written. */
struct run {
	uintptr_t from, to;
	unsigned int segments;
};

static void
libraries_join_all(const struct run *run, struct run *longest)
{
	if (run->segments > 1)
		mprotect((void *)run->from, run->to - run->from, PROT_READ | PROT_EXEC);
	if (run->segments > 0 && run->to - run->from > longest->to - longest->from)
		*longest = *run;
}

static uintptr_t
page_down(uintptr_t at)
{
	return at & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* Headers, code and constants; returns the longest run of them. Segments are in the order of their
 * addresses (elf(5)). */
static struct run
join_read_only(const struct dl_phdr_info *info)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct run run = { 0 }, longest = { 0 };

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t from = page_down(info->dlpi_addr + segment->p_vaddr);
		uintptr_t end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;

		if (segment->p_type != PT_LOAD)
			continue;
		if (run.segments == 0 || (segment->p_flags & PF_W) || from != run.to) {
			libraries_join_all(&run, &longest);
			run = (struct run){ .from = from };
		}
		run.to = page_down(end + page - 1);
		run.segments += !(segment->p_flags & PF_W);
	}
	libraries_join_all(&run, &longest);
	return longest;
}

/* The linker has made the whole pages of this part read-only. */
static void
join_relocated(const struct dl_phdr_info *info)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t from = page_down(info->dlpi_addr + segment->p_vaddr);
		uintptr_t to = page_down(info->dlpi_addr + segment->p_vaddr + segment->p_memsz);

		if (segment->p_type == PT_GNU_RELRO && from < to)
			mprotect((void *)from, to - from, PROT_READ | PROT_WRITE);
	}
}

/* Data of which the file has only the beginning: the rest is a mapping of its own, without a file.
 * A copy of both takes their place, which is one mapping. */
static void
join_data(const struct dl_phdr_info *info)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + segment->p_vaddr;
		uintptr_t from = page_down(at);
		uintptr_t of_file = page_down(at + segment->p_filesz + page - 1);
		uintptr_t to = page_down(at + segment->p_memsz + page - 1);
		void *copy;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W) ||
		    of_file <= from || of_file >= to || to - from > DATA_MAX)
			continue;
		copy = mmap(NULL, to - from, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (copy == MAP_FAILED)
			continue;
		memcpy(copy, (void *)from, to - from);
		if (mremap(copy, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED,
			   (void *)from) == MAP_FAILED)
			munmap(copy, to - from);
	}
}

static struct run huge;			/* what of the program is on huge pages */

/* The program's file lies in memory (worker/main.c). A huge page of this file serves every process
 * that maps the file. */
static void
put_on_huge_pages(const struct run *run)
{
	uintptr_t at = huge_up(run->from);

	huge = (struct run){ .from = at, .to = at };
	while (huge.to + HUGE_PAGE <= run->to &&
	       madvise((void *)huge.to, HUGE_PAGE, MADV_COLLAPSE) == 0)
		huge.to += HUGE_PAGE;
}

static size_t before;			/* objects */

static int
count_object(struct dl_phdr_info *, size_t, void *n)
{
	++*(size_t *)n;
	return 0;
}

/* Objects come in the order in which they were loaded; the first is the program. */
static int
join_object(struct dl_phdr_info *info, size_t, void *n)
{
	size_t number = (*(size_t *)n)++;
	struct run run = join_read_only(info);

	if (number == 0)
		put_on_huge_pages(&run);
	if (number >= before) {
		join_relocated(info);
		join_data(info);
	}
	return 0;
}

void
libraries_note(void)
{
	before = 0;
	dl_iterate_phdr(count_object, &before);
}

void
libraries_join(void)
{
	size_t n = 0;

	dl_iterate_phdr(join_object, &n);
}

bool
libraries_is_huge(uintptr_t at)
{
	return at >= huge.from && at < huge.to;
}
