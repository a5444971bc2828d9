/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated code against the definitions, for any chain of value operations,
 * types and layouts that a pipeline string can contain, by every compiler of
 * this machine and for every instruction set that runs here.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/pipeline/graph/op_table.h"
#include "loader/pipeline/text/parse.h"
#include "loader/pipeline/text/schedule.h"
#include "loader/run/jit/code.h"
#include "loader/run/jit/compiler.h"
#include "loader/run/jit/emit.h"
#include "loader/run/jit/emit_type.h"
#include "loader/run/jit/pointwise_rows.h"
#include "tests/unit/fields.h"
#include "tests/unit/t.h"

#define TEXT_OF(...) #__VA_ARGS__
#define EXPANDED_TEXT_OF(...) TEXT_OF(__VA_ARGS__)

enum {
	CHAINS = 64,
	TEXT_MAX = 400,
	WIDTH_MAX = 1100,
	NARROW = 130,
	HEIGHT_MAX = 4,
	VALUES = 3 * WIDTH_MAX * HEIGHT_MAX,
};

static const struct pipeline_field field = FIELD_IMAGE(8, 8);

/* Parts of random pipeline strings; %g are arguments from 0 to 1. */
static const char *const pieces[] = {
	"brightness(%g, %g)",
	"saturation(%g, %g)",
	"grayscale(%g)",
	"invert(%g)",
	"solarize(100, %g)",
	"posterize(3, %g)",
	"normalize(%g, 0.3)",
	"normalize(\"0.1,0.5,0.9\", \"0.001,0.5,3\")",
	"uint8",
	"int32",
	"int64",
	"half",
	"float",
	"double",
	"chw",
	"hwc",
};

static struct graph graphs[CHAINS];
static const struct chain *chains[CHAINS];
static char texts[CHAINS][TEXT_MAX];

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

static void compose(struct rng *rng, char *out)
{
	size_t count = 1 + rng_next(rng) % 6;

	strcpy(out, "image");
	for (size_t i = 0; i < count; i++) {
		char piece[80];

		snprintf(piece, sizeof(piece),
			 pieces[rng_next(rng) % ARRAY_LEN(pieces)],
			 rng_uniform(rng), rng_uniform(rng));
		strcat(out, " | ");
		strcat(out, piece);
	}
}

/* Every conversion of two types first, of large and small values, then
   chance. */
static void make_chains(void)
{
	static const char *const scales[] = {
		"normalize(0.5, 0.0001)",
		"normalize(0, 16) | normalize(0, 16)",
		"normalize(0.3, 0.000001) | normalize(0.5, 0.000001)",
	};
	static const char *const types[] = { "uint8", "int32", "int64",
					     "half",  "float", "double" };
	struct rng rng = { .key = 20 };
	size_t n = 0;

	for (; n < ARRAY_LEN(types) * ARRAY_LEN(types); n++) {
		snprintf(texts[n], TEXT_MAX, "%s | %s | %s%s",
			 scales[n % ARRAY_LEN(scales)],
			 types[n / ARRAY_LEN(types)],
			 types[n % ARRAY_LEN(types)], n % 5 ? "" : " | chw");
		CHECK(!build(texts[n], &graphs[n]));
	}
	while (n < CHAINS) {
		compose(&rng, texts[n]);
		n += !build(texts[n], &graphs[n]);
	}
	for (n = 0; n < CHAINS; n++)
		chains[n] = graphs[n].chains;
}

static void every_value_operation_is_among_them(void)
{
	for (size_t k = 0; op_table_row(k); k++) {
		bool found = op_table_row(k)->kind != OP_POINT &&
			     op_table_row(k)->kind != OP_PIXEL;

		for (size_t i = 0; i < CHAINS; i++) {
			for (size_t j = 0; j < chains[i]->num_nodes; j++)
				found |= chains[i]->nodes[j].op ==
					 op_table_row(k);
		}
		CHECK(found);
	}
}

struct picture {
	uint8_t pixels[VALUES];
	struct pointwise_image image;
	struct band band;
};

