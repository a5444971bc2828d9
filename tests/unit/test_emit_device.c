/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels for GPUs against the definitions, with every cut of a chain in two.
 * Some macros turn the kernel into C, and a loop runs its threads. Only NVRTC
 * shows whether NVRTC compiles it: set $BETON_NVRTC_LIBRARY, or use a machine
 * that has one.
 */
#include "loader/run/jit/emit_device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/pipeline/op/operands.h"
#include "loader/pipeline/text/parse.h"
#include "loader/pipeline/text/schedule.h"
#include "loader/run/jit/code.h"
#include "loader/run/jit/compiler.h"
#include "loader/run/jit/pointwise_rows.h"
#include "tests/unit/fields.h"
#include "tests/unit/t.h"

enum { ROWS = 3, WIDTH = 37, HEIGHT = 5, PIXELS = WIDTH * HEIGHT };

static const struct pipeline_field field = FIELD_IMAGE(WIDTH, HEIGHT);

static const char *const texts[] = {
	"image | normalize(imagenet) | chw",
	"image | flip | normalize(imagenet) | half | chw",
	"image | half",
	"image | chw | float",
	"image | brightness(0.5, 1) | saturation(0.4, 1) | normalize(0.5, 0.3)",
	"image | grayscale(1) | invert(0.5) | solarize(100, 0.5) | uint8",
	"image | posterize(3, 0.5) | normalize(0.2, 0.001) | double | int32",
	"image | normalize(0.5, 0.0001) | int64 | float | half | hwc",
	"image | normalize(0, 16) | uint8 | int64 | double | chw | half",
};

/* The words of CUDA in C: threads one after the other. */
static const char SHIM[] =
	"#define KERNEL static\n"
	"static struct { unsigned x, y; } blockIdx, threadIdx;\n";
static const char CALL[] =
	"void run(const void *in, void *out, const float *k,\n"
	"\tunsigned long long stride, const unsigned char *made, unsigned w,\n"
	"\tunsigned h, unsigned rows)\n"
	"{\n"
	"\tfor (blockIdx.y = 0; blockIdx.y < rows; blockIdx.y++)\n"
	"\tfor (blockIdx.x = 0; blockIdx.x <= w * h / 256; blockIdx.x++)\n"
	"\tfor (threadIdx.x = 0; threadIdx.x < 256; threadIdx.x++)\n"
	"\t\t" EMIT_DEVICE_NAME "(in, out, k, stride, made, w, h);\n"
	"}\n";

typedef void run_fn(const void *in, void *out, const float *k,
		    unsigned long long stride, const unsigned char *made,
		    unsigned width, unsigned height, unsigned rows);

static int build(const char *text, struct graph *out)
{
	struct diagnostic c = { text, NULL, 0 };
	struct epochs epochs = { 0, UINT64_MAX };
	struct parse parse;
	int r = parse_text(&c, &parse);

	if (!r) {
		r = graph_build(&parse, &field, 1, &epochs, &c, out);
		parse_fini(&parse);
	}
	return r;
}

static void *compile(const struct compiler *c, const char *kernel)
{
	char path[] = "/tmp/test_emit_device-XXXXXX", *messages = NULL;
	struct code text = { 0 };
	struct compiler_job job = { .isa_flags = isa_row(0)->flags,
				    .limit_ms = 600000 };
	int fd = mkstemp(path);
	uint8_t *object;
	size_t size;
	void *library;

	code_put(&text, SHIM);
	code_put(&text, kernel);
	code_put(&text, CALL);
	job.source = code_take(&text);
	CHECK(job.source);
	if (compiler_run(c, &job, &object, &size, &messages))
		fprintf(stderr, "%s\n%s\n", job.source, messages);
	CHECK(!messages);
	CHECK(fd >= 0 && write(fd, object, size) == (ssize_t)size);
	close(fd);
	free(object);
	free((char *)(uintptr_t)job.source);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	CHECK(library);
	return library;
}

/* Computes the pixels of all rows on the CPU by the definitions. */
static void define(const struct chain *chain, const uint8_t *pixels,
		   const struct pipeline_row *rows, uint64_t *out)
{
	size_t size = 3 * PIXELS * dtype_size(chain_type(chain)->dtype);
	struct pointwise stage;
	float *scratch;

	CHECK(!pointwise_init(&stage, chain, isa_row(0)));
	pointwise_set_kernel(&stage, NULL, POINTWISE_GENERIC);
	scratch = calloc(stage.num_floats + 1, sizeof(*scratch));
	CHECK(scratch);
	for (size_t i = 0; i < ROWS; i++) {
		const uint8_t *p = pixels + i * 3 * PIXELS;
		const struct pointwise_image image = {
			.size = { WIDTH, HEIGHT },
			.operands =
				pointwise_operands(&stage, &rows[i], scratch),
			.out = (uint8_t *)out + i * size,
		};
		const struct band band = { .channel = { p, p + 1, p + 2 },
					   .step = 3,
					   .stride = 3 * (size_t)WIDTH,
					   .rows = HEIGHT };

		pointwise_band(&stage, &image, &band);
	}
	free(scratch);
	pointwise_fini(&stage);
}

/* The CPU runs the first `cut` nodes, and the kernel runs the others. */
static void check_cut(const struct compiler *c, const struct chain *chain,
		      size_t cut, const uint8_t *pixels)
{
	static uint64_t want[ROWS * 3 * PIXELS], middle[ROWS * 3 * PIXELS],
		got[ROWS * 3 * PIXELS];
	struct pipeline_row rows[ROWS] = { { .id = 5 },
					   { .id = 6 },
					   { .id = 9 } };
	struct chain head = chain_head(chain, cut);
	struct chain rest = chain_rest(chain, cut);
	static const unsigned char made[ROWS] = { 1, 0, 1 };
	float operands[ROWS * 64];
	size_t size;
	run_fn *run;
	void *library;
	char *text;

	text = emit_device(&rest);
	CHECK(text && chain->num_operands <= 64);
	library = compile(c, text);
	*(void **)&run = dlsym(library, "run");
	for (size_t i = 0; i < ROWS; i++)
		operands_fill(chain, &rows[i],
			      operands + i * chain->num_operands);
	memset(want, 0xee, sizeof(want));
	memset(got, 0xee, sizeof(got));
	define(chain, pixels, rows, want);
	define(&head, pixels, rows, middle);
	/* The second could not be made. */
	size = 3 * PIXELS * dtype_size(chain_type(chain)->dtype);
	memset((uint8_t *)want + size, 0, size);
	run(middle, got, operands, chain->num_operands, made, WIDTH, HEIGHT,
	    ROWS);
	CHECK(!memcmp(want, got, sizeof(want)));
	dlclose(library);
	free(text);
}

static void every_cut_gives_the_same_bits(void)
{
	static uint8_t pixels[ROWS * 3 * PIXELS];
	struct rng rng = { .key = 8 };
	struct compiler c;

	if (compiler_find(&c)) {
		printf("skip: no compiler\n");
		return;
	}
	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)rng_next(&rng);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct graph graph;
		const struct chain *chain;
		size_t first = 0;

		CHECK(!build(texts[i], &graph));
		chain = graph.chains;
		while (chain->nodes[first].op->kind == OP_GEOMETRY)
			first++;
		for (size_t cut = first; cut < chain->num_nodes; cut++)
			check_cut(&c, chain, cut, pixels);
		graph_fini(&graph);
	}
}

int main(void)
{
	every_cut_gives_the_same_bits();
	return 0;
}
