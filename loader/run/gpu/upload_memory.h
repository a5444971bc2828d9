/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of an upload: of the host, pinned within a budget or else ordinary,
 * and of the GPU. Thread-safe for different parts.
 */
#ifndef LOADER_RUN_GPU_UPLOAD_MEMORY_H
#define LOADER_RUN_GPU_UPLOAD_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fs/base/util/log.h"
#include "loader/run/gpu/cuda.h"
#include "loader/util/scratch.h"

enum { UPLOAD_PIECES = 2 };

/* Totals since upload_open(). */
struct upload_stats {
	uint64_t batches;  /* started */
	uint64_t bytes;	   /* copied */
	uint64_t staged;   /* of these, through the pieces */
	uint64_t waits;	   /* upload_begin() found copies unfinished */
	uint64_t wait_ns;  /* how long it waited */
	uint64_t pinned;   /* bytes of slots that are pinned now */
	uint64_t ordinary; /* bytes of slots that are not pinned */
	uint64_t device;   /* bytes of the device's memory now */
};

/* Pinned memory through which ordinary memory is copied. */
struct upload_piece {
	void *bytes;
	struct cuda_event *read; /* recorded after the last copy out of it */
};

struct upload {
	struct cuda *cuda;
	struct log *log;
	struct cuda_stream *stream;
	pthread_mutex_t lock; /* guards what is queued on the stream, and all
				 that follows */
	struct upload_piece pieces[UPLOAD_PIECES];
	uint32_t next_piece;
	uint64_t budget;
	bool is_logged; /* the exhausted budget was logged */
	struct upload_stats stats;
};

struct upload_part {
	void *host;
	uint64_t host_capacity;
	bool pinned;		/* else the host's memory is this: */
	struct buffer ordinary; /* its bytes are host */
	uint64_t device;
	uint64_t device_capacity;
};

/* Frees the memory of a part, if there is some. */
void upload_free_host(struct upload *u, struct upload_part *p);
void upload_free_device(struct upload *u, struct upload_part *p);
/* Replaces the memory of a part by `size` bytes or some more. */
int upload_grow_host(struct upload *u, struct upload_part *p, uint64_t size);
int upload_grow_device(struct upload *u, struct upload_part *p, uint64_t size);

/* Adds to a number of u->stats. */
void upload_count(struct upload *u, uint64_t *what, uint64_t by);

#endif
