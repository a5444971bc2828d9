/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/pipeline/graph/edit.h"
#include "tests/unit/t.h"

static void check_text(int r, char *got, const char *want)
{
	if (r)
		fprintf(stderr, "%d for `%s'\n", r, want);
	CHECK(!r);
	if (strcmp(got, want) != 0)
		fprintf(stderr, "`%s', not `%s'\n", got, want);
	CHECK(!strcmp(got, want));
	free(got);
}

static void without(const char *text, size_t i, const char *want)
{
	char *got = NULL;
	int r = edit_without(text, i, &got);

	if (want)
		check_text(r, got, want);
	else
		CHECK(r == -ENOENT && !got);
}

static void leaving_operations_out(void)
{
	without("resize(8) | flip | chw", 0, "flip | chw");
	without("resize(8) | flip | chw", 1, "resize(8) | chw");
	without("resize(8)|flip|chw", 2, "resize(8)|flip");
	without("resize(8)", 0, NULL);
	without("resize(8)", 1, NULL);
	without("image | resize(8)", 0, "image");
	without("a = image | resize(8) | flip ; label | int32", 1,
		"a = image | resize(8) ; label | int32");
	without("a = image | resize(8) | flip ; label | int32", 2,
		"a = image | resize(8) | flip ; label");
	without("resize(8) | normalize(mean=\"1,2,3\",std=\"4,5,6\") | chw", 1,
		"resize(8) | chw");
	without("resize(8) | \"a | b;.c\".f(1) | flip\nlabel | int32", 1,
		"resize(8) | flip\nlabel | int32");
	without("resize(8) | \"a | b;.c\".f(1)\nlabel | int32", 1,
		"resize(8)\nlabel | int32");
	/* Comments may look like anything, and end like anything. */
	without("resize(8) | # chw;\n flip | # flip |\n chw", 1,
		"resize(8) | # chw;\n chw");
	without("resize(8) | # small;\n flip | chw", 0, "flip | chw");
	without("resize(8) | flip # a | b;", 1, "resize(8) # a | b;");
	without("resize(8) | flip( 0.5 ) # a;\n# b |\nlabel | int32", 1,
		"resize(8) # a;\n# b |\nlabel | int32");
}

static void naming_operations(void)
{
	static const char text[] =
		"image | resize( 8 ) | \"x.c\".f(1) ; label | int32";
	char *written, *name;

	CHECK(edit_num_ops(text) == 3);
	CHECK(edit_num_ops("resize(") == 0);
	CHECK(!edit_op(text, 0, &written, &name));
	CHECK(!strcmp(name, "resize"));
	free(name);
	check_text(0, written, "resize( 8 )");
	CHECK(!edit_op(text, 1, &written, &name));
	CHECK(!strcmp(name, "f"));
	free(name);
	check_text(0, written, "\"x.c\".f(1)");
	CHECK(edit_op(text, 3, &written, &name) == -ENOENT);
	CHECK(!edit_op("flip(0.5) # twice |\n", 0, &written, &name));
	free(name);
	check_text(0, written, "flip(0.5)");
	CHECK(edit_op("a |", 0, &written, &name) == -EINVAL);
	CHECK(edit_has(text, "int32") && !edit_has(text, "f"));
}

static void first(const char *text, const char *op, bool after,
		  const char *want)
{
	char *got = NULL;

	int r = edit_with_first(text, op, after, &got);

	check_text(r, got, want);
}

static void putting_operations_in(void)
{
	char *got = NULL;

	first("resize(8) | chw", "decode(draft)", false,
	      "decode(draft) | resize(8) | chw");
	first("decode(exact) | resize(8)", "decode(draft)", false,
	      "decode(draft) | resize(8)");
	first("decode(exact) | resize(8)", "cache(decoded, 1M)", true,
	      "decode(exact) | cache(decoded, 1M) | resize(8)");
	first("a = image | resize(8); image | flip | resize(9); label | int32",
	      "decode(draft)", false,
	      "a = image | decode(draft) | resize(8); image | decode(draft) | flip | resize(9); label | int32");
	CHECK(edit_with_first("flip | chw", "x", false, &got) == -ENOENT);
	CHECK(!edit_with_before("resize(8) | normalize(imagenet)", "cuda(0)",
				"normalize", &got));
	check_text(0, got, "resize(8) | cuda(0) | normalize(imagenet)");
	got = NULL;
	CHECK(edit_with_before("resize(8)", "cuda(0)", "normalize", &got) ==
	      -ENOENT);
}

int main(void)
{
	leaving_operations_out();
	naming_operations();
	putting_operations_in();
	return 0;
}
