/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/formats/zip.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"

/* Sizes of records without their names and comments, and their first bytes. */
enum {
	LOCAL_SIZE = 30,
	MEMBER_SIZE = 46,
	END_SIZE = 22,
	LOCATOR_SIZE = 20,
	END64_SIZE = 56,
	COMMENT_MAX = 65535,
	LOCAL_MAGIC = 0x04034b50,
	MEMBER_MAGIC = 0x02014b50,
	END_MAGIC = 0x06054b50,
	LOCATOR_MAGIC = 0x07064b50,
	END64_MAGIC = 0x06064b50,
};

enum { STORED = 0, DEFLATED = 8, ENCRYPTED = 1, PIECE = 1 << 16 };

static int refuse(struct zip *z, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct zip *z, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(z->why, sizeof(z->why), format, args);
	va_end(args);
	return error;
}

static int read_at(struct zip *z, void *to, size_t size, uint64_t off)
{
	int r = file_read(z->file, to, size, off);

	if (r == -EBADMSG)
		return refuse(z, r,
			      "the archive is cut off: its directory "
			      "names byte %llu",
			      (unsigned long long)off);
	return r ? refuse(z, r, "%s", strerror(-r)) : 0;
}

/* --- the directory ------------------------------------------------------- */

/* The zip64 records before the end record at `at` replace its values. */
static int read_end64(struct zip *z, uint64_t at, uint64_t *size, uint64_t *off)
{
	uint8_t locator[LOCATOR_SIZE], end[END64_SIZE];
	int r = 0;

	if (at < LOCATOR_SIZE ||
	    (r = read_at(z, locator, sizeof(locator), at - LOCATOR_SIZE)))
		return r;
	if (load32(locator) != LOCATOR_MAGIC)
		return 0;
	r = read_at(z, end, sizeof(end), load64(locator + 8));
	if (!r && load32(end) != END64_MAGIC)
		r = refuse(z, -EBADMSG, "no zip64 record at byte %llu",
			   (unsigned long long)load64(locator + 8));
	if (r)
		return r;
	z->left = load64(end + 32);
	*size = load64(end + 40);
	*off = load64(end + 48);
	return 0;
}

static int take_end(struct zip *z, const uint8_t *end, uint64_t at)
{
	uint64_t size = load32(end + 12), off = load32(end + 16);
	int r;

	z->left = load16(end + 10);
	r = read_end64(z, at, &size, &off);
	if (r)
		return r;
	if (!range_ok(off, size, z->file->size))
		return refuse(z, -EBADMSG,
			      "the directory at byte %llu with %llu bytes is "
			      "not in the archive",
			      (unsigned long long)off,
			      (unsigned long long)size);
	z->at = off;
	z->end = off + size;
	return 0;
}

int zip_open(const struct file *file, struct zip *z)
{
	cleanup_free uint8_t *tail = malloc(END_SIZE + COMMENT_MAX);
	size_t n = (size_t)min_u64(END_SIZE + COMMENT_MAX, file->size);
	int r;

	*z = (struct zip){ .file = file };
	if (!tail)
		return refuse(z, -ENOMEM, "out of memory");
	r = read_at(z, tail, n, file->size - n);
	if (r)
		return r;
	for (size_t i = n; i-- >= END_SIZE;) {
		const uint8_t *end = tail + i + 1 - END_SIZE;

		if (load32(end) == END_MAGIC)
			return take_end(z, end,
					file->size - n + i + 1 - END_SIZE);
	}
	return refuse(z, -EBADMSG, "no zip archive, or one that is cut off");
}

/* --- members ------------------------------------------------------------- */

/* Takes 64-bit values out of the extra fields of a member, in the place of
   those that are all ones. */
static void take_extra(const uint8_t *extra, size_t size, uint64_t *values[3])
{
	size_t n, at;

	for (; size >= 4; extra += 4 + n, size -= 4 + n) {
		n = load16(extra + 2);
		if (n > size - 4)
			return;
		at = 4;
		for (int i = 0; load16(extra) == 1 && i < 3; i++) {
			if (*values[i] != UINT32_MAX || at + 8 > 4 + n)
				continue;
			*values[i] = load64(extra + at);
			at += 8;
		}
	}
}

/* The local header has names and extra fields of its own. */
static int find_data(struct zip *z, struct zip_member *m, uint64_t header)
{
	uint8_t local[LOCAL_SIZE];
	int r = read_at(z, local, sizeof(local), header);

	if (r)
		return r;
	if (load32(local) != LOCAL_MAGIC)
		return refuse(z, -EBADMSG,
			      "member %.60s: no header at byte "
			      "%llu",
			      m->name, (unsigned long long)header);
	m->off = header + LOCAL_SIZE + load16(local + 26) + load16(local + 28);
	if (!range_ok(m->off, m->packed, z->file->size))
		return refuse(z, -EBADMSG,
			      "member %.60s: %llu bytes at byte %llu are not "
			      "in the archive",
			      m->name, (unsigned long long)m->packed,
			      (unsigned long long)m->off);
	return 0;
}

static int check_method(struct zip *z, const struct zip_member *m,
			const uint8_t *record)
{
	uint16_t method = load16(record + 10);

	if (load16(record + 8) & ENCRYPTED)
		return refuse(z, -ENOTSUP, "member %.60s is encrypted",
			      m->name);
	if (method != STORED && method != DEFLATED)
		return refuse(
			z, -ENOTSUP,
			"member %.60s: compression method %u; numpy.savez "
			"and savez_compressed write 0 and 8",
			m->name, method);
	if (method == STORED && m->packed != m->size)
		return refuse(z, -EBADMSG,
			      "member %.60s: %llu stored bytes "
			      "become %llu",
			      m->name, (unsigned long long)m->packed,
			      (unsigned long long)m->size);
	return 0;
}

