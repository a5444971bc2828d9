/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/served.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/mount/option_text.h"
#include "fs/util/cleanup.h"

static int open_dataset(struct daemon *d, struct served *served)
{
	int r = dataset_open(served->path, &d->log, &served->ds);

	switch (-r) {
	case 0:
		return EXIT_OK;
	case BETON_ENOTBETON:
	case EISDIR:
		return EXIT_NOT_DATASET;
	case BETON_ECORRUPT:
		return EXIT_DAMAGED;
	case EIO:
	case ENOMEM:
		return EXIT_SYSTEM;
	default:
		return EXIT_NO_DATASET;
	}
}

/* Whoever may read the dataset may read its parts. */
static struct ns_owner owner_of(const struct daemon *d, const struct stat *st)
{
	const struct opts *o = &d->opts;
	mode_t file = st->st_mode & 0555, dir = st->st_mode & 0444;

	if (o->umask != OPTS_UNSET) {
		file = 0444 & ~(mode_t)o->umask;
		dir = file;
	}
	return (struct ns_owner){
		.uid = o->uid == OPTS_UNSET ? st->st_uid : (uid_t)o->uid,
		.gid = o->gid == OPTS_UNSET ? st->st_gid : (gid_t)o->gid,
		.file_mode = file,
		.dir_mode = dir | dir >> 2,
	};
}

int failed(struct daemon *d, const char *what, int r)
{
	log_error(&d->log, "%s: %s", what, strerror(-r));
	return EXIT_SYSTEM;
}

size_t num_served(const struct daemon *d)
{
	return d->opts.num_datasets;
}

/* The text of .betonfs/options of one dataset, or of the root above several,
   where `only` is NULL: the caller's. */
static char *options_text(const struct daemon *d, const struct served *only)
{
	cleanup_free char *set = opts_text(&d->opts);
	char *text = NULL;
	size_t size;
	FILE *out = set ? open_memstream(&text, &size) : NULL;

	if (!out)
		return NULL;
	fprintf(out, "pid=%d\n", (int)getpid());
	for (size_t i = 0; i < num_served(d); i++) {
		if (!only || only == &d->served[i])
			fprintf(out, "dataset=%s\n", d->served[i].path);
	}
	fprintf(out, "mountpoint=%s\ndirectory=%s\nhandover=%s%s\nwhy=%s\n%s",
		d->mountpoint, only ? only->name : "", d->handover ? "@" : "",
		d->handover ? handover_name(d->handover) : "",
		engine_tiers_why(d->engine), set);
	fclose(out);
	return text;
}

/* Of a dataset, or of the root above several, which shows their names to
   whoever may use the mount. */
static struct ns_top top_of(const struct daemon *d, const struct served *only)
{
	const struct stat root = {
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_mode = 0444,
	};

	return (struct ns_top){
		.dataset = only ? only->ds : NULL,
		.name = only ? only->name : "",
		.owner = owner_of(d, only ? &only->ds->source->stat : &root),
		.options = options_text(d, only),
	};
}

/* Without it loaders read files: no reason not to mount. */
static void open_handover(struct daemon *d)
{
	const struct handover_options options = {
		.log = &d->log,
		.allow = d->opts.allow_other ? HANDOVER_ALLOW_OTHER
					     : HANDOVER_ALLOW_ROOT,
		.max_bytes = engine_lendable(d->engine),
		.jobs = d->jobs,
	};
	int r = handover_open(&options, &d->handover);

	if (r)
		log_info(&d->log, "hand-over: %s", strerror(-r));
}

static int open_namespace(struct daemon *d)
{
	cleanup_free char *spec = opts_spec(&d->opts);
	struct ns_top tops[NS_DATASETS_MAX + 1];
	const struct ns_options options = {
		.tops = tops,
		.num_tops = (uint32_t)(num_served(d) + (num_served(d) > 1)),
		.engine = d->engine,
		.log = &d->log,
		.subsets = d->opts.subsets,
		.num_subsets = d->opts.num_subsets,
		.default_spec = spec,
		.jobs = d->jobs,
		.mountpoint = d->mountpoint,
	};
	uint32_t i = 0;
	int r = spec ? 0 : -ENOMEM;

	if (num_served(d) > 1)
		tops[i++] = top_of(d, NULL);
	for (size_t k = 0; k < num_served(d); k++)
		tops[i++] = top_of(d, &d->served[k]);
	for (i = 0; i < options.num_tops; i++) {
		if (!tops[i].options)
			r = -ENOMEM;
	}
	if (!r)
		r = ns_open(&options, &d->ns);
	for (i = 0; i < options.num_tops; i++)
		free((char *)tops[i].options);
	if (r == -EINVAL)
		return EXIT_USAGE;
	return r ? failed(d, "namespace", r) : EXIT_OK;
}

/* What was chosen stands among the options, as if it had been asked for. */
static int note_tiers(struct daemon *d)
{
	const struct tiers *tiers = engine_tiers(d->engine);
	char *name = strdup(tiers_mode_name(tiers->mode));

	if (!name)
		return -ENOMEM;
	free(d->opts.cache);
	d->opts.cache = name;
	d->opts.cache_size = d->opts.cold_size = OPTS_UNSET;
	if (tiers->mode == TIERS_PROCESS) {
		d->opts.cache_size = tiers->cache_size;
		d->opts.cold_size = tiers->cold_size;
	}
	return 0;
}

static int open_engine(struct daemon *d)
{
	struct dataset *datasets[NS_DATASETS_MAX];
	struct opts *o = &d->opts;
	struct engine_options options = {
		.log = &d->log,
		.threads = (unsigned)o->threads,
		.ahead = (unsigned)o->ahead,
		.tiers = {
			.cache_size = o->cache_size == OPTS_UNSET
					      ? 0
					      : o->cache_size,
			.cold_size = o->cold_size == OPTS_UNSET
					     ? TIERS_COLD_AUTO
					     : o->cold_size,
		},
		.datasets = datasets,
		.num_datasets = num_served(d),
	};
	int r;

	if (o->cache && !tiers_parse_mode(o->cache, &options.tiers.mode)) {
		log_error(&d->log, "-o cache=%s: expected auto, os or process",
			  o->cache);
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < num_served(d); i++)
		datasets[i] = d->served[i].ds;
	r = engine_open(&options, &d->engine);
	if (!r)
		r = note_tiers(d);
	return r ? failed(d, "engine", r) : EXIT_OK;
}

int open_all(struct daemon *d, void (*ready)(void *arg))
{
	int code = EXIT_OK, r;

	for (size_t i = 0; i < num_served(d) && !code; i++)
		code = open_dataset(d, &d->served[i]);
	if (!code)
		code = open_engine(d);
	if (code)
		return code;
	r = jobs_open(&d->jobs);
	if (r)
		return failed(d, "jobs", r);
	open_handover(d);
	code = open_namespace(d);
	if (code)
		return code;
	r = d->handover ? handover_serve(d->handover, d->ns) : 0;
	if (r)
		return failed(d, "hand-over", r);
	r = ops_open(d->ns, d->jobs, ready, d, &d->ops);
	return r ? failed(d, "operations", r) : EXIT_OK;
}

void close_all(struct daemon *d)
{
	handover_close(d->handover);
	ops_close(d->ops);
	/* The namespace has the subsets that read-ahead looks at. */
	engine_stop(d->engine);
	ns_close(d->ns);
	jobs_close(d->jobs);
	engine_close(d->engine);
	for (size_t i = 0; i < num_served(d); i++)
		dataset_close(d->served[i].ds);
}
