/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox: the daemon permanently drops all rights that serving a mount
 * does not need. Afterwards it opens no path, starts no program, and reaches no
 * other process or network. Open descriptors still work. If a dataset is behind
 * a URL, the daemon may also read files, as the resolver and TLS do, and
 * connect to servers; it still writes to no path.
 */
#ifndef FS_MOUNT_DAEMON_SANDBOX_H
#define FS_MOUNT_DAEMON_SANDBOX_H

#include <stdbool.h>

/* Layers that confine independently of each other, a bit for each. */
enum sandbox_layers {
	SANDBOX_NONE = 0,
	SANDBOX_LANDLOCK = 1, /* no path, no TCP port, no signal */
	SANDBOX_SECCOMP = 2,  /* only the calls of sandbox_calls.c */
	SANDBOX_ALL = SANDBOX_LANDLOCK | SANDBOX_SECCOMP,
};

/* Returns the layers that this kernel offers. */
enum sandbox_layers sandbox_offered(void);

/* "landlock,seccomp", the name of one layer, or "none". */
const char *sandbox_name(enum sandbox_layers layers);

/*
 * Confines this thread and the threads that it starts later; the filter of
 * system calls applies to all threads. With `network`, URLs can be read.
 * Returns 0 or -errno. After a failure the process may be confined in part.
 */
int sandbox_enter(enum sandbox_layers layers, bool network);

#endif
