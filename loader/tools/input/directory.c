/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/name.h"
#include "loader/tools/input/kinds.h"
#include "loader/tools/input/scan.h"
#include "loader/tools/picture/picture.h"

/* The mask of an image is as small as a PNG of labels can be. */
static const uint64_t MASK_MAX = (uint64_t)1 << 28;

struct directory {
	struct input input;
	struct scan scan;
	const char *masks; /* NULL: none */
	size_t label;	   /* indexes of the fields; 0: there is none */
	size_t mask;
};

/* A directory without images may be a dataset of a library. */
static bool matches(const struct input_path *path)
{
	return S_ISDIR(path->st.st_mode) && scan_has_images(path->path);
}

static struct directory *of(const struct input *in)
{
	return (struct directory *)in;
}

static void close_directory(struct input *in)
{
	struct directory *d = of(in);

	if (!d)
		return;
	scan_fini(&d->scan);
	free(d->input.fields);
	free(d);
}

static int add_fields(struct directory *d)
{
	struct input *in = &d->input;
	struct input_field *label;

	if (!input_add_field(in, "image", INPUT_IMAGE))
		return -ENOMEM;
	if (!d->scan.has_labels)
		return 0;
	d->label = in->num_fields;
	label = input_add_field(in, "label", INPUT_INT);
	if (!label)
		return -ENOMEM;
	label->classes = (const char *const *)d->scan.classes;
	label->num_classes = d->scan.num_classes;
	return 0;
}

static int scan_paths(struct directory *d, const struct input_path *paths,
		      size_t num_paths)
{
	char names[PICTURE_LIST_SIZE];
	int r = 0;

	for (size_t i = 0; i < num_paths && !r; i++)
		r = scan_add(&d->scan, paths[i].path);
	r = r ? r : scan_finish(&d->scan);
	if (!r && !d->scan.num_files) {
		log_error(d->input.log,
			  "%s: no image files: expected names that end in %s",
			  num_paths == 1 ? paths[0].path : "the sources",
			  picture_extensions(names));
		return -ENODATA;
	}
	return r;
}

static int open_directory(const struct input_setup *setup, struct input **out)
{
	struct directory *d =
		input_new(&input_directory, sizeof(*d), setup->log);
	int r;

	if (!d)
		return -ENOMEM;
	d->scan.log = setup->log;
	r = scan_paths(d, setup->paths, setup->num_paths);
	r = r ? r : add_fields(d);
	if (r) {
		close_directory(&d->input);
		return r;
	}
	d->input.num_samples = d->scan.num_files;
	d->input.ignored = d->scan.ignored;
	*out = &d->input;
	return 0;
}

int directory_add_masks(struct input *in, const char *masks)
{
	struct directory *d = of(in);

	if (in->kind != &input_directory) {
		log_error(in->log,
			  "--masks needs a directory of images, but "
			  "the source is %s",
			  in->kind->words);
		return -EINVAL;
	}
	d->masks = masks;
	d->mask = in->num_fields;
	return input_add_field(in, "mask", INPUT_BYTES) ? 0 : -ENOMEM;
}

/* --- reading ------------------------------------------------------------- */

static int reader_open(struct input *in, struct input_reader **out)
{
	return input_reader_new(in, sizeof(**out), out);
}

static int read_image(struct input_reader *r, const struct scan_file *file,
		      struct input_value *value, struct input_error *error)
{
	int status = input_read_file(file->path, &r->memory[0], &value->size);

	value->bytes = r->memory[0].bytes;
	return status ? input_refuse(error, status, "%s",
				     input_file_why(status))
		      : 0;
}

static int read_mask(struct input_reader *r, const struct scan_file *file,
		     struct input_value *value, struct input_error *error)
{
	const struct directory *d = of(r->input);
	struct input_memory *memory = &r->memory[d->mask];
	const char *rel = file->path + file->rel, *dot = strrchr(rel, '.');
	char *path;
	int status;

	if (text_print(&path, "%s/%.*s.png", d->masks, (int)(dot - rel), rel))
		return input_refuse(error, -ENOMEM, "%s", strerror(ENOMEM));
	status = input_read_file(path, memory, &value->size);
	if (!status && value->size > MASK_MAX)
		status = -EFBIG;
	value->bytes = memory->bytes;
	if (status)
		input_refuse(error, status, "mask %.60s: %s", path,
			     input_file_why(status));
	free(path);
	return status;
}

static int read_sample(struct input_reader *reader, uint64_t sample,
		       const bool *wanted, struct input_value *values,
		       struct input_error *error)
{
	const struct directory *d = of(reader->input);
	const struct scan_file *file = &d->scan.files[sample];
	int status = 0;

	if (wanted[0])
		status = read_image(reader, file, &values[0], error);
	if (d->label && wanted[d->label])
		values[d->label].integer = file->label;
	if (!status && d->mask && wanted[d->mask])
		status = read_mask(reader, file, &values[d->mask], error);
	return status;
}

static void describe(const struct input *in, uint64_t sample, char *out,
		     size_t size)
{
	snprintf(out, size, "%s", of(in)->scan.files[sample].path);
}

const struct input_kind input_directory = {
	.name = "directory",
	.words = "a directory of images",
	.matches = matches,
	.open = open_directory,
	.reader_open = reader_open,
	.read = read_sample,
	.reader_close = input_reader_free,
	.describe = describe,
	.close = close_directory,
};
