/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of FUSE through io_uring: a queue per CPU, with entries that hold
 * one request each, and a thread per queue that runs on this CPU. A request of
 * a caller arrives at the queue of the caller's CPU, so that no other CPU has
 * to wake up. Only the thread of a queue talks to the kernel: a command belongs
 * to the thread that submitted it, and is canceled when this thread ends.
 * Therefore the replies of other threads go through it.
 *
 * The rings take commands of FUSE and reads of their eventfd, and nothing
 * else, so that they open no way out of the sandbox.
 */
#ifndef FS_MOUNT_FUSE_URING_H
#define FS_MOUNT_FUSE_URING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uring;
struct uring_queue;

/* The kernel's struct fuse_uring_req_header, which headers of the C library may
   not have yet. */
struct uring_head {
	_Alignas(8) char in_out[128]; /* fuse_in_header, fuse_out_header */
	_Alignas(8) char op_in[128];  /* the arguments of the operation */
	uint64_t flags;
	uint64_t commit_id;
	uint32_t payload_size;
	uint32_t padding;
	uint64_t reserved;
};

struct uring_entry {
	struct uring_queue *queue;
	struct uring_head *head;
	void *payload;	     /* further arguments; then bytes of the reply */
	size_t payload_size; /* bytes of further arguments */
	/* For the caller, from the request to its reply. */
	struct uring_entry *next;

	/* The members below belong to the rings. */
	uint64_t id;
	bool is_registered; /* the kernel has taken it */
	size_t kept;	    /* bytes of the payload that stay in memory */
};

/* Returns the number of queues that the kernel requires: one for each CPU that
   the machine may ever have. 0: unknown. */
unsigned uring_cpus(void);

/* Returns the descriptors that the rings take. */
unsigned uring_descriptors(unsigned num_queues);

/* Opens the rings. Call it before the sandbox is entered. */
int uring_open(unsigned num_queues, struct uring **out);

/* Connects the rings with /dev/fuse. Call it before the sandbox is entered. */
int uring_connect(struct uring *uring, int fuse_fd);

/*
 * Starts the threads. Each entry has memory for replies of `payload_size`
 * bytes. -errno: the kernel has got no entry. Then the caller calls
 * uring_close().
 */
int uring_allocate(struct uring *uring, size_t payload_size);

/*
 * Gives the entries to the kernel, which must have got the reply to INIT.
 * Requests arrive at serve(), on the thread of their queue, which must not
 * wait. -errno: the kernel took no entries; it uses /dev/fuse instead. Then the
 * caller calls uring_close().
 */
int uring_start(struct uring *uring,
		void (*serve)(void *arg, struct uring_entry *entry), void *arg);

/* Returns the CPUs that have a queue. */
unsigned uring_queues(const struct uring *uring);

/* Returns the most bytes that a reply may have. */
size_t uring_reply_max(const struct uring_entry *entry);

/*
 * Replies to the request of an entry, with `error` (0 or -errno) and the first
 * `size` bytes of its payload. Any thread. The entry then belongs to the
 * kernel.
 */
void uring_reply(struct uring_entry *entry, int error, size_t size);

/* Returns a descriptor that is readable from the moment when the kernel has
   taken all entries of a queue back: at the end of the mount. */
int uring_ended_fd(const struct uring *uring);

/* Ends the threads and gives /dev/fuse up, so that the kernel gets no more
   replies. Any thread, while others still reply. */
void uring_stop(struct uring *uring);

/* Ends the threads, and frees the rings. Replies must no longer be made. Takes
   NULL. */
void uring_close(struct uring *uring);

#endif
