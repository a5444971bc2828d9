/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The feed of a mount. The daemon shares its memory (zero-copy), or the loader
 * reads the batch file with O_DIRECT, for a third of the cost of the page
 * cache. If the daemon dies, both return an error, where a mapping of the file
 * would raise SIGBUS.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/name.h"
#include "loader/run/feed/batch_view.h"
#include "loader/run/feed/description.h"
#include "loader/run/feed/feed.h"
#include "loader/run/feed/mounted.h"
#include "loader/run/feed/zerocopy_client.h"

enum {
	PATH_SIZE = 4096,
	/* batches/SPEC/EPOCH/NUMBER.batch */
	NAME_IN_MOUNT = SPEC_TEXT_MAX + 64,
	/* Between two tries to connect again. Each try that fails doubles the
	   time. */
	RETRY_MIN_MS = 500,
	RETRY_MAX_MS = 32000,
};

struct mount_feed {
	struct feed base;
	struct zerocopy_client *client; /* NULL: read files */
	int client_error;		/* of the last try to connect */
	int64_t next_try_ms;		/* not before; see RETRY_MIN_MS */
	int64_t retry_ms;
	struct mounted *mounted; /* for all files after open() */
	/* The mount has this dataset, unless the daemon has changed since. */
	bool is_checked;
	/* The dataset's directory in the mount, with a slash, or empty. */
	char directory[NAME_MAX + 2];
};

static void mount_close(struct feed *feed)
{
	struct mount_feed *m = (struct mount_feed *)feed;

	zerocopy_client_close(m->client);
	mounted_close(m->mounted);
}

static int read_description(struct mount_feed *m)
{
	char why[DESCRIPTION_WHY_SIZE];
	cleanup_free char *text = NULL;
	uint64_t size;
	int r = mounted_read_text(m->mounted, "dataset.json", &text, &size);

	if (r == -ECANCELED)
		return r;
	if (r)
		snprintf(why, sizeof(why), "%s", strerror(-r));
	else
		r = description_parse(&m->base, text, size, why);
	if (r)
		log_error(
			m->base.log,
			"%s/dataset.json: not the description of a dataset: %s",
			m->base.path, why);
	return r;
}

/* --- files --- */

/* Logs a failure, unless the caller canceled the call. */
static int note(struct mount_feed *m, const char *name, int r)
{
	if (r && r != -ECANCELED)
		log_error(m->base.log, "%s/%s: %s", m->base.path, name,
			  strerror(-r));
	return r;
}

/* --- zero-copy delivery --- */

enum {
	ADDRESS_SIZE = 128,
	NOT_WANTED = 1, /* beside errors of zero-copy delivery, and 0 */
};

/* The text of an error number. glibc before 2.32 translates it. */
static const char *describe(int error)
{
#if __GLIBC_PREREQ(2, 32)
	const char *text = strerrordesc_np(error);

	return text ? text : "unknown error";
#else
	return strerror(error);
#endif
}

static void note_delivery(struct feed *feed, int error)
{
	feed->delivery = error ? "direct" : "zero-copy";
	feed->why_direct = !error		 ? NULL
			   : error == NOT_WANTED ? "requested"
						 : describe(-error);
}

/* Reads the value of an option of the daemon, or the empty text. */
static void read_option(FILE *options, const char *key, char *out, size_t size)
{
	cleanup_free char *line = NULL;
	size_t n = strlen(key), room = 0;

	*out = '\0';
	rewind(options);
	while (getline(&line, &room, options) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, key, n) != 0 || line[n] != '=')
			continue;
		name_unquote(line + n + 1);
		if (strlen(line + n + 1) < size)
			strcpy(out, line + n + 1);
	}
}

/* Finds the daemon's socket, and the dataset's directory in its mount. */
static void read_options(struct mount_feed *m, FILE *options,
			 char address[ADDRESS_SIZE])
{
	read_option(options, "zero_copy", address, ADDRESS_SIZE);
	read_option(options, "directory", m->directory,
		    sizeof(m->directory) - 1);
	fclose(options);
	if (*m->directory)
		strcat(m->directory, "/");
}

/* Connects to the daemon that the mount has now. */
static int connect_now(struct mount_feed *m)
{
	char address[ADDRESS_SIZE];
	cleanup_free char *text = NULL;
	FILE *options;
	uint64_t size;
	int r = mounted_read_text(m->mounted, ".betonfs/options", &text, &size);

	if (r)
		return r;
	options = fmemopen(text, size + 1, "r");
	if (!options)
		return -errno;
	read_options(m, options, address);
	return zerocopy_client_reopen(m->client, address, m->base.interrupted);
}

