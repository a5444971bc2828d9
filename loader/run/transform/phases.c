/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/phases.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/pipeline/text/diagnostic.h"
#include "loader/run/jit/jit.h"

struct phase {
	uint64_t first; /* first epoch */
	struct pipeline *pipeline;
};

struct phases {
	struct phase phase[PHASES_MAX]; /* in the order of their epochs */
	size_t count;
	struct jit *jit; /* NULL before phases_compile() */
};

/* Appends the phase that starts at an epoch. */
static int add_phase(struct phases *p, const char *text,
		     const struct pipeline_field *fields, size_t num_fields,
		     uint64_t epoch, char *error, size_t error_size)
{
	const struct diagnostic c = { text ? text : "", error, error_size };
	struct phase *phase = &p->phase[p->count];
	int r;

	if (p->count == PHASES_MAX)
		return complain(&c, 0,
				"epoch %llu brings other numbers again; they "
				"can change %d times",
				(unsigned long long)epoch, PHASES_MAX - 1);
	phase->first = epoch;
	r = pipeline_parse(text, fields, num_fields, epoch, &phase->pipeline,
			   error, error_size);
	if (r)
		return r;
	p->count++;
	if (!pipeline_is_alike(p->phase[0].pipeline, phase->pipeline))
		return complain(&c, 0,
				"the outputs of epoch %llu are of another kind",
				(unsigned long long)epoch);
	if (!pipeline_caches_alike(p->phase[0].pipeline, phase->pipeline))
		return complain(&c, 0,
				"numbers before `cache' and its own cannot "
				"change, as in epoch %llu",
				(unsigned long long)epoch);
	return 0;
}

int phases_parse(const char *text, const struct pipeline_field *fields,
		 size_t num_fields, struct phases **out, char *error,
		 size_t error_size)
{
	struct phases *p = calloc(1, sizeof(*p));
	uint64_t epoch = 0;
	int r = p ? 0 : -ENOMEM;

	if (error && error_size)
		*error = '\0';
	while (!r && epoch != UINT64_MAX) {
		r = add_phase(p, text, fields, num_fields, epoch, error,
			      error_size);
		if (!r)
			epoch = pipeline_end(p->phase[p->count - 1].pipeline);
	}
	if (r)
		phases_close(p);
	else
		*out = p;
	return r;
}

void phases_stop(struct phases *p)
{
	if (p)
		jit_close(steal(p->jit));
}

void phases_close(struct phases *p)
{
	if (!p)
		return;
	phases_stop(p);
	/* The first phase owns the caches of the others. */
	while (p->count)
		pipeline_close(p->phase[--p->count].pipeline);
	free(p);
}

int phases_compile(struct phases *p, const struct jit_options *options,
		   char *error, size_t error_size)
{
	int r;

	if (error_size)
		*error = '\0';
	r = jit_open(options, &p->jit);
	for (size_t i = 0; !r && i < p->count; i++)
		r = pipeline_compile(p->phase[i].pipeline, p->jit, error,
				     error_size);
	return r;
}

void phases_put_on(struct phases *p, int gpu)
{
	for (size_t i = 0; i < p->count; i++)
		pipeline_put_on(p->phase[i].pipeline, gpu);
}

int phases_split(struct phases *p, bool autos)
{
	int r = 0;

	for (size_t i = 0; !r && i < p->count; i++)
		r = pipeline_split(p->phase[i].pipeline, autos);
	return r;
}

int phases_cut(struct phases *p)
{
	int r = 0;

	for (size_t i = 0; !r && i < p->count; i++)
		r = pipeline_cut(p->phase[i].pipeline);
	return r;
}

int phases_plan_finish(struct phases *p)
{
	int r = 0;

	for (size_t i = 0; !r && i < p->count; i++)
		r = pipeline_plan_finish(p->phase[i].pipeline);
	return r;
}

int phases_cache(struct phases *p, struct log *log)
{
	int r = pipeline_cache(p->phase[0].pipeline, log);

	for (size_t i = 1; !r && i < p->count; i++)
		pipeline_cache_with(p->phase[i].pipeline, p->phase[0].pipeline);
	return r;
}

void phases_cache_with(struct phases *p, const struct phases *owner)
{
	for (size_t i = 0; i < p->count; i++)
		pipeline_cache_with(p->phase[i].pipeline,
				    owner->phase[0].pipeline);
}

void phases_keep_entries(struct phases *p, struct entry_store *store)
{
	for (size_t i = 0; i < p->count; i++)
		pipeline_keep_entries(p->phase[i].pipeline, store);
}

void phases_cached(const struct phases *p, struct value_store_stats *out)
{
	pipeline_cached(p->phase[0].pipeline, out);
}

uint64_t phases_row_size(const struct phases *p)
{
	uint64_t size = 0;

	for (size_t i = 0; i < p->count; i++)
		size = max_u64(size, pipeline_row_size(p->phase[i].pipeline));
	return size;
}

const struct pipeline *phases_at(const struct phases *p, uint64_t epoch)
{
	size_t i = p->count - 1;

	while (p->phase[i].first > epoch)
		i--;
	return p->phase[i].pipeline;
}

const struct pipeline *phases_row(const struct phases *p, size_t i)
{
	return i < p->count ? p->phase[i].pipeline : NULL;
}
