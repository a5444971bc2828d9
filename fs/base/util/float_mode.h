/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floating-point mode of a thread: how it rounds, and whether denormal
 * numbers count as 0. A program may have changed it, and so may a library that
 * was compiled with -ffast-math. Values must not depend on it, so the library
 * computes in the default mode and leaves the program's as it was.
 */
#ifndef FS_BASE_UTIL_FLOAT_MODE_H
#define FS_BASE_UTIL_FLOAT_MODE_H

#include <fenv.h>

/* For threads of the library, after code of the program ran in them. */
static inline void float_mode_reset(void)
{
	fesetenv(FE_DFL_ENV);
}

/* Call before and after a computation in a thread of the program. */
static inline void float_mode_begin(fenv_t *before)
{
	fegetenv(before);
	float_mode_reset();
}

static inline void float_mode_end(const fenv_t *before)
{
	fesetenv(before);
}

#endif
