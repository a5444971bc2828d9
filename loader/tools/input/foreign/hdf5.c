/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5 files as an input. Datasets with the same first dimension are fields,
 * and a row of each is a sample. libhdf5 checks the file; data of other files,
 * which a file can refer to, are refused.
 */
#include "loader/tools/input/input.h"

#ifdef HAVE_HDF5

#	include <errno.h>
#	include <hdf5.h>
#	include <inttypes.h>
#	include <pthread.h>
#	include <stdio.h>
#	include <stdlib.h>
#	include <string.h>
#	include <strings.h>

#	include "fs/util/bytes.h"
#	include "fs/util/cleanup.h"
#	include "loader/tools/input/foreign/values.h"
#	include "loader/util/scratch.h"

#	define REMEDY "leave the dataset out with --fields"

enum {
	LOOK_AT = 100, /* rows that decide if bytes are images */
	DEPTH_MAX = 8,
	OBJECTS_MAX = 4096,
	PATH_SIZE = 1024,
};

/* The cache of a dataset's chunks, which at least one has to fit into. */
static const size_t CACHE_LEAST = (size_t)32 << 20;
static const uint64_t CACHE_MOST = (uint64_t)1 << 30;

enum form { INTEGER, UNSIGNED, FLOAT, PLAIN, FIXED_TEXT, TEXT, VARIABLE };

/* A dataset as a field. */
struct shape {
	enum form form;
	enum input_type type;
	char dtype[BETON_DTYPE_SIZE];
	unsigned element; /* bytes in memory */
	uint64_t rows;
	uint32_t ndim; /* of a row */
	uint64_t dims[BETON_MAX_NDIM];
	uint64_t row_size; /* PLAIN, FIXED_TEXT */
	uint32_t channels; /* images */
	hid_t memory;	   /* type */
	char refused[INPUT_WHY_SIZE];
};

struct h5_file {
	char *path;
	hid_t id;
	hid_t *datasets; /* one per field; -1: refused */
	uint64_t first;	 /* sample */
	uint64_t rows;
};

struct hdf5 {
	struct input in;
	/* libhdf5 runs in one thread at a time. Held in every call of it. */
	pthread_mutex_t lock;
	struct h5_file *files;
	size_t num_files;
	char (*paths)[PATH_SIZE]; /* of datasets, one per field */
	struct shape *shapes;	  /* one per field */
};

struct hdf5_reader {
	struct input_reader reader;
	struct scratch *values; /* one per field */
};

/* --- closing ------------------------------------------------------------- */

static void hdf5_close(struct input *in)
{
	struct hdf5 *q = (struct hdf5 *)in;

	if (!q)
		return;
	for (size_t i = 0; i < q->num_files; i++) {
		for (size_t f = 0; q->files[i].datasets && f < in->num_fields;
		     f++)
			if (q->files[i].datasets[f] >= 0)
				H5Dclose(q->files[i].datasets[f]);
		if (q->files[i].id >= 0)
			H5Fclose(q->files[i].id);
		free(q->files[i].datasets);
		free(q->files[i].path);
	}
	for (size_t f = 0; q->shapes && f < in->num_fields; f++)
		if (q->shapes[f].form == FIXED_TEXT && !q->shapes[f].refused[0])
			H5Tclose(q->shapes[f].memory);
	pthread_mutex_destroy(&q->lock);
	free(q->files);
	free(q->paths);
	free(q->shapes);
	free(in->fields);
	free(q);
}

/* Otherwise the library prints a stack of its functions. It can have a setting
   per thread. */
