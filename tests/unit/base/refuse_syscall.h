/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that refuses some system calls of syscall(2): the test says which. */
#ifndef TESTS_UNIT_BASE_REFUSE_SYSCALL_H
#define TESTS_UNIT_BASE_REFUSE_SYSCALL_H

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* The errno with which this call fails; 0: it is made. */
int refuses_syscall(long number);

/* Without AddressSanitizer: like the C library's own, it reads six arguments in any case. */
__attribute__((no_sanitize_address)) long
syscall(long number, ...)
{
	long (*real)(long, ...), value[6];
	void *at = dlsym(RTLD_NEXT, "syscall");
	int error = refuses_syscall(number);
	va_list more;

	if (error) {
		errno = error;
		return -1;
	}
	memcpy(&real, &at, sizeof(real));
	va_start(more, number);
	for (int i = 0; i < 6; i++)
		value[i] = va_arg(more, long);
	va_end(more);
	return real(number, value[0], value[1], value[2], value[3], value[4], value[5]);
}

#endif
