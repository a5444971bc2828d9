/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/parquet/runs.h"

#include "fs/util/bytes.h"

struct in {
	const uint8_t *at;
	const uint8_t *end;
};

static bool take_varint(struct in *in, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
		uint8_t byte = *in->at++;

		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Returns the value of `width` bits, at most 64, at a bit of bytes. */
static uint64_t load_bits(const uint8_t *bytes, size_t size, uint64_t bit,
			  unsigned width)
{
	uint64_t at = bit / 8, v = 0;
	unsigned shift = bit % 8, n = (shift + width + 7) / 8;

	if (range_ok(at, 9, size)) {
		v = load64(bytes + at) >> shift;
		if (shift)
			v |= (uint64_t)bytes[at + 8] << (64 - shift);
	} else {
		for (unsigned i = 0; i < n; i++) {
			uint64_t byte = bytes[at + i];

			v |= i || !shift ? byte << (8 * i - shift)
					 : byte >> shift;
		}
	}
	return width == 64 ? v : v & ((1ull << width) - 1);
}

/* --- the hybrid ---------------------------------------------------------- */

bool runs_begin(struct runs *runs, const uint8_t *bytes, size_t size,
		unsigned width)
{
	*runs = (struct runs){ bytes, bytes + size, width, 0, false, 0, 0 };
	return width <= 32;
}

static bool begin_packed(struct runs *r, uint64_t groups)
{
	uint64_t bytes;

	r->is_packed = true;
	r->bit = 0;
	return mul_ok(groups, r->width, &bytes) &&
	       mul_ok(groups, 8, &r->left) &&
	       bytes <= (uint64_t)(r->end - r->at);
}

static bool begin_repeated(struct runs *r, uint64_t n)
{
	unsigned bytes = (r->width + 7) / 8;

	r->is_packed = false;
	r->left = n;
	r->repeated = 0;
	if ((size_t)(r->end - r->at) < bytes)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		r->repeated |= (uint32_t)*r->at++ << (8 * i);
	return true;
}

static bool begin_run(struct runs *r)
{
	struct in in = { r->at, r->end };
	uint64_t header;

	if (!take_varint(&in, &header))
		return false;
	r->at = in.at;
	return header & 1 ? begin_packed(r, header >> 1)
			  : begin_repeated(r, header >> 1);
}

static void read_packed(struct runs *r, uint32_t *out, uint64_t n)
{
	size_t size = (size_t)(r->end - r->at);
	uint64_t bit = r->bit;

	for (uint64_t i = 0; i < n; i++, bit += r->width)
		out[i] = (uint32_t)load_bits(r->at, size, bit, r->width);
	r->at += bit / 8;
	r->bit = bit % 8;
}

bool runs_read(struct runs *r, uint32_t *out, uint64_t n)
{
	while (n) {
		uint64_t some;

		/* A run without values still takes a byte. */
		if (!r->left && !begin_run(r))
			return false;
		some = min_u64(r->left, n);
		if (r->is_packed)
			read_packed(r, out, some);
		else
			for (uint64_t i = 0; i < some; i++)
				out[i] = r->repeated;
		out += some;
		n -= some;
		r->left -= some;
	}
	return true;
}

/* --- deltas -------------------------------------------------------------- */

struct deltas {
	struct in in;
	uint64_t block; /* values */
	uint64_t minis; /* parts of a block, each with a width of its own */
	uint64_t mini;	/* values */
	uint64_t value;
};

static bool take_zigzag(struct in *in, uint64_t *out)
{
	uint64_t v;

	if (!take_varint(in, &v))
		return false;
	*out = v >> 1 ^ -(v & 1);
	return true;
}

static bool begin_deltas(struct deltas *d, uint64_t n)
{
	uint64_t total;

	if (!take_varint(&d->in, &d->block) ||
	    !take_varint(&d->in, &d->minis) || !take_varint(&d->in, &total) ||
	    !take_zigzag(&d->in, &d->value))
		return false;
	if (total != n || !d->minis || !d->block || d->block % d->minis ||
	    d->block > 1 << 20)
		return false;
	d->mini = d->block / d->minis;
	return d->mini % 8 == 0;
}

static bool read_mini(struct deltas *d, unsigned width, uint64_t least,
		      int64_t *out, uint64_t n)
{
	uint64_t bytes = d->mini / 8 * width;
	size_t size = (size_t)(d->in.end - d->in.at);

	if (bytes > size)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		d->value += least +
			    (width ? load_bits(d->in.at, size, i * width, width)
				   : 0);
		out[i] = (int64_t)d->value;
	}
	d->in.at += bytes;
	return true;
}

/* Returns the number of values, or 0. */
static uint64_t read_block(struct deltas *d, int64_t *out, uint64_t n)
{
	const uint8_t *widths;
	uint64_t least, done = 0;

	if (!take_zigzag(&d->in, &least) ||
	    (uint64_t)(d->in.end - d->in.at) < d->minis)
		return 0;
	widths = d->in.at;
	d->in.at += d->minis;
	for (uint64_t i = 0; i < d->minis && done < n; i++) {
		uint64_t some = min_u64(d->mini, n - done);

		if (widths[i] > 64 ||
		    !read_mini(d, widths[i], least, out + done, some))
			return 0;
		done += some;
	}
	return done;
}

bool deltas_read(const uint8_t *bytes, size_t size, int64_t *out, uint64_t n,
		 size_t *used)
{
	struct deltas d = { .in = { bytes, bytes + size } };
	uint64_t some;

	if (!begin_deltas(&d, n))
		return false;
	if (n) {
		*out++ = (int64_t)d.value;
		n--;
	}
	for (; n; n -= some, out += some) {
		some = read_block(&d, out, n);
		if (!some)
			return false;
	}
	*used = (size_t)(d.in.at - bytes);
	return true;
}
