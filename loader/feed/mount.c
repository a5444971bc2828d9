/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The feed of a mount. The daemon shares its memory (zero-copy), or the loader
 * reads the batch file with O_DIRECT, for a third of the cost of the page
 * cache. If the daemon dies, both return an error, where a mapping of the file
 * would raise SIGBUS.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "fs/util/name.h"
#include "loader/feed/batch_view.h"
#include "loader/feed/description.h"
#include "loader/feed/feed.h"
#include "loader/feed/file_reader.h"
#include "loader/feed/handover_client.h"

enum {
	PATH_SIZE = 4096,
	/* batches/SPEC/EPOCH/NUMBER.batch */
	NAME_IN_MOUNT = SPEC_TEXT_MAX + 64,
};

struct mount_feed {
	struct feed base;
	struct handover_client *client; /* NULL: read files */
	struct file_reader *reader;	/* for all files after open() */
	/* The dataset's directory in the mount, with a slash, or empty. */
	char directory[NAME_MAX + 2];
};

static bool mount_is_for(const char *path)
{
	char name[PATH_SIZE];
	struct stat st;

	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return false;
	snprintf(name, sizeof(name), "%s/dataset.json", path);
	return !access(name, F_OK);
}

static void mount_close(struct feed *feed)
{
	struct mount_feed *m = (struct mount_feed *)feed;

	handover_client_close(m->client);
	file_reader_close(m->reader);
}

