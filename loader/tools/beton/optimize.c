/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beton optimize: a dataset again, its JPEGs without loss as they decode
 * fastest. Chunks are read, worked on by some threads, and written in order:
 * once to count the symbols of some JPEGs, from which come the Huffman tables
 * that all share, and once to recode.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/dataset/dataset.h"
#include "fs/dataset/writer.h"
#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "fs/util/thread.h"
#include "loader/codec/recode.h"
#include "loader/tools/beton/command.h"
#include "loader/tools/beton/jpegs.h"
#include "loader/tools/ui/progress.h"

enum {
	/* What is in memory at a time; the last sample may exceed it. */
	CHUNK = 256, /* samples */
	CHUNK_SIZE = 64 << 20,
	/* Of so many samples symbols are counted; more change nothing. */
	COUNTED_MAX = 4096,
	COMPARED = 256, /* samples at least, or all */
	WORKERS_MAX = 256,
	PAGE_SIZE_MIN = 2 << 20, /* the writer's */
};

struct optimize_options {
	uint64_t step;
	uint64_t workers;
	bool no_index;
	bool quality_report;
};

#define AT(member) .offset = offsetof(struct optimize_options, member)

static const struct option_row rows[] = {
	{ "step", .kind = OPTION_NUMBER, AT(step), .min = 1, .max = UINT16_MAX,
	  .argument = "N",
	  .help = "an entry of the index for every N MCUs of a row (default:\n"
		  "one for each row)" },
	{ "no-index", .kind = OPTION_FLAG, AT(no_index),
	  .help = "only make the JPEGs smaller" },
	{ "quality-report", .kind = OPTION_FLAG, AT(quality_report),
	  .help = "tell what JPEGs there are, and compare pixels of some" },
	{ "workers", .kind = OPTION_NUMBER, AT(workers), .min = 1,
	  .max = WORKERS_MAX, .argument = "N",
	  .help = "threads (default: one per usable CPU)" },
};

/* A JPEG on its way; `made.bytes` is NULL where it stays as it was. */
struct picture {
	const uint8_t *bytes;
	size_t size;
	struct recoded made;
};

/* What is in memory at a time. */
struct chunk {
	uint64_t first; /* of those that are taken */
	uint64_t samples;
	uint64_t size;		     /* of the values */
	struct writer_value *values; /* of each sample's fields */
	uint8_t **bytes;	     /* theirs, as they were; owned */
	struct picture *pictures;    /* one per value; size 0: none */
	atomic_size_t next;	     /* picture that nobody has taken */
};

struct worker {
	pthread_t thread;
	struct codec_recoder *recoder;
	struct symbols symbols; /* that it counted */
	struct jpegs *jpegs;	/* NULL: there is no report */
	int error;		/* of its report */
	struct optimize *run;
};

/* What is done with a JPEG. */
typedef void task_fn(struct worker *w, struct picture *p);

struct optimize {
	const struct optimize_options *options;
	struct log *log;
	const char *path; /* the new file's */
	struct dataset *dataset;
	struct writer *writer;
	struct progress progress;
	struct chunk chunk;
	struct worker *workers;
	size_t num_workers;
	task_fn *task;
	uint64_t taken; /* samples, evenly spread over all */
	uint64_t done;	/* samples of both passes */
	struct symbols_codes codes;
	struct jpegs_figures figures;
	/* For the last line: */
	uint64_t jpegs;
	uint64_t own_codes;
	uint64_t kept;
	uint64_t indexed;
	uint64_t size_before;
	uint64_t size_after;
};

/* --- recoding ------------------------------------------------------------ */

static int step_of(const struct optimize_options *o)
{
	return o->no_index ? RECODE_NO_INDEX : (int)o->step;
}

static size_t num_values(const struct optimize *run)
{
	return run->chunk.samples * run->dataset->format.num_fields;
}

/* What cannot be read does not count. */
static void count_symbols(struct worker *w, struct picture *p)
{
	codec_count(w->recoder, p->bytes, p->size, &w->symbols);
}

/* What cannot be recoded, or would not gain, stays. */
static void recode(struct worker *w, struct picture *p)
{
	struct recoded made;

	if (codec_recode(w->recoder, p->bytes, p->size,
			 step_of(w->run->options), &w->run->codes, &made))
		return;
	if (!made.index_size && made.size >= p->size)
		free(made.bytes);
	else
		p->made = made;
}