static void make_picture(struct rng *rng, struct picture *p)
{
	bool planes = rng_next(rng) % 2;
	uint64_t widest = rng_next(rng) % 8 ? NARROW : WIDTH_MAX;
	uint32_t width = 1 + (uint32_t)(rng_next(rng) % widest);

	for (size_t i = 0; i < VALUES; i++)
		p->pixels[i] = (uint8_t)rng_next(rng);
	p->image = (struct pointwise_image){ .size = { width, HEIGHT_MAX },
					     .mirror = rng_next(rng) % 2,
					     .is_streamed = rng_next(rng) % 2 };
	p->band = (struct band){ .step = planes ? 1 : 3,
				 .stride = planes ? WIDTH_MAX : 3 * WIDTH_MAX,
				 .y = 1,
				 .rows = HEIGHT_MAX - 1 };
	for (size_t c = 0; c < 3; c++)
		p->band.channel[c] =
			p->pixels + (planes ? c * WIDTH_MAX * HEIGHT_MAX : c);
}

/* A kernel and the definitions, on one picture. */
static void compare(struct pointwise *stage, kernel_fn *run, const char *text,
		    struct rng *rng)
{
	static struct picture p;
	static uint64_t want[VALUES + 8], got[VALUES + 8];
	static float scratch[20000];
	struct pipeline_row row = { .id = rng_next(rng) };

	make_picture(rng, &p);
	CHECK(stage->num_floats <= ARRAY_LEN(scratch));
	p.image.operands = pointwise_operands(stage, &row, scratch);
	memset(want, 0xee, sizeof(want));
	memset(got, 0xee, sizeof(got));
	pointwise_set_kernel(stage, NULL, POINTWISE_GENERIC);
	p.image.out = want;
	pointwise_band(stage, &p.image, &p.band);
	pointwise_set_kernel(stage, run, POINTWISE_GENERATED);
	p.image.out = got;
	pointwise_band(stage, &p.image, &p.band);
	if (memcmp(want, got, sizeof(want)) != 0)
		fprintf(stderr,
			"%s: %u pixels, mirror %d, streamed %d, step %zu\n",
			text, p.image.size.width, p.image.mirror,
			p.image.is_streamed, p.band.step);
	CHECK(!memcmp(want, got, sizeof(want)));
}

/* One on which kernels make what tables could make. */
static struct isa strong_of(const struct isa *isa)
{
	struct isa strong = *isa;

	strong.is_weak = false;
	return strong;
}

static void check_chain(const struct isa *isa, size_t i, kernel_fn *run,
			struct rng *rng)
{
	const struct isa strong = strong_of(isa);
	struct pointwise stage;

	CHECK(!pointwise_init(&stage, chains[i], &strong));
	CHECK(pointwise_agrees(&stage, run));
	for (int k = 0; k < 12; k++)
		compare(&stage, run, texts[i], rng);
	pointwise_fini(&stage);
}

static const enum dtype held[] = { DTYPE_U1, DTYPE_I4, DTYPE_I8, DTYPE_F2,
				   DTYPE_F4, DTYPE_F8, DTYPE_BF2 };

/* Generated code goes from and to short types by way of float32 only. */
static bool is_cast(enum dtype from, enum dtype to)
{
	if (from == to)
		return false;
	return (!dtype_is_short_real(from) && !dtype_is_short_real(to)) ||
	       from == DTYPE_F4 || to == DTYPE_F4;
}

/* A function cast_FROM_TO for each, and others for arrays. */
static void put_casts(struct code *c)
{
	struct code body = { 0 };
	char *text;

	for (size_t i = 0; i < ARRAY_LEN(held); i++) {
		for (size_t k = 0; k < ARRAY_LEN(held); k++) {
			if (!is_cast(held[i], held[k]))
				continue;
			code_add(&body,
				 "void cast_%d_%d(const %s *in, %s *out, int n)"
				 "{ for (int i = 0; i < n; i++) "
				 "out[i] = %s(in[i]); }\n",
				 held[i], held[k], emit_type_element(held[i]),
				 emit_type_element(held[k]),
				 emit_type_cast(held[i], held[k]));
		}
	}
	code_put(&body,
		 "void cast_halves(const float *in, unsigned short *out,"
		 "int n) { beton_halves(out, in, n); }\n"
		 "void cast_bfloats(const float *in, unsigned short *out,"
		 "int n) { beton_bfloats(out, in, n); }\n");
	text = code_take(&body);
	CHECK(text);
	emit_type_helpers(c, text);
	code_put(c, text);
	free(text);
}

