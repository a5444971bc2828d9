/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons of an object store for an answer that is no success. */
#ifndef FS_SOURCE_KEYS_REFUSAL_H
#define FS_SOURCE_KEYS_REFUSAL_H

#include <stddef.h>
#include <time.h>

enum { REFUSAL_CODE_SIZE = 64 };

/* An answer with a status of 300 or more. Zero-initialize it. */
struct refusal {
	int status;
	char code[REFUSAL_CODE_SIZE];	/* of S3; "": none */
	char region[REFUSAL_CODE_SIZE]; /* of the bucket; "": none */
	time_t date;			/* of the server; 0: none */
};

/* Takes a header line of the answer. */
void refusal_line(struct refusal *refusal, const char *line, size_t size);

/* Takes the body of the answer, or its beginning. */
void refusal_body(struct refusal *refusal, const char *body, size_t size);

#endif
