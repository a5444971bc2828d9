/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/value_file.h"
#include "fs/data/dataset/value.h"

static void sample_segment(const struct vfile *vfile, uint64_t off,
			   struct segment *out)
{
	const struct sample_file *file = (const struct sample_file *)vfile;

	if (off < file->head_size)
		*out = (struct segment){
			.kind = SEGMENT_LITERAL,
			.size = file->head_size,
			.literal = file->head,
		};
	else
		*out = (struct segment){
			.kind = SEGMENT_RANGE,
			.start = file->head_size,
			.size = file->value.size,
			.off = file->value.off,
		};
}

static size_t make_head(char *head, const struct field *f,
			const struct value *v)
{
	return f->type->head ? f->type->head(f, v, head) : 0;
}

void sample_file_init(struct sample_file *file, struct dataset *ds,
		      uint32_t field, const struct value *value)
{
	const struct field *f = &ds->format.fields[field];

	file->value = *value;
	if (field_is_scalar(f))
		file->value.size = 0;
	file->head_size = make_head(file->head, f, value);
	file->vfile = (struct vfile){
		.ds = ds,
		.size = file->head_size + file->value.size,
		.segment_at = sample_segment,
	};
}

uint64_t sample_file_size(const struct dataset *ds, uint32_t field,
			  const struct value *value)
{
	const struct field *f = &ds->format.fields[field];
	char head[NPY_HEADER_MAX];

	return make_head(head, f, value) +
	       (field_is_scalar(f) ? 0 : value->size);
}

static void column_segment(const struct vfile *vfile, uint64_t off,
			   struct segment *out)
{
	const struct column_file *file = (const struct column_file *)vfile;
	const struct format *format = &vfile->ds->format;
	const struct field *f = &format->fields[file->field];
	uint64_t sample, n, at;

	if (off < file->head_size) {
		*out = (struct segment){
			.kind = SEGMENT_LITERAL,
			.size = file->head_size,
			.literal = file->head,
		};
		return;
	}
	sample = (off - file->head_size) / f->meta_size;
	at = dataset_record_at(vfile->ds, sample, &n);
	*out = (struct segment){
		.kind = SEGMENT_STRIDED,
		.start = file->head_size + sample * f->meta_size,
		.size = n * f->meta_size,
		.off = at + f->meta_off,
		.stride = format->itemsize,
		.width = f->meta_size,
	};
}

void column_file_init(struct column_file *file, struct dataset *ds,
		      uint32_t field)
{
	const struct format *format = &ds->format;
	const struct field *f = &format->fields[field];

	file->field = field;
	file->head_size = npy_header(file->head, f->dtype, 1, &format->samples);
	file->vfile = (struct vfile){
		.ds = ds,
		.size = file->head_size + f->meta_size * format->samples,
		.segment_at = column_segment,
	};
}
