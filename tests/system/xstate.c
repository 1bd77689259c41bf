/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into user-mode Linux, whose kernel 6.1 has room for 2,696 bytes of a processor's
 * extended state. Where the host's is larger (AMX: 11,008 bytes), PTRACE_SETREGSET with fewer
 * bytes fails with EFAULT, and the first process of the guest dies. So what the guest does not
 * know of is read from the traced process and written back beside the rest.
 *
 * Source: arch/x86/kernel/fpu/regset.c, xstateregs_set(). */
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define WHOLE_MAX 65536

typedef long ptrace_fn(enum __ptrace_request request, ...);

static long
set_state(ptrace_fn *real, pid_t pid, void *which, const struct iovec *part)
{
	static _Alignas(64) char whole[WHOLE_MAX];
	struct iovec all = { whole, sizeof(whole) };

	if (real(PTRACE_GETREGSET, pid, which, &all) < 0 || part->iov_len >= all.iov_len)
		return real(PTRACE_SETREGSET, pid, which, part);
	memcpy(whole, part->iov_base, part->iov_len);
	return real(PTRACE_SETREGSET, pid, which, &all);
}

long
ptrace(enum __ptrace_request request, ...)
{
	ptrace_fn *real = (ptrace_fn *)dlsym(RTLD_NEXT, "ptrace");
	va_list arguments;
	pid_t pid;
	void *address, *data;

	va_start(arguments, request);
	pid = va_arg(arguments, pid_t);
	address = va_arg(arguments, void *);
	data = va_arg(arguments, void *);
	va_end(arguments);
	if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE)
		return set_state(real, pid, address, data);
	return real(request, pid, address, data);
}
