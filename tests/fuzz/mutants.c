/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of beton on damaged copies of datasets and of batch files:
 *
 *	mutants SEED FIRST STEP END FILE...	runs them
 *	mutants --write SEED NUMBER OUT FILE...	writes one mutant
 *
 * SEED and NUMBER alone define a mutant of these FILEs. Each command runs in a
 * process of its own, which is forked and so needs no start of a program. The
 * result is lines "bad NUMBER COMMAND: REASON", and "at NUMBER" now and then.
 *The last line is "done RUNS SUCCESSES BYTES MICROSECONDS", where the last two
 *are the most that a process took.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/base/order/spec_text.h"
#include "fs/base/util/rng.h"
#include "fs/data/dataset/dataset.h"
#include "fs/data/dataset/format.h"
#include "fs/data/engine/batch.h"
#include "tests/fuzz/command.h"
#include "tests/fuzz/seal.h"

enum {
	FILES_MAX = 256,
	EDITS_MAX = 4,
	GROW_MAX = 4096, /* bytes that an edit appends */
	CPU_US = 2000000,
	WALL_S = 30, /* the machine may be busy */
	MEMORY = 200 << 20,
	REPORT = 100, /* mutants */
	WORDS = 2000,
	SANITIZER = 99,
};

/* A valid file. Most damage is done in front of `head` and behind `tail`. */
struct original {
	uint8_t *bytes;
	size_t size;
	size_t head;
	size_t tail;
	bool is_batch;
};

struct run {
	struct original files[FILES_MAX];
	unsigned num_files;
	uint64_t state; /* of random numbers */
	FILE *results;
	uint64_t idle_bytes; /* that a process has after the fork */
	uint64_t most_bytes, most_us;
	uint64_t runs, successes;
};

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

/* Leaks are for fuzz_beton to find: the check takes longer than a command.
   Memory that was freed counts as used while it is quarantined. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0:exitcode=99:quarantine_size_mb=1:"
	       "allocator_may_return_null=1";
}

const char *__ubsan_default_options(void)
{
	return "print_stacktrace=1";
}

/* --- originals --- */

static void read_original(const char *path, struct original *o)
{
	FILE *f = fopen(path, "rb");
	long size;

	MUST(f && !fseek(f, 0, SEEK_END) && (size = ftell(f)) > 0);
	rewind(f);
	*o = (struct original){ .size = (size_t)size };
	o->bytes = malloc(o->size);
	MUST(o->bytes && fread(o->bytes, o->size, 1, f) == 1);
	fclose(f);
}

/* The first batch of a dataset, as another original. */
static void add_batch(struct run *run, struct dataset *ds)
{
	const struct spec_facts facts = {
		.samples = ds->format.samples,
		.data_bytes = dataset_data_bytes(ds),
	};
	struct original *o = &run->files[run->num_files];
	char why[SPEC_WHY_SIZE];
	struct spec spec;
	struct batch *b;
	bool failed;

	MUST(!spec_parse(COMMAND_SPEC, &facts, &spec, why));
	if (batch_open(&(struct batch_key){ ds, &spec, 0, 0 }, NULL, &b))
		return;
	*o = (struct original){
		.size = b->vfile.size,
		.head = min_u64(b->vfile.size, 4096),
		.tail = b->vfile.size,
		.is_batch = true,
	};
	o->bytes = malloc(o->size);
	MUST(o->bytes && !batch_collate(b, NULL, o->bytes, &failed));
	batch_put(&b);
	run->num_files++;
}

static void add_file(struct run *run, const char *path)
{
	struct original *o = &run->files[run->num_files++];
	struct dataset *ds;

	read_original(path, o);
	o->head = min_u64(o->size, FORMAT_HEADER_SIZE);
	o->tail = o->size;
	/* Some files are damaged from the start. */
	if (dataset_open(path, NULL, NULL, &ds))
		return;
	o->head =
		ds->format.meta_off + ds->format.samples * ds->format.itemsize;
	o->tail = ds->format.table_off;
	add_batch(run, ds);
	dataset_close(ds);
}

