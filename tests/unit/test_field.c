/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/npy.h"
#include "fs/data/dataset/field.h"
#include "tests/unit/t.h"

static void every_type_is_found_by_number_and_by_name(void)
{
	static const struct {
		unsigned id;
		const char *name;
		uint32_t size, align;
		enum field_column column;
	} table[] = {
		{ 0, "float", 8, 8, COLUMN_SCALAR },
		{ 1, "int", 8, 8, COLUMN_SCALAR },
		{ 2, "rgb_image", 13, 1, COLUMN_IMAGE },
		{ 3, "bytes", 16, 1, COLUMN_RAGGED },
		{ 4, "ndarray", 8, 8, COLUMN_ARRAY },
		{ 5, "json", 16, 1, COLUMN_RAGGED },
		{ 6, "torch_tensor", 8, 8, COLUMN_ARRAY },
		{ 255, "custom", 0, 1, COLUMN_RECORD },
	};
	const struct field_type *t;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		t = field_type_by_id(table[i].id);
		CHECK(t && t == field_type_by_name(table[i].name));
		CHECK(t->meta_size == table[i].size);
		CHECK(t->meta_align == table[i].align);
		CHECK(t->column == table[i].column);
		CHECK(field_column(table[i].id) == table[i].column);
		CHECK((t->column == COLUMN_SCALAR) == (t->dtype != NULL));
		CHECK((t->integer || t->real) == (t->dtype != NULL));
		CHECK(!t->integer || !t->real);
		CHECK(t->words && t->words[0] && t->extension);
		CHECK(!t->dtype || t->meta_size == field_dtype_size(t->dtype));
		CHECK((t->column == COLUMN_RECORD) == !t->meta_size);
	}
	for (unsigned id = 7; id < 255; id++)
		CHECK(!field_type_by_id(id) &&
		      field_column(id) == COLUMN_RECORD);
	CHECK(!field_type_by_name("") && !field_type_by_name("image"));
}

