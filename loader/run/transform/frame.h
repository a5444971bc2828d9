/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image during the geometry of a pipeline. A frame starts as an undecoded
 * value. Crops and mirrors only move its view, and a resize stays pending, so
 * that the frame decodes no more than the result needs. The frame computes
 * pixels only at the end, or when a second resize needs the result of the
 * first. Then it converts a few rows at a time from the decoder to the result.
 */
#ifndef LOADER_RUN_TRANSFORM_FRAME_H
#define LOADER_RUN_TRANSFORM_FRAME_H

#include <stdbool.h>

#include "loader/pipeline/op/op.h"
#include "loader/run/transform/cached_image.h"
#include "loader/util/value.h"
#include "loader/util/value_store.h"

struct entry_store;
struct frame;

int frame_open(struct frame **out);
void frame_close(struct frame *f);

/*
 * Starts a new value, which must outlive the frame's use of it. If decode_ns is
 * not NULL, adds the time of decoding to it, in nanoseconds. Returns -EINVAL if
 * the value's size contradicts its description, or -EBADMSG if it is
 * undecodable.
 */
int frame_start(struct frame *f, const struct pipeline_value *value,
		enum quality quality, uint64_t *decode_ns);

/*
 * Uses and keeps the entry points of the JPEG, a sample's value of a field,
 * until the next frame_start().
 */
void frame_keep_entries(struct frame *f, struct entry_store *store,
			uint32_t field, uint64_t id);

/*
 * Starts from an image of frame_cache(), instead of frame_start() and the steps
 * before frame_cache(). Returns false if the image belongs to another value.
 */
bool frame_resume(struct frame *f, const struct pipeline_value *value,
		  enum quality quality, const struct cached_image *kept,
		  uint64_t *decode_ns);

/*
 * Caches the image at this point of the chain. After a resize, it stores the
 * pixels. Otherwise it stores the whole decoded JPEG, as planes if the rest of
 * the chain reads planes. All later steps have the same result as without the
 * call. If there is no room, or if the whole image is undecodable or differs
 * from a decoded part, the call does nothing. It ignores raw images before a
 * resize. It also ignores JPEGs in draft quality, because their decoded size
 * depends on later steps.
 */
void frame_cache(struct frame *f, struct value_store *cache, uint64_t id);

/* Crop the view to `part`, and exchange its left and right. */
void frame_crop(struct frame *f, const struct rect *part);
void frame_mirror(struct frame *f);

/* Resizes the view. Returns -EBADMSG or -ENOMEM. */
int frame_resample(struct frame *f, enum interpolation how, struct size to);

/*
 * Only decodes the required part of the value, if it is not decoded yet.
 */
int frame_decode(struct frame *f);

/*
 * Returns the next rows of the view, valid until the next call. After the last
 * row, band->rows is 0. If *mirror is set, the caller has to exchange left and
 * right. Returns -EBADMSG or -ENOMEM.
 */
int frame_next(struct frame *f, struct band *band, bool *mirror);

/* Returns the reason of the last failure. Valid until the next call. */
const char *frame_message(const struct frame *f);

#endif
