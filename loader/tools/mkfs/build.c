/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/dataset.h"
#include "fs/data/dataset/sums.h"
#include "fs/data/writer/output_open.h"
#include "fs/data/writer/output_url.h"
#include "fs/source/url/url.h"
#include "loader/tools/mkfs/mask.h"
#include "loader/tools/mkfs/pool.h"
#include "loader/tools/ui/signals.h"

enum {
	/* Milliseconds between polls for a signal, and between updates of the
	   progress bar. */
	POLL_MS = 100,
	PLACE_SIZE = 4352, /* of a path and a position in it */
};

/* Returns where the sample comes from, in `place`. */
static const char *place_of(const struct build *b, uint64_t i,
			    char place[PLACE_SIZE])
{
	const struct input *in = b->mapping->input;

	in->kind->describe(in, selection_at(&b->selection, i), place,
			   PLACE_SIZE);
	return place;
}

/* Logs what is wrong with a bad sample. Returns an error if it ends the run. */
static int report_bad(struct build *b, uint64_t i, const struct made *made)
{
	char place[PLACE_SIZE];

	progress_hide(&b->progress);
	if (made->error.fatal || b->options->on_error == ON_ERROR_STOP) {
		log_error(b->log, "%s: %s%s", place_of(b, i, place),
			  made->error.why,
			  made->error.fatal
				  ? ""
				  : "; --on-error=skip omits such samples");
		return made->status;
	}
	b->skipped++;
	/* Not a warning, because the log suppresses warnings beyond a limit. */
	if (i >= b->reported)
		log_info(b->log, "%s: %s; skipped", place_of(b, i, place),
			 made->error.why);
	b->reported = max_u64(b->reported, i + 1);
	return 0;
}

/* Without --page-size, returns -EAGAIN to try again with larger pages. */
static int report_too_large(struct build *b, uint64_t i, uint64_t size)
{
	char place[PLACE_SIZE];
	uint64_t page = b->page_size;

	while (page < size)
		page *= 2;
	progress_hide(&b->progress);
	/* Starting over helps only if the pages grow. */
	if (b->options->page_size || page == b->page_size) {
		log_error(b->log,
			  "%s: takes %llu bytes, more than a page: "
			  "set --page-size=%lluM",
			  place_of(b, i, place), (unsigned long long)size,
			  (unsigned long long)page >> 20);
		return -BETON_ETOOLARGE;
	}
	log_info(b->log,
		 "%s: takes %llu bytes; starting over with pages "
		 "of %llu MiB",
		 place_of(b, i, place), (unsigned long long)size,
		 (unsigned long long)page >> 20);
	b->page_size = (uint32_t)page;
	return -EAGAIN;
}

static int append_sample(struct build *b, struct appender *a, uint64_t i,
			 const struct made *made)
{
	int r = appender_append(a, made->values);

	if (r == -BETON_ETOOLARGE)
		return report_too_large(b, i, made->size);
	if (r)
		return r;
	b->samples++;
	b->bytes += made->size;
	b->jpegs += made->jpegs;
	b->raws += made->raws;
	return 0;
}

static bool is_interrupted(struct build *b)
{
	int s = signals_poll(&b->signals);

	if (s)
		atomic_store(&b->signal, s);
	return atomic_load(&b->signal) != 0;
}

static int append_samples(struct build *b, struct mkfs_pool *pool,
			  struct appender *a)
{
	struct made made;
	uint64_t i = 0;
	int r;

	for (;;) {
		if (is_interrupted(b))
			return -EINTR;
		progress_show(&b->progress, i);
		r = mkfs_pool_next(pool, POLL_MS, &made);
		if (r == -EAGAIN)
			continue;
		if (r)
			return r == -ENODATA ? 0 : r;
		r = made.status ? report_bad(b, i, &made)
				: append_sample(b, a, i, &made);
		made_fini(b->mapping, &made);
		if (r)
			return r;
		i++;
	}
}

static int finish(struct build *b, struct appender **a)
{
	progress_hide(&b->progress);
	if (!b->samples && b->selection.count) {
		log_error(b->log, "%s: not written: no sample could be read",
			  b->dataset);
		return -ENODATA;
	}
	return appender_finish(a);
}

static int poll_signals(void *arg)
{
	return is_interrupted(arg) ? -EINTR : 0;
}

