/* SPDX-License-Identifier: Apache-2.0 */
/* The feed that runs the engine inside the loader's process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/files/paths.h"
#include "fs/base/memory/budget.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/joined.h"
#include "fs/data/dataset/value.h"
#include "fs/data/dataset/verify.h"
#include "fs/data/engine/engine.h"
#include "loader/run/feed/feed.h"

/* The part of the memory limit that entry points may take. */
enum { ENTRIES_PART = 16 };

/* Copying a batch is bound by the memory, which few CPUs use up. */
enum { HELPERS_MAX = 3 };

struct file_feed {
	struct feed base;
	struct engine *engine;
	struct dataset *ds;
	struct stream *stream; /* of the epoch requested last */
	uint64_t epoch;
	struct batch_share share;
	uint64_t entries; /* bytes of the engine's budget for entry points */
};

static void file_close(struct feed *feed)
{
	struct file_feed *f = (struct file_feed *)feed;

	stream_close(f->stream);
	if (f->engine)
		budget_give(engine_budget(f->engine), BUDGET_INDEXES,
			    f->entries);
	engine_close(f->engine);
	dataset_close(f->ds);
}

/* Looks whether a value is an array with a number of rows of its own. If the
   read fails here, the batch that contains the value reports the error. */
static void describe_array(struct file_feed *f, const struct value *v,
			   struct array *out)
{
	uint64_t size = min_u64(v->size, ARRAY_HEADER_MAX);
	uint8_t head[ARRAY_HEADER_MAX];

	if (!source_read(f->ds->source, head, size, v->off))
		array_parse(head, size, v->size, out);
}

static int describe_field(struct file_feed *f, uint32_t i)
{
	const struct field *from = &f->ds->format.fields[i];
	struct pipeline_field *to = &f->base.fields[i];
	struct value v;

	memcpy(f->base.names[i].name, from->name, sizeof(from->name));
	memcpy(f->base.names[i].stem, from->stem, sizeof(from->stem));
	to->column = from->type->column;
	to->usable = !from->unusable;
	memcpy(to->dtype, from->dtype, sizeof(from->dtype));
	to->ndim = from->ndim;
	memcpy(to->shape, from->shape, sizeof(from->shape));
	if (to->column == COLUMN_RECORD) {
		to->ndim = 1;
		to->shape[0] = from->meta_size;
	}
	if (!to->dtype[0])
		strcpy(to->dtype, "|u1");
	if ((to->column != COLUMN_IMAGE && to->column != COLUMN_RAGGED) ||
	    !f->base.facts.samples || dataset_value_at(f->ds, i, 0, &v))
		return 0;
	to->width = v.width;
	to->height = v.height;
	if (to->column == COLUMN_RAGGED)
		describe_array(f, &v, &to->array);
	return 0;
}

/* Requests the heads of the arrays of sample 0, for describe_array(). */
static void prefetch_heads(struct file_feed *f)
{
	struct dataset *ds = f->ds;
	struct value v;

	for (uint32_t i = 0; i < ds->format.num_fields; i++) {
		if (ds->format.samples && source_prefetches(ds->source) &&
		    ds->format.fields[i].type->column == COLUMN_RAGGED &&
		    !dataset_value_at(ds, i, 0, &v))
			source_prefetch(ds->source, v.off,
					min_u64(v.size, ARRAY_HEADER_MAX));
	}
}

static int describe(struct file_feed *f)
{
	struct feed *feed = &f->base;
	int r = feed_make_fields(feed, f->ds->format.num_fields);

	feed->facts = (struct spec_facts){
		.samples = f->ds->format.samples,
		.data_bytes = dataset_data_bytes(f->ds),
	};
	for (size_t i = 0; i < BETON_FINGERPRINT_SIZE; i++)
		sprintf(feed->fingerprint + 2 * i, "%02x",
			f->ds->fingerprint[i]);
	prefetch_heads(f);
	for (uint32_t i = 0; i < feed->num_fields && !r; i++)
		r = describe_field(f, i);
	return r;
}

