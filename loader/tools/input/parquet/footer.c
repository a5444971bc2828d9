/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/parquet/footer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "loader/tools/input/foreign/file.h"
#include "loader/tools/input/parquet/thrift.h"

enum {
	TAIL = 8, /* u32 size of the footer, "PAR1" */
	/* The least bytes of a column's description that is accepted. */
	CHUNK_LEAST = 8,
	NODES_MAX = 1 << 16,
};

static const uint64_t FOOTER_MAX = (uint64_t)256 << 20;

/* --- schema -------------------------------------------------------------- */

/* The older notation of meanings, by its numbers. */
static const struct converted {
	enum pq_meaning meaning;
	unsigned bits;
	bool is_signed;
} converted[] = {
	[0] = { PQ_TEXT, 0, false },	  [1] = { PQ_MAP, 0, false },
	[2] = { PQ_MAP, 0, false },	  [3] = { PQ_LIST, 0, false },
	[4] = { PQ_TEXT, 0, false },	  [5] = { PQ_DECIMAL, 0, false },
	[6] = { PQ_TIME, 0, false },	  [7] = { PQ_TIME, 0, false },
	[8] = { PQ_TIME, 0, false },	  [9] = { PQ_TIME, 0, false },
	[10] = { PQ_TIME, 0, false },	  [11] = { PQ_INTEGER, 8, false },
	[12] = { PQ_INTEGER, 16, false }, [13] = { PQ_INTEGER, 32, false },
	[14] = { PQ_INTEGER, 64, false }, [15] = { PQ_INTEGER, 8, true },
	[16] = { PQ_INTEGER, 16, true },  [17] = { PQ_INTEGER, 32, true },
	[18] = { PQ_INTEGER, 64, true },  [19] = { PQ_JSON, 0, false },
	[20] = { PQ_PLAIN, 0, false },	  [21] = { PQ_PLAIN, 0, false },
};

static void read_converted(int64_t number, struct pq_node *node)
{
	if (number < 0 || number >= (int64_t)ARRAY_LEN(converted))
		return;
	node->meaning = converted[number].meaning;
	node->bits = converted[number].bits;
	node->is_signed = converted[number].is_signed;
}

static void read_integer(struct thrift *t, struct pq_node *node)
{
	struct thrift_field f = { 0 };

	node->meaning = PQ_INTEGER;
	while (thrift_next(t, &f)) {
		if (f.id == 1)
			node->bits = (unsigned)thrift_int(t, &f);
		else if (f.id == 2)
			node->is_signed = thrift_bool(t, &f);
		else
			thrift_skip(t, &f);
	}
}

/* The newer notation is a union: one member is present. */
static void read_logical(struct thrift *t, struct pq_node *node)
{
	static const enum pq_meaning by_id[] = {
		[1] = PQ_TEXT,	   [2] = PQ_MAP,      [3] = PQ_LIST,
		[4] = PQ_TEXT,	   [5] = PQ_DECIMAL,  [6] = PQ_TIME,
		[7] = PQ_TIME,	   [8] = PQ_TIME,     [9] = PQ_PLAIN,
		[10] = PQ_INTEGER, [11] = PQ_NOTHING, [12] = PQ_JSON,
		[13] = PQ_PLAIN,   [14] = PQ_PLAIN,   [15] = PQ_FLOAT16,
	};
	struct thrift_field f = { 0 };

	while (thrift_next(t, &f)) {
		if (f.id == 10 && thrift_struct(t, &f)) {
			read_integer(t, node);
			continue;
		}
		if (f.id > 0 && f.id < (int32_t)ARRAY_LEN(by_id))
			node->meaning = by_id[f.id];
		thrift_skip(t, &f);
	}
}

static void read_node(struct thrift *t, struct pq_node *node)
{
	struct thrift_field f = { 0 };
	bool has_logical = false;

	*node = (struct pq_node){ .type = PQ_GROUP, .name = "" };
	while (thrift_next(t, &f)) {
		if (f.id == 1)
			node->type = (enum pq_type)thrift_int(t, &f);
		else if (f.id == 2)
			node->length = (uint32_t)thrift_int(t, &f);
		else if (f.id == 3)
			node->repetition =
				(enum pq_repetition)thrift_int(t, &f);
		else if (f.id == 4)
			node->name = thrift_binary(t, &f, &node->name_size);
		else if (f.id == 5)
			node->num_children = (uint32_t)thrift_int(t, &f);
		else if (f.id == 6 && !has_logical)
			read_converted(thrift_int(t, &f), node);
		else if (f.id == 10 && thrift_struct(t, &f)) {
			has_logical = true;
			read_logical(t, node);
		} else
			thrift_skip(t, &f);
	}
	if ((node->type == PQ_GROUP) != (node->num_children > 0) ||
	    node->type < PQ_GROUP || node->type > PQ_FIXED_BYTES ||
	    node->repetition > PQ_REPEATED)
		t->bad = true;
}

