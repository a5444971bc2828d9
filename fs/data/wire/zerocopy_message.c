/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/wire/zerocopy_message.h"

#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"

/* parse_*() return an error for the log, or NULL. */
static const char *parse_hello(const uint8_t *bytes, size_t size,
			       struct zerocopy_message *out)
{
	struct zerocopy_hello hello = { .magic = 0 };

	memcpy(&hello, bytes, size < sizeof(hello) ? size : sizeof(hello));
	if (hello.magic != ZEROCOPY_MAGIC)
		return "a HELLO of something else";
	if (hello.version != ZEROCOPY_VERSION)
		return "a HELLO of another version";
	if (size != sizeof(hello))
		return "a HELLO of a wrong length";
	if (!memchr(hello.job, '\0', ZEROCOPY_JOB_SIZE))
		return "a job's name without an end";
	for (const char *p = hello.job; *p; p++) {
		if (*p < ' ' || *p > '~')
			return "a job's name that is no ASCII";
	}
	if (hello.world_size && hello.rank >= hello.world_size)
		return "a rank beyond its world size";
	memcpy(out->job, hello.job, sizeof(out->job));
	out->rank = hello.rank;
	out->world_size = hello.world_size;
	return NULL;
}

static const char *parse_get(const uint8_t *bytes, size_t size,
			     struct zerocopy_message *out)
{
	const size_t head = offsetof(struct zerocopy_get, path);
	uint64_t n;

	if (size <= head)
		return "a GET without a path";
	n = load32(bytes + offsetof(struct zerocopy_get, path_size));
	if (n != size - head || n > ZEROCOPY_PATH_MAX ||
	    memchr(bytes + head, '\0', n))
		return "a GET with a path of another length";
	out->number = load64(bytes + offsetof(struct zerocopy_get, request));
	memcpy(out->path, bytes + head, n);
	out->path[n] = '\0';
	return NULL;
}

static const char *parse_number(const uint8_t *bytes, size_t size,
				struct zerocopy_message *out)
{
	struct zerocopy_number number;

	if (size != sizeof(number))
		return "a message of a wrong length";
	memcpy(&number, bytes, sizeof(number));
	out->number = number.number;
	return NULL;
}

static const char *parse_report(const uint8_t *bytes, size_t size,
				struct zerocopy_message *out)
{
	struct zerocopy_report tell;
	const struct rank_figures *f = &tell.figures;

	if (size != sizeof(tell))
		return "a message of a wrong length";
	memcpy(&tell, bytes, sizeof(tell));
	if (f->epoch > RANK_FIGURES_MAX || f->number > RANK_FIGURES_MAX)
		return "figures that are too large";
	for (size_t i = 0; i < FIGURES; i++) {
		if (f->n[i] > RANK_FIGURES_MAX)
			return "figures that are too large";
	}
	out->figures = *f;
	return NULL;
}

int zerocopy_parse(const void *bytes, size_t size, struct zerocopy_message *out,
		   const char **why)
{
	*out = (struct zerocopy_message){ .kind = 0 };
	if (size >= sizeof(out->kind))
		out->kind = load32(bytes);
	switch (out->kind) {
	case ZEROCOPY_HELLO:
		*why = parse_hello(bytes, size, out);
		break;
	case ZEROCOPY_GET:
		*why = parse_get(bytes, size, out);
		break;
	case ZEROCOPY_PUT:
	case ZEROCOPY_CANCEL:
	case ZEROCOPY_FORGET:
		*why = parse_number(bytes, size, out);
		break;
	case ZEROCOPY_REPORT:
		*why = parse_report(bytes, size, out);
		break;
	default:
		*why = "a message of an unknown kind";
	}
	return *why ? -EPROTO : 0;
}

int zerocopy_make_get(struct zerocopy_get *get, uint64_t request,
		      const char *path)
{
	size_t n = strlen(path);

	if (!n || n > ZEROCOPY_PATH_MAX)
		return -ENAMETOOLONG;
	get->kind = ZEROCOPY_GET;
	get->path_size = (uint32_t)n;
	get->request = request;
	memcpy(get->path, path, n);
	return (int)(offsetof(struct zerocopy_get, path) + n);
}
