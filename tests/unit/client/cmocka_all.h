/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka.h, and the headers that it needs before it. */
#ifndef TESTS_UNIT_CLIENT_CMOCKA_ALL_H
#define TESTS_UNIT_CLIENT_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N(array) (sizeof(array) / sizeof(array)[0])

#endif
