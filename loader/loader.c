/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the calls of <beton/loader.h> on an open loader. */
#include "beton/loader.h"

#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/source/local/net_stats.h"
#include "fs/source/object/disk.h"
#include "loader/open.h"
#include "loader/run/link/link.h"
#include "loader/run/loop/state.h"
#include "loader/sized.h"
#include "loader/util/value_store.h"

enum { DEVICE_WHY_SIZE = 600 };

/* Releases a batch whose outputs did not reach the GPU, and sets the error. */
static int lose_batch(struct beton_loader *l, const struct beton_batch **out,
		      int error)
{
	char why[DEVICE_WHY_SIZE] = "";

	if (l->device)
		cuda_failure(device_cuda(l->device), why, sizeof(why));
	snprintf(l->error, sizeof(l->error),
		 "%.300s: epoch %llu batch %llu: the GPU: %s", l->feed->path,
		 (unsigned long long)(*out)->epoch,
		 (unsigned long long)(*out)->number,
		 *why ? why : strerror(-error));
	beton_loader_release(l, *out);
	*out = NULL;
	return error;
}

static int take_batch(struct beton_loader *l, const struct beton_batch **out)
{
	struct telemetry_totals totals;
	int r;

	if (l->on_demand) {
		snprintf(l->error, sizeof(l->error),
			 "the loader was opened with on_demand: ask for "
			 "batches by name");
		return -EINVAL;
	}
	r = ring_next(l->ring, out, l->error, sizeof(l->error));

	if (r || !l->telemetry.entry)
		return r;
	ring_totals(l->ring, &totals);
	telemetry_report(&l->telemetry, &totals);
	return 0;
}

static int wait_for_upload(struct beton_loader *l,
			   const struct beton_batch **out)
{
	struct device_batch *p;
	int r = ring_parcel(l->ring, *out, &p);

	if (!r && p) {
		r = device_batch_wait(p);
		ring_waited_for_upload(l->ring);
	}
	return r ? lose_batch(l, out, r) : 0;
}

int beton_loader_next(struct beton_loader *l, const struct beton_batch **out)
{
	int r = take_batch(l, out);

	return r ? r : wait_for_upload(l, out);
}

static int check_name(struct beton_loader *l, uint64_t epoch, uint64_t number)
{
	typedef unsigned long long ull;
	uint64_t batches = spec_batches(&l->feed->spec);

	if (epoch <= SPEC_EPOCH_MAX && number < batches)
		return 0;
	snprintf(l->error, sizeof(l->error),
		 "there is no batch %llu of epoch %llu: an epoch has %llu "
		 "batches, and epochs are below 2^63",
		 (ull)number, (ull)epoch, (ull)batches);
	return -EINVAL;
}

int beton_loader_ask(struct beton_loader *l, uint64_t epoch, uint64_t number,
		     uint32_t milliseconds)
{
	int r = check_name(l, epoch, number);

	return r ? r : ring_ask(l->ring, epoch, number, milliseconds);
}

int beton_loader_make(struct beton_loader *l, uint64_t epoch, uint64_t number,
		      const struct beton_batch **out)
{
	int r = check_name(l, epoch, number);

	if (!r)
		r = ring_make(l->ring, epoch, number, out, l->error,
			      sizeof(l->error));
	return r ? r : wait_for_upload(l, out);
}

int beton_loader_next_on(struct beton_loader *l, void *stream,
			 const struct beton_batch **out)
{
	int r = take_batch(l, out);

	if (r)
		return r;
	r = beton_loader_acquire(l, *out, stream);
	return r ? lose_batch(l, out, r) : 0;
}

int beton_loader_acquire(struct beton_loader *l,
			 const struct beton_batch *batch, void *stream)
{
	struct device_batch *p;
	int r = ring_parcel(l->ring, batch, &p);

	return !r && p ? device_batch_acquire(p, stream) : r;
}

int beton_loader_read(struct beton_loader *l, const struct beton_batch *batch,
		      uint32_t output, void *to)
{
	const struct beton_tensor *t;
	struct device_batch *p;
	int r = ring_parcel(l->ring, batch, &p);

	if (!r && output >= batch->num_outputs)
		r = -EINVAL;
	if (r)
		return r;
	t = &batch->outputs[output];
	if (t->device_type != BETON_DEVICE_CPU)
		return device_batch_read(p, output, to, t->size);
	memcpy(to, t->data, t->size);
	return 0;
}

int beton_loader_wait(struct beton_loader *l, uint32_t milliseconds)
{
	return l->on_demand ? 0 : ring_wait(l->ring, milliseconds);
}

int beton_loader_set_callback(struct beton_loader *l,
			      beton_callback_fn *callback, void *arg)
{
	return l->callback ? callback_set(l->callback, callback, arg) : -EINVAL;
}

void beton_loader_release(struct beton_loader *l,
			  const struct beton_batch *batch)
{
	struct device_batch *p;
	int r = ring_parcel(l->ring, batch, &p);

	if (!r && p)
		r = device_batch_finish(p);
	/* While a stream may use the memory of the batch, the user still holds
	   it. */
	if (!r)
		ring_release(l->ring, batch);
}

