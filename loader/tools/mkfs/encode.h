/* SPDX-License-Identifier: Apache-2.0 */
/* One image file -> the bytes that a dataset stores for it. */
#ifndef LOADER_TOOLS_MKFS_ENCODE_H
#define LOADER_TOOLS_MKFS_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"

enum {
	ENCODE_WHY_SIZE = 160,
	ENCODE_SMART_THRESHOLD = 128 << 10,
};

/* --mode: a row of a table, and the P of proportion=P. */
struct encode_mode {
	const struct encode_mode_row *row;
	double proportion;
};

/* How all images of a dataset are stored. */
struct recipe {
	struct encode_mode mode;
	uint64_t smart_threshold; /* bytes of pixels; more becomes JPEG */
	uint64_t quality;
	uint64_t max_resolution; /* 0: no limit */
	uint64_t seed;		 /* of proportion's draws */
	bool index;		 /* JPEGs have one, entry_index.h */
};

/* What became of one image. */
struct encoded {
	int status;  /* 0, or -errno: then `why`, and no bytes */
	bool fatal;  /* not the image's fault: no use in going on */
	void *bytes; /* malloc'ed */
	size_t size;
	enum beton_mode mode;
	uint16_t width;
	uint16_t height;
	char why[ENCODE_WHY_SIZE];
};

/* An option_parse_fn; -EINVAL leaves *mode alone. */
int encode_parse_mode(const char *text, void *mode);

/* One thread's decoder, resampler and encoder. */
struct encoder;

int encoder_open(const struct recipe *recipe, struct encoder **out);
void encoder_close(struct encoder *e);

/*
 * `number` is the image's place in the sequence of images: proportion's draw
 * depends on it and the seed alone. Failures are in out->status.
 */
void encode(struct encoder *e, const char *path, uint64_t number,
	    struct encoded *out);

#endif
