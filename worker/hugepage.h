/* SPDX-License-Identifier: Apache-2.0 */
/* Huge pages: of x86-64, and of arm64 with pages of 4 KiB. */
#ifndef WORKER_HUGEPAGE_H
#define WORKER_HUGEPAGE_H

#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25		/* since Linux 6.1 */
#endif

#define HUGE_PAGE (2UL << 20)

static inline uintptr_t
huge_down(uintptr_t at)
{
	return at & ~(HUGE_PAGE - 1);
}

static inline uintptr_t
huge_up(uintptr_t at)
{
	return huge_down(at + HUGE_PAGE - 1);
}

#endif
