/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of struct outside by which credentials ask servers through a
   net. */
#ifndef FS_SOURCE_KEYS_NET_OUTSIDE_H
#define FS_SOURCE_KEYS_NET_OUTSIDE_H

#include "fs/source/keys/outside.h"
#include "fs/source/net/net.h"

/* Adds a net to the functions of `base`. The net outlives them, and its
   thread never asks. */
void net_outside_init(struct outside *outside, const struct outside *base,
		      struct net *net);

#endif