static void columns_report_where_values_lie(void)
{
	static const struct {
		unsigned id;
		bool scalar, array, image, payload;
	} table[] = {
		{ BETON_TYPE_INT, true, false, false, false },
		{ BETON_TYPE_IMAGE, false, false, true, true },
		{ BETON_TYPE_JSON, false, false, false, true },
		{ BETON_TYPE_TENSOR, false, true, false, true },
		{ BETON_TYPE_CUSTOM, false, false, false, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct field f = { .type = field_type_by_id(table[i].id) };

		CHECK(field_is_scalar(&f) == table[i].scalar);
		CHECK(field_is_array(&f) == table[i].array);
		CHECK(field_is_image(&f) == table[i].image);
		CHECK(field_has_payload(&f) == table[i].payload);
	}
}

static void sizes_of_numpy_types_are_known(void)
{
	static const struct {
		const char *dtype;
		uint64_t size;
	} table[] = {
		{ "|b1", 1 },	    { "|u1", 1 },   { "|i1", 1 },
		{ "<i2", 2 },	    { "<u2", 2 },   { "<i4", 4 },
		{ "<u4", 4 },	    { "<i8", 8 },   { "<u8", 8 },
		{ "<f2", 2 },	    { "<f4", 4 },   { "<f8", 8 },
		{ "<c8", 8 },	    { "<c16", 16 }, { ">f4", 4 },
		{ "|S5", 5 },	    { "<U3", 12 },  { "<M8[s]", 8 },
		{ "<m8[ns]", 8 },   { "<M8", 8 },   { "|V7", 7 },
		{ "=f8", 8 },	    { "<f16", 16 }, { "<c32", 32 },
		{ ">M8[25us]", 8 },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		CHECK(field_dtype_size(table[i].dtype) == table[i].size);
}

static void other_than_numpy_types_have_no_size(void)
{
	static const char *const table[] = {
		"",	"<",	   "f4",   "<f",     "<f0",	   "<f3",
		"<f4 ", " <f4",	   "<f-4", "<f4x",   "<i16",	   "<u3",
		"|b2",	"<x4",	   "|O8",  "<M4[s]", "<M8[s",	   "<M8s]",
		"<M8[", "<f4[s]",  "<S",   "|S0",    "<U99999999", "<f4,",
		"!f4",	"<M8[s]x", "<c4",
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		CHECK(field_dtype_size(table[i]) == 0);
}

/* --- arguments of arrays --- */

static struct field field;
static const char *why;

static int parse(const char *text, const uint64_t *shape, size_t ndim)
{
	uint8_t args[1024] = { 0 };

	for (size_t i = 0; i < ndim; i++)
		store64(args + 8 * i, shape[i]);
	store64(args + 256, strlen(text));
	memcpy(args + 264, text, strlen(text));
	memset(&field, 0, sizeof(field));
	why = NULL;
	return field_parse_arguments(&field, args, &why);
}

static void shapes_end_before_their_trailing_zeros(void)
{
	CHECK(!parse("[[\"\", \"<f4\"]]", (uint64_t[]){ 2, 3 }, 2));
	CHECK(field.ndim == 2 && field.shape[0] == 2 && field.shape[1] == 3);
	CHECK(!strcmp(field.dtype, "<f4") && field.array_size == 24);
	CHECK(!parse("[[\"\", \"|u1\"]]", NULL, 0));
	CHECK(field.ndim == 0 && field.array_size == 1);
	/* A zero inside is a dimension. */
	CHECK(!parse("[[\"\", \"|u1\"]]", (uint64_t[]){ 0, 3 }, 2));
	CHECK(field.ndim == 2 && field.array_size == 0);
}

static void thirty_two_dimensions_are_possible(void)
{
	uint64_t ones[32];

	for (size_t i = 0; i < 32; i++)
		ones[i] = 1;
	CHECK(!parse("[[\"\", \"<c16\"]]", ones, 32));
	CHECK(field.ndim == 32 && field.array_size == 16);
}

static void json_may_have_spaces_where_json_may(void)
{
	CHECK(!parse("[[\"\",\"<i8\"]]", (uint64_t[]){ 1 }, 1));
	CHECK(!parse(" [ [ \"\" , \"<i8\" ] ]", (uint64_t[]){ 1 }, 1));
}

static void texts_that_name_no_plain_type_are_refused(void)
{
	static const char *const table[] = {
		"",
		"[",
		"[[]]",
		"<f4",
		"[[\"\", \"<f4\"]",
		"[[\"\", \"<f4\"]]]",
		"[[\"\", \"<f4\"]] x",
		"[[\"x\", \"<f4\"]]",
		"[[\"\", \"<f4\"], [\"\", \"<f4\"]]",
		"[[\"\", \"<f4\", [2]]]",
		"[[\"\", \"<q4\"]]",
		"[[\"\", \"|O\"]]",
		"[[\"\", \"<f4<f4<f4<f4<f4<f4\"]]",
		"[[\"\", [[\"\", \"<f4\"]]]]",
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		CHECK(parse(table[i], (uint64_t[]){ 1 }, 1) ==
			      -BETON_ECORRUPT &&
		      why);
}

static void sizes_that_wrap_are_refused(void)
{
	const uint64_t half = (uint64_t)1 << 32;

	CHECK(parse("[[\"\", \"|u1\"]]", (uint64_t[]){ half, half }, 2) ==
	      -BETON_ECORRUPT);
	CHECK(parse("[[\"\", \"<f8\"]]", (uint64_t[]){ half << 29 }, 1) ==
	      -BETON_ECORRUPT);
	CHECK(!parse("[[\"\", \"|u1\"]]", (uint64_t[]){ UINT64_MAX }, 1));
	CHECK(field.array_size == UINT64_MAX);
}

static void a_text_longer_than_its_place_is_refused(void)
{
	uint8_t args[1024] = { 0 };

	memset(args + 264, ' ', 760);
	store64(args + 256, 761);
	CHECK(field_parse_arguments(&field, args, &why) == -BETON_ECORRUPT);
	store64(args + 256, UINT64_MAX);
	CHECK(field_parse_arguments(&field, args, &why) == -BETON_ECORRUPT);
	store64(args + 256, 760);
	CHECK(field_parse_arguments(&field, args, &why) == -BETON_ECORRUPT);
}

/* --- metadata --- */

static int view(unsigned type, const uint8_t *meta, struct value *out)
{
	struct field f = { .type = field_type_by_id(type), .array_size = 24 };

	why = NULL;
	return f.type->view(&f, meta, out, &why);
}

static void scalars_have_their_number(void)
{
	const struct field i = { .type = field_type_by_id(BETON_TYPE_INT) };
	const struct field f = { .type = field_type_by_id(BETON_TYPE_FLOAT) };
	const double half = -0.5;
	uint8_t meta[8];

	store64(meta, (uint64_t)INT64_MIN);
	CHECK(field_is_integer(&i) && i.type->integer(meta) == INT64_MIN);
	CHECK(field_number(&i, meta) == -9223372036854775808.0);
	memcpy(meta, &half, sizeof(meta));
	CHECK(!field_is_integer(&f) && f.type->real(meta) == half);
	CHECK(field_number(&f, meta) == half);
}

static void image_metadata_is_packed(void)
{
	static const uint8_t meta[13] = { 1, 0x2c, 1, 0xc8, 0, 1, 2 };
	struct value v;

	CHECK(!view(BETON_TYPE_IMAGE, meta, &v));
	CHECK(v.mode == BETON_MODE_RAW && v.width == 300 && v.height == 200);
	CHECK(v.off == 0x201 && v.size == 300 * 200 * 3);
}

static void the_largest_raw_image_does_not_wrap(void)
{
	static const uint8_t meta[13] = { 1, 255, 255, 255, 255 };
	struct value v;

	CHECK(!view(BETON_TYPE_IMAGE, meta, &v));
	CHECK(v.size == (uint64_t)65535 * 65535 * 3);
}

static void images_without_sense_are_damaged(void)
{
	static const uint8_t mode[13] = { 2, 1, 0, 1, 0 };
	static const uint8_t width[13] = { 0, 0, 0, 1, 0 };
	static const uint8_t height[13] = { 0, 1, 0, 0, 0 };
	struct value v;

	CHECK(view(BETON_TYPE_IMAGE, mode, &v) == -BETON_ECORRUPT && why);
	CHECK(view(BETON_TYPE_IMAGE, width, &v) == -BETON_ECORRUPT && why);
	CHECK(view(BETON_TYPE_IMAGE, height, &v) == -BETON_ECORRUPT && why);
}

static void json_loses_its_nul(void)
{
	uint8_t meta[16] = { 9 };
	struct value v;

	meta[8] = 3;
	CHECK(!view(BETON_TYPE_JSON, meta, &v) && v.off == 9 && v.size == 2);
	CHECK(!view(BETON_TYPE_BYTES, meta, &v) && v.size == 3);
	meta[8] = 0;
	CHECK(!view(BETON_TYPE_JSON, meta, &v) && v.size == 0);
	memset(meta + 8, 255, 8);
	CHECK(view(BETON_TYPE_JSON, meta, &v) == -BETON_ECORRUPT && why);
	CHECK(view(BETON_TYPE_BYTES, meta, &v) == -BETON_ECORRUPT && why);
}

/* --- writing --- */

#define PLACE UINT64_C(0x123456789a)

/* The bytes that each type is written with, and the result of view(). */
static const struct written {
	unsigned type;
	struct writer_value value;
	struct value found;
} written[] = {
	{ BETON_TYPE_FLOAT, { .real = -0.5 }, { .size = 8 } },
	{ BETON_TYPE_INT, { .integer = INT64_MIN }, { .size = 8 } },
	{ BETON_TYPE_IMAGE,
	  { .bytes = "JPEG", .size = 4, .width = 300, .height = 65535 },
	  { .off = PLACE,
	    .size = VALUE_SIZE_IN_TABLE,
	    .width = 300,
	    .height = 65535 } },
	{ BETON_TYPE_IMAGE,
	  { .bytes = "RGBrgb",
	    .size = 6,
	    .mode = BETON_MODE_RAW,
	    .width = 2,
	    .height = 1 },
	  { .off = PLACE,
	    .size = 6,
	    .mode = BETON_MODE_RAW,
	    .width = 2,
	    .height = 1 } },
	{ BETON_TYPE_BYTES,
	  { .bytes = "a\0b", .size = 3 },
	  { .off = PLACE, .size = 3 } },
	{ BETON_TYPE_BYTES, { .size = 0 }, { .off = PLACE, .size = 0 } },
	{ BETON_TYPE_NDARRAY,
	  { .bytes = "012345678901234567890123", .size = 24 },
	  { .off = PLACE, .size = 24 } },
	{ BETON_TYPE_JSON,
	  { .bytes = "{}", .size = 2 },
	  { .off = PLACE, .size = 2 } },
	{ BETON_TYPE_JSON, { .size = 0 }, { .off = PLACE, .size = 0 } },
	{ BETON_TYPE_TENSOR,
	  { .bytes = "012345678901234567890123", .size = 24 },
	  { .off = PLACE, .size = 24 } },
};

static void round_trip(const struct written *w)
{
	struct field f = { .type = field_type_by_id(w->type),
			   .array_size = 24 };
	struct value v = { .off = 1 };
	uint8_t meta[18];

	CHECK(!f.type->check || !f.type->check(&f, &w->value));
	memset(meta, 0xa5, sizeof(meta));
	f.type->put(meta + 1, &w->value, PLACE,
		    w->value.size + f.type->ends_in_nul);
	CHECK(meta[0] == 0xa5 && meta[1 + f.type->meta_size] == 0xa5);
	CHECK(!f.type->view(&f, meta + 1, &v, &why));
	CHECK(v.off == w->found.off && v.size == w->found.size);
	CHECK(v.mode == w->found.mode);
	CHECK(v.width == w->found.width && v.height == w->found.height);
	if (field_has_payload(&f))
		CHECK(load64(meta + 1 + f.type->pointer_at) == PLACE);
	else if (f.type->real)
		CHECK(f.type->real(v.scalar) == w->value.real);
	else
		CHECK(f.type->integer(v.scalar) == w->value.integer);
}

static void every_type_reads_what_it_wrote(void)
{
	for (unsigned id = 0; id < 256; id++) {
		const struct field_type *t = field_type_by_id(id);
		unsigned n = 0;

		for (size_t i = 0; i < ARRAY_LEN(written); i++) {
			if (written[i].type != id)
				continue;
			round_trip(&written[i]);
			n++;
		}
		CHECK(!n == (!t || !t->put));
	}
	CHECK(!field_type_by_id(BETON_TYPE_CUSTOM)->put);
}

static void values_that_cannot_be_written_have_a_reason(void)
{
	static const struct {
		unsigned type;
		struct writer_value value;
		const char *wrong;
	} table[] = {
		{ BETON_TYPE_IMAGE,
		  { .size = 4, .mode = 2, .width = 1, .height = 1 },
		  "an unknown mode" },
		{ BETON_TYPE_IMAGE,
		  { .size = 4, .height = 1 },
		  "an image without pixels" },
		{ BETON_TYPE_IMAGE,
		  { .size = 4, .width = 1 },
		  "an image without pixels" },
		{ BETON_TYPE_IMAGE,
		  { .width = 1, .height = 1 },
		  "an image without pixels" },
		{ BETON_TYPE_IMAGE,
		  { .size = 2,
		    .mode = BETON_MODE_RAW,
		    .width = 1,
		    .height = 1 },
		  "raw pixels of wrong size" },
		{ BETON_TYPE_NDARRAY,
		  { .size = 23 },
		  "an array of wrong size" },
		{ BETON_TYPE_TENSOR, { .size = 25 }, "an array of wrong size" },
		{ BETON_TYPE_JSON,
		  { .bytes = "{\0}", .size = 3 },
		  "JSON with a NUL in it" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct field f = {
			.type = field_type_by_id(table[i].type),
			.array_size = 24,
		};

		CHECK(!strcmp(f.type->check(&f, &table[i].value),
			      table[i].wrong));
	}
}

/* --- texts --- */

static const char *text_of(unsigned type, const void *scalar)
{
	static char text[NPY_HEADER_MAX];
	struct field f = { .type = field_type_by_id(type) };
	struct value v = { .size = 8 };

	memcpy(v.scalar, scalar, 8);
	text[f.type->head(&f, &v, text)] = '\0';
	return text;
}

static void ints_print_whole(void)
{
	CHECK(!strcmp(text_of(1, &(int64_t){ 0 }), "0\n"));
	CHECK(!strcmp(text_of(1, &(int64_t){ -1 }), "-1\n"));
	CHECK(!strcmp(text_of(1, &(int64_t){ INT64_MIN }),
		      "-9223372036854775808\n"));
}

static void floats_read_back_as_themselves(void)
{
	static const double table[] = {
		0.0, -0.0, 0.1, 1.0 / 3, 1e308, 5e-324, -2.5, 1e22, 123456789,
	};
	double back;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		back = strtod(text_of(0, &table[i]), NULL);
		CHECK(!memcmp(&back, &table[i], sizeof(back)));
	}
	CHECK(!strcmp(text_of(0, &(double){ 0.1 }), "0.1\n"));
	CHECK(!strcmp(text_of(0, &(double){ 1.0 / 0.0 }), "inf\n"));
	CHECK(strstr(text_of(0, &(double){ 0.0 / 0.0 }), "nan\n"));
}

int main(void)
{
	every_type_is_found_by_number_and_by_name();
	columns_report_where_values_lie();
	sizes_of_numpy_types_are_known();
	other_than_numpy_types_have_no_size();
	shapes_end_before_their_trailing_zeros();
	thirty_two_dimensions_are_possible();
	json_may_have_spaces_where_json_may();
	texts_that_name_no_plain_type_are_refused();
	sizes_that_wrap_are_refused();
	a_text_longer_than_its_place_is_refused();
	scalars_have_their_number();
	image_metadata_is_packed();
	the_largest_raw_image_does_not_wrap();
	images_without_sense_are_damaged();
	json_loses_its_nul();
	every_type_reads_what_it_wrote();
	values_that_cannot_be_written_have_a_reason();
	ints_print_whole();
	floats_read_back_as_themselves();
	return 0;
}
