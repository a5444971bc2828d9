/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beton dump: writes the tensors that one rank's trainer would get as .npy
 * files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beton/loader.h"
#include "fs/base/files/outfile.h"
#include "fs/base/files/place.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/base/util/npy.h"
#include "loader/run/loop/state.h"
#include "loader/tools/beton/command.h"
#include "loader/tools/beton/defaults.h"
#include "loader/tools/beton/delivery.h"
#include "loader/tools/ui/progress.h"

enum { PATH_SIZE = 4096, STATE_SIZE = 4096 };

struct dump_range {
	uint64_t first;
	uint64_t end;
};

struct dump_options {
	const char *spec;
	const char *subset;
	const char *pipeline;
	const char *state;
	const char *out;
	uint64_t epoch;
	struct dump_range batches;
	uint64_t rank;
	uint64_t world_size;
	uint64_t jobs;
	struct reading reading;
	unsigned on_error;
};

/* Parses FIRST:END; either may be left out. */
static int parse_batches(const char *text, void *member)
{
	struct dump_range *range = member;
	const char *colon = strchr(text, ':');
	size_t size = colon ? (size_t)(colon - text) : 0;

	*range = (struct dump_range){ 0, UINT64_MAX };
	if (!colon || (size && !name_parse_u64(text, size, &range->first)) ||
	    (colon[1] &&
	     !name_parse_u64(colon + 1, strlen(colon + 1), &range->end)))
		return -EINVAL;
	return range->first <= range->end ? 0 : -EINVAL;
}

#define AT(member) .offset = offsetof(struct dump_options, member)

static const struct option_row rows[] = {
	{ "out", .kind = OPTION_TEXT, AT(out), .argument = "DIR",
	  .help = "Write DIR/BATCH/OUTPUT.npy (required)" },
	SPEC_ROWS,
	{ "epoch", .kind = OPTION_NUMBER, AT(epoch), .max = INT64_MAX,
	  .argument = "E", .help = "Write epoch E (default: 0)" },
	{ "batches", .kind = OPTION_PARSED, AT(batches), .argument = "A:B",
	  .parse = parse_batches,
	  .help = "Write batches A to B - 1 of the epoch (default: all)" },
	{ "rank", .kind = OPTION_NUMBER, AT(rank), .max = UINT32_MAX,
	  .argument = "R", .help = "Write the batches of rank R (default: 0)" },
	{ "world-size", .kind = OPTION_NUMBER, AT(world_size), .min = 1,
	  .max = UINT32_MAX, .argument = "W",
	  .help = "Divide the batches among W ranks (default: 1)" },
	JOBS_ROW,
	{ "state", .kind = OPTION_TEXT, AT(state), .argument = "FILE",
	  .help = "Resume from the checkpoint in FILE if it exists, and "
		  "write the next one to it" },
	READING_ROWS,
	{ "on-error", .kind = OPTION_CHOICE, AT(on_error),
	  .argument = "raise|skip|zero",
	  .help = "If a sample cannot be read, stop (raise), or write zeros "
		  "that are not valid (skip) or valid (zero) (default: "
		  "raise)" },
};

static const struct dump_options defaults = {
	.batches = { 0, UINT64_MAX },
	.world_size = 1,
};

/* One run of the command. */
struct dump {
	const struct dump_options *options;
	struct log *log;
	const char *spec;     /* the user's, or a default; NULL: none */
	const char *pipeline; /* the same */
	struct command_defaults *chosen;
	struct beton_loader *loader;
	struct beton_loader_info info;
	struct progress progress;
	uint64_t written;
	int out;		/* the directory of --out, or -1 */
	char state[STATE_SIZE]; /* after the last batch in range */
};

static int fail_path(struct dump *d, const char *path, int error)
{
	log_error(d->log, "%s: %s", path, strerror(error));
	return -error;
}

/* A directory below that of --out. */
struct dump_dir {
	int fd;
	char name[NAME_DIGITS_MAX + 1];
};

struct dump_array {
	const char *dtype;
	uint32_t ndim;
	const uint64_t *shape;
	const void *data;
	uint64_t size;
};

/* Opens a pipe of this user that has the name of a file to write. -1: there is
   none, and the file is replaced. */
