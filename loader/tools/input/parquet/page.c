/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/parquet/page.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "fs/util/cleanup.h"
#include "loader/tools/input/parquet/runs.h"
#include "loader/tools/input/parquet/thrift.h"
#include "loader/tools/input/parquet/unpack.h"

enum {
	HEADER_USUAL = 1 << 10,
	/* Statistics of long values make a header long. */
	HEADER_MAX = 1 << 20,
	PAGE_MAX = 256 << 20,
	PAGE_VALUES_MAX = 1 << 26,
	PAGES_MAX = 1 << 20, /* of a chunk */
	LEVELS = 1024,	     /* decoded together */
};

/* Numbers of the format. */
enum { PAGE_DATA, PAGE_INDEX, PAGE_DICTIONARY, PAGE_DATA_2 };
enum {
	PLAIN = 0,
	PLAIN_DICTIONARY = 2,
	RLE = 3,
	DELTA = 5,
	DELTA_LENGTH = 6,
	RLE_DICTIONARY = 8,
	SPLIT = 9,
};

static int damaged(const struct pq_source *s, uint64_t at, const char *what)
{
	return input_refuse(s->error, -EBADMSG,
			    "the page at byte %" PRIu64 ": "
			    "%s",
			    at, what);
}

static int no_memory(const struct pq_source *s)
{
	return input_refuse(s->error, -ENOMEM, "out of memory");
}

/* --- headers ------------------------------------------------------------- */

struct header {
	int64_t type;
	int64_t size;
	int64_t packed_size;
	int64_t num_values;
	int64_t encoding;
	int64_t level_encoding; /* PAGE_DATA */
	/* PAGE_DATA_2: bytes of levels before the values, never compressed. */
	int64_t definitions_size;
	int64_t repetitions_size;
	bool is_packed;
	uint64_t own_size;
};

static void parse_part(struct thrift *t, int64_t type, struct header *h)
{
	struct thrift_field f = { 0 };
	bool is_2 = type == PAGE_DATA_2;

	while (thrift_next(t, &f)) {
		if (f.id == 1)
			h->num_values = thrift_int(t, &f);
		else if (f.id == (is_2 ? 4 : 2))
			h->encoding = thrift_int(t, &f);
		else if (f.id == 5 && is_2)
			h->definitions_size = thrift_int(t, &f);
		else if (f.id == 6 && is_2)
			h->repetitions_size = thrift_int(t, &f);
		else if (f.id == 7 && is_2)
			h->is_packed = thrift_bool(t, &f);
		else if (f.id == 3 && type == PAGE_DATA)
			h->level_encoding = thrift_int(t, &f);
		else
			thrift_skip(t, &f);
	}
}

static bool parse_header(const uint8_t *bytes, size_t size, struct header *h)
{
	struct thrift t = { bytes, bytes + size, false };
	struct thrift_field f = { 0 };

	*h = (struct header){ .type = -1,
			      .is_packed = true,
			      .num_values = -1,
			      .level_encoding = RLE };
	while (thrift_next(&t, &f)) {
		if (f.id == 1)
			h->type = thrift_int(&t, &f);
		else if (f.id == 2)
			h->size = thrift_int(&t, &f);
		else if (f.id == 3)
			h->packed_size = thrift_int(&t, &f);
		else if (f.id == 5 && thrift_struct(&t, &f))
			parse_part(&t, PAGE_DATA, h);
		else if (f.id == 7 && thrift_struct(&t, &f))
			parse_part(&t, PAGE_DICTIONARY, h);
		else if (f.id == 8 && thrift_struct(&t, &f))
			parse_part(&t, PAGE_DATA_2, h);
		else
			thrift_skip(&t, &f);
	}
	h->own_size = (uint64_t)(t.at - bytes);
	return !t.bad;
}

