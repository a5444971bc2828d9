/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of augmentation policies: operations by magnitude, and the
 * magnitudes that torchvision's policies use. Results are bit-identical to
 * those of torchvision for images of Pillow, except for the rounding of
 * positions when an image rotates.
 */
#ifndef LOADER_PIPELINE_POLICY_POLICY_H
#define LOADER_PIPELINE_POLICY_POLICY_H

#include <stdbool.h>

#include "loader/image/pixels/warp.h"
#include "loader/util/image.h"

enum policy_kind {
	POLICY_IDENTITY,
	POLICY_SHEAR_X,
	POLICY_SHEAR_Y,
	POLICY_TRANSLATE_X,
	POLICY_TRANSLATE_Y,
	POLICY_ROTATE,
	POLICY_BRIGHTNESS,
	POLICY_COLOR,
	POLICY_CONTRAST,
	POLICY_SHARPNESS,
	POLICY_POSTERIZE,
	POLICY_SOLARIZE,
	POLICY_AUTOCONTRAST,
	POLICY_EQUALIZE,
	POLICY_INVERT,
};

/* The unit of the largest magnitude. */
enum policy_unit {
	POLICY_ONE,
	POLICY_WIDTH, /* of the image */
	POLICY_HEIGHT,
	POLICY_BITS, /* whole bits, which fall from the first magnitude */
};

/* An operation with its magnitudes. */
struct policy_row {
	enum policy_kind kind;
	double first;
	double last;
	enum policy_unit unit;
	bool is_signed; /* a magnitude is negative as often as not */
};

struct policy_space {
	const struct policy_row *rows;
	unsigned count;
};

/* The operations of RandAugment, TrivialAugmentWide, AutoAugment and AugMix.
   Those of AutoAugment are in the order of enum policy_kind, without
   POLICY_IDENTITY. */
extern const struct policy_space policy_rand;
extern const struct policy_space policy_trivial;
extern const struct policy_space policy_auto;
extern const struct policy_space policy_aug_mix;
enum { POLICY_AUG_MIX_PARTIAL = 9 }; /* rows without colors */

/*
 * Magnitude `bin` of `bins`, for an image of that size: float32 as of
 * torch.linspace(), or whole bits. 2 <= bins.
 */
double policy_magnitude(const struct policy_row *row, unsigned bin,
			unsigned bins, uint32_t width, uint32_t height);

/* Sets the map of an operation that moves pixels; false: it leaves them. */
bool policy_map(enum policy_kind kind, double magnitude, uint32_t width,
		uint32_t height, struct affine *out);

/* An image to which operations are applied, one after the other. */
struct canvas {
	struct image now;   /* the result so far */
	struct image spare; /* memory for the next one */
	void *rows;	    /* scratch */
	enum warp_how how;
	uint8_t fill[IMAGE_CHANNELS];
};

/* Bytes of memory that a canvas needs, aligned to 64 bytes. */
uint64_t canvas_scratch(uint32_t width, uint32_t height);

/* Starts on an image, which is changed; sets all but `how` and `fill`. */
void canvas_start(struct canvas *c, const struct image *image, void *scratch);
void canvas_apply(struct canvas *c, enum policy_kind kind, double magnitude);
/* Leaves the result in the image of canvas_start(). */
void canvas_end(struct canvas *c, const struct image *image);

#endif
