/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a source of columns. The first byte picks the kind; the rest is
 * the file, or for MDS and LitData "index.json" of a length in two bytes, then
 * the shard that it names "s". libhdf5 checks its files itself, so they are not
 * among them. Every sample is readable or has a reason, in any order.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/util/bytes.h"
#include "loader/tools/input/input.h"
#include "tests/fuzz/fuzz.h"

enum { SAMPLES_MAX = 64 };

static const struct kind {
	const struct input_kind *kind;
	bool is_directory;
} kinds[] = {
	{ &input_parquet, false },
	{ &input_lmdb, false },
	{ &input_mds, true },
	{ &input_litdata, true },
};

static char directory[] = "/dev/shm/fuzz_columnsXXXXXX";
static bool is_made;

static void remove_files(void)
{
	char path[sizeof(directory) + 16];

	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "file", "index.json",
						     "s" };

		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	rmdir(directory);
}

static void write_file(const char *name, const uint8_t *bytes, size_t size,
		       char *path, size_t path_size)
{
	int fd;

	snprintf(path, path_size, "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	MUST(fd >= 0);
	MUST(!size || write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}

/* Uses every byte of a value. */
static uint64_t sum_of(const struct input_value *v)
{
	uint64_t sum = (uint64_t)v->integer + v->channels;

	for (uint64_t i = 0; v->bytes && i < v->size; i++)
		sum = sum * 31 + ((const uint8_t *)v->bytes)[i];
	return sum;
}

static void read_sample(struct input_reader *r, uint64_t sample)
{
	struct input *in = r->input;
	bool wanted[INPUT_FIELDS_MAX];
	struct input_value values[INPUT_FIELDS_MAX];
	struct input_error error = { .why = "" };
	volatile uint64_t sum = 0;
	char where[256] = "";

	for (size_t i = 0; i < in->num_fields; i++) {
		wanted[i] = !in->fields[i].refused[0];
		values[i] = (struct input_value){ 0 };
	}
	if (in->kind->read(r, sample, wanted, values, &error)) {
		MUST(error.why[0]);
		in->kind->describe(in, sample, where, sizeof(where));
		MUST(where[0]);
		return;
	}
	for (size_t i = 0; i < in->num_fields; i++)
		if (wanted[i])
			sum += sum_of(&values[i]);
}

static void try(const struct input_kind *kind, const struct input_path *path)
{
	struct input_reader *r;
	struct input *in;

	if (kind->open(path, 1, NULL, &in))
		return;
	MUST(!kind->reader_open(in, &r));
	for (uint64_t i = 0; i < SAMPLES_MAX && i < in->num_samples; i++) {
		read_sample(r, i);
		read_sample(r, in->num_samples - 1 - i);
	}
	kind->reader_close(r);
	kind->close(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[sizeof(directory) + 16];
	struct input_path input = { .path = path };
	const struct kind *k;
	size_t n;

	if (!is_made) {
		MUST(mkdtemp(directory));
		atexit(remove_files);
		is_made = true;
	}
	if (!size)
		return 0;
	k = &kinds[data[0] % ARRAY_LEN(kinds)];
	data++;
	size--;
	if (!k->is_directory) {
		write_file("file", data, size, path, sizeof(path));
	} else {
		if (size < 2)
			return 0;
		n = min_u64(load16(data), size - 2);
		write_file("index.json", data + 2, n, path, sizeof(path));
		write_file("s", data + 2 + n, size - 2 - n, path, sizeof(path));
		snprintf(path, sizeof(path), "%s", directory);
	}
	MUST(!stat(path, &input.st));
	try(k->kind, &input);
	return 0;
}