static int check_header(const struct pq_source *s, uint64_t at,
			const struct header *h)
{
	uint64_t end = s->chunk->at + s->chunk->size;

	if (h->size < 0 || h->size > PAGE_MAX || h->packed_size < 0)
		return input_refuse(s->error, -EBADMSG,
				    "the page at byte %" PRIu64 " has %" PRId64
				    " bytes; it may have %d",
				    at, h->size, PAGE_MAX);
	if (!range_ok(at + h->own_size, (uint64_t)h->packed_size, end))
		return damaged(s, at, "ends outside of its column");
	if (h->type == PAGE_INDEX)
		return 0;
	if (h->type < 0 || h->type > PAGE_DATA_2)
		return damaged(s, at, "unknown type");
	if (h->num_values < 0 || h->num_values > PAGE_VALUES_MAX)
		return input_refuse(s->error, -EBADMSG,
				    "the page at byte %" PRIu64 " has %" PRId64
				    " values; it may have %d",
				    at, h->num_values, PAGE_VALUES_MAX);
	if (h->definitions_size < 0 || h->repetitions_size < 0 ||
	    h->definitions_size + h->repetitions_size > h->size ||
	    h->definitions_size + h->repetitions_size > h->packed_size)
		return damaged(s, at, "levels longer than the page");
	return 0;
}

static int read_header(const struct pq_source *s, uint64_t at, struct header *h)
{
	uint64_t end = s->chunk->at + s->chunk->size;
	cleanup_free uint8_t *more = NULL;
	uint8_t usual[HEADER_USUAL];
	uint64_t n = min_u64(end - at, HEADER_USUAL);
	int r = input_file_read(s->file, usual, n, at, s->error);

	if (r)
		return r;
	if (!parse_header(usual, n, h)) {
		n = min_u64(end - at, HEADER_MAX);
		more = malloc(n);
		if (!more)
			return no_memory(s);
		r = input_file_read(s->file, more, n, at, s->error);
		if (r)
			return r;
		if (!parse_header(more, n, h))
			return damaged(s, at, "damaged header");
	}
	return check_header(s, at, h);
}

/* --- finding pages ------------------------------------------------------- */

static int add_place(const struct pq_source *s, uint64_t at, uint64_t first,
		     struct pq_pages **pages)
{
	size_t n = *pages ? (*pages)->n : 0;
	struct pq_pages *more = *pages;

	if (n == PAGES_MAX)
		return input_refuse(s->error, -EFBIG,
				    "more than %d pages in a row group",
				    PAGES_MAX);
	if (!n || is_power_of_two(n + 1)) {
		more = realloc(*pages,
			       sizeof(*more) +
				       (2 * n + 2) * sizeof(more->place[0]));
		if (!more)
			return no_memory(s);
		if (!*pages)
			*more = (struct pq_pages){ 0 };
		*pages = more;
	}
	more->place[n] = (struct pq_place){ at, first };
	more->n = n + 1;
	return 0;
}

static int walk(const struct pq_source *s, struct pq_pages **pages)
{
	uint64_t at = s->chunk->at, end = at + s->chunk->size;
	uint64_t values = 0, dictionary_at = 0;
	struct header h;
	int r = 0;

	while (!r && at < end && values < s->chunk->num_values) {
		r = read_header(s, at, &h);
		if (r)
			return r;
		if (h.type == PAGE_DICTIONARY)
			dictionary_at = at;
		else if (h.type != PAGE_INDEX && h.num_values) {
			r = add_place(s, at, values, pages);
			values += (uint64_t)h.num_values;
		}
		at += h.own_size + (uint64_t)h.packed_size;
	}
	if (!r && values != s->chunk->num_values)
		return input_refuse(s->error, -EBADMSG,
				    "pages with %" PRIu64 " of %" PRIu64
				    " values",
				    values, s->chunk->num_values);
	/* The end of the last page. */
	r = r ? r : add_place(s, at, values, pages);
	if (r)
		return r;
	(*pages)->n--;
	(*pages)->dictionary_at = dictionary_at;
	return 0;
}

