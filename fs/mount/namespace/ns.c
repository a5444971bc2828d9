/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic: an inode number is, from the highest bit down, the kind, the
 * dataset, the part and the index. So the root, which is number 1 among the
 * fixed objects, comes out as FUSE wants it, and no object as 0.
 */
#include "fs/mount/namespace/ns.h"

#include "fs/base/util/bytes.h"

_Static_assert(NS_KIND_BITS + NS_DATASET_BITS + NS_PART_BITS + NS_INDEX_BITS ==
		       64,
	       "an inode number has 64 bits");
_Static_assert(NS_KINDS <= 1 << NS_KIND_BITS, "too many kinds");
_Static_assert(FORMAT_SAMPLES_MAX <= (uint64_t)1 << NS_INDEX_BITS,
	       "samples are numbered in the index");
_Static_assert((int)FORMAT_FIELDS_MAX <= (int)NS_PARTS_MAX,
	       "fields are numbered in the part");

enum {
	PART_SHIFT = NS_INDEX_BITS,
	DATASET_SHIFT = PART_SHIFT + NS_PART_BITS,
	KIND_SHIFT = DATASET_SHIFT + NS_DATASET_BITS,
};

static uint64_t low_bits(uint64_t v, unsigned bits)
{
	return v & (((uint64_t)1 << bits) - 1);
}

uint64_t ns_ino(const struct ns_object *object)
{
	return (uint64_t)object->kind << KIND_SHIFT |
	       (uint64_t)object->dataset << DATASET_SHIFT |
	       (uint64_t)object->part << PART_SHIFT | object->index;
}

struct ns_object ns_object(uint64_t ino)
{
	return (struct ns_object){
		.kind = (enum ns_kind)(ino >> KIND_SHIFT),
		.dataset = (uint32_t)low_bits(ino >> DATASET_SHIFT,
					      NS_DATASET_BITS),
		.part = (uint32_t)low_bits(ino >> PART_SHIFT, NS_PART_BITS),
		.index = low_bits(ino, NS_INDEX_BITS),
	};
}
