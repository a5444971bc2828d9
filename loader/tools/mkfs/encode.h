/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes one image to the bytes that a dataset stores for it. */
#ifndef LOADER_TOOLS_MKFS_ENCODE_H
#define LOADER_TOOLS_MKFS_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"
#include "loader/tools/input/input.h"

enum {
	ENCODE_WHY_SIZE = 160,
	ENCODE_SMART_THRESHOLD = 128 << 10,
};

/* The argument of --mode: a row of a table, and P of proportion=P. */
struct encode_mode {
	const struct encode_mode_row *row;
	double proportion;
};

/* The storage of all images of a dataset. */
struct recipe {
	struct encode_mode mode;
	uint64_t smart_threshold; /* bytes of pixels; a larger image becomes a
				     JPEG */
	uint64_t quality;
	uint64_t max_resolution; /* 0: no limit */
	uint64_t seed;		 /* of the random draws of --mode=proportion */
	bool check;		 /* decode files that are kept, too */
	bool index;		 /* add an index to JPEGs (entry_index.h) */
};

/* The result for one image. */
struct encoded {
	int status;  /* 0, or -errno: then `why`, and no bytes */
	bool fatal;  /* not the image's fault: the next image would fail too */
	void *bytes; /* malloc'ed */
	size_t size;
	enum beton_mode mode;
	uint16_t width;
	uint16_t height;
	char why[ENCODE_WHY_SIZE];
};

/* An option_parse_fn. On -EINVAL *mode does not change. */
int encode_parse_mode(const char *text, void *mode);

/* Returns the name of a mode. */
const char *encode_mode_name(const struct encode_mode *mode);

/* One thread's decoder, resampler and encoder. */
struct encoder;

int encoder_open(const struct recipe *recipe, struct encoder **out);
void encoder_close(struct encoder *e);

/*
 * Encodes an image file or pixels. `number` is the image's position in the
 * sequence of images: the draw of --mode=proportion depends on it and the seed
 * alone. Failures are in out->status.
 */
void encode(struct encoder *e, const struct input_value *image, uint64_t number,
	    struct encoded *out);

#endif