int pq_pages_find(const struct pq_source *s, struct pq_pages **out)
{
	cleanup_free struct pq_pages *pages = NULL;
	int r = walk(s, &pages);

	if (!r)
		*out = steal(pages);
	return r;
}

/* --- levels -------------------------------------------------------------- */

static unsigned level_bits(unsigned level)
{
	return level ? 32 - (unsigned)__builtin_clz(level) : 0;
}

/* Returns the level of repetition of a value of lists of one length. */
static uint32_t expected_repetition(const struct pq_leaf *leaf, uint64_t value)
{
	uint32_t level = 0;

	while (level < leaf->repetitions && value % leaf->stride[level])
		level++;
	return level;
}

static int check_repetitions(const struct pq_source *s, uint64_t at,
			     const uint8_t *bytes, size_t size, uint64_t first,
			     uint64_t n)
{
	const struct pq_leaf *leaf = s->leaf;
	uint32_t levels[LEVELS];
	struct runs runs;

	if (!runs_begin(&runs, bytes, size, level_bits(leaf->repetitions)))
		return damaged(s, at, "damaged levels");
	for (uint64_t i = 0; i < n; i += LEVELS) {
		uint64_t some = min_u64(LEVELS, n - i);

		if (!runs_read(&runs, levels, some))
			return damaged(s, at, "damaged levels");
		for (uint64_t j = 0; j < some; j++) {
			uint64_t value = first + i + j;

			if (levels[j] != expected_repetition(leaf, value))
				return input_refuse(
					s->error, -EBADMSG,
					"a list of another length than in the "
					"first row: list %" PRIu64
					" of the row group",
					value / leaf->stride[0]);
		}
	}
	return 0;
}

/* Notes nulls among some levels. */
static int note_nulls(const struct pq_source *s, struct pq_page *p, uint64_t i,
		      const uint32_t *levels, uint64_t n)
{
	uint32_t *slots;

	if (!p->has_nulls) {
		if (scratch_grow(&p->slots, p->num_values, sizeof(*slots)))
			return no_memory(s);
		slots = p->slots.p;
		for (uint64_t j = 0; j < i; j++)
			slots[j] = (uint32_t)j;
		p->has_nulls = true;
	}
	slots = p->slots.p;
	for (uint64_t j = 0; j < n; j++) {
		bool is_null = levels[j] != s->leaf->definitions;

		slots[i + j] =
			is_null ? UINT32_MAX : (uint32_t)p->num_present++;
	}
	return 0;
}

static bool has_null(const uint32_t *levels, uint64_t n, uint32_t level)
{
	uint32_t differs = 0;

	for (uint64_t i = 0; i < n; i++)
		differs |= levels[i] ^ level;
	return differs;
}

static int read_definitions(const struct pq_source *s, struct pq_page *p,
			    const uint8_t *bytes, size_t size)
{
	uint32_t levels[LEVELS];
	struct runs runs;
	int r = 0;

	if (!runs_begin(&runs, bytes, size, level_bits(s->leaf->definitions)))
		return damaged(s, p->at, "damaged levels");
	for (uint64_t i = 0; i < p->num_values && !r; i += LEVELS) {
		uint64_t some = min_u64(LEVELS, p->num_values - i);

		if (!runs_read(&runs, levels, some))
			return damaged(s, p->at, "damaged levels");
		if (p->has_nulls ||
		    has_null(levels, some, s->leaf->definitions))
			r = note_nulls(s, p, i, levels, some);
		else
			p->num_present += some;
	}
	if (!r && p->has_nulls && s->leaf->repetitions)
		return damaged(s, p->at, "a null, or a list without elements");
	return r;
}

/* --- values -------------------------------------------------------------- */

