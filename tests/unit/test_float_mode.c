/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values do not depend on the floating-point mode of the program's threads,
 * which is left as it is.
 */
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beton/loader.h"
#include "beton/writer.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/float_mode.h"
#include "fs/base/util/thread.h"
#include "loader/run/jit/compiler.h"
#include "tests/unit/t.h"

enum { BATCHES = 3, W = 40, H = 30 };

#define DATA "synthetic(24, image=\"uint8[30,40,3]\")"

static const char *const chains[] = {
	"random_resized_crop(7)",
	"resize(\"11,13\") | normalize(imagenet) | half | chw",
	"center_crop(9) | brightness(0.7) | saturation(0.3) | float",
	"random_resized_crop(6) | color_jitter(0.4, 0.4, 0.4, 0.1) | double",
};

/* Makes denormal numbers, and then normal ones of them. */
static const char own[] =
	"static void f(float *v, const void *at)\n"
	"{\n"
	"\tfor (int c = 0; c < 3; c++)\n"
	"\t\tv[c] = (v[c] + 0.1f) * 1e-41f * 1e30f * 1e10f / 3;\n"
	"}\n";

static char dir[] = "/tmp/test_float_mode-XXXXXX";

struct mode {
	const char *name;
	int round;
	bool flushes;
};

static const struct mode modes[] = {
	{ "upward", FE_UPWARD, false },
	{ "downward", FE_DOWNWARD, false },
	{ "to zero", FE_TOWARDZERO, false },
	{ "flush", FE_TONEAREST, true },
};

static void set_mode(const struct mode *m)
{
	CHECK(!fesetenv(FE_DFL_ENV) && !fesetround(m->round));
#ifdef __x86_64__
	if (m->flushes)
		__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
}

static bool has_mode(const struct mode *m)
{
	bool same = fegetround() == m->round;

#ifdef __x86_64__
	same &= !!(__builtin_ia32_stmxcsr() & 0x8040) == m->flushes;
#endif
	return same;
}

static void *note_mode(void *arg)
{
	const struct mode normal = { "", FE_TONEAREST, false };

	*(bool *)arg = has_mode(&normal);
	return NULL;
}

static void threads_have_the_default_mode(void)
{
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		bool is_normal = false;
		pthread_t thread;

		set_mode(&modes[i]);
		CHECK(!thread_start(&thread, note_mode, &is_normal));
		CHECK(!pthread_join(thread, NULL));
		CHECK(is_normal && has_mode(&modes[i]));
	}
	fesetenv(FE_DFL_ENV);
}

/* A callback of the user changes the mode of the thread that runs it. */
static int change_mode(void *arg, const struct beton_batch *b, char *why,
		       size_t size)
{
	(void)b;
	(void)why;
	(void)size;
	if (arg)
		set_mode(arg);
	return 0;
}

/* All bytes of an epoch, which the caller frees. */
static uint8_t *load(const char *chain, const struct mode *m, bool by_callback,
		     size_t *size)
{
	struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = "batch=8,seed=5",
		.pipeline = chain,
		.source = DATA,
		.workers = 1,
		.callback = true,
	};
	const struct beton_batch *b;
	struct beton_loader *l;
	uint8_t *bytes = NULL;

	if (!by_callback)
		set_mode(m);
	CHECK(!beton_loader_open("/nowhere", &o, &l));
	CHECK(by_callback || has_mode(m));
	CHECK(!beton_loader_set_callback(l, change_mode,
					 by_callback ? (void *)m : NULL));
	*size = 0;
	for (unsigned i = 0; i < BATCHES; i++) {
		const struct beton_tensor *t;

		CHECK(!beton_loader_next(l, &b));
		t = &b->outputs[0];
		bytes = realloc(bytes, *size + t->size);
		CHECK(bytes);
		memcpy(bytes + *size, t->data, t->size);
		*size += t->size;
		beton_loader_release(l, b);
	}
	CHECK(by_callback || has_mode(m));
	beton_loader_close(l);
	fesetenv(FE_DFL_ENV);
	return bytes;
}

static void check_chain(const char *chain)
{
	const struct mode normal = { "default", FE_TONEAREST, false };
	size_t want_size, size;
	uint8_t *want = load(chain, &normal, false, &want_size);

	for (size_t i = 0; i < 2 * ARRAY_LEN(modes); i++) {
		const struct mode *m = &modes[i / 2];
		uint8_t *got = load(chain, m, i % 2, &size);

		if (size != want_size || memcmp(got, want, size) != 0) {
			fprintf(stderr, "%s: %s%s\n", chain, m->name,
				i % 2 ? ", by the callback" : "");
			CHECK(!"the same bytes");
		}
		free(got);
	}
	free(want);
}

static void batches_do_not_depend_on_it(void)
{
	for (size_t i = 0; i < ARRAY_LEN(chains); i++) {
		setenv("BETON_JIT", "off", 1);
		check_chain(chains[i]);
		setenv("BETON_JIT", "wait", 1);
		check_chain(chains[i]);
	}
}

static void own_operations_do_not_depend_on_it(void)
{
	struct compiler c;
	FILE *f;

	if (compiler_find(&c)) {
		printf("skip: no compiler\n");
		return;
	}
	f = fopen("own.c", "w");
	CHECK(f && fputs(own, f) >= 0 && !fclose(f));
	check_chain("center_crop(9) | float | \"own.c\".f");
}

static void encoded_images_do_not_depend_on_it(void)
{
	static uint8_t pixels[3 * W * H];
	const struct beton_writer_recipe recipe = { .mode = BETON_MODE_RAW,
						    .max_resolution = 17 };
	const struct beton_writer_image image = { pixels, W, H };
	struct beton_writer_value want, got;

	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)(i * 2654435761U >> 24);
	CHECK(!beton_writer_encode(&recipe, &image, &want));
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		set_mode(&modes[i]);
		CHECK(!beton_writer_encode(&recipe, &image, &got));
		CHECK(has_mode(&modes[i]));
		CHECK(got.size == want.size &&
		      !memcmp(got.bytes, want.bytes, got.size));
		free((void *)got.bytes);
	}
	fesetenv(FE_DFL_ENV);
	free((void *)want.bytes);
}

int main(void)
{
	char command[64];

	CHECK(mkdtemp(dir) && !chdir(dir));
	setenv("BETON_CACHE_DIR", dir, 1);
	threads_have_the_default_mode();
	batches_do_not_depend_on_it();
	own_operations_do_not_depend_on_it();
	encoded_images_do_not_depend_on_it();
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	CHECK(!system(command));
	return 0;
}
