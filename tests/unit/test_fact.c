/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of facts: their walkers, and that every row of every report suits its
   value. */
#include <math.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/tools/doctor/facts.h"
#include "loader/tools/ui/fact.h"
#include "tests/unit/t.h"

/* From loader/tools/top/facts.h, which declares another `figure`. */
extern const struct fact top_row_facts[], top_delivery_facts[];
extern const struct fact top_value_facts[], top_disk_facts[], top_cache_facts[];

struct thing {
	double share, unlimited;
	int below;
	unsigned count;
	uint64_t bytes;
	bool yes, no;
	char name[16];
	const char *text, *none;
};

#define OF(member) FACT_AT(struct thing, member)
static const struct fact facts[] = {
	{ "name", OF(name), .text = "<%s>", .html = "<b>%s</b>" },
	{ "share", OF(share), .unit = FACT_PERCENT, .text = " %.1f %%",
	  .html = " %.0f %%" },
	{ "unlimited", OF(unlimited), .text = " %.0f" },
	{ "below", OF(below), .text = " %.0f" },
	{ "count", OF(count), .unit = FACT_BRIEF, .text = " %s",
	  .title = "COUNT", .width = 7 },
	{ "bytes", OF(bytes), .unit = FACT_BYTES, .text = " %s",
	  .known = offsetof(struct thing, yes), .whose = 1 },
	{ "hidden", OF(bytes), .unit = FACT_BYTES, .text = " %s",
	  .known = offsetof(struct thing, no), .whose = 2 },
	{ "yes", OF(yes), .text = " yes" },
	{ "no", OF(no), .text = " no", .title = "NO", .width = 3 },
	{ "text", OF(text), .html = "; %s" },
	{ "none", OF(none), .text = " %s", .html = "%s" },
	FACT_LAST,
};

static const struct thing thing = {
	.share = 0.125,
	.unlimited = INFINITY,
	.below = -3,
	.count = 4000000000,
	.bytes = 1536,
	.yes = true,
	.name = "a&b",
	.text = "\377",
};

static void check_json(unsigned whose, const char *want)
{
	json_t *o = fact_json(json_object(), facts, whose, &thing);
	cleanup_free char *text = json_dumps(o, JSON_COMPACT);

	CHECK(!strcmp(text, want));
	json_decref(o);
}

static void test_json(void)
{
	check_json(1, "{\"name\":\"a&b\",\"share\":0.125,\"unlimited\":null,"
		      "\"below\":-3,\"count\":4000000000,\"bytes\":1536,"
		      "\"yes\":true,\"no\":false,\"text\":null,\"none\":null}");
	check_json(2, "{\"name\":\"a&b\",\"share\":0.125,\"unlimited\":null,"
		      "\"below\":-3,\"count\":4000000000,\"hidden\":null,"
		      "\"yes\":true,\"no\":false,\"text\":null,\"none\":null}");
}

typedef void print_fn(FILE *out, const struct fact *facts, const void *thing);

static void check_print(print_fn *print, const char *want)
{
	cleanup_free char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	print(out, facts, &thing);
	CHECK(!fclose(out));
	CHECK(!strcmp(text, want));
}

static void print_titles(FILE *out, const struct fact *rows, const void *arg)
{
	(void)arg;
	fact_titles(out, rows);
}

static void test_people(void)
{
	char cell[32];

	check_print(fact_text, "<a&b> 12.5 % inf -3 4000M 1.5 KiB - yes");
	check_print(fact_html, "<b>a&amp;b</b> 12 %; \xef\xbf\xbd");
	check_print(print_titles, "   COUNT  NO\n");
	fact_cell(&facts[1], &thing, cell, sizeof(cell));
	CHECK(!strcmp(cell, " 12.5 %"));
	fact_cell(&facts[4], &thing, cell, sizeof(cell));
	CHECK(!strcmp(cell, "4000M"));
	fact_cell(&facts[6], &thing, cell, sizeof(cell));
	CHECK(!strcmp(cell, "-"));
}

/* The compiler does not see which value meets which format. */
static bool suits(const struct fact *f, const char *format)
{
	bool is_text = f->type == FACT_CHARS || f->type == FACT_TEXT ||
		       f->unit >= FACT_BRIEF;
	unsigned n = 0;

	for (; format && *format; format++) {
		if (*format != '%')
			continue;
		format += 1 + strspn(format + 1, "-.0123456789");
		if (*format == '%')
			continue;
		if (!strchr(is_text ? "s" : "fg", *format))
			return false;
		n++;
	}
	return !format || n == (f->type != FACT_BOOL);
}

static void test_every_row(void)
{
	static const struct fact *const tables[] = {
		facts_head,	    facts_cpu,	     facts_others,
		facts_memory,	    facts_disk,	     facts_watch,
		facts_machine_gpu,  facts_rank_seen, facts_figure,
		facts_stage_share,  facts_fix,	     top_row_facts,
		top_delivery_facts, top_value_facts, top_disk_facts,
		top_cache_facts,
	};

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		for (const struct fact *f = tables[i]; f->type != FACT_END; f++)
			CHECK(suits(f, f->text) && suits(f, f->html) &&
			      (!f->html ||
			       (f->unit < FACT_BRIEF && f->type != FACT_BOOL)));
	}
}

int main(void)
{
	test_json();
	test_people();
	test_every_row();
	return 0;
}
