/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of readers, and whole files in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/files/read_buffer.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/tools/input/input.h"

/* Takes more than requested, because files differ in size. */
int input_reserve(struct input_memory *memory, size_t size)
{
	enum { MORE = 1 << 20 };
	size_t room = size + (size_t)min_u64(size / 4, MORE) + 1;

	if (size < memory->room)
		return 0;
	free(memory->bytes);
	memory->bytes = size < room ? read_buffer_alloc(room) : NULL;
	memory->room = memory->bytes ? room : 0;
	return memory->bytes ? 0 : -ENOMEM;
}

void input_memory_fini(struct input_memory *memory)
{
	free(memory->bytes);
	*memory = (struct input_memory){ 0 };
}

int input_reader_new(struct input *in, size_t size, void *out)
{
	struct input_reader *r = calloc(1, size);

	if (!r)
		return -ENOMEM;
	r->input = in;
	r->memory = calloc(in->num_fields + 1, sizeof(*r->memory));
	if (!r->memory) {
		free(r);
		return -ENOMEM;
	}
	*(struct input_reader **)out = r;
	return 0;
}

void input_reader_free(struct input_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->input->num_fields; i++)
		input_memory_fini(&r->memory[i]);
	free(r->memory);
	free(r);
}

/* Opens a regular file only, and never waits for a FIFO. */
static int open_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;
	struct stat st;

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0			     ? -errno
	    : !S_ISREG(st.st_mode)		     ? -EINVAL
	    : (uint64_t)st.st_size > INPUT_VALUE_MAX ? -EFBIG
						     : 0;
	if (r) {
		close(fd);
		return r;
	}
	*size = (size_t)st.st_size;
	return fd;
}

const char *input_file_why(int error)
{
	return error == -EINVAL ? "not a regular file" : strerror(-error);
}

/* If the file shrinks meanwhile, less is read. */
int input_read_file(const char *path, struct input_memory *memory,
		    uint64_t *out)
{
	size_t size = 0, used = 0;
	cleanup_fd int fd = open_file(path, &size);
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	if (input_reserve(memory, size))
		return -ENOMEM;
	while (used < size && n) {
		n = read(fd, memory->bytes + used, size - used);
		if (n < 0 && errno != EINTR)
			return -errno;
		used += n > 0 ? (size_t)n : 0;
	}
	*out = used;
	return 0;
}
