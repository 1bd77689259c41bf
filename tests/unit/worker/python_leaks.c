/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into tests that embed Python: the interpreter does not give back all that it has when it
 * ends. */
#ifdef WITH_SANITIZERS
const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif
