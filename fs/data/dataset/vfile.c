/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/vfile.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/stream_copy.h"

enum {
	/* Reads in flight per call: enough for any device's queue. */
	REQUESTS = 64,
	STRIDED_CHUNK = 64 << 10,
};

struct vfile_ranges;

struct vfile_piece {
	struct source_request request;
	struct segment segment;
	struct vfile_ranges *ranges;
	int result;
};

/* The reads that one vfile_read() call submits. */
struct vfile_ranges {
	struct source_wait wait;
	struct vfile_piece pieces[REQUESTS];
	size_t n;
	struct payload_tally *tally; /* or NULL */
	vfile_failed *failed;
	void *arg;
};

static void piece_done(struct source_request *request, int result)
{
	struct vfile_piece *piece = request->arg;

	piece->result = result;
	source_wait_done(&piece->ranges->wait);
}

static void wait_for_all(struct vfile_ranges *ranges)
{
	int64_t begin = ranges->tally ? clock_ns() : 0;

	source_wait_idle(&ranges->wait);
	if (ranges->tally)
		counters_add(&ranges->tally->n[PAYLOAD_WAIT_NS],
			     (uint64_t)(clock_ns() - begin));
}

/* Waits for all pieces. A failed piece becomes zeros or fails the call. */
static int collect_ranges(struct vfile_ranges *ranges)
{
	int r = 0;

	if (ranges->n)
		wait_for_all(ranges);
	for (size_t i = 0; i < ranges->n; i++) {
		struct vfile_piece *p = &ranges->pieces[i];

		if (!p->result)
			continue;
		if (!ranges->failed) {
			r = p->result;
			continue;
		}
		memset(p->request.buf, 0, p->request.size);
		ranges->failed(ranges->arg, &p->segment, p->result);
	}
	ranges->n = 0;
	return r;
}

static int read_payload(const struct vfile *file, struct vfile_ranges *ranges,
			const struct segment *s, void *buf, size_t size,
			uint64_t skip)
{
	struct payloads *payloads = file->ds->payloads;
	const struct payload_read what = {
		.sample = s->sample,
		.off = s->off + skip,
		.size = size,
		.buf = buf,
		.is_streamed = file->size >= STREAM_COPY_MIN,
		.tally = file->tally,
	};
	int r = payloads->ops->read(payloads, &what);

	if (!r || !ranges->failed)
		return r;
	memset(buf, 0, size);
	ranges->failed(ranges->arg, s, r);
	return 0;
}

static int read_range(const struct vfile *file, struct vfile_ranges *ranges,
		      const struct segment *s, void *buf, size_t size,
		      uint64_t skip)
{
	struct vfile_piece *p;
	int r = ranges->n == REQUESTS ? collect_ranges(ranges) : 0;

	if (r)
		return r;
	p = &ranges->pieces[ranges->n++];
	p->segment = *s;
	p->ranges = ranges;
	p->request = (struct source_request){
		.buf = buf,
		.off = s->off + skip,
		.size = size,
		.must = true,
		.done = piece_done,
		.arg = p,
	};
	source_wait_add(&ranges->wait);
	source_submit(file->ds->source, &p->request);
	return 0;
}

/* Reads whole records, and copies bytes [skip, skip + size) of the strided run
   out of them. */
static int read_strided(const struct vfile *file, const struct segment *s,
			uint8_t *buf, size_t size, uint64_t skip)
{
	uint64_t per_chunk = max_u64(1, STRIDED_CHUNK / s->stride), first, n;
	cleanup_free uint8_t *records = malloc(per_chunk * s->stride);
	uint64_t last = (skip + size - 1) / s->width, at = 0, in;
	int r = records ? 0 : -ENOMEM;

	first = skip / s->width;
	source_prefetch(file->ds->source, s->off + first * s->stride,
			(last - first) * s->stride + s->width);
	for (first = skip / s->width; first <= last && !r; first += n) {
		n = min_u64(per_chunk, last - first + 1);
		/* The last record is read only up to the end of its piece. */
		r = source_read(file->ds->source, records,
				(n - 1) * s->stride + s->width,
				s->off + first * s->stride);
		for (uint64_t i = 0; i < n && !r; i++) {
			in = first + i == skip / s->width ? skip % s->width : 0;
			for (; in < s->width && at < size; in++)
				buf[at++] = records[i * s->stride + in];
		}
	}
	return r;
}

