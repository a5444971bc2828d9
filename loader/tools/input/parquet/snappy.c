/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/parquet/snappy.h"

#include <string.h>

#include "fs/util/bytes.h"

struct in {
	const uint8_t *at;
	const uint8_t *end;
};

/* Takes a number of n bytes. */
static bool take_number(struct in *in, unsigned n, uint64_t *out)
{
	*out = 0;
	if ((size_t)(in->end - in->at) < n)
		return false;
	for (unsigned i = 0; i < n; i++)
		*out |= (uint64_t)*in->at++ << (8 * i);
	return true;
}

static bool take_size(struct in *in, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; shift < 35 && in->at < in->end; shift += 7) {
		uint8_t byte = *in->at++;

		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool take_literal(struct in *in, uint8_t tag, uint64_t *size)
{
	uint64_t n = tag >> 2;

	if (n >= 60 && !take_number(in, (unsigned)n - 59, &n))
		return false;
	*size = n + 1;
	return *size <= (uint64_t)(in->end - in->at);
}

/* A copy of earlier bytes: its length and distance. */
static bool take_copy(struct in *in, uint8_t tag, uint64_t *size,
		      uint64_t *distance)
{
	*size = (tag >> 2) + 1u;
	if ((tag & 3) == 3)
		return take_number(in, 4, distance);
	if ((tag & 3) == 2)
		return take_number(in, 2, distance);
	*size = (tag >> 2 & 7) + 4u;
	if (!take_number(in, 1, distance))
		return false;
	*distance |= (uint64_t)(tag >> 5) << 8;
	return true;
}

/* The copy can overlap its source, and then repeats it. */
static void repeat(uint8_t *to, uint64_t distance, uint64_t size)
{
	const uint8_t *from = to - distance;

	if (distance >= size)
		memcpy(to, from, size);
	else
		for (uint64_t i = 0; i < size; i++)
			to[i] = from[i];
}

bool snappy_unpack(const uint8_t *block, size_t block_size, uint8_t *out,
		   size_t size)
{
	struct in in = { block, block + block_size };
	uint64_t n, distance, done = 0;

	if (!take_size(&in, &n) || n != size)
		return false;
	while (in.at < in.end) {
		uint8_t tag = *in.at++;

		if (tag & 3) {
			if (!take_copy(&in, tag, &n, &distance) ||
			    !range_ok(done, n, size) || !distance ||
			    distance > done)
				return false;
			repeat(out + done, distance, n);
		} else {
			if (!take_literal(&in, tag, &n) ||
			    !range_ok(done, n, size))
				return false;
			memcpy(out + done, in.at, n);
			in.at += n;
		}
		done += n;
	}
	return done == size;
}
