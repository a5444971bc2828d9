/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets as a source: files, patterns of files, or mounts of betonfs, whose
   daemon names the file. Values are read as the dataset stores them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/data/dataset/class_union.h"
#include "fs/data/dataset/form.h"
#include "fs/data/dataset/joined.h"
#include "fs/data/dataset/value.h"
#include "fs/source/url/url.h"
#include "loader/tools/input/kinds.h"
#include "loader/util/read_file.h"

enum { OPTIONS_MAX = 1 << 16 }; /* bytes of .betonfs/options */

/* One SOURCE. */
struct beton_part {
	struct dataset *ds;
	uint64_t first;		/* number of its sample 0 in the input */
	struct class_map *maps; /* of its classes, by field */
};

struct beton {
	struct input input;
	size_t num_parts;
	struct beton_part *parts; /* the first one has the class names of all */
};

struct beton_reader {
	struct input_reader reader;
	uint8_t *record;
};

static bool is_mount(const char *directory)
{
	cleanup_free char *path = NULL;

	return asprintf(&path, "%s/.betonfs/options", directory) > 0 &&
	       access(path, F_OK) == 0;
}

static bool matches(const struct input_path *path)
{
	/* No other kind of source is read from a server. */
	if (url_is(path->path))
		return true;
	if (S_ISDIR(path->st.st_mode))
		return is_mount(path->path);
	return S_ISREG(path->st.st_mode) &&
	       input_has_extension(path->path, "beton");
}

static struct beton *of(const struct input *in)
{
	return (struct beton *)in;
}

static void close_part(struct beton_part *part)
{
	uint32_t n = part->ds->format.num_fields;

	for (uint32_t i = 0; part->maps && i < n; i++)
		free(part->maps[i].numbers);
	free(part->maps);
	dataset_close(part->ds);
}

static void close_beton(struct input *in)
{
	struct beton *b = of(in);

	if (!b)
		return;
	for (size_t i = 0; i < b->num_parts; i++)
		close_part(&b->parts[i]);
	free(b->parts);
	free(b->input.fields);
	free(b);
}

/* --- opening ------------------------------------------------------------- */

/* Returns the path of a mount's dataset, which the caller frees. */
static int find_mounted(const char *mount, struct log *log, char **out)
{
	cleanup_free char *path = NULL, *text = NULL;
	char *line = NULL, *rest;
	size_t size;
	int r = text_print(&path, "%s/.betonfs/options", mount);

	r = r ? r : read_file(path, OPTIONS_MAX, &text, &size);
	if (r) {
		log_error(log, "%s: %s", mount, strerror(-r));
		return r;
	}
	rest = text;
	for (char *at = text; (at = strsep(&rest, "\n"));)
		if (!strncmp(at, "dataset=", 8))
			line = at + 8;
	*out = line ? strdup(line) : NULL;
	if (*out)
		return 0;
	log_error(log,
		  "%s: a mount of several datasets: give one of its "
		  "directories",
		  mount);
	return -EINVAL;
}

static int open_path(const struct input_path *path, struct log *log,
		     struct dataset **out)
{
	cleanup_free char *mounted = NULL;
	int r = S_ISDIR(path->st.st_mode)
			? find_mounted(path->path, log, &mounted)
			: 0;

	return r ? r
		 : joined_open(mounted ? mounted : path->path, NULL, log, out);
}

static enum input_type type_of(const struct field *f)
{
	static const enum input_type types[] = {
		[COLUMN_ARRAY] = INPUT_ARRAY,
		[COLUMN_IMAGE] = INPUT_IMAGE,
		[COLUMN_RAGGED] = INPUT_BYTES,
	};

	if (f->type->integer)
		return INPUT_INT;
	if (f->type->real)
		return INPUT_FLOAT;
	if (f->type->ends_in_nul)
		return INPUT_JSON;
	return types[f->type->column];
}

