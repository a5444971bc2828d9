/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a source of mkfs.beton; the first byte chooses the kind of file.
 * Archives are tried again with correct sums, because no mutation
 * would find them. Values have the sizes that their fields demand.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/utf8.h"
#include "loader/tools/input/kinds.h"
#include "tests/fuzz/fuzz.h"

enum { PATH_SIZE = 64, SAMPLES_MAX = 64 };

static void mend_tar(uint8_t *bytes, size_t size);

static const struct {
	const struct input_kind *kind;
	const char *name;
	void (*mend)(uint8_t *bytes, size_t size); /* NULL: there are no sums */
} files[] = {
	{ &input_numpy, "images.npy", NULL },
	{ &input_webdataset, "x.tar", mend_tar },
	{ &input_manifest, "x.csv", NULL },
	{ &input_manifest, "x.tsv", NULL },
	{ &input_manifest, "x.jsonl", NULL },
};

static char dir[] = "/tmp/fuzz_input.XXXXXX";
static struct log quiet;

static void remove_dir(void)
{
	char path[PATH_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i].name);
		unlink(path);
	}
	rmdir(dir);
}

/* --- sums ---------------------------------------------------------------- */

static void mend_tar(uint8_t *bytes, size_t size)
{
	uint64_t data;

	for (uint64_t at = 0; range_ok(at, 512, size); at += 512 + data) {
		unsigned sum = 0;
		char *end;

		memset(bytes + at + 148, ' ', 8);
		for (size_t i = 0; i < 512; i++)
			sum += bytes[at + i];
		if (sum == 8 * ' ')
			break;
		snprintf((char *)bytes + at + 148, 8, "%06o", sum);
		data = strtoull((char *)bytes + at + 124, &end, 8);
		data = data < size ? align_up(data, 512) : size;
	}
}

/* --- values -------------------------------------------------------------- */

static void check_value(const struct input_field *f,
			const struct input_value *v)
{
	volatile uint8_t sum = 0;

	if (f->type == INPUT_INT)
		MUST(!f->classes ||
		     (v->integer >= 0 && (size_t)v->integer < f->num_classes));
	if (f->type == INPUT_INT || f->type == INPUT_FLOAT)
		return;
	for (uint64_t i = 0; i < v->size; i++)
		sum += ((const uint8_t *)v->bytes)[i];
	if (f->type == INPUT_TEXT || f->type == INPUT_JSON)
		MUST(utf8_is_text(v->bytes, v->size));
	if (f->type == INPUT_ARRAY)
		MUST(v->size == input_array_size(f) && f->shape[0] && v->size);
	if (f->type == INPUT_IMAGE && v->channels)
		MUST(v->size == (uint64_t)v->width * v->height * v->channels);
}

static void read_all(struct input *in)
{
	bool wanted[INPUT_FIELDS_MAX];
	struct input_value values[INPUT_FIELDS_MAX];
	struct input_reader *reader;
	char text[256];

	MUST(in->num_samples && in->num_fields);
	MUST(in->num_fields <= INPUT_FIELDS_MAX);
	MUST(!in->kind->reader_open(in, &reader));
	for (uint64_t i = 0; i < min_u64(in->num_samples, SAMPLES_MAX); i++) {
		struct input_error error = { .fatal = false };
		/* The last sample, then the others. */
		uint64_t sample = i ? i - 1 : in->num_samples - 1;

		memset(values, 0, sizeof(values));
		for (size_t k = 0; k < in->num_fields; k++)
			wanted[k] = i == 0 || (sample + k) % 3;
		in->kind->describe(in, sample, text, sizeof(text));
		if (in->kind->read(reader, sample, wanted, values, &error)) {
			MUST(error.why[0] && !error.fatal);
			continue;
		}
		for (size_t k = 0; k < in->num_fields; k++)
			if (wanted[k])
				check_value(&in->fields[k], &values[k]);
	}
	in->kind->reader_close(reader);
}

static void try(size_t which, const uint8_t *bytes, size_t size)
{
	struct input_path path = { 0 };
	struct input_setup setup = { .paths = &path,
				     .num_paths = 1,
				     .log = &quiet };
	struct input *in = NULL;
	char name[PATH_SIZE];
	int fd;

	snprintf(name, sizeof(name), "%s/%s", dir, files[which].name);
	fd = open(name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	close(fd);
	path.path = name;
	MUST(!stat(name, &path.st));
	path.head_size = (size_t)min_u64(size, sizeof(path.head));
	memcpy(path.head, bytes, path.head_size);
	MUST(files[which].kind->matches(&path));
	if (files[which].kind->open(&setup, &in))
		return;
	read_all(in);
	in->kind->close(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;
	size_t which = size ? data[0] % ARRAY_LEN(files) : 0;
	uint8_t *bytes;

	if (!ready) {
		log_init(&quiet, NULL, NULL);
		MUST(mkdtemp(dir));
		MUST(!atexit(remove_dir));
		ready = true;
	}
	if (!size)
		return 0;
	try(which, data + 1, size - 1);
	if (!files[which].mend)
		return 0;
	bytes = malloc(size);
	MUST(bytes);
	memcpy(bytes, data + 1, size - 1);
	files[which].mend(bytes, size - 1);
	try(which, bytes, size - 1);
	free(bytes);
	return 0;
}
