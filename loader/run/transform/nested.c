/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/nested.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/pipeline/op/operands.h"
#include "loader/run/jit/pointwise_rows.h"

int nested_init(struct nested *m, size_t max_floats)
{
	m->operands = calloc(max_floats + 1, sizeof(*m->operands));
	return m->operands ? 0 : -ENOMEM;
}

void nested_fini(struct nested *m)
{
	free(m->operands);
	buffer_fini(&m->scratch);
	buffer_fini(&m->beside);
}

int nested_refuse(struct nested *m, const struct worker_job *job,
		  struct size size, const struct type *want)
{
	snprintf(m->message, sizeof(m->message),
		 "an image of %ux%u comes out as %ux%u, but `%s' is %ux%u as "
		 "sample 0; set the size, as in `image | center_crop(224)', or "
		 "leave the field out, as in `image | drop'",
		 job->value->width, job->value->height, size.width, size.height,
		 job->plan->chain->name, want->width, want->height);
	return -EINVAL;
}

bool nested_fits(struct size size, const struct type *type)
{
	return size.width == type->width && size.height == type->height;
}

int nested_no_memory(struct nested *m, struct size size)
{
	snprintf(m->message, sizeof(m->message), "no memory for %ux%u pixels",
		 size.width, size.height);
	return -ENOMEM;
}

int nested_reserve(struct nested *m, const struct node *n, struct size size)
{
	const struct op_image *op = n->op->image;
	uint64_t bytes = op->scratch ? op->scratch(&n->args, size) : 0;

	return bytes && buffer_reserve(&m->scratch, bytes)
		       ? nested_no_memory(m, size)
		       : 0;
}

static void exchange_pixels(uint8_t *a, uint8_t *b)
{
	uint8_t pixel[3];

	memcpy(pixel, a, 3);
	memcpy(a, b, 3);
	memcpy(b, pixel, 3);
}

static void mirror_image(const struct image *image)
{
	for (uint32_t y = 0; y < image->height; y++) {
		uint8_t *a = image->pixels + y * image->stride;
		uint8_t *b = a + 3 * ((size_t)image->width - 1);

		for (; a < b; a += 3, b -= 3)
			exchange_pixels(a, b);
	}
}

static void mirror_nested(const struct worker_job *job, const struct node *n,
			  const struct image *image)
{
	struct draw draw;

	operands_draw(job->row, n, (struct size){ image->width, image->height },
		      &draw);
	if (draw.mirror)
		mirror_image(image);
}

/* Copies an image of the same size. */
static void copy_image(const struct image *from, const struct image *to)
{
	for (uint32_t y = 0; y < to->height; y++)
		memcpy(to->pixels + y * to->stride,
		       from->pixels + y * from->stride, 3 * (size_t)to->width);
}

/* Sets `out` to memory for an image of the same size. */
static int find_beside(struct nested *m, const struct image *image,
		       struct image *out)
{
	*out = (struct image){ NULL, image->width, image->height,
			       3 * (size_t)image->width };
	if (buffer_reserve(&m->beside, out->stride * image->height))
		return nested_no_memory(
			m, (struct size){ image->width, image->height });
	out->pixels = m->beside.bytes;
	return 0;
}

/* Writes the operation's result to other memory, and copies it to the image. */
static int redraw_nested(struct nested *m, const struct worker_job *job,
			 const struct node *n, const struct op_sample *sample,
			 const struct image *image)
{
	const struct size size = { image->width, image->height };
	struct size to = op_resized(n->op, &n->args, size);
	struct image out;
	int r;

	if (to.width != size.width || to.height != size.height)
		return nested_refuse(m, job, to, &n->type);
	if (size.width > OP_SIZE_MAX || size.height > OP_SIZE_MAX)
		return nested_no_memory(m, size);
	r = find_beside(m, image, &out);
	if (r)
		return r;
	n->op->image->redraw(&n->args, sample, image, &out);
	copy_image(&out, image);
	return 0;
}

static int run_lists(struct nested *m, const struct worker_job *job,
		     const struct node *n, const struct image *image);

