/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/npy.h"
#include "loader/pipeline/op/sample_ids.h"
#include "loader/pipeline/text/token.h"
#include "loader/util/read_file.h"

enum { MASK, ALPHA, IDS, CLAMP, FILE_MAX = 64 << 20 };

static const struct param params[] = {
	[MASK] = { .name = "mask",
		   .kind = PARAM_NAME,
		   .help = ".npy file of height, width and 3 colors" },
	[ALPHA] = { .name = "alpha",
		    .kind = PARAM_NAME,
		    .help = "weight of the mask: .npy file of height and "
			    "width, or a number" },
	[IDS] = { .name = "ids",
		  .kind = PARAM_NAME,
		  .help = "ids of the samples, as \"3,17\", or a file of ids" },
	[CLAMP] = { .name = "clamp",
		    .kind = PARAM_REALS,
		    .initial = "0,255",
		    .min_count = 2,
		    .max_count = 2,
		    .min = 0,
		    .max = 255,
		    .help = "least and greatest value of the result" },
	{ 0 },
};

struct poison {
	struct sample_ids *ids;
	uint32_t width;
	uint32_t height;
	float *keep;  /* factor of each pixel's own values */
	float *added; /* addend of each value */
};

static void unload(void *loaded)
{
	struct poison *p = loaded;

	if (!p)
		return;
	sample_ids_close(p->ids);
	free(p->keep);
	free(p->added);
	free(p);
}

/* Reads a .npy file of numbers with `ndim` dimensions. */
static int read_array(const char *path, uint32_t ndim, const char *what,
		      struct npy *npy, double **out, char *why, size_t size)
{
	cleanup_free char *bytes = NULL;
	size_t length;
	uint64_t count = 1, need;
	enum dtype type;
	int r = read_file(path, FILE_MAX, &bytes, &length);

	if (r) {
		snprintf(why, size, "%s: %s", path, strerror(-r));
		return r == -ENOMEM ? r : -EINVAL;
	}
	if (!npy_parse(bytes, length, npy) || npy->ndim != ndim ||
	    (type = dtype_by_name(npy->dtype)) == DTYPE_OTHER) {
		snprintf(why, size, "%s: not a .npy file of %s", path, what);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < ndim; i++)
		r |= !mul_ok(count, npy->shape[i], &count);
	if (r || !mul_ok(count, dtype_size(type), &need) ||
	    !range_ok(npy->offset, need, length)) {
		snprintf(why, size, "%s: shorter than its shape", path);
		return -EINVAL;
	}
	*out = calloc(count + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	dtype_convert(type, bytes + npy->offset, DTYPE_F8, *out, count);
	return 0;
}

static int load_mask(struct poison *p, const char *path, double **out,
		     char *why, size_t size)
{
	struct npy npy;
	int r = read_array(path, 3, "height, width and 3 colors", &npy, out,
			   why, size);

	if (r)
		return r;
	if (npy.shape[0] > OP_SIZE_MAX || npy.shape[1] > OP_SIZE_MAX ||
	    npy.shape[2] != 3) {
		snprintf(why, size, "%s: not of height, width and 3 colors",
			 path);
		return -EINVAL;
	}
	p->height = (uint32_t)npy.shape[0];
	p->width = (uint32_t)npy.shape[1];
	return 0;
}

/* Reads alpha: a number, or a file with one per pixel. */
static int load_alpha(const struct poison *p, const char *text, double *number,
		      double **out, char *why, size_t size)
{
	struct npy npy;
	int r;

	if (!token_number(text, text + strlen(text), number))
		return 0;
	r = read_array(text, 2, "height and width", &npy, out, why, size);
	if (!r && (npy.shape[0] != p->height || npy.shape[1] != p->width)) {
		snprintf(why, size, "%s: not as high and wide as the mask",
			 text);
		return -EINVAL;
	}
	return r;
}

static int mix(struct poison *p, const double *mask, const double *alphas,
	       double alpha)
{
	size_t count = (size_t)p->width * p->height;

	p->keep = calloc(count + 1, sizeof(*p->keep));
	p->added = calloc(3 * count + 1, sizeof(*p->added));
	if (!p->keep || !p->added)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		double a = alphas ? alphas[i] : alpha;

		p->keep[i] = (float)(1 - a);
		for (size_t c = 3 * i; c < 3 * i + 3; c++)
			p->added[c] = (float)(mask[c] * a);
	}
	return 0;
}

static int load(struct args *args, char *why, size_t size)
{
	cleanup_free double *mask = NULL;
	cleanup_free double *alphas = NULL;
	struct poison *p = calloc(1, sizeof(*p));
	double alpha = 0;
	int r;

	if (!p)
		return -ENOMEM;
	r = load_mask(p, args->arg[MASK].text, &mask, why, size);
	if (!r)
		r = load_alpha(p, args->arg[ALPHA].text, &alpha, &alphas, why,
			       size);
	if (!r)
		r = sample_ids_open(args->arg[IDS].text, &p->ids, why, size);
	if (!r)
		r = mix(p, mask, alphas, alpha);
	if (r)
		unload(p);
	else
		args->loaded = p;
	return r;
}

static const char *check(const struct args *args)
{
	const double *clamp = args->arg[CLAMP].number;

	return clamp[0] > clamp[1]
		       ? "the least value is greater than the greatest"
		       : NULL;
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	const char *wrong = op_infer_image(args, in, out);
	const struct poison *p = args->loaded;

	if (wrong)
		return wrong;
	if (in->width != p->width || in->height != p->height)
		return "has a mask that is not as high and wide as the image";
	return NULL;
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	const struct poison *p = args->loaded;
	float low = (float)args->arg[CLAMP].number[0];
	float high = (float)args->arg[CLAMP].number[1];
	const float *keep = p->keep, *added = p->added;

	if (!sample_ids_has(p->ids, sample->id))
		return;
	for (uint32_t y = 0; y < image->height; y++) {
		uint8_t *v = image->pixels + y * image->stride;

		for (size_t i = 0; i < 3 * (size_t)image->width; i++) {
			float to = v[i] * keep[i / 3] + added[i];

			to = to > low ? to : low;
			v[i] = op_whole(to < high ? to : high);
		}
		keep += image->width;
		added += 3 * (size_t)image->width;
	}
}

const struct op op_poison = {
	.name = "poison",
	.help = "Blend some samples with an image",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = infer,
	.load = load,
	.unload = unload,
	.image =
		&(const struct op_image){
			.in_place = image,
			.keeps_places = true,
			.is_sized = true,
		},
};
