/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of a device, cached and compiled, and batches that pass through them.
   The rows have to equal those that the CPU computes with the whole
   pipeline. */
#include "loader/run/gpu/device_batch.h"

#include <stdlib.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/run/jit/emit_device.h"
#include "tests/unit/fields.h"
#include "tests/unit/gpu.h"

enum { WIDTH = 21, HEIGHT = 6, PIXELS = WIDTH * HEIGHT, REPEATED = 11 };

static const struct pipeline_field fields[] = {
	FIELD_IMAGE(WIDTH, HEIGHT),
	{ .name = "vec",
	  .stem = "vec",
	  .column = COLUMN_ARRAY,
	  .usable = true,
	  .dtype = "<f4",
	  .ndim = 1,
	  .shape = { 3 } },
};

static struct gpu gpu;
static const struct standin *standin;
static char cache[] = "/tmp/test_device_batch.XXXXXX";
static char error[600];

static struct pipeline *parse(const char *text, bool split)
{
	struct pipeline *p;
	int r = pipeline_parse(text, fields, ARRAY_LEN(fields), 0, &p, error,
			       sizeof(error));

	if (r)
		fprintf(stderr, "%s\n", error);
	CHECK(!r);
	if (split)
		CHECK(!pipeline_split(p, true));
	return p;
}

static struct device *open_device(void)
{
	struct device *d;

	if (standin)
		standin->reset(1);
	CHECK(!device_open(0, 64 << 20, &gpu.log, &d));
	return d;
}

/* --- rows --- */

/* Computes row `i` of an image or an array on the CPU. */
static void run_row(const struct pipeline *p, struct pipeline_worker *w,
		    size_t i, uint64_t id, uint8_t *out)
{
	uint8_t bytes[3 * PIXELS];
	struct rng rng = { .key = id };
	bool image = !pipeline_output_at(p, i)->field;
	struct pipeline_value v = { .bytes = bytes,
				    .size = image ? sizeof(bytes) : 12,
				    .mode = BETON_MODE_RAW,
				    .width = WIDTH,
				    .height = HEIGHT };

	memset(bytes, 0, sizeof(bytes));
	for (size_t k = 0; image && k < sizeof(bytes); k++)
		bytes[k] = (uint8_t)rng_next(&rng);
	bytes[0] |= 1;
	CHECK(!pipeline_run(p, w, i, &v, &(struct pipeline_row){ .id = id },
			    BETON_STAGE_ALL, out, NULL));
}

static bool is_bad(uint64_t id)
{
	return id % 5 == 2;
}

/* Repeats a batch, in new memory or in place: the bytes stay the same. */
static void check_repeats(struct device *d, const struct device_batch *parcel,
			  const struct pipeline *p, size_t i,
			  const uint8_t *want, uint64_t size)
{
	uint8_t *got = malloc(size);
	struct device_batch *again;

	CHECK(!device_batch_open(d, pipeline_num_outputs(p), &again));
	for (unsigned round = 0; round < 4; round++) {
		CHECK(!device_batch_repeat(again, parcel, round % 2));
		CHECK(!device_batch_size(again) == !(round % 2));
		CHECK((device_batch_address(again, i) ==
		       device_batch_address(parcel, i)) == !(round % 2));
		memset(got, 0xa5, size);
		CHECK(!device_batch_read(again, i, got, size));
		CHECK(!memcmp(got, want, size));
		CHECK(!device_batch_release(again, UPLOAD_NO_STREAM));
	}
	device_batch_close(again);
	free(got);
}

/* One batch: the bytes that are sent equal those of the plain pipeline on the
   CPU, with zeros for missing samples. */
