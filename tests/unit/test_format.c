/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/format.h"
#include "tests/unit/t.h"

enum { PAGE = 4096, META = 24 + 1041 };

static char why[FORMAT_WHY_SIZE];

/* A header that one test or another makes wrong: one field, ten samples. */
struct header {
	uint16_t version, fields;
	uint32_t page;
	uint64_t samples, table;
};

static const struct header good = { 2, 1, PAGE, 10, 3 * PAGE };

static int parse(const struct header *h, uint64_t file_size, struct format *f)
{
	uint8_t bytes[FORMAT_HEADER_SIZE];

	store16(bytes, h->version);
	store16(bytes + 2, h->fields);
	store32(bytes + 4, h->page);
	store64(bytes + 8, h->samples);
	store64(bytes + 16, h->table);
	why[0] = '\0';
	return format_parse_header(f, file_size, bytes, why);
}

/* Header and one descriptor of `type`. */
static int parse_one(const struct header *h, uint64_t file_size, uint8_t type,
		     struct format *f)
{
	uint8_t d[FORMAT_DESCRIPTOR_SIZE] = { type, 'x' };
	int r = parse(h, file_size, f);

	if (!r)
		r = format_parse_fields(f, d, why);
	format_fini(f);
	return r;
}

static bool refused(struct header h, uint64_t file_size, const char *word)
{
	struct format f;
	int r = parse_one(&h, file_size, BETON_TYPE_BYTES, &f);

	return r == -BETON_ECORRUPT && strstr(why, word);
}

static void a_good_header_is_laid_out(void)
{
	struct format f;

	CHECK(!parse_one(&good, 3 * PAGE + 240, BETON_TYPE_BYTES, &f));
	CHECK(f.meta_off == META && f.itemsize == 16);
	CHECK(f.first_page == PAGE && f.table_entries == 10);
}

static void bytes_behind_the_last_entry_are_ignored(void)
{
	struct format f;

	CHECK(!parse_one(&good, 3 * PAGE + 263, BETON_TYPE_BYTES, &f));
	CHECK(f.table_entries == 10);
	CHECK(!parse_one(&good, 3 * PAGE, BETON_TYPE_BYTES, &f));
	CHECK(f.table_entries == 0);
}

static void other_versions_are_no_datasets(void)
{
	static const uint16_t versions[] = { 0, 1, 3, 512, 65535 };
	struct header h = good;
	struct format f;

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		h.version = versions[i];
		CHECK(parse(&h, 3 * PAGE, &f) == -BETON_ENOTBETON);
		CHECK(strstr(why, "version"));
	}
}

static void numbers_of_the_header_have_limits(void)
{
	struct header h = good;

	h.table = 0;
	CHECK(refused(h, 3 * PAGE, "unfinished"));
	h.table = 3 * PAGE + 1;
	CHECK(refused(h, 3 * PAGE, "cut off"));
	h.table = UINT64_MAX;
	CHECK(refused(h, 3 * PAGE, "cut off"));
	h.table = META - 1;
	CHECK(refused(h, 3 * PAGE, "inside the 1 field"));
	h = good;
	h.fields = 0;
	CHECK(refused(h, 3 * PAGE, "0 fields"));
	h.fields = FORMAT_FIELDS_MAX + 1;
	CHECK(refused(h, 3 * PAGE, "fields"));
	h = good;
	h.samples = FORMAT_SAMPLES_MAX + 1;
	CHECK(refused(h, 3 * PAGE, "samples"));
	h.samples = UINT64_MAX;
	CHECK(refused(h, 3 * PAGE, "samples"));
}

static void page_sizes_are_powers_of_two(void)
{
	static const uint32_t bad[] = { 0,   1,	       256,	   511,
					513, 3 * PAGE, UINT32_MAX, 0x80000001 };
	struct header h = good;
	struct format f;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		h.page = bad[i];
		CHECK(refused(h, 3 * PAGE, "page size"));
	}
	h.page = FORMAT_PAGE_SIZE_MIN;
	CHECK(!parse_one(&h, 3 * PAGE, BETON_TYPE_BYTES, &f));
}

static void the_largest_page_does_not_wrap(void)
{
	struct header h = good;
	struct format f;

	h.page = 0x80000000;
	h.table = (uint64_t)2 * h.page;
	CHECK(!parse_one(&h, h.table, BETON_TYPE_BYTES, &f));
	CHECK(f.first_page == h.page);
}

static void records_end_before_the_pages(void)
{
	struct header h = good;
	struct format f;

	/* 16 bytes each: the records end exactly at the table. */
	h.samples = 100;
	h.table = META + 1600;
	CHECK(!parse_one(&h, h.table, BETON_TYPE_BYTES, &f));
	CHECK(f.first_page == h.table);
	h.samples = 101;
	CHECK(refused(h, h.table, "past the allocation table"));
	h.samples = FORMAT_SAMPLES_MAX;
	CHECK(refused(h, h.table, "past the allocation table"));
}

