/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/lane.h"

#include <stdlib.h>
#include <utlist.h>

struct lane *lane_need(struct lanes *l, const struct dataset *ds, uint64_t user)
{
	struct lane *lane;

	DL_FOREACH(l->list, lane)
	{
		if (lane->ds == ds && lane->user == user)
			return lane;
	}
	lane = calloc(1, sizeof(*lane));
	if (!lane)
		return NULL;
	lane->ds = ds;
	lane->user = user;
	DL_APPEND(l->list, lane);
	return lane;
}

void lane_drop(struct lanes *l, struct lane *lane)
{
	if (lane->queue || lane->running)
		return;
	DL_DELETE(l->list, lane);
	free(lane);
}

void lane_enter(struct lanes *l, struct lane *lane)
{
	lane->running++;
	DL_DELETE(l->list, lane);
	DL_APPEND(l->list, lane);
}

void lane_leave(struct lanes *l, struct lane *lane)
{
	lane->running--;
	lane_drop(l, lane);
}

struct lane *lanes_next(const struct lanes *l)
{
	struct lane *lane;

	DL_FOREACH(l->list, lane)
	{
		if (lane->queue && lane->running < l->width)
			return lane;
	}
	return NULL;
}

bool lanes_have_room(const struct lanes *l, const struct dataset *ds)
{
	const struct lane *lane;
	unsigned running = 0;

	DL_FOREACH(l->list, lane)
	{
		if (lane->ds == ds)
			running += lane->running;
	}
	return running < l->width;
}
