/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/namespace/shard_layout.h"

#include <stdio.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/data/dataset/value.h"

enum {
	CHUNK_BYTES = 1 << 20,
	/* The pieces of a member when it is read. */
	HEAD_MAX = TAR_BLOCK + NPY_HEADER_MAX,
	EXTENSION_MAX = 8,
};

_Static_assert((int)NAME_DIGITS_MAX + (int)BETON_STEM_SIZE +
			       (int)EXTENSION_MAX <
		       (int)TAR_NAME_MAX,
	       "a member's name fits a header");
_Static_assert(UINT32_MAX + (uint64_t)NPY_HEADER_MAX <= TAR_SIZE_MAX,
	       "a value lies in one page, so its size fits a header");

uint64_t shard_count(const struct dataset *ds)
{
	uint64_t n = ds->format.samples;

	return n / SHARD_SAMPLES + (n % SHARD_SAMPLES != 0);
}

/* --- headers --- */

/* Octal digits and a NUL; a sum of 512 bytes needs no more than six. */
struct ustar {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char time[12];
	char sum[8];
	char type;
	char link[100];
	char magic[6];
	char version[2];
	char user[32];
	char group[32];
	char major[8];
	char minor[8];
	char prefix[155];
	char padding[12];
};

_Static_assert(sizeof(struct ustar) == TAR_BLOCK, "a header is one block");

static void put_octal(char *out, size_t size, uint64_t number)
{
	out[--size] = '\0';
	for (; size; number >>= 3)
		out[--size] = (char)('0' + (number & 7));
}

/* A regular file that all users may read and root owns. A header cannot contain
   a time before 1970 or after 2242; it gets the nearest possible time. */