static int file_open(const char *path, const struct feed_options *o,
		     struct feed **out)
{
	struct file_feed *f = calloc(1, sizeof(*f));
	struct engine_options options = {
		.log = o->log,
		.trace = o->trace,
		.threads = 1,
		.helpers = (unsigned)min_u64(HELPERS_MAX,
					     o->workers ? o->workers - 1 : 0),
		.choice = o->choice,
		.num_datasets = 1,
	};
	int r;

	if (!f)
		return -ENOMEM;
	f->base.ops = &feed_file;
	f->base.log = o->log;
	f->base.delivery = "in-process";
	f->share = (struct batch_share){ o->rank, o->world_size };
	f->base.path = paths_public(path);
	r = f->base.path ? joined_open(path, o->storage, o->log, &f->ds)
			 : -ENOMEM;
	if (!r && o->verify)
		r = verify_dataset(f->ds, o->storage);
	options.datasets = &f->ds;
	if (!r)
		r = engine_open(&options, &f->engine);
	if (!r)
		r = engine_start(f->engine);
	if (!r)
		r = describe(f);
	if (r)
		feed_close(&f->base);
	else
		*out = &f->base;
	return r;
}

static int need_stream(struct file_feed *f, uint64_t epoch)
{
	struct stream *stream;
	int r;

	if (f->stream && f->epoch == epoch)
		return 0;
	r = stream_open(f->engine, f->ds, &f->base.spec, epoch, &stream);
	if (r)
		return r;
	stream_close(f->stream);
	stream_set_share(stream, &f->share);
	f->stream = stream;
	f->epoch = epoch;
	return 0;
}

struct fetched {
	struct source_wait wait;
	int result;
};

static void fetch_done(void *arg, int result, struct slot *slot)
{
	struct fetched *fetched = arg;

	(void)slot;
	fetched->result = result;
	source_wait_done(&fetched->wait);
}

static int collate(struct file_feed *f, struct batch *batch,
		   const struct buffer *into)
{
	const struct dest dest = { into->bytes, into->capacity };
	struct fetched fetched = { .result = 0 };
	struct ticket *ticket = NULL;
	int r;

	source_wait_init(&fetched.wait);
	source_wait_add(&fetched.wait);
	r = stream_submit(f->stream, batch, &dest, fetch_done, &fetched,
			  &ticket);
	if (!r)
		source_wait_idle(&fetched.wait);
	ticket_close(&ticket);
	source_wait_fini(&fetched.wait);
	return r ? r : fetched.result;
}

static int file_fetch(struct feed *feed, uint64_t epoch, uint64_t number,
		      struct feed_batch *into)
{
	struct file_feed *f = (struct file_feed *)feed;
	struct batch *batch = NULL;
	int r = need_stream(f, epoch);

	if (!r)
		r = stream_batch(f->stream, number, true, &batch);
	if (!r && !into->is_named)
		stream_note(f->stream, number);
	if (!r)
		r = buffer_reserve(&into->own, batch->vfile.size);
	if (!r)
		r = collate(f, batch, &into->own);
	if (!r) {
		into->bytes = into->own.bytes;
		into->size = batch->vfile.size;
	}
	batch_put(&batch);
	if (r == -EFBIG)
		engine_explain_size(f->engine, feed->why, sizeof(feed->why));
	return r;
}

static bool file_network(const struct feed *feed, struct source_net_stats *net,
			 struct disk_stats *tier)
{
	const struct dataset *ds = ((const struct file_feed *)feed)->ds;

	dataset_tier_stats(ds, tier);
	return source_net_stats(ds->source, net);
}

static bool file_take_entries(struct feed *feed, uint64_t bytes)
{
	struct file_feed *f = (struct file_feed *)feed;
	struct budget *budget = engine_budget(f->engine);
	struct budget_stats stats;

	budget_stats(budget, &stats);
	if (f->entries + bytes > stats.limit / ENTRIES_PART ||
	    budget_take(budget, BUDGET_INDEXES, bytes, 0))
		return false;
	f->entries += bytes;
	return true;
}

/* The data of a server may take long. */
static void file_cancel(struct feed *feed)
{
	source_halt(((struct file_feed *)feed)->ds->source);
}

const struct feed_ops feed_file = {
	.name = "file",
	.open = file_open,
	.fetch = file_fetch,
	.cancel = file_cancel,
	.take_entries = file_take_entries,
	.network = file_network,
	.close = file_close,
};
