/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads for requests that may have to wait. They are started while all others
 * are busy, up to a limit; from then on requests queue up. Most of them end
 * when there is nothing to do.
 */
#ifndef FS_MOUNT_FUSE_WORKERS_H
#define FS_MOUNT_FUSE_WORKERS_H

struct uring_entry;
struct workers;

/* run() answers a request, on a thread of the workers. The threads use the CPUs
   that the caller may use. */
int workers_open(unsigned most_threads, unsigned idle_threads,
		 void (*run)(void *arg, struct uring_entry *entry), void *arg,
		 struct workers **out);

/* Queues a request; does not wait. Uses entry->next. -EAGAIN: there is no
   thread, and none can be started. -ENOTCONN: the workers have stopped. */
int workers_push(struct workers *workers, struct uring_entry *entry);

/* Waits for the requests that are being answered. Others stay without a reply.
   Takes NULL. */
void workers_stop(struct workers *workers);

/* Frees the workers, which have stopped. Takes NULL. */
void workers_close(struct workers *workers);

#endif