int beton_loader_release_on(struct beton_loader *l,
			    const struct beton_batch *batch, void *stream)
{
	struct device_batch *p;
	int r = ring_parcel(l->ring, batch, &p);

	if (r)
		return r;
	if (p)
		r = device_batch_release(p, stream);
	/* A lost device does not use the memory any longer. */
	if (!r || cuda_is_lost(device_cuda(l->device)))
		ring_release(l->ring, batch);
	return r;
}

const char *beton_loader_error(const struct beton_loader *l)
{
	return l->error;
}

int beton_loader_state(const struct beton_loader *l, char *buffer, size_t size)
{
	struct state s = {
		.epoch = ring_cursor(l->ring)->epoch,
		.batches = cursor_consumed(ring_cursor(l->ring)),
	};

	memcpy(s.fingerprint, l->feed->fingerprint, sizeof(s.fingerprint));
	memcpy(s.spec, l->feed->spec_text, sizeof(s.spec));
	if (synthetic_name(&l->synthetic))
		strcpy(s.source, synthetic_name(&l->synthetic));
	return state_format(&s, buffer, size);
}

int beton_loader_seek(struct beton_loader *l, uint64_t epoch)
{
	if (epoch > SPEC_EPOCH_MAX) {
		snprintf(l->error, sizeof(l->error), "epoch %llu is too large",
			 (unsigned long long)epoch);
		return -EINVAL;
	}
	ring_seek(l->ring, epoch, 0);
	return 0;
}

int beton_loader_load(struct beton_loader *l, const char *text)
{
	struct state s;
	char why[SPEC_WHY_SIZE];
	int r = state_parse(text, &s, why);

	if (r) {
		snprintf(l->error, sizeof(l->error), "%s", why);
		return r;
	}
	if (*s.source && !synthetic_name(&l->synthetic)) {
		snprintf(l->error, sizeof(l->error),
			 "the checkpoint was saved with synthetic data (source "
			 "%s): resume from a checkpoint of real data",
			 s.source);
		return -ESTALE;
	}
	if (strcmp(s.fingerprint, l->feed->fingerprint)) {
		snprintf(l->error, sizeof(l->error),
			 "the state is of another dataset than %s",
			 l->feed->path);
		return -ESTALE;
	}
	if (strcmp(s.spec, l->feed->spec_text)) {
		snprintf(l->error, sizeof(l->error),
			 "the state is of spec %s, the loader's is %s", s.spec,
			 l->feed->spec_text);
		return -ESTALE;
	}
	ring_seek(l->ring, s.epoch, s.batches);
	return 0;
}

static bool has_engine(const struct pipeline *p, const char *engine)
{
	for (size_t i = 0; i < pipeline_num_outputs(p); i++) {
		if (!strcmp(pipeline_engine(p, i), engine))
			return true;
	}
	return false;
}

/* Returns the slowest engine of all outputs: "generic" until the compiler is
   done. */
static const char *slowest_engine(const struct phases *phases)
{
	static const char *const order[] = { "generic", "generated",
					     "prebuilt" };
	const struct pipeline *p;

	for (size_t k = 0; k < ARRAY_LEN(order); k++) {
		for (size_t i = 0; (p = phases_row(phases, i)); i++) {
			if (has_engine(p, order[k]))
				return order[k];
		}
	}
	return "none";
}

/* Returns the pipelines for batches that the loader begins now. */
static const struct phases *phases_now(const struct beton_loader *l)
{
	return l->whole && ring_side(l->ring) == OFFLOAD_CPU ? l->whole
							     : l->phases;
}

static const char *placement_now(const struct beton_loader *l)
{
	const struct pipeline *p = phases_row(phases_now(l), 0);

	if (!l->device)
		return "none";
	if (l->whole)
		return offload_name(ring_side(l->ring));
	for (size_t i = 0; i < pipeline_num_outputs(p); i++) {
		if (pipeline_has_rest(p, i))
			return offload_name(OFFLOAD_GPU);
	}
	return offload_name(OFFLOAD_CPU);
}

void beton_loader_info(const struct beton_loader *l,
		       struct beton_loader_info *out)
{
	*out = (struct beton_loader_info){
		.spec = l->feed->spec_text,
		.source = synthetic_name(&l->synthetic)
				  ? synthetic_name(&l->synthetic)
				  : l->feed->ops->name,
		.delivery = l->feed->delivery,
		.why_direct = l->feed->why_direct,
		.decoder =
			"built-in for baseline sequential JPEGs, else libjpeg-turbo; crop only",
		.jit = slowest_engine(phases_now(l)),
		.placement = placement_now(l),
		.samples = l->feed->facts.samples,
		.batches = spec_batches(&l->feed->spec),
		.steps = cursor_steps(ring_cursor(l->ring), 0),
		.workers = l->workers,
		.num_outputs = (uint32_t)pipeline_num_outputs(
			phases_row(l->phases, 0)),
	};
}

