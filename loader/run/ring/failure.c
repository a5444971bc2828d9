/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/ring/failure.h"

#include <stdio.h>
#include <string.h>

#include "loader/run/feed/feed.h"
#include "loader/run/gpu/cuda.h"

/* Returns advice for the user, or "" for errors without advice. */
static const char *advice(const struct feed *feed, int error)
{
	const bool is_mount = feed->ops == &feed_mount;

	if (error == -EFBIG)
		return "; a batch must fit into half of cache_size: use a smaller batch, or mount with a larger cache_size";
	if (error == -ENOMEM)
		return "; use smaller batches, or a larger cache_size";
	if (is_mount && error == -ESTALE)
		return "; another dataset is mounted there: mount the previous "
		       "one again, or open another loader";
	if (is_mount && (error == -ENOENT || error == -ENOTCONN))
		return "; check that the dataset is mounted there";
	return "";
}

void failure_explain(const struct ring *ring, int error, bool by_device,
		     char *out, size_t size)
{
	struct device *d = ring->options.plan.device;

	*out = '\0';
	if (d && (by_device || cuda_is_lost(device_cuda(d))))
		cuda_failure(device_cuda(d), out, size);
	if (error == -EFBIG)
		snprintf(out, size, "%s", ring->options.feed->why);
	if (!*out)
		snprintf(out, size, "%s%s", strerror(-error),
			 advice(ring->options.feed, error));
}

void failure_note_reason(const struct ring *ring, struct turn *t,
			 uint64_t epoch, uint64_t number, const char *why)
{
	snprintf(t->step->message, sizeof(t->step->message),
		 "%.300s: epoch %llu batch %llu: %s", ring->options.feed->path,
		 (unsigned long long)epoch, (unsigned long long)number, why);
}

void failure_note(const struct ring *ring, struct turn *t, uint64_t epoch,
		  uint64_t number, int error, bool by_device)
{
	char why[FAILURE_WHY_SIZE];

	failure_explain(ring, error, by_device, why, sizeof(why));
	failure_note_reason(ring, t, epoch, number, why);
}