static void silence(void)
{
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* --- types --------------------------------------------------------------- */

static void set_refused(struct shape *s, const char *what)
{
	snprintf(s->refused, sizeof(s->refused), "%s: " REMEDY, what);
}

static void set_number(struct shape *s, hid_t memory, const char *dtype,
		       unsigned element)
{
	s->memory = memory;
	s->element = element;
	memcpy(s->dtype, dtype, strlen(dtype) + 1);
}

static void describe_integer(hid_t type, struct shape *s)
{
	bool is_unsigned = H5Tget_sign(type) == H5T_SGN_NONE;
	size_t size = H5Tget_size(type);

	s->type = INPUT_INT;
	s->form = is_unsigned ? UNSIGNED : INTEGER;
	if (!s->ndim)
		s->memory = is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64;
	else if (size == 1)
		set_number(s, is_unsigned ? H5T_STD_U8LE : H5T_STD_I8LE,
			   is_unsigned ? "|u1" : "|i1", 1);
	else if (size == 2)
		set_number(s, is_unsigned ? H5T_STD_U16LE : H5T_STD_I16LE,
			   is_unsigned ? "<u2" : "<i2", 2);
	else if (size == 4)
		set_number(s, is_unsigned ? H5T_STD_U32LE : H5T_STD_I32LE,
			   is_unsigned ? "<u4" : "<i4", 4);
	else
		set_number(s, is_unsigned ? H5T_STD_U64LE : H5T_STD_I64LE,
			   is_unsigned ? "<u8" : "<i8", 8);
	if (size > 8 || H5Tget_precision(type) != 8 * size)
		set_refused(s, "integers of other than 8, 16, 32 or 64 bits");
}

/* Conversions of libhdf5 can run without end if a damaged file has another layout
   of bits. */
static bool is_ieee(hid_t type)
{
	static const struct {
		size_t exponent;
		size_t mantissa;
	} rows[] = { [2] = { 5, 10 }, [4] = { 8, 23 }, [8] = { 11, 52 } };
	size_t sign, e_at, e_size, m_at, m_size, size = H5Tget_size(type);

	return (size == 2 || size == 4 || size == 8) &&
	       H5Tget_precision(type) == 8 * size && !H5Tget_offset(type) &&
	       H5Tget_fields(type, &sign, &e_at, &e_size, &m_at, &m_size) >=
		       0 &&
	       e_size == rows[size].exponent && m_size == rows[size].mantissa &&
	       !m_at && e_at == m_size && sign == 8 * size - 1 &&
	       H5Tget_ebias(type) == ((size_t)1 << (e_size - 1)) - 1;
}

/* Halves have no type of the library: arrays of them are floats. */
static void describe_float(hid_t type, struct shape *s)
{
	size_t size = H5Tget_size(type);

	s->type = INPUT_FLOAT;
	s->form = FLOAT;
	if (!s->ndim)
		s->memory = H5T_NATIVE_DOUBLE;
	else if (size <= 4)
		set_number(s, H5T_IEEE_F32LE, "<f4", 4);
	else
		set_number(s, H5T_IEEE_F64LE, "<f8", 8);
	if (!is_ieee(type))
		set_refused(s, "floats that are not IEEE's");
}

/* h5py writes booleans as an enumeration of FALSE and TRUE. */
static void describe_enum(hid_t type, struct shape *s)
{
	signed char value;
	bool is_boolean =
		H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 &&
		H5Tenum_valueof(type, "TRUE", &value) >= 0 && value == 1;
	hid_t super = H5Tget_super(type);

	describe_integer(super, s);
	H5Tclose(super);
	if (is_boolean && s->ndim)
		memcpy(s->dtype, "|b1", 4);
	else if (!is_boolean && s->ndim)
		set_refused(s, "arrays of enumerations");
	/* A conversion from an enumeration needs one. */
	if (!s->refused[0])
		s->memory = -1;
}

static void describe_text(hid_t type, struct shape *s)
{
	s->type = INPUT_TEXT;
	if (s->ndim) {
		set_refused(s, "arrays of strings");
	} else if (H5Tis_variable_str(type) > 0) {
		s->form = TEXT;
		s->memory = -1;
	} else {
		s->form = FIXED_TEXT;
		s->row_size = H5Tget_size(type);
		s->memory = H5Tcopy(type);
	}
}

static void describe_variable(hid_t type, struct shape *s)
{
	hid_t super = H5Tget_super(type);

	s->type = INPUT_BYTES;
	s->form = VARIABLE;
	s->memory = -1;
	if (s->ndim || H5Tget_class(super) != H5T_INTEGER ||
	    H5Tget_size(super) != 1)
		set_refused(s, "lists of several lengths");
	H5Tclose(super);
}

static void describe_type(hid_t type, struct shape *s)
{
	switch (H5Tget_class(type)) {
	case H5T_INTEGER:
		describe_integer(type, s);
		break;
	case H5T_FLOAT:
		describe_float(type, s);
		break;
	case H5T_ENUM:
		describe_enum(type, s);
		break;
	case H5T_STRING:
		describe_text(type, s);
		break;
	case H5T_VLEN:
		describe_variable(type, s);
		break;
	default:
		s->type = INPUT_BYTES;
		set_refused(s, "values of a type that a dataset cannot hold");
	}
}

/* --- datasets ------------------------------------------------------------ */

/* Dimensions: the rows, then those of a row. */
static void describe_space(hid_t dataset, struct shape *s)
{
	hsize_t dims[H5S_MAX_RANK];
	hid_t space = H5Dget_space(dataset);
	int rank = H5Sget_simple_extent_ndims(space);

	if (rank < 1 || rank > BETON_ARRAY_MAX_NDIM + 1 ||
	    H5Sget_simple_extent_dims(space, dims, NULL) != rank) {
		set_refused(s, "no rows, or more than 8 dimensions in a row");
	} else {
		s->rows = dims[0];
		s->ndim = (uint32_t)rank - 1;
		for (uint32_t d = 0; d < s->ndim; d++)
			s->dims[d] = dims[d + 1];
	}
	H5Sclose(space);
}

/* Data that are in another file could belong to another user. */
static void refuse_elsewhere(hid_t dataset, struct shape *s)
{
	hid_t plist = H5Dget_create_plist(dataset);

	if (H5Pget_layout(plist) == H5D_VIRTUAL ||
	    H5Pget_external_count(plist) != 0)
		set_refused(s, "data in another file");
	H5Pclose(plist);
}

static bool is_image_name(const char *name)
{
	return !strcasecmp(name, "image") || !strcasecmp(name, "images") ||
	       !strcasecmp(name, "img");
}

/* Rows of 8-bit pixels: (height, width) or (height, width, channels). */
static void find_pixels(const char *name, struct shape *s)
{
	uint64_t channels = s->ndim == 2 ? 1 : s->ndim == 3 ? s->dims[2] : 0;

	if (!is_image_name(name) || strcmp(s->dtype, "|u1") != 0 ||
	    (channels != 1 && channels != 3 && channels != 4) ||
	    s->dims[0] > UINT16_MAX || s->dims[1] > UINT16_MAX)
		return;
	s->type = INPUT_IMAGE;
	s->channels = (uint32_t)channels;
}

static void describe(hid_t dataset, const char *name, struct shape *s)
{
	hid_t type = H5Dget_type(dataset);

	*s = (struct shape){ .memory = -1 };
	describe_space(dataset, s);
	describe_type(type, s);
	refuse_elsewhere(dataset, s);
	H5Tclose(type);
	if (!s->ndim || s->refused[0])
		return;
	s->type = INPUT_ARRAY;
	s->form = PLAIN;
	s->row_size = s->element;
	for (uint32_t d = 0; d < s->ndim; d++)
		if (!s->dims[d] ||
		    !mul_ok(s->row_size, s->dims[d], &s->row_size) ||
		    s->row_size > INPUT_VALUE_MAX)
			set_refused(s, "rows without bytes, or with too many");
	if (!s->refused[0])
		find_pixels(name, s);
}

/* A row is read alone, so the library has to keep the chunk that it is in. */
static hid_t open_dataset(hid_t file, const char *path)
{
	hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT), plist, access, type;
	hsize_t dims[H5S_MAX_RANK];
	uint64_t size;
	int rank = 0;

	if (dataset < 0)
		return -1;
	plist = H5Dget_create_plist(dataset);
	type = H5Dget_type(dataset);
	size = H5Tget_size(type);
	if (H5Pget_layout(plist) == H5D_CHUNKED)
		rank = H5Pget_chunk(plist, H5S_MAX_RANK, dims);
	for (int d = 0; d < rank; d++)
		if (!mul_ok(size, dims[d], &size))
			size = UINT64_MAX;
	H5Tclose(type);
	H5Pclose(plist);
	if (rank < 1 || size > CACHE_MOST)
		return dataset;
	H5Dclose(dataset);
	access = H5Pcreate(H5P_DATASET_ACCESS);
	H5Pset_chunk_cache(access, 521,
			   size > CACHE_LEAST ? (size_t)size : CACHE_LEAST, 1);
	dataset = H5Dopen2(file, path, access);
	H5Pclose(access);
	return dataset;
}

