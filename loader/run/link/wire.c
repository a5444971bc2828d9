/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/link/wire.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "fs/base/util/bytes.h"

/* Bytes of one call, so that a closed loader is noticed soon. */
enum { WIRE_PIECE = 16 << 20 };

/* Removes `size` sent bytes from the front of the parts. */
static void skip(struct iovec **parts, size_t *count, size_t size)
{
	while (*count && size >= (*parts)->iov_len) {
		size -= (*parts)->iov_len;
		++*parts;
		--*count;
	}
	if (!*count)
		return;
	(*parts)->iov_base = (uint8_t *)(*parts)->iov_base + size;
	(*parts)->iov_len -= size;
}

int wire_send_parts(int fd, struct iovec *parts, size_t count)
{
	skip(&parts, &count, 0);
	while (count) {
		struct msghdr message = {
			.msg_iov = parts,
			.msg_iovlen = min_u64(count, IOV_MAX),
		};
		ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -errno;
		skip(&parts, &count, n < 0 ? 0 : (size_t)n);
	}
	return 0;
}

int wire_send(int fd, const void *bytes, size_t size)
{
	struct iovec part = { (void *)bytes, size };

	return wire_send_parts(fd, &part, 1);
}

int wire_receive(int fd, void *bytes, size_t size)
{
	uint8_t *to = bytes;

	while (size) {
		ssize_t n =
			recv(fd, to, min_u64(size, WIRE_PIECE), MSG_WAITALL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return to == bytes ? -ENODATA : -ECONNRESET;
		to += n;
		size -= (size_t)n;
	}
	return 0;
}

static bool is_text(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	for (size_t i = 0; i < n; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return n < size;
}

static int compare(const struct wire_hello *own, const struct wire_hello *other,
		   char *why)
{
	if (memcmp(other->magic, own->magic, sizeof(own->magic)) ||
	    !is_text(other->library, sizeof(other->library)) ||
	    !is_text(other->fingerprint, sizeof(other->fingerprint)) ||
	    !is_text(other->spec, sizeof(other->spec)))
		snprintf(why, WIRE_MESSAGE_SIZE,
			 "the other side is no loader of betonfs");
	else if (other->version != own->version ||
		 strcmp(other->library, own->library))
		snprintf(why, WIRE_MESSAGE_SIZE,
			 "the other side has betonfs %s, and this one %s: "
			 "install the same version",
			 other->library, own->library);
	else if (strcmp(other->fingerprint, own->fingerprint))
		snprintf(why, WIRE_MESSAGE_SIZE,
			 "the other side has another dataset: both must open "
			 "the same file");
	else if (strcmp(other->spec, own->spec))
		snprintf(why, WIRE_MESSAGE_SIZE,
			 "the other side has the sampling spec %.300s, and "
			 "this one %.300s",
			 other->spec, own->spec);
	else if (other->pipeline != own->pipeline ||
		 other->on_error != own->on_error)
		snprintf(why, WIRE_MESSAGE_SIZE,
			 "the other side has another pipeline or on_error");
	else
		return 0;
	return -EPROTO;
}

int wire_greet(int fd, const struct wire_hello *own,
	       char why[WIRE_MESSAGE_SIZE])
{
	struct wire_hello other;
	int r = wire_send(fd, own, sizeof(*own));

	if (!r)
		r = wire_receive(fd, &other, sizeof(other));
	if (r)
		snprintf(why, WIRE_MESSAGE_SIZE, "%s",
			 strerror(r == -ENODATA ? ECONNRESET : -r));
	return r ? r : compare(own, &other, why);
}