/* The daemon may be another one, so that its dataset may be too. */
static int connect_again(struct mount_feed *m)
{
	int r = mounted_check(m->mounted);

	if (r)
		return r;
	m->is_checked = true;
	return connect_now(m);
}

/* Makes the next batch connect again, if the connection is broken. */
static void retry_now(struct mount_feed *m)
{
	m->retry_ms = RETRY_MIN_MS;
	m->next_try_ms = 0;
}

/* Connects again if the connection is broken, now and then. */
static int need_connection(struct mount_feed *m)
{
	if (!zerocopy_client_is_broken(m->client))
		return 0;
	if (clock_coarse_ms() < m->next_try_ms)
		return m->client_error;
	m->client_error = connect_again(m);
	m->next_try_ms = clock_coarse_ms() + m->retry_ms;
	m->retry_ms =
		m->retry_ms < RETRY_MAX_MS ? 2 * m->retry_ms : RETRY_MAX_MS;
	if (!m->client_error)
		log_info(m->base.log, "%s: zero-copy delivery works again",
			 m->base.path);
	return m->client_error;
}

/* Chooses the delivery. Without zero-copy, "zero-copy" is an error and "auto"
   reads files. */
static int choose_delivery(struct mount_feed *m, const struct feed_options *o)
{
	const struct zerocopy_client_name name = { o->job, o->rank,
						   o->world_size };
	bool any = !o->delivery || !strcmp(o->delivery, "auto");
	bool direct = !any && !strcmp(o->delivery, "direct");
	int r;

	note_delivery(&m->base, NOT_WANTED);
	if (direct)
		return 0;
	r = zerocopy_client_make(&name, &m->client);
	if (r)
		return r;
	r = connect_now(m);
	if (r == -ECANCELED)
		return r;
	m->client_error = r;
	m->next_try_ms = clock_coarse_ms() + m->retry_ms;
	note_delivery(&m->base, r);
	if (!r || any)
		return 0;
	log_error(m->base.log, "%s: no zero-copy delivery of batches: %s",
		  m->base.path, strerror(-r));
	return r;
}

/* --- batches --- */

static int acquire_batch(struct mount_feed *m, const char *in_mount,
			 struct feed_batch *into)
{
	char path[NAME_MAX + 2 + NAME_IN_MOUNT];
	struct acquired acquired;
	int r;

	if (!m->client)
		return NOT_WANTED;
	r = need_connection(m);
	if (r)
		return r;
	snprintf(path, sizeof(path), "%s%s", m->directory, in_mount);
	r = zerocopy_client_get(m->client, path, m->base.interrupted,
				&acquired);
	if (r)
		return r;
	retry_now(m);
	into->bytes = acquired.bytes;
	into->size = acquired.size;
	into->shared = acquired.mapped;
	return 0;
}

/* Acquires the batch. If the connection breaks, there may be a new daemon. */
static int acquire_from_any_daemon(struct mount_feed *m, const char *name,
				   struct feed_batch *into)
{
	bool was_open = m->client && !zerocopy_client_is_broken(m->client);
	int r = acquire_batch(m, name, into);

	if (!was_open || !zerocopy_client_is_broken(m->client) ||
	    r == -ECANCELED)
		return r;
	log_info(m->base.log, "%s: the daemon closed the connection: %s",
		 m->base.path, strerror(-r));
	m->is_checked = false;
	return acquire_batch(m, name, into);
}

/* Logs no error that a wait for the mount may end. */
static int read_batch_file(struct mount_feed *m, const char *name,
			   struct feed_batch *into)
{
	int r = m->is_checked ? 0 : mounted_check(m->mounted);

	if (r)
		return r;
	if (!m->is_checked)
		retry_now(m);
	m->is_checked = true;
	r = mounted_read(m->mounted, name, &into->own, &into->size);
	into->bytes = into->own.bytes;
	if (!r || r == -ECANCELED || mounted_is_gone(r))
		return r;
	return note(m, name, r);
}

/* If the daemon delivers no shared memory, reads the file instead. If that
   fails, too, reports the error of reading. */
static int fetch_from_daemon(struct mount_feed *m, const char *name,
			     struct feed_batch *into)
{
	int r = acquire_from_any_daemon(m, name, into);

	if (r == -ECANCELED)
		return r;
	note_delivery(&m->base, r);
	return r ? read_batch_file(m, name, into) : 0;
}