/* --- finding datasets ---------------------------------------------------- */

struct found {
	char (*paths)[PATH_SIZE];
	size_t n;
	size_t objects;
};

static int add_path(struct found *f, const char *path)
{
	void *more;

	if (f->n == INPUT_FIELDS_MAX)
		return -EFBIG;
	more = reallocarray(f->paths, f->n + 1, sizeof(*f->paths));
	if (!more)
		return -ENOMEM;
	f->paths = more;
	snprintf(f->paths[f->n++], PATH_SIZE, "%s", path);
	return 0;
}

/* Follows links within the file only. */
static int walk(hid_t group, const char *prefix, unsigned depth,
		struct found *f)
{
	char name[INPUT_NAME_SIZE], path[PATH_SIZE];
	H5G_info_t info;
	int r = 0;

	if (depth == DEPTH_MAX || H5Gget_info(group, &info) < 0)
		return -EBADMSG;
	for (hsize_t i = 0; i < info.nlinks && !r; i++) {
		H5L_info_t link;
		hid_t object;
		ssize_t n = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME,
					       H5_ITER_INC, i, name,
					       sizeof(name), H5P_DEFAULT);

		if (n < 0 || (size_t)n >= sizeof(name) ||
		    f->objects++ == OBJECTS_MAX ||
		    H5Lget_info(group, name, &link, H5P_DEFAULT) < 0)
			return -EBADMSG;
		if (link.type != H5L_TYPE_HARD)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", prefix, name) >=
		    (int)sizeof(path))
			return -EBADMSG;
		object = H5Oopen(group, name, H5P_DEFAULT);
		if (object < 0)
			return -EBADMSG;
		if (H5Iget_type(object) == H5I_GROUP)
			r = walk(object, path, depth + 1, f);
		else if (H5Iget_type(object) == H5I_DATASET)
			r = add_path(f, path);
		H5Oclose(object);
	}
	return r;
}

