/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/report.h"

#include "fs/metrics/rank_figures.h"
#include "loader/jpeg/entry_store.h"

/* Least time between two reports, in nanoseconds. */
#define REPORT_NS UINT64_C(1000000000)

static uint64_t sum_counter(const struct ring *ring, enum stage stage,
			    size_t counter)
{
	return stage_sum(ring->lanes, LANE_WORKERS + ring->options.workers,
			 stage, counter);
}

static uint64_t count_entry_hits(const struct ring *ring)
{
	struct entry_store_stats stats;

	entry_store_stats(ring->options.entries, &stats);
	return stats.hits;
}

static void read_figures(struct ring *ring, struct rank_figures *out)
{
	const size_t busy = offsetof(struct counters, busy_ns);

	throughput_figures(&ring->throughput, out);
	out->n[FIGURE_OPEN_NS] = stage_now_ns() - ring->opened_ns;
	out->n[FIGURE_FAILED_SAMPLES] = atomic_load(&ring->failed_samples);
	out->n[FIGURE_READ_BYTES] =
		sum_counter(ring, STAGE_READ, offsetof(struct counters, bytes));
	out->n[FIGURE_READ_NS] = sum_counter(ring, STAGE_READ, busy);
	out->n[FIGURE_DECODE_NS] = sum_counter(ring, STAGE_DECODE, busy);
	out->n[FIGURE_ENTRY_HITS] = count_entry_hits(ring);
	out->n[FIGURE_TRANSFORM_NS] = sum_counter(ring, STAGE_TRANSFORM, busy);
	out->n[FIGURE_UPLOAD_NS] = sum_counter(ring, STAGE_UPLOAD, busy);
	out->n[FIGURE_MAKERS_NS] = sum_counter(ring, STAGE_MAKERS, busy);
	out->n[FIGURE_NETWORK_NS] = sum_counter(ring, STAGE_NETWORK, busy);
}

void report_send(struct ring *ring)
{
	struct feed *feed = ring->options.feed;
	struct rank_figures now = { .epoch = 0 };

	if (!feed->ops->report)
		return;
	read_figures(ring, &now);
	if (now.n[FIGURE_BATCHES] != ring->reported.n[FIGURE_BATCHES])
		feed->ops->report(feed, &now);
	ring->reported = now;
}

void report_send_if_due(struct ring *ring)
{
	if (stage_now_ns() - ring->opened_ns >=
	    ring->reported.n[FIGURE_OPEN_NS] + REPORT_NS)
		report_send(ring);
}