/* Returns whether the numbers of children make one tree. */
static bool is_tree(const struct pq_node *nodes, size_t n)
{
	uint64_t open = 1;

	for (size_t i = 0; i < n; i++) {
		if (!open)
			return false;
		open += nodes[i].num_children;
		open--;
	}
	return n && !open;
}

static int read_schema(struct thrift *t, const struct thrift_field *field,
		       struct pq_footer *out)
{
	uint64_t n = thrift_list(t, field, THRIFT_STRUCT);

	if (out->nodes || n > NODES_MAX)
		t->bad = true;
	if (t->bad)
		return 0;
	out->nodes = calloc(n + 1, sizeof(*out->nodes));
	if (!out->nodes)
		return -ENOMEM;
	out->num_nodes = n;
	for (uint64_t i = 0; i < n && !t->bad; i++) {
		read_node(t, &out->nodes[i]);
		out->num_leaves += out->nodes[i].type != PQ_GROUP;
	}
	if (!t->bad && !is_tree(out->nodes, n))
		t->bad = true;
	return 0;
}

/* --- row groups ---------------------------------------------------------- */

struct chunk_meta {
	int64_t type;
	int64_t codec;
	int64_t num_values;
	int64_t size;
	int64_t data_at;
	int64_t dictionary_at;
};

static void read_chunk_meta(struct thrift *t, struct chunk_meta *m)
{
	struct thrift_field f = { 0 };

	while (thrift_next(t, &f)) {
		int64_t *to = f.id == 1	   ? &m->type
			      : f.id == 4  ? &m->codec
			      : f.id == 5  ? &m->num_values
			      : f.id == 7  ? &m->size
			      : f.id == 9  ? &m->data_at
			      : f.id == 11 ? &m->dictionary_at
					   : NULL;

		if (to)
			*to = thrift_int(t, &f);
		else
			thrift_skip(t, &f);
	}
}

static bool place_chunk(const struct chunk_meta *m, uint64_t file_size,
			struct pq_chunk *out)
{
	int64_t at = m->data_at;

	if (m->dictionary_at > 0 && m->dictionary_at < at)
		at = m->dictionary_at;
	if (at < 0 || m->size < 0 || m->num_values < 0 ||
	    !range_ok((uint64_t)at, (uint64_t)m->size, file_size) ||
	    m->type < PQ_BOOL || m->type > PQ_FIXED_BYTES)
		return false;
	*out = (struct pq_chunk){
		.at = (uint64_t)at,
		.size = (uint64_t)m->size,
		.num_values = (uint64_t)m->num_values,
		.codec = m->codec < 0 || m->codec > INT8_MAX ? -1
							     : (int)m->codec,
		.type = (enum pq_type)m->type,
	};
	return true;
}

static void read_chunk(struct thrift *t, uint64_t file_size,
		       struct pq_chunk *out)
{
	struct chunk_meta m = { .type = -1, .data_at = -1, .num_values = -1 };
	bool is_encrypted = false, is_elsewhere = false;
	struct thrift_field f = { 0 };

	while (thrift_next(t, &f)) {
		if (f.id == 3 && thrift_struct(t, &f)) {
			read_chunk_meta(t, &m);
			continue;
		}
		is_elsewhere |= f.id == 1;
		is_encrypted |= f.id == 8 || f.id == 9;
		thrift_skip(t, &f);
	}
	if (is_encrypted) {
		*out = (struct pq_chunk){ .is_encrypted = true };
		return;
	}
	if (is_elsewhere || !place_chunk(&m, file_size, out))
		t->bad = true;
}

static void read_chunks(struct thrift *t, const struct thrift_field *field,
			uint64_t file_size, size_t num_leaves,
			struct pq_chunk *out)
{
	uint64_t n = thrift_list(t, field, THRIFT_STRUCT);

	if (n != num_leaves)
		t->bad = true;
	for (uint64_t i = 0; i < n && !t->bad; i++)
		read_chunk(t, file_size, &out[i]);
}

static void read_group(struct thrift *t, uint64_t file_size, size_t num_leaves,
		       struct pq_group *out)
{
	struct thrift_field f = { 0 };
	bool has_chunks = false;
	int64_t rows = -1;

	while (thrift_next(t, &f)) {
		if (f.id == 1) {
			read_chunks(t, &f, file_size, num_leaves, out->chunks);
			has_chunks = true;
		} else if (f.id == 3)
			rows = thrift_int(t, &f);
		else
			thrift_skip(t, &f);
	}
	if (rows < 0 || !has_chunks)
		t->bad = true;
	out->rows = (uint64_t)rows;
}