static const char *last_part(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* The last part of the path if it is unique. Otherwise the path with dots. */
static void name_field(const struct found *f, size_t i, char *out, size_t size)
{
	const char *name = last_part(f->paths[i]);
	size_t same = 0;

	for (size_t j = 0; j < f->n; j++)
		same += !strcmp(last_part(f->paths[j]), name);
	snprintf(out, size, "%s", same == 1 ? name : f->paths[i] + 1);
	for (char *c = out; *c; c++)
		*c = *c == '/' ? '.' : *c;
}

/* --- opening ------------------------------------------------------------- */

static int fail(struct hdf5 *q, const char *path, int code, const char *what)
{
	log_error(q->in.log, "%s: %s", path, what);
	return code;
}

static int add_field(struct hdf5 *q, struct h5_file *file,
		     const struct found *f, size_t i)
{
	struct shape *s = &q->shapes[i];
	struct input_field *field;
	char name[PATH_SIZE];

	file->datasets[i] = open_dataset(file->id, f->paths[i]);
	if (file->datasets[i] < 0) {
		*s = (struct shape){ .type = INPUT_BYTES };
		set_refused(s, "libhdf5 cannot open it");
	} else {
		describe(file->datasets[i], last_part(f->paths[i]), s);
	}
	name_field(f, i, name, sizeof(name));
	field = input_add_field(&q->in, name, s->type);
	if (!field)
		return -EINVAL;
	if (s->type == INPUT_ARRAY) {
		memcpy(field->dtype, s->dtype, sizeof(field->dtype));
		memcpy(field->shape, s->dims, sizeof(field->shape));
		field->ndim = s->ndim;
	}
	return 0;
}

/* The number of samples is that of the images, or of the first dataset. */
static void choose_rows(struct hdf5 *q, struct h5_file *file)
{
	const struct shape *chosen = NULL;

	for (size_t i = 0; i < q->in.num_fields; i++) {
		const struct shape *s = &q->shapes[i];

		if (!s->refused[0] && (!chosen || (s->type == INPUT_IMAGE &&
						   chosen->type != s->type)))
			chosen = s;
	}
	file->rows = chosen ? chosen->rows : 0;
	for (size_t i = 0; i < q->in.num_fields; i++) {
		struct shape *s = &q->shapes[i];

		if (!s->refused[0] && s->rows != file->rows) {
			if (s->form == FIXED_TEXT)
				H5Tclose(s->memory);
			snprintf(s->refused, sizeof(s->refused),
				 "%" PRIu64 " rows instead of %" PRIu64
				 ": " REMEDY,
				 s->rows, file->rows);
		}
		memcpy(q->in.fields[i].refused, s->refused, sizeof(s->refused));
	}
}

static int open_first(struct hdf5 *q, struct h5_file *file)
{
	struct found f = { 0 };
	hid_t root = H5Gopen2(file->id, "/", H5P_DEFAULT);
	int r = root < 0 ? -EBADMSG : walk(root, "", 0, &f);

	if (root >= 0)
		H5Gclose(root);
	q->paths = f.paths;
	if (!r && !f.n)
		return fail(q, file->path, -EINVAL, "no datasets");
	if (r)
		return fail(q, file->path, r,
			    "libhdf5 cannot list the groups, or they are more "
			    "than 256 datasets or 8 levels");
	q->shapes = calloc(f.n, sizeof(*q->shapes));
	file->datasets = calloc(f.n, sizeof(*file->datasets));
	if (!q->shapes || !file->datasets)
		return fail(q, file->path, -ENOMEM, "out of memory");
	for (size_t i = 0; i < f.n; i++)
		file->datasets[i] = -1;
	for (size_t i = 0; i < f.n && !r; i++)
		r = add_field(q, file, &f, i);
	if (!r)
		choose_rows(q, file);
	return r;
}

static bool same_shape(const struct shape *a, const struct shape *b)
{
	return a->form == b->form && !strcmp(a->dtype, b->dtype) &&
	       a->ndim == b->ndim && a->row_size == b->row_size &&
	       !memcmp(a->dims, b->dims, sizeof(a->dims)) && !b->refused[0];
}

/* Opens the datasets of the first file in another one. */
static int open_other(struct hdf5 *q, struct h5_file *file)
{
	bool has_rows = false;
	struct shape s;

	file->datasets = calloc(q->in.num_fields, sizeof(*file->datasets));
	if (!file->datasets)
		return fail(q, file->path, -ENOMEM, "out of memory");
	for (size_t i = 0; i < q->in.num_fields; i++)
		file->datasets[i] = -1;
	for (size_t i = 0; i < q->in.num_fields; i++) {
		if (q->shapes[i].refused[0])
			continue;
		file->datasets[i] = open_dataset(file->id, q->paths[i]);
		if (file->datasets[i] >= 0) {
			describe(file->datasets[i], last_part(q->paths[i]), &s);
			if (s.form == FIXED_TEXT && !s.refused[0])
				H5Tclose(s.memory);
		}
		if (file->datasets[i] < 0 || !same_shape(&q->shapes[i], &s) ||
		    (has_rows && s.rows != file->rows)) {
			log_error(q->in.log,
				  "%s: %s: missing, or of another type or "
				  "shape than in %s: convert the files apart",
				  file->path, q->paths[i], q->files[0].path);
			return -EINVAL;
		}
		file->rows = s.rows;
		has_rows = true;
	}
	return 0;
}

static int open_file(struct hdf5 *q, const char *path)
{
	struct h5_file *file = &q->files[q->num_files];
	int r;

	*file = (struct h5_file){ .id = -1, .first = q->in.num_samples };
	file->path = strdup(path);
	if (!file->path)
		return fail(q, path, -ENOMEM, "out of memory");
	q->num_files++;
	file->id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	if (file->id < 0)
		return fail(q, path, -EBADMSG,
			    "libhdf5 cannot open it: damaged, incomplete, or "
			    "open in a program that writes");
	r = q->num_files == 1 ? open_first(q, file) : open_other(q, file);
	if (!r && !add_ok(q->in.num_samples, file->rows, &q->in.num_samples))
		r = fail(q, path, -EFBIG, "too many rows");
	return r;
}

/* --- reading ------------------------------------------------------------- */

static int no_value(struct input_error *error)
{
	return input_refuse(error, -EBADMSG,
			    "libhdf5 cannot read it: damaged, or compressed by "
			    "a filter that is not installed");
}

/* Reads the selected row into `out`. */
static bool read_row(hid_t dataset, const struct shape *s, hid_t memory,
		     uint64_t row, void *out)
{
	hsize_t start[H5S_MAX_RANK] = { row }, count[H5S_MAX_RANK] = { 1 };
	hid_t space = H5Dget_space(dataset), target;
	bool is_read;

	for (uint32_t d = 0; d < s->ndim; d++)
		count[d + 1] = s->dims[d];
	target = H5Screate_simple((int)s->ndim + 1, count, NULL);
	is_read =
		space >= 0 && target >= 0 &&
		H5Sget_simple_extent_ndims(space) == (int)s->ndim + 1 &&
		H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count,
				    NULL) >= 0 &&
		H5Dread(dataset, memory, target, space, H5P_DEFAULT, out) >= 0;
	H5Sclose(target);
	H5Sclose(space);
	return is_read;
}

