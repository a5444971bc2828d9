/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How remote datasets are read: the storage options of a mount, a loader or a
 * tool. Zero-initialized options are the defaults; local files ignore them.
 */
#ifndef FS_SOURCE_OPTIONS_H
#define FS_SOURCE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct net;

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
};

enum {
	SOURCE_MEMORY = 64 << 20,
	SOURCE_CONNECTIONS = 64,
	/* Outages of a minute are common, those of five minutes are not. */
	SOURCE_RETRY_MS = 300 * 1000,
};

#endif