/* --- mutants --- */

static uint64_t below(struct run *run, uint64_t n)
{
	run->state += UINT64_C(0x9e3779b97f4a7c15);
	return n ? rng_mix(run->state) % n : 0;
}

static size_t choose_place(struct run *run, const struct original *o,
			   size_t size)
{
	unsigned where = (unsigned)below(run, 10);

	if (where < 3)
		return below(run, min_u64(size, FORMAT_HEADER_SIZE));
	if (where < 6)
		return below(run, min_u64(o->head, size));
	if (where < 8 && o->tail < size)
		return o->tail + below(run, size - o->tail);
	return below(run, size);
}

static void write_number(struct run *run, uint8_t *at, size_t room)
{
	static const uint64_t numbers[] = {
		0,	    1,	       2,	   127,
		255,	    4096,      65535,	   INT32_MAX,
		UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 4095,
	};
	uint64_t n = numbers[below(run, ARRAY_LEN(numbers))];
	size_t size = (size_t)1 << below(run, 4);

	memcpy(at, &n, min_u64(size, room));
}

/* Changes bytes, or the size. */
static void edit(struct run *run, const struct original *o, uint8_t *bytes,
		 size_t *size)
{
	size_t at = choose_place(run, o, *size);
	size_t room = *size - at, n;

	switch (*size ? below(run, 8) : 7) {
	case 0:
	case 1:
		bytes[at] ^= (uint8_t)(1 << below(run, 8));
		break;
	case 2:
		bytes[at] = (uint8_t)below(run, 256);
		break;
	case 3:
	case 4:
		write_number(run, bytes + at, room);
		break;
	case 5:
		n = min_u64(room, below(run, 64));
		memmove(bytes + at, bytes + below(run, *size - n), n);
		break;
	case 6:
		*size = at;
		break;
	default:
		n = below(run, GROW_MAX);
		memset(bytes + *size, (int)below(run, 256), n);
		*size += n;
	}
}

/* Returns the bytes of a mutant, the caller's, and its original. */
static uint8_t *make_mutant(struct run *run, uint64_t seed, uint64_t number,
			    size_t *size, const struct original **of)
{
	const struct original *o;
	uint8_t *bytes;

	run->state = rng_mix(seed) ^ rng_mix(~number);
	o = &run->files[below(run, run->num_files)];
	bytes = malloc(o->size + EDITS_MAX * GROW_MAX);
	MUST(bytes);
	memcpy(bytes, o->bytes, o->size);
	*size = o->size;
	for (uint64_t i = 1 + below(run, EDITS_MAX); i; i--)
		edit(run, o, bytes, size);
	if (o->is_batch && below(run, 4))
		seal_batch(bytes, *size);
	*of = o;
	return bytes;
}

/* --- running --- */

/* How a process ended. */
struct outcome {
	int status;
	uint64_t bytes;
	uint64_t us;
	char words[WORDS]; /* on its standard error */
};

