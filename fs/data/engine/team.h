/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that help another thread with work that it can divide into parts, for
 * example with copying a batch.
 */
#ifndef FS_DATA_ENGINE_TEAM_H
#define FS_DATA_ENGINE_TEAM_H

struct team;

/* Does part `part` of the work. */
typedef void team_fn(void *arg, unsigned part);

/* Starts the helpers. Returns 0 or -errno. */
int team_open(unsigned helpers, struct team **out);
/* No thread may be in team_run(). Takes NULL. */
void team_close(struct team *team);

/*
 * Does parts 0 to parts - 1, on the caller's thread and the helpers, and returns
 * when all are done. Without a team, or while it helps another thread, the
 * caller does all parts. Thread-safe.
 */
void team_run(struct team *team, team_fn *fn, void *arg, unsigned parts);

#endif