static int find_spans(const struct pq_source *s, struct pq_page *p)
{
	uint64_t at = 0, n = p->num_present;
	struct pq_span *span;

	if (n > p->values_size / 4)
		return damaged(s, p->at, "fewer bytes than values");
	if (scratch_grow(&p->decoded, n, sizeof(*span)))
		return no_memory(s);
	span = p->decoded.p;
	for (uint64_t i = 0; i < n; i++) {
		if (!range_ok(at, 4, p->values_size))
			return damaged(s, p->at, "a value outside of it");
		span[i].size = load32(p->values + at);
		at += 4;
		if (!range_ok(at, span[i].size, p->values_size))
			return damaged(s, p->at, "a value outside of it");
		span[i].at = (uint32_t)at;
		at += span[i].size;
	}
	p->form = PQ_SPANS;
	return 0;
}

static uint32_t width_of(const struct pq_leaf *leaf)
{
	switch (leaf->type) {
	case PQ_INT32:
	case PQ_FLOAT:
		return 4;
	case PQ_INT64:
	case PQ_DOUBLE:
		return 8;
	case PQ_INT96:
		return 12;
	case PQ_FIXED_BYTES:
		return leaf->length;
	default:
		return 0;
	}
}

static int read_plain(const struct pq_source *s, struct pq_page *p)
{
	uint64_t need;

	if (s->leaf->type == PQ_BYTES)
		return find_spans(s, p);
	p->width = width_of(s->leaf);
	p->form = s->leaf->type == PQ_BOOL ? PQ_BITS : PQ_FIXED;
	need = p->form == PQ_BITS ? (p->num_present + 7) / 8
				  : p->num_present * p->width;
	return need <= p->values_size
		       ? 0
		       : damaged(s, p->at, "fewer bytes than values");
}

static int read_indexes(const struct pq_source *s, struct pq_page *p,
			const struct pq_page *dictionary)
{
	uint32_t *index, most = 0;
	struct runs runs;

	p->form = PQ_INDEX;
	if (!p->num_present)
		return 0;
	if (!dictionary->at)
		return damaged(s, p->at, "no dictionary");
	if (scratch_grow(&p->decoded, p->num_present, sizeof(*index)))
		return no_memory(s);
	index = p->decoded.p;
	if (!p->values_size ||
	    !runs_begin(&runs, p->values + 1, p->values_size - 1,
			p->values[0]) ||
	    !runs_read(&runs, index, p->num_present))
		return damaged(s, p->at, "damaged indexes");
	for (uint64_t i = 0; i < p->num_present; i++)
		most = index[i] > most ? index[i] : most;
	if (most >= dictionary->num_values)
		return damaged(s, p->at, "an index outside of the dictionary");
	return 0;
}

static int read_flags(const struct pq_source *s, struct pq_page *p)
{
	struct runs runs;

	if (scratch_grow(&p->decoded, p->num_present, sizeof(uint32_t)))
		return no_memory(s);
	p->form = PQ_FLAGS;
	if (p->values_size < 4 || load32(p->values) > p->values_size - 4 ||
	    !runs_begin(&runs, p->values + 4, load32(p->values), 1) ||
	    !runs_read(&runs, p->decoded.p, p->num_present))
		return damaged(s, p->at, "damaged booleans");
	return 0;
}

static int read_deltas(const struct pq_source *s, struct pq_page *p,
		       size_t *used)
{
	if (scratch_grow(&p->decoded, p->num_present, sizeof(int64_t)))
		return no_memory(s);
	p->form = PQ_DELTAS;
	p->width = width_of(s->leaf);
	if (!deltas_read(p->values, p->values_size, p->decoded.p,
			 p->num_present, used))
		return damaged(s, p->at, "damaged deltas");
	return 0;
}

/* A length and a span have eight bytes each. */
static int read_delta_lengths(const struct pq_source *s, struct pq_page *p)
{
	struct pq_span *span;
	size_t used;
	uint64_t at;
	int64_t n;
	int r = read_deltas(s, p, &used);

	if (r)
		return r;
	at = used;
	span = p->decoded.p;
	for (uint64_t i = 0; i < p->num_present; i++) {
		memcpy(&n, &span[i], sizeof(n));
		if (n < 0 || !range_ok(at, (uint64_t)n, p->values_size))
			return damaged(s, p->at, "a value outside of it");
		span[i] = (struct pq_span){ (uint32_t)at, (uint32_t)n };
		at += (uint64_t)n;
	}
	p->form = PQ_SPANS;
	return 0;
}

