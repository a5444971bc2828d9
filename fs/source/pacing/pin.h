/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The version of an object that a source reads. The first answer fixes it, and
 * every later one must be of the same version and of the requested bytes,
 * because servers ignore conditions and ranges. Pure functions.
 */
#ifndef FS_SOURCE_PACING_PIN_H
#define FS_SOURCE_PACING_PIN_H

#include "fs/source/net/http.h"

struct pin {
	bool is_set;
	uint64_t size;
	char etag[HTTP_TAG_MAX]; /* "": none */
	bool etag_is_weak;
	char version[HTTP_VERSION_MAX]; /* "": none */
	uint64_t generation;		/* 0: none */
	bool has_modified;
	time_t modified;
};

enum pin_verdict {
	PIN_OK,
	PIN_WRONG,    /* another attempt may succeed: proxies err for moments */
	PIN_REPLACED, /* the object is another version */
	PIN_REFUSED,  /* the first answer: the server cannot serve the object */
};

enum {
	PIN_WHY_SIZE = 640,
	PIN_LINE_SIZE = HTTP_TAG_MAX + 32,
};

/*
 * Checks the head of an answer to a request for bytes [off, off + size), with
 * status 200 or 206. The first one sets the pin. *end is the offset after the
 * last byte of the answer: at most off + size, and the size of the object. If
 * the verdict is not PIN_OK, `why` has the reason.
 */
enum pin_verdict pin_check(struct pin *pin, const struct http_answer *answer,
			   uint64_t off, uint64_t size, uint64_t *end,
			   char why[PIN_WHY_SIZE]);

/* Writes the condition of requests as a header line. Returns false if there is
   none, because the server sent neither a strong ETag nor a date. */
bool pin_condition(const struct pin *pin, char line[PIN_LINE_SIZE]);

/* Names the version of an answer, or of a pin, for messages. */
const char *pin_name(const char *etag, bool has_modified, time_t modified,
		     char buf[PIN_LINE_SIZE]);

#endif
