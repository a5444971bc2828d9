/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TFRecord files as a source: each record is a tf.train.Example, whose features
 * are fields. Opening reads all records but large values, to find the types of
 * the features, and keeps 8 bytes per record. Each record has two CRCs: that of
 * its length is checked when the file is opened, that of its data when the
 * sample is read.
 */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/crc32c.h"
#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "loader/tools/formats/example.h"
#include "loader/tools/input/convert.h"
#include "loader/tools/input/parts.h"
#include "loader/util/array.h"
#include "loader/util/utf8.h"

/* A record: its length of 8 bytes, a CRC, the data, and a CRC. */
enum { HEAD = 12, AFTER = 4 };

/* Bytes by which image files are recognized. */
enum { IMAGE_HEAD = 16 };

/* The forms of features. */
enum form {
	FORM_NONE, /* no field can hold it */
	FORM_INT,
	FORM_FLOAT,
	FORM_BYTES,
	FORM_IMAGE,
	FORM_TEXT,
	FORM_INTS, /* lists of one length */
	FORM_FLOATS,
	FORM_RAGGED_INTS, /* bytes with the header of an array */
	FORM_RAGGED_FLOATS,
	FORM_STRINGS, /* a JSON list */
};

/* The values of a feature in one record, or in all. */
struct found {
	bool seen;
	bool mixed; /* lists of two types */
	enum example_list list;
	uint64_t count;
	bool images; /* bytes: all begin like image files */
	bool text;   /* bytes: all are UTF-8, and short */
};

struct feature {
	char key[EXAMPLE_KEY_SIZE];
	struct found all;
	bool ragged; /* counts differ */
	enum form form;
	size_t field; /* index, unless FORM_NONE */
};

struct tfrecord {
	struct input input;
	struct parts parts;
	struct feature *features; /* INPUT_FIELDS_MAX, sorted by keys */
	size_t num_features;
	uint64_t *records; /* offsets of their data; one more per part */
	size_t num_records;
	size_t room;
};

/* The values that the features of a record have. */
struct look {
	const struct tfrecord *t;
	struct window *window;
	const struct feature *features;
	size_t num_features;
	struct found *found; /* one per feature */
	size_t at;	     /* the feature whose values follow */
	/* The first record: features are added. */
	struct feature *add;
};

struct reader {
	struct input_reader reader;
	struct part_file file;
	struct input_memory record;
	struct window window;
	struct look look;
	struct input_memory *memory; /* one per feature, as the next two */
	uint64_t *used;		     /* bytes, or values */
	json_t **lists;
	struct input_value *values;
};

static struct tfrecord *of(const struct input *in)
{
	return (struct tfrecord *)in;
}

/* --- names --------------------------------------------------------------- */

/* Returns whether a name ends in "-00000-of-00001". */
static bool is_shard(const char *name)
{
	int end = -1;
	const char *at = strstr(name, "-of-");

	while (at && strstr(at + 1, "-of-"))
		at = strstr(at + 1, "-of-");
	if (!at || at - name < 6 || at[-6] != '-')
		return false;
	sscanf(at - 5, "%*5[0-9]-of-%*5[0-9]%n", &end);
	return end == 14 && !at[9];
}

/* Compressed files match, for a message of their own. */
static bool matches(const struct input_path *path)
{
	const char *base = strrchr(path->path, '/');

	base = base ? base + 1 : path->path;
	if (!S_ISREG(path->st.st_mode))
		return false;
	return input_has_extension(base, "tfrecord|tfrecords|tfrec") ||
	       is_shard(base) ||
	       (input_has_extension(base, "gz") && strstr(base, ".tfrec"));
}

static void close_tfrecord(struct input *in)
{
	struct tfrecord *t = of(in);

	if (!t)
		return;
	parts_fini(&t->parts);
	free(t->features);
	free(t->records);
	free(t->input.fields);
	free(t);
}

/* --- looking at values --------------------------------------------------- */

static int look_feature(void *arg, const char *key)
{
	struct look *l = arg;

	l->at = 0;
	while (l->at < l->num_features &&
	       strcmp(l->features[l->at].key, key) != 0)
		l->at++;
	if (l->at == l->num_features) {
		/* A feature that the other records lack. */
		if (!l->add || l->num_features == INPUT_FIELDS_MAX)
			return -ENXIO;
		strcpy(l->add[l->num_features++].key, key);
	}
	if (l->found[l->at].seen)
		return -EBADMSG;
	l->found[l->at] =
		(struct found){ .seen = true, .images = true, .text = true };
	return 0;
}

