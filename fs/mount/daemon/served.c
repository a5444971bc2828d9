/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/served.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/files/paths.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/joined.h"
#include "fs/data/dataset/verify.h"
#include "fs/mount/daemon/option_text.h"
#include "fs/source/net/net.h"

static int open_dataset(struct served *s, struct served_dataset *dataset)
{
	int r = joined_open(dataset->path, &s->opts->storage, s->log,
			    &dataset->ds);

	if (!r && s->opts->verify)
		r = verify_dataset(dataset->ds, &s->opts->storage);
	switch (-r) {
	case 0:
		return EXIT_OK;
	case EINVAL: /* files that are not one dataset */
		return EXIT_USAGE;
	case EIO:
	case ENOMEM:
		return EXIT_SYSTEM;
	case BETON_ENOTBETON:
		return EXIT_NOT_DATASET;
	case BETON_ECORRUPT:
		return EXIT_DAMAGED;
	default:
		return EXIT_MOUNT;
	}
}

/* Unless options set others, all files have the owner and the modes of the
   dataset's file. */
static struct ns_owner owner_of(const struct served *s, const struct stat *st)
{
	const struct options *o = s->opts;
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

int exit_failed(struct log *log, const char *what, int r)
{
	log_error(log, "%s: %s", what, strerror(-r));
	return EXIT_SYSTEM;
}

static size_t num_served(const struct served *s)
{
	return s->opts->num_datasets;
}

/* Several datasets have a root above them, which has number 0. */
static uint32_t num_tops(const struct served *s)
{
	return (uint32_t)(num_served(s) + (num_served(s) > 1));
}

/* All users can read it. */
static void print_dataset(FILE *out, const struct served_dataset *dataset)
{
	cleanup_free char *path = paths_public(dataset->path);

	opts_print(out, "dataset", path ? path : "");
}

/* The option itself is "on" or "off": note_rings(). */
static void print_rings(FILE *out, const struct rings_count *rings)
{
	const char *why = atomic_load(&rings->why_not);

	if (why)
		opts_print(out, "io_uring_why", why);
}

/* The text of .betonfs/options of one dataset or, if `only` is NULL, of the
   root above several. The caller frees it. */
static char *text_of_options(const struct served *s,
			     const struct served_dataset *only)
{
	cleanup_free char *set = opts_text(s->opts);
	char *text = NULL;
	size_t size;
	FILE *out = set ? open_memstream(&text, &size) : NULL;

	if (!out)
		return NULL;
	fprintf(out, "pid=%d\n", (int)getpid());
	for (size_t i = 0; i < num_served(s); i++) {
		if (!only || only == &s->datasets[i])
			print_dataset(out, &s->datasets[i]);
	}
	opts_print(out, "mountpoint", s->mountpoint);
	opts_print(out, "directory", only ? only->name : "");
	fprintf(out, "zero_copy=%s%s\n", s->zerocopy ? "@" : "",
		s->zerocopy ? zerocopy_name(s->zerocopy) : "");
	fprintf(out, "sandbox=%s\n", sandbox_name(s->sandbox));
	print_rings(out, s->rings);
	/* The size of all datasets is part of the reason. */
	if (!only || num_served(s) == 1)
		opts_print(out, "why", engine_tiers_why(s->engine));
	fputs(set, out);
	fclose(out);
	return text;
}

/*
 * Restricts the modes to users who may read every dataset. Files have one owner
 * and one group. Therefore the result may exclude users who could read all, but
 * never admits a user who could not: a user of the last class of these files
 * may be of any class of a dataset's file.
 */
static struct ns_owner owner_of_all(const struct served *s)
{
	struct ns_owner all = owner_of(s, &s->datasets[0].ds->source->stat);
	mode_t user = 0444, group = 0444, other = 0444;
	bool is_one_user = true, is_one_group = true;