int nested_run(struct nested *m, const struct worker_job *job,
	       const struct node *n, const struct image *image)
{
	const struct size size = { image->width, image->height };
	struct rng rng = operands_rng(job->row, n);
	struct op_sample sample = { .id = job->row->id,
				    .uniform = operands_uniform(&rng) };
	int r;

	if (n->num_branches)
		return run_lists(m, job, n, image);
	if (n->op->image->is_sized && !nested_fits(size, &n->type))
		return nested_refuse(m, job, size, &n->type);
	r = nested_reserve(m, n, size);
	if (r)
		return r;
	sample.scratch = m->scratch.bytes;
	if (n->op->image->redraw)
		return redraw_nested(m, job, n, &sample, image);
	n->op->image->in_place(&n->args, &sample, image);
	return 0;
}

/* Number of rows that fit into the CPU's cache. */
enum { VALUE_ROWS = 16 };

/* Runs the pointwise stage on some rows of an image, and copies the result to
   them. */
static void run_rows(const struct pointwise *stage, struct pointwise_image *to,
		     const struct image *rows)
{
	struct band band = { .step = 3,
			     .stride = rows->stride,
			     .rows = rows->height };
	const struct image out = { to->out, rows->width, rows->height,
				   3 * (size_t)rows->width };

	for (unsigned c = 0; c < 3; c++)
		band.channel[c] = rows->pixels + c;
	pointwise_band(stage, to, &band);
	copy_image(&out, rows);
}

/* Maps the bytes of an image in place. */
static void map_image(const struct byte_map *map, const struct image *image)
{
	for (uint32_t y = 0; y < image->height; y++) {
		uint8_t *row = image->pixels + y * image->stride;

		byte_map_run(map, row, 3 * (size_t)image->width, row);
	}
}

/* Runs the value operations of a list from `first` on. */
static int run_values(struct nested *m, const struct worker_job *job,
		      const struct node *first, const struct image *image)
{
	const struct pointwise *stage =
		&output_plan_nested(job->plan, first)->pointwise;
	struct pointwise_image to = {
		.size = { image->width, image->height },
		.operands = pointwise_operands(stage, job->row, m->operands),
	};
	const struct byte_map *map = pointwise_map(stage, to.operands, &m->map);
	struct image rows = *image, out;
	int r;

	if (map) {
		map_image(map, image);
		return 0;
	}
	rows.height = VALUE_ROWS;
	r = find_beside(m, &rows, &out);
	if (r)
		return r;
	to.out = out.pixels;
	for (uint32_t y = 0; y < image->height; y += VALUE_ROWS) {
		rows.pixels = image->pixels + y * image->stride;
		if (image->height - y < VALUE_ROWS)
			rows.height = image->height - y;
		run_rows(stage, &to, &rows);
	}
	return 0;
}

static int run_list(struct nested *m, const struct worker_job *job,
		    const struct chain *list, const struct image *image)
{
	size_t end;
	int r = 0;

	for (size_t i = 0; !r && i < list->num_nodes; i = end) {
		const struct node *n = &list->nodes[i];

		for (end = i; end < list->num_nodes; end++) {
			if (!node_is_value(&list->nodes[end]))
				break;
		}
		if (end > i) {
			r = run_values(m, job, n, image);
			continue;
		}
		end++;
		if (n->op->kind == OP_GEOMETRY)
			mirror_nested(job, n, image);
		else
			r = nested_run(m, job, n, image);
	}
	return r;
}

/* Runs the lists that the operation chooses, in place. */
static int run_lists(struct nested *m, const struct worker_job *job,
		     const struct node *n, const struct image *image)
{
	struct rng rng = operands_rng(job->row, n);
	unsigned order[OP_BRANCHES_MAX];
	size_t count = n->op->branches->pick(&n->args, n->num_branches,
					     operands_uniform(&rng), order);
	int r = 0;

	for (size_t i = 0; !r && i < count; i++)
		r = run_list(m, job, &n->branches[order[i]], image);
	return r;
}
