# TRY_CFLAG(VARIABLE, FLAG): adds FLAG to VARIABLE when the compiler takes it silently.
AC_DEFUN([TRY_CFLAG], [
	AC_MSG_CHECKING([whether $CC takes $2])
	try_flag_saved=$CFLAGS
	CFLAGS="$CFLAGS -Werror $2"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <stdio.h>]], [[puts("");]])],
		[AC_MSG_RESULT([yes]); $1="$$1 $2"], [AC_MSG_RESULT([no])])
	CFLAGS=$try_flag_saved])

# TRY_LDFLAG(VARIABLE, FLAG): the same for the linker.
AC_DEFUN([TRY_LDFLAG], [
	AC_MSG_CHECKING([whether the linker takes $2])
	try_flag_saved=$LDFLAGS
	try_flag_cflags=$CFLAGS
	LDFLAGS="$LDFLAGS -Werror $2"
	CFLAGS="$CFLAGS -fPIE"
	AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdio.h>]], [[puts("");]])],
		[AC_MSG_RESULT([yes]); $1="$$1 $2"], [AC_MSG_RESULT([no])])
	LDFLAGS=$try_flag_saved
	CFLAGS=$try_flag_cflags])