/* `record` has `names` bytes of the name and extra fields behind it. */
static int take_member(struct zip *z, const uint8_t *record, size_t names,
		       struct zip_member *out)
{
	size_t name = load16(record + 28);
	uint64_t header = load32(record + 42);
	uint64_t *values[] = { &out->size, &out->packed, &header };
	int r;

	if (name >= ZIP_NAME_SIZE)
		return refuse(z, -EBADMSG,
			      "a name of %zu bytes; it may have %d", name,
			      ZIP_NAME_SIZE - 1);
	memcpy(out->name, record + MEMBER_SIZE, name);
	out->name[name] = '\0';
	out->deflated = load16(record + 10) == DEFLATED;
	out->crc = load32(record + 16);
	out->packed = load32(record + 20);
	out->size = load32(record + 24);
	take_extra(record + MEMBER_SIZE + name, names - name, values);
	r = check_method(z, out, record);
	return r ? r : find_data(z, out, header);
}

int zip_next(struct zip *z, struct zip_member *out)
{
	uint8_t head[MEMBER_SIZE];
	cleanup_free uint8_t *record = NULL;
	size_t names;
	int r;

	if (!z->left)
		return 0;
	if (!range_ok(z->at, MEMBER_SIZE, z->end))
		return refuse(z, -EBADMSG,
			      "the directory ends at byte %llu "
			      "without its last %llu members",
			      (unsigned long long)z->end,
			      (unsigned long long)z->left);
	r = read_at(z, head, sizeof(head), z->at);
	if (!r && load32(head) != MEMBER_MAGIC)
		r = refuse(z, -EBADMSG,
			   "no record of the directory at byte "
			   "%llu",
			   (unsigned long long)z->at);
	if (r)
		return r;
	names = (size_t)load16(head + 28) + load16(head + 30);
	record = malloc(MEMBER_SIZE + names);
	if (!record)
		return refuse(z, -ENOMEM, "out of memory");
	r = read_at(z, record, MEMBER_SIZE + names, z->at);
	r = r ? r : take_member(z, record, names, out);
	z->at += MEMBER_SIZE + names + load16(head + 32);
	z->left--;
	return r ? r : 1;
}

/* --- deflated members ---------------------------------------------------- */

struct inflating {
	z_stream stream;
	uint64_t at;   /* of the next packed bytes */
	uint64_t left; /* packed bytes */
	uint64_t size; /* bytes so far */
	uint32_t crc;
	uint8_t in[PIECE];
	uint8_t out[PIECE];
};

/* Inflates until `out` is full or the packed bytes end. */
static int inflate_piece(struct zip *z, struct inflating *f, bool *end)
{
	z_stream *s = &f->stream;
	int r = Z_OK;

	s->next_out = f->out;
	s->avail_out = PIECE;
	while (s->avail_out && r == Z_OK) {
		if (!s->avail_in && f->left) {
			size_t n = (size_t)min_u64(PIECE, f->left);
			int failed = read_at(z, f->in, n, f->at);

			if (failed)
				return failed;
			s->next_in = f->in;
			s->avail_in = (uInt)n;
			f->at += n;
			f->left -= n;
		}
		r = inflate(s, Z_NO_FLUSH);
	}
	*end = r == Z_STREAM_END;
	if (r != Z_OK && r != Z_STREAM_END)
		return r == Z_MEM_ERROR ? refuse(z, -ENOMEM, "out of memory")
					: refuse(z, -EBADMSG,
						 "its deflated bytes are "
						 "damaged");
	return 0;
}

static int inflate_all(struct zip *z, const struct zip_member *m,
		       struct inflating *f, struct file *to)
{
	bool end = false;
	int r = 0;

	while (!end && !r) {
		size_t n;

		r = inflate_piece(z, f, &end);
		n = PIECE - f->stream.avail_out;
		if (!r && n > m->size - f->size)
			r = refuse(z, -EBADMSG, "more than its %llu bytes",
				   (unsigned long long)m->size);
		if (r)
			break;
		f->crc = (uint32_t)crc32(f->crc, f->out, (uInt)n);
		r = file_write(to, f->out, n, to->size);
		if (r)
			refuse(z, r, "a temporary file in TMPDIR: %s",
			       strerror(-r));
		f->size += n;
		to->size += n;
	}
	if (!r && (f->size != m->size || f->crc != m->crc))
		r = refuse(z, -EBADMSG,
			   "%llu of its %llu bytes, CRC %08x "
			   "instead of %08x",
			   (unsigned long long)f->size,
			   (unsigned long long)m->size, f->crc, m->crc);
	return r;
}

int zip_inflate(struct zip *z, const struct zip_member *m, struct file *to)
{
	cleanup_free struct inflating *f = calloc(1, sizeof(*f));
	int r;

	if (!f || inflateInit2(&f->stream, -MAX_WBITS) != Z_OK)
		return refuse(z, -ENOMEM, "out of memory");
	f->at = m->off;
	f->left = m->packed;
	r = inflate_all(z, m, f, to);
	inflateEnd(&f->stream);
	return r;
}
