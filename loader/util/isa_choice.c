/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/isa_choice.h"

#ifdef __x86_64__
#	include <cpuid.h>
#	include <stdatomic.h>

enum { UNKNOWN, NO, YES };

/* Compilers that know AVX2 by name need not know F16C. */
static bool ask_cpu(void)
{
	unsigned a, b, c, d;

	return __builtin_cpu_supports("avx2") &&
	       __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}

/* In a virtual machine, CPUID takes longer than the code that is chosen. */
bool isa_has_v3(void)
{
	static atomic_int answer = UNKNOWN;

	if (answer == UNKNOWN)
		answer = ask_cpu() ? YES : NO;
	return answer == YES;
}
#else
bool isa_has_v3(void)
{
	return false;
}
#endif
