/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/feed/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/cleanup.h"
#include "fs/source/local/net_stats.h"
#include "fs/source/object/disk.h"

/* Opens the subsets that the spec may name. */
static int need_subsets(struct feed *feed, const char *spec, const char *subset)
{
	struct subset_ref ref;
	int r = subset ? subset_open(subset, feed->facts.samples, feed->log,
				     &feed->subsets)
		       : 0;

	if (!r && feed->ops->find_subset && spec_names_subset(spec, &ref))
		r = feed->ops->find_subset(feed, &ref);
	feed->facts.subsets = feed->subsets;
	return r;
}

int feed_start(struct feed *feed, const char *spec, const char *subset)
{
	char why[SPEC_WHY_SIZE];
	int r;

	spec = spec ? spec : "";
	r = need_subsets(feed, spec, subset);
	feed->interrupted = NULL;
	if (r)
		return r;
	r = spec_parse(spec, &feed->facts, &feed->spec, why);
	if (r) {
		log_error(feed->log, "%s", why);
		return r;
	}
	spec_canonical(&feed->spec, feed->spec_text);
	return 0;
}

void feed_stop(struct feed *feed)
{
	if (!feed->stopped)
		feed->ops->close(feed);
	feed->stopped = true;
}

void feed_close(struct feed *feed)
{
	if (!feed)
		return;
	feed_stop(feed);
	subset_close_all(feed->subsets);
	free(feed->fields);
	free(feed->names);
	free(feed->path);
	free(feed);
}

bool feed_take_entries(void *arg, uint64_t bytes)
{
	struct feed *feed = arg;

	return !feed->ops->take_entries || feed->ops->take_entries(feed, bytes);
}

int feed_make_fields(struct feed *feed, uint32_t n)
{
	feed->fields = calloc(n + 1, sizeof(*feed->fields));
	feed->names = calloc(n + 1, sizeof(*feed->names));
	if (!feed->fields || !feed->names)
		return -ENOMEM;
	feed->num_fields = n;
	for (uint32_t i = 0; i < n; i++) {
		feed->fields[i].name = feed->names[i].name;
		feed->fields[i].stem = feed->names[i].stem;
	}
	return 0;
}

static bool is_of_dataset(const struct feed *feed, const struct batch_view *v)
{
	char print[sizeof(feed->fingerprint)];

	for (size_t i = 0; i < BETON_FINGERPRINT_SIZE; i++)
		sprintf(print + 2 * i, "%02x", v->header->fingerprint[i]);
	return !strcmp(print, feed->fingerprint);
}

/* Users find their own data by the ids. */
static bool has_known_samples(const struct feed *feed,
			      const struct batch_view *v)
{
	for (uint32_t i = 0; i < v->header->num_samples; i++) {
		if (v->ids[i] >= feed->facts.samples)
			return false;
	}
	return true;
}

int feed_check(const struct feed *feed, const struct feed_batch *batch,
	       const struct feed_expected *as, struct batch_view *out,
	       char why[BATCH_VIEW_WHY_SIZE])
{
	int r = batch_view_init(out, batch->bytes, batch->size, why);

	if (r)
		return r;
	if (is_of_dataset(feed, out) && out->header->epoch == as->epoch &&
	    out->header->batch == as->number &&
	    out->header->num_fields == as->num_fields &&
	    out->header->num_samples ==
		    spec_batch_samples(&feed->spec, as->number) &&
	    has_known_samples(feed, out))
		return 0;
	snprintf(why, BATCH_VIEW_WHY_SIZE, "it is of another dataset or place");
	return -ESTALE;
}

int feed_fetch(struct feed *feed, uint64_t epoch, uint64_t number,
	       struct feed_batch *into, struct batch_view *out)
{
	typedef unsigned long long ull;
	const struct feed_expected as = { epoch, number, feed->num_fields };
	char why[BATCH_VIEW_WHY_SIZE];
	int r = feed->ops->fetch(feed, epoch, number, into);

	if (r)
		return r;
	r = feed_check(feed, into, &as, out, why);
	if (r)
		log_error(feed->log, "%s: epoch %llu batch %llu: %s",
			  feed->path, (ull)epoch, (ull)number, why);
	if (r)
		feed_release(feed, into);
	return r;
}

bool feed_is_remote(const struct feed *feed)
{
	struct source_net_stats net;
	struct disk_stats tier;

	return feed->ops->network && feed->ops->network(feed, &net, &tier);
}

void feed_cancel(struct feed *feed)
{
	if (!feed->stopped && feed->ops->cancel)
		feed->ops->cancel(feed);
}

bool feed_keep(struct feed *feed, const struct feed_batch *batch)
{
	return !batch->shared ||
	       (feed->ops->keep && feed->ops->keep(feed, batch->shared));
}

void feed_release(struct feed *feed, struct feed_batch *batch)
{
	void *shared = steal(batch->shared);

	if (shared)
		feed->ops->release(feed, shared);
}