static uint64_t microseconds(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

static _Noreturn void run_child(const struct command_row *row, const char *path,
				int words)
{
	dup2(words, STDERR_FILENO);
	alarm(WALL_S);
	_exit(row ? command_run_on(row, path) : 0);
}

/* `row` is NULL: nothing. */
static struct outcome run_one(const struct command_row *row, const char *path)
{
	int words = memfd_create("words", MFD_CLOEXEC);
	struct outcome o = { .words = "" };
	struct rusage used;
	pid_t child = fork();

	MUST(words >= 0 && child >= 0);
	if (!child)
		run_child(row, path, words);
	MUST(wait4(child, &o.status, 0, &used) == child);
	o.bytes = (uint64_t)used.ru_maxrss << 10;
	o.us = microseconds(&used.ru_utime) + microseconds(&used.ru_stime);
	MUST(pread(words, o.words, WORDS - 1, 0) >= 0);
	close(words);
	if (row && row->command == &command_dump)
		command_remove_out();
	return o;
}

static const char *why_bad(const struct run *run, const struct outcome *o)
{
	if (*o->words)
		return o->words;
	if (WIFSIGNALED(o->status))
		return strsignal(WTERMSIG(o->status));
	if (WEXITSTATUS(o->status) > EXIT_FAILURE)
		return "another exit code";
	if (o->us > CPU_US)
		return "too long";
	return o->bytes > run->idle_bytes + MEMORY ? "too much memory" : NULL;
}

static void try(struct run *run, uint64_t number, const struct command_row *row,
		const char *path)
{
	struct outcome o = run_one(row, path);
	const char *why = why_bad(run, &o);

	run->runs++;
	run->successes += !o.status;
	run->most_bytes = max_u64(run->most_bytes, o.bytes);
	run->most_us = max_u64(run->most_us, o.us);
	if (why)
		fprintf(run->results,
			"bad %llu %s %s: %s (%llu us, %llu KiB)\n",
			(unsigned long long)number, row->command->name,
			*row->options ? *row->options : "", why,
			(unsigned long long)o.us,
			(unsigned long long)o.bytes >> 10);
}

static void try_all(struct run *run, uint64_t seed, uint64_t number)
{
	const struct original *o;
	const struct command_row *row;
	int fd = memfd_create("mutant", MFD_CLOEXEC);
	char path[32];
	size_t size;
	uint8_t *bytes = make_mutant(run, seed, number, &size, &o);

	MUST(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	free(bytes);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t i = 0; i < ARRAY_LEN(command_rows); i++) {
		row = &command_rows[i];
		if ((row->command == &command_show) == o->is_batch)
			try(run, number, row, path);
	}
	close(fd);
}

static void write_mutant(struct run *run, uint64_t seed, uint64_t number,
			 const char *path)
{
	const struct original *o;
	size_t size;
	uint8_t *bytes = make_mutant(run, seed, number, &size, &o);
	FILE *f = fopen(path, "wb");

	MUST(f && (!size || fwrite(bytes, size, 1, f) == 1) && !fclose(f));
	free(bytes);
	printf("%s\n", o->is_batch ? "batch" : "dataset");
}

static void run_all(struct run *run, char **numbers)
{
	uint64_t seed = strtoull(numbers[0], NULL, 10);
	uint64_t first = strtoull(numbers[1], NULL, 10);
	uint64_t step = strtoull(numbers[2], NULL, 10);
	uint64_t end = strtoull(numbers[3], NULL, 10);

	run->results = fdopen(dup(STDOUT_FILENO), "w");
	MUST(run->results && step);
	setlinebuf(run->results);
	command_begin();
	run->idle_bytes = run_one(NULL, NULL).bytes;
	for (uint64_t i = first; i < end; i += step) {
		try_all(run, seed, i);
		if ((i - first) / step % REPORT == 0)
			fprintf(run->results, "at %llu\n",
				(unsigned long long)i);
	}
	fprintf(run->results, "done %llu %llu %llu %llu\n",
		(unsigned long long)run->runs,
		(unsigned long long)run->successes,
		(unsigned long long)run->most_bytes,
		(unsigned long long)run->most_us);
}

int main(int argc, char **argv)
{
	static struct run run;
	bool writes = argc > 1 && !strcmp(argv[1], "--write");

	MUST(argc > 5);
	for (int i = 5; i < argc && run.num_files < FILES_MAX - 1; i++)
		add_file(&run, argv[i]);
	if (writes)
		write_mutant(&run, strtoull(argv[2], NULL, 10),
			     strtoull(argv[3], NULL, 10), argv[4]);
	else
		run_all(&run, argv + 1);
	return 0;
}
