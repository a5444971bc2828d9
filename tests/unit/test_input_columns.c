/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of columns: Parquet, HDF5, LMDB, MDS and LitData, in files that their
 * own libraries wrote. tests/columns has a directory NAME of each, and in
 * NAME.txt the values that the library returns. Reads them in order, in another
 * order and in several threads.
 *
 *     test_input_columns ORDER THREADS SOURCE...
 *
 * prints the values of sources in that form, for tests/e2e/test_columns.py.
 * ORDER is a step between samples that are read in turn.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "fs/util/bytes.h"
#include "loader/tools/input/input.h"
#include "tests/unit/t.h"

enum { THREADS_MAX = 16, SOURCES_MAX = 16 };

static const struct input_kind *const kinds[] = {
	&input_parquet, &input_hdf5, &input_lmdb, &input_mds, &input_litdata,
};

/* --- printing ------------------------------------------------------------ */

static void print_hex(FILE *f, const void *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		fprintf(f, "%02x", ((const uint8_t *)bytes)[i]);
}

static void print_value(FILE *f, const struct input_field *field,
			const struct input_value *v)
{
	if (field->type == INPUT_INT) {
		fprintf(f, "%" PRId64, v->integer);
	} else if (field->type == INPUT_FLOAT) {
		fprintf(f, "%016" PRIx64, load64(&v->real));
	} else {
		if (v->channels)
			fprintf(f, "%ux%ux%u:", v->width, v->height,
				v->channels);
		print_hex(f, v->bytes, v->size);
	}
}

static void print_field(FILE *f, const struct input_field *field)
{
	static const char *const types[] = { "image", "int",  "float", "text",
					     "bytes", "json", "array" };

	fprintf(f, "%s %s", field->name, types[field->type]);
	if (field->type == INPUT_ARRAY)
		fprintf(f, " %s", field->dtype);
	for (uint32_t d = 0; d < field->ndim; d++)
		fprintf(f, " %" PRIu64, field->shape[d]);
	for (size_t i = 0; i < field->num_classes; i++)
		fprintf(f, " %s", field->classes[i]);
	if (field->refused[0])
		fprintf(f, " refused: %s", field->refused);
	fputc('\n', f);
}

/* --- reading ------------------------------------------------------------- */

struct job {
	struct input *in;
	char **lines; /* by sample */
	uint64_t step;
	uint64_t first; /* this thread's, and every `threads`-th more */
	uint64_t threads;
};

static char *read_line(struct input_reader *reader, uint64_t sample)
{
	struct input *in = reader->input;
	bool wanted[INPUT_FIELDS_MAX];
	struct input_value values[INPUT_FIELDS_MAX];
	struct input_error error = { .why = "" };
	char where[512], *line = NULL;
	size_t size;
	FILE *f = open_memstream(&line, &size);

	CHECK(f);
	for (size_t i = 0; i < in->num_fields; i++)
		wanted[i] = !in->fields[i].refused[0];
	if (in->kind->read(reader, sample, wanted, values, &error)) {
		CHECK(error.why[0]);
		in->kind->describe(in, sample, where, sizeof(where));
		fprintf(f, "error %s: %s", where, error.why);
	} else {
		for (size_t i = 0; i < in->num_fields; i++) {
			if (!wanted[i])
				continue;
			print_value(f, &in->fields[i], &values[i]);
			fputc(' ', f);
		}
	}
	CHECK(!fclose(f));
	return line;
}

static void *run(void *arg)
{
	struct job *j = arg;
	struct input_reader *reader;
	uint64_t n = j->in->num_samples;

	CHECK(!j->in->kind->reader_open(j->in, &reader));
	for (uint64_t i = j->first; i < n; i += j->threads) {
		uint64_t sample = i * j->step % n;

		j->lines[sample] = read_line(reader, sample);
	}
	j->in->kind->reader_close(reader);
	return NULL;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	return b ? gcd(b, a % b) : a;
}

