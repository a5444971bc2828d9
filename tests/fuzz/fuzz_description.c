/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory that looks like a mount: the first 32 bits are the size of its
 * dataset.json, which follows, and the rest is a batch file. The harness
 * repairs the header, because no mutation would, and returns this file for
 * every batch. An accepted one becomes a batch of tensors.
 */
#include "fs/base/util/bytes.h"
#include "fs/base/util/crc32c.h"
#include "loader/run/feed/description.h"
#include "loader/run/loop/step.h"
#include "loader/run/loop/step_row.h"
#include "tests/fuzz/fuzz.h"

enum { ROWS_MAX = 64, BYTES_MAX = 1 << 22 };

struct foreign {
	struct feed feed;
	const uint8_t *batch;
	uint64_t size;
};

/* Makes the compiler read the bytes, and a sanitizer look at them. */
static volatile uint8_t sink;

static int foreign_fetch(struct feed *feed, uint64_t epoch, uint64_t number,
			 struct feed_batch *into)
{
	const struct foreign *f = (const struct foreign *)feed;

	(void)epoch;
	(void)number;
	into->bytes = f->batch;
	into->size = f->size;
	return 0;
}

static void foreign_close(struct feed *feed)
{
	(void)feed;
}

static const struct feed_ops foreign_ops = {
	.name = "foreign",
	.fetch = foreign_fetch,
	.close = foreign_close,
};

/* Makes the file batch 0 of the dataset. Returns the number of its rows. */
static uint32_t put_right(const struct foreign *f, uint8_t *bytes)
{
	struct beton_batch_header *h = (void *)bytes;
	unsigned byte;

	if (f->size < sizeof(*h))
		return 0;
	for (size_t i = 0; i < BETON_FINGERPRINT_SIZE; i++) {
		MUST(sscanf(f->feed.fingerprint + 2 * i, "%2x", &byte) == 1);
		h->fingerprint[i] = (uint8_t)byte;
	}
	memcpy(h->magic, BETON_BATCH_MAGIC, sizeof(h->magic));
	h->version = BETON_BATCH_VERSION;
	h->header_size = sizeof(*h);
	h->file_size = f->size;
	h->epoch = h->batch = 0;
	h->crc = 0;
	if (h->spec_off >= sizeof(*h) &&
	    range_ok(h->spec_off, h->spec_size, f->size))
		h->crc = crc32c(0, bytes, h->spec_off + h->spec_size);
	return h->num_samples;
}

/* --- the batch --- */

static void read_tensors(const struct step *s)
{
	for (uint32_t i = 0; i < s->batch.num_outputs; i++) {
		const struct beton_tensor *t = &s->batch.outputs[i];
		const uint8_t *data = t->data;

		MUST(!t->size || data);
		for (uint64_t k = 0; k < t->size; k += 512)
			sink = data[k];
		if (t->size)
			sink = data[t->size - 1];
	}
}

static bool is_small(const struct phases *phases, uint32_t rows)
{
	const struct pipeline *p = phases_row(phases, 0);
	const struct pipeline_output *o;
	uint64_t size;

	for (size_t i = 0; (o = pipeline_output_at(p, i)); i++) {
		if (!mul_ok(o->row_size, rows, &size) || size > BYTES_MAX)
			return false;
	}
	return true;
}

static void run_rows(struct step *s, const struct step_plan *plan)
{
	struct pipeline_worker *worker;
	struct stage_cost cost = { .decode_ns = 0 };
	struct step_failure failure;

	MUST(!pipeline_worker_open(phases_row(plan->phases, 0), &worker));
	for (uint32_t row = 0; row < s->batch.num_samples; row++) {
		if (step_run_row(s, plan, worker, row, &failure, &cost))
			MUST(failure.why[0]);
	}
	pipeline_worker_close(worker);
	read_tensors(s);
}

static void make_batch(struct foreign *f, struct phases *phases)
{
	const struct step_plan plan = { .phases = phases };
	struct step *s;

	MUST(!step_open(&plan, &s));
	if (!feed_fetch(&f->feed, 0, 0, &s->input, &s->view) &&
	    is_small(phases, s->view.header->num_samples) &&
	    !step_prepare(s, &plan, 0, false))
		run_rows(s, &plan);
	step_close(s);
}

static void load(struct foreign *f, uint32_t rows)
{
	char spec[80], error[200];
	struct batch_view view;
	struct phases *phases;

	if (!rows || rows > ROWS_MAX ||
	    batch_view_init(&view, f->batch, f->size, error) ||
	    description_add_sample(&f->feed, &view))
		return;
	snprintf(spec, sizeof(spec), "order=sequential,batch=%u,drop_last=0",
		 rows);
	if (feed_start(&f->feed, spec, NULL) ||
	    phases_parse(NULL, f->feed.fields, f->feed.num_fields, &phases,
			 error, sizeof(error)))
		return;
	make_batch(f, phases);
	phases_close(phases);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct foreign f = { .feed.ops = &foreign_ops, .feed.path = NULL };
	char why[DESCRIPTION_WHY_SIZE] = "";
	uint8_t *text, *batch;
	uint64_t n;

	if (size < 4)
		return 0;
	n = min_u64(load32(data), size - 4);
	f.size = size - 4 - n;
	/* Blocks of exactly these sizes. */
	text = malloc(n ? n : 1);
	batch = malloc(f.size ? f.size : 1);
	MUST(text && batch);
	memcpy(text, data + 4, n);
	memcpy(batch, data + 4 + n, f.size);
	f.batch = batch;
	if (description_parse(&f.feed, (char *)text, n, why))
		MUST(why[0]);
	else
		load(&f, put_right(&f, batch));
	free(f.feed.fields);
	free(f.feed.names);
	free(text);
	free(batch);
	return 0;
}