static void check_batch(struct device *d, struct device_batch *parcel,
			const struct pipeline *p, const struct pipeline *plain,
			uint32_t rows)
{
	size_t n = pipeline_num_outputs(p);
	struct pipeline_worker *w, *whole;

	CHECK(!pipeline_worker_open(p, &w));
	CHECK(!pipeline_worker_open(plain, &whole));
	CHECK(!device_batch_begin(parcel, p, rows));
	for (size_t i = 0; i < n; i++) {
		const struct pipeline_output *o = pipeline_output_at(p, i);
		uint8_t *to = device_batch_rows(parcel, i);

		CHECK(!to == (o->device < 0));
		for (uint32_t row = 0; to && row < rows; row++) {
			uint8_t *at = to + row * o->made_size;
			const struct pipeline_row key = { .id = row };

			if (is_bad(row))
				memset(at, 0, o->made_size);
			else
				run_row(p, w, i, row, at);
			device_batch_row(parcel, i, row, &key, !is_bad(row));
		}
	}
	CHECK(!device_batch_start(parcel));
	for (size_t i = 0; i < n; i++) {
		uint64_t size = pipeline_output_at(p, i)->row_size;
		uint8_t *got = malloc(rows * size), *want = calloc(rows, size);

		if (pipeline_output_at(p, i)->device < 0) {
			free(got);
			free(want);
			continue;
		}
		CHECK(!device_batch_read(parcel, i, got, rows * size));
		for (uint32_t row = 0; row < rows; row++) {
			if (!is_bad(row))
				run_row(plain, whole, i, row,
					want + row * size);
		}
		CHECK(!memcmp(got, want, rows * size));
		if (rows == REPEATED)
			check_repeats(d, parcel, p, i, want, rows * size);
		free(got);
		free(want);
	}
	CHECK(!device_batch_release(parcel, UPLOAD_NO_STREAM));
	pipeline_worker_close(w);
	pipeline_worker_close(whole);
}

static void check_text(const char *text, const uint32_t *rows, size_t n)
{
	struct pipeline *p = parse(text, true), *plain = parse(text, false);
	struct device *d = open_device();
	struct device_batch *parcel;
	int r;

	r = device_add(d, p);
	if (r)
		fprintf(stderr, "%s: %d %s\n", text, r, gpu.logged);
	CHECK(!r);
	CHECK(!device_batch_open(d, pipeline_num_outputs(p), &parcel));
	for (size_t i = 0; i < n; i++)
		check_batch(d, parcel, p, plain, rows[i]);
	device_batch_close(parcel);
	device_close(d);
	pipeline_close(plain);
	pipeline_close(p);
}