static void read_all(struct input *in, uint64_t step, unsigned threads,
		     char **lines)
{
	struct job jobs[THREADS_MAX];
	pthread_t ids[THREADS_MAX];

	while (in->num_samples && gcd(step, in->num_samples) != 1)
		step++;
	for (unsigned t = 0; t < threads; t++) {
		jobs[t] = (struct job){ in, lines, step, t, threads };
		CHECK(!pthread_create(&ids[t], NULL, run, &jobs[t]));
	}
	for (unsigned t = 0; t < threads; t++)
		CHECK(!pthread_join(ids[t], NULL));
}

static int open_kind(char *const *sources, size_t n, struct log *log,
		     struct input **out)
{
	struct input_path paths[SOURCES_MAX] = { 0 };
	ssize_t got;
	int fd;

	CHECK(n && n <= SOURCES_MAX);
	for (size_t i = 0; i < n; i++) {
		paths[i].path = sources[i];
		CHECK(!stat(sources[i], &paths[i].st));
		if (!S_ISREG(paths[i].st.st_mode))
			continue;
		fd = open(sources[i], O_RDONLY);
		CHECK(fd >= 0);
		got = read(fd, paths[i].head, sizeof(paths[i].head));
		CHECK(got >= 0);
		paths[i].head_size = (size_t)got;
		close(fd);
	}
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		if (!kinds[k]->matches(&paths[0]))
			continue;
		if (kinds[k]->missing)
			return -ENOTSUP;
		return kinds[k]->open(paths, n, log, out);
	}
	return -EINVAL;
}

/* Returns 0 or -errno; -ENOTSUP if the build lacks a library. */
static int print_all(FILE *f, char *const *sources, size_t n, uint64_t step,
		     unsigned threads, struct log *log)
{
	struct input *in;
	char **lines;
	int r = open_kind(sources, n, log, &in);

	if (r)
		return r;
	fprintf(f, "%s %" PRIu64 "\n", in->kind->name, in->num_samples);
	for (size_t i = 0; i < in->num_fields; i++)
		print_field(f, &in->fields[i]);
	lines = calloc(in->num_samples + 1, sizeof(*lines));
	CHECK(lines);
	read_all(in, step, threads, lines);
	for (uint64_t i = 0; i < in->num_samples; i++) {
		fprintf(f, "%s\n", lines[i]);
		free(lines[i]);
	}
	free(lines);
	in->kind->close(in);
	return 0;
}

/* --- the files of tests/columns ------------------------------------------ */

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = calloc(1, 1 << 20);

	CHECK(f && text);
	CHECK(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

static void check_case(const char *name, struct log *log)
{
	static const struct {
		uint64_t step;
		unsigned threads;
	} ways[] = { { 1, 1 }, { 7, 1 }, { 3, 4 } };
	char text_path[512], path[512], *source = path;

	snprintf(text_path, sizeof(text_path), "tests/columns/%s.txt", name);
	snprintf(path, sizeof(path), "tests/columns/%s", name);
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		char *got = NULL, *expected = read_text(text_path);
		size_t size;
		FILE *f = open_memstream(&got, &size);
		int r;

		CHECK(f);
		r = print_all(f, &source, 1, ways[i].step, ways[i].threads,
			      log);
		CHECK(!fclose(f));
		if (r == -ENOTSUP)
			printf("skipped %s: this build lacks its library\n",
			       name);
		else if (r || strcmp(got, expected) != 0) {
			fprintf(stderr, "%s: %d\n%s", name, r, got);
			CHECK(!"as its library");
		}
		free(got);
		free(expected);
	}
}

static void check_cases(struct log *log)
{
	DIR *dir = opendir("tests/columns");
	struct dirent *entry;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, ".txt") != 0)
			continue;
		*dot = '\0';
		check_case(entry->d_name, log);
	}
	closedir(dir);
}

int main(int argc, char **argv)
{
	char name[] = "test_input_columns";
	struct log log;
	int r = 0;

	log_init(&log, log_to_stderr, name);
	if (argc > 3)
		r = print_all(stdout, argv + 3, (size_t)argc - 3,
			      (uint64_t)atoi(argv[1]), (unsigned)atoi(argv[2]),
			      &log);
	else
		check_cases(&log);
	log_fini(&log);
	return r ? 1 : 0;
}