static int read_split(const struct pq_source *s, struct pq_page *p)
{
	p->form = PQ_SPLIT;
	p->width = width_of(s->leaf);
	if (p->num_present * p->width > p->values_size)
		return damaged(s, p->at, "fewer bytes than values");
	return 0;
}

static int read_values(const struct pq_source *s, int64_t encoding,
		       const struct pq_page *dictionary, struct pq_page *p)
{
	enum pq_type type = s->leaf->type;
	bool is_int = type == PQ_INT32 || type == PQ_INT64;
	uint32_t width = width_of(s->leaf);
	size_t used;

	if (encoding == PLAIN)
		return read_plain(s, p);
	if (dictionary &&
	    (encoding == PLAIN_DICTIONARY || encoding == RLE_DICTIONARY))
		return read_indexes(s, p, dictionary);
	if (encoding == RLE && type == PQ_BOOL)
		return read_flags(s, p);
	if (encoding == DELTA && is_int)
		return read_deltas(s, p, &used);
	if (encoding == DELTA_LENGTH && type == PQ_BYTES)
		return read_delta_lengths(s, p);
	if (encoding == SPLIT && width && width <= 8)
		return read_split(s, p);
	return input_refuse(s->error, -ENOTSUP,
			    "the page at byte %" PRIu64 " has encoding %" PRId64
			    ": write the file again with dictionaries or plain "
			    "values",
			    p->at, encoding);
}

/* --- loading ------------------------------------------------------------- */

/* Reads and decompresses the bytes of a page behind its header. */
static int load_bytes(const struct pq_source *s, const struct header *h,
		      struct pq_page *p)
{
	uint64_t levels = (uint64_t)(h->definitions_size + h->repetitions_size);
	uint64_t size = (uint64_t)h->size, packed = (uint64_t)h->packed_size;
	int codec = h->is_packed ? s->chunk->codec : 0;
	uint8_t *bytes, *from;
	int r;

	/* A buffer is never empty, so that pointers into it are valid. */
	if (scratch_grow(&p->bytes, size + 1, 1) ||
	    (codec && scratch_grow(s->packed, packed + 1, 1)))
		return no_memory(s);
	bytes = p->bytes.p;
	if (!codec && packed != size)
		return damaged(s, p->at, "two sizes, but no compression");
	from = codec ? s->packed->p : bytes;
	r = input_file_read(s->file, from, packed, p->at + h->own_size,
			    s->error);
	if (!r && codec) {
		memcpy(bytes, from, levels);
		if (size > levels)
			r = pq_unpack(codec, from + levels, packed - levels,
				      bytes + levels, size - levels, s->error);
	}
	p->values = bytes;
	p->values_size = size;
	return r;
}

/* Takes levels with their size in front. */
static bool take_levels(struct pq_page *p, const uint8_t **bytes, size_t *size)
{
	uint32_t n;

	if (p->values_size < 4)
		return false;
	n = load32(p->values);
	if (n > p->values_size - 4)
		return false;
	*bytes = p->values + 4;
	*size = n;
	p->values += 4 + (size_t)n;
	p->values_size -= 4 + (size_t)n;
	return true;
}

static void take_known_levels(struct pq_page *p, int64_t n,
			      const uint8_t **bytes, size_t *size)
{
	*bytes = p->values;
	*size = (size_t)n;
	p->values += n;
	p->values_size -= (size_t)n;
}

struct levels {
	const uint8_t *repetitions;
	size_t repetitions_size;
	const uint8_t *definitions;
	size_t definitions_size;
};

