/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB files as an input. Each entry is a sample, in order of keys. If there is
 * a key "num-samples", the samples are the pairs image-000000001,
 * label-000000001 and so on, as in datasets of text recognition.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "loader/tools/input/foreign/tree.h"
#include "loader/tools/input/foreign/values.h"
#include "loader/util/utf8.h"

enum {
	LOOK_AT = 100, /* values that decide if entries are images */
	IGNORED_MAX = 64,
	KEY_SIZE = 32, /* of a pair's keys */
};

struct database {
	char *path;
	struct tree tree;
	uint64_t first; /* sample */
	uint64_t num_samples;
	/* Entries with keys such as __len__, which are no samples. */
	uint64_t ignored[IGNORED_MAX];
	size_t num_ignored;
};

struct lmdb {
	struct input in;
	struct database *databases;
	size_t num_databases;
	bool has_pairs;
	bool keys_are_text;
};

/* Fields of pairs: image, label; of others: image or value, key. */
enum { FIRST_FIELD, SECOND_FIELD, FIELDS };

struct lmdb_reader {
	struct input_reader reader;
	struct input_file file;
	struct tree_reader pages;
	size_t database;
	struct scratch values[FIELDS];
};

/* --- closing ------------------------------------------------------------- */

static void lmdb_close(struct input *in)
{
	struct lmdb *q = (struct lmdb *)in;

	if (!q)
		return;
	for (size_t i = 0; i < q->num_databases; i++) {
		free(q->databases[i].path);
		tree_close(&q->databases[i].tree);
	}
	free(q->databases);
	free(in->fields);
	free(q);
}

/* --- reading ------------------------------------------------------------- */

static size_t find_database(const struct lmdb *q, size_t hint, uint64_t sample)
{
	const struct database *d = &q->databases[hint];

	if (sample >= d->first && sample - d->first < d->num_samples)
		return hint;
	for (size_t i = 0; i < q->num_databases; i++) {
		d = &q->databases[i];
		if (sample >= d->first && sample - d->first < d->num_samples)
			return i;
	}
	return 0;
}

/* Copies a value to memory that stays while other pages are loaded. */
static int copy_bytes(struct lmdb_reader *r, struct scratch *to,
		      const uint8_t *from, uint64_t at, uint64_t size,
		      struct input_value *out, struct input_error *error)
{
	int code = 0;

	if (!from && !range_ok(at, size, r->file.size))
		return input_refuse(error, -EBADMSG,
				    "a value of %" PRIu64 " bytes outside of "
				    "the file",
				    size);
	if (scratch_grow(to, size + 1, 1))
		return input_refuse(error, -ENOMEM, "out of memory");
	if (from)
		memcpy(to->p, from, size);
	else
		code = input_file_read(&r->file, to->p, size, at, error);
	*out = (struct input_value){ .bytes = to->p, .size = size };
	return code;
}

static int copy_value(struct lmdb_reader *r, size_t field,
		      const struct tree_entry *e, struct input_value *out,
		      struct input_error *error)
{
	int code;

	if (!e->is_plain)
		return input_refuse(error, -EBADMSG, "not a plain value");
	code = copy_bytes(r, &r->values[field], e->value, e->value_at,
			  e->value_size, out, error);
	return code ? code
		    : input_check_value(&r->reader.input->fields[field], out,
					error);
}

static int read_pair(struct lmdb_reader *r, const struct database *d,
		     uint64_t number, const bool *wanted,
		     struct input_value *values, struct input_error *error)
{
	static const char *const names[] = { "image", "label" };
	struct tree_entry entry;
	char key[KEY_SIZE];
	int code = 0;

	for (size_t f = 0; f < FIELDS && !code; f++) {
		if (!wanted[f])
			continue;
		snprintf(key, sizeof(key), "%s-%09" PRIu64, names[f],
			 number + 1);
		code = tree_find(&d->tree, &r->file, &r->pages, key, &entry,
				 error);
		code = code ? code
			    : copy_value(r, f, &entry, &values[f], error);
	}
	return code;
}

static int read_entry(struct lmdb_reader *r, const struct database *d,
		      uint64_t number, const bool *wanted,
		      struct input_value *values, struct input_error *error)
{
	struct tree_entry e;
	int code;

	for (size_t i = 0; i < d->num_ignored; i++)
		number += number >= d->ignored[i];
	code = tree_entry_at(&d->tree, &r->file, &r->pages, number, &e, error);
	if (!code && wanted[FIRST_FIELD])
		code = copy_value(r, FIRST_FIELD, &e, &values[FIRST_FIELD],
				  error);
	if (!code && wanted[SECOND_FIELD])
		code = copy_bytes(r, &r->values[SECOND_FIELD], e.key, 0,
				  e.key_size, &values[SECOND_FIELD], error);
	return code;
}