static int keep(struct scratch *to, const void *from, uint64_t size,
		struct input_value *out, struct input_error *error)
{
	if (size > INPUT_VALUE_MAX)
		return input_refuse(error, -EFBIG, "%" PRIu64 " bytes", size);
	if (scratch_grow(to, size + 1, 1))
		return input_refuse(error, -ENOMEM, "out of memory");
	if (from && size)
		memcpy(to->p, from, size);
	out->bytes = to->p;
	out->size = size;
	return 0;
}

static int read_number(hid_t dataset, const struct shape *s, uint64_t row,
		       struct input_value *out, struct input_error *error)
{
	hid_t type = s->memory;
	uint64_t bits = 0;
	int8_t flag = 0;
	bool is_read;

	if (s->form == FLOAT)
		return read_row(dataset, s, type, row, &out->real)
			       ? 0
			       : no_value(error);
	if (type < 0) { /* an enumeration of a byte, or more */
		type = H5Dget_type(dataset);
		is_read = H5Tget_size(type) == 1 &&
			  read_row(dataset, s, type, row, &flag);
		H5Tclose(type);
		out->integer = flag;
		return is_read ? 0 : no_value(error);
	}
	if (!read_row(dataset, s, type, row, &bits))
		return no_value(error);
	if (s->form == UNSIGNED && bits > INT64_MAX)
		return input_refuse(error, -EFBIG,
				    "%" PRIu64 ", but a dataset holds integers "
				    "up to %" PRId64,
				    bits, INT64_MAX);
	out->integer = (int64_t)bits;
	return 0;
}

