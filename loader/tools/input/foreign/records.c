/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/foreign/records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "loader/tools/input/foreign/file.h"
#include "loader/tools/input/foreign/values.h"
#include "loader/util/scratch.h"

enum {
	LOOK_AT = 100, /* samples that decide if bytes are images */
	OFFSETS = 4,   /* of the table, behind the number of samples */
	/* LitData's frames: a header, offsets, and a row per frame. */
	FRAMES_HEAD = 24,
	FRAME_ROW = 24,
	FRAME_MAX = 1 << 30,
};

struct records_reader {
	struct input_reader reader;
	struct input_file file;
	struct unpacked_copy *copy;
	size_t shard;
	bool is_open; /* `shard` is checked */
	enum record_packing packing;
	struct scratch sample;
	/* The decompressed samples of a frame. */
	uint8_t *frame;
	uint64_t frame_size;
	uint64_t frame_first;
	uint64_t frame_samples; /* 0: none */
	/* A sample that is compressed alone. */
	uint8_t *single;
};

/* --- the input ----------------------------------------------------------- */

static int no_memory(struct log *log)
{
	log_error(log, "out of memory");
	return -ENOMEM;
}

void records_close(struct input *in)
{
	struct records *q = (struct records *)in;

	if (!q)
		return;
	for (size_t i = 0; i < q->num_shards; i++)
		free(q->shards[i].path);
	unpacked_fini(&q->unpacked);
	free(q->shards);
	free(q->columns);
	free(in->fields);
	free(q);
}

int records_add_column(struct records *q, const char *name,
		       const struct record_codec *codec,
		       struct record_column **out)
{
	struct input_field *field;
	struct record_column *more;

	if (q->in.num_fields == INPUT_FIELDS_MAX) {
		log_error(q->in.log, "more than %d columns", INPUT_FIELDS_MAX);
		return -EFBIG;
	}
	more = reallocarray(q->columns, q->in.num_fields + 1, sizeof(*more));
	if (!more)
		return no_memory(q->in.log);
	q->columns = more;
	*out = &more[q->in.num_fields];
	**out = (struct record_column){ .codec = codec };
	field = input_add_field(&q->in, name, codec->type);
	if (!field)
		return -EINVAL;
	if (codec->refused)
		snprintf(field->refused, sizeof(field->refused),
			 "%s: leave the column out with --fields",
			 codec->refused);
	return 0;
}

int records_add_shard(struct records *q, const char *directory,
		      const char *name, const struct record_shard *shard)
{
	struct record_shard *s;
	void *more;

	if (!*name || strchr(name, '/') || !strcmp(name, "..")) {
		log_error(q->in.log, "%s/index.json: '%.100s' is no file name",
			  directory, name);
		return -EBADMSG;
	}
	if (!shard->num_samples)
		return 0;
	if (q->num_shards == q->room) {
		q->room = q->room ? 2 * q->room : 16;
		more = reallocarray(q->shards, q->room, sizeof(*q->shards));
		if (!more)
			return no_memory(q->in.log);
		q->shards = more;
	}
	s = &q->shards[q->num_shards];
	*s = *shard;
	s->first = q->in.num_samples;
	if (asprintf(&s->path, "%s/%s", directory, name) < 0)
		return no_memory(q->in.log);
	q->num_shards++;
	/* Offsets have 32 bits, so a shard has fewer samples. */
	if (shard->num_samples > UINT32_MAX / 4 ||
	    !add_ok(q->in.num_samples, shard->num_samples,
		    &q->in.num_samples)) {
		log_error(q->in.log, "%s: %" PRIu64 " samples", s->path,
			  shard->num_samples);
		return -EBADMSG;
	}
	return 0;
}