static int mount_fetch(struct feed *feed, uint64_t epoch, uint64_t number,
		       struct feed_batch *into)
{
	struct mount_feed *m = (struct mount_feed *)feed;
	char name[NAME_IN_MOUNT], digits[NAME_DIGITS_MAX + 1];
	int r;

	name_number(digits, number, name_digits(spec_batches(&feed->spec)));
	snprintf(name, sizeof(name), "batches/%s/%llu/%s.batch",
		 feed->spec_text, (unsigned long long)epoch, digits);
	r = fetch_from_daemon(m, name, into);
	if (!mounted_is_gone(r))
		return r;
	m->is_checked = false;
	r = mounted_wait(m->mounted);
	if (r)
		return r;
	retry_now(m);
	r = fetch_from_daemon(m, name, into);
	return mounted_is_gone(r) ? note(m, name, r) : r;
}

/* The files first: where zero-copy delivery fails, fetch() reads them. */
static void mount_cancel(struct feed *feed)
{
	struct mount_feed *m = (struct mount_feed *)feed;

	mounted_cancel(m->mounted);
	if (m->client)
		zerocopy_client_cancel(m->client);
}

static bool mount_keep(struct feed *feed, void *shared)
{
	return zerocopy_client_keep(((struct mount_feed *)feed)->client,
				    shared);
}

static void mount_release(struct feed *feed, void *shared)
{
	zerocopy_client_release(((struct mount_feed *)feed)->client, shared);
}

static void mount_report(struct feed *feed, const struct rank_figures *figures)
{
	struct mount_feed *m = (struct mount_feed *)feed;

	if (m->client)
		zerocopy_client_report(m->client, figures);
}

/* --- what the dataset is --- */

/* Gets a batch that describes the dataset. It comes in the same way as all
   others, so that the daemon counts it for the same job. */
static int read_batch(struct mount_feed *m, const char *name,
		      struct feed_batch *into)
{
	int r = fetch_from_daemon(m, name, into);

	return mounted_is_gone(r) ? note(m, name, r) : r;
}

static void free_batch(struct mount_feed *m, struct feed_batch *batch)
{
	feed_release(&m->base, batch);
	buffer_fini(&batch->own);
}

/* Sample 0, for pipelines that need a fixed shape. */
static int read_sample(struct mount_feed *m)
{
	struct feed_batch batch = { .shared = NULL };
	char name[NAME_IN_MOUNT],
		why[BATCH_VIEW_WHY_SIZE] = "it has other fields";
	struct batch_view view;
	int r;

	if (!m->base.facts.samples)
		return 0;
	snprintf(
		name, sizeof(name),
		"batches/order=sequential,batch=1,seed=0,drop_last=0/0/%0*d.batch",
		(int)name_digits(m->base.facts.samples), 0);
	r = read_batch(m, name, &batch);
	if (!r) {
		r = batch_view_init(&view, batch.bytes, batch.size, why);
		if (!r)
			r = description_add_sample(&m->base, &view);
		if (r)
			log_error(m->base.log, "%s/%s: %s", m->base.path, name,
				  why);
	}
	free_batch(m, &batch);
	return r;
}

/* --- subsets, by the names of the mount --- */

/* Writes the canonical text of a spec with this subset. The mount has a
   directory of that name, and a link to it for any other spelling. */
static int resolve_subset(struct mount_feed *m, const char *subset,
			  char out[SPEC_TEXT_MAX])
{
	char name[NAME_IN_MOUNT];
	int r;

	snprintf(out, SPEC_TEXT_MAX,
		 "order=sequential,batch=1,seed=0,drop_last=0,subset=%s",
		 subset);
	snprintf(name, sizeof(name), "batches/%s", out);
	r = mounted_read_link(m->mounted, name, out, SPEC_TEXT_MAX);
	if (!r || r == -EINVAL)
		return 0;
	if (r != -ENOENT)
		return note(m, name, r);
	log_error(
		m->base.log,
		"%s: the mount has no subset %s: mount the dataset with -o subset=%.*s:FILE, or open the dataset's file",
		m->base.path, subset, (int)strcspn(subset, "~"), subset);
	return -EINVAL;
}

/* The path of any batch of epoch 0. The header of each batch has the number of
   ids. */