static struct found *look_list(struct look *l, enum example_list list)
{
	struct found *f = &l->found[l->at];

	f->mixed |= f->list && f->list != list;
	f->list = list;
	f->count++;
	return f;
}

static int look_bytes(void *arg, uint64_t off, uint64_t size)
{
	struct look *l = arg;
	struct found *f = look_list(l, EXAMPLE_BYTES);
	size_t head = (size_t)min_u64(size, IMAGE_HEAD);
	const uint8_t *p;

	if (f->images) {
		p = window_at(l->window, off, head);
		if (!p)
			return l->window->error;
		f->images = convert_is_image(p, head);
	}
	f->text &= size <= WINDOW_SIZE && !f->images;
	if (f->text) {
		p = window_at(l->window, off, size);
		if (!p)
			return l->window->error;
		f->text = utf8_is_text(p, size);
	}
	return 0;
}

static int look_real(void *arg, float value)
{
	(void)value;
	look_list(arg, EXAMPLE_FLOATS);
	return 0;
}

static int look_integer(void *arg, int64_t value)
{
	(void)value;
	look_list(arg, EXAMPLE_INTS);
	return 0;
}

static int look_at(struct look *l, uint64_t off, uint64_t size)
{
	const struct example_sink sink = { l, look_feature, look_bytes,
					   look_real, look_integer };

	memset(l->found, 0, INPUT_FIELDS_MAX * sizeof(*l->found));
	return example_parse(l->window, off, size, &sink);
}

/* --- all records --------------------------------------------------------- */

struct scan {
	struct tfrecord *t;
	const struct part *part;
	const struct file *file;
	struct window window;
	struct look look;
	uint64_t record; /* its number in the part */
	uint64_t at;	 /* of its head in the file */
};