static size_t find_shard(const struct records *q, size_t hint, uint64_t sample)
{
	size_t low = 0, high = q->num_shards;

	if (sample >= q->shards[hint].first &&
	    sample - q->shards[hint].first < q->shards[hint].num_samples)
		return hint;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (q->shards[middle].first <= sample)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void records_describe(const struct input *in, uint64_t sample, char *out,
		      size_t size)
{
	const struct records *q = (const struct records *)in;
	const struct record_shard *s = &q->shards[find_shard(q, 0, sample)];

	snprintf(out, size, "%s, sample %" PRIu64, s->path, sample - s->first);
}

/* --- bytes of a sample --------------------------------------------------- */

static int no_room(struct input_error *error)
{
	return input_refuse(error, -ENOMEM, "out of memory");
}

static int check_count(const struct record_shard *s, uint32_t n,
		       struct input_error *error)
{
	if (n == s->num_samples)
		return 0;
	return input_refuse(error, -EBADMSG,
			    "the file has %u samples, but index.json has "
			    "%" PRIu64,
			    n, s->num_samples);
}

/* LitData compresses a chunk in frames, or not at all. */
static int check_head(struct records_reader *r, const struct record_shard *s,
		      struct input_error *error)
{
	static const char magic[8] = "LDFZ01\0";
	uint8_t head[16];
	bool may_be_framed = s->packing == RECORD_FRAMES && r->file.size >= 16;
	int code = input_file_read(&r->file, head, may_be_framed ? 16 : 4, 0,
				   error);

	if (code)
		return code;
	r->packing = s->packing;
	if (may_be_framed && !memcmp(head, magic, sizeof(magic)))
		return check_count(s, load32(head + 12), error);
	if (s->packing == RECORD_FRAMES)
		r->packing = RECORD_PLAIN;
	return check_count(s, load32(head), error);
}

static int open_shard(struct records_reader *r, size_t number,
		      struct input_error *error)
{
	struct records *q = (struct records *)r->reader.input;
	const struct record_shard *s = &q->shards[number];
	int code;

	if (r->is_open && r->shard == number)
		return 0;
	r->is_open = false;
	r->frame_samples = 0;
	if (r->copy)
		r->file.fd = -1; /* the copy's */
	unpacked_put(&q->unpacked, &r->copy);
	if (s->packing == RECORD_WHOLE) {
		input_file_close(&r->file);
		code = unpacked_get(&q->unpacked, s->path, number, s->most,
				    &r->copy, error);
		if (code)
			return code;
		r->file = (struct input_file){ unpacked_fd(r->copy), number,
					       unpacked_size(r->copy) };
	} else {
		code = input_file_switch(&r->file, s->path, number, error);
	}
	code = code ? code : check_head(r, s, error);
	r->shard = number;
	r->is_open = !code;
	return code;
}

static int read_offsets(const struct records_reader *r, uint64_t table,
			uint64_t i, uint64_t *begin, uint64_t *end,
			struct input_error *error)
{
	uint8_t pair[8];
	int code = input_file_read(&r->file, pair, sizeof(pair), table + 4 * i,
				   error);

	if (code)
		return code;
	*begin = load32(pair);
	*end = load32(pair + 4);
	if (*end < *begin || *end - *begin > INPUT_VALUE_MAX)
		return input_refuse(error, -EBADMSG,
				    "offsets %" PRIu64 " and %" PRIu64, *begin,
				    *end);
	return 0;
}

static int read_plain(struct records_reader *r, uint64_t begin, uint64_t end,
		      const uint8_t **bytes, struct input_error *error)
{
	if (!range_ok(begin, end - begin, r->file.size))
		return input_refuse(error, -EBADMSG,
				    "ends at byte %" PRIu64
				    ", but the file has %" PRIu64,
				    end, r->file.size);
	if (scratch_grow(&r->sample, end - begin + 1, 1))
		return no_room(error);
	*bytes = r->sample.p;
	return input_file_read(&r->file, r->sample.p, end - begin, begin,
			       error);
}

/* Finds the frame with a sample by bisection of the rows. */
static int find_frame(const struct records_reader *r, uint64_t sample,
		      uint8_t row[FRAME_ROW], struct input_error *error)
{
	const struct records *q = (const struct records *)r->reader.input;
	uint64_t samples = q->shards[r->shard].num_samples;
	uint64_t rows = FRAMES_HEAD + 4 * (samples + 1), low = 0, high;
	uint8_t head[FRAMES_HEAD];
	int code = input_file_read(&r->file, head, sizeof(head), 0, error);

	if (code)
		return code;
	high = load32(head + 20);
	while (high > low) {
		uint64_t middle = low + (high - low) / 2, first;

		code = input_file_read(&r->file, row, FRAME_ROW,
				       rows + middle * FRAME_ROW, error);
		if (code)
			return code;
		first = load32(row);
		if (sample < first)
			high = middle;
		else if (sample - first >= load32(row + 4))
			low = middle + 1;
		else
			return 0;
	}
	return input_refuse(error, -EBADMSG, "no frame has this sample");
}

static int load_frame(struct records_reader *r, uint64_t sample,
		      struct input_error *error)
{
	uint8_t row[FRAME_ROW];
	uint64_t at, size;
	const uint8_t *packed;
	int code;

	if (sample >= r->frame_first &&
	    sample - r->frame_first < r->frame_samples)
		return 0;
	r->frame_samples = 0;
	free(steal(r->frame));
	code = find_frame(r, sample, row, error);
	if (code)
		return code;
	at = load64(row + 8);
	size = load32(row + 16);
	if (!range_ok(at, size, r->file.size))
		return input_refuse(error, -EBADMSG,
				    "a frame outside of the file");
	code = read_plain(r, at, at + size, &packed, error);
	code = code ? code
		    : unpacked_block(packed, size, FRAME_MAX, &r->frame,
				     &r->frame_size, error);
	if (code)
		return code;
	r->frame_first = load32(row);
	r->frame_samples = load32(row + 4);
	return 0;
}

static int read_framed(struct records_reader *r, uint64_t sample,
		       const uint8_t **bytes, uint64_t *size,
		       struct input_error *error)
{
	uint64_t base, begin, end, unused;
	int code = load_frame(r, sample, error);

	code = code ? code
		    : read_offsets(r, FRAMES_HEAD, r->frame_first, &base,
				   &unused, error);
	code = code ? code
		    : read_offsets(r, FRAMES_HEAD, sample, &begin, &end, error);
	if (code)
		return code;
	if (begin < base || !range_ok(begin - base, end - begin, r->frame_size))
		return input_refuse(error, -EBADMSG, "ends outside of a frame");
	*bytes = r->frame + (begin - base);
	*size = end - begin;
	return 0;
}

static int read_bytes(struct records_reader *r, uint64_t sample,
		      const uint8_t **bytes, uint64_t *size,
		      struct input_error *error)
{
	const struct records *q = (const struct records *)r->reader.input;
	size_t number = find_shard(q, r->shard, sample);
	const struct record_shard *s = &q->shards[number];
	uint64_t begin, end;
	int code = open_shard(r, number, error);

	if (code)
		return code;
	sample -= s->first;
	if (r->packing == RECORD_FRAMES)
		return read_framed(r, sample, bytes, size, error);
	code = read_offsets(r, OFFSETS, sample, &begin, &end, error);
	code = code ? code : read_plain(r, begin, end, bytes, error);
	if (code)
		return code;
	*size = end - begin;
	if (r->packing != RECORD_SAMPLES)
		return 0;
	free(steal(r->single));
	code = unpacked_block(*bytes, *size, INPUT_VALUE_MAX, &r->single, size,
			      error);
	*bytes = r->single;
	return code;
}

/* --- values -------------------------------------------------------------- */

static bool same_array(const struct input_field *f,
		       const struct record_array *a)
{
	return !strcmp(f->dtype, a->dtype) && f->ndim == a->ndim &&
	       !memcmp(f->shape, a->shape, a->ndim * sizeof(*a->shape));
}

/* Finds the elements of an array. */
static int parse_array(const struct record_column *c, const uint8_t *bytes,
		       uint64_t size, struct record_array *out,
		       struct input_error *error)
{
	uint64_t n;

	*out = c->array;
	if (!c->codec->array(c, bytes, size, out) || out->at > size ||
	    !out->ndim || out->ndim > BETON_ARRAY_MAX_NDIM)
		return input_refuse(error, -EBADMSG,
				    "not an array of numbers "
				    "of 1 to 8 dimensions");
	n = out->element;
	for (uint32_t d = 0; d < out->ndim; d++)
		if (!mul_ok(n, out->shape[d], &n))
			n = UINT64_MAX;
	if (n != size - out->at)
		return input_refuse(error, -EBADMSG,
				    "an array of %" PRIu64 " bytes, but there "
				    "are %" PRIu64,
				    n, size - out->at);
	return 0;
}

static int read_value(const struct record_column *c,
		      const struct input_field *f, const uint8_t *bytes,
		      uint64_t size, struct input_value *out,
		      struct input_error *error)
{
	struct record_array a;
	int r;

	*out = (struct input_value){ .bytes = bytes, .size = size };
	if (f->refused[0])
		return input_refuse(error, -ENOTSUP, "%s", f->refused);
	if (c->codec->read)
		return c->codec->read(c->codec, bytes, size, out, error);
	if (!c->codec->array)
		return input_check_value(f, out, error);
	r = parse_array(c, bytes, size, &a, error);
	if (r)
		return r;
	if (!same_array(f, &a))
		return input_refuse(error, -EBADMSG,
				    "an array of another shape or dtype than "
				    "in the first sample");
	out->bytes = bytes + a.at;
	out->size = size - a.at;
	return 0;
}

struct cursor {
	const uint8_t *sizes;
	uint64_t sizes_left;
	const uint8_t *values;
	uint64_t values_left;
};

static int begin_sample(const struct records *q, const uint8_t *bytes,
			uint64_t size, struct cursor *c,
			struct input_error *error)
{
	uint64_t sizes = 0;

	for (size_t i = 0; i < q->in.num_fields; i++)
		sizes += q->columns[i].fixed ? 0 : 4;
	if (sizes > size)
		return input_refuse(error, -EBADMSG,
				    "a sample of %" PRIu64 " bytes", size);
	*c = (struct cursor){ bytes, sizes, bytes + sizes, size - sizes };
	return 0;
}

static int next_value(struct cursor *c, const struct record_column *column,
		      const uint8_t **bytes, uint64_t *size,
		      struct input_error *error)
{
	*size = column->fixed;
	if (!*size) {
		*size = load32(c->sizes);
		c->sizes += 4;
	}
	if (*size > c->values_left)
		return input_refuse(error, -EBADMSG,
				    "a value of %" PRIu64 " bytes, but the "
				    "sample has %" PRIu64 " more",
				    *size, c->values_left);
	*bytes = c->values;
	c->values += *size;
	c->values_left -= *size;
	return 0;
}

int records_read(struct input_reader *reader, uint64_t sample,
		 const bool *wanted, struct input_value *values,
		 struct input_error *error)
{
	struct records_reader *r = (struct records_reader *)reader;
	const struct records *q = (const struct records *)reader->input;
	const uint8_t *bytes;
	struct input_error why;
	struct cursor c = { 0 };
	uint64_t size;
	int code = read_bytes(r, sample, &bytes, &size, error);

	code = code ? code : begin_sample(q, bytes, size, &c, error);
	for (size_t i = 0; i < q->in.num_fields && !code; i++) {
		const struct input_field *f = &q->in.fields[i];

		code = next_value(&c, &q->columns[i], &bytes, &size, &why);
		if (!code && wanted[i])
			code = read_value(&q->columns[i], f, bytes, size,
					  &values[i], &why);
		if (code)
			input_refuse(error, code, "column '%.40s': %.100s",
				     f->name, why.why);
	}
	return code;
}

/* --- readers ------------------------------------------------------------- */

int records_reader_open(struct input *in, struct input_reader **out)
{
	struct records_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->reader.input = in;
	r->file.fd = -1;
	*out = &r->reader;
	return 0;
}

void records_reader_close(struct input_reader *reader)
{
	struct records_reader *r = (struct records_reader *)reader;
	struct records *q;

	if (!r)
		return;
	q = (struct records *)reader->input;
	if (!r->copy)
		input_file_close(&r->file);
	unpacked_put(&q->unpacked, &r->copy);
	scratch_fini(&r->sample);
	free(r->frame);
	free(r->single);
	free(r);
}

/* --- the first samples --------------------------------------------------- */

/* Gives an array the shape that it has in the first sample. */
static void take_shape(struct records *q, size_t i, const uint8_t *bytes,
		       uint64_t size)
{
	struct input_field *f = &q->in.fields[i];
	struct record_array a;
	struct input_error error;

	if (parse_array(&q->columns[i], bytes, size, &a, &error)) {
		snprintf(f->refused, sizeof(f->refused),
			 "%.100s: leave the column out with --fields",
			 error.why);
		return;
	}
	memcpy(f->dtype, a.dtype, sizeof(f->dtype));
	memcpy(f->shape, a.shape, sizeof(f->shape));
	f->ndim = a.ndim;
}

static int look_at(struct records *q, struct records_reader *r, uint64_t sample,
		   unsigned *images, unsigned *others)
{
	struct input_error error;
	const uint8_t *bytes;
	struct cursor c = { 0 };
	uint64_t size;
	int code = read_bytes(r, sample, &bytes, &size, &error);

	code = code ? code : begin_sample(q, bytes, size, &c, &error);
	for (size_t i = 0; i < q->in.num_fields && !code; i++) {
		code = next_value(&c, &q->columns[i], &bytes, &size, &error);
		if (code)
			break;
		if (q->columns[i].codec->array && !sample)
			take_shape(q, i, bytes, size);
		if (input_is_image(bytes, size))
			images[i]++;
		else
			others[i]++;
	}
	/* Readers report a damaged sample, but a shape has to be known. */
	if (!code || sample)
		return 0;
	log_error(q->in.log, "%s: sample 0: %s", q->shards[0].path, error.why);
	return code;
}

static int look(struct records *q)
{
	unsigned images[INPUT_FIELDS_MAX] = { 0 };
	unsigned others[INPUT_FIELDS_MAX] = { 0 };
	struct input_reader *r;
	uint64_t n = min_u64(q->in.num_samples, LOOK_AT);
	int code = 0;

	if (records_reader_open(&q->in, &r))
		return no_memory(q->in.log);
	/* Only the first shard, so that it is read once. */
	for (uint64_t i = 0; i < n && !code; i++)
		if (i < q->shards[0].num_samples)
			code = look_at(q, (struct records_reader *)r, i, images,
				       others);
	records_reader_close(r);
	for (size_t i = 0; i < q->in.num_fields; i++)
		if (q->in.fields[i].type == INPUT_BYTES &&
		    !q->in.fields[i].refused[0] && images[i] && !others[i])
			q->in.fields[i].type = INPUT_IMAGE;
	return code;
}

static int new_records(const struct input_kind *kind, struct log *log,
		       struct records **out)
{
	struct records *q = calloc(1, sizeof(*q));

	if (!q)
		return no_memory(log);
	q->in.kind = kind;
	q->in.log = log;
	unpacked_init(&q->unpacked);
	*out = q;
	return 0;
}

int records_open(const struct input_kind *kind, const struct input_path *paths,
		 size_t num_paths, struct log *log, records_add_fn *add,
		 struct input **out)
{
	struct records *q;
	json_t *first = NULL;
	int r = new_records(kind, log, &q);

	if (r)
		return r;
	for (size_t i = 0; i < num_paths && !r; i++)
		r = add(q, paths[i].path, &first);
	json_decref(first);
	r = r ? r : look(q);
	if (r)
		records_close(&q->in);
	else
		*out = &q->in;
	return r;
}
