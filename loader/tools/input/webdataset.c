/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebDataset shards as a source: tar archives whose consecutive files with the
 * same key are a sample. The key is the path up to the first dot of the file's
 * name, and the extension behind that dot names the field. Opening reads the
 * headers of all files, and keeps 16 bytes per value.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/npy.h"
#include "fs/base/util/utf8.h"
#include "fs/data/dataset/field.h"
#include "loader/tools/formats/tar.h"
#include "loader/tools/input/convert.h"
#include "loader/tools/input/kinds.h"
#include "loader/tools/input/parts.h"
#include "loader/tools/picture/picture.h"

enum { EXTENSION_SIZE = 64 };

/* The range of a value in its shard. */
struct webdataset_range {
	uint64_t off;
	uint64_t size;
};

struct webdataset {
	struct input input;
	struct parts parts;
	char (*extensions)[EXTENSION_SIZE]; /* of the fields; empty: images */
	struct webdataset_range *values;    /* num_samples times num_fields */
	size_t room;
};

struct webdataset_reader {
	struct input_reader reader;
	struct part_file file;
};

static struct webdataset *of(const struct input *in)
{
	return (struct webdataset *)in;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcasecmp(name + n - m, end) == 0;
}

/* Archives that are compressed match, for a message of their own. */
static bool is_compressed(const struct input_path *path)
{
	static const char *const ends[] = { ".tar.gz",	".tgz",	 ".tar.zst",
					    ".tar.xz",	".txz",	 ".tar.bz2",
					    ".tar.lz4", ".tbz2", ".tar.zstd" };
	static const char *const heads[] = { "\x1f\x8b", "\x28\xb5\x2f\xfd",
					     "\xfd\x37zX", "BZh",
					     "\x04\x22\x4d\x18" };

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (ends_in(path->path, ends[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		if (path->head_size >= 4 &&
		    !memcmp(path->head, heads[i], strlen(heads[i])))
			return true;
	return false;
}

static bool matches(const struct input_path *path)
{
	return S_ISREG(path->st.st_mode) &&
	       (input_has_extension(path->path, "tar|tgz|tbz2|txz") ||
		(strcasestr(path->path, ".tar.") && is_compressed(path)));
}

static void close_webdataset(struct input *in)
{
	struct webdataset *w = of(in);

	if (!w)
		return;
	parts_fini(&w->parts);
	free(w->extensions);
	free(w->values);
	free(w->input.fields);
	free(w);
}

/* --- keys and extensions ------------------------------------------------- */

/* A file of the sample that is being collected. */
struct member {
	char extension[EXTENSION_SIZE]; /* lower case */
	struct webdataset_range value;
	struct npy npy; /* ndim and dtype are empty if it is no array */
};

/* The samples of a shard while its headers are read. */
struct webdataset_scan {
	struct webdataset *w;
	const struct part *part;
	struct tar tar;
	struct tar_file file;
	char key[TAR_NAME_SIZE];
	struct member *members; /* INPUT_FIELDS_MAX of them */
	size_t num_members;
	bool *seen; /* per field */
};

/* Returns the first dot of the file's name. NULL: it is part of no sample. */
static const char *find_dot(const char *name)
{
	const char *base = strrchr(name, '/'), *end;

	/* Names such as __meta__ are metadata of a shard. */
	if (!strncmp(name, "__", 2)) {
		end = strchrnul(name, '/');
		if (end - name >= 4 && !memcmp(end - 2, "__", 2))
			return NULL;
	}
	base = base ? base + 1 : name;
	return *base == '.' ? NULL : strchr(base, '.');
}

static int refuse(const struct webdataset_scan *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(const struct webdataset_scan *s, const char *format, ...)
{
	char why[INPUT_WHY_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	log_error(s->w->input.log, "%s: sample '%.80s' %s", s->part->path,
		  s->key, why);
	return -EINVAL;
}

static bool copy_extension(const char *from, char out[EXTENSION_SIZE])
{
	size_t n = strlen(from);

	for (size_t i = 0; i <= n && n < EXTENSION_SIZE; i++)
		out[i] = (char)tolower((unsigned char)from[i]);
	return n && n < EXTENSION_SIZE;
}

/* --- fields, out of the first sample ------------------------------------- */

/* The types of values by the last part of their extensions. */
static enum input_type type_of(const char *extension)
{
	static const struct {
		const char *extensions;
		enum input_type type;
	} types[] = {
		{ "cls|cls2|class|count|index|inx|id", INPUT_INT },
		{ "txt|text|transcript", INPUT_TEXT },
		{ "json|jsn", INPUT_JSON },
		{ "npy", INPUT_ARRAY },
	};
	char name[EXTENSION_SIZE + 1];

	snprintf(name, sizeof(name), ".%s", extension);
	if (picture_has_extension(name))
		return INPUT_IMAGE;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (input_has_extension(name, types[i].extensions))
			return types[i].type;
	return INPUT_BYTES;
}

static bool is_plain_image(const char *extension)
{
	return !strchr(extension, '.') && type_of(extension) == INPUT_IMAGE;
}

static int add_field(struct webdataset_scan *s, const struct member *m,
		     bool one_image)
{
	struct webdataset *w = s->w;
	enum input_type type = type_of(m->extension);
	bool is_image = one_image && is_plain_image(m->extension);
	char name[EXTENSION_SIZE];
	struct input_field *f;

	snprintf(name, sizeof(name), "%s", is_image ? "image" : m->extension);
	/* left.jpg and right.jpg are the images left and right. */
	if (type == INPUT_IMAGE && strrchr(name, '.'))
		*strrchr(name, '.') = '\0';
	if (!is_image)
		memcpy(w->extensions[w->input.num_fields], m->extension,
		       sizeof(m->extension));
	f = input_add_field(&w->input, name, type);
	if (!f)
		return -ENOMEM;
	if (type != INPUT_ARRAY)
		return 0;
	memcpy(f->dtype, m->npy.dtype, sizeof(f->dtype));
	f->ndim = m->npy.ndim;
	memcpy(f->shape, m->npy.shape, sizeof(f->shape));
	if (!f->dtype[0])
		f->type = INPUT_BYTES;
	return 0;
}

/* A sample with one image has the field `image`, whatever the format. If it has
   several, each extension is a field. */
static int add_fields(struct webdataset_scan *s)
{
	size_t images = 0;
	int r = 0;

	s->w->extensions = calloc(s->num_members, EXTENSION_SIZE);
	s->seen = calloc(s->num_members, sizeof(*s->seen));
	if (!s->w->extensions || !s->seen)
		return log_no_memory(s->w->input.log, NULL);
	for (size_t i = 0; i < s->num_members; i++)
		images += is_plain_image(s->members[i].extension);
	for (size_t i = 0; i < s->num_members && !r; i++)
		r = add_field(s, &s->members[i], images == 1);
	return r;
}

/* --- the index ----------------------------------------------------------- */

static bool is_field_of(const struct webdataset *w, size_t i,
			const char *extension)
{
	return w->extensions[i][0] ? !strcmp(w->extensions[i], extension)
				   : is_plain_image(extension);
}

/* Returns num_fields if there is no field for the extension. */
static size_t find_field(const struct webdataset *w, const char *extension)
{
	size_t i = 0;

	while (i < w->input.num_fields && !is_field_of(w, i, extension))
		i++;
	return i;
}

/* A field of arrays becomes bytes if their types or shapes differ. */
static void compare_array(struct input_field *f, const struct npy *npy)
{
	if (f->type == INPUT_ARRAY &&
	    (strcmp(f->dtype, npy->dtype) || f->ndim != npy->ndim ||
	     memcmp(f->shape, npy->shape, f->ndim * sizeof(*f->shape)) != 0))
		f->type = INPUT_BYTES;
}

static int reserve_sample(struct webdataset *w)
{
	uint64_t used = w->input.num_samples * w->input.num_fields;
	uint64_t need = used + w->input.num_fields;
	size_t room = w->room ? 2 * w->room : 1024;
	void *more;

	if (need <= w->room)
		return 0;
	room = max_u64(room, need);
	more = reallocarray(w->values, room, sizeof(*w->values));
	if (!more)
		return log_no_memory(w->input.log, NULL);
	w->values = more;
	w->room = room;
	return 0;
}

static int take_member(struct webdataset_scan *s, const struct member *m,
		       struct webdataset_range *values)
{
	struct webdataset *w = s->w;
	size_t i = find_field(w, m->extension);

	if (i == w->input.num_fields)
		return refuse(s,
			      "has a file '.%s', but the first sample has "
			      "none",
			      m->extension);
	if (s->seen[i])
		return refuse(s, "has two files for the field '%.60s'",
			      w->input.fields[i].name);
	s->seen[i] = true;
	values[i] = m->value;
	compare_array(&w->input.fields[i], &m->npy);
	return 0;
}

/* Ends the sample that was collected. */
static int end_sample(struct webdataset_scan *s)
{
	struct webdataset *w = s->w;
	struct webdataset_range *values;
	int r = 0;

	if (!s->num_members)
		return 0;
	if (!w->input.num_fields)
		r = add_fields(s);
	r = r ? r : reserve_sample(w);
	if (r)
		return r;
	memset(s->seen, 0, w->input.num_fields);
	values = w->values + w->input.num_samples * w->input.num_fields;
	for (size_t i = 0; i < s->num_members && !r; i++)
		r = take_member(s, &s->members[i], values);
	for (size_t i = 0; i < w->input.num_fields && !r; i++)
		if (!s->seen[i])
			r = refuse(s,
				   "has no file '.%s', but the first sample "
				   "has one",
				   w->extensions[i][0] ? w->extensions[i]
						       : "jpg");
	s->num_members = 0;
	w->input.num_samples += !r;
	return r;
}

/* Whether the elements of an array are in the file, and a field can hold it. */
static bool is_whole(const struct npy *npy, uint64_t size)
{
	uint64_t need = field_dtype_size(npy->dtype);

	if (!need || npy->dtype[0] == '>')
		return false;
	for (uint32_t i = 0; i < npy->ndim; i++)
		if (!npy->shape[i] || !mul_ok(need, npy->shape[i], &need))
			return false;
	return range_ok(npy->offset, need, size);
}

/* Any other file keeps its bytes. */
static void look_at_array(struct webdataset_scan *s, struct member *m)
{
	size_t n = (size_t)min_u64(m->value.size, NPY_HEADER_MAX);
	const uint8_t *head = window_at(&s->tar.window, m->value.off, n);

	if (!head || !npy_parse(head, n, &m->npy) ||
	    !is_whole(&m->npy, m->value.size)) {
		m->npy = (struct npy){ 0 };
		return;
	}
	if (!m->npy.ndim)
		m->npy.shape[m->npy.ndim++] = 1;
}

static int take_file(struct webdataset_scan *s)
{
	const char *dot = find_dot(s->file.name);
	size_t key = dot ? (size_t)(dot - s->file.name) : 0;
	struct member *m;
	int r;

	if (!dot) {
		s->w->input.ignored++;
		return 0;
	}
	if (strncmp(s->key, s->file.name, key) != 0 || s->key[key]) {
		r = end_sample(s);
		if (r)
			return r;
		memcpy(s->key, s->file.name, key);
		s->key[key] = '\0';
	}
	if (s->num_members == INPUT_FIELDS_MAX)
		return refuse(s, "has more than %d files", INPUT_FIELDS_MAX);
	m = &s->members[s->num_members++];
	*m = (struct member){ .value = { s->file.off, s->file.size } };
	if (!copy_extension(dot + 1, m->extension))
		return refuse(s,
			      "has a file whose extension '.%.20s' has %zu "
			      "bytes; it may have 1 to %d",
			      dot + 1, strlen(dot + 1), EXTENSION_SIZE - 1);
	if (type_of(m->extension) == INPUT_ARRAY)
		look_at_array(s, m);
	return 0;
}

static int scan_headers(struct webdataset_scan *s)
{
	struct log *log = s->w->input.log;
	int r;

	s->key[0] = '\0';
	s->num_members = 0;
	while ((r = tar_next(&s->tar, &s->file)) > 0) {
		r = take_file(s);
		if (r)
			return r;
	}
	if (r) {
		log_error(log, "%s: %s", s->part->path, s->tar.why);
		return r;
	}
	if (s->tar.no_end)
		log_warning(log,
			    "%s: the archive has no end mark, so files "
			    "may be missing",
			    s->part->path);
	s->w->input.ignored += s->tar.skipped;
	return end_sample(s);
}

static int scan_part(struct webdataset_scan *s, struct part *part)
{
	struct file file;
	int r = part_open(part->path, s->w->input.log, &file);

	if (r)
		return r;
	part->first = s->w->input.num_samples;
	s->part = part;
	s->tar = (struct tar){ .window.file = &file };
	r = scan_headers(s);
	file_close(&file);
	return r;
}

/* --- opening ------------------------------------------------------------- */

static int refuse_compressed(const struct input_path *path, struct log *log)
{
	log_error(log,
		  "%s: a compressed archive, in which no sample can be found "
		  "without reading all before it: decompress it first, for "
		  "example by gzip -d, xz -d or zstd -d",
		  path->path);
	return -ENOTSUP;
}

static int scan_parts(struct webdataset *w)
{
	struct webdataset_scan *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (s) {
		s->w = w;
		s->members = calloc(INPUT_FIELDS_MAX, sizeof(*s->members));
	}
	if (s && s->members)
		r = 0;
	else
		log_error(w->input.log, "out of memory");
	for (size_t i = 0; i < w->parts.num && !r; i++)
		r = scan_part(s, &w->parts.at[i]);
	if (s) {
		free(s->members);
		free(s->seen);
	}
	free(s);
	return r;
}

static int open_parts(struct webdataset *w, const struct input_path *paths,
		      size_t num_paths)
{
	int r = parts_init(&w->parts, paths, num_paths, w->input.log);

	for (size_t i = 0; i < num_paths && !r; i++)
		if (is_compressed(&paths[i]))
			r = refuse_compressed(&paths[i], w->input.log);
	r = r ? r : scan_parts(w);
	if (!r && !w->input.num_samples) {
		log_error(w->input.log,
			  "%s: no samples: expected files such as 0001.jpg and "
			  "0001.cls in the archive",
			  paths[0].path);
		return -ENODATA;
	}
	return r;
}

static int open_webdataset(const struct input_setup *setup, struct input **out)
{
	struct webdataset *w =
		input_new(&input_webdataset, sizeof(*w), setup->log);
	int r;

	if (!w)
		return -ENOMEM;
	r = open_parts(w, setup->paths, setup->num_paths);
	if (r)
		close_webdataset(&w->input);
	else
		*out = &w->input;
	return r;
}

/* --- reading ------------------------------------------------------------- */

static void reader_close(struct input_reader *reader)
{
	if (reader)
		part_file_fini(&((struct webdataset_reader *)reader)->file);
	input_reader_free(reader);
}

static int reader_open(struct input *in, struct input_reader **out)
{
	return input_reader_new(in, sizeof(struct webdataset_reader), out);
}

static int take_int(const char *extension, struct input_value *v,
		    struct input_error *error)
{
	const char *text = v->bytes;
	size_t size = v->size;

	convert_strip(&text, &size);
	if (convert_int(text, size, &v->integer))
		return 0;
	return input_refuse(error, -EBADMSG, ".%s: '%.*s' is no integer",
			    extension, (int)min_u64(size, 40), text);
}

static int take_array(const struct input_field *f, const char *extension,
		      struct input_value *v, struct input_error *error)
{
	uint64_t need = field_dtype_size(f->dtype);
	struct npy npy;
	bool ok = npy_parse(v->bytes, v->size, &npy);

	for (uint32_t i = 0; i < f->ndim && ok; i++)
		ok = mul_ok(need, f->shape[i], &need);
	if (!ok || !range_ok(npy.offset, need, v->size))
		return input_refuse(error, -EBADMSG,
				    ".%s: the array is cut off", extension);
	v->bytes = (const uint8_t *)v->bytes + npy.offset;
	v->size = need;
	return 0;
}

static int take_value(const struct input_field *f, const char *extension,
		      struct input_value *v, struct input_error *error)
{
	switch (f->type) {
	case INPUT_INT:
		return take_int(extension, v, error);
	case INPUT_ARRAY:
		return take_array(f, extension, v, error);
	case INPUT_TEXT:
		return utf8_is_text(v->bytes, v->size)
			       ? 0
			       : input_refuse(error, -EBADMSG, ".%s: not UTF-8",
					      extension);
	case INPUT_JSON:
		return convert_is_json(v->bytes, v->size)
			       ? 0
			       : input_refuse(error, -EBADMSG, ".%s: not JSON",
					      extension);
	default:
		return 0;
	}
}

static int read_value(struct webdataset_reader *r, size_t field,
		      const struct webdataset_range *value,
		      struct input_value *out, struct input_error *error)
{
	const struct webdataset *w = of(r->reader.input);
	const char *extension = w->extensions[field];
	int status = part_file_read(&r->file, &r->reader.memory[field],
				    value->off, value->size, error);

	if (status)
		return status;
	out->bytes = r->reader.memory[field].bytes;
	out->size = value->size;
	return take_value(&w->input.fields[field], extension, out, error);
}

static int read_sample(struct input_reader *reader, uint64_t sample,
		       const bool *wanted, struct input_value *values,
		       struct input_error *error)
{
	struct webdataset_reader *r = (struct webdataset_reader *)reader;
	const struct webdataset *w = of(reader->input);
	const struct webdataset_range *at =
		w->values + sample * w->input.num_fields;
	int status = part_file_move(&r->file, parts_find(&w->parts, sample));

	if (status)
		return input_refuse(error, status, "%s", strerror(-status));
	for (size_t i = 0; i < w->input.num_fields && !status; i++)
		if (wanted[i])
			status = read_value(r, i, &at[i], &values[i], error);
	return status;
}

static void describe(const struct input *in, uint64_t sample, char *out,
		     size_t size)
{
	const struct webdataset *w = of(in);
	const struct part *part = parts_find(&w->parts, sample);
	uint64_t data = w->values[sample * in->num_fields].off;
	char name[TAR_BLOCK] = "?";
	struct file file;
	const char *dot;

	/* The last header of a file is before its bytes. */
	if (!file_open(part->path, &file)) {
		tar_name_at(&file, data - TAR_BLOCK, name, sizeof(name));
		file_close(&file);
	}
	dot = find_dot(name);
	snprintf(out, size, "%s: sample '%.*s'", part->path,
		 (int)(dot ? dot - name : (ptrdiff_t)strlen(name)), name);
}

const struct input_kind input_webdataset = {
	.name = "webdataset",
	.words = "WebDataset shards (.tar)",
	.matches = matches,
	.open = open_webdataset,
	.reader_open = reader_open,
	.read = read_sample,
	.reader_close = reader_close,
	.describe = describe,
	.close = close_webdataset,
};
