/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of one object by HTTP: the queues of its requests, and when attempts to
 * read them begin (fetch.h). All functions run on the thread of the net, except
 * where noted.
 */
#ifndef FS_SOURCE_OBJECT_REMOTE_H
#define FS_SOURCE_OBJECT_REMOTE_H

#include "fs/source/object/fetch.h"

/* Any thread, before the first request. */
void remote_init(struct remote *remote);
/* Any thread but the net's: cancels all requests and waits. */
void remote_stop(struct remote *remote);
/* The remote has been stopped. */
void remote_fini(struct remote *remote);

/* Any thread. The request lies within the object. */
void remote_submit(struct remote *remote, struct source_request *request);
void remote_cancel(struct remote *remote, struct source_request *request);

/* Any thread: ends all requests with -ECANCELED, also later ones. */
void remote_halt(struct remote *remote);

/* Any thread, until remote_fini(): begins the attempts that wait for
   credentials. */
void remote_wake(struct remote *remote);

void remote_stats(const struct remote *remote, struct source_net_stats *out);

#endif