static int find_levels(const struct pq_source *s, const struct header *h,
		       struct pq_page *p, struct levels *l)
{
	*l = (struct levels){ 0 };
	if (h->type == PAGE_DATA_2) {
		take_known_levels(p, h->repetitions_size, &l->repetitions,
				  &l->repetitions_size);
		take_known_levels(p, h->definitions_size, &l->definitions,
				  &l->definitions_size);
		return 0;
	}
	if (h->level_encoding != RLE && s->leaf->definitions)
		return damaged(s, p->at, "levels in an obsolete encoding");
	if ((s->leaf->repetitions &&
	     !take_levels(p, &l->repetitions, &l->repetitions_size)) ||
	    (s->leaf->definitions &&
	     !take_levels(p, &l->definitions, &l->definitions_size)))
		return damaged(s, p->at, "damaged levels");
	return 0;
}

static int load_page(const struct pq_source *s, uint64_t at, struct header *h,
		     struct pq_page *p)
{
	int r;

	p->at = 0;
	r = read_header(s, at, h);
	if (r)
		return r;
	p->at = at;
	p->num_values = (uint64_t)h->num_values;
	p->num_present = 0;
	p->has_nulls = false;
	return load_bytes(s, h, p);
}

static int decode_page(const struct pq_source *s, const struct header *h,
		       uint64_t first, const struct pq_page *dictionary,
		       struct pq_page *p)
{
	struct levels l;
	int r = find_levels(s, h, p, &l);

	if (!r && s->leaf->repetitions)
		r = check_repetitions(s, p->at, l.repetitions,
				      l.repetitions_size, first, p->num_values);
	if (r)
		return r;
	if (s->leaf->definitions)
		r = read_definitions(s, p, l.definitions, l.definitions_size);
	else
		p->num_present = p->num_values;
	return r ? r : read_values(s, h->encoding, dictionary, p);
}

int pq_page_load(const struct pq_source *s, const struct pq_place *place,
		 const struct pq_page *dictionary, struct pq_page *out)
{
	struct header h;
	int r = load_page(s, place->at, &h, out);

	if (!r && h.type != PAGE_DATA && h.type != PAGE_DATA_2)
		r = damaged(s, place->at, "no page of data");
	r = r ? r : decode_page(s, &h, place->first, dictionary, out);
	if (r)
		out->at = 0;
	return r;
}

int pq_dictionary_load(const struct pq_source *s, uint64_t at,
		       struct pq_page *out)
{
	struct header h;
	int r = load_page(s, at, &h, out);

	if (!r && h.type != PAGE_DICTIONARY)
		r = damaged(s, at, "no dictionary");
	out->num_present = out->num_values;
	if (!r && h.encoding != PLAIN && h.encoding != PLAIN_DICTIONARY)
		r = damaged(s, at, "a dictionary in an unknown encoding");
	r = r ? r : read_values(s, PLAIN, NULL, out);
	if (r)
		out->at = 0;
	return r;
}

/* --- lists --------------------------------------------------------------- */

struct measure {
	uint64_t count[BETON_MAX_NDIM]; /* elements of the open list */
	uint64_t shape[BETON_MAX_NDIM]; /* 0: no list was complete */
};

/* A value with a level of repetition ends the lists of deeper levels. */
static void measure_value(struct measure *m, unsigned depth, uint32_t level)
{
	for (unsigned d = depth; d-- > level;) {
		if (!m->shape[d])
			m->shape[d] = m->count[d];
		m->count[d] = 0;
	}
	for (unsigned d = level ? level - 1 : 0; d < depth; d++)
		m->count[d]++;
}

static int measure_page(const struct pq_source *s, const struct pq_page *page,
			const struct levels *l, struct measure *m)
{
	cleanup_free uint32_t *levels =
		calloc(page->num_values + 1, sizeof(*levels));
	unsigned depth = s->leaf->repetitions;
	struct runs runs;

	if (!levels)
		return no_memory(s);
	if (!runs_begin(&runs, l->repetitions, l->repetitions_size,
			level_bits(depth)) ||
	    !runs_read(&runs, levels, page->num_values) || levels[0])
		return damaged(s, page->at, "damaged levels");
	for (uint64_t i = 0; i < page->num_values; i++) {
		if (i && !levels[i])
			return 0;
		if (levels[i] > depth)
			return damaged(s, page->at, "damaged levels");
		measure_value(m, depth, levels[i]);
	}
	return 0;
}

