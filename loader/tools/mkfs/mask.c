/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/mask.h"

#include <errno.h>

#include "loader/image/codec/png.h"

void mask_check(void *arg, struct made *made)
{
	const struct mapping *mapping = arg;
	const struct writer_value *image = &made->values[0];
	const struct writer_value *mask =
		&made->values[mapping->num_fields - 1];
	struct png_size size;

	if (png_measure(mask->bytes, mask->size, &size))
		made->status = input_refuse(&made->error, -EBADMSG,
					    "its mask is not a PNG");
	else if (size.width != image->width || size.height != image->height)
		made->status = input_refuse(
			&made->error, -EINVAL,
			"its mask is %ux%u, but the image is stored as %ux%u",
			size.width, size.height, image->width, image->height);
}