static void put_header(char out[TAR_BLOCK], const char *name, uint64_t size,
		       int64_t time)
{
	struct ustar h = { .type = '0', .magic = "ustar", .version = "00" };
	const unsigned char *bytes = (const unsigned char *)&h;
	unsigned sum = 0;

	snprintf(h.name, sizeof(h.name), "%s", name);
	put_octal(h.mode, sizeof(h.mode), 0444);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.size, sizeof(h.size), size);
	put_octal(h.time, sizeof(h.time),
		  time < 0 ? 0 : min_u64((uint64_t)time, TAR_SIZE_MAX));
	put_octal(h.major, sizeof(h.major), 0);
	put_octal(h.minor, sizeof(h.minor), 0);
	/* The checksum's own field counts as spaces, and keeps the last space.
	 */
	memset(h.sum, ' ', sizeof(h.sum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += bytes[i];
	put_octal(h.sum, sizeof(h.sum) - 1, sum);
	memcpy(out, &h, sizeof(h));
}

/* --- names --- */

/* The extension by which WebDataset decodes a value. */
static const char *extension_of(const struct field *f, enum beton_mode mode)
{
	return f->type->decoder ? f->type->decoder : field_extension(f, mode);
}

/* Returns whether the extension alone identifies the member. */
static bool is_alone(const struct format *format, uint32_t field)
{
	const char *extension =
		extension_of(&format->fields[field], BETON_MODE_JPG);
	unsigned n = 0;

	for (uint32_t i = 0; i < format->num_fields; i++) {
		const struct field *f = &format->fields[i];

		n += !f->unusable &&
		     !strcmp(extension_of(f, BETON_MODE_JPG), extension);
	}
	return n == 1;
}

static void member_name(const struct shard *s, const struct shard_member *m,
			char out[TAR_NAME_MAX + 1])
{
	const struct format *format = &s->ds->format;
	const struct field *f = &format->fields[m->field];
	const char *extension = extension_of(f, m->value.mode);
	unsigned used =
		name_number(out, m->sample, name_digits(format->samples));

	if (is_alone(format, m->field))
		snprintf(out + used, TAR_NAME_MAX + 1 - used, "%s", extension);
	else
		snprintf(out + used, TAR_NAME_MAX + 1 - used, ".%s%s", f->stem,
			 extension);
}

/* --- the layout --- */

/* A damaged value is left out; a failed read is an error. */
static int add_members(struct shard *s, uint64_t sample, const uint8_t *record)
{
	const struct format *format = &s->ds->format;
	int r;

	for (uint32_t i = 0; i < format->num_fields; i++) {
		struct shard_member *m = &s->members[s->num_members];

		if (format->fields[i].unusable)
			continue;
		r = dataset_value(s->ds, i, sample, record, &m->value);
		if (r == -BETON_ECORRUPT)
			continue;
		if (r)
			return r;
		m->sample = sample;
		m->field = i;
		m->start = s->end;
		m->size = sample_file_size(s->ds, i, &m->value);
		/* A sample's values lie in one page each: no sum can wrap. */
		s->end += TAR_BLOCK + align_up(m->size, TAR_BLOCK);
		s->num_members++;
	}
	return 0;
}

static int lay_out(struct shard *s, uint64_t first, uint64_t n)
{
	uint64_t itemsize = s->ds->format.itemsize, at, most;
	uint64_t chunk = max_u64(1, min_u64(n, CHUNK_BYTES / itemsize));
	cleanup_free uint8_t *records = malloc(chunk * itemsize);
	int r = records ? 0 : -ENOMEM;

	for (at = first; at < first + n && !r; at += most) {
		most = min_u64(chunk, first + n - at);
		r = dataset_records(s->ds, at, most, records);
		for (uint64_t i = 0; i < most && !r; i++)
			r = add_members(s, at + i, records + i * itemsize);
	}
	return r;
}

int shard_open(struct dataset *ds, uint64_t index, struct shard **out)
{
	uint64_t first = index * SHARD_SAMPLES;
	uint64_t n = min_u64(SHARD_SAMPLES, ds->format.samples - first);
	struct shard *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->ds = ds;
	s->members = calloc(n * ds->format.num_fields, sizeof(*s->members));
	if (!s->members)
		r = -ENOMEM;
	else if (ds->format.itemsize)
		r = lay_out(s, first, n);
	s->size = s->end + TAR_END_SIZE;
	if (r)
		shard_close(s);
	else
		*out = s;
	return r;
}

void shard_close(struct shard *s)
{
	if (!s)
		return;
	free(s->members);
	free(s);
}

/* A record may be larger than a chunk of records. */
uint64_t shard_need(const struct dataset *ds)
{
	return sizeof(struct shard) + CHUNK_BYTES + ds->format.itemsize +
	       (uint64_t)SHARD_SAMPLES * ds->format.num_fields *
		       sizeof(struct shard_member);
}

uint64_t shard_bytes(const struct shard *s)
{
	return sizeof(*s) + s->num_members * sizeof(*s->members);
}

/* --- reading --- */

/* Returns the last member that starts at or before `off`. Some member covers
   `off`. */
static size_t member_at(const struct shard *s, uint64_t off)
{
	size_t low = 0, high = s->num_members - 1, mid;

	while (low < high) {
		mid = low + (high - low + 1) / 2;
		if (s->members[mid].start <= off)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/* A member's header, and the file's own bytes before those of the value. */
static void make_head(const struct vfile *vfile, const struct segment *segment,
		      uint64_t skip, void *buf, size_t size)
{
	const struct shard *s = ((const struct shard_file *)vfile)->shard;
	const struct shard_member *m = &s->members[segment->index];
	char name[TAR_NAME_MAX + 1], head[HEAD_MAX];
	struct sample_file file;

	member_name(s, m, name);
	put_header(head, name, m->size,
		   (int64_t)s->ds->source->stat.st_mtim.tv_sec);
	sample_file_init(&file, s->ds, m->field, &m->value);
	memcpy(head + TAR_BLOCK, file.head, file.head_size);
	memcpy(buf, head + skip, size);
}

static uint64_t payload_size(const struct shard *s,
			     const struct shard_member *m)
{
	return field_is_scalar(&s->ds->format.fields[m->field]) ? 0
								: m->value.size;
}

static void shard_segment(const struct vfile *vfile, uint64_t off,
			  struct segment *out)
{
	const struct shard *s = ((const struct shard_file *)vfile)->shard;
	const struct shard_member *m;
	uint64_t payload, contents_end, payload_start;
	size_t i;

	if (off >= s->end) {
		*out = (struct segment){ .kind = SEGMENT_ZERO,
					 .start = s->end,
					 .size = s->size - s->end };
		return;
	}
	i = member_at(s, off);
	m = &s->members[i];
	payload = payload_size(s, m);
	contents_end = m->start + TAR_BLOCK + m->size;
	payload_start = contents_end - payload;
	if (off < payload_start)
		*out = (struct segment){ .kind = SEGMENT_MADE,
					 .start = m->start,
					 .size = payload_start - m->start,
					 .make = make_head,
					 .index = (uint32_t)i };
	else if (off < contents_end)
		*out = (struct segment){ .kind = SEGMENT_RANGE,
					 .start = payload_start,
					 .size = payload,
					 .off = m->value.off };
	else
		*out = (struct segment){ .kind = SEGMENT_ZERO,
					 .start = contents_end,
					 .size = align_up(m->size, TAR_BLOCK) -
						 m->size };
}

void shard_file_init(struct shard_file *file, const struct shard *shard)
{
	file->shard = shard;
	file->vfile = (struct vfile){
		.ds = shard->ds,
		.size = shard->size,
		.segment_at = shard_segment,
	};
}
