/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JPEGs of a dataset: their estimated quality, sampling and sizes, and
 * whether they have the same pixels after recoding. One thread; the figures of
 * several can be added up in any order.
 */
#ifndef LOADER_TOOLS_BETON_JPEGS_H
#define LOADER_TOOLS_BETON_JPEGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	JPEGS_QUALITIES = 101, /* one per quality; 0: unknown */
	JPEGS_SAMPLINGS = 6,
};

/* Zero-initialize. */
struct jpegs_figures {
	uint64_t jpegs;
	uint64_t size;
	uint64_t smallest;
	uint64_t largest;
	uint64_t qualities[JPEGS_QUALITIES];
	uint64_t samplings[JPEGS_SAMPLINGS];
	uint64_t compared;
	uint64_t different;
};

void jpegs_add(struct jpegs_figures *to, const struct jpegs_figures *more);
void jpegs_print(const struct jpegs_figures *f, FILE *out);

struct jpegs;

int jpegs_open(struct jpegs **out);
void jpegs_close(struct jpegs *j);
const struct jpegs_figures *jpegs_figures(const struct jpegs *j);

/*
 * Adds a JPEG to the figures, by its header; `size` is its size in the dataset.
 */
void jpegs_look(struct jpegs *j, const uint8_t *bytes, size_t n, uint64_t size);

/*
 * Decodes both and adds to the figures whether their pixels differ. Does not
 * count a pair whose first JPEG cannot be decoded. Returns 0 or -ENOMEM.
 */
int jpegs_compare(struct jpegs *j, const uint8_t *a, size_t a_size,
		  const uint8_t *b, size_t b_size);

#endif
