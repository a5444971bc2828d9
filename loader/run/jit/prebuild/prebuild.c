/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the kernels that become part of the library: those of the most common
 * pipelines, with any geometry before them and any numbers. The build runs this
 * program.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/pipeline/text/parse.h"
#include "loader/pipeline/text/schedule.h"
#include "loader/run/jit/emit.h"

static const char *const pipelines[] = {
	"image",
	"chw",
	"float",
	"float | chw",
	"half",
	"half | chw",
	"bfloat16",
	"bfloat16 | chw",
	"normalize(imagenet)",
	"normalize(imagenet) | chw",
	"normalize(imagenet) | half",
	"normalize(imagenet) | half | chw",
	"normalize(imagenet) | bfloat16",
	"normalize(imagenet) | bfloat16 | chw",
};

enum { COUNT = ARRAY_LEN(pipelines) };

static const struct pipeline_field image = {
	.name = "image",
	.stem = "image",
	.column = COLUMN_IMAGE,
	.usable = true,
	.dtype = "|u1",
	.width = 1,
	.height = 1,
};

static int build(const char *text, struct graph *out)
{
	char why[256];
	struct diagnostic c = { text, why, sizeof(why) };
	struct epochs epochs = { 0, UINT64_MAX };
	struct parse parse;
	int r = parse_text(&c, &parse);

	if (!r) {
		r = graph_build(&parse, &image, 1, &epochs, &c, out);
		parse_fini(&parse);
	}
	if (r)
		fprintf(stderr, "prebuild: %s\n", why);
	return r;
}

static int print_row(const struct chain *chain, const char *name)
{
	cleanup_free char *text = emit_chain(chain);
	uint64_t hash[2];

	if (!text)
		return 1;
	emit_hash(text, hash);
	printf("\t{ { 0x%016llx, 0x%016llx }, %s },\n",
	       (unsigned long long)hash[0], (unsigned long long)hash[1], name);
	return 0;
}

static int print_all(const struct chain *const *chains,
		     const char *const *names)
{
	cleanup_free char *text = emit_chains(chains, names, COUNT);
	int r = text ? 0 : 1;

	if (r)
		return r;
	printf("#include \"loader/run/jit/isa.h\"\n"
	       "#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n"
	       "#pragma GCC diagnostic ignored \"-Wunused-function\"\n\n");
	for (size_t i = 0; i < COUNT; i++)
		printf("static kernel_fn %s;\n", names[i]);
	printf("%s\nconst struct prebuilt ISA_NAME(prebuilt)[] = {\n", text);
	for (size_t i = 0; !r && i < COUNT; i++)
		r = print_row(chains[i], names[i]);
	printf("\t{ { 0, 0 }, 0 },\n};\n");
	return r;
}

int main(void)
{
	struct graph graphs[COUNT] = { 0 };
	const struct chain *chains[COUNT];
	char names[COUNT][24];
	const char *list[COUNT];
	int r = 0;

	for (size_t i = 0; !r && i < COUNT; i++) {
		r = build(pipelines[i], &graphs[i]);
		chains[i] = graphs[i].chains;
		snprintf(names[i], sizeof(names[i]), "prebuilt_%zu", i);
		list[i] = names[i];
	}
	if (!r)
		r = print_all(chains, list);
	for (size_t i = 0; i < COUNT; i++)
		graph_fini(&graphs[i]);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