static int lmdb_read(struct input_reader *reader, uint64_t sample,
		     const bool *wanted, struct input_value *values,
		     struct input_error *error)
{
	struct lmdb_reader *r = (struct lmdb_reader *)reader;
	const struct lmdb *q = (const struct lmdb *)reader->input;
	size_t number = find_database(q, r->database, sample);
	const struct database *d = &q->databases[number];
	int code = input_file_switch(&r->file, d->path, number, error);

	if (code)
		return code;
	if (number != r->database)
		r->pages.is_loaded = false;
	r->database = number;
	sample -= d->first;
	return q->has_pairs ? read_pair(r, d, sample, wanted, values, error)
			    : read_entry(r, d, sample, wanted, values, error);
}

static int lmdb_reader_open(struct input *in, struct input_reader **out)
{
	struct lmdb_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->reader.input = in;
	r->file.fd = -1;
	*out = &r->reader;
	return 0;
}

static void lmdb_reader_close(struct input_reader *reader)
{
	struct lmdb_reader *r = (struct lmdb_reader *)reader;

	if (!r)
		return;
	for (size_t f = 0; f < FIELDS; f++)
		scratch_fini(&r->values[f]);
	tree_reader_fini(&r->pages);
	input_file_close(&r->file);
	free(r);
}

static void lmdb_describe(const struct input *in, uint64_t sample, char *out,
			  size_t size)
{
	const struct lmdb *q = (const struct lmdb *)in;
	const struct database *d = &q->databases[find_database(q, 0, sample)];

	snprintf(out, size,
		 q->has_pairs ? "%s, pair %" PRIu64 : "%s, entry %" PRIu64,
		 d->path, sample - d->first + q->has_pairs);
}

/* --- opening ------------------------------------------------------------- */

static int no_memory(struct log *log)
{
	log_error(log, "out of memory");
	return -ENOMEM;
}

struct note {
	struct lmdb *q;
	struct database *d;
};

static int note_entry(void *arg, uint64_t number, const struct tree_entry *e,
		      struct input_error *error)
{
	struct note *note = arg;
	struct database *d = note->d;

	if (!e->is_plain)
		return input_refuse(error, -ENOTSUP,
				    "named databases: copy the entries into "
				    "the main one");
	if (e->key_size >= 2 && !memcmp(e->key, "__", 2)) {
		if (d->num_ignored == IGNORED_MAX)
			return input_refuse(error, -ENOTSUP,
					    "more than %d keys that begin "
					    "with __",
					    IGNORED_MAX);
		d->ignored[d->num_ignored++] = number;
		return 0;
	}
	if (note->q->keys_are_text && !utf8_is_text(e->key, e->key_size))
		note->q->keys_are_text = false;
	return 0;
}

/* Sets *out to the number of pairs, or UINT64_MAX if there are none. */
static int count_pairs(struct lmdb_reader *r, const struct database *d,
		       uint64_t *out, struct input_error *error)
{
	struct tree_entry e;
	uint64_t n = 0;
	int code = tree_find(&d->tree, &r->file, &r->pages, "num-samples", &e,
			     error);

	*out = UINT64_MAX;
	if (code)
		return code == -ENOENT ? 0 : code;
	for (uint64_t i = 0; e.value && i < e.value_size && i < 12; i++) {
		if (e.value[i] < '0' || e.value[i] > '9')
			break;
		n = 10 * n + (uint64_t)(e.value[i] - '0');
	}
	if (n > d->tree.num_entries)
		return input_refuse(error, -EBADMSG,
				    "num-samples is %" PRIu64
				    ", but there are %" PRIu64 " entries",
				    n, d->tree.num_entries);
	*out = n;
	return 0;
}

static int open_database(struct lmdb *q, struct lmdb_reader *r, size_t number,
			 struct input_error *error)
{
	struct database *d = &q->databases[number];
	struct note note = { q, d };
	uint64_t pairs;
	int code = input_file_switch(&r->file, d->path, number, error);

	code = code ? code
		    : tree_open(&d->tree, &r->file, &r->pages, note_entry,
				&note, error);
	code = code ? code : count_pairs(r, d, &pairs, error);
	if (code)
		return code;
	if (number && q->has_pairs != (pairs != UINT64_MAX))
		return input_refuse(error, -EINVAL,
				    "other keys than in %.60s: convert the "
				    "files apart",
				    q->databases[0].path);
	q->has_pairs = pairs != UINT64_MAX;
	d->first = q->in.num_samples;
	d->num_samples =
		q->has_pairs ? pairs : d->tree.num_entries - d->num_ignored;
	q->in.num_samples += d->num_samples;
	q->in.ignored += d->num_ignored;
	return 0;
}

