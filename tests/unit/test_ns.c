/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/namespace/ns.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

static const uint64_t indices[] = { 0,		1,
				    2,		999999,
				    1ull << 32, (1ull << NS_INDEX_BITS) - 1 };
static const uint32_t parts[] = { 0, 1, 4095, NS_PARTS_MAX - 1 };

static bool same(const struct ns_object *a, const struct ns_object *b)
{
	return a->kind == b->kind && a->dataset == b->dataset &&
	       a->part == b->part && a->index == b->index;
}

static void round_trip(const struct ns_object *object)
{
	const struct ns_object back = ns_object(ns_ino(object));

	CHECK(same(&back, object));
}

static void test_the_root_is_inode_1(void)
{
	const struct ns_object root = { NS_FIXED, 0, 0, NS_ROOT };
	const struct ns_object back = ns_object(1);

	CHECK(ns_ino(&root) == 1);
	CHECK(same(&back, &root));
}

static void test_every_object_comes_back_from_its_number(void)
{
	for (unsigned kind = 0; kind < NS_KINDS; kind++)
		for (size_t i = 0; i < ARRAY_LEN(parts); i++)
			for (size_t j = 0; j < ARRAY_LEN(indices); j++)
				round_trip(&(struct ns_object){
					(enum ns_kind)kind,
					(1u << NS_DATASET_BITS) - 1, parts[i],
					indices[j] });
}

/* Each takes bits of its own: numbers that differ in one of them differ. */
static void test_no_two_objects_share_a_number(void)
{
	const uint64_t all = ns_ino(&(struct ns_object){
		(enum ns_kind)((1u << NS_KIND_BITS) - 1),
		(1u << NS_DATASET_BITS) - 1, NS_PARTS_MAX - 1,
		(1ull << NS_INDEX_BITS) - 1 });
	const uint64_t sum =
		ns_ino(&(struct ns_object){
			(enum ns_kind)((1u << NS_KIND_BITS) - 1), 0, 0, 0 }) +
		ns_ino(&(struct ns_object){
			NS_FIXED, (1u << NS_DATASET_BITS) - 1, 0, 0 }) +
		ns_ino(&(struct ns_object){ NS_FIXED, 0, NS_PARTS_MAX - 1,
					    0 }) +
		ns_ino(&(struct ns_object){ NS_FIXED, 0, 0,
					    (1ull << NS_INDEX_BITS) - 1 });

	CHECK(all == UINT64_MAX);
	CHECK(sum == UINT64_MAX);
}

static void test_only_nothing_is_number_0(void)
{
	const struct ns_object sample = { NS_SAMPLE, 0, 0, 0 };
	const struct ns_object value = { NS_VALUE, 0, 0, 0 };

	CHECK(ns_ino(&sample) != 0);
	CHECK(ns_ino(&value) != ns_ino(&sample));
}

int main(void)
{
	test_the_root_is_inode_1();
	test_every_object_comes_back_from_its_number();
	test_no_two_objects_share_a_number();
	test_only_nothing_is_number_0();
	return 0;
}