/* Writes bytes of a segment that come from no file. False: they do. */
static bool fill_segment(const struct segment *s, void *buf, size_t size,
			 uint64_t skip)
{
	if (s->kind == SEGMENT_LITERAL)
		memcpy(buf, (const char *)s->literal + skip, size);
	else if (s->kind == SEGMENT_ZERO)
		memset(buf, 0, size);
	else
		return false;
	return true;
}

/* Reads bytes of a segment, from byte `skip` on. 0 or -errno. */
typedef int segment_fn(void *arg, const struct vfile *file,
		       const struct segment *s, void *buf, size_t size,
		       uint64_t skip);

/* Reads [off, end) of the file, which is inside, segment by segment. */
static int each_segment(const struct vfile *file, void *buf, uint64_t off,
			uint64_t end, segment_fn *read, void *arg)
{
	struct segment s;
	uint64_t skip, n;
	int r = 0;

	for (uint64_t at = off; at < end && !r; at += n) {
		void *to = (char *)buf + (at - off);

		file->segment_at(file, at, &s);
		skip = at - s.start;
		n = min_u64(s.size - skip, end - at);
		if (!fill_segment(&s, to, n, skip))
			r = read(arg, file, &s, to, n, skip);
	}
	return r;
}

static int read_segment(void *arg, const struct vfile *file,
			const struct segment *s, void *buf, size_t size,
			uint64_t skip)
{
	struct vfile_ranges *ranges = arg;

	switch (s->kind) {
	case SEGMENT_STRIDED:
		return read_strided(file, s, buf, size, skip);
	case SEGMENT_RANGE:
		if (s->is_payload && file->ds->payloads)
			return read_payload(file, ranges, s, buf, size, skip);
		return read_range(file, ranges, s, buf, size, skip);
	case SEGMENT_MADE:
		s->make(file, s, skip, buf, size);
		return 0;
	default:
		return -EINVAL;
	}
}

ssize_t vfile_read(const struct vfile *file, void *buf, size_t size,
		   uint64_t off, vfile_failed *failed, void *arg)
{
	struct vfile_ranges ranges;
	uint64_t end;
	int r, collected;

	if (off >= file->size)
		return 0;
	end = off + min_u64(size, file->size - off);
	ranges.n = 0;
	ranges.tally = file->tally;
	ranges.failed = failed;
	ranges.arg = arg;
	source_wait_init(&ranges.wait);
	r = each_segment(file, buf, off, end, read_segment, &ranges);
	collected = collect_ranges(&ranges);
	source_wait_fini(&ranges.wait);
	if (!r)
		r = collected;
	return r ? r : (ssize_t)(end - off);
}

static int read_segment_cached(void *arg, const struct vfile *file,
			       const struct segment *s, void *buf, size_t size,
			       uint64_t skip)
{
	(void)arg;
	if (s->kind != SEGMENT_RANGE || (s->is_payload && file->ds->payloads))
		return -EAGAIN;
	return source_read_cached(file->ds->source, buf, size, s->off + skip);
}

ssize_t vfile_read_cached(const struct vfile *file, void *buf, size_t size,
			  uint64_t off)
{
	uint64_t end;
	int r;

	if (off >= file->size)
		return 0;
	end = off + min_u64(size, file->size - off);
	r = each_segment(file, buf, off, end, read_segment_cached, NULL);
	return r ? -EAGAIN : (ssize_t)(end - off);
}
