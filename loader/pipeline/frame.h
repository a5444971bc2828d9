/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image on its way through geometry. A frame starts as a value that is not
 * decoded. Crops and mirrors only move its view, and a resize is only noted, so
 * that the frame decodes no more than the result needs. It computes nothing
 * until another resize needs the pixels of the one before, or until the end.
 * Then pixels pass from the decoder to the result a few rows at a time.
 */
#ifndef LOADER_PIPELINE_FRAME_H
#define LOADER_PIPELINE_FRAME_H

#include <stdbool.h>

#include "loader/graph/op.h"
#include "loader/pipeline/cached_image.h"
#include "loader/pipeline/value_store.h"
#include "loader/util/value.h"

struct frame;

int frame_open(struct frame **out);
void frame_close(struct frame *f);

/*
 * Starts on a new value, which must live until the next one. Adds the time of
 * decoding to *decode_ns, if that is not NULL. -EINVAL: the value's size
 * contradicts its description; -EBADMSG: it cannot be decoded.
 */
int frame_start(struct frame *f, const struct pipeline_value *value,
		enum quality quality, uint64_t *decode_ns);

/*
 * Continues a value from frame_keep()'s image, instead of frame_start() and the
 * steps before it. False: the image is of another value.
 */
bool frame_resume(struct frame *f, const struct pipeline_value *value,
		  enum quality quality, const struct cached_image *kept,
		  uint64_t *decode_ns);

/*
 * Caches the image at this point of the chain. After a resize, it stores the
 * pixels. Otherwise it stores the whole decoded JPEG, as planes if the rest of
 * the chain reads planes. All later steps give the same bits, or the same
 * failure, as without the call. If there is no room, or if the whole image
 * cannot be decoded or differs from a decoded part, it stores nothing and
 * changes nothing. It stores no raw images before a resize, and no JPEGs in
 * draft quality, because the size at which they are decoded depends on later
 * steps.
 */
void frame_keep(struct frame *f, struct value_store *cache, uint64_t id);

/* Crops the view to `part`; exchanges the view's left and right. */
void frame_crop(struct frame *f, const struct rect *part);
void frame_mirror(struct frame *f);

/* Resizes the view. -EBADMSG, -ENOMEM */
int frame_resample(struct frame *f, enum interpolation how, struct size to);

/*
 * Decodes the needed part of a value that is not decoded yet, and does nothing
 * else.
 */
int frame_decode(struct frame *f);

/*
 * The next rows of the view, valid until the next call. band->rows is 0 after
 * the last. *mirror: the caller still has to exchange left and right. -EBADMSG,
 * -ENOMEM
 */
int frame_next(struct frame *f, struct band *band, bool *mirror);

/* The reason why the last call failed; valid until the next call. */
const char *frame_message(const struct frame *f);

#endif