/* Whether the pixels of this sample are compared. */
static bool is_compared(const struct optimize *run, const struct picture *p)
{
	size_t i = (size_t)(p - run->chunk.pictures);
	uint64_t row = i / run->dataset->format.num_fields;

	return (run->chunk.first + row) % max_u64(run->taken / COMPARED, 1) ==
	       0;
}

static void recode_and_report(struct worker *w, struct picture *p)
{
	const struct recoded *made = &p->made;

	recode(w, p);
	jpegs_look(w->jpegs, made->bytes ? made->bytes : p->bytes,
		   made->bytes ? made->size : p->size, p->size);
	if (made->bytes && is_compared(w->run, p) && !w->error)
		w->error = jpegs_compare(w->jpegs, p->bytes, p->size,
					 made->bytes, made->size);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct chunk *c = &w->run->chunk;
	size_t n = num_values(w->run);
	size_t i;

	while ((i = atomic_fetch_add(&c->next, 1)) < n)
		if (c->pictures[i].size)
			w->run->task(w, &c->pictures[i]);
	return NULL;
}

/* The first worker is this thread. */
static void work_on_chunk(struct optimize *run)
{
	size_t n = 1;

	atomic_store(&run->chunk.next, 0);
	while (n < run->num_workers &&
	       !pthread_create(&run->workers[n].thread, NULL, work,
			       &run->workers[n]))
		n++;
	work(&run->workers[0]);
	while (n-- > 1)
		pthread_join(run->workers[n].thread, NULL);
}

/* --- reading and writing ------------------------------------------------- */

static int read_value(struct optimize *run, uint64_t sample, uint32_t field,
		      const uint8_t *record, size_t i)
{
	struct chunk *c = &run->chunk;
	struct value v;
	int r = dataset_value(run->dataset, field, sample, record, &v);

	if (r)
		return r;
	c->bytes[i] = malloc(v.size + 1);
	if (!c->bytes[i]) {
		log_error(run->log, "%s: out of memory", run->path);
		return -ENOMEM;
	}
	if (v.size)
		r = source_read(run->dataset->source, c->bytes[i], v.size,
				v.off);
	if (r)
		return r;
	c->values[i] = (struct writer_value){
		.bytes = c->bytes[i],
		.size = v.size,
		.integer = (int64_t)load64(v.scalar),
		.mode = v.mode,
		.width = (uint16_t)v.width,
		.height = (uint16_t)v.height,
	};
	memcpy(&c->values[i].real, v.scalar, sizeof(v.scalar));
	return 0;
}

static bool is_jpeg(const struct optimize *run, size_t i)
{
	const struct format *f = &run->dataset->format;

	return f->fields[i % f->num_fields].type->type == BETON_TYPE_IMAGE &&
	       run->chunk.values[i].mode == BETON_MODE_JPG;
}

/* The sample that is taken as number i. */
static uint64_t sample_at(const struct optimize *run, uint64_t i)
{
	uint64_t samples = run->dataset->format.samples;

	return (uint64_t)((unsigned __int128)i * samples / run->taken);
}

static int read_sample(struct optimize *run, uint64_t row, uint8_t *record)
{
	uint32_t n = run->dataset->format.num_fields;
	struct chunk *c = &run->chunk;
	uint64_t sample = sample_at(run, c->first + row);
	int r = dataset_records(run->dataset, sample, 1, record);

	for (uint32_t field = 0; field < n && !r; field++) {
		size_t i = row * n + field;

		c->pictures[i] = (struct picture){ 0 };
		r = read_value(run, sample, field, record, i);
		if (r)
			break;
		c->size += c->values[i].size;
		if (is_jpeg(run, i))
			c->pictures[i] = (struct picture){
				.bytes = c->bytes[i],
				.size = c->values[i].size,
			};
	}
	return r;
}

/* Up to `most` samples, as many as are to be in memory. */
static int read_chunk(struct optimize *run, uint64_t most)
{
	struct chunk *c = &run->chunk;
	cleanup_free uint8_t *record =
		malloc(run->dataset->format.itemsize + 1);
	int r = 0;

	if (!record) {
		log_error(run->log, "%s: out of memory", run->path);
		return -ENOMEM;
	}
	c->size = 0;
	for (c->samples = 0; c->samples < most && c->size < CHUNK_SIZE && !r;
	     c->samples++)
		r = read_sample(run, c->samples, record);
	return r;
}