static int some_batch(struct mount_feed *m, const char *spec,
		      char out[PATH_SIZE])
{
	char first[NAME_MAX + 1];
	int n, r;

	n = snprintf(out, PATH_SIZE, "batches/%s/0", spec);
	r = mounted_first_name(m->mounted, out, first);
	if (!r && snprintf(out + n, (size_t)(PATH_SIZE - n), "/%s", first) >=
			  PATH_SIZE - n)
		r = -ENAMETOOLONG;
	return note(m, out, r);
}

static int count_ids(struct mount_feed *m, const char *name, uint64_t hash,
		     uint64_t *out)
{
	struct feed_batch batch = { .shared = NULL };
	char why[BATCH_VIEW_WHY_SIZE] = "it is of another subset";
	const struct beton_batch_header *h;
	struct batch_view view;
	int r = read_batch(m, name, &batch);

	if (r) {
		free_batch(m, &batch);
		return r;
	}
	r = batch_view_init(&view, batch.bytes, batch.size, why);
	h = view.header;
	if (!r && (h->subset_hash != hash || h->subset_first ||
		   !h->subset_end || h->subset_end > SUBSET_IDS_MAX))
		r = -ESTALE;
	if (r)
		log_error(m->base.log, "%s/%s: %s", m->base.path, name, why);
	else
		*out = h->subset_end;
	free_batch(m, &batch);
	return r;
}

static int learn_subset(struct mount_feed *m, const char *spec)
{
	struct subset_ref ref;
	char name[PATH_SIZE];
	uint64_t n;
	int r;

	if (!spec_names_subset(spec, &ref) || !ref.has_hash)
		return note(m, spec, -EPROTO);
	r = some_batch(m, spec, name);
	if (!r)
		r = count_ids(m, name, ref.hash, &n);
	return r ? r : subset_add_known(&ref, n, &m->base.subsets);
}

static int mount_find_subset(struct feed *feed, const struct subset_ref *ref)
{
	struct mount_feed *m = (struct mount_feed *)feed;
	const struct subset *own = subset_find(feed->subsets, ref);
	char subset[SUBSET_TEXT_SIZE], spec[SPEC_TEXT_MAX];
	int r;

	/* If the hash is not that of the file, parsing the spec will fail. */
	if (own && ref->has_hash && ref->hash != own->hash)
		return 0;
	if (own)
		subset_text(own, subset);
	else
		subset_ref_text(ref, subset);
	r = resolve_subset(m, subset, spec);
	if (!r && !own)
		r = learn_subset(m, spec);
	mounted_rest(m->mounted);
	return r;
}

/* --- opening --- */

/* Returns whether a line of the text is the word. */
static bool has_line(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		if (strcspn(text, "\n") == n && !memcmp(text, word, n))
			return true;
	}
	return false;
}

static int check_verify(struct mount_feed *m)
{
	cleanup_free char *text = NULL;
	uint64_t size;
	int r = mounted_read_text(m->mounted, ".betonfs/options", &text, &size);

	if (r)
		return note(m, ".betonfs/options", r);
	if (has_line(text, "verify"))
		return 0;
	log_error(
		m->base.log,
		"%s: verify, but the daemon does not verify: mount the dataset with -o verify",
		m->base.path);
	return -EINVAL;
}

static int start(struct mount_feed *m, const struct feed_options *o)
{
	bool is_there = false;
	int r = mounted_is_there(m->mounted, &is_there);

	if (r)
		return note(m, "dataset.json", r);
	if (!is_there)
		return FEED_OTHER;
	r = read_description(m);
	if (!r && o->verify)
		r = check_verify(m);
	if (!r)
		r = choose_delivery(m, o);
	if (!r)
		r = read_sample(m);
	mounted_rest(m->mounted);
	return r;
}

static int mount_open(const char *path, const struct feed_options *o,
		      struct feed **out)
{
	struct mount_feed *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->base.ops = &feed_mount;
	m->base.log = o->log;
	m->base.interrupted = o->interrupted;
	m->is_checked = true;
	m->retry_ms = RETRY_MIN_MS;
	m->base.path = strdup(path);
	r = m->base.path ? mounted_open(&m->base, &m->mounted) : -ENOMEM;
	if (!r)
		r = start(m, o);
	if (r)
		feed_close(&m->base);
	else
		*out = &m->base;
	return r;
}

const struct feed_ops feed_mount = {
	.name = "mount",
	.open = mount_open,
	.fetch = mount_fetch,
	.cancel = mount_cancel,
	.find_subset = mount_find_subset,
	.keep = mount_keep,
	.release = mount_release,
	.report = mount_report,
	.close = mount_close,
};
