/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/isa_choice.h"

#ifdef __x86_64__
#	include <cpuid.h>

/* Compilers that know AVX2 by name need not know F16C. */
bool isa_has_v3(void)
{
	unsigned a, b, c, d;

	return __builtin_cpu_supports("avx2") &&
	       __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#else
bool isa_has_v3(void)
{
	return false;
}
#endif