/* Batches grow and shrink in the same memory. */
static void test_rows(void)
{
	static const uint32_t rows[] = { 3, REPEATED, 1, 40, 7 };
	static const char *const texts[] = {
		"image | cuda(0) | normalize(imagenet) | half | chw; vec",
		"image | brightness(0.5, 1) | cuda(0) | saturation(0.4, 1) | "
		"float; vec | half | cuda(0)",
		"image | center_crop(5) | cuda(0); vec | cuda(0)",
		"image | float | chw | cuda(0); view = image | center_crop(4) "
		"| cuda(0) | grayscale(0.5) | invert(0.5); vec",
		"image | center_crop(2); vec | cuda(0)",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		check_text(texts[i], rows, ARRAY_LEN(rows));
}

/* More than a grid is high. */
static void test_many_rows(void)
{
	static const uint32_t rows[] = { EMIT_DEVICE_ROWS_MAX + 3, 2 };

	check_text("image | center_crop(1) | cuda(0) | brightness(0.5, 1) | "
		   "half; vec | cuda(0)",
		   rows, ARRAY_LEN(rows));
	if (standin)
		CHECK(standin->calls("cuLaunchKernel") == 3);
}

/* --- code --- */

static unsigned add(const char *const *texts, size_t n)
{
	struct pipeline *p[4];
	struct device *d = open_device();
	unsigned loaded;

	for (size_t i = 0; i < n; i++) {
		p[i] = parse(texts[i], true);
		CHECK(!device_add(d, p[i]));
		CHECK(!device_kernel(d, p[i], 0) ==
		      !pipeline_has_rest(p[i], 0));
	}
	/* Outputs with the same generated code share one kernel. */
	for (size_t i = 1; i < n; i++)
		CHECK(device_kernel(d, p[0], 0) == device_kernel(d, p[i], 0) ||
		      strstr(texts[i], "half"));
	loaded = standin ? standin->calls("cuModuleLoadDataEx") : 0;
	device_close(d);
	for (size_t i = 0; i < n; i++)
		pipeline_close(p[i]);
	return loaded;
}

/* In all files of the cache; their number. */
static unsigned count_kept(void)
{
	char command[100];
	unsigned n = 0;
	FILE *f;

	snprintf(command, sizeof(command),
		 "find %s -path '*cuda*' -type f -size +0 | wc -l", cache);
	f = popen(command, "r");
	CHECK(f && fscanf(f, "%u", &n) == 1);
	pclose(f);
	return n;
}

static void empty_cache(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s/*", cache);
	CHECK(!system(command));
}

static void test_code_is_shared_and_kept(void)
{
	static const char *const texts[] = {
		"image | center_crop(4) | cuda(0) | float | chw",
		"image | center_crop(5) | cuda(0) | float | chw",
		"image | center_crop(5) | cuda(0) | half | chw",
	};

	if (!gpu_has_standin(&gpu, __func__))
		return;
	empty_cache();
	CHECK(add(texts, 3) == 2 && count_kept() == 2);
	/* Cached kernels run without the compiler. */
	CHECK(add(texts, 3) == 2 && count_kept() == 2);
	empty_cache();
	/* A device that has nothing to run needs no code. */
	CHECK(!add((const char *[]){ "image | cuda(0)" }, 1) && !count_kept());
}

/* A cached kernel that does not load is compiled again. */
static void test_failed_loads(void)
{
	const char *text = "image | cuda(0) | float | chw";
	struct pipeline *p = parse(text, true);
	struct device *d;

	if (!gpu_has_standin(&gpu, __func__)) {
		pipeline_close(p);
		return;
	}
	empty_cache();
	CHECK(add(&text, 1) == 1);
	d = open_device();
	standin->fail("cuModuleLoadDataEx", 1, 200);
	CHECK(!device_add(d, p) && device_kernel(d, p, 0));
	CHECK(standin->calls("cuModuleLoadDataEx") == 2);
	device_close(d);
	pipeline_close(p);
}

/* --- who refuses --- */

static void test_no_compiler(void)
{
	char *nvrtc = getenv("BETON_NVRTC_LIBRARY");
	struct pipeline *p = parse("image | cuda(0) | float", true);
	struct pipeline *shipped = parse("image | float | cuda(0)", true);
	struct device *d;

	if (gpu_has_standin(&gpu, __func__)) {
		nvrtc = strdup(nvrtc);
		setenv("BETON_NVRTC_LIBRARY", "/proc/nonexistent/nvrtc.so", 1);
		d = open_device();
		CHECK(!device_add(d, shipped));
		gpu_clear_log(&gpu);
		CHECK(device_add(d, p) == -ENOSYS);
		CHECK(gpu.lines == 1 && strstr(gpu.logged, "NVRTC"));
		device_close(d);
		setenv("BETON_NVRTC_LIBRARY", nvrtc, 1);
		free(nvrtc);
	}
	pipeline_close(shipped);
	pipeline_close(p);
}

int main(void)
{
	gpu_begin(&gpu);
	standin = gpu.standin;
	if (standin) {
		struct gpu nvrtc;

		gpu_find_standin(&nvrtc, "nvrtc");
		setenv("BETON_NVRTC_LIBRARY", nvrtc.path, 1);
	}
	CHECK(mkdtemp(cache));
	setenv("BETON_CACHE_DIR", cache, 1);
	test_rows();
	test_many_rows();
	test_code_is_shared_and_kept();
	test_failed_loads();
	test_no_compiler();
	empty_cache();
	rmdir(cache);
	gpu_end(&gpu);
	return 0;
}
