/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all harnesses. With -DFUZZ_MAIN the harness is a program that
 * replays the files on its command line, each in a block of exactly its size.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts unless `cond`, which has to hold for any input, is true. */
#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: MUST(%s)\n", __FILE__,         \
				__LINE__, #cond);                              \
			abort();                                               \
		}                                                              \
	} while (0)

/* The input as a text of its own; the caller's. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	MUST(text);
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

#ifdef FUZZ_MAIN
static void fuzz_replay(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;
	long size;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0) {
		perror(path);
		exit(1);
	}
	rewind(f);
	data = malloc((size_t)size);
	MUST(!size || (data && fread(data, (size_t)size, 1, f) == 1));
	fclose(f);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		fuzz_replay(argv[i]);
	return 0;
}
#endif

#endif
