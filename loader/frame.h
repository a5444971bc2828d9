/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image on its way through geometry. A frame starts as a value not looked
 * at; crops and mirrors only move its view, so that what is decoded is what the
 * first resampling, or the end, has to see.
 */
#ifndef LOADER_FRAME_H
#define LOADER_FRAME_H

#include <stdbool.h>

#include "loader/codec.h"
#include "loader/image.h"
#include "loader/op.h"
#include "loader/pipeline.h"

struct frame;

int frame_open(struct frame **out);
void frame_close(struct frame *f);

/*
 * Takes up a new value, which must live until the next. -EINVAL: it is not what
 * it announces; -EBADMSG: not decodable.
 */
int frame_start(struct frame *f, const struct pipeline_value *value,
		enum quality quality);

/* Keeps `part` of the view; exchanges the view's left and right. */
void frame_crop(struct frame *f, const struct rect *part);
void frame_mirror(struct frame *f);

/*
 * Decodes the view, if that is still to be done. -EBADMSG; the time is added to
 * *decode_ns, if that is not NULL.
 */
int frame_decode(struct frame *f, uint64_t *decode_ns);

/* After frame_decode(): the view becomes an image of another size. */
int frame_resample(struct frame *f, enum interpolation how, struct size to);

/* After frame_decode(): the view; *mirror: left and right are exchanged. */
struct image frame_image(const struct frame *f, bool *mirror);

/* Why the last call failed; valid until the next. */
const char *frame_message(const struct frame *f);

#endif