static void free_chunk(struct optimize *run)
{
	struct chunk *c = &run->chunk;

	for (size_t i = 0; i < num_values(run); i++) {
		free(c->bytes[i]);
		c->bytes[i] = NULL;
		free(c->pictures[i].made.bytes);
		c->pictures[i].made.bytes = NULL;
	}
}

/* With what was made of its JPEGs, or as it was. */
static int append(struct optimize *run, size_t first, bool made)
{
	uint32_t n = run->dataset->format.num_fields;
	struct chunk *c = &run->chunk;

	for (size_t i = first; i < first + n; i++) {
		const struct picture *p = &c->pictures[i];
		bool new = made && p->made.bytes;

		if (!p->size)
			continue;
		c->values[i].bytes = new ? p->made.bytes : p->bytes;
		c->values[i].size = new ? p->made.size : p->size;
	}
	return writer_append(run->writer, &c->values[first]);
}

static void count(struct optimize *run, size_t first)
{
	uint32_t n = run->dataset->format.num_fields;

	for (size_t i = first; i < first + n; i++) {
		const struct picture *p = &run->chunk.pictures[i];
		const struct writer_value *v = &run->chunk.values[i];

		if (!p->size)
			continue;
		run->jpegs++;
		run->size_before += p->size;
		run->size_after += v->size;
		if (v->bytes == p->bytes)
			run->kept++;
		else {
			run->indexed += p->made.index_size > 0;
			run->own_codes += p->made.own_codes;
		}
	}
}

static int write_chunk(struct optimize *run)
{
	uint32_t n = run->dataset->format.num_fields;

	for (uint64_t row = 0; row < run->chunk.samples; row++) {
		int r = append(run, row * n, true);

		/* No room in a page with the index. */
		if (r == -EFBIG)
			r = append(run, row * n, false);
		if (r == -EFBIG)
			log_error(run->log,
				  "%s: sample %llu does not fit into a page",
				  run->path,
				  (unsigned long long)(run->chunk.first + row));
		if (r)
			return r;
		count(run, row * n);
	}
	return 0;
}

/* Reads `taken` samples, has the task done, and writes them if `write`. */
static int pass(struct optimize *run, task_fn *task, uint64_t taken, bool write)
{
	int r = 0;

	run->task = task;
	run->taken = taken;
	for (uint64_t done = 0; done < taken && !r;
	     done += run->chunk.samples) {
		run->chunk.first = done;
		r = read_chunk(run, min_u64(CHUNK, taken - done));
		if (!r)
			work_on_chunk(run);
		if (!r && write)
			r = write_chunk(run);
		free_chunk(run);
		run->done += run->chunk.samples;
		progress_show(&run->progress, run->done);
	}
	return r;
}

/* What was written is not to be kept where pixels differ. */
static int add_reports(struct optimize *run)
{
	int r = 0;

	for (size_t i = 0; i < run->num_workers && !r; i++) {
		const struct worker *w = &run->workers[i];

		r = w->error;
		if (w->jpegs)
			jpegs_add(&run->figures, jpegs_figures(w->jpegs));
	}
	if (r)
		log_error(run->log, "%s: out of memory", run->path);
	if (!r && run->figures.different) {
		log_error(run->log, "%s: %llu JPEGs have other pixels",
			  run->path,
			  (unsigned long long)run->figures.different);
		r = -EIO;
	}
	return r;
}

static int copy(struct optimize *run)
{
	uint64_t samples = run->dataset->format.samples;
	uint64_t counted = min_u64(samples, COUNTED_MAX);
	bool report = run->options->quality_report;
	struct symbols sum = { 0 };
	int r;

	progress_init(&run->progress, samples + counted);
	r = pass(run, count_symbols, counted, false);
	for (size_t i = 0; i < run->num_workers; i++)
		symbols_add(&sum, &run->workers[i].symbols);
	symbols_make_codes(&sum, true, &run->codes);
	r = r ? r
	      : pass(run, report ? recode_and_report : recode, samples, true);
	progress_hide(&run->progress);
	return r ? r : add_reports(run);
}

