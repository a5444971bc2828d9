/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: the caller's thread reads batches of samples and submits them to a
 * queue, whose threads change the values. It takes the batches back in order
 * and writes them.
 */
#include "fs/data/writer/rewrite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/workqueue.h"
#include "fs/data/dataset/value.h"

enum {
	/* A batch of samples. It saves waking a thread for each small
	   sample. */
	BATCH_SAMPLES = 64,
	BATCH_SIZE = 256 << 10, /* bytes of values; the last may exceed it */
	BATCHES_PER_THREAD = 4,
	/* Bytes of all values in the queue. */
	QUEUE_SIZE = 64 << 20,
};

static int report_value(const struct rewrite_sample *s, size_t i, int error)
{
	log_error(s->dataset->log, "%s: sample %llu field %s: %s",
		  dataset_path(s->dataset), (unsigned long long)s->number,
		  s->values[i].field->stem, strerror(-error));
	return error;
}

/* --- samples ------------------------------------------------------------- */

bool rewrite_can_copy(const struct field *field)
{
	return !field->unusable && field->type->put;
}

const char *rewrite_why_not(const struct field *field)
{
	if (field->unusable)
		return field->unusable;
	return "only its Python class can find its values in the file";
}

int rewrite_fields(const struct dataset *ds, struct writer_field **out)
{
	const struct format *f = &ds->format;
	cleanup_free struct writer_field *fields =
		calloc(f->num_fields + 1, sizeof(*fields));

	if (!fields)
		return log_no_memory(ds->log, dataset_path(ds));
	for (uint32_t i = 0; i < f->num_fields; i++) {
		const struct field *from = &f->fields[i];

		if (!rewrite_can_copy(from)) {
			log_error(ds->log,
				  "%s: field '%s' cannot be copied: %s",
				  dataset_path(ds), from->name,
				  rewrite_why_not(from));
			return -EOPNOTSUPP;
		}
		fields[i].name = from->name;
		fields[i].type = from->type->type;
		memcpy(fields[i].dtype, from->dtype, sizeof(from->dtype));
		fields[i].ndim = from->ndim;
		memcpy(fields[i].shape, from->shape, sizeof(from->shape));
		if (from->classes) {
			fields[i].classes = from->classes->names;
			fields[i].num_classes = from->classes->num;
		}
	}
	*out = steal(fields);
	return 0;
}

/* Allocates a sample and its arrays in one piece of memory. */
static struct rewrite_sample *new_sample(struct dataset *ds, uint64_t number)
{
	size_t n = ds->format.num_fields;
	struct rewrite_sample *s = calloc(
		1, sizeof(*s) + n * (sizeof(*s->values) + sizeof(*s->written)));

	if (!s)
		return NULL;
	s->dataset = ds;
	s->number = number;
	s->num_values = n;
	s->values = (struct rewrite_value *)(s + 1);
	s->written = (struct writer_value *)(s->values + n);
	for (size_t i = 0; i < n; i++)
		s->values[i].field = &ds->format.fields[i];
	return s;
}

static int read_bytes(struct rewrite_sample *s, size_t i, uint64_t off,
		      uint64_t size)
{
	struct rewrite_value *v = &s->values[i];

	v->bytes = malloc(size);
	if (!v->bytes)
		return report_value(s, i, -ENOMEM);
	v->read.bytes = v->bytes;
	return source_read(s->dataset->source, v->bytes, size, off);
}

static int read_value(struct rewrite_sample *s, size_t i, const uint8_t *record)
{
	struct rewrite_value *to = &s->values[i];
	struct value v;
	int r;

	if (!rewrite_can_copy(to->field))
		return report_value(s, i, -EOPNOTSUPP);
	r = dataset_value(s->dataset, (uint32_t)i, s->number, record, &v);
	if (r)
		return r;
	to->read = (struct writer_value){
		.size = v.size,
		.mode = v.mode,
		.width = (uint16_t)v.width,
		.height = (uint16_t)v.height,
	};
	if (to->field->type->integer)
		to->read.integer = to->field->type->integer(v.scalar);
	if (to->field->type->real)
		to->read.real = to->field->type->real(v.scalar);
	r = v.size ? read_bytes(s, i, v.off, v.size) : 0;
	s->written[i] = to->read;
	return r;
}

int rewrite_read(struct dataset *ds, uint64_t number,
		 struct rewrite_sample **out)
{
	cleanup_free uint8_t *record = malloc(ds->format.itemsize + 1);
	struct rewrite_sample *s = new_sample(ds, number);
	int r = record && s ? 0 : log_no_memory(ds->log, dataset_path(ds));

	if (!r && number >= ds->format.samples) {
		log_error(ds->log, "%s: has no sample %llu", dataset_path(ds),
			  (unsigned long long)number);
		r = -EINVAL;
	}
	r = r ? r : dataset_records(ds, number, 1, record);
	for (size_t i = 0; !r && i < s->num_values; i++)
		r = read_value(s, i, record);
	if (r)
		rewrite_free(s);
	else
		*out = s;
	return r;
}

