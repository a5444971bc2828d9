/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP answer: its status line and the header fields that a
 * reader of ranges needs. Input is hostile: values that do not parse count as
 * absent, or mark the answer as malformed if a reader depends on them.
 */
#ifndef FS_SOURCE_NET_HTTP_H
#define FS_SOURCE_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum {
	HTTP_TAG_MAX = 256,
	HTTP_VERSION_MAX = 256,
};

/* The total size of the object is not known. */
#define HTTP_UNKNOWN UINT64_MAX

struct http_answer {
	int status; /* 0: no status line yet */
	/* Two values of one field differ, or one is no value of its field. */
	bool malformed;
	bool has_length;
	uint64_t length;
	/* "Content-Range: bytes FIRST-LAST/TOTAL"; an unsatisfied range has
	   only TOTAL. */
	bool has_range;
	bool unsatisfied;
	uint64_t first;
	uint64_t last;
	uint64_t total;
	char etag[HTTP_TAG_MAX]; /* with its quotes, without W/; "": none */
	bool etag_is_weak;
	char version[HTTP_VERSION_MAX]; /* x-amz-version-id; "": none */
	uint64_t generation;		/* x-goog-generation; 0: none */
	bool has_modified;
	time_t modified;      /* Last-Modified */
	uint64_t retry_after; /* seconds; 0: none */
	bool is_multipart;    /* multipart/byteranges */
	bool is_encoded;      /* a content encoding other than identity */
	bool is_html;
	bool has_location;
};

/* Takes a line of a head, with or without its line break. A status line begins
   a new answer. */
void http_line(struct http_answer *answer, const char *line, size_t size);

/* Parses the value of Content-Range. Returns false if it is none. */
bool http_parse_range(const char *text, size_t size, struct http_answer *out);

/* Parses a date as servers write it: "Sun, 06 Nov 1994 08:49:37 GMT". */
bool http_parse_date(const char *text, size_t size, time_t *out);

#endif
