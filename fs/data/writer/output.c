/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/output.h"

int output_body(struct output *o, uint64_t at)
{
	return o->ops->body ? o->ops->body(o, at) : 0;
}

int output_write(struct output *o, const void *bytes, size_t size, uint64_t off)
{
	return o->ops->write(o, bytes, size, off);
}

int output_read(struct output *o, void *bytes, size_t size, uint64_t off)
{
	return o->ops->read(o, bytes, size, off);
}

int64_t output_copy(struct output *o, int fd, uint64_t from, uint64_t size,
		    uint64_t off)
{
	return o->ops->copy ? o->ops->copy(o, fd, from, size, off) : 0;
}

int output_scratch(struct output *o, int *fd)
{
	return o->ops->scratch(o, fd);
}

int output_move_down(struct output *o, uint64_t from, uint64_t to,
		     uint64_t size)
{
	return o->ops->move_down(o, from, to, size);
}

int output_resize(struct output *o, uint64_t size)
{
	return o->ops->resize(o, size);
}

void output_expect(struct output *o, const struct stat *old)
{
	o->ops->expect(o, old);
}

int output_publish(struct output **o)
{
	int r = (*o)->ops->publish(*o);

	output_abort(o);
	return r;
}

void output_abort(struct output **output)
{
	struct output *o = *output;

	if (!o)
		return;
	*output = NULL;
	o->ops->close(o);
}
