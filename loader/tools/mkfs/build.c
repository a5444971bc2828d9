/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/build.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fs/util/bytes.h"
#include "loader/tools/mkfs/mask.h"
#include "loader/tools/mkfs/pool.h"

enum {
	/* Milliseconds between polls for a signal, and between updates of the
	   progress bar. */
	POLL_MS = 100,
	PLACE_SIZE = 4352, /* of a path and a position in it */
};

void build_block_signals(sigset_t *set)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;

	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		if (sigaction(signals[i], NULL, &action) == 0 &&
		    action.sa_handler != SIG_IGN)
			sigaddset(set, signals[i]);
	}
	pthread_sigmask(SIG_BLOCK, set, NULL);
}

/* Returns where the sample comes from, in `place`. */
static const char *place_of(const struct build *b, uint64_t i,
			    char place[PLACE_SIZE])
{
	const struct input *in = b->plan->input;

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
		log_error(b->log, "%s: %s", place_of(b, i, place),
			  made->error.why);
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

static int append_sample(struct build *b, struct writer *w, uint64_t i,
			 const struct made *made)
{
	int r = writer_append(w, made->values);

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
	struct timespec now = { 0 };
	int s = sigtimedwait(&b->signals, NULL, &now);

	if (s > 0)
		b->signal = s;
	return b->signal != 0;
}

static int append_samples(struct build *b, struct mkfs_pool *pool,
			  struct writer *w)
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
				: append_sample(b, w, i, &made);
		made_fini(b->plan, &made);
		if (r)
			return r;
		i++;
	}
}

static int finish(struct build *b, struct writer **w)
{
	progress_hide(&b->progress);
	if (!b->samples && b->selection.count) {
		log_error(b->log, "%s: not written: no sample could be read",
			  b->dataset);
		return -ENODATA;
	}
	return writer_finish(w);
}

static void end_by_signal(struct build *b)
{
	signal(b->signal, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &b->signals, NULL);
	raise(b->signal);
}

/* -EAGAIN: b->page_size had to grow. */
static int run_once(struct build *b)
{
	const struct mkfs_work work = {
		.plan = b->plan,
		.selection = &b->selection,
		.recipe = &b->options->recipe,
		.check = b->options->masks ? mask_check : NULL,
		.arg = b->plan,
	};
	struct writer *w = NULL;
	struct mkfs_pool *pool = NULL;
	int r = writer_open(b->dataset, b->plan->written, b->plan->num_fields,
			    b->selection.count, b->page_size, b->log, &w);

	if (r)
		return r;
	b->samples = b->jpegs = b->raws = b->skipped = b->bytes = 0;
	r = mkfs_pool_open(&work, b->jobs, &pool);
	if (r)
		log_error(b->log, "cannot start %u threads: %s", b->jobs,
			  strerror(-r));
	r = r ? r : append_samples(b, pool, w);
	progress_hide(&b->progress);
	/* After a signal, do not wait for the samples still being made. */
	if (b->signal) {
		writer_abort(&w);
		end_by_signal(b);
	}
	mkfs_pool_close(pool);
	r = r ? r : finish(b, &w);
	writer_abort(&w);
	return r;
}

int build_run(struct build *b)
{
	int r;

	progress_init(&b->progress, b->selection.count, b->log);
	do
		r = run_once(b);
	while (r == -EAGAIN);
	return r;
}