/* Returns which program wrote a value that is no bytes of a file, or NULL. */
static const char *find_wrapping(const uint8_t *v, uint64_t size)
{
	if (size >= 3 && v[0] == 0x80 && v[1] >= 2 && v[1] <= 5 &&
	    v[size - 1] == '.')
		return "pickled Python objects";
	if (size >= 6 && v[0] == 0x08 && v[2] == 0x10)
		return "Caffe's Datum records";
	if (size >= 8 && load32(v) == UINT32_MAX)
		return "serialized by pyarrow";
	return NULL;
}

/* Decides if values are images. */
static int look(struct lmdb *q, struct lmdb_reader *r,
		struct input_error *error)
{
	static const bool wanted[FIELDS] = { true, false };
	uint64_t n = min_u64(q->in.num_samples, LOOK_AT), images = 0;
	struct input_value values[FIELDS];
	const char *what = NULL;

	for (uint64_t i = 0; i < n; i++) {
		if (lmdb_read(&r->reader, i, wanted, values, error))
			return 0; /* readers report it */
		if (input_is_image(values[0].bytes, values[0].size))
			images++;
		else if (!what)
			what = find_wrapping(values[0].bytes, values[0].size);
	}
	if (!images && what)
		return input_refuse(error, -ENOTSUP,
				    "values are %s: write them by "
				    "betonfs.write()",
				    what);
	q->in.fields[0].type = images == n ? INPUT_IMAGE : INPUT_BYTES;
	if (images != n)
		snprintf(q->in.fields[0].name, INPUT_NAME_SIZE, "value");
	return 0;
}

static int add_fields(struct lmdb *q, struct lmdb_reader *r,
		      struct input_error *error)
{
	bool is_text = q->has_pairs || q->keys_are_text;

	if (!input_add_field(&q->in, "image", INPUT_IMAGE) ||
	    !input_add_field(&q->in, q->has_pairs ? "label" : "key",
			     is_text ? INPUT_TEXT : INPUT_BYTES))
		return input_refuse(error, -ENOMEM, "out of memory");
	return q->has_pairs ? 0 : look(q, r, error);
}

/* A source is the file, or a directory with data.mdb. */
static char *find_file(const struct input_path *path)
{
	char *out;

	if (!S_ISDIR(path->st.st_mode))
		return strdup(path->path);
	return asprintf(&out, "%s/data.mdb", path->path) < 0 ? NULL : out;
}

static int open_all(struct lmdb *q, const struct input_path *paths, size_t n)
{
	struct lmdb_reader *r = NULL;
	struct input_reader *reader;
	struct input_error error;
	int code = 0;

	q->databases = calloc(n + 1, sizeof(*q->databases));
	if (!q->databases || lmdb_reader_open(&q->in, &reader))
		return no_memory(q->in.log);
	r = (struct lmdb_reader *)reader;
	for (size_t i = 0; i < n && !code; i++) {
		q->databases[i].path = find_file(&paths[i]);
		q->num_databases++;
		code = q->databases[i].path
			       ? open_database(q, r, i, &error)
			       : input_refuse(&error, -ENOMEM, "out of memory");
	}
	r->pages.is_loaded = false;
	r->database = n - 1;
	code = code ? code : add_fields(q, r, &error);
	if (code)
		log_error(q->in.log, "%s: %s", paths[q->num_databases - 1].path,
			  error.why);
	lmdb_reader_close(reader);
	return code;
}

static int lmdb_open(const struct input_path *paths, size_t num_paths,
		     struct log *log, struct input **out)
{
	struct lmdb *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return no_memory(log);
	q->in.kind = &input_lmdb;
	q->in.log = log;
	q->keys_are_text = true;
	r = open_all(q, paths, num_paths);
	if (r) {
		lmdb_close(&q->in);
		return r;
	}
	*out = &q->in;
	return 0;
}

/* A file begins with a page of the database's description: number 0, flag 8. */
static bool lmdb_matches(const struct input_path *path)
{
	static const uint8_t head[12] = { [10] = 8 };
	char data[PATH_MAX];
	struct stat st;

	if (S_ISDIR(path->st.st_mode))
		return snprintf(data, sizeof(data), "%s/data.mdb", path->path) <
			       (int)sizeof(data) &&
		       stat(data, &st) == 0;
	return path->head_size >= sizeof(head) &&
	       !memcmp(path->head, head, sizeof(head));
}

const struct input_kind input_lmdb = {
	.name = "lmdb",
	.words = "LMDB files (data.mdb)",
	.matches = lmdb_matches,
	.open = lmdb_open,
	.reader_open = lmdb_reader_open,
	.read = lmdb_read,
	.reader_close = lmdb_reader_close,
	.describe = lmdb_describe,
	.close = lmdb_close,
};
