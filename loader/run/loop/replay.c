/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/loop/replay.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/order/order.h"
#include "fs/base/util/bytes.h"

struct cached_step {
	struct cached_step *prev, *next;
	const struct pipeline *phase; /* phase of the step */
	struct step *step;
	uint64_t size;
};

struct replay {
	const struct spec *spec;
	const struct phases *phases;
	uint64_t batches; /* steps to cache for each phase */
	uint64_t bytes;	  /* bytes of cached steps; 0: `batches` is the limit */
	bool uploads;	  /* upload outputs to the GPU at each replay */
	struct cached_step *cached; /* the least recently replayed first */
};

int replay_open(const struct synthetic *synthetic, const struct spec *spec,
		const struct phases *phases, uint32_t prefetch,
		struct replay **out)
{
	struct replay *r;

	*out = NULL;
	if (synthetic->replay == SYNTHETIC_REPLAY_NONE)
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->spec = spec;
	r->phases = phases;
	r->uploads = synthetic->replay == SYNTHETIC_REPLAY_MEMORY;
	r->batches = r->uploads ? (uint64_t)prefetch + 1 : 1;
	r->bytes = synthetic->memory;
	*out = r;
	return 0;
}

void replay_close(struct replay *r)
{
	struct cached_step *k, *next;

	if (!r)
		return;
	DL_FOREACH_SAFE(r->cached, k, next)
	{
		free(k);
	}
	free(r);
}

/* --- choosing steps --- */

struct count {
	uint64_t batches, bytes;
};

static struct count count(const struct replay *r, const struct pipeline *phase)
{
	struct count t = { 0, 0 };
	const struct cached_step *k;

	DL_FOREACH(r->cached, k)
	{
		if (k->phase != phase)
			continue;
		t.batches++;
		t.bytes += k->size;
	}
	return t;
}

/* Returns the number of steps to cache. All steps count with the size of the
   first cached step. */
static uint64_t wanted(const struct replay *r, const struct count *t)
{
	if (!r->bytes)
		return r->batches;
	if (!t->batches)
		return 1;
	return max_u64(1, r->bytes / max_u64(1, t->bytes / t->batches));
}

bool replay_may_begin(const struct replay *r, uint64_t epoch, uint32_t making)
{
	struct count t = count(r, phases_at(r->phases, epoch));
	uint64_t n = wanted(r, &t);

	return t.batches >= n || t.batches + making < n;
}

const struct step *replay_next(struct replay *r, uint64_t epoch)
{
	const struct pipeline *phase = phases_at(r->phases, epoch);
	struct count t = count(r, phase);
	struct cached_step *k;

	if (t.batches < wanted(r, &t))
		return NULL;
	DL_FOREACH(r->cached, k)
	{
		if (k->phase == phase)
			break;
	}
	DL_DELETE(r->cached, k);
	DL_APPEND(r->cached, k);
	return k->step;
}

/* Returns the bytes of a step in the memory of the host and of a GPU. */
static uint64_t size_of(const struct step *s)
{
	uint64_t size = s->input.own.capacity;

	for (uint32_t i = 0; i < s->batch.num_outputs; i++) {
		size += s->outputs[i].data.capacity;
		size += s->outputs[i].lists.rows.capacity;
		if (s->tensors[i].device_type == BETON_DEVICE_CUDA)
			size += s->tensors[i].size;
	}
	return size;
}

static int by_number(const struct cached_step *a, const struct cached_step *b)
{
	const struct beton_batch *x = &a->step->batch, *y = &b->step->batch;

	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Insert the step in the order of delivery, because steps can finish in another
   order. */
bool replay_add(struct replay *r, struct step *s)
{
	const struct pipeline *phase = phases_at(r->phases, s->batch.epoch);
	struct count t = count(r, phase);
	struct cached_step *k;

	if (s->batch.num_samples < spec_batch_samples(r->spec, 0) ||
	    t.batches >= wanted(r, &t))
		return false;
	k = malloc(sizeof(*k));
	if (!k)
		return false;
	*k = (struct cached_step){ .phase = phase,
				   .step = s,
				   .size = size_of(s) };
	DL_INSERT_INORDER(r->cached, k, by_number);
	return true;
}

/* --- filling a step from a cached one --- */

/* Sets the sample ids. If the loader has no ids of a subset, repeats those of
   the cached step. */
static void fill_ids(struct step *s, const struct step *of,
		     const struct spec *spec, uint64_t number)
{
	uint64_t *ids = (uint64_t *)s->ids.bytes;
	struct order order;

	s->batch.ids = ids;
	if (spec->subset && !spec->subset->ids) {
		memcpy(ids, of->batch.ids, s->batch.num_samples * sizeof(*ids));
		return;
	}
	order = order_init(spec, s->batch.epoch);
	for (uint32_t row = 0; row < s->batch.num_samples; row++)
		ids[row] = order_sample(&order, number * spec->batch + row);
}

/* Shares the first rows of the cached step's output. */
static void share_rows(struct step *s, const struct step *of, uint32_t i)
{
	const struct beton_tensor *from = &of->tensors[i];
	struct beton_tensor *to = &s->tensors[i];
	uint64_t *shape = s->outputs[i].shape;

	*to = *from;
	to->shape = shape;
	memcpy(shape, of->outputs[i].shape, sizeof(of->outputs[i].shape));
	if (from->offsets) {
		shape[0] = (uint64_t)from->offsets[s->batch.num_samples];
		to->size = from->size / max_u64(1, from->shape[0]) * shape[0];
		return;
	}
	to->size = from->size / of->batch.num_samples * s->batch.num_samples;
	shape[0] = s->batch.num_samples;
	if (to->device_type == BETON_DEVICE_CUDA)
		to->data = (const void *)(uintptr_t)device_batch_address(
			s->parcel, i);
}

int replay_fill(const struct replay *r, struct step *s, const struct step *of,
		uint64_t epoch, uint64_t number)
{
	const struct spec *spec = r->spec;
	uint64_t n = spec_batches(spec);
	int error;

	s->batch.epoch = epoch;
	s->batch.number = number;
	s->batch.num_samples = spec_batch_samples(spec, number % n);
	s->side = of->side;
	s->pipeline = of->pipeline;
	error = buffer_reserve(&s->ids,
			       s->batch.num_samples * sizeof(uint64_t));
	if (!error)
		error = buffer_reserve(&s->valid, s->batch.num_samples);
	if (!error && s->parcel)
		error = device_batch_repeat(s->parcel, of->parcel, r->uploads);
	if (error)
		return error;
	fill_ids(s, of, spec, number % n);
	memcpy(s->valid.bytes, of->batch.valid, s->batch.num_samples);
	if (number >= n)
		memset(s->valid.bytes, 0, s->batch.num_samples);
	s->batch.valid = s->valid.bytes;
	for (uint32_t i = 0; i < s->batch.num_outputs; i++)
		share_rows(s, of, i);
	return 0;
}