static int open_file(struct build *b, struct appender **a)
{
	const struct appender_setup setup = {
		.path = b->dataset,
		.fields = b->mapping->written,
		.num_fields = b->mapping->num_fields,
		.num_samples = b->selection.count,
		.page_size = b->page_size,
		.exists = b->options->append,
		.poll = poll_signals,
		.arg = b,
		.sums = b->sums,
		.renews_sums = b->options->sums,
		.log = b->log,
	};
	int r = appender_open(&setup, a);

	if (!r)
		b->page_size = appender_page_size(*a);
	return r;
}

/* The checksums of an object are made while it is uploaded. */
static int need_sums(struct build *b)
{
	int r;

	if (!b->options->sums || !output_is_remote(b->dataset))
		return 0;
	sums_free(steal(b->sums));
	r = sums_new(&b->sums);
	if (r)
		log_error(b->log, "out of memory");
	return r;
}

/* -EAGAIN: b->page_size had to grow. */
static int run_once(struct build *b)
{
	const struct mkfs_work work = {
		.mapping = b->mapping,
		.selection = &b->selection,
		.recipe = &b->options->recipe,
		.check = b->options->masks ? mask_check : NULL,
		.arg = b->mapping,
	};
	struct appender *a = NULL;
	struct mkfs_pool *pool = NULL;
	int r = need_sums(b);

	r = r ? r : open_file(b, &a);

	if (b->signal) {
		appender_abort(&a);
		signals_end(&b->signals, b->signal);
	}
	if (r)
		return r;
	b->samples = b->jpegs = b->raws = b->skipped = b->bytes = 0;
	r = mkfs_pool_open(&work, b->jobs, &pool);
	if (r)
		log_error(b->log, "cannot start %u threads: %s", b->jobs,
			  strerror(-r));
	r = r ? r : append_samples(b, pool, a);
	progress_hide(&b->progress);
	/* After a signal, do not wait for the samples still being made. */
	if (b->signal) {
		appender_abort(&a);
		signals_end(&b->signals, b->signal);
	}
	mkfs_pool_close(pool);
	r = r ? r : finish(b, &a);
	appender_abort(&a);
	if (r && b->signal)
		signals_end(&b->signals, b->signal);
	return r;
}

/* Ends the scan of the sums after a signal. Several threads call it. */
static int continue_sums(void *arg, uint64_t block, uint32_t crc)
{
	struct build *b = arg;

	(void)block;
	(void)crc;
	return is_interrupted(b) ? -EINTR : 0;
}

/* Uploads the checksums, which were made of the bytes as they were uploaded. */
static int upload_sums(struct build *b)
{
	cleanup_free char *side = url_sibling(b->dataset, ".sums");
	cleanup_free uint8_t *bytes = NULL;
	struct dataset *ds = NULL;
	size_t size = 0;
	int r = dataset_open(b->dataset, NULL, b->log, &ds);

	if (r)
		return r;
	memcpy(b->sums->fingerprint, ds->fingerprint, BETON_FINGERPRINT_SIZE);
	dataset_close(ds);
	if (!side || sums_pack(b->sums, &bytes, &size)) {
		log_error(b->log, "%s.sums: out of memory", b->dataset);
		return -ENOMEM;
	}
	return output_url_save(
		&(struct output_setup){
			.path = side,
			.poll = poll_signals,
			.arg = b,
			.log = b->log,
		},
		bytes, size);
}

/* Writes the checksums of the complete dataset. */
static int write_sums(struct build *b)
{
	struct sums *sums = NULL;
	int r;

	if (b->sums) {
		r = upload_sums(b);
		if (b->signal)
			signals_end(&b->signals, b->signal);
		return r;
	}
	r = sums_of_file(b->dataset, b->jobs, continue_sums, b, b->log, &sums);

	if (b->signal)
		signals_end(&b->signals, b->signal);
	r = r ? r : sums_save(sums, b->dataset, b->log);
	sums_free(sums);
	return r;
}

static int write_all(struct build *b)
{
	int r;

	progress_init(&b->progress, b->selection.count, b->log);
	do
		r = run_once(b);
	while (r == -EAGAIN);
	return r || !b->options->sums ? r : write_sums(b);
}

int build_run(struct build *b)
{
	int r = write_all(b);

	sums_free(steal(b->sums));
	return r;
}
