/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resampling an 8-bit RGB image along a map from places of the result to places
 * of the image. Places are in pixels, from the top left corner of the top left
 * pixel, whose center is (0.5, 0.5). That is Pillow's convention, and so
 * torchvision's for images of Pillow.
 *
 *   NEAREST   the pixel that the place of a result's center lies in
 *   BILINEAR  the four pixels whose centers surround that place, or, beside
 *             the outermost centers, the outermost ones again
 *
 * A place outside the image gives the fill color. Places are whole multiples of
 * 2^-16 pixels: of an affine map those of a row's first pixel and the steps are
 * rounded to that once. Bilinear weights are multiples of 2^-11, and results
 * are truncated.
 */
#ifndef LOADER_IMAGE_PIXELS_WARP_H
#define LOADER_IMAGE_PIXELS_WARP_H

#include <stdbool.h>

#include "loader/image/pixels/place.h"
#include "loader/util/image.h"

enum warp_how {
	WARP_NEAREST,
	WARP_BILINEAR,
};

/* The result's (x, y) lies at (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]).
 */
struct affine {
	double m[6];
};

enum { WARP_MAPS_MAX = 64 };

/* Makes `out` of `in`, which are apart, here and below; and of `out` only the
   part `seen`, if that is not NULL. */
void warp_affine(const struct affine *map, enum warp_how how,
		 const uint8_t fill[IMAGE_CHANNELS], const struct image *in,
		 const struct image *out, const struct rect *seen);

/*
 * The result's (x, y) lies at ((m[0] x + m[1] y + m[2]) / d,
 * (m[3] x + m[4] y + m[5]) / d) with d = m[6] x + m[7] y + 1. Places are
 * rounded down to 2^-16 pixels, each by itself.
 */
struct perspective {
	double m[8];
};

/* Either of them. */
struct warp_map {
	double m[8]; /* the last two are 0 unless it divides */
	bool divides;
};

struct warp_map warp_map_of(const struct affine *map);

/*
 * Maps that do not divide and that an image gets one after the other, at most
 * WARP_MAPS_MAX, become one resampling: out[0] is the product, by which pixels
 * are found. By each of the others a place must be inside an image of the same
 * size, else the pixel has the fill color.
 */
void warp_join(const struct warp_map *maps, size_t count, struct warp_map *out);

/* One resampling by joined maps. */
void warp_joined(const struct warp_map *joined, size_t count, enum warp_how how,
		 const uint8_t fill[IMAGE_CHANNELS], const struct image *in,
		 const struct image *out, const struct rect *seen);

/* Sets where pixels x to x + count - 1 of a row of the result lie in an image
   of this size; count <= WARP_PLACES. */
void warp_find(const struct warp_map *map, uint32_t width, uint32_t height,
	       uint32_t x, uint32_t y, size_t count, struct warp_places *out);
/* Does warp_find() for a map of warp_displaced(). The displacement of pixel x
   in the row is *dx, *dy. */
void warp_find_displaced(const float *dx, const float *dy, uint32_t width,
			 uint32_t height, uint32_t x, uint32_t y, size_t count,
			 struct warp_places *out);

void warp_image(const struct warp_map *map, enum warp_how how,
		const uint8_t fill[IMAGE_CHANNELS], const struct image *in,
		const struct image *out, const struct rect *seen);

/*
 * The map under which the points `to` of the result lie at `from`; each four
 * (x, y). False: there is none, as three of a side's points are on a line.
 */
bool perspective_of(const double from[4][2], const double to[4][2],
		    struct perspective *out);

/*
 * The result's pixel i, row by row, lies away from its own place by (dx[i],
 * dy[i]) pixels.
 */
void warp_displaced(const float *dx, const float *dy, enum warp_how how,
		    const uint8_t fill[IMAGE_CHANNELS], const struct image *in,
		    const struct image *out, const struct rect *seen);

/*
 * Turns an image counterclockwise by degrees, scales it and shears it, both
 * angles in degrees, about a center, and then moves it by (tx, ty); as
 * torchvision's affine().
 */
struct affine_words {
	double degrees;
	double scale;
	double shear[2];
	double translate[2];
	double center[2];
};

struct affine affine_of(const struct affine_words *words);

/* As Pillow's rotate(): counterclockwise, about the middle. */
struct affine affine_rotation(double degrees, uint32_t width, uint32_t height);

/* Row y moves by -level * y pixels; and column x by -level * x. */
struct affine affine_shear_x(double level);
struct affine affine_shear_y(double level);
/* An image moves to the right and down. */
struct affine affine_translation(double x, double y);

#endif
