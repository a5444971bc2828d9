/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of NumPy as a source: each array is a field, and its row i belongs to
 * sample i. The arrays of several files are fields of the same samples. Rows
 * are read where they are. An array in Fortran order is copied once, to a file
 * without a name.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/npy.h"
#include "fs/base/util/utf8.h"
#include "fs/data/dataset/field.h"
#include "loader/tools/input/kinds.h"
#include "loader/tools/input/parts.h"

/* Longer headers describe arrays of many fields, which are refused. */
enum { HEADER_MAX = 1 << 16 };

/* An array in Fortran order is copied in pieces of this size. */
enum { TILE_BYTES = 16 << 20, TILE_ROWS = 4096 };

/* Where the rows of a field are. */
struct numpy_column {
	const struct file *file;
	uint64_t off;
	uint64_t row; /* bytes */
	uint32_t item;
	uint32_t swap; /* bytes of a number in big-endian order; 0: little */
	char kind;     /* of NumPy's type string: 'i' */
};

struct numpy {
	struct input input;
	char *path; /* of the first file */
	struct file *files;
	size_t num_files;
	struct file copies; /* of arrays in Fortran order */
	bool has_copies;
	struct numpy_column columns[INPUT_FIELDS_MAX];
};

/* An array that is being added. */
struct numpy_array {
	struct numpy *n;
	const char *path;
	char name[INPUT_NAME_SIZE];
	const struct file *file;
	struct npy npy;
	struct input_field field;
	struct numpy_column column;
};

static struct numpy *of(const struct input *in)
{
	return (struct numpy *)in;
}

static bool matches(const struct input_path *path)
{
	return S_ISREG(path->st.st_mode) &&
	       (input_has_extension(path->path, "npy") ||
		(path->head_size >= 6 && !memcmp(path->head, "\x93NUMPY", 6)));
}

static void close_numpy(struct input *in)
{
	struct numpy *n = of(in);

	if (!n)
		return;
	for (size_t i = 0; i < n->num_files; i++)
		file_close(&n->files[i]);
	if (n->has_copies)
		file_close(&n->copies);
	free(n->files);
	free(n->path);
	free(n->input.fields);
	free(n);
}

/* --- arrays -------------------------------------------------------------- */

static int refuse(const struct numpy_array *a, int error, const char *format,
		  ...) __attribute__((format(printf, 3, 4)));