/* Strings and lists of a row are memory of the library. */
static int read_variable(hid_t dataset, const struct shape *s, uint64_t row,
			 struct scratch *to, struct input_value *out,
			 struct input_error *error)
{
	hid_t type = H5Dget_type(dataset), space;
	hsize_t one = 1;
	hvl_t list = { 0 };
	char *text = NULL;
	int r = 0;

	if (!read_row(dataset, s, type, row,
		      s->form == TEXT ? (void *)&text : (void *)&list)) {
		H5Tclose(type);
		return no_value(error);
	}
	if (s->form == TEXT)
		r = keep(to, text, text ? strlen(text) : 0, out, error);
	else
		r = keep(to, list.p, list.len, out, error);
	space = H5Screate_simple(1, &one, NULL);
	H5Dvlen_reclaim(type, space, H5P_DEFAULT,
			s->form == TEXT ? (void *)&text : (void *)&list);
	H5Sclose(space);
	H5Tclose(type);
	return r;
}

/* Drops what pads a text of fixed size. */
static void trim(const struct shape *s, struct input_value *v)
{
	const char *text = v->bytes;
	char pad = H5Tget_strpad(s->memory) == H5T_STR_SPACEPAD ? ' ' : '\0';

	while (v->size && text[v->size - 1] == pad)
		v->size--;
	if (H5Tget_strpad(s->memory) == H5T_STR_NULLTERM)
		v->size = strnlen(text, v->size);
}