/* --- before and after ---------------------------------------------------- */

static int open_writer(struct optimize *run)
{
	const struct format *f = &run->dataset->format;
	cleanup_free struct writer_field *fields =
		calloc(f->num_fields + 1, sizeof(*fields));

	if (!fields)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->num_fields; i++) {
		const struct field *from = &f->fields[i];

		if (from->unusable || from->type->type == BETON_TYPE_CUSTOM) {
			log_error(run->log, "%s: field '%s' cannot be copied",
				  dataset_path(run->dataset), from->name);
			return -EOPNOTSUPP;
		}
		fields[i].name = from->name;
		fields[i].type = from->type->type;
		memcpy(fields[i].dtype, from->dtype, sizeof(from->dtype));
		fields[i].ndim = from->ndim;
		memcpy(fields[i].shape, from->shape, sizeof(from->shape));
	}
	return writer_open(run->path, fields, f->num_fields, f->samples,
			   (uint32_t)max_u64(f->page_size, PAGE_SIZE_MIN),
			   run->log, &run->writer);
}

static int open_workers(struct optimize *run)
{
	size_t n = (size_t)CHUNK * run->dataset->format.num_fields;
	struct chunk *c = &run->chunk;
	int r = 0;

	run->num_workers =
		run->options->workers ? run->options->workers : thread_usable_cpus();
	run->workers = calloc(run->num_workers, sizeof(*run->workers));
	c->values = calloc(n + 1, sizeof(*c->values));
	c->bytes = calloc(n + 1, sizeof(*c->bytes));
	c->pictures = calloc(n + 1, sizeof(*c->pictures));
	if (!run->workers || !c->values || !c->bytes || !c->pictures)
		r = -ENOMEM;
	for (size_t i = 0; i < run->num_workers && !r; i++) {
		run->workers[i].run = run;
		r = codec_recoder_open(&run->workers[i].recoder);
		if (!r && run->options->quality_report)
			r = jpegs_open(&run->workers[i].jpegs);
	}
	if (r)
		log_error(run->log, "out of memory");
	return r;
}

static void close_all(struct optimize *run)
{
	for (size_t i = 0; run->workers && i < run->num_workers; i++) {
		codec_recoder_close(run->workers[i].recoder);
		jpegs_close(run->workers[i].jpegs);
	}
	free(run->workers);
	free(run->chunk.values);
	free(run->chunk.bytes);
	free(run->chunk.pictures);
	writer_abort(&run->writer);
	dataset_close(run->dataset);
}

static void print_summary(const struct optimize *run)
{
	typedef unsigned long long ull;
	double before = (double)max_u64(run->size_before, 1);
	double change = 100 * ((double)run->size_after - before) / before;

	printf("%s: %llu samples, %llu JPEGs of %llu bytes -> %llu (%+.2f %%), %llu with an index, %llu with tables of their own, %llu as they were, %.1f s\n",
	       run->path, (ull)run->dataset->format.samples, (ull)run->jpegs,
	       (ull)run->size_before, (ull)run->size_after,
	       run->jpegs ? change : 0, (ull)run->indexed, (ull)run->own_codes,
	       (ull)run->kept, progress_seconds(&run->progress));
}

static int optimize(const struct invocation *call)
{
	struct optimize run = {
		.options = call->options,
		.log = call->log,
		.path = call->operands[1],
	};
	int r = dataset_open(call->operands[0], call->log, &run.dataset);

	r = r ? r : open_workers(&run);
	r = r ? r : open_writer(&run);
	r = r ? r : copy(&run);
	r = r ? r : writer_finish(&run.writer);
	if (!r && run.options->quality_report)
		jpegs_print(&run.figures, stdout);
	if (!r)
		print_summary(&run);
	close_all(&run);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct command command_optimize = {
	.name = "optimize",
	.operands = "FILE NEWFILE",
	.min_operands = 2,
	.max_operands = 2,
	.summary =
		"Copy a dataset, its JPEGs without loss as they decode fastest",
	.examples = "  beton optimize train.beton fast.beton\n"
		    "  beton optimize --step 8 train.beton faster.beton\n",
	.rows = rows,
	.num_rows = ARRAY_LEN(rows),
	.options_size = sizeof(struct optimize_options),
	.run = optimize,
};