/* Reads a regular file of a moderate size. */
static int read_text(const char *name, uint64_t max, struct buffer *into,
		     uint64_t *size)
{
	struct stat st;

	if (stat(name, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size > max)
		return -EFBIG;
	return file_reader_read_here(name, into, size);
}

static int read_description(struct feed *feed)
{
	char name[PATH_SIZE], why[DESCRIPTION_WHY_SIZE];
	struct buffer text = { NULL, 0 };
	uint64_t size;
	int r;

	snprintf(name, sizeof(name), "%s/dataset.json", feed->path);
	r = read_text(name, DESCRIPTION_MAX, &text, &size);
	if (r)
		snprintf(why, sizeof(why), "%s", strerror(-r));
	else
		r = description_parse(feed, (const char *)text.bytes, size,
				      why);
	if (r)
		log_error(feed->log, "%s: not the description of a dataset: %s",
			  name, why);
	buffer_fini(&text);
	return r;
}

/* --- files --- */

/* Logs the failure of a read. The caller knows of one that it canceled. */
static int note_read(struct feed *feed, const char *name, int r)
{
	if (r && r != -ECANCELED)
		log_error(feed->log, "%s: %s", name, strerror(-r));
	return r;
}

static int read_batch(struct feed *feed, const char *name, struct buffer *into,
		      uint64_t *size)
{
	return note_read(feed, name, file_reader_read_here(name, into, size));
}

/* Sample 0, for pipelines that need a fixed shape. */
static int read_sample(struct feed *feed)
{
	struct buffer buffer = { NULL, 0 };
	char name[PATH_SIZE], why[BATCH_VIEW_WHY_SIZE] = "it has other fields";
	struct batch_view view;
	uint64_t size;
	int r;

	if (!feed->facts.samples)
		return 0;
	snprintf(
		name, sizeof(name),
		"%s/batches/order=sequential,batch=1,seed=0,drop_last=0/0/%0*d.batch",
		feed->path, (int)name_digits(feed->facts.samples), 0);
	r = read_batch(feed, name, &buffer, &size);
	if (!r) {
		r = batch_view_init(&view, buffer.bytes, size, why);
		if (!r)
			r = description_add_sample(feed, &view);
		if (r)
			log_error(feed->log, "%s: %s", name, why);
	}
	buffer_fini(&buffer);
	return r;
}

/* --- subsets, by the names of the mount --- */

static int fail(struct feed *feed, const char *name, int error)
{
	log_error(feed->log, "%s: %s", name, strerror(error));
	return -error;
}

/* Writes the canonical text of a spec with this subset. The mount has a
   directory of that name, and a link to it for any other spelling. */
static int resolve_subset(struct feed *feed, const char *subset,
			  char out[SPEC_TEXT_MAX])
{
	char name[PATH_SIZE];
	ssize_t n;

	snprintf(out, SPEC_TEXT_MAX,
		 "order=sequential,batch=1,seed=0,drop_last=0,subset=%s",
		 subset);
	snprintf(name, sizeof(name), "%s/batches/%s", feed->path, out);
	n = readlink(name, out, SPEC_TEXT_MAX - 1);
	if (n >= 0)
		out[n] = '\0';
	if (n >= 0 || errno == EINVAL)
		return 0;
	if (errno != ENOENT)
		return fail(feed, name, errno);
	log_error(feed->log, "%s: the mount has no subset %s", feed->path,
		  subset);
	return -EINVAL;
}

/* The path of any batch of epoch 0. The header of each batch has the number of
   ids. */
static int some_batch(struct feed *feed, const char *spec, char out[PATH_SIZE])
{
	struct dirent *entry;
	size_t size;
	DIR *dir;

	size = (size_t)snprintf(out, PATH_SIZE, "%s/batches/%s/0", feed->path,
				spec);
	if (size >= PATH_SIZE)
		return fail(feed, out, ENAMETOOLONG);
	dir = opendir(out);
	if (!dir)
		return fail(feed, out, errno);
	do
		entry = readdir(dir);
	while (entry && entry->d_name[0] == '.');
	if (entry)
		size += (size_t)snprintf(out + size, PATH_SIZE - size, "/%s",
					 entry->d_name);
	closedir(dir);
	return entry && size < PATH_SIZE ? 0 : fail(feed, out, ENOENT);
}

static int count_ids(struct feed *feed, const char *name, uint64_t hash,
		     uint64_t *out)
{
	struct buffer buffer = { NULL, 0 };
	char why[BATCH_VIEW_WHY_SIZE] = "it is of another subset";
	const struct beton_batch_header *h;
	struct batch_view view;
	uint64_t size;
	int r = read_batch(feed, name, &buffer, &size);

	if (r)
		return r;
	r = batch_view_init(&view, buffer.bytes, size, why);
	h = view.header;
	if (!r && (h->subset_hash != hash || h->subset_first ||
		   !h->subset_end || h->subset_end > SUBSET_IDS_MAX))
		r = -ESTALE;
	if (r)
		log_error(feed->log, "%s: %s", name, why);
	else
		*out = h->subset_end;
	buffer_fini(&buffer);
	return r;
}

static int learn_subset(struct feed *feed, const char *spec)
{
	struct subset_ref ref;
	char name[PATH_SIZE];
	uint64_t n;
	int r;

	if (!spec_names_subset(spec, &ref) || !ref.has_hash)
		return fail(feed, spec, EPROTO);
	r = some_batch(feed, spec, name);
	if (!r)
		r = count_ids(feed, name, ref.hash, &n);
	return r ? r : subset_add_known(&ref, n, &feed->subsets);
}

static int mount_find_subset(struct feed *feed, const struct subset_ref *ref)
{
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
	r = resolve_subset(feed, subset, spec);
	return r || own ? r : learn_subset(feed, spec);
}

/* --- zero-copy delivery --- */

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

static int find_lender(struct mount_feed *m, const struct feed_options *o)
{
	const struct handover_client_name name = { o->job, o->rank, o->world };
	char path[PATH_SIZE], address[128];
	FILE *options;

	snprintf(path, sizeof(path), "%s/.betonfs/options", m->base.path);
	options = fopen(path, "re");
	if (!options)
		return -errno;
	read_option(options, "handover", address, sizeof(address));
	read_option(options, "directory", m->directory,
		    sizeof(m->directory) - 1);
	fclose(options);
	if (*m->directory)
		strcat(m->directory, "/");
	return handover_client_open(address, &name, &m->client);
}

/* Chooses the delivery. Without zero-copy, "handover" is an error and "auto"
   reads files. */
static int choose_delivery(struct mount_feed *m, const struct feed_options *o)
{
	bool any = !o->delivery || !strcmp(o->delivery, "auto");
	bool direct = !any && !strcmp(o->delivery, "direct");
	int r;

	m->base.delivery = "direct";
	if (direct)
		return 0;
	r = find_lender(m, o);
	if (!r)
		m->base.delivery = "handover";
	if (!r || any)
		return 0;
	log_error(m->base.log, "%s: no hand-over of batches: %s", m->base.path,
		  strerror(-r));
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
	m->base.path = strdup(path);
	r = m->base.path ? read_description(&m->base) : -ENOMEM;
	if (!r)
		r = read_sample(&m->base);
	if (!r)
		r = file_reader_open(&m->reader);
	if (!r)
		r = choose_delivery(m, o);
	if (r)
		feed_close(&m->base);
	else
		*out = &m->base;
	return r;
}

/* --- batches --- */

static int borrow_batch(struct mount_feed *m, const char *in_mount,
			struct feed_batch *into)
{
	char path[NAME_MAX + 2 + NAME_IN_MOUNT];
	struct loan loan;
	int r;

	if (!m->client || handover_client_is_broken(m->client))
		return -ENOTCONN;
	snprintf(path, sizeof(path), "%s%s", m->directory, in_mount);
	r = handover_client_get(m->client, path, &loan);
	if (r)
		return r;
	into->bytes = loan.bytes;
	into->size = loan.size;
	into->lent = loan.lent;
	return 0;
}

static int mount_fetch(struct feed *feed, uint64_t epoch, uint64_t number,
		       struct feed_batch *into)
{
	struct mount_feed *m = (struct mount_feed *)feed;
	char name[NAME_IN_MOUNT], path[PATH_SIZE], digits[NAME_DIGITS_MAX + 1];
	int r;

	name_number(digits, number, name_digits(spec_batches(&feed->spec)));
	snprintf(name, sizeof(name), "batches/%s/%llu/%s.batch",
		 feed->spec_text, (unsigned long long)epoch, digits);
	if (!borrow_batch(m, name, into)) {
		feed->delivery = "handover";
		return 0;
	}
	/* Whatever the reason, reading the file may work. If it fails, its
	   error is the one to report. */
	if (snprintf(path, sizeof(path), "%s/%s", feed->path, name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	feed->delivery = "direct";
	r = file_reader_read(m->reader, path, &into->own, &into->size);
	into->bytes = into->own.bytes;
	return note_read(feed, path, r);
}

/* The reader first: where zero-copy delivery fails, fetch() reads the file. */
static void mount_cancel(struct feed *feed)
{
	struct mount_feed *m = (struct mount_feed *)feed;

	file_reader_cancel(m->reader);
	if (m->client)
		handover_client_cancel(m->client);
}

static void mount_give_back(struct feed *feed, void *lent)
{
	handover_client_give_back(((struct mount_feed *)feed)->client, lent);
}

static void mount_tell(struct feed *feed, const struct rank_figures *figures)
{
	struct mount_feed *m = (struct mount_feed *)feed;

	if (m->client)
		handover_client_tell(m->client, figures);
}

const struct feed_ops feed_mount = {
	.name = "mount",
	.is_for = mount_is_for,
	.open = mount_open,
	.fetch = mount_fetch,
	.cancel = mount_cancel,
	.find_subset = mount_find_subset,
	.give_back = mount_give_back,
	.tell = mount_tell,
	.close = mount_close,
};
