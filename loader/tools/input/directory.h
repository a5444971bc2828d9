/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of images as a source: field `image`, field `label` if every
 * image is in the directory of its class, and field `mask` on request.
 */
#ifndef LOADER_TOOLS_INPUT_DIRECTORY_H
#define LOADER_TOOLS_INPUT_DIRECTORY_H

#include "loader/tools/input/input.h"

/*
 * Adds the masks of the images: the PNG of the same path and name in `masks`,
 * which must outlive the input, as field `mask`. -EINVAL if the input is no
 * directory; logged.
 */
int directory_add_masks(struct input *in, const char *masks);

#endif