static int read_plain(hid_t dataset, const struct shape *s, uint64_t row,
		      struct scratch *to, struct input_value *out,
		      struct input_error *error)
{
	hid_t type = s->memory < 0 ? H5Dget_type(dataset) : s->memory;
	int r = keep(to, NULL, s->row_size, out, error);

	/* Text converts from ASCII to UTF-8 without a change. */
	if (!r && !read_row(dataset, s, type, row, to->p))
		r = no_value(error);
	if (s->memory < 0)
		H5Tclose(type);
	if (!r && s->form == FIXED_TEXT)
		trim(s, out);
	if (s->channels) {
		out->channels = s->channels;
		out->height = (uint32_t)s->dims[0];
		out->width = (uint32_t)s->dims[1];
	}
	return r;
}

static int read_value(hid_t dataset, const struct shape *s, uint64_t row,
		      struct scratch *to, struct input_value *out,
		      struct input_error *error)
{
	*out = (struct input_value){ 0 };
	if (s->refused[0])
		return input_refuse(error, -ENOTSUP, "%s", s->refused);
	switch (s->form) {
	case INTEGER:
	case UNSIGNED:
	case FLOAT:
		return read_number(dataset, s, row, out, error);
	case TEXT:
	case VARIABLE:
		return read_variable(dataset, s, row, to, out, error);
	default:
		return read_plain(dataset, s, row, to, out, error);
	}
}

static const struct h5_file *find_file(const struct hdf5 *q, uint64_t sample)
{
	for (size_t i = 1; i < q->num_files; i++)
		if (sample < q->files[i].first)
			return &q->files[i - 1];
	return &q->files[q->num_files - 1];
}

static int hdf5_read(struct input_reader *reader, uint64_t sample,
		     const bool *wanted, struct input_value *values,
		     struct input_error *error)
{
	struct hdf5_reader *r = (struct hdf5_reader *)reader;
	struct hdf5 *q = (struct hdf5 *)reader->input;
	const struct h5_file *file = find_file(q, sample);
	struct input_error why;
	int code = 0;

	for (size_t i = 0; i < q->in.num_fields && !code; i++) {
		if (!wanted[i])
			continue;
		pthread_mutex_lock(&q->lock);
		silence();
		code = read_value(file->datasets[i], &q->shapes[i],
				  sample - file->first, &r->values[i],
				  &values[i], &why);
		pthread_mutex_unlock(&q->lock);
		code = code ? code
			    : input_check_value(&q->in.fields[i], &values[i],
						&why);
		if (code)
			input_refuse(error, code, "dataset '%.40s': %.100s",
				     q->in.fields[i].name, why.why);
	}
	return code;
}