/* The lists of a row can cross pages, so the outermost length is that of the
   whole chunk. */
static int set_shape(const struct pq_source *s, const struct measure *m,
		     uint64_t rows, struct pq_leaf *leaf, uint64_t *shape)
{
	uint64_t n = 1, all = s->chunk->num_values;

	for (unsigned d = leaf->repetitions; d-- > 1;) {
		shape[d] = m->shape[d] ? m->shape[d] : m->count[d];
		if (!shape[d] || !mul_ok(n, shape[d], &n) || n > PAGE_MAX)
			break;
		leaf->stride[d] = n;
	}
	if (!rows || !n || all % rows || all / rows % n || !all ||
	    all / rows > PAGE_MAX)
		return input_refuse(s->error, -ENOTSUP,
				    "lists of several lengths");
	leaf->stride[0] = all / rows;
	shape[0] = all / rows / n;
	return 0;
}

int pq_measure_lists(const struct pq_source *s, const struct pq_place *place,
		     uint64_t rows, struct pq_leaf *leaf, uint64_t *shape)
{
	struct pq_page page = { 0 };
	struct measure m = { 0 };
	struct header h;
	struct levels l;
	int r = load_page(s, place->at, &h, &page);

	r = r ? r : find_levels(s, &h, &page, &l);
	r = r ? r : measure_page(s, &page, &l, &m);
	pq_page_fini(&page);
	return r ? r : set_shape(s, &m, rows, leaf, shape);
}

/* --- access -------------------------------------------------------------- */

static void get_small(struct pq_datum *out, uint64_t bits, uint64_t size)
{
	store64(out->small, bits);
	out->bytes = out->small;
	out->size = size;
}

static void get_split(const struct pq_page *p, uint64_t i, struct pq_datum *out)
{
	for (uint32_t b = 0; b < p->width; b++)
		out->small[b] = p->values[b * p->num_present + i];
	out->bytes = out->small;
	out->size = p->width;
}

static void get_span(const struct pq_page *p, uint64_t i, struct pq_datum *out)
{
	const struct pq_span *span = (const struct pq_span *)p->decoded.p + i;

	out->bytes = p->values + span->at;
	out->size = span->size;
}

static void get_present(const struct pq_page *p,
			const struct pq_page *dictionary, uint64_t i,
			struct pq_datum *out)
{
	switch (p->form) {
	case PQ_FIXED:
		out->bytes = p->values + i * p->width;
		out->size = p->width;
		return;
	case PQ_BITS:
		get_small(out, p->values[i / 8] >> i % 8 & 1, 1);
		return;
	case PQ_SPANS:
		get_span(p, i, out);
		return;
	case PQ_INDEX:
		get_present(dictionary, NULL, ((uint32_t *)p->decoded.p)[i],
			    out);
		return;
	case PQ_FLAGS:
		get_small(out, ((uint32_t *)p->decoded.p)[i], 1);
		return;
	case PQ_DELTAS:
		get_small(out, (uint64_t)((int64_t *)p->decoded.p)[i],
			  p->width);
		return;
	case PQ_SPLIT:
		get_split(p, i, out);
		return;
	}
}

void pq_page_get(const struct pq_page *p, const struct pq_page *dictionary,
		 uint64_t i, struct pq_datum *out)
{
	if (p->has_nulls) {
		uint32_t slot = ((uint32_t *)p->slots.p)[i];

		if (slot == UINT32_MAX) {
			*out = (struct pq_datum){ 0 };
			return;
		}
		i = slot;
	}
	get_present(p, dictionary, i, out);
}

void pq_page_fini(struct pq_page *p)
{
	scratch_fini(&p->bytes);
	scratch_fini(&p->decoded);
	scratch_fini(&p->slots);
	p->at = 0;
}
