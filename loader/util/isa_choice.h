/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is compiled once per instruction set. The Makefile compiles each
 * file of a directory named isa/ as `plain`, which every machine runs, and on
 * x86-64 as `v3` too. Such a file defines one constant table of functions,
 * whose name is ISA_NAME(table). Results never depend on which one runs.
 */
#ifndef LOADER_UTIL_ISA_CHOICE_H
#define LOADER_UTIL_ISA_CHOICE_H

#include <stdbool.h>

/* In a file of isa/: table_plain or table_v3. */
#define ISA_PASTE(a, b) a##_##b
#define ISA_EXPAND(a, b) ISA_PASTE(a, b)
#define ISA_NAME(table) ISA_EXPAND(table, ISA)

/* Elsewhere: the declaration, and the address of the best for this machine. */
#ifdef __x86_64__
#	define ISA_DECLARE(type, table)                                       \
		extern const type table##_plain, table##_v3
#	define ISA_BEST(table) (isa_has_v3() ? &table##_v3 : &table##_plain)
#else
#	define ISA_DECLARE(type, table) extern const type table##_plain
#	define ISA_BEST(table) (&table##_plain)
#endif

/* Whether this machine runs `v3`: x86-64 with AVX2 and F16C. */
bool isa_has_v3(void);

#endif