void rewrite_free(struct rewrite_sample *s)
{
	for (size_t i = 0; s && i < s->num_values; i++) {
		free(s->values[i].bytes);
		free(s->values[i].replaced);
	}
	free(s);
}

void rewrite_replace(struct rewrite_sample *s, size_t i, void *bytes,
		     size_t size)
{
	free(s->values[i].replaced);
	s->values[i].replaced = bytes;
	s->written[i].bytes = bytes;
	s->written[i].size = size;
}

void rewrite_undo(struct rewrite_sample *s)
{
	for (size_t i = 0; i < s->num_values; i++) {
		free(steal(s->values[i].replaced));
		s->written[i] = s->values[i].read;
	}
}

int rewrite_append(struct writer *w, const struct rewrite_sample *s)
{
	return writer_append(w, s->written);
}

/* --- a run --------------------------------------------------------------- */

/* Samples that one thread changes. */
struct rewrite_batch {
	const struct rewrite *run;
	size_t num_samples;
	uint64_t size; /* bytes of the values read */
	struct rewrite_sample *samples[BATCH_SAMPLES];
};

struct rewrite_progress {
	const struct rewrite *run;
	struct workqueue *queue;
	uint64_t num_read; /* samples */
	size_t room;	   /* batches */
	size_t num_queued; /* batches in the queue */
	uint64_t size;	   /* bytes of the queued batches */
};

static void free_batch(void *arg)
{
	struct rewrite_batch *b = arg;

	for (size_t k = 0; b && k < b->num_samples; k++)
		rewrite_free(b->samples[k]);
	free(b);
}

static int change_batch(void *worker, void *arg)
{
	struct rewrite_batch *b = arg;

	for (size_t k = 0; k < b->num_samples; k++) {
		struct rewrite_sample *s = b->samples[k];

		for (size_t i = 0; i < s->num_values; i++) {
			int r = b->run->change(worker, s, i);

			if (r)
				return report_value(s, i, r);
		}
	}
	return 0;
}

static int read_sample(const struct rewrite *run, uint64_t i,
		       struct rewrite_batch *b)
{
	struct rewrite_place place = { run->dataset, i };
	struct rewrite_sample *s;
	int r;

	if (run->place)
		place = run->place(run->arg, i);
	r = rewrite_read(place.dataset, place.sample, &s);
	if (r)
		return r;
	b->samples[b->num_samples++] = s;
	for (size_t k = 0; k < s->num_values; k++)
		b->size += s->written[k].size;
	return 0;
}

/* Reads the next batch and puts it into the queue, which has room. */
static int submit_batch(struct rewrite_progress *p)
{
	struct rewrite_batch *b = calloc(1, sizeof(*b));
	int r = 0;

	if (!b)
		return log_no_memory(p->run->log, NULL);
	b->run = p->run;
	while (!r && p->num_read < p->run->count &&
	       b->num_samples < BATCH_SAMPLES && b->size < BATCH_SIZE)
		r = read_sample(p->run, p->num_read++, b);
	r = r ? r : workqueue_submit(p->queue, b, -1);
	if (r) {
		free_batch(b);
		return r;
	}
	p->num_queued++;
	p->size += b->size;
	return 0;
}

static int write_sample(const struct rewrite *run, struct rewrite_sample *s)
{
	int r = rewrite_append(run->writer, s);

	if (r == -BETON_ETOOLARGE && run->undo_too_large) {
		rewrite_undo(s);
		r = rewrite_append(run->writer, s);
	}
	if (r == -BETON_ETOOLARGE)
		log_error(s->dataset->log,
			  "%s: sample %llu does not fit into a page",
			  dataset_path(s->dataset),
			  (unsigned long long)s->number);
	return r;
}

/* Waits for the oldest batch and writes it. */
static int take_batch(struct rewrite_progress *p)
{
	const struct rewrite *run = p->run;
	struct rewrite_batch *b;
	void *job;
	int r = workqueue_take(p->queue, -1, &job);

	if (r)
		return r;
	b = job;
	p->num_queued--;
	p->size -= b->size;
	for (size_t k = 0; k < b->num_samples && !r; k++) {
		r = run->writer ? write_sample(run, b->samples[k]) : 0;
		if (!r && run->done)
			run->done(run->arg, b->samples[k]);
	}
	free_batch(b);
	return r;
}

static bool has_room(const struct rewrite_progress *p)
{
	return p->num_queued < p->room && p->size < QUEUE_SIZE;
}

int rewrite_run(const struct rewrite *run)
{
	struct rewrite_progress p = {
		.run = run,
		.room = (size_t)BATCHES_PER_THREAD * run->threads,
	};
	struct workqueue_setup setup = {
		.run = change_batch,
		.drop = free_batch,
		.workers = run->workers,
		.worker_size = run->worker_size,
		.threads = run->threads,
		.room = p.room,
	};
	int r = workqueue_open(&setup, &p.queue);

	if (r)
		log_error(run->log, "cannot start %u threads: %s", run->threads,
			  strerror(-r));
	while (!r && (p.num_read < run->count || p.num_queued))
		r = p.num_read < run->count && has_room(&p) ? submit_batch(&p)
							    : take_batch(&p);
	workqueue_close(p.queue);
	return r;
}