static void pages_are_whole(void)
{
	struct header h = good;

	h.table = 3 * PAGE - 1;
	CHECK(refused(h, 3 * PAGE, "no whole pages"));
	h.table = META + 160 + 1;
	CHECK(refused(h, 3 * PAGE, "no whole pages"));
	h.table = 3 * PAGE + 512;
	CHECK(refused(h, 4 * PAGE, "no whole pages"));
}

static void unknown_types_and_odd_names_are_refused(void)
{
	uint8_t d[FORMAT_DESCRIPTOR_SIZE] = { 7, 'x' };
	struct format f;

	CHECK(!parse(&good, 3 * PAGE, &f));
	CHECK(format_parse_fields(&f, d, why) == -BETON_ECORRUPT);
	CHECK(strstr(why, "field 0") && strstr(why, "type 7"));
	format_fini(&f);
	d[0] = BETON_TYPE_INT;
	d[3] = 0x80;
	d[2] = 'y';
	CHECK(format_parse_fields(&f, d, why) == -BETON_ECORRUPT);
	CHECK(strstr(why, "not ASCII"));
	format_fini(&f);
	/* Behind the first NUL anything may stand. */
	d[2] = 0;
	CHECK(!format_parse_fields(&f, d, why));
	CHECK(!strcmp(f.fields[0].name, "x"));
	format_fini(&f);
}

static void a_name_of_sixteen_bytes_has_no_nul(void)
{
	uint8_t d[FORMAT_DESCRIPTOR_SIZE] = { BETON_TYPE_INT };
	struct format f;

	memcpy(d + 1, "sixteen_letters_", 16);
	CHECK(!parse(&good, 3 * PAGE, &f));
	CHECK(!format_parse_fields(&f, d, why));
	CHECK(!strcmp(f.fields[0].name, "sixteen_letters_"));
	format_fini(&f);
}

/* The layouts that are verified in FFCV itself. */
static void records_are_laid_out_as_numpy_aligns_them(void)
{
	static const struct {
		uint8_t n, types[8], offsets[8], itemsize;
	} table[] = {
		{ 1, { 2 }, { 0 }, 13 },
		{ 2, { 2, 1 }, { 0, 16 }, 24 },
		{ 4, { 1, 2, 3, 0 }, { 0, 8, 21, 40 }, 48 },
		{ 8,
		  { 1, 0, 2, 2, 3, 5, 4, 6 },
		  { 0, 8, 16, 29, 42, 58, 80, 88 },
		  96 },
		{ 2, { 3, 1 }, { 0, 16 }, 24 },
	};
	static const char text[] = "[[\"\", \"|u1\"]]";
	uint8_t d[8 * FORMAT_DESCRIPTOR_SIZE];
	struct header h = { .version = 2, .page = PAGE };
	struct format f;

	for (size_t t = 0; t < ARRAY_LEN(table); t++) {
		memset(d, 0, sizeof(d));
		h.fields = table[t].n;
		h.table = 24 + 1041 * table[t].n;
		for (size_t i = 0; i < table[t].n; i++) {
			uint8_t *args = d + 1041 * i + 17;

			d[1041 * i] = table[t].types[i];
			if (field_column(table[t].types[i]) != COLUMN_ARRAY)
				continue;
			store64(args + 256, sizeof(text) - 1);
			memcpy(args + 264, text, sizeof(text) - 1);
		}
		CHECK(!parse(&h, h.table, &f));
		CHECK(!format_parse_fields(&f, d, why));
		CHECK(f.itemsize == table[t].itemsize);
		for (size_t i = 0; i < table[t].n; i++)
			CHECK(f.fields[i].meta_off == table[t].offsets[i]);
		format_fini(&f);
	}
}

static void arrays_fit_into_a_page(void)
{
	static const char text[] = "[[\"\", \"|u1\"]]";
	uint8_t d[FORMAT_DESCRIPTOR_SIZE] = { BETON_TYPE_NDARRAY, 'x' };
	struct format f;

	store64(d + 17, PAGE);
	store64(d + 17 + 256, sizeof(text) - 1);
	memcpy(d + 17 + 264, text, sizeof(text) - 1);
	CHECK(!parse(&good, 3 * PAGE, &f));
	CHECK(!format_parse_fields(&f, d, why));
	format_fini(&f);
	store64(d + 17, PAGE + 1);
	CHECK(format_parse_fields(&f, d, why) == -BETON_ECORRUPT);
	CHECK(strstr(why, "arrays of 4097 bytes"));
	format_fini(&f);
}