int beton_loader_output(const struct beton_loader *l, uint32_t i,
			struct beton_output *out)
{
	const struct pipeline *p =
		phases_at(phases_now(l), ring_epoch(l->ring));
	const struct pipeline_output *o = pipeline_output_at(p, i);

	if (!o)
		return -ENOENT;
	*out = (struct beton_output){
		.name = o->name,
		.dtype = o->dtype,
		.jit = pipeline_engine(p, i),
		.device_type = l->device && o->device >= 0 ? BETON_DEVICE_CUDA
							   : BETON_DEVICE_CPU,
		.device_id = l->device && o->device >= 0 ? o->device : 0,
		.ragged = o->ragged,
		.ndim = o->ndim,
		.shape = o->shape,
		.is_list = o->is_list,
	};
	return 0;
}

size_t beton_loader_stats(const struct beton_loader *l,
			  struct beton_stage_stats *out, size_t max)
{
	return ring_stats(l->ring, out, max);
}

int beton_loader_throughput(const struct beton_loader *l,
			    struct beton_throughput_stats *out)
{
	struct beton_throughput_stats all;

	if (out->size < sizeof(out->size))
		return -EINVAL;
	ring_throughput(l->ring, &all);
	sized_give(out, &all, sizeof(all));
	return 0;
}

void beton_loader_image_cache(const struct beton_loader *l,
			      struct beton_image_cache_stats *out)
{
	struct value_store_stats s;

	phases_cached(l->phases, &s);
	*out = (struct beton_image_cache_stats){
		.size = s.size,
		.used = s.used,
		.samples = s.values,
		.hits = s.hits,
	};
}

int beton_loader_entry_points(const struct beton_loader *l,
			      struct beton_entry_points_stats *out)
{
	struct beton_entry_points_stats all;
	struct entry_store_stats s;

	if (out->size < sizeof(out->size))
		return -EINVAL;
	entry_store_stats(l->entries, &s);
	all = (struct beton_entry_points_stats){
		.capacity = s.size,
		.used = s.used,
		.samples = s.records,
		.hits = s.hits,
	};
	sized_give(out, &all, sizeof(all));
	return 0;
}

static void describe_network(const struct source_net_stats *s,
			     const struct disk_stats *tier,
			     struct beton_network_stats *out)
{
	*out = (struct beton_network_stats){
		.rate = s->rate,
		.latency_ns = s->latency_ns,
		.p50_ns = s->latency_p50_ns,
		.p99_ns = s->latency_p99_ns,
		.in_flight = s->in_flight,
		.waiting = s->waiting,
		.depth = s->depth,
		.requests = s->requests,
		.connections = s->connections,
		.retries = s->retries,
		.stalls = s->stalls,
		.hedges = s->hedges,
		.throttled = s->throttled,
		.wire_bytes = s->wire_bytes,
		.payload_bytes = s->payload_bytes,
		.failures = s->failures,
		.is_out = s->is_out,
		.tier_size = tier->size,
		.tier_stored = tier->present,
		.tier_limit = tier->allowed,
	};
}

int beton_loader_network(const struct beton_loader *l,
			 struct beton_network_stats *out)
{
	const struct feed *feed = l->feed;
	struct beton_network_stats all;
	struct source_net_stats net;
	struct disk_stats tier = { 0 };

	if (out->size < sizeof(out->size))
		return -EINVAL;
	if (!feed->ops->network || !feed->ops->network(feed, &net, &tier))
		return -ENODATA;
	describe_network(&net, &tier, &all);
	sized_give(out, &all, sizeof(all));
	return 0;
}

/* Runs one end of a link, if the loader has the role for it. */
static int run_link(struct beton_loader *l, enum beton_role role, int fd,
		    char *why, size_t size)
{
	char own[WIRE_MESSAGE_SIZE] = "the loader was opened for another role";
	int r = -EINVAL;

	if (l->role == role)
		r = (role == BETON_ROLE_MAKER ? link_serve : link_run)(
			l->ring, fd, &l->hello, own);
	if (why && size)
		snprintf(why, size, "%s", r ? own : "");
	return r;
}

int beton_loader_serve(struct beton_loader *l, int fd, char *why, size_t size)
{
	return run_link(l, BETON_ROLE_MAKER, fd, why, size);
}

int beton_loader_attach(struct beton_loader *l, int fd, char *why, size_t size)
{
	return run_link(l, BETON_ROLE_TRAINER, fd, why, size);
}

int beton_loader_makers(const struct beton_loader *l,
			struct beton_makers_stats *out)
{
	struct beton_makers_stats all;

	if (out->size < sizeof(out->size) || l->role != BETON_ROLE_TRAINER)
		return -EINVAL;
	ring_makers(l->ring, &all);
	sized_give(out, &all, sizeof(all));
	return 0;
}

uint64_t beton_loader_failed_samples(const struct beton_loader *l)
{
	return ring_failed_samples(l->ring);
}