/* The schema comes first, so the number of columns is known. */
static int read_groups(struct thrift *t, const struct thrift_field *field,
		       uint64_t file_size, struct pq_footer *out)
{
	uint64_t n = thrift_list(t, field, THRIFT_STRUCT), chunks;

	if (out->groups || !out->nodes ||
	    !mul_ok(n, out->num_leaves, &chunks) ||
	    chunks > (uint64_t)(t->end - t->at) / CHUNK_LEAST)
		t->bad = true;
	if (t->bad)
		return 0;
	out->groups = calloc(n + 1, sizeof(*out->groups));
	out->chunks = calloc(chunks + 1, sizeof(*out->chunks));
	if (!out->groups || !out->chunks)
		return -ENOMEM;
	for (uint64_t i = 0; i < n && !t->bad; i++) {
		out->groups[i].chunks = out->chunks + i * out->num_leaves;
		read_group(t, file_size, out->num_leaves, &out->groups[i]);
	}
	out->num_groups = n;
	return 0;
}

/* --- the footer ---------------------------------------------------------- */

static void read_pair(struct thrift *t, struct pq_footer *out)
{
	static const char key[] = "huggingface";
	struct thrift_field f = { 0 };
	bool is_features = false;
	const char *text;
	size_t n;

	while (thrift_next(t, &f)) {
		if (f.id != 1 && f.id != 2) {
			thrift_skip(t, &f);
			continue;
		}
		text = thrift_binary(t, &f, &n);
		if (f.id == 1)
			is_features = n == strlen(key) && !memcmp(text, key, n);
		else if (is_features) {
			out->features = text;
			out->features_size = n;
		}
	}
}

static void read_pairs(struct thrift *t, const struct thrift_field *field,
		       struct pq_footer *out)
{
	uint64_t n = thrift_list(t, field, THRIFT_STRUCT);

	for (uint64_t i = 0; i < n && !t->bad; i++)
		read_pair(t, out);
}

static int parse(struct pq_footer *out, size_t size, uint64_t file_size)
{
	struct thrift t = { out->bytes, out->bytes + size, false };
	struct thrift_field f = { 0 };
	int r = 0;

	while (!r && thrift_next(&t, &f)) {
		if (f.id == 2)
			r = read_schema(&t, &f, out);
		else if (f.id == 4)
			r = read_groups(&t, &f, file_size, out);
		else if (f.id == 5)
			read_pairs(&t, &f, out);
		else
			thrift_skip(&t, &f);
	}
	if (!r && (t.bad || !out->nodes || !out->groups))
		r = -EBADMSG;
	return r;
}

static int read_bytes(const struct input_file *file, struct pq_footer *out,
		      size_t *size, struct input_error *error)
{
	uint8_t tail[TAIL];
	uint32_t n;
	int r;

	if (file->size < TAIL + 4)
		return input_refuse(error, -EBADMSG,
				    "not a Parquet file: %" PRIu64 " bytes",
				    file->size);
	r = input_file_read(file, tail, TAIL, file->size - TAIL, error);
	if (r)
		return r;
	if (!memcmp(tail + 4, "PARE", 4))
		return input_refuse(error, -ENOTSUP,
				    "encrypted: write it again without "
				    "encryption");
	n = load32(tail);
	if (memcmp(tail + 4, "PAR1", 4) != 0)
		return input_refuse(error, -EBADMSG,
				    "does not end in PAR1: not a Parquet file, "
				    "or incomplete");
	if (n > FOOTER_MAX || n > file->size - TAIL - 4)
		return input_refuse(
			error, -EBADMSG,
			"a footer of %u bytes; it may have %" PRIu64, n,
			min_u64(FOOTER_MAX, file->size - TAIL - 4));
	out->bytes = malloc(n + 1);
	if (!out->bytes)
		return input_refuse(error, -ENOMEM, "out of memory");
	*size = n;
	return input_file_read(file, out->bytes, n, file->size - TAIL - n,
			       error);
}

int pq_footer_open(const char *path, struct log *log, struct pq_footer *out)
{
	struct input_file file = INPUT_FILE_NONE;
	struct input_error error;
	size_t size = 0;
	int r;

	*out = (struct pq_footer){ 0 };
	r = input_file_switch(&file, path, 0, &error);
	r = r ? r : read_bytes(&file, out, &size, &error);
	if (!r) {
		r = parse(out, size, file.size);
		if (r == -ENOMEM)
			input_refuse(&error, r, "out of memory");
		else if (r)
			input_refuse(&error, r, "damaged footer");
	}
	input_file_close(&file);
	if (!r)
		return 0;
	log_error(log, "%s: %s", path, error.why);
	pq_footer_close(out);
	return r;
}

void pq_footer_close(struct pq_footer *f)
{
	free(f->bytes);
	free(f->nodes);
	free(f->groups);
	free(f->chunks);
	*f = (struct pq_footer){ 0 };
}
