/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/zerocopy/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#	define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif

int peer_of(int socket, struct peer *out)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size))
		return -errno;
	out->pid = who.pid;
	out->uid = who.uid;
	out->gid = who.gid;
	size = sizeof(out->groups);
	if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, out->groups, &size))
		return errno == ERANGE ? -E2BIG : -errno;
	out->num_groups = size / sizeof(out->groups[0]);
	return 0;
}

void peer_groups_of(int status, struct peer *out)
{
	static const char key[] = "\nGroups:";
	char text[8192], *at, *end; /* more than PEER_GROUPS_MAX take */
	ssize_t got = read(status, text, sizeof(text) - 1);
	unsigned long gid;

	out->num_groups = 0;
	if (got <= 0)
		return;
	text[got] = '\0';
	at = strstr(text, key);
	if (!at)
		return;
	at += sizeof(key) - 1;
	at[strcspn(at, "\n")] = '\0';
	while (out->num_groups < PEER_GROUPS_MAX) {
		gid = strtoul(at, &end, 10);
		if (end == at)
			return;
		out->groups[out->num_groups++] = (gid_t)gid;
		at = end;
	}
}

bool peer_is_trusted(const struct peer *peer)
{
	return peer->uid == 0 || peer->uid == geteuid();
}

static bool is_in_group(const struct peer *peer, gid_t gid)
{
	for (unsigned i = 0; i < peer->num_groups; i++) {
		if (peer->groups[i] == gid)
			return true;
	}
	return peer->gid == gid;
}

bool peer_may(const struct peer *peer, const struct stat *st, unsigned wanted)
{
	unsigned mode = st->st_mode;

	if (peer_is_trusted(peer))
		return true;
	if (peer->uid == st->st_uid)
		mode >>= 6;
	else if (is_in_group(peer, st->st_gid))
		mode >>= 3;
	return (mode & wanted) == wanted;
}