static void values_lie_inside_one_page(void)
{
	struct format f;

	CHECK(!parse_one(&good, 3 * PAGE, BETON_TYPE_BYTES, &f));
	CHECK(format_is_value_range(&f, PAGE, PAGE));
	CHECK(format_is_value_range(&f, 3 * PAGE - 1, 1));
	CHECK(!format_is_value_range(&f, PAGE - 1, 1));
	CHECK(!format_is_value_range(&f, PAGE, PAGE + 1));
	CHECK(!format_is_value_range(&f, 2 * PAGE - 1, 2));
	CHECK(!format_is_value_range(&f, 3 * PAGE, 1));
	CHECK(!format_is_value_range(&f, UINT64_MAX, 1));
	CHECK(!format_is_value_range(&f, PAGE, UINT64_MAX));
	/* Nothing may be anywhere. */
	CHECK(format_is_value_range(&f, 0, 0));
	CHECK(format_is_value_range(&f, UINT64_MAX, 0));
}

enum { ANY = FORMAT_TABLE_ANY / FORMAT_ENTRY_SIZE };

/* A file with `entries`, and a field of `type` for each of 10^5 samples. */
static int parse_table(uint8_t type, uint64_t entries)
{
	const uint64_t table = (uint64_t)PAGE << 13;
	const struct header h = { 2, 1, PAGE, 100000, table };
	struct format f;

	return parse_one(&h, table + entries * FORMAT_ENTRY_SIZE, type, &f);
}

static void tables_have_an_entry_per_value_at_most(void)
{
	_Static_assert(100000 > ANY, "more than any file may have");
	CHECK(!parse_table(BETON_TYPE_BYTES, 100000));
	CHECK(parse_table(BETON_TYPE_BYTES, 100001) == -BETON_ECORRUPT);
	CHECK(strstr(why, "100001 entries") && strstr(why, "100000 samples"));
	CHECK(parse_table(BETON_TYPE_IMAGE, (uint64_t)1 << 40) ==
	      -BETON_ECORRUPT);
	/* A few that nothing refers to do no harm. */
	CHECK(!parse_table(BETON_TYPE_INT, ANY));
	CHECK(parse_table(BETON_TYPE_INT, ANY + 1) == -BETON_ECORRUPT);
}

/* The number of allocations of a custom field is unknown to us. */
static void custom_fields_may_have_many_entries(void)
{
	const uint64_t most = (uint64_t)100000 * FORMAT_CUSTOM_ENTRIES;

	CHECK(!parse_table(BETON_TYPE_CUSTOM, most));
	CHECK(parse_table(BETON_TYPE_CUSTOM, most + 1) == -BETON_ECORRUPT);
}

static void only_custom_fields_leave_the_layout_open(void)
{
	struct format f;

	CHECK(!parse_one(&good, 3 * PAGE, BETON_TYPE_CUSTOM, &f));
	CHECK(f.itemsize == 0);
}

static void count_fault(void *arg, enum format_rule rule, const char *reason)
{
	unsigned *found = arg;

	CHECK(*reason);
	*found |= 1u << rule;
}

static void every_fault_of_a_header_is_reported(void)
{
	unsigned found = 0;
	const struct format_faults faults = { count_fault, &found };
	uint8_t bytes[FORMAT_HEADER_SIZE],
		d[2 * FORMAT_DESCRIPTOR_SIZE] = { 7 };
	struct format f;

	store16(bytes, 2);
	store16(bytes + 2, 0);
	store32(bytes + 4, 3);
	store64(bytes + 8, UINT64_MAX);
	store64(bytes + 16, UINT64_MAX);
	CHECK(format_check_header(&f, PAGE, bytes, &faults) == -BETON_ECORRUPT);
	CHECK(found == (1u << FORMAT_RULE_FIELDS | 1u << FORMAT_RULE_PAGE_SIZE |
			1u << FORMAT_RULE_SAMPLES | 1u << FORMAT_RULE_WHOLE));
	found = 0;
	store16(bytes + 2, 2);
	store32(bytes + 4, PAGE);
	store64(bytes + 8, 10);
	store64(bytes + 16, 3 * PAGE);
	CHECK(!format_check_header(&f, 3 * PAGE, bytes, &faults) && !found);
	d[FORMAT_DESCRIPTOR_SIZE + 1] = 0xff;
	CHECK(format_check_fields(&f, d, &faults) == -BETON_ECORRUPT);
	CHECK(found == (1u << FORMAT_RULE_TYPE | 1u << FORMAT_RULE_NAME));
	format_fini(&f);
}

int main(void)
{
	every_fault_of_a_header_is_reported();
	a_good_header_is_laid_out();
	bytes_behind_the_last_entry_are_ignored();
	other_versions_are_no_datasets();
	numbers_of_the_header_have_limits();
	page_sizes_are_powers_of_two();
	the_largest_page_does_not_wrap();
	records_end_before_the_pages();
	pages_are_whole();
	unknown_types_and_odd_names_are_refused();
	a_name_of_sixteen_bytes_has_no_nul();
	records_are_laid_out_as_numpy_aligns_them();
	arrays_fit_into_a_page();
	values_lie_inside_one_page();
	tables_have_an_entry_per_value_at_most();
	custom_fields_may_have_many_entries();
	only_custom_fields_leave_the_layout_open();
	return 0;
}
