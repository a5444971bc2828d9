/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between a loader and the daemon on the socket for zero-copy
 * delivery, of type SOCK_SEQPACKET: each message is one of these structs,
 * whole. They may change with each version; a loader of another version than
 * the daemon's reads files instead.
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
 *	loader	TELL figures	  its report, about once a second; no answer
 *
 * Closing the socket puts all memory and cancels all requests.
 */
#ifndef FS_ENGINE_HANDOVER_MESSAGE_H
#define FS_ENGINE_HANDOVER_MESSAGE_H

#include "fs/metrics/rank_figures.h"

enum {
	HANDOVER_VERSION = 2,
	HANDOVER_PATH_MAX = 1024,
	HANDOVER_JOB_SIZE = 65,	    /* with the NUL */
	HANDOVER_REQUESTS_MAX = 64, /* open ones of a loader */
	HANDOVER_SLOTS_MAX = 64,    /* that a loader has not put yet */
};

#define HANDOVER_MAGIC UINT64_C(0x7265766f6e746562) /* "betnover" */

enum handover_kind {
	HANDOVER_HELLO = 1,
	HANDOVER_GET,
	HANDOVER_PUT,
	HANDOVER_CANCEL,
	HANDOVER_FORGET,
	HANDOVER_WELCOME,
	HANDOVER_BATCH,
	HANDOVER_TELL,
};

/* Every message begins with its kind; HELLO and WELCOME go on with the version.
 */
struct handover_hello {
	uint32_t kind;
	uint32_t version;
	uint64_t magic;
	uint32_t rank;
	uint32_t world;
	char job[HANDOVER_JOB_SIZE + 7]; /* may be empty */
};

struct handover_welcome {
	uint32_t kind;
	uint32_t version;
};

struct handover_get {
	uint32_t kind;
	uint32_t path_size;
	uint64_t request;	      /* a number of the loader's own */
	char path[HANDOVER_PATH_MAX]; /* in the mount; path_size bytes are sent,
					 without NUL */
};

/* PUT, CANCEL and FORGET. */
struct handover_number {
	uint32_t kind;
	uint32_t zero;
	uint64_t number;
};

struct handover_tell {
	uint32_t kind;
	uint32_t zero;
	struct rank_figures figures;
};

struct handover_batch {
	uint32_t kind;
	int32_t result; /* 0 or -errno; then the rest is 0 */
	uint64_t request;
	uint64_t slot;	   /* id of the memory */
	uint64_t size;	   /* of the batch file, which begins at 0 */
	uint64_t capacity; /* of the memory, what is to be mapped */
};

/* A message of a loader, after its check. */
struct handover_message {
	uint32_t kind;
	uint64_t number; /* request or slot */
	char job[HANDOVER_JOB_SIZE];
	uint32_t rank;
	uint32_t world;
	char path[HANDOVER_PATH_MAX + 1];
	struct rank_figures figures;
};

/* -EPROTO: not a message of this version, and *why is the reason. */
int handover_parse(const void *bytes, size_t size, struct handover_message *out,
		   const char **why);

/* Fills in a GET of this path. Returns how many bytes of it to send, or
   -ENAMETOOLONG. */
int handover_make_get(struct handover_get *get, uint64_t request,
		      const char *path);

#endif
