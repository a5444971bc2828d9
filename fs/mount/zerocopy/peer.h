/* SPDX-License-Identifier: Apache-2.0 */
/* The process at the other end of a Unix socket, and its permissions in a
   mount. */
#ifndef FS_MOUNT_ZEROCOPY_PEER_H
#define FS_MOUNT_ZEROCOPY_PEER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { PEER_GROUPS_MAX = 256 };

struct peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	gid_t groups[PEER_GROUPS_MAX];
	unsigned num_groups;
};

/* Reads the identity of the peer of a socket. -E2BIG: more groups than
   PEER_GROUPS_MAX. */
int peer_of(int socket, struct peer *out);

/* Takes the groups from an open /proc/PID/status; none if that fails. */
void peer_groups_of(int status, struct peer *out);

/* Returns whether the peer is root, or the user that the daemon runs as. */
bool peer_is_trusted(const struct peer *peer);

/* Returns whether the peer has permissions, 4 to read and 1 to search, by the
   rules of the kernel's default_permissions. */
bool peer_may(const struct peer *peer, const struct stat *st, unsigned wanted);

#endif