static int open_pipe(const struct dump_dir *in, const char *name)
{
	struct stat st;

	if (fstatat(in->fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISFIFO(st.st_mode) || st.st_uid != geteuid())
		return -1;
	return openat(in->fd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
}

static int write_to_pipe(struct dump *d, int fd, const char *path,
			 const void *bytes, uint64_t size)
{
	const char *at = bytes;
	ssize_t n;

	for (; size; at += n, size -= (uint64_t)n) {
		n = write(fd, at, size);
		if (n < 0 && errno == EINTR)
			n = 0;
		if (n < 0)
			return fail_path(d, path, errno);
	}
	return 0;
}

/* Writes DIR/NAME.npy, and replaces any file of that name. Another user may
   have made the directory, so a link in it is not followed. If the name is a
   pipe, a reader may wait for the data. */
static int write_npy(struct dump *d, const struct dump_dir *in,
		     const char *name, const struct dump_array *a)
{
	char path[PATH_SIZE], head[NPY_HEADER_MAX];
	size_t head_size = npy_header(head, a->dtype, a->ndim, a->shape);
	cleanup_fd int pipe = -1;
	struct outfile *f;
	int r;

	if (snprintf(path, sizeof(path), "%s/%s/%s.npy", d->options->out,
		     in->name, name) >= PATH_SIZE)
		return fail_path(d, d->options->out, ENAMETOOLONG);
	pipe = open_pipe(in, strrchr(path, '/') + 1);
	if (pipe >= 0) {
		r = write_to_pipe(d, pipe, path, head, head_size);
		return r ? r : write_to_pipe(d, pipe, path, a->data, a->size);
	}
	r = outfile_open_in(in->fd, strrchr(path, '/') + 1, path, d->log, &f);
	if (r)
		return r;
	r = outfile_write(f, head, head_size, 0);
	r = r ? r : outfile_write(f, a->data, a->size, head_size);
	if (!r)
		r = outfile_publish(&f);
	outfile_abort(&f);
	return r;
}

/* Writes a tensor, which may be in the memory of a GPU. */
static int write_data(struct dump *d, const struct dump_dir *in,
		      const struct beton_batch *b, uint32_t i)
{
	const struct beton_tensor *t = &b->outputs[i];
	struct dump_array a = { t->dtype, t->ndim, t->shape, t->data, t->size };
	cleanup_free void *copy = NULL;
	int r = 0;

	if (t->device_type != BETON_DEVICE_CPU) {
		a.data = copy = malloc(t->size + 1);
		if (!copy)
			return fail_path(d, t->name, ENOMEM);
		r = beton_loader_read(d->loader, b, i, copy);
	}
	return r ? fail_path(d, t->name, -r) : write_npy(d, in, t->name, &a);
}

/* Writes one tensor of a batch to DIR/NAME.npy. */
static int write_tensor(struct dump *d, const struct dump_dir *in,
			const struct beton_batch *b, uint32_t i)
{
	const struct beton_tensor *t = &b->outputs[i];
	const uint64_t n = (uint64_t)b->num_samples + 1;
	const struct dump_array offsets = { "<i8", 1, &n, t->offsets, 8 * n };
	cleanup_free char *name = NULL;
	int r = write_data(d, in, b, i);

	if (r || !t->offsets)
		return r;
	if (text_print(&name, "%s.offsets", t->name))
		return fail_path(d, t->name, ENOMEM);
	return write_npy(d, in, name, &offsets);
}

static int write_rows(struct dump *d, const struct dump_dir *in,
		      const struct beton_batch *b)
{
	const uint64_t n = b->num_samples;
	const struct dump_array ids = { "<i8", 1, &n, b->ids, 8 * n };
	const struct dump_array valid = { "|b1", 1, &n, b->valid, n };
	int r = write_npy(d, in, "ids", &ids);

	if (r || memchr(b->valid, 0, n))
		return r ? r : write_npy(d, in, "valid", &valid);
	return unlinkat(in->fd, "valid.npy", 0) && errno != ENOENT
		       ? fail_path(d, "valid.npy", errno)
		       : 0;
}

static int open_dir(struct dump *d, struct dump_dir *in)
{
	if (mkdirat(d->out, in->name, 0777) && errno != EEXIST)
		return fail_path(d, d->options->out, errno);
	in->fd = openat(d->out, in->name,
			O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (in->fd >= 0)
		return 0;
	log_error(d->log, "%s/%s: %s", d->options->out, in->name,
		  strerror(errno));
	return -errno;
}

static int write_batch(struct dump *d, const struct beton_batch *b)
{
	struct dump_dir in;
	int r;

	name_number(in.name, b->number, name_digits(d->info.batches));
	r = open_dir(d, &in);
	if (r)
		return r;
	r = write_rows(d, &in, b);
	for (uint32_t i = 0; i < b->num_outputs && !r; i++)
		r = write_tensor(d, &in, b, i);
	close(in.fd);
	return r;
}

/* Stores the state after the batches of the range, independent of prefetched
   batches. */
static int note_state(struct dump *d)
{
	return beton_loader_state(d->loader, d->state, sizeof(d->state));
}

/* Chooses a pipeline for images of different sizes, if the user gives none. */
static bool use_one_size(struct dump *d)
{
	if (d->pipeline || d->options->state ||
	    !defaults_pipeline(d->loader, d->chosen))
		return false;
	d->pipeline = d->chosen->pipeline;
	return true;
}

static int dump_next(struct dump *d, bool *done)
{
	const struct beton_batch *b;
	bool is_last;
	int r = beton_loader_next(d->loader, &b);

	if (r == -ENODATA) {
		*done = true;
		return 0;
	}
	/* A pipeline can be chosen only before the first batch is written. */
	if (r && !d->written && use_one_size(d))
		return -EAGAIN;
	if (r) {
		log_error(d->log, "%s", beton_loader_error(d->loader));
		return r;
	}
	*done = b->number >= d->options->batches.end;
	is_last = b->number + d->options->world_size >= d->options->batches.end;
	if (!*done && b->number >= d->options->batches.first) {
		r = write_batch(d, b);
		progress_show(&d->progress, ++d->written);
	}
	if (!*done && !r)
		r = note_state(d);
	beton_loader_release(d->loader, b);
	*done = *done || is_last;
	return r;
}

/*
 * Skips the batches before the range without decoding them: goes to the last
 * position of this rank's steps that is not past the range's begin.
 */
static int skip_batches(struct dump *d)
{
	const struct dump_options *o = d->options;
	struct state s;
	char why[SPEC_WHY_SIZE], text[STATE_SIZE];
	uint64_t first = o->batches.first, steps;
	int r = state_parse(d->state, &s, why);

	if (r || first <= s.batches + o->rank || first >= d->info.batches)
		return r;
	steps = (first - s.batches - o->rank) / o->world_size;
	s.batches += steps * o->world_size;
	r = state_format(&s, text, sizeof(text));
	return r ? r : beton_loader_load(d->loader, text);
}

static int read_state(struct dump *d, struct state *s, bool *exists)
{
	const char *path = d->options->state;
	char why[SPEC_WHY_SIZE];
	FILE *f = path ? fopen(path, "re") : NULL;
	size_t n;
	int r;

	*exists = f != NULL;
	if (!f)
		return path && errno != ENOENT ? fail_path(d, path, errno) : 0;
	n = fread(d->state, 1, sizeof(d->state) - 1, f);
	d->state[n] = '\0';
	fclose(f);
	r = state_parse(d->state, s, why);
	if (r)
		log_error(d->log, "%s: %s", path, why);
	return r;
}

static int write_state(struct dump *d)
{
	char text[STATE_SIZE + 1];
	int n = snprintf(text, sizeof(text), "%s\n", d->state);

	return d->options->state ? outfile_save(d->options->state, text,
						(size_t)n, d->log)
				 : 0;
}

/* An output may not have the name of one of dump's own files. */
static int check_names(struct dump *d)
{
	struct beton_output o;

	for (uint32_t i = 0; i < d->info.num_outputs; i++) {
		beton_loader_output(d->loader, i, &o);
		if (strcmp(o.name, "ids") && strcmp(o.name, "valid"))
			continue;
		log_error(
			d->log,
			"output '%s' has the name of a file that dump writes itself: rename the output with 'NAME = %s | ...', or drop it",
			o.name, o.name);
		return -EINVAL;
	}
	return 0;
}

static int open_with(struct dump *d, const char *path)
{
	const struct dump_options *o = d->options;
	char error[1024];
	struct beton_loader_options options = {
		.size = sizeof(options),
		.spec = d->spec,
		.subset = o->subset,
		.pipeline = d->pipeline,
		.workers = (uint32_t)o->jobs,
		.rank = (uint32_t)o->rank,
		.world_size = (uint32_t)o->world_size,
		.epoch = o->epoch,
		.epochs = 1,
		.on_error = o->on_error,
		.error = error,
		.error_size = sizeof(error),
	};
	int r;

	beton_loader_close(d->loader);
	d->loader = NULL;
	reading_apply(&o->reading, d->log, &options);
	r = beton_loader_open(path, &options, &d->loader);
	if (r)
		log_error(d->log, "%s", error);
	if (r)
		return r;
	beton_loader_info(d->loader, &d->info);
	if (d->log->level >= BETON_LOG_DEBUG)
		log_info(d->log, "%s, %s, %s, %u threads", d->info.spec,
			 d->info.source, d->info.delivery, d->info.workers);
	return 0;
}

/* Returns the dataset of d->state in `out`. */
static int get_dataset(const struct dump *d, struct state *out)
{
	char why[SPEC_WHY_SIZE];

	return state_parse(d->state, out, why);
}

/* Opens the loader with other options, and notes its state. A URL may have
   another object by now. */
static int open_again(struct dump *d, const char *path)
{
	struct state was, is;
	int r = note_state(d);

	r = r ? r : get_dataset(d, &was);
	r = r ? r : open_with(d, path);
	r = r ? r : note_state(d);
	r = r ? r : get_dataset(d, &is);
	if (r || !strcmp(was.fingerprint, is.fingerprint))
		return r;
	log_error(
		d->log,
		"%s: the dataset was replaced while it was opened: run the command again",
		path);
	return -ESTALE;
}

static int open_loader(struct dump *d, const char *path)
{
	struct state s;
	bool resume = false;
	int r = read_state(d, &s, &resume);

	if (r)
		return r;
	if (resume && !d->spec) {
		snprintf(d->chosen->spec, DEFAULTS_SIZE, "%s", s.spec);
		d->spec = d->chosen->spec;
	}
	r = open_with(d, path);
	/* A spec that is given, or stored in a checkpoint, is that of a
	   trainer: do not change it. */
	if (!r && !d->spec && !d->options->state && !d->info.batches &&
	    defaults_spec(&d->info, NULL, d->log, d->chosen)) {
		d->spec = d->chosen->spec;
		r = open_again(d, path);
	}
	r = r ? r : check_names(d);
	if (r)
		return r;
	r = resume ? beton_loader_load(d->loader, d->state) : 0;
	if (r)
		log_error(d->log, "%s: %s", d->options->state,
			  beton_loader_error(d->loader));
	return r ? r : note_state(d);
}

static int make_dir(struct dump *d)
{
	int r = place_make_dir(d->options->out, &d->out);

	if (r)
		log_error(d->log, "%s: %s", d->options->out, place_why(r));
	return r;
}

static void warn_of_empty_range(const struct dump *d)
{
	const struct dump_range *range = &d->options->batches;

	if (range->first && range->first >= d->info.batches)
		log_warning(
			d->log,
			"nothing to write: --batches begins at %llu, but an epoch has %llu batches",
			(unsigned long long)range->first,
			(unsigned long long)d->info.batches);
}

static int dump_batches(struct dump *d)
{
	bool done = false;
	int r = skip_batches(d);

	progress_init(&d->progress,
		      min_u64(d->info.steps, d->options->batches.end -
						     d->options->batches.first),
		      d->log);
	while (!r && !done)
		r = dump_next(d, &done);
	progress_hide(&d->progress);
	return r;
}

static int dump_all(struct dump *d, const char *path)
{
	int r = make_dir(d);

	warn_of_empty_range(d);
	r = r ? r : dump_batches(d);
	if (r == -EAGAIN) {
		r = open_again(d, path);
		r = r ? r : dump_batches(d);
		if (d->written)
			defaults_log_pipeline(d->chosen, d->log);
	}
	return r ? r : write_state(d);
}

static int check_options(const struct invocation *call)
{
	const struct dump_options *o = call->options;

	if (!o->out)
		return option_refuse(call->set, call->log,
				     "dump: missing option: --out=DIR");
	if (o->rank >= o->world_size)
		return option_refuse(
			call->set, call->log,
			"--rank=%llu: expected less than --world-size=%llu",
			(unsigned long long)o->rank,
			(unsigned long long)o->world_size);
	return 0;
}

/* With --on-error=skip or zero. */
static void warn_of_failed(const struct dump *d)
{
	const unsigned long long n = beton_loader_failed_samples(d->loader);

	if (n)
		log_warning(d->log,
			    "%llu sample%s could not be read and %s zeros%s", n,
			    n == 1 ? "" : "s", n == 1 ? "is" : "are",
			    d->options->on_error == BETON_ON_ERROR_SKIP
				    ? ", which valid.npy marks as false"
				    : "");
}

static int dump(const struct invocation *call)
{
	const struct dump_options *o = call->options;
	struct command_defaults chosen;
	struct dump d = {
		.options = o,
		.log = call->log,
		.spec = o->spec,
		.pipeline = o->pipeline,
		.chosen = &chosen,
		.out = -1,
	};
	int r;

	if (check_options(call))
		return BETON_EXIT_USAGE;
	r = open_loader(&d, call->operands[0]);
	if (!r)
		r = dump_all(&d, call->operands[0]);
	if (!r)
		warn_of_failed(&d);
	beton_loader_close(d.loader);
	if (d.out >= 0)
		close(d.out);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct command command_dump = {
	.name = "dump",
	.operands = "FILE|MOUNT",
	.min_operands = 1,
	.max_operands = 1,
	.summary = "Write the tensors that a trainer would get as .npy files",
	.examples =
		"  beton dump train.beton --out /tmp/x --batches 0:2 \\\n"
		"      --pipeline 'random_resized_crop(224) | flip'\n"
		"  beton dump mnt --rank 1 --world-size 4 --state job.state --out /tmp/y\n",
	.rows = rows,
	.num_rows = ARRAY_LEN(rows),
	.options_size = sizeof(struct dump_options),
	.defaults = &defaults,
	.run = dump,
};