enum { NUMBERS = 1 << 15 };

/* Floats where something begins: float16's ends, halves, bytes, integers. */
static uint32_t edge(struct rng *rng)
{
	static const uint32_t edges[] = { 0x477ff000, 0x38800000, 0x33000000,
					  0x7f800000, 0x437f8000, 0x437f0000,
					  0x3f000000, 0x4f000000, 0x5f000000 };
	uint64_t random = rng_next(rng);

	return edges[random % ARRAY_LEN(edges)] +
	       (uint32_t)(random >> 32) % 8192 - 4096 +
	       (uint32_t)(random & 0x80000000);
}

/* Any bits, numbers of sizes that fit other types, and edges. */
static void make_numbers(enum dtype type, struct rng *rng, uint8_t *out)
{
	size_t size = dtype_size(type);

	for (size_t i = 0; i < NUMBERS; i++, out += size) {
		uint64_t bits = rng_next(rng);
		int64_t whole = (int64_t)bits >> (rng_next(rng) % 64);
		double real = (double)whole;
		uint32_t near = edge(rng);

		for (uint64_t k = rng_next(rng) % 70; i % 2 && k; k--)
			real /= 2;
		if (i % 4 == 0)
			memcpy(out, &bits, size);
		else if (i % 4 == 1)
			dtype_convert(DTYPE_F4, &near, type, out, 1);
		else
			dtype_convert(DTYPE_F8, &real, type, out, 1);
	}
}

static void check_cast(void *library, const char *name, enum dtype from,
		       enum dtype to)
{
	static uint64_t in[NUMBERS], want[NUMBERS], got[NUMBERS];
	struct rng rng = { .key = 6 };
	void (*cast)(const void *, void *, int);

	*(void **)&cast = dlsym(library, name);
	CHECK(cast);
	make_numbers(from, &rng, (uint8_t *)in);
	dtype_convert(from, in, to, want, NUMBERS);
	cast(in, got, NUMBERS);
	if (memcmp(want, got, NUMBERS * dtype_size(to)) != 0)
		fprintf(stderr, "%s\n", name);
	CHECK(!memcmp(want, got, NUMBERS * dtype_size(to)));
}

static void check_casts(void *library)
{
	char name[24];

	for (size_t i = 0; i < ARRAY_LEN(held); i++) {
		for (size_t k = 0; k < ARRAY_LEN(held); k++) {
			snprintf(name, sizeof(name), "cast_%d_%d", held[i],
				 held[k]);
			if (is_cast(held[i], held[k]))
				check_cast(library, name, held[i], held[k]);
		}
	}
	check_cast(library, "cast_halves", DTYPE_F4, DTYPE_F2);
	check_cast(library, "cast_bfloats", DTYPE_F4, DTYPE_BF2);
}

/* All chains as one text: a compiler takes longer to start than to work. */
static char *source(void)
{
	char names[CHAINS][16], *text;
	struct code c = { 0 };
	const char *list[CHAINS];

	for (size_t i = 0; i < CHAINS; i++) {
		snprintf(names[i], sizeof(names[i]), "kernel_%zu", i);
		list[i] = names[i];
	}
	text = emit_chains(chains, list, CHAINS);
	CHECK(text);
	code_put(&c, EXPANDED_TEXT_OF(KERNEL_SPAN_CODE) "\n");
	code_put(&c, text);
	free(text);
	return code_take(&c);
}

/* Apart from kernels, for it names the same helpers. */
static char *source_of_casts(void)
{
	struct code c = { 0 };

	put_casts(&c);
	return code_take(&c);
}

