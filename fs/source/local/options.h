/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How remote datasets are read: the storage options of a mount, a loader or a
 * tool. Zero-initialized options are the defaults; local files ignore them.
 * $BETON_STORAGE_OPTIONS has options for all programs; those that a caller
 * gives replace them.
 */
#ifndef FS_SOURCE_LOCAL_OPTIONS_H
#define FS_SOURCE_LOCAL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/log.h"

struct net;

/* source_open() copies the texts that a source needs later. */
struct source_options {
	struct net *net; /* shared with other sources; NULL: one of its own */
	uint64_t memory; /* bytes for tables; 0: SOURCE_MEMORY */
	uint64_t connections; /* at most; 0: SOURCE_CONNECTIONS */
	uint64_t retry_ms;    /* before a read fails; 0: SOURCE_RETRY_MS */
	const char *disk;     /* directory of the disk tier; NULL: none */
	uint64_t disk_size;   /* bytes; 0: as much as is free */
	const char *header;   /* file of HTTP headers; NULL: none */
	const char *profile;  /* of the AWS files; NULL: $AWS_PROFILE */
	const char *region;   /* NULL: $AWS_REGION and the like */
	const char *endpoint; /* URL; NULL: $AWS_ENDPOINT_URL_S3 and the like */
	bool no_sign;	      /* send no credentials */
	/* Asked up to 20 times a second by the thread that opens a source,
	   while a server does not answer; true ends the wait with -ECANCELED.
	   NULL: never. */
	bool (*interrupted)(void *arg);
	void *interrupted_arg;
};

enum {
	SOURCE_MEMORY = 64 << 20,
	/* At 200 ms and 400 Mbit/s, 64 connections with requests of 512 KiB
	   filled 0.85 of a link, and 128 filled 0.95. */
	SOURCE_CONNECTIONS = 128,
	/* Outages of a minute are common, those of five minutes are not. */
	SOURCE_RETRY_MS = 300 * 1000,
};

/* Returns the bytes for tables beside a cache of a size; 0: not known. */
static inline uint64_t source_table_memory(uint64_t cache_size)
{
	return cache_size ? cache_size / 8 + 1 : 0;
}

/*
 * A row for each option that users write: key, member, kind, the value's name
 * in help texts (NULL: a flag), and the lines of its help.
 */
#define SOURCE_OPTIONS(ROW)                                                    \
	ROW(connections, connections, SOURCE_COUNT, "N",                       \
	    "Send at most N requests for a URL at a time\n"                    \
	    "(default: 128)")                                                  \
	ROW(retry, retry_ms, SOURCE_TIME, "TIME",                              \
	    "Repeat failed requests to a server for TIME, for\n"               \
	    "example 90s or 5m, before a read fails (default: 5m)")            \
	ROW(disk, disk, SOURCE_PATH, "DIR",                                    \
	    "Keep a copy of what is read from a URL in DIR")                   \
	ROW(disk_size, disk_size, SOURCE_SIZE, "SIZE",                         \
	    "Limit the copies in DIR to SIZE (default: until 5 % of\n"         \
	    "its file system is free)")                                        \
	ROW(header, header, SOURCE_SECRET, "FILE",                             \
	    "Send the HTTP headers in FILE, one per line, with each\n"         \
	    "request")                                                         \
	ROW(profile, profile, SOURCE_TEXT, "NAME",                             \
	    "Take credentials of this profile of ~/.aws (default:\n"           \
	    "$AWS_PROFILE)")                                                   \
	ROW(region, region, SOURCE_TEXT, "NAME",                               \
	    "Set the region of S3 (default: $AWS_REGION, or that of\n"         \
	    "the profile)")                                                    \
	ROW(endpoint, endpoint, SOURCE_URL, "URL",                             \
	    "Send requests for s3:// to this server (default:\n"               \
	    "$AWS_ENDPOINT_URL_S3, or that of the profile)")                   \
	ROW(no_sign, no_sign, SOURCE_FLAG, NULL,                               \
	    "Send no credentials, for public buckets")

enum source_option_kind {
	SOURCE_COUNT, /* a whole number */
	SOURCE_TIME,
	SOURCE_SIZE,
	SOURCE_PATH,   /* becomes absolute */
	SOURCE_SECRET, /* the path of a file with secrets; becomes absolute */
	SOURCE_TEXT,
	SOURCE_URL, /* of a server, without user and query */
	SOURCE_FLAG,
};

enum { SOURCE_OPTION_WHY_SIZE = 320 };

/*
 * Sets the option of a key; NULL as the value: none is given. Neither text need
 * end with a NUL. The options own their texts from then on: free them by
 * source_options_fini(). -EINVAL, with the reason in `why` ("expected ..." or
 * "unknown option ..."), or -ENOMEM.
 */
int source_option_set(struct source_options *options, const char *key,
		      size_t key_size, const char *value, size_t value_size,
		      char why[SOURCE_OPTION_WHY_SIZE]);

/* Returns the number of bytes of a refused "key=value" of `size` bytes that a
   message may contain, because a value can be a secret. */
size_t source_option_shown(const char *key, size_t key_size, size_t size);

/* Warns if the option of a key, which is set, names a file with secrets that
   other users can read. */
void source_option_warn(const struct source_options *options, const char *key,
			size_t key_size, struct log *log);

/* Adds options, "key=value,key=value", that replace those of
   $BETON_STORAGE_OPTIONS in this process. For command lines, before other
   threads are started. -ENOMEM. */
int source_options_add(const char *list);

/* Returns all lists of source_options_add() as one, for another program that
   reads the same URL; NULL: there are none. */
const char *source_options_added(void);

/*
 * Sets the options of $BETON_STORAGE_OPTIONS and then those of a text,
 * "key=value,key=value", or NULL. "\," is a comma within a value. Failures
 * are logged: -EINVAL, -ENOMEM. The caller calls source_options_fini() in any
 * case.
 */
int source_options_read(const char *text, struct log *log,
			struct source_options *out);

/* Frees the texts of options that were set by the functions above. */
void source_options_fini(struct source_options *options);

/* Returns the value of an option as text, "" of a flag, in the options or in
   `out`; NULL: it is not set. */
const char *source_option_text(const struct source_options *options,
			       const char *key, char out[32]);

#endif
