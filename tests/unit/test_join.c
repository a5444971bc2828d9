/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/source/local/file.h"
#include "fs/source/local/join.h"
#include "fs/source/object/open.h"
#include "tests/unit/far.h"

enum { PARTS = 4, STEPS = 3000, LARGEST = 40000 };

static const size_t sizes[PARTS] = { 5000, 4096, 1, 100000 };
static const uint64_t bases[PARTS] = { 0, 8192, 12288, 16384 };
static char folder[] = "/tmp/test_join.XXXXXX";

static void open_parts(struct source **out, unsigned far_from,
		       struct far_counts *counts)
{
	char path[64];
	uint8_t *bytes;
	FILE *f;

	for (unsigned i = 0; i < PARTS; i++) {
		snprintf(path, sizeof(path), "%s/%u", folder, i);
		bytes = malloc(sizes[i]);
		f = fopen(path, "w");
		CHECK(f && bytes);
		for (size_t k = 0; k < sizes[i]; k++)
			bytes[k] = (uint8_t)(1 + rng_mix(k + i * 1000) % 255);
		CHECK(fwrite(bytes, 1, sizes[i], f) == sizes[i] && !fclose(f));
		free(bytes);
		CHECK(!source_open(path, NULL, NULL, &out[i]));
		if (i >= far_from)
			out[i] = far_open(out[i], &counts[i]);
	}
}

static void close_all(struct source *joined, struct source **parts)
{
	source_close(joined);
	for (unsigned i = 0; i < PARTS; i++)
		source_close(parts[i]);
}

struct step {
	struct source_wait wait;
	struct source_request request;
	int result;
};

static void step_done(struct source_request *q, int result)
{
	struct step *step = q->arg;

	step->result = result;
	source_wait_done(&step->wait);
}

static int submit(struct source *s, struct step *step, bool cancel)
{
	step->request.done = step_done;
	step->request.arg = step;
	source_wait_init(&step->wait);
	source_wait_add(&step->wait);
	source_submit(s, &step->request);
	if (cancel)
		source_cancel(s, &step->request);
	source_wait_idle(&step->wait);
	source_wait_fini(&step->wait);
	return step->result;
}

static uint64_t draw(uint64_t *seed, uint64_t n)
{
	return rng_mix(++*seed) % n;
}

/* Any mix of sources reads like a join of files. */
static void all_reads_are_those_of_files(unsigned far_from)
{
	struct far_counts counts[PARTS] = { { .quiet_ns = 1 },
					    { .quiet_ns = 1 },
					    { .quiet_ns = 1 },
					    { .quiet_ns = 1 } };
	struct source *parts[PARTS], *files[PARTS], *joined, *all;
	uint8_t *a = aligned_alloc(4096, 65536), *b = malloc(65536);
	uint64_t seed = far_from, off, size, total = bases[3] + sizes[3];
	struct iovec iov[2];
	int r;

	open_parts(files, PARTS, NULL);
	open_parts(parts, far_from, counts);
	CHECK(!source_join(files, bases, PARTS, "all", &all));
	CHECK(!source_join(parts, bases, PARTS, "all", &joined));
	CHECK(file_source_is(all) && !file_source_is(joined));
	CHECK((uint64_t)joined->stat.st_size == total);
	for (int i = 0; i < STEPS; i++) {
		struct step step = { .request.must = draw(&seed, 2) };

		off = draw(&seed, draw(&seed, 2) ? 20000 : total);
		size = 1 + draw(&seed, min_u64(LARGEST, total - off));
		memset(a, 0xee, 65536);
		if (draw(&seed, 4) == 0) {
			r = source_read(joined, a, size, off);
		} else if (draw(&seed, 2)) {
			/* The page cache reads past the end. */
			off = off / 4096 * 4096;
			step.request.buf = a;
			step.request.off = off;
			step.request.size = align_up(size, 4096);
			size = min_u64(step.request.size, total - off);
			step.request.need = size;
			step.request.direct = true;
			r = submit(joined, &step, !draw(&seed, 4));
		} else {
			iov[0] = (struct iovec){ a, size / 2 };
			iov[1] =
				(struct iovec){ a + size / 2, size - size / 2 };
			step.request.iov = iov;
			step.request.iovcnt = 2;
			step.request.off = off;
			step.request.size = size;
			r = submit(joined, &step, !draw(&seed, 4));
		}
		CHECK(!r || r == -ECANCELED);
		CHECK(!source_read(all, b, size, off));
		CHECK(r || !memcmp(a, b, size));
	}
	CHECK(source_read(joined, a, 10, total - 9) == -EIO);
	close_all(joined, parts);
	close_all(all, files);
	free(a);
	free(b);
}

/* The requests end, also those that no server answers. */
static void closing_cancels_requests(void)
{
	struct far_counts counts[PARTS] = { { .is_shut = true },
					    { .is_shut = true },
					    { .is_shut = true },
					    { .is_shut = true } };
	struct source *parts[PARTS], *joined;
	struct step steps[8] = { 0 };
	static uint8_t bytes[8][20000];

	open_parts(parts, 0, counts);
	CHECK(!source_join(parts, bases, PARTS, "all", &joined));
	for (int i = 0; i < 8; i++) {
		steps[i].request = (struct source_request){
			.buf = bytes[i],
			.size = 20000,
			.off = (uint64_t)i * 1000,
			.done = step_done,
			.arg = &steps[i],
		};
		source_wait_init(&steps[i].wait);
		source_wait_add(&steps[i].wait);
		source_submit(joined, &steps[i].request);
	}
	source_close(joined);
	for (int i = 0; i < 8; i++) {
		source_wait_idle(&steps[i].wait);
		CHECK(steps[i].result == -ECANCELED);
		source_wait_fini(&steps[i].wait);
	}
	for (int i = 0; i < PARTS; i++)
		source_close(parts[i]);
}

int main(void)
{
	char command[64];

	CHECK(mkdtemp(folder));
	all_reads_are_those_of_files(0);
	all_reads_are_those_of_files(2);
	closing_cancels_requests();
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK(!system(command));
	return 0;
}