static int add_field(struct beton *b, const struct field *f)
{
	struct input_field *to;

	if (f->unusable || f->type->column == COLUMN_RECORD) {
		log_warning(b->input.log,
			    "%s: leaving out field '%s', whose type is known "
			    "to a Python class only",
			    dataset_path(b->parts[0].ds), f->name);
		return 0;
	}
	to = input_add_field(&b->input, f->name, type_of(f));
	if (!to)
		return -ENOMEM;
	memcpy(to->dtype, f->dtype, sizeof(to->dtype));
	to->ndim = f->ndim;
	memcpy(to->shape, f->shape, sizeof(to->shape));
	to->is_tensor = f->type->type == BETON_TYPE_TENSOR;
	to->index = (uint32_t)(f - b->parts[0].ds->format.fields);
	if (f->classes) {
		to->classes = f->classes->names;
		to->num_classes = f->classes->num;
	}
	return 0;
}

static int check_field(const struct dataset *ds, const struct field *f,
		       const struct dataset *first, const struct field *ours)
{
	char have[FORM_SIZE], want[FORM_SIZE], why[FORM_WHY_SIZE];

	if (strcmp(f->name, ours->name))
		snprintf(why, sizeof(why), "is '%s' in %s", ours->name,
			 dataset_path(first));
	else if (!form_check(form_of_field(f, have), form_of_field(ours, want),
			     dataset_path(first), why))
		return 0;
	log_error(ds->log,
		  "%s: field '%s' %s: --fields with one source at a time makes "
		  "fields equal",
		  dataset_path(ds), f->name, why);
	return -EINVAL;
}

/* Later sources have the fields of the first, in the same order. */
static int check_part(const struct beton *b, const struct dataset *ds)
{
	const struct dataset *first = b->parts[0].ds;
	uint32_t n = ds->format.num_fields;
	int r = 0;

	if (n != first->format.num_fields) {
		log_error(ds->log,
			  "%s: has %u fields, but %s has %u: beton info shows "
			  "them",
			  dataset_path(ds), n, dataset_path(first),
			  first->format.num_fields);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < n && !r; i++)
		r = check_field(ds, &ds->format.fields[i], first,
				&first->format.fields[i]);
	return r;
}

/* Labels of later sources get the numbers of all names. */
static int unite_names(struct beton_part *first, struct beton_part *part)
{
	struct field *all = first->ds->format.fields;
	struct field *more = part->ds->format.fields;
	uint32_t n = part->ds->format.num_fields;
	char why[CLASS_WHY_SIZE];
	int r = 0;

	part->maps = calloc(n, sizeof(*part->maps));
	if (!part->maps)
		return log_no_memory(part->ds->log, NULL);
	for (uint32_t i = 0; i < n && !r; i++) {
		r = class_names_unite(&all[i].classes, more[i].classes,
				      &part->maps[i], dataset_path(first->ds),
				      why);
		class_names_free(steal(more[i].classes));
		if (r)
			log_error(part->ds->log,
				  "%s: field '%s' %s: beton merge "
				  "--keep-numbers joins the files as they are",
				  dataset_path(part->ds), more[i].name, why);
	}
	return r;
}

static int open_parts(struct beton *b, const struct input_path *paths,
		      size_t num_paths)
{
	int r = 0;

	b->parts = calloc(num_paths, sizeof(*b->parts));
	if (!b->parts)
		return log_no_memory(b->input.log, NULL);
	for (size_t i = 0; i < num_paths && !r; i++) {
		struct beton_part *part = &b->parts[i];

		r = open_path(&paths[i], b->input.log, &part->ds);
		if (r)
			break;
		b->num_parts++;
		part->first = b->input.num_samples;
		b->input.num_samples += part->ds->format.samples;
		r = i ? check_part(b, part->ds) : 0;
		r = r || !i ? r : unite_names(b->parts, part);
	}
	return r;
}

static int open_beton(const struct input_setup *setup, struct input **out)
{
	struct beton *b = input_new(&input_beton, sizeof(*b), setup->log);
	const struct format *f;
	int r;

	if (!b)
		return -ENOMEM;
	r = open_parts(b, setup->paths, setup->num_paths);
	b->input.keeps_images = true;
	f = r ? NULL : &b->parts[0].ds->format;
	for (uint32_t i = 0; !r && i < f->num_fields; i++)
		r = add_field(b, &f->fields[i]);
	if (r)
		close_beton(&b->input);
	else
		*out = &b->input;
	return r;
}