static int hdf5_reader_open(struct input *in, struct input_reader **out)
{
	struct hdf5_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->reader.input = in;
	r->values = calloc(in->num_fields + 1, sizeof(*r->values));
	if (!r->values) {
		free(r);
		return -ENOMEM;
	}
	*out = &r->reader;
	return 0;
}

static void hdf5_reader_close(struct input_reader *reader)
{
	struct hdf5_reader *r = (struct hdf5_reader *)reader;

	if (!r)
		return;
	for (size_t i = 0; i < reader->input->num_fields; i++)
		scratch_fini(&r->values[i]);
	free(r->values);
	free(r);
}

static void hdf5_describe(const struct input *in, uint64_t sample, char *out,
			  size_t size)
{
	const struct h5_file *file = find_file((const struct hdf5 *)in, sample);

	snprintf(out, size, "%s, row %" PRIu64, file->path,
		 sample - file->first);
}

/* --- the kind ------------------------------------------------------------ */

/* Bytes become images if the first ones begin so. */
static void look_for_images(struct hdf5 *q, struct input_reader *r, size_t i)
{
	uint64_t n = min_u64(q->files[0].rows, LOOK_AT), images = 0;
	struct hdf5_reader *reader = (struct hdf5_reader *)r;
	struct input_error error;
	struct input_value v;

	for (uint64_t row = 0; row < n; row++)
		if (!read_value(q->files[0].datasets[i], &q->shapes[i], row,
				&reader->values[i], &v, &error))
			images += input_is_image(v.bytes, v.size);
	if (images && images == n)
		q->in.fields[i].type = INPUT_IMAGE;
}

static int look(struct hdf5 *q)
{
	struct input_reader *r;

	if (hdf5_reader_open(&q->in, &r))
		return fail(q, q->files[0].path, -ENOMEM, "out of memory");
	for (size_t i = 0; i < q->in.num_fields; i++)
		if (q->shapes[i].form == VARIABLE && !q->shapes[i].refused[0])
			look_for_images(q, r, i);
	hdf5_reader_close(r);
	return 0;
}

static int hdf5_open(const struct input_path *paths, size_t num_paths,
		     struct log *log, struct input **out)
{
	struct hdf5 *q = calloc(1, sizeof(*q));
	int r = 0;

	if (!q) {
		log_error(log, "out of memory");
		return -ENOMEM;
	}
	q->in.kind = &input_hdf5;
	q->in.log = log;
	pthread_mutex_init(&q->lock, NULL);
	silence();
	q->files = calloc(num_paths, sizeof(*q->files));
	if (!q->files)
		r = fail(q, paths[0].path, -ENOMEM, "out of memory");
	for (size_t i = 0; i < num_paths && !r; i++)
		r = open_file(q, paths[i].path);
	r = r ? r : look(q);
	if (r) {
		hdf5_close(&q->in);
		return r;
	}
	*out = &q->in;
	return 0;
}

#else

#	include <string.h>

#	define hdf5_open NULL
#	define hdf5_reader_open NULL
#	define hdf5_read NULL
#	define hdf5_reader_close NULL
#	define hdf5_describe NULL
#	define hdf5_close NULL

#endif

static bool hdf5_matches(const struct input_path *path)
{
	static const char magic[] = "\x89HDF\r\n\x1a\n";

	return path->head_size >= sizeof(magic) - 1 &&
	       !memcmp(path->head, magic, sizeof(magic) - 1);
}

const struct input_kind input_hdf5 = {
	.name = "hdf5",
	.words = "HDF5 files (.h5)",
#ifndef HAVE_HDF5
	.missing = "libhdf5: install libhdf5-dev",
#endif
	.matches = hdf5_matches,
	.open = hdf5_open,
	.reader_open = hdf5_reader_open,
	.read = hdf5_read,
	.reader_close = hdf5_reader_close,
	.describe = hdf5_describe,
	.close = hdf5_close,
};
