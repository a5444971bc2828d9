/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/name.h"
#include "fs/base/util/rng.h"
#include "fs/data/dataset/field_names.h"
#include "fs/data/dataset/format.h"
#include "fs/mount/daemon/dataset_names.h"
#include "tests/unit/t.h"

static const char *stem_of(const char *name)
{
	static struct field f;

	memset(&f, 0, sizeof(f));
	f.type = field_type_by_id(BETON_TYPE_INT);
	strcpy(f.name, name);
	CHECK(!name_fields(&f, 1));
	return f.stem;
}

static void harmless_names_stay_as_they_are(void)
{
	static const char *const names[] = {
		"a", "label", "A-b_9", "x.y.z", "sixteen_letters_", "-",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK(!strcmp(stem_of(names[i]), names[i]));
}

static void other_bytes_are_escaped(void)
{
	static const char *const table[][2] = {
		{ "", "%" },
		{ "a b", "a%20b" },
		{ "a/b", "a%2Fb" },
		{ "..", "%2E%2E" },
		{ ".x", "%2Ex" },
		{ "x.", "x%2E" },
		{ "100%", "100%25" },
		{ "a~2", "a%7E2" },
		{ "\"'\n", "%22%27%0A" },
		{ "\x7f", "%7F" },
		{ "////////////////",
		  "%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		CHECK(!strcmp(stem_of(table[i][0]), table[i][1]));
}

static void a_quoted_text_is_one_line_and_comes_back(void)
{
	static const char *const table[][2] = {
		{ "", "" },
		{ "/a b,c=d%~\xc3\xa9\xff", "/a b,c=d%~\xc3\xa9\xff" },
		{ "x\npid=1\ny", "x\\012pid=1\\012y" },
		{ "\t\r\x7f\x1b", "\\011\\015\\177\\033" },
		{ "\\012", "\\134012" },
		{ "\\", "\\134" },
	};
	char *text = NULL;
	size_t size;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		FILE *out = open_memstream(&text, &size);

		CHECK(out);
		name_quote(out, table[i][0]);
		fclose(out);
		CHECK(!strcmp(text, table[i][1]));
		name_unquote(text);
		CHECK(!strcmp(text, table[i][0]));
		free(text);
	}
	/* Invalid escapes stay unchanged. */
	text = strdup("\\9\\01\\400\\");
	CHECK(text);
	name_unquote(text);
	CHECK(!strcmp(text, "\\9\\01\\400\\"));
	free(text);
}

struct named {
	unsigned type;
	const char *name;
	const char *stem;
};

static void check_stems(const struct named *table, size_t n)
{
	struct field fields[8];

	memset(fields, 0, sizeof(fields));
	for (size_t i = 0; i < n; i++) {
		fields[i].type = field_type_by_id(table[i].type);
		strcpy(fields[i].name, table[i].name);
	}
	CHECK(!name_fields(fields, n));
	for (size_t i = 0; i < n; i++)
		CHECK(!strcmp(fields[i].stem, table[i].stem));
}

static void duplicates_are_numbered(void)
{
	static const struct named table[] = {
		{ BETON_TYPE_INT, "x", "x" },
		{ BETON_TYPE_INT, "x", "x~2" },
		{ BETON_TYPE_FLOAT, "x", "x~3" },
		{ BETON_TYPE_INT, "", "%" },
		{ BETON_TYPE_INT, "", "%~2" },
		{ BETON_TYPE_INT, "X", "X" },
	};

	check_stems(table, ARRAY_LEN(table));
}

/* An int "a.jpg" has the file samples/000000/a.jpg, and so has image "a". */
static void files_of_different_fields_never_share_a_name(void)
{
	static const struct named table[] = {
		{ BETON_TYPE_IMAGE, "a", "a" },
		{ BETON_TYPE_INT, "a.jpg", "a.jpg~2" },
		{ BETON_TYPE_BYTES, "b", "b" },
		{ BETON_TYPE_INT, "b.bin", "b.bin~2" },
		{ BETON_TYPE_INT, "c", "c" },
		{ BETON_TYPE_NDARRAY, "c", "c~2" },
	};

	check_stems(table, ARRAY_LEN(table));
}

static const unsigned types[] = {
	BETON_TYPE_IMAGE,  BETON_TYPE_INT,     BETON_TYPE_FLOAT,
	BETON_TYPE_BYTES,  BETON_TYPE_NDARRAY, BETON_TYPE_JSON,
	BETON_TYPE_TENSOR,
};

static unsigned model_names(const struct field *f, char out[3][80])
{
	const char *extension =
		field_is_scalar(f) ? ".npy" : f->type->extension;

	strcpy(out[0], f->stem);
	sprintf(out[1], "%s%s", f->stem,
		field_is_image(f) ? ".jpg" : extension);
	sprintf(out[2], "%s.ppm", f->stem);
	return field_is_image(f) ? 3 : 2;
}

static bool model_collides(const struct field *a, const struct field *b)
{
	char x[3][80], y[3][80];
	unsigned nx = model_names(a, x), ny = model_names(b, y);

	for (unsigned i = 0; i < nx * ny; i++) {
		if (!strcmp(x[i / ny], y[i % ny]))
			return true;
	}
	return false;
}

static bool model_is_taken(const struct field *fields, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (model_collides(&fields[j], &fields[i]))
			return true;
	}
	return false;
}

/* The rule as it is written: the first number from 2 on by which no file has
   the name of an earlier field's. */
static void model_name(struct field *fields, size_t i)
{
	char plain[BETON_STEM_SIZE];

	name_escape(fields[i].name, plain);
	strcpy(fields[i].stem, plain);
	for (unsigned k = 2; model_is_taken(fields, i); k++)
		sprintf(fields[i].stem, "%.50s~%u", plain, k);
}

/* Names and types that collide in every way, in random order. */
static void stems_follow_the_rule(void)
{
	static const char *const names[] = {
		"",	 "a",	"a.jpg", "a.ppm",     "a.npy", "b",
		"b.bin", "a~2", "%",	 "a.jpg.jpg", "a/",    "A",
	};
	struct field got[40], want[40];

	for (uint64_t seed = 0; seed < 300; seed++) {
		memset(got, 0, sizeof(got));
		for (uint64_t i = 0; i < ARRAY_LEN(got); i++) {
			uint64_t draw = rng_mix(seed * ARRAY_LEN(got) + i);

			strcpy(got[i].name,
			       names[draw % (1 + seed % ARRAY_LEN(names))]);
			got[i].type = field_type_by_id(
				types[(draw >> 32) % ARRAY_LEN(types)]);
		}
		memcpy(want, got, sizeof(want));
		CHECK(!name_fields(got, ARRAY_LEN(got)));
		for (size_t i = 0; i < ARRAY_LEN(want); i++) {
			model_name(want, i);
			CHECK(!strcmp(got[i].stem, want[i].stem));
		}
	}
}

/* As many as a file may have, which took the better part of an hour once. */
static void many_duplicates_are_numbered_at_once(void)
{
	struct field *fields = calloc(FORMAT_FIELDS_MAX, sizeof(*fields));
	char want[BETON_STEM_SIZE + 16];

	CHECK(fields);
	for (unsigned i = 0; i < FORMAT_FIELDS_MAX; i++) {
		strcpy(fields[i].name, "////////////////");
		fields[i].type = field_type_by_id(types[i % ARRAY_LEN(types)]);
	}
	CHECK(!name_fields(fields, FORMAT_FIELDS_MAX));
	for (unsigned i = 1; i < FORMAT_FIELDS_MAX; i++) {
		snprintf(want, sizeof(want), "%s~%u", fields[0].stem, i + 1);
		CHECK(!strcmp(fields[i].stem, want));
	}
	free(fields);
}

/* The longest file-name form and the longest suffix fit. */
static void sixty_five_thousand_duplicates_would_fit(void)
{
	CHECK(3 * 16 + sizeof("~65535") <= BETON_STEM_SIZE);
}

static void datasets_have_the_names_of_their_files(void)
{
	static const char *const table[][2] = {
		{ "train.beton", "train" },
		{ "/a.beton/val.set.beton", "val.set" },
		{ "b/train.beton", "train~2" },
		{ "train", "train~3" },
		{ "train~2.beton", "train~2~2" },
		{ ".beton", ".beton" },
		{ ".betonfs.beton", ".betonfs~2" },
		{ "..beton", ".~2" },
		{ "...beton", "..~2" },
		{ "dir/", "~2" },
	};
	const char *paths[ARRAY_LEN(table)];
	char names[ARRAY_LEN(table)][NAME_DIRECTORY_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		paths[i] = table[i][0];
	name_datasets(paths, ARRAY_LEN(table), names);
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		CHECK(!strcmp(names[i], table[i][1]));
}

static void patterns_have_the_names_that_their_files_begin_with(void)
{
	static const char *const table[][2] = {
		{ "train-*.beton", "train" },
		{ "/data/train_[0-9].beton", "train" },
		{ "/data/{train,val}/part.beton", "part.beton" },
		{ "/data/*/part.beton", "part.beton" },
		{ "{/a/train-0.beton,/b/train-1.beton}", "dataset" },
		{ "/data/*.beton", "dataset" },
		{ "?", "dataset" },
	};
	char name[NAME_DIRECTORY_SIZE], text[400];

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		name_pattern(table[i][0], name);
		CHECK(!strcmp(name, table[i][1]));
	}
	memset(text, 'x', sizeof(text));
	memcpy(text + sizeof(text) - 2, "*", 2);
	name_pattern(text, name);
	CHECK(strlen(name) < sizeof(name));
}

static void names_of_any_length_fit(void)
{
	char path[400];
	const char *paths[] = { path, path };
	char names[2][NAME_DIRECTORY_SIZE];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	name_datasets(paths, 2, names);
	CHECK(strcmp(names[0], names[1]));
	CHECK(strlen(names[1]) < NAME_DIRECTORY_SIZE);
}

static void numbers_have_six_digits_or_more(void)
{
	char text[NAME_DIGITS_MAX + 1];

	CHECK(name_digits(0) == 6 && name_digits(1) == 6);
	CHECK(name_digits(1000000) == 6 && name_digits(1000001) == 7);
	CHECK(name_digits(UINT64_MAX) == 20);
	CHECK(name_number(text, 42, 6) == 6 && !strcmp(text, "000042"));
	CHECK(name_number(text, UINT64_MAX, 20) == 20);
	CHECK(!strcmp(text, "18446744073709551615"));
}

static bool reads(const char *name, uint64_t n, uint64_t want,
		  const char *want_rest)
{
	const char *rest = "";
	uint64_t v = 0;

	return name_parse_number(name, n, &v, &rest) && v == want &&
	       !strcmp(rest, want_rest);
}

static void numbers_are_read_in_their_one_spelling(void)
{
	static const char *const bad[] = {
		"",	  "1",	    "00001",  "000010", "-00001", "+00001",
		" 00001", "00000x", "0x0001", "999999", "00000 ", "000.01",
	};
	uint64_t v;
	const char *rest;

	CHECK(reads("000000", 10, 0, ""));
	CHECK(reads("000009", 10, 9, ""));
	CHECK(reads("000003.jpg", 10, 3, ".jpg"));
	CHECK(reads("0000031", 10, 3, "1"));
	CHECK(reads("1000000", 1000001, 1000000, ""));
	CHECK(reads("18446744073709551614", UINT64_MAX, UINT64_MAX - 1, ""));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!name_parse_number(bad[i], 10, &v, &rest));
	CHECK(!name_parse_number("000000", 0, &v, &rest));
	CHECK(!name_parse_number("18446744073709551616", UINT64_MAX, &v,
				 &rest));
}