static void *compile(const struct compiler *c, const struct isa *isa,
		     const char *text)
{
	const struct compiler_job job = { .source = text,
					  .isa_flags = isa->flags,
					  .limit_ms = 600000 };
	char path[] = "/tmp/test_kernel-XXXXXX", *messages = NULL;
	int fd = mkstemp(path);
	uint8_t *object;
	size_t size;
	void *library;

	if (compiler_run(c, &job, &object, &size, &messages))
		fprintf(stderr, "%s\n", messages);
	CHECK(!messages);
	CHECK(fd >= 0 && write(fd, object, size) == (ssize_t)size);
	close(fd);
	free(object);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	CHECK(library);
	return library;
}

static void check_compiler(const struct compiler *c, const struct isa *isa,
			   const char *text)
{
	char *casts = source_of_casts();
	void *library = compile(c, isa, casts);
	struct rng rng = { .key = 3 };

	check_casts(library);
	dlclose(library);
	free(casts);
	library = compile(c, isa, text);

	for (size_t i = 0; i < CHAINS; i++) {
		char name[16];
		kernel_fn *run;

		snprintf(name, sizeof(name), "kernel_%zu", i);
		*(void **)&run = dlsym(library, name);
		CHECK(run);
		check_chain(isa, i, run, &rng);
	}
	dlclose(library);
}

static void generated_code_is_the_definition(const char *name)
{
	struct compiler c;
	char *text;

	setenv("BETON_CC", name, 1);
	if (compiler_find(&c)) {
		printf("skip: no %s\n", name);
		return;
	}
	text = source();
	for (size_t i = 0; isa_row(i); i++) {
		if (isa_row(i)->is_supported())
			check_compiler(&c, isa_row(i), text);
	}
	free(text);
}

static void check_prebuilt(const struct isa *isa, const char *text)
{
	const struct isa strong = strong_of(isa);
	struct rng rng = { .key = 4 };
	struct graph graph;
	struct pointwise stage;
	kernel_fn *run;

	CHECK(!build(text, &graph));
	CHECK(!pointwise_init(&stage, graph.chains, &strong));
	run = stage.kernel;
	CHECK(run && !strcmp(pointwise_is_copy(&stage) ? "none" : "prebuilt",
			     pointwise_engine_name(&stage)));
	CHECK(pointwise_agrees(&stage, run));
	for (int k = 0; k < 50; k++)
		compare(&stage, run, text, &rng);
	pointwise_fini(&stage);
	graph_fini(&graph);
}

static void prebuilt_code_is_the_definition(void)
{
	static const char *const standard[] = {
		"image",
		"flip | chw",
		"float",
		"chw | float",
		"random_resized_crop(8) | half",
		"half | chw",
		"normalize(imagenet)",
		"normalize(0.5, 0.25) | chw",
		"float | normalize(0, 1) | half",
		"normalize(\"0.1,0.2,0.3\", 0.7) | half | chw",
	};

	for (size_t k = 0; isa_row(k); k++) {
		for (size_t i = 0; i < ARRAY_LEN(standard); i++) {
			if (isa_row(k)->is_supported())
				check_prebuilt(isa_row(k), standard[i]);
		}
	}
}

static void numbers_do_not_change_the_text(void)
{
	struct graph a, b;
	char *x, *y;

	CHECK(!build("brightness(0.1) | normalize(imagenet) | half", &a));
	CHECK(!build("flip | brightness(2, 0.3, group=k) | float | "
		     "normalize(0.5, 0.5) | half | hwc",
		     &b));
	x = emit_chain(a.chains);
	y = emit_chain(b.chains);
	CHECK(x && y && !strcmp(x, y));
	free(x);
	free(y);
	graph_fini(&a);
	graph_fini(&b);
}

int main(void)
{
	make_chains();
	every_value_operation_is_among_them();
	numbers_do_not_change_the_text();
	prebuilt_code_is_the_definition();
	generated_code_is_the_definition("gcc");
	generated_code_is_the_definition("clang");
	for (size_t i = 0; i < CHAINS; i++)
		graph_fini(&graphs[i]);
	return 0;
}
