/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/spill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"

enum { ROOM_MIN = 32 << 10 };

static int failed(const struct spill *s, int error)
{
	log_error(s->log, "%s: temporary file: %s", s->path, strerror(error));
	return -error;
}

void spill_init(struct spill *s, struct output *beside, const char *path,
		struct log *log)
{
	*s = (struct spill){
		.beside = beside, .log = log, .path = path, .fd = -1
	};
}

static int write_out(struct spill *s)
{
	size_t done = 0;

	while (done < s->num_bytes) {
		ssize_t n = pwrite(s->fd, s->bytes + done, s->num_bytes - done,
				   (off_t)(s->written + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(s, errno);
		done += (size_t)n;
	}
	s->written += s->num_bytes;
	s->num_bytes = 0;
	return 0;
}

static int grow(struct spill *s)
{
	size_t room = s->room ? 2 * s->room : ROOM_MIN;
	void *more = realloc(s->bytes, room);

	if (!more)
		return log_no_memory(s->log, s->path);
	s->bytes = more;
	s->room = room;
	return 0;
}

/* Makes room for more bytes: in memory first, then by writing. */
static int make_room(struct spill *s)
{
	int r = 0;

	if (s->room < SPILL_KEEP)
		return grow(s);
	if (s->fd < 0)
		r = output_scratch(s->beside, &s->fd);
	if (r)
		return r == -ENOTDIR ? grow(s) : r;
	return write_out(s);
}

int spill_append(struct spill *s, const void *bytes, size_t size)
{
	int r = 0;

	while (!r && size > s->room - s->num_bytes)
		r = make_room(s);
	if (r)
		return r;
	memcpy(s->bytes + s->num_bytes, bytes, size);
	s->num_bytes += size;
	return 0;
}

uint64_t spill_size(const struct spill *s)
{
	return s->written + s->num_bytes;
}

static int read_file(const struct spill *s, uint8_t *to, uint64_t size,
		     uint64_t off)
{
	while (size) {
		ssize_t n = pread(s->fd, to, size, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return failed(s, n ? errno : EIO);
		to += n;
		off += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return 0;
}

int spill_read(const struct spill *s, void *bytes, size_t size, uint64_t off)
{
	uint64_t first = off < s->written ? min_u64(size, s->written - off) : 0;
	int r = read_file(s, bytes, first, off);

	if (!r && size > first)
		memcpy((uint8_t *)bytes + first,
		       s->bytes + (off + first - s->written), size - first);
	return r;
}

void spill_fini(struct spill *s)
{
	if (s->beside && s->fd >= 0)
		close(s->fd);
	free(s->bytes);
	*s = (struct spill){ .fd = -1 };
}
