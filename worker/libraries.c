/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote.   Owns: nothing. */
#include "worker/libraries.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Pages that follow each other, of segments that are not written. */
struct run {
	uintptr_t from, to;
	unsigned int segments;
};

static void
join(const struct run *run)
{
	if (run->segments > 1)
		mprotect((void *)run->from, run->to - run->from, PROT_READ | PROT_EXEC);
}

/* Segments are in the order of their addresses (elf(5)). */
static int
join_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct run run = { 0 };

	(void)size;
	(void)arg;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t from = (info->dlpi_addr + segment->p_vaddr) & ~(page - 1);
		uintptr_t end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;

		if (segment->p_type != PT_LOAD)
			continue;
		if (run.segments == 0 || (segment->p_flags & PF_W) || from != run.to) {
			join(&run);
			run = (struct run){ .from = from };
		}
		run.to = (end + page - 1) & ~(page - 1);
		run.segments += !(segment->p_flags & PF_W);
	}
	join(&run);
	return 0;
}

void
libraries_join(void)
{
	dl_iterate_phdr(join_object, NULL);
}