static int refuse(const struct scan *s, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(const struct scan *s, int error, const char *format, ...)
{
	char why[2 * INPUT_WHY_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	log_error(s->t->input.log, "%s: record %llu at byte %llu: %s",
		  s->part->path, (unsigned long long)s->record,
		  (unsigned long long)s->at, why);
	return error;
}

/* The CRCs in files are masked, because they may be in data of other CRCs. */
static uint32_t masked(const void *bytes, size_t size)
{
	uint32_t crc = crc32c(0, bytes, size);

	return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static int refuse_first(const struct scan *s)
{
	const uint8_t *head = window_at((struct window *)&s->window, 0, 2);

	if (head && head[0] == 0x1f && head[1] == 0x8b)
		return refuse(s, -ENOTSUP,
			      "the file is compressed: "
			      "decompress it by gzip -d first");
	if (head && (head[0] & 15) == 8 && (head[0] << 8 | head[1]) % 31 == 0)
		return refuse(s, -ENOTSUP,
			      "the file is compressed by ZLIB: write it again "
			      "without compression");
	return refuse(s, -EBADMSG,
		      "no TFRecord file: the CRC of the first "
		      "length is wrong");
}

/* Returns 1 with the size of the record's data, or -errno. */
static int read_head(struct scan *s, uint64_t *size)
{
	const uint8_t *head = window_at(&s->window, s->at, HEAD);

	if (!head)
		return s->window.error == -EBADMSG
			       ? refuse(s, -EBADMSG,
					"the file ends inside its head")
			       : refuse(s, s->window.error, "%s",
					strerror(-s->window.error));
	*size = load64(head);
	if (masked(head, 8) != load32(head + 8))
		return s->at ? refuse(s, -EBADMSG,
				      "the CRC of its length is wrong")
			     : refuse_first(s);
	if (!range_ok(s->at + HEAD, *size, s->file->size) ||
	    s->file->size - s->at - HEAD - *size < AFTER)
		return refuse(s, -EBADMSG,
			      "%llu bytes, but the file ends at byte %llu",
			      (unsigned long long)*size,
			      (unsigned long long)s->file->size);
	return 0;
}

/* Returns whether the data is as it was written. */
static bool crc_ok(const struct scan *s, uint64_t size)
{
	cleanup_free uint8_t *data =
		size > INPUT_VALUE_MAX ? NULL : malloc(size + AFTER);

	return data && !file_read(s->file, data, size + AFTER, s->at + HEAD) &&
	       masked(data, size) == load32(data + size);
}

static int add_record(struct tfrecord *t, uint64_t off)
{
	size_t room = t->room ? 2 * t->room : 1024;
	uint64_t *more;

	if (t->num_records == t->room) {
		more = reallocarray(t->records, room, sizeof(*more));
		if (!more) {
			log_error(t->input.log, "out of memory");
			return -ENOMEM;
		}
		t->records = more;
		t->room = room;
	}
	t->records[t->num_records++] = off;
	return 0;
}

/* Adds what a record has to what all have. */
static int merge(const struct scan *s, struct feature *f,
		 const struct found *found)
{
	struct found *all = &f->all;

	if (!found->seen)
		return refuse(s, -EINVAL,
			      "it lacks the feature '%.60s', which the first "
			      "record has",
			      f->key);
	if (found->mixed ||
	    (found->list && all->list && found->list != all->list))
		return refuse(s, -EINVAL,
			      "the feature '%.60s' has another type than "
			      "before",
			      f->key);
	f->ragged |= all->seen && all->count != found->count;
	all->images = found->images && (all->images || !all->seen);
	all->text = found->text && (all->text || !all->seen);
	all->list = found->list ? found->list : all->list;
	all->count = found->count;
	all->seen = true;
	return 0;
}

static int refuse_example(const struct scan *s, int error)
{
	if (error == -ENXIO)
		return refuse(s, -EINVAL,
			      s->look.num_features < INPUT_FIELDS_MAX
				      ? "it has a feature that the first "
					"record lacks"
				      : "more than %d features",
			      INPUT_FIELDS_MAX);
	if (error == -ENOTSUP)
		return refuse(s, error,
			      "a tf.train.SequenceExample; mkfs.beton "
			      "reads tf.train.Example");
	return refuse(s, error, "%s",
		      error == -EBADMSG ? "no tf.train.Example"
					: strerror(-error));
}

/* A record whose data is damaged remains: reading it fails, and --on-error
   decides. It has no part in the types. */
static int look_at_record(struct scan *s, uint64_t size)
{
	struct tfrecord *t = s->t;
	int r;

	s->look.num_features = t->num_features;
	s->look.add = t->num_features ? NULL : t->features;
	r = look_at(&s->look, s->at + HEAD, size);
	if (r && r != -EIO && !crc_ok(s, size))
		return 0;
	if (r)
		return refuse_example(s, r);
	t->num_features = s->look.num_features;
	if (!t->num_features)
		return refuse(s, -EINVAL, "it has no features");
	for (size_t i = 0; i < t->num_features && !r; i++)
		r = merge(s, &t->features[i], &s->look.found[i]);
	return r;
}

static int scan_records(struct scan *s)
{
	uint64_t size = 0;
	int r = 0;

	for (; s->at < s->file->size && !r; s->record++) {
		r = read_head(s, &size);
		r = r ? r : look_at_record(s, size);
		r = r ? r : add_record(s->t, s->at + HEAD);
		s->at += HEAD + size + AFTER;
	}
	s->t->input.num_samples += s->record;
	/* The end of the last record. */
	return r ? r : add_record(s->t, s->at + HEAD);
}

static int scan_part(struct tfrecord *t, struct part *part, struct found *found)
{
	struct file file;
	struct scan s = { .t = t, .part = part, .file = &file };
	int r = part_open(part, t->input.log, &file);

	if (r)
		return r;
	part->first = t->input.num_samples;
	s.window.file = &file;
	s.look = (struct look){ .t = t,
				.window = &s.window,
				.features = t->features,
				.found = found };
	r = scan_records(&s);
	file_close(&file);
	return r;
}

/* --- fields -------------------------------------------------------------- */

static enum form form_of(const struct feature *f)
{
	bool one = !f->ragged && f->all.count == 1;

	switch (f->all.list) {
	case EXAMPLE_INTS:
		return one	   ? FORM_INT
		       : f->ragged ? FORM_RAGGED_INTS
				   : FORM_INTS;
	case EXAMPLE_FLOATS:
		return one	   ? FORM_FLOAT
		       : f->ragged ? FORM_RAGGED_FLOATS
				   : FORM_FLOATS;
	case EXAMPLE_BYTES:
		if (one)
			return f->all.images ? FORM_IMAGE
			       : f->all.text ? FORM_TEXT
					     : FORM_BYTES;
		return f->all.text ? FORM_STRINGS : FORM_NONE;
	default:
		return FORM_NONE;
	}
}

/* Returns the last `parts` parts of a path, or all of it. */
static const char *last_parts(const char *key, unsigned parts)
{
	const char *at = key + strlen(key);

	while (at > key && (at[-1] != '/' || --parts))
		at--;
	return at;
}

static bool is_unique(const struct tfrecord *t, const struct feature *f,
		      unsigned parts)
{
	for (size_t i = 0; i < t->num_features; i++)
		if (&t->features[i] != f &&
		    !strcmp(last_parts(t->features[i].key, parts),
			    last_parts(f->key, parts)))
			return false;
	return true;
}

/* A field has at most 16 bytes for its name, so that the last parts of a path
   are better than all, as many as no other path ends in. */
static void name_feature(const struct tfrecord *t, const struct feature *f,
			 char name[EXAMPLE_KEY_SIZE])
{
	unsigned parts = 1;
	bool is_image = !strcmp(f->key, "image/encoded");

	for (size_t i = 0; i < t->num_features; i++)
		if (!strcmp(last_parts(t->features[i].key, 1), "image"))
			is_image = false;
	while (parts < EXAMPLE_KEY_SIZE && !is_unique(t, f, parts))
		parts++;
	strcpy(name, is_image ? "image" : last_parts(f->key, parts));
	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '_';
}

static int add_field(struct tfrecord *t, struct feature *f)
{
	static const enum input_type types[] = {
		[FORM_INT] = INPUT_INT,
		[FORM_FLOAT] = INPUT_FLOAT,
		[FORM_BYTES] = INPUT_BYTES,
		[FORM_IMAGE] = INPUT_IMAGE,
		[FORM_TEXT] = INPUT_TEXT,
		[FORM_INTS] = INPUT_ARRAY,
		[FORM_FLOATS] = INPUT_ARRAY,
		[FORM_RAGGED_INTS] = INPUT_BYTES,
		[FORM_RAGGED_FLOATS] = INPUT_BYTES,
		[FORM_STRINGS] = INPUT_JSON,
	};
	char name[EXAMPLE_KEY_SIZE];
	struct input_field *field;

	f->form = form_of(f);
	if (f->form == FORM_NONE) {
		log_warning(t->input.log, "the feature '%.60s' is left out: %s",
			    f->key,
			    f->all.list ? "its lists of bytes are no text"
					: "it has no values");
		return 0;
	}
	name_feature(t, f, name);
	for (size_t i = 0; i < t->input.num_fields; i++) {
		if (!strcmp(t->input.fields[i].name, name)) {
			log_error(t->input.log,
				  "%s: two features have the "
				  "name '%.60s'",
				  t->parts.at[0].path, name);
			return -EINVAL;
		}
	}
	f->field = t->input.num_fields;
	field = input_add_field(&t->input, name, types[f->form]);
	if (!field)
		return -ENOMEM;
	if (field->type == INPUT_ARRAY) {
		strcpy(field->dtype, f->form == FORM_INTS ? "<i8" : "<f4");
		field->ndim = 1;
		field->shape[0] = f->all.count;
	}
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(((const struct feature *)a)->key,
		      ((const struct feature *)b)->key);
}

/* Writers store features in any order. */
static int add_fields(struct tfrecord *t)
{
	int r = 0;

	qsort(t->features, t->num_features, sizeof(*t->features), compare_keys);
	for (size_t i = 0; i < t->num_features && !r; i++)
		r = add_field(t, &t->features[i]);
	if (!r && !t->input.num_fields) {
		log_error(t->input.log, "%s: %s", t->parts.at[0].path,
			  t->input.num_samples
				  ? "no record without damage has a feature"
				  : "no records");
		r = -ENODATA;
	}
	return r;
}

/* --- opening ------------------------------------------------------------- */

static int open_parts(struct tfrecord *t, const struct input_path *paths,
		      size_t num_paths)
{
	cleanup_free struct found *found =
		calloc(INPUT_FIELDS_MAX, sizeof(*found));
	int r = parts_init(&t->parts, paths, num_paths, t->input.log);

	t->features = calloc(INPUT_FIELDS_MAX, sizeof(*t->features));
	if (!r && (!found || !t->features)) {
		log_error(t->input.log, "out of memory");
		r = -ENOMEM;
	}
	for (size_t i = 0; i < num_paths && !r; i++)
		r = scan_part(t, &t->parts.at[i], found);
	return r ? r : add_fields(t);
}

static int open_tfrecord(const struct input_path *paths, size_t num_paths,
			 struct log *log, struct input **out)
{
	struct tfrecord *t = calloc(1, sizeof(*t));
	int r;

	if (!t) {
		log_error(log, "out of memory");
		return -ENOMEM;
	}
	t->input.kind = &input_tfrecord;
	t->input.log = log;
	r = open_parts(t, paths, num_paths);
	if (r)
		close_tfrecord(&t->input);
	else
		*out = &t->input;
	return r;
}

/* --- reading ------------------------------------------------------------- */

static void drop_lists(struct reader *r)
{
	for (size_t i = 0; i < of(r->reader.input)->num_features; i++) {
		json_decref(r->lists[i]);
		r->lists[i] = NULL;
	}
}

static void reader_close(struct input_reader *reader)
{
	struct reader *r = (struct reader *)reader;
	size_t n;

	if (!r)
		return;
	n = of(reader->input)->num_features;
	for (size_t i = 0; r->memory && i < n; i++)
		input_memory_fini(&r->memory[i]);
	if (r->lists)
		drop_lists(r);
	free(r->memory);
	free(r->used);
	free(r->lists);
	free(r->look.found);
	input_memory_fini(&r->record);
	part_file_fini(&r->file);
	free(r);
}

static int reader_open(struct input *in, struct input_reader **out)
{
	const struct tfrecord *t = of(in);
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->reader.input = in;
	r->memory = calloc(t->num_features, sizeof(*r->memory));
	r->used = calloc(t->num_features, sizeof(*r->used));
	r->lists = calloc(t->num_features, sizeof(*r->lists));
	r->look = (struct look){ .t = t,
				 .window = &r->window,
				 .features = t->features,
				 .num_features = t->num_features };
	r->look.found = calloc(INPUT_FIELDS_MAX, sizeof(*r->look.found));
	if (!r->memory || !r->used || !r->lists || !r->look.found) {
		reader_close(&r->reader);
		return -ENOMEM;
	}
	*out = &r->reader;
	return 0;
}

/* Reads the data of a record and checks its CRC. */
static int read_record(struct reader *r, uint64_t sample,
		       struct input_error *error)
{
	const struct tfrecord *t = of(r->reader.input);
	const struct part *part = parts_find(&t->parts, sample);
	/* Each part has one offset more than records. */
	size_t at = sample + (size_t)(part - t->parts.at);
	uint64_t size = t->records[at + 1] - t->records[at] - HEAD;
	int status = part_file_move(&r->file, part);

	if (status)
		return input_refuse(error, status, "%s", strerror(-status));
	status = part_file_read(&r->file, &r->record, t->records[at], size,
				error);
	if (status)
		return status;
	size -= AFTER;
	if (masked(r->record.bytes, size) != load32(r->record.bytes + size))
		return input_refuse(error, -EBADMSG,
				    "the CRC of its data is wrong");
	r->window = (struct window){ .memory = r->record.bytes, .size = size };
	return 0;
}

static size_t item_of(const struct feature *f)
{
	return f->all.list == EXAMPLE_INTS ? 8 : 4;
}

static bool is_list(const struct feature *f)
{
	return f->form >= FORM_INTS && f->form <= FORM_RAGGED_FLOATS;
}

static bool is_ragged(const struct feature *f)
{
	return f->form == FORM_RAGGED_INTS || f->form == FORM_RAGGED_FLOATS;
}

/* Makes room for the values of a feature, once their number is found. */
static int prepare(struct reader *r, size_t i, struct input_error *error)
{
	const struct feature *f = &of(r->reader.input)->features[i];
	const struct found *found = &r->look.found[i];
	uint64_t shape = found->count, head = 0;

	r->used[i] = 0;
	if (!found->seen || found->mixed ||
	    (found->list && found->list != f->all.list) ||
	    (!f->ragged && found->count != f->all.count))
		return input_refuse(error, -EBADMSG,
				    "the feature '%.60s' has changed", f->key);
	if (f->form == FORM_STRINGS)
		r->lists[i] = json_array();
	/* The number of values is below that of the record's bytes. */
	if (is_list(f) &&
	    input_reserve(&r->memory[i],
			  ARRAY_HEADER_MAX + found->count * item_of(f)))
		return input_refuse(error, -ENOMEM, "out of memory");
	if (is_ragged(f))
		head = array_header(r->memory[i].bytes,
				    f->all.list == EXAMPLE_INTS ? "<i8" : "<f4",
				    1, &shape);
	r->used[i] = head;
	return 0;
}

static int fill_feature(void *arg, const char *key)
{
	struct reader *r = arg;
	const struct tfrecord *t = of(r->reader.input);

	r->look.at = 0;
	while (strcmp(t->features[r->look.at].key, key) != 0)
		r->look.at++;
	return 0;
}

/* A value of a feature that has one, and one that is wanted. */
static struct input_value *value_of(struct reader *r, const struct feature **f)
{
	*f = &of(r->reader.input)->features[r->look.at];
	return (*f)->form == FORM_NONE ? NULL : &r->values[(*f)->field];
}

static int fill_bytes(void *arg, uint64_t off, uint64_t size)
{
	struct reader *r = arg;
	const struct feature *f;
	struct input_value *v = value_of(r, &f);
	const char *bytes = (const char *)r->record.bytes + off;

	if (!v)
		return 0;
	if (f->form == FORM_STRINGS)
		return json_array_append_new(r->lists[r->look.at],
					     json_stringn(bytes, size))
			       ? -EINVAL
			       : 0;
	if (f->form == FORM_TEXT && !utf8_is_text(bytes, size))
		return -EINVAL;
	v->bytes = bytes;
	v->size = size;
	return 0;
}

static void append(struct reader *r, const void *value, size_t size)
{
	size_t i = r->look.at;

	memcpy(r->memory[i].bytes + r->used[i], value, size);
	r->used[i] += size;
}

static int fill_real(void *arg, float value)
{
	struct reader *r = arg;
	const struct feature *f;
	struct input_value *v = value_of(r, &f);

	if (v && is_list(f))
		append(r, &value, sizeof(value));
	else if (v)
		v->real = (double)value;
	return 0;
}

static int fill_integer(void *arg, int64_t value)
{
	struct reader *r = arg;
	const struct feature *f;
	struct input_value *v = value_of(r, &f);

	if (v && is_list(f))
		append(r, &value, sizeof(value));
	else if (v)
		v->integer = value;
	return 0;
}

/* Sets the values that are in memory of the reader. */
static int finish(struct reader *r, size_t i, struct input_error *error)
{
	const struct feature *f = &of(r->reader.input)->features[i];
	struct input_value *v = &r->values[f->field];
	size_t size;

	if (is_list(f)) {
		v->bytes = r->memory[i].bytes;
		v->size = r->used[i];
	}
	if (f->form != FORM_STRINGS)
		return 0;
	size = json_dumpb(r->lists[i], NULL, 0, JSON_COMPACT);
	if (!size || input_reserve(&r->memory[i], size))
		return input_refuse(error, -ENOMEM, "out of memory");
	json_dumpb(r->lists[i], (char *)r->memory[i].bytes, size, JSON_COMPACT);
	v->bytes = r->memory[i].bytes;
	v->size = size;
	return 0;
}

static int read_features(struct reader *r, struct input_error *error)
{
	const struct tfrecord *t = of(r->reader.input);
	const struct example_sink fill = { r, fill_feature, fill_bytes,
					   fill_real, fill_integer };
	int status = look_at(&r->look, 0, r->window.size);

	if (status)
		return input_refuse(error, -EBADMSG,
				    "no tf.train.Example with the features of "
				    "the first record");
	for (size_t i = 0; i < t->num_features && !status; i++)
		status = prepare(r, i, error);
	if (status)
		return status;
	if (example_parse(&r->window, 0, r->window.size, &fill))
		return input_refuse(error, -EBADMSG, "text that is no UTF-8");
	for (size_t i = 0; i < t->num_features && !status; i++)
		status = t->features[i].form == FORM_NONE ? 0
							  : finish(r, i, error);
	return status;
}

static int read_sample(struct input_reader *reader, uint64_t sample,
		       const bool *wanted, struct input_value *values,
		       struct input_error *error)
{
	struct reader *r = (struct reader *)reader;
	struct input_value all[INPUT_FIELDS_MAX] = { 0 };
	int status = read_record(r, sample, error);

	if (status)
		return status;
	drop_lists(r);
	r->values = all;
	status = read_features(r, error);
	for (size_t i = 0; i < reader->input->num_fields && !status; i++)
		if (wanted[i])
			values[i] = all[i];
	return status;
}

static void describe(const struct input *in, uint64_t sample, char *out,
		     size_t size)
{
	const struct part *part = parts_find(&of(in)->parts, sample);

	snprintf(out, size, "%s: record %llu", part->path,
		 (unsigned long long)(sample - part->first));
}

const struct input_kind input_tfrecord = {
	.name = "tfrecord",
	.words = "TFRecord files",
	.matches = matches,
	.open = open_tfrecord,
	.reader_open = reader_open,
	.read = read_sample,
	.reader_close = reader_close,
	.describe = describe,
	.close = close_tfrecord,
};