static int refuse(const struct numpy_array *a, int error, const char *format,
		  ...)
{
	char why[2 * INPUT_WHY_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	log_error(a->n->input.log, "%s: %s", a->path, why);
	return error;
}

static int read_array(const struct numpy_array *a, void *to, size_t size,
		      uint64_t off)
{
	int r = file_read(a->file, to, size, off);

	if (r == -EBADMSG)
		return refuse(a, r, "the file ends inside the array's header");
	return r ? refuse(a, r, "%s", strerror(-r)) : 0;
}

/* Fields of a structure are a list in the header. */
static int refuse_header(const struct numpy_array *a, const char *header)
{
	const char *type = strstr(header, "'descr':");

	if (type && type[8 + strspn(type + 8, " ")] == '[')
		return refuse(a, -ENOTSUP,
			      "an array of structures: save each of its fields "
			      "as an array of its own");
	return refuse(a, -EBADMSG, "no header of NumPy's format 1, 2 or 3");
}

static int parse_header(struct numpy_array *a)
{
	cleanup_free char *header = NULL;
	uint8_t head[12];
	uint64_t size;
	int r = read_array(a, head, sizeof(head), 0);

	if (r)
		return r;
	size = head[6] > 1 ? 12 + (uint64_t)load32(head + 8)
			   : 10 + (uint64_t)load16(head + 8);
	if (memcmp(head, "\x93NUMPY", 6) != 0 || size > HEADER_MAX)
		return refuse_header(a, "");
	header = malloc(size + 1);
	if (!header)
		return refuse(a, -ENOMEM, "out of memory");
	r = read_array(a, header, size, 0);
	if (r)
		return r;
	header[size] = '\0';
	if (!npy_parse_any(header, size, &a->npy))
		return refuse_header(a, header + (head[6] > 1 ? 12 : 10));
	return 0;
}

static int check_type(struct numpy_array *a)
{
	struct npy *npy = &a->npy;
	char kind = npy->dtype[1];
	uint64_t item = field_dtype_size(npy->dtype);

	if (kind == 'O')
		return refuse(a, -ENOTSUP,
			      "an array of Python objects: convert it to a "
			      "type of numbers or text before saving it");
	if (!item || item > INPUT_VALUE_MAX)
		return refuse(a, -ENOTSUP, "elements of type '%s'", npy->dtype);
	a->column.kind = kind;
	a->column.item = (uint32_t)item;
	if (npy->dtype[0] == '>') {
		npy->dtype[0] = '<';
		a->column.swap = kind == 'c'	       ? (uint32_t)item / 2
				 : kind == 'U'	       ? 4
				 : strchr("SVb", kind) ? 0
						       : (uint32_t)item;
	}
	return 0;
}

static int check_shape(struct numpy_array *a)
{
	const struct npy *npy = &a->npy;
	uint64_t row = a->column.item, all;

	for (uint32_t i = 1; i < npy->ndim; i++)
		if (!mul_ok(row, npy->shape[i], &row) || row > INPUT_VALUE_MAX)
			return refuse(a, -EFBIG,
				      "a row has more than %llu bytes",
				      (unsigned long long)INPUT_VALUE_MAX);
	if (!row)
		return refuse(a, -EINVAL, "its rows have no elements");
	if (!mul_ok(row, npy->shape[0], &all) ||
	    !range_ok(npy->offset, all, a->file->size))
		return refuse(
			a, -EBADMSG,
			"%llu rows of %llu bytes, but the file has %llu",
			(unsigned long long)npy->shape[0],
			(unsigned long long)row,
			(unsigned long long)(a->file->size - npy->offset));
	a->column.row = row;
	a->column.file = a->file;
	a->column.off = npy->offset;
	return 0;
}

/* --- fields -------------------------------------------------------------- */

static bool is_image(const struct numpy_array *a)
{
	static const char *const names[] = { "image", "images", "img" };
	const struct npy *npy = &a->npy;
	uint64_t channels = npy->ndim == 4 ? npy->shape[3] : 1;
	bool named = false;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		named |= !strcmp(a->name, names[i]);
	return named && (npy->ndim == 3 || npy->ndim == 4) &&
	       a->column.kind == 'u' && a->column.item == 1 &&
	       (channels == 1 || channels == 3 || channels == 4) &&
	       npy->shape[1] <= UINT32_MAX && npy->shape[2] <= UINT32_MAX;
}

static int choose_type(struct numpy_array *a)
{
	struct input_field *f = &a->field;
	bool flat = a->npy.ndim == 1;
	char kind = a->column.kind;

	f->type = INPUT_ARRAY;
	if (kind == 'U' || kind == 'S') {
		if (!flat)
			return refuse(a, -ENOTSUP,
				      "text with %u dimensions; it may have 1",
				      a->npy.ndim);
		f->type = INPUT_TEXT;
	} else if (flat && strchr("biu", kind)) {
		f->type = INPUT_INT;
	} else if (flat && kind == 'f' && a->column.item <= 8) {
		f->type = INPUT_FLOAT;
	} else if (is_image(a)) {
		f->type = INPUT_IMAGE;
	}
	/* The shape of a row; images need it, too. */
	memcpy(f->dtype, a->npy.dtype, sizeof(f->dtype));
	f->ndim = flat ? 1 : a->npy.ndim - 1;
	f->shape[0] = 1;
	if (!flat)
		memcpy(f->shape, a->npy.shape + 1, f->ndim * sizeof(*f->shape));
	return 0;
}

/* --- Fortran order ------------------------------------------------------- */

/* A piece of an array in Fortran order: some elements of some rows. */
struct tile {
	uint64_t rows;	/* of the array */
	uint64_t width; /* elements of a row */
	uint64_t first_row;
	uint64_t num_rows;
	uint64_t first;
	uint64_t num;
	uint8_t *bytes;	 /* rows of num elements */
	uint8_t *column; /* one element of each row */
};

/* Returns the position of an element in a row in Fortran order by that in C
   order. */
static uint64_t fortran_index(const struct npy *npy, uint64_t width,
			      uint64_t index)
{
	uint64_t step = width, out = 0;

	for (uint32_t i = npy->ndim - 1; i; i--) {
		step /= npy->shape[i];
		out += index % npy->shape[i] * step;
		index /= npy->shape[i];
	}
	return out;
}

static int read_tile(const struct numpy_array *a, const struct tile *t)
{
	const uint64_t item = a->column.item;
	int r = 0;

	for (uint64_t i = 0; i < t->num && !r; i++) {
		uint64_t at = fortran_index(&a->npy, t->width, t->first + i);

		r = file_read(a->file, t->column, t->num_rows * item,
			      a->column.off +
				      (at * t->rows + t->first_row) * item);
		for (uint64_t k = 0; k < t->num_rows && !r; k++)
			memcpy(t->bytes + (k * t->num + i) * item,
			       t->column + k * item, item);
	}
	return r ? refuse(a, r, "%s", strerror(-r)) : 0;
}

static int write_tile(const struct numpy_array *a, const struct tile *t)
{
	const struct file *to = &a->n->copies;
	const uint64_t item = a->column.item;
	bool whole = t->num == t->width;
	uint64_t n = whole ? t->num_rows : 1, size = n * t->num * item;
	int r = 0;

	for (uint64_t k = 0; k < t->num_rows && !r; k += n)
		r = file_write(
			to, t->bytes + k * t->num * item, size,
			to->size + ((t->first_row + k) * t->width + t->first) *
					   item);
	return r ? refuse(a, r, "its copy in C order, below TMPDIR: %s",
			  strerror(-r))
		 : 0;
}

static int copy_tiles(const struct numpy_array *a, struct tile *t,
		      uint64_t rows, uint64_t num)
{
	int r = 0;

	for (; t->first_row < t->rows && !r; t->first_row += t->num_rows) {
		t->num_rows = min_u64(rows, t->rows - t->first_row);
		for (t->first = 0; t->first < t->width && !r;
		     t->first += t->num) {
			t->num = min_u64(num, t->width - t->first);
			r = read_tile(a, t);
			r = r ? r : write_tile(a, t);
		}
	}
	return r;
}

static int make_copies(struct numpy_array *a)
{
	int r = a->n->has_copies ? 0 : file_make(&a->n->copies);

	a->n->has_copies |= !r;
	return r ? refuse(a, r, "a temporary file in TMPDIR: %s", strerror(-r))
		 : 0;
}

/* Copies the array to C order. */
static int copy_fortran(struct numpy_array *a)
{
	const uint64_t item = a->column.item;
	struct tile t = { .rows = a->npy.shape[0],
			  .width = a->column.row / item };
	uint64_t rows = max_u64(min_u64(t.rows, TILE_ROWS), 1);
	uint64_t num = min_u64(t.width, TILE_BYTES / (rows * item));
	int r;

	if (strchr("USV", a->column.kind))
		return refuse(a, -ENOTSUP,
			      "text in Fortran order: save "
			      "numpy.ascontiguousarray() of the array");
	r = make_copies(a);
	if (r)
		return r;
	t.bytes = malloc(rows * num * item);
	t.column = malloc(rows * item);
	r = t.bytes && t.column ? copy_tiles(a, &t, rows, num)
				: refuse(a, -ENOMEM, "out of memory");
	free(t.bytes);
	free(t.column);
	if (r)
		return r;
	a->column.file = &a->n->copies;
	a->column.off = a->n->copies.size;
	a->n->copies.size += t.rows * a->column.row;
	return 0;
}

/* --- opening ------------------------------------------------------------- */

static int place(const struct numpy_array *a)
{
	struct input *in = &a->n->input;
	struct input_field *f;

	for (size_t i = 0; i < in->num_fields; i++)
		if (!strcmp(in->fields[i].name, a->name))
			return refuse(a, -EINVAL,
				      "two arrays have the name '%s'", a->name);
	if (in->num_fields == INPUT_FIELDS_MAX)
		return refuse(a, -EINVAL, "more than %d arrays",
			      INPUT_FIELDS_MAX);
	f = input_add_field(in, a->name, a->field.type);
	if (!f)
		return -ENOMEM;
	memcpy(f->dtype, a->field.dtype, sizeof(f->dtype));
	f->ndim = a->field.ndim;
	memcpy(f->shape, a->field.shape, sizeof(f->shape));
	a->n->columns[in->num_fields - 1] = a->column;
	return 0;
}

/* All arrays have the same number of rows. */
static int check_rows(const struct numpy_array *a)
{
	struct input *in = &a->n->input;

	if (!in->num_fields)
		in->num_samples = a->npy.shape[0];
	if (in->num_samples == a->npy.shape[0])
		return 0;
	return refuse(a, -EINVAL,
		      "%llu rows, but the arrays before it have %llu: save "
		      "arrays of one length in a file of their own",
		      (unsigned long long)a->npy.shape[0],
		      (unsigned long long)in->num_samples);
}

static int add_array(struct numpy_array *a)
{
	int r = parse_header(a);

	if (!r && !a->npy.ndim)
		return refuse(a, -EINVAL, "a scalar, which has no rows");
	r = r ? r : check_type(a);
	r = r ? r : check_shape(a);
	r = r ? r : choose_type(a);
	r = r ? r : check_rows(a);
	if (!r && a->npy.fortran && a->npy.ndim > 1)
		r = copy_fortran(a);
	return r ? r : place(a);
}

static int add_file(struct numpy *n, const char *path, const struct file *file)
{
	struct numpy_array a = { .n = n, .path = path, .file = file };
	const char *base = strrchr(path, '/');
	size_t size;

	base = base ? base + 1 : path;
	size = strlen(base);
	if (size > 4 && input_has_extension(base, "npy"))
		size -= 4;
	if (size >= sizeof(a.name))
		return refuse(&a, -EINVAL,
			      "a name of %zu bytes; it may have %d", size,
			      INPUT_NAME_SIZE - 1);
	memcpy(a.name, base, size);
	return add_array(&a);
}

static int open_files(struct numpy *n, const struct input_path *paths,
		      size_t num_paths)
{
	int r = 0;

	n->path = strdup(paths[0].path);
	n->files = calloc(num_paths, sizeof(*n->files));
	if (!n->path || !n->files)
		return log_no_memory(n->input.log, NULL);
	for (size_t i = 0; i < num_paths && !r; i++) {
		r = part_open(paths[i].path, n->input.log, &n->files[i]);
		if (r)
			return r;
		n->num_files++;
		r = add_file(n, paths[i].path, &n->files[i]);
	}
	if (!r && !n->input.num_samples) {
		log_error(n->input.log, "%s: no rows", paths[0].path);
		r = -ENODATA;
	}
	return r;
}

static int open_numpy(const struct input_setup *setup, struct input **out)
{
	struct numpy *n = input_new(&input_numpy, sizeof(*n), setup->log);
	int r;

	if (!n)
		return -ENOMEM;
	r = open_files(n, setup->paths, setup->num_paths);
	if (r)
		close_numpy(&n->input);
	else
		*out = &n->input;
	return r;
}

/* --- reading ------------------------------------------------------------- */

static int reader_open(struct input *in, struct input_reader **out)
{
	return input_reader_new(in, sizeof(**out), out);
}

static void swap_bytes(uint8_t *bytes, uint64_t size, uint32_t unit)
{
	for (; unit > 1 && size >= unit; bytes += unit, size -= unit) {
		for (uint32_t i = 0; i < unit / 2; i++) {
			uint8_t b = bytes[i];

			bytes[i] = bytes[unit - 1 - i];
			bytes[unit - 1 - i] = b;
		}
	}
}

static int take_int(const struct numpy_column *c, const uint8_t *bytes,
		    struct input_value *out, struct input_error *error)
{
	unsigned unused = 64 - 8 * c->item;
	uint64_t v = 0;

	memcpy(&v, bytes, c->item);
	if (c->kind == 'u' && v > INT64_MAX)
		return input_refuse(error, -EFBIG,
				    "%llu is too large for an integer field",
				    (unsigned long long)v);
	out->integer =
		c->kind == 'i' ? (int64_t)(v << unused) >> unused : (int64_t)v;
	return 0;
}

/* A number of 16 bits: 1 of the sign, 5 of the exponent, 10 of the fraction. */
static double from_half(uint16_t v)
{
	int exponent = v >> 10 & 31, fraction = v & 1023;
	double d = !exponent	   ? ldexp(fraction, -24)
		   : exponent < 31 ? ldexp(1024 + fraction, exponent - 25)
		   : fraction	   ? (double)NAN
				   : (double)INFINITY;

	return v & 0x8000 ? -d : d;
}

static double take_float(const struct numpy_column *c, const uint8_t *bytes)
{
	double d;
	float f;

	if (c->item == 2)
		return from_half(load16(bytes));
	memcpy(&f, bytes, sizeof(f));
	if (c->item == sizeof(f))
		return (double)f;
	memcpy(&d, bytes, sizeof(d));
	return d;
}

/* Turns code points of 32 bits into UTF-8, in place. */
static int take_unicode(uint8_t *bytes, struct input_value *out,
			struct input_error *error)
{
	size_t size = out->size, used = 0;
	char utf8[4];

	while (size && !load32(bytes + size - 4))
		size -= 4;
	for (size_t i = 0; i < size; i += 4) {
		uint32_t code = load32(bytes + i);
		size_t n = code ? utf8_put(code, utf8) : 0;

		if (!n)
			return input_refuse(error, -EBADMSG,
					    "text with the code point %#x",
					    code);
		memcpy(bytes + used, utf8, n);
		used += n;
	}
	out->size = used;
	return 0;
}

static int take_text(const struct numpy_column *c, uint8_t *bytes,
		     struct input_value *out, struct input_error *error)
{
	if (c->kind == 'U')
		return take_unicode(bytes, out, error);
	while (out->size && !bytes[out->size - 1])
		out->size--;
	return utf8_is_text(bytes, out->size)
		       ? 0
		       : input_refuse(error, -EBADMSG, "text that is no UTF-8");
}

static int take_row(const struct input_field *f, const struct numpy_column *c,
		    uint8_t *bytes, struct input_value *out,
		    struct input_error *error)
{
	if (c->swap)
		swap_bytes(bytes, c->row, c->swap);
	out->bytes = bytes;
	out->size = c->row;
	switch (f->type) {
	case INPUT_INT:
		return take_int(c, bytes, out, error);
	case INPUT_FLOAT:
		out->real = take_float(c, bytes);
		return 0;
	case INPUT_TEXT:
		return take_text(c, bytes, out, error);
	case INPUT_IMAGE:
		out->height = (uint32_t)f->shape[0];
		out->width = (uint32_t)f->shape[1];
		out->channels = f->ndim == 3 ? (uint32_t)f->shape[2] : 1;
		return 0;
	default:
		return 0;
	}
}

static int read_row(struct input_reader *r, size_t field,
		    const struct numpy_column *c, uint64_t row,
		    struct input_value *out, struct input_error *error)
{
	const struct input_field *f = &r->input->fields[field];
	struct input_memory *memory = &r->memory[field];
	int status = input_reserve(memory, c->row);

	status = status ? status
			: file_read(c->file, memory->bytes, c->row,
				    c->off + row * c->row);
	if (status)
		return input_refuse(error, status, "field %.60s: %s", f->name,
				    status == -EBADMSG
					    ? "the file became shorter"
					    : strerror(-status));
	return take_row(f, c, memory->bytes, out, error);
}

static int read_sample(struct input_reader *reader, uint64_t sample,
		       const bool *wanted, struct input_value *values,
		       struct input_error *error)
{
	const struct numpy *n = of(reader->input);
	int status = 0;

	for (size_t i = 0; i < n->input.num_fields && !status; i++)
		if (wanted[i])
			status = read_row(reader, i, &n->columns[i], sample,
					  &values[i], error);
	return status;
}

/* All files have the row, so the first one stands for them. */
static void describe(const struct input *in, uint64_t sample, char *out,
		     size_t size)
{
	snprintf(out, size, "%s: row %llu", of(in)->path,
		 (unsigned long long)sample);
}

const struct input_kind input_numpy = {
	.name = "numpy",
	.words = "NumPy arrays (.npy)",
	.matches = matches,
	.open = open_numpy,
	.reader_open = reader_open,
	.read = read_sample,
	.reader_close = input_reader_free,
	.describe = describe,
	.close = close_numpy,
};