/* --- reading ------------------------------------------------------------- */

static void reader_close(struct input_reader *reader)
{
	if (reader)
		free(((struct beton_reader *)reader)->record);
	input_reader_free(reader);
}

static int reader_open(struct input *in, struct input_reader **out)
{
	const struct dataset *ds = of(in)->parts[0].ds;
	struct beton_reader *r;

	if (input_reader_new(in, sizeof(*r), &r))
		return -ENOMEM;
	r->record = malloc(ds->format.itemsize + 1);
	if (!r->record) {
		reader_close(&r->reader);
		return -ENOMEM;
	}
	*out = &r->reader;
	return 0;
}

static const struct beton_part *find_part(const struct input *in,
					  uint64_t sample)
{
	const struct beton *b = of(in);
	const struct beton_part *part = &b->parts[0];

	for (size_t i = 1; i < b->num_parts && b->parts[i].first <= sample; i++)
		part = &b->parts[i];
	return part;
}

static void set_image(const struct value *v, struct input_value *out)
{
	out->stored = true;
	if (v->mode != BETON_MODE_RAW)
		return;
	out->channels = 3;
	out->width = v->width;
	out->height = v->height;
}

/* The first source has no map: its labels stay as they are. */
static int renumber(const struct beton_part *part, const struct input_field *f,
		    int64_t *label, struct input_error *error)
{
	const struct class_names all = { .num = f->num_classes,
					 .names = (const char **)f->classes };

	if (!part->maps || !class_map_apply(&part->maps[f->index], &all, label))
		return 0;
	return input_refuse(error, -EINVAL,
			    "field %s: %lld has no class name, but among all "
			    "sources it would be '%.60s'",
			    f->name, (long long)*label,
			    class_name(&all, *label));
}

static int read_value(struct beton_reader *r, const struct beton_part *part,
		      uint64_t number, size_t i, struct input_value *out,
		      struct input_error *error)
{
	struct dataset *ds = part->ds;
	const uint32_t index = r->reader.input->fields[i].index;
	const struct field *f = &ds->format.fields[index];
	struct input_memory *memory = &r->reader.memory[i];
	struct value v;
	int status = dataset_value(ds, index, number, r->record, &v);

	if (!status && v.size)
		status = input_reserve(memory, v.size);
	if (!status && v.size && field_has_payload(f))
		status = source_read(ds->source, memory->bytes, v.size, v.off);
	if (status)
		return input_refuse(error, status, "field %s: %s", f->name,
				    strerror(-status));
	out->bytes = memory->bytes;
	out->size = v.size;
	if (f->type->real)
		out->real = f->type->real(v.scalar);
	if (field_is_image(f))
		set_image(&v, out);
	if (!f->type->integer)
		return 0;
	out->integer = f->type->integer(v.scalar);
	return renumber(part, &r->reader.input->fields[i], &out->integer,
			error);
}

static int read_sample(struct input_reader *reader, uint64_t sample,
		       const bool *wanted, struct input_value *values,
		       struct input_error *error)
{
	struct beton_reader *r = (struct beton_reader *)reader;
	const struct beton_part *part = find_part(reader->input, sample);
	uint64_t number = sample - part->first;
	int status = dataset_records(part->ds, number, 1, r->record);

	if (status)
		return input_refuse(error, status, "%s", strerror(-status));
	for (size_t i = 0; i < reader->input->num_fields && !status; i++)
		if (wanted[i])
			status = read_value(r, part, number, i, &values[i],
					    error);
	return status;
}

static void describe(const struct input *in, uint64_t sample, char *out,
		     size_t size)
{
	const struct beton_part *part = find_part(in, sample);

	snprintf(out, size, "%s: sample %llu", dataset_path(part->ds),
		 (unsigned long long)(sample - part->first));
}

const struct input_kind input_beton = {
	.name = "beton",
	.words = "a dataset (.beton)",
	.matches = matches,
	.open = open_beton,
	.reader_open = reader_open,
	.read = read_sample,
	.reader_close = reader_close,
	.describe = describe,
	.close = close_beton,
};