	for (size_t i = 0; i < num_served(s); i++) {
		struct ns_owner o =
			owner_of(s, &s->datasets[i].ds->source->stat);

		is_one_user &= o.uid == all.uid;
		is_one_group &= o.gid == all.gid;
		user &= o.file_mode;
		group &= o.file_mode & o.file_mode >> 3;
		other &= o.file_mode & o.file_mode >> 3 & o.file_mode >> 6;
	}
	if (!is_one_user)
		all.uid = geteuid();
	if (!is_one_group)
		all.gid = getegid();
	all.file_mode = (is_one_user ? user & 0400 : 0400) |
			(is_one_group ? group & 0040 : (other & 04) << 3) |
			(other & 0004);
	all.dir_mode = all.file_mode | all.file_mode >> 2;
	return all;
}

/* The directory of one dataset or, if `only` is NULL, the root above several,
   which lists to each user those that the user may read. */
static struct ns_top top_of(const struct served *s,
			    const struct served_dataset *only)
{
	const struct stat root = {
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_mode = 0444,
	};

	return (struct ns_top){
		.dataset = only ? only->ds : NULL,
		.name = only ? only->name : "",
		.owner = owner_of(s, only ? &only->ds->source->stat : &root),
		.of_all = owner_of_all(s),
		.options = text_of_options(s, only),
	};
}

/* A failure does not end the mount: loaders then read batches as files. */
static void open_zerocopy(struct served *s)
{
	const struct zerocopy_options options = {
		.log = s->log,
		.allow = s->opts->allow_other ? ZEROCOPY_ALLOW_OTHER
					      : ZEROCOPY_ALLOW_ROOT,
		.max_bytes = engine_shareable(s->engine),
		.budget = engine_budget(s->engine),
		.jobs = s->jobs,
	};
	int r = zerocopy_open(&options, &s->zerocopy);

	if (r)
		log_info(s->log, "zero-copy delivery: %s", strerror(-r));
}

static int open_namespace(struct served *s)
{
	cleanup_free char *spec = opts_spec(s->opts);
	struct ns_top tops[NS_DATASETS_MAX + 1];
	const struct ns_options options = {
		.tops = tops,
		.num_tops = num_tops(s),
		.engine = s->engine,
		.log = s->log,
		.subsets = s->opts->subsets,
		.num_subsets = s->opts->num_subsets,
		.names_classes = s->opts->names,
		.default_spec = spec,
		.jobs = s->jobs,
		.rings = s->rings,
		.mountpoint = s->mountpoint,
	};
	uint32_t i = 0;
	int r = spec ? 0 : -ENOMEM;

	if (num_served(s) > 1)
		tops[i++] = top_of(s, NULL);
	for (size_t k = 0; k < num_served(s); k++)
		tops[i++] = top_of(s, &s->datasets[k]);
	for (i = 0; i < options.num_tops; i++) {
		if (!tops[i].options)
			r = -ENOMEM;
	}
	if (!r)
		r = ns_open(&options, &s->ns);
	for (i = 0; i < options.num_tops; i++)
		free((char *)tops[i].options);
	if (r == -EINVAL)
		return EXIT_USAGE;
	return r ? exit_failed(s->log, "namespace", r) : EXIT_OK;
}

/* Sets the options of the cache to what the engine chose, so that
   .betonfs/options shows them. */
static int note_tiers(struct served *s)
{
	const struct cache_choice *choice = engine_choice(s->engine);
	char *name = strdup(cache_mode_name(choice->mode));

	if (!name)
		return -ENOMEM;
	free(s->opts->cache);
	s->opts->cache = name;
	s->opts->cache_size = s->opts->cold_size = OPTS_UNSET;
	if (choice->mode == CACHE_PROCESS) {
		s->opts->cache_size = choice->cache_size;
		s->opts->cold_size = choice->cold_size;
	}
	return 0;
}

/* Sets the option to what was chosen, as note_tiers() does. */
static int note_rings(struct served *s)
{
	char *word = strdup(atomic_load(&s->rings->queues) ? "on" : "off");

	if (!word)
		return -ENOMEM;
	free(s->opts->io_uring);
	s->opts->io_uring = word;
	return 0;
}

/* Try direct reads now, because they open the file again, which the sandbox
   forbids. */
static void try_direct(const struct served *s)
{
	if (engine_choice(s->engine)->mode != CACHE_PROCESS)
		return;
	for (size_t i = 0; i < num_served(s); i++)
		source_is_direct(s->datasets[i].ds->source);
}

static int open_engine(struct served *s)
{
	struct dataset *datasets[NS_DATASETS_MAX];
	struct options *o = s->opts;
	struct engine_options options = {
		.log = s->log,
		.threads = (unsigned)o->jobs,
		.prefetch = (unsigned)o->prefetch,
		.choice = {
			.cache_size = o->cache_size == OPTS_UNSET
					      ? 0
					      : o->cache_size,
			.cold_size = o->cold_size == OPTS_UNSET
					     ? CACHE_COLD_AUTO
					     : o->cold_size,
		},
		.datasets = datasets,
		.num_datasets = num_served(s),
	};
	int r;

	/* Words of this option were checked with the command line. */
	if (o->cache)
		cache_parse_mode(o->cache, &options.choice.mode);
	for (size_t i = 0; i < num_served(s); i++)
		datasets[i] = s->datasets[i].ds;
	r = engine_open(&options, &s->engine);
	if (r == -EINVAL)
		return EXIT_USAGE;
	if (!r)
		r = note_tiers(s);
	if (!r)
		r = note_rings(s);
	if (!r)
		try_direct(s);
	return r ? exit_failed(s->log, "engine", r) : EXIT_OK;
}

/* Tables of remote datasets may take a part of the cache's memory. */
static void choose_table_memory(const struct served *s)
{
	if (s->opts->cache_size != OPTS_UNSET)
		s->opts->storage.memory =
			source_table_memory(s->opts->cache_size);
}

/* All datasets behind URLs share connections, and the memory for tables. */
static int share_net(struct served *s)
{
	struct source_options *storage = &s->opts->storage;
	size_t n = 0;
	int r;

	for (size_t i = 0; i < num_served(s); i++)
		n += strstr(s->datasets[i].path, "://") != NULL;
	if (n < 2)
		return EXIT_OK;
	storage->memory =
		(storage->memory ? storage->memory : SOURCE_MEMORY) / n;
	r = net_open(s->log, &storage->net);
	return r ? EXIT_SYSTEM : EXIT_OK;
}

/*
 * A sandbox starts no program, so a session that a program renews would end
 * there. Leaves the daemon unconfined, unless the user wants a sandbox.
 */
static int choose_programs(struct served *s)
{
	bool is_wanted =
		s->opts->sandbox && !strcmp(s->opts->sandbox, "sandbox");
	size_t i = 0;

	while (i < num_served(s) &&
	       !source_needs_program(s->datasets[i].ds->source))
		i++;
	if (i == num_served(s) || s->sandbox == SANDBOX_NONE)
		return EXIT_OK;
	if (is_wanted) {
		log_error(
			s->log,
			"-o sandbox: %s: credential_process renews the session, and a sandbox starts no program: use a role, a metadata service, or keys in a file that another program renews",
			dataset_path(s->datasets[i].ds));
		return EXIT_SYSTEM;
	}
	log_warning(
		s->log,
		"sandbox: none, because credential_process renews the session of %s, and a sandbox starts no program: for a confined daemon, use a role, a metadata service, or keys in a file that another program renews",
		dataset_path(s->datasets[i].ds));
	s->sandbox = SANDBOX_NONE;
	s->is_unconfined = true;
	return EXIT_OK;
}

int served_open(struct served *s, void (*ready)(void *arg), void *arg)
{
	int code = EXIT_OK, r;

	choose_table_memory(s);
	code = share_net(s);
	for (size_t i = 0; i < num_served(s) && !code; i++)
		code = open_dataset(s, &s->datasets[i]);
	if (!code)
		code = choose_programs(s);
	/* The sources have their own references. */
	net_unref(steal(s->opts->storage.net));
	if (!code)
		code = open_engine(s);
	if (code)
		return code;
	r = jobs_open(num_tops(s), &s->jobs);
	if (r)
		return exit_failed(s->log, "jobs", r);
	open_zerocopy(s);
	code = open_namespace(s);
	if (code)
		return code;
	r = fuse_ops_open(
		&(struct fuse_ops_options){ .ns = s->ns,
					    .jobs = s->jobs,
					    .budget = engine_budget(s->engine),
					    .log = s->log,
					    .open_status = watcher_open_status,
					    .watcher = s->watcher,
					    .with_xattr = s->opts->xattr,
					    .ready = ready,
					    .arg = arg },
		&s->ops);
	return r ? exit_failed(s->log, "operations", r) : EXIT_OK;
}

void served_pause(const struct served *s)
{
	for (size_t i = 0; i < num_served(s); i++)
		source_pause(s->datasets[i].ds->source);
}

bool served_is_remote(const struct served *s)
{
	for (size_t i = 0; i < num_served(s); i++) {
		if (dataset_is_remote(s->datasets[i].ds))
			return true;
	}
	return false;
}

int served_start(struct served *s)
{
	int r = engine_start(s->engine);

	if (r)
		return exit_failed(s->log, "engine", r);
	r = s->zerocopy ? zerocopy_serve(s->zerocopy, s->ns) : 0;
	return r ? exit_failed(s->log, "zero-copy delivery", r) : EXIT_OK;
}

void served_close(struct served *s)
{
	zerocopy_close(s->zerocopy);
	fuse_ops_close(s->ops);
	/* Stop the engine first, because read-ahead uses subsets that the
	   namespace owns. */
	engine_stop(s->engine);
	ns_close(s->ns);
	jobs_close(s->jobs);
	engine_close(s->engine);
	for (size_t i = 0; i < num_served(s); i++)
		dataset_close(s->datasets[i].ds);
}
