/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/image_list.h"

#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"

static const uint8_t MAGIC[8] = { 'b', 'e', 't', 'o', 'n', 'i', 'm', 'g' };

enum { SIZES = sizeof(MAGIC) + 4, ITEM = 4 };

static uint64_t size_at(const struct image_list *list, uint32_t i)
{
	return load32(list->bytes + SIZES + (uint64_t)i * ITEM);
}

int image_list_read(const uint8_t *bytes, uint64_t size, struct image_list *out)
{
	struct image_list list = { bytes, size, 1, true };
	uint64_t end;

	if (size < SIZES || memcmp(bytes, MAGIC, sizeof(MAGIC)) != 0) {
		*out = list;
		return 0;
	}
	list.is_one = false;
	list.count = load32(bytes + sizeof(MAGIC));
	end = SIZES + (uint64_t)list.count * ITEM;
	if (!list.count || list.count > IMAGE_LIST_MAX || end > size)
		return -EBADMSG;
	for (uint32_t i = 0; i < list.count; i++)
		end += size_at(&list, i);
	if (end != size)
		return -EBADMSG;
	*out = list;
	return 0;
}

const uint8_t *image_list_at(const struct image_list *list, uint32_t i,
			     uint64_t *size)
{
	uint64_t at = SIZES + (uint64_t)list->count * ITEM;

	if (list->is_one) {
		*size = list->size;
		return list->bytes;
	}
	for (uint32_t k = 0; k < i; k++)
		at += size_at(list, k);
	*size = size_at(list, i);
	return list->bytes + at;
}
