/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between a loader and the daemon on the socket for zero-copy
 * delivery, of type SOCK_SEQPACKET: each message is one of these structs,
 * whole. They may change with each version. If loader and daemon have different
 * versions, the loader reads files instead.
 *
 *	loader	HELLO		  once, first
 *	daemon	WELCOME
 *	loader	GET path	  a request; several may be open at once
 *	daemon	BATCH		  one per GET, in any order: with a descriptor
 *				  (SCM_RIGHTS) if this memory is new to the
 *				  loader, or with an error
 *	loader	PUT id		  has read the batch in this memory
 *	loader	CANCEL request	  wants no answer, if none was sent yet
 *	loader	FORGET id	  has unmapped this memory
 *	loader	REPORT figures	  its statistics, about once a second; no answer
 *
 * Closing the socket puts all memory and cancels all requests.
 */
#ifndef FS_DATA_WIRE_ZEROCOPY_MESSAGE_H
#define FS_DATA_WIRE_ZEROCOPY_MESSAGE_H

#include "fs/base/metrics/rank_figures.h"

enum {
	ZEROCOPY_VERSION = 4,
	ZEROCOPY_PATH_MAX = 1024,
	ZEROCOPY_JOB_SIZE = 65,	    /* with the NUL */
	ZEROCOPY_REQUESTS_MAX = 64, /* open ones of a loader */
	ZEROCOPY_SLOTS_MAX = 64,    /* that a loader has not put yet */
};

#define ZEROCOPY_MAGIC UINT64_C(0x7265766f6e746562) /* "betnover" */

enum zerocopy_kind {
	ZEROCOPY_HELLO = 1,
	ZEROCOPY_GET,
	ZEROCOPY_PUT,
	ZEROCOPY_CANCEL,
	ZEROCOPY_FORGET,
	ZEROCOPY_WELCOME,
	ZEROCOPY_BATCH,
	ZEROCOPY_REPORT,
};

/* Every message begins with its kind. In HELLO and WELCOME, the version
   follows. */
struct zerocopy_hello {
	uint32_t kind;
	uint32_t version;
	uint64_t magic;
	uint32_t rank;
	uint32_t world_size;
	char job[ZEROCOPY_JOB_SIZE + 7]; /* may be empty */
};

struct zerocopy_welcome {
	uint32_t kind;
	uint32_t version;
};

struct zerocopy_get {
	uint32_t kind;
	uint32_t path_size;
	uint64_t request;	      /* a number of the loader's own */
	char path[ZEROCOPY_PATH_MAX]; /* in the mount; path_size bytes are sent,
					 without NUL */
};

/* PUT, CANCEL and FORGET. */
struct zerocopy_number {
	uint32_t kind;
	uint32_t zero;
	uint64_t number;
};

struct zerocopy_report {
	uint32_t kind;
	uint32_t zero;
	struct rank_figures figures;
};

struct zerocopy_batch {
	uint32_t kind;
	int32_t result; /* 0 or -errno; then the rest is 0 */
	uint64_t request;
	uint64_t slot;	   /* id of the memory */
	uint64_t size;	   /* of the batch file, which begins at 0 */
	uint64_t capacity; /* bytes of the memory to map */
	/* 1: there is enough memory for the loader to hold this batch as long
	   as its user does. 0: put it soon. */
	uint32_t may_keep;
	uint32_t zero;
};

/* A message of a loader, after its check. */
struct zerocopy_message {
	uint32_t kind;
	uint64_t number; /* request or slot */
	char job[ZEROCOPY_JOB_SIZE];
	uint32_t rank;
	uint32_t world_size;
	char path[ZEROCOPY_PATH_MAX + 1];
	struct rank_figures figures;
};

/* Checks and converts a message of a loader. -EPROTO: it is not a message of
   this version; *why is the reason. */
int zerocopy_parse(const void *bytes, size_t size, struct zerocopy_message *out,
		   const char **why);

/* Fills in a GET of this path. Returns the number of its bytes to send, or
   -ENAMETOOLONG. */
int zerocopy_make_get(struct zerocopy_get *get, uint64_t request,
		      const char *path);

#endif
