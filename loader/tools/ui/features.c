/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/features.h"

#include <stdlib.h>
#include <string.h>

/* jconfig.h has the version as a bare word. */
#include <jconfig.h>
#include <lz4.h>

#include "beton/beton.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/library.h"
#include "loader/run/jit/compiler.h"
#include "loader/run/jit/isa.h"

#define TEXT(x) #x
#define TEXT_OF(macro) TEXT(macro)

struct feature {
	const char *name;
	void (*print)(FILE *out);
};

static void print_jpeg(FILE *out)
{
#ifdef LIBJPEG_TURBO_VERSION
	fputs(TEXT_OF(LIBJPEG_TURBO_VERSION), out);
#else
	fputs("no: another libjpeg", out);
#endif
}

static void print_lz4(FILE *out)
{
	fputs(LZ4_versionString(), out);
}

static void print_instructions(FILE *out)
{
	const struct isa *isa = isa_best();

	fputs(isa->name, out);
	for (size_t i = 0; isa->flags[i]; i++)
		fprintf(out, "%s%s", i ? ", " : " with ",
			isa->flags[i] + strlen("-m"));
}

static void print_compiler(FILE *out)
{
	struct compiler compiler;

	fputs(compiler_find(&compiler) ? "not found" : compiler.path, out);
}

/* The driver's library, as loader/run/gpu/cuda.c opens it. */
static void print_cuda(FILE *out)
{
	const char *own = secure_getenv("BETON_CUDA_LIBRARY");
	void *library = library_open(own && *own ? own : "libcuda.so.1", false);

	fputs(library ? "driver found" : "no driver found", out);
	if (library)
		library_close(library);
}

static const struct feature features[] = {
	{ "instruction set", print_instructions },
	{ "compiler for pipelines", print_compiler },
	{ "cuda", print_cuda },
	{ "libjpeg-turbo", print_jpeg },
	{ "lz4", print_lz4 },
};

void features_print(const char *program, FILE *out)
{
	fprintf(out, "%s %s\n", program, beton_version());
	for (size_t i = 0; i < ARRAY_LEN(features); i++) {
		fprintf(out, "  %s: ", features[i].name);
		features[i].print(out);
		fputc('\n', out);
	}
}
