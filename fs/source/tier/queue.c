/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/tier/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"

int tier_queue_init(struct tier_queue *queue, size_t pages)
{
	*queue = (struct tier_queue){ .pages = pages };
	/* Memory that is never used costs nothing. */
	queue->ring = aligned_alloc(TIER_PAGE, pages * TIER_PAGE);
	return queue->ring ? 0 : -ENOMEM;
}

void tier_queue_fini(struct tier_queue *queue)
{
	free(queue->ring);
}

int tier_queue_reserve(struct tier_queue *queue, uint64_t first, size_t pages)
{
	unsigned run = (queue->first_run + queue->num_runs) % TIER_QUEUE_RUNS;

	if (queue->num_runs == TIER_QUEUE_RUNS ||
	    pages > queue->pages - queue->used)
		return -1;
	/* An empty ring begins at the front again, to touch little memory. */
	if (!queue->used)
		queue->next = 0;
	queue->runs[run] = (struct tier_run){ first, queue->next, pages };
	queue->is_ready[run] = false;
	queue->num_runs++;
	queue->used += pages;
	queue->next = (queue->next + pages) % queue->pages;
	return (int)run;
}

uint8_t *tier_queue_page(const struct tier_queue *queue, int run, size_t page)
{
	return queue->ring +
	       (queue->runs[run].at + page) % queue->pages * TIER_PAGE;
}

void tier_queue_ready(struct tier_queue *queue, int run)
{
	queue->is_ready[run] = true;
}

const struct tier_run *tier_queue_first(const struct tier_queue *queue,
					struct tier_piece pieces[2])
{
	const struct tier_run *run = &queue->runs[queue->first_run];
	size_t straight;

	if (!queue->num_runs || !queue->is_ready[queue->first_run])
		return NULL;
	straight = min_u64(run->pages, queue->pages - run->at);
	pieces[0] = (struct tier_piece){ queue->ring + run->at * TIER_PAGE,
					 straight * TIER_PAGE };
	pieces[1] = (struct tier_piece){ queue->ring,
					 (run->pages - straight) * TIER_PAGE };
	return run;
}

void tier_queue_pop(struct tier_queue *queue)
{
	queue->used -= queue->runs[queue->first_run].pages;
	queue->first_run = (queue->first_run + 1) % TIER_QUEUE_RUNS;
	queue->num_runs--;
}
