/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way by which requests of the kernel arrive: through rings of io_uring, if
 * -o io_uring and the kernel allow it, otherwise through /dev/fuse and libfuse.
 *
 * libfuse mounts, and answers INIT, in either case. It has rings of its own
 * from version 3.18 on, but up to 3.18.3 a reply of another thread than that of
 * the ring may get lost there, and they are opened inside the sandbox. So
 * libfuse does not know about these rings.
 *
 * The kernel sends no interrupts for requests in rings that the daemon could
 * act upon: a killed reader waits for its reply, as without rings, where the
 * daemon ignores interrupts, too. If its request is still in the queue, the
 * kernel withdraws it.
 */
#ifndef FS_MOUNT_FUSE_TRANSPORT_H
#define FS_MOUNT_FUSE_TRANSPORT_H

#include "fs/base/metrics/rings_count.h"
#include "fs/mount/fuse/ring_ops.h"

struct fuse_session;
struct log;
struct uring;

struct transport_options {
	const char *wanted; /* "auto", "on" or "off"; NULL: auto */
	bool single_thread;
	bool debug;
	/* Only root and the daemon's user may use the mount. */
	bool allow_root;
	struct log *log;
};

struct transport {
	struct log *log;
	bool is_demanded; /* a mount without rings fails */
	struct rings_count count;
	struct uring *uring; /* NULL: /dev/fuse */
	struct workers *workers;
	struct ring_ops ring_ops;
	/* /dev/fuse, and a pipe for libfuse's reply to INIT. */
	int fuse_fd;
	int reply[2];
};

/* Opens the rings, or notes why there are none. Call it before the sandbox is
   entered, after the last fork. If -o io_uring=on cannot be met, logs why and
   returns -EINVAL, because of another option, or -ENOTSUP, because of the
   system. */
int transport_open(struct transport *transport,
		   const struct transport_options *options);

/* Connects the rings with a session that is mounted. Call it before the sandbox
   is entered. Fails like transport_open(). */
int transport_connect(struct transport *transport,
		      struct fuse_session *session);

/*
 * Starts the threads, and answers INIT. If the kernel refuses, requests arrive
 * through /dev/fuse. Returns whether transport_loop() is to be called, instead
 * of a loop of libfuse; -errno: the session has ended, or the failure is
 * logged.
 */
int transport_start(struct transport *transport, struct fuse_session *session,
		    struct fuse_ops *ops);

/* Waits for the end of the session. Returns 0 or -errno, logged. */
int transport_loop(struct transport *transport, struct fuse_session *session);

/* Makes the kernel get no more replies, while workers still wait for a disk:
   the process is about to end. Any thread. */
void transport_cut_off(struct transport *transport);

/* Ends the threads, after the requests that are being answered. Does nothing if
   there are none. */
void transport_stop(struct transport *transport);

/* Call it when no other thread uses the transport any more. */
void transport_close(struct transport *transport);

#endif
