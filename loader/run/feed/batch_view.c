/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/feed/batch_view.h"

#include <stdbool.h>
#include <stdio.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/crc32c.h"
#include "fs/data/dataset/field.h"

enum { ERRNO_MAX = 4095 }; /* the kernel's */

static int bad(char *why, const char *what)
{
	snprintf(why, BATCH_VIEW_WHY_SIZE, "%s", what);
	return -BETON_ECORRUPT;
}

/* Whether `n` elements of `size` bytes at `off` lie in the file, aligned. */
static bool array_ok(const struct batch_view *v, uint64_t off, uint64_t n,
		     uint64_t size, uint64_t align)
{
	uint64_t total;

	return off % align == 0 && mul_ok(n, size, &total) &&
	       range_ok(off, total, v->size);
}

/* Whether a text can be printed. */
static bool is_plain(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return true;
}

/* A name in a dataset file is any ASCII. */
static bool is_ascii(const char *text)
{
	while (*text && !(*text & 0x80))
		text++;
	return !*text;
}

static uint32_t head_crc(const struct batch_view *v)
{
	struct beton_batch_header h = *v->header;
	uint64_t end = h.spec_off + h.spec_size;
	uint32_t crc;

	h.crc = 0;
	crc = crc32c(0, &h, sizeof(h));
	return crc32c(crc, v->bytes + sizeof(h), end - sizeof(h));
}

static int check_header(struct batch_view *v, char *why)
{
	const struct beton_batch_header *h = v->header;

	if (v->size < sizeof(*h) ||
	    memcmp(h->magic, BETON_BATCH_MAGIC, sizeof(h->magic))) {
		snprintf(why, BATCH_VIEW_WHY_SIZE, "not a batch file");
		return -BETON_ENOTBETON;
	}
	if (h->version != BETON_BATCH_VERSION || h->header_size != sizeof(*h)) {
		snprintf(why, BATCH_VIEW_WHY_SIZE,
			 "batch file version %u with a header of %u bytes, "
			 "this is for version %d with %zu",
			 h->version, h->header_size, BETON_BATCH_VERSION,
			 sizeof(*h));
		return -BETON_ENOTBETON;
	}
	if (h->file_size != v->size)
		return bad(why, "its length differs from that in its header");
	if (!array_ok(v, h->fields_off, h->num_fields,
		      sizeof(struct beton_batch_field), 8) ||
	    h->spec_off < sizeof(*h) ||
	    !range_ok(h->spec_off, h->spec_size, v->size) ||
	    h->fields_off < sizeof(*h))
		return bad(why, "its field table or SPEC is not inside it");
	if (head_crc(v) != h->crc)
		return bad(why, "its header's CRC is wrong");
	if (!is_plain((const char *)v->bytes + h->spec_off, h->spec_size))
		return bad(why, "its SPEC is not printable ASCII");
	if (!array_ok(v, h->ids_off, h->num_samples, 8, BETON_BATCH_ALIGN))
		return bad(why, "its sample ids are not inside it");
	return 0;
}

static bool values_ok(const struct batch_view *v,
		      const struct beton_batch_field *f)
{
	const struct beton_batch_value *values =
		(const void *)(v->bytes + f->column_off);

	for (uint32_t i = 0; i < v->header->num_samples; i++) {
		if (!range_ok(values[i].offset, values[i].size, v->size))
			return false;
	}
	return true;
}

static bool field_ok(const struct batch_view *v,
		     const struct beton_batch_field *f)
{
	uint32_t rows = v->header->num_samples;

	if (f->ndim > BETON_MAX_NDIM ||
	    !array_ok(v, f->error_off, rows, 4, BETON_BATCH_ALIGN))
		return false;
	if (f->column == BETON_COLUMN_NONE)
		return true;
	if (f->column == BETON_COLUMN_FIXED)
		return array_ok(v, f->column_off, rows, f->stride,
				BETON_BATCH_ALIGN);
	return f->column == BETON_COLUMN_VARIABLE &&
	       array_ok(v, f->column_off, rows,
			sizeof(struct beton_batch_value), BETON_BATCH_ALIGN) &&
	       values_ok(v, f);
}

static bool errors_ok(const struct batch_view *v,
		      const struct beton_batch_field *f)
{
	const int32_t *errors = (const void *)(v->bytes + f->error_off);

	for (uint32_t i = 0; i < v->header->num_samples; i++) {
		if (errors[i] < 0 || errors[i] > ERRNO_MAX)
			return false;
	}
	return true;
}

static bool texts_ok(const struct beton_batch_field *f)
{
	return !f->name[sizeof(f->name) - 1] && !f->stem[sizeof(f->stem) - 1] &&
	       !f->dtype[sizeof(f->dtype) - 1] && is_ascii(f->name) &&
	       is_plain(f->stem, strlen(f->stem)) &&
	       is_plain(f->dtype, strlen(f->dtype));
}

int batch_view_init(struct batch_view *v, const void *bytes, uint64_t size,
		    char why[BATCH_VIEW_WHY_SIZE])
{
	int r;

	*v = (struct batch_view){ .bytes = bytes,
				  .size = size,
				  .header = bytes };
	r = check_header(v, why);
	if (r)
		return r;
	v->fields = (const void *)(v->bytes + v->header->fields_off);
	v->spec = (const char *)v->bytes + v->header->spec_off;
	v->ids = (const void *)(v->bytes + v->header->ids_off);
	for (uint32_t i = 0; i < v->header->num_fields; i++) {
		if (!texts_ok(&v->fields[i]))
			return bad(why, "the text of a field is not ASCII");
		if (!field_ok(v, &v->fields[i]))
			return bad(why, "a column is not inside it");
		if (!errors_ok(v, &v->fields[i]))
			return bad(why, "the error of a row is no errno");
	}
	return 0;
}

struct batch_view_value batch_view_at(const struct batch_view *v,
				      uint32_t field, uint32_t row)
{
	const struct beton_batch_field *f = &v->fields[field];
	const int32_t *errors = (const void *)(v->bytes + f->error_off);
	const struct beton_batch_value *value =
		(const void *)(v->bytes + f->column_off);
	struct batch_view_value out = { .error = errors[row] };

	if (f->column == BETON_COLUMN_NONE)
		return out;
	if (f->column == BETON_COLUMN_VARIABLE) {
		out.bytes = v->bytes + value[row].offset;
		out.size = value[row].size;
		out.mode = value[row].mode;
		out.width = value[row].width;
		out.height = value[row].height;
		return out;
	}
	out.bytes = v->bytes + f->column_off + row * f->stride;
	out.size = f->stride;
	out.mode = f->mode;
	if (field_column(f->type) == COLUMN_IMAGE) {
		out.height = (uint32_t)f->shape[0];
		out.width = (uint32_t)f->shape[1];
	}
	return out;
}