static bool is_u64(const char *text, uint64_t want)
{
	uint64_t v = 0;

	return name_parse_u64(text, strlen(text), &v) && v == want;
}

static void plain_numbers_have_no_sign_and_no_leading_zero(void)
{
	static const char *const bad[] = {
		"",
		"00",
		"01",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1e3",
		"0x1",
		"1.",
		"18446744073709551616",
		"99999999999999999999999",
	};
	uint64_t v;

	CHECK(is_u64("0", 0) && is_u64("7", 7) && is_u64("10", 10));
	CHECK(is_u64("18446744073709551615", UINT64_MAX));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!name_parse_u64(bad[i], strlen(bad[i]), &v));
	CHECK(name_parse_u64("123,4", 3, &v) && v == 123);
}

int main(void)
{
	harmless_names_stay_as_they_are();
	other_bytes_are_escaped();
	a_quoted_text_is_one_line_and_comes_back();
	duplicates_are_numbered();
	files_of_different_fields_never_share_a_name();
	stems_follow_the_rule();
	many_duplicates_are_numbered_at_once();
	sixty_five_thousand_duplicates_would_fit();
	datasets_have_the_names_of_their_files();
	patterns_have_the_names_that_their_files_begin_with();
	names_of_any_length_fit();
	numbers_have_six_digits_or_more();
	numbers_are_read_in_their_one_spelling();
	plain_numbers_have_no_sign_and_no_leading_zero();
	return 0;
}
