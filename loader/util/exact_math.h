/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few real functions that random numbers need, with the same bits whatever
 * the compiler, the C library and the machine: only IEEE double operations in
 * a fixed order (builds use -ffp-contract=off), never libm.
 */
#ifndef LOADER_UTIL_EXACT_MATH_H
#define LOADER_UTIL_EXACT_MATH_H

/* e to the x, within 1 ulp; infinity above 709.78, 0 below -745.13. */
double exact_exp(double x);

/* The natural logarithm, within 1 ulp; -infinity at 0, NaN below. */
double exact_log(double x);

/* The sine of an angle in turns, |x| < 2^50, within 2 ulp. */
double exact_sine(double turns);

/* Correctly rounded. */
double exact_sqrt(double x);

/* To the nearest whole number, halves to the even one. */
double exact_round(double x);

#endif
