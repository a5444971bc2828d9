/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int parts_init(struct parts *parts, const struct input_path *paths, size_t num,
	       struct log *log)
{
	parts->at = calloc(num, sizeof(*parts->at));
	for (size_t i = 0; parts->at && i < num; i++) {
		parts->at[i].path = strdup(paths[i].path);
		if (!parts->at[i].path)
			break;
		parts->num++;
	}
	if (parts->num == num)
		return 0;
	return log_no_memory(log, NULL);
}

void parts_fini(struct parts *parts)
{
	for (size_t i = 0; i < parts->num; i++)
		free(parts->at[i].path);
	free(parts->at);
}

const struct part *parts_find(const struct parts *parts, uint64_t sample)
{
	size_t low = 0, high = parts->num;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (parts->at[middle].first <= sample)
			low = middle;
		else
			high = middle;
	}
	return &parts->at[low];
}

int part_file_move(struct part_file *f, const struct part *part)
{
	int r;

	if (f->part == part)
		return 0;
	part_file_fini(f);
	r = file_open(part->path, &f->file);
	if (!r)
		f->part = part;
	return r;
}

void part_file_fini(struct part_file *f)
{
	if (f->part)
		file_close(&f->file);
	f->part = NULL;
}

int part_open(const char *path, struct log *log, struct file *out)
{
	int r = file_open(path, out);

	if (r)
		log_error(log, "%s: %s", path,
			  r == -EINVAL ? "not a regular file" : strerror(-r));
	return r;
}

int part_file_read(const struct part_file *f, struct input_memory *memory,
		   uint64_t off, uint64_t size, struct input_error *error)
{
	int r = size > INPUT_VALUE_MAX ? -EFBIG : input_reserve(memory, size);

	r = r ? r : file_read(&f->file, memory->bytes, size, off);
	if (r == -EBADMSG)
		return input_refuse(error, r, "the file became shorter");
	return r ? input_refuse(error, r, "%s", strerror(-r)) : 0;
}
