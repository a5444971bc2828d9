/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/custom_field.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum {
	/* Larger fields make the layout ambiguous; those of FFCV have 8 to 16.
	 */
	CUSTOM_SIZE_MAX = 64,
	/* Entries to compare: enough for samples 0 and 1 of any writer. */
	ENTRIES_MAX = 64,
	/* Bytes that contain the first records of most files. */
	FIRST_RECORDS = 8 << 10,
};

struct custom_field_evidence {
	uint8_t entries[ENTRIES_MAX * FORMAT_ENTRY_SIZE];
	size_t n;
};

static int read_evidence(struct source *source, const struct format *f,
			 struct custom_field_evidence *e)
{
	uint64_t n = (f->file_size - f->table_off) / FORMAT_ENTRY_SIZE;

	e->n = (size_t)min_u64(n, ENTRIES_MAX);
	return source_read(source, e->entries, e->n * FORMAT_ENTRY_SIZE,
			   f->table_off);
}

/* Returns whether a record contains the offset of an entry, at any byte. */
static bool holds_pointer(const uint8_t *record, uint64_t itemsize,
			  uint64_t off)
{
	for (uint64_t at = 0; at + 8 <= itemsize; at++) {
		if (load64(record + at) == off)
			return true;
	}
	return false;
}

/* Returns the place of the record that belongs to an entry; no bytes if there is
   none. */
static struct source_range record_of(const struct format *f,
				     const struct custom_field_evidence *e,
				     size_t i)
{
	struct format_entry entry =
		format_entry_parse(e->entries + i * FORMAT_ENTRY_SIZE);

	if (!entry.size || entry.sample >= f->samples)
		return (struct source_range){ 0 };
	return (struct source_range){
		f->meta_off + entry.sample * f->itemsize,
		f->itemsize,
	};
}

static void prefetch_records(struct source *source, const struct format *f,
			     const struct custom_field_evidence *e,
			     size_t first, size_t end)
{
	struct source_range r;

	for (size_t i = first; i < end; i++) {
		r = record_of(f, e, i);
		source_prefetch(source, r.off, r.size);
	}
}

static bool explains(struct source *source, const struct format *f,
		     const struct custom_field_evidence *e)
{
	cleanup_free uint8_t *record = malloc(f->itemsize + 1);
	bool asked = false;

	for (size_t i = 0; i < e->n && record; i++) {
		struct format_entry entry =
			format_entry_parse(e->entries + i * FORMAT_ENTRY_SIZE);

		if (!entry.size)
			continue;
		if (entry.sample >= f->samples ||
		    source_read(source, record, f->itemsize,
				f->meta_off + entry.sample * f->itemsize) ||
		    !holds_pointer(record, f->itemsize, entry.off))
			return false;
		/* Most layouts fail at their first record. */
		if (!asked)
			prefetch_records(source, f, e, i + 1, e->n);
		asked = true;
	}
	return record != NULL;
}

/* A hash of record size and field offsets: equal for equal layouts. */
static uint64_t places_of(const struct format *f)
{
	uint64_t sum = f->itemsize;

	for (uint32_t i = 0; i < f->num_fields; i++)
		sum = sum * 1000003 + f->fields[i].meta_off;
	return sum;
}

static void mark_unusable(struct format *f, const char *reason)
{
	f->itemsize = 0;
	for (uint32_t i = 0; i < f->num_fields; i++)
		f->fields[i].unusable = reason;
}

struct candidate {
	uint32_t size;
	uint32_t align;
	uint64_t places;
	unsigned found; /* layouts that differ */
};

static void try_layout(struct source *source, struct format *f,
		       const struct custom_field_evidence *e,
		       struct candidate *best, struct candidate c)
{
	char why[FORMAT_WHY_SIZE];

	if (format_lay_out(f, c.size, c.align, why) || !explains(source, f, e))
		return;
	c.places = places_of(f);
	c.found = best->found;
	/* If sizes differ only by padding, the last of them is the largest. */
	if (!best->found || best->places != c.places)
		c.found++;
	*best = c;
}

/* Requests the first record that each layout has to explain: they may be
   anywhere in the metadata. */
static void prefetch_layouts(struct source *source, struct format *f,
			     const struct custom_field_evidence *e)
{
	char why[FORMAT_WHY_SIZE];
	size_t first = 0;

	while (first < e->n && !record_of(f, e, first).size)
		first++;
	for (uint32_t align = 1; align <= 8; align *= 2) {
		for (uint32_t size = align; size <= CUSTOM_SIZE_MAX;
		     size += align) {
			if (!format_lay_out(f, size, align, why))
				prefetch_records(source, f, e, first,
						 min_u64(first + 1, e->n));
		}
	}
}

void custom_prefetch(struct source *source, const struct format *f)
{
	source_prefetch(source, f->table_off, ENTRIES_MAX * FORMAT_ENTRY_SIZE);
	source_prefetch(source, f->meta_off, FIRST_RECORDS);
}

int custom_infer(struct source *source, struct format *f, struct log *log)
{
	struct candidate best = { .found = 0 };
	struct custom_field_evidence e;
	char why[FORMAT_WHY_SIZE];
	int r = read_evidence(source, f, &e);

	if (!r && source_prefetches(source))
		prefetch_layouts(source, f, &e);
	for (uint32_t align = 1; align <= 8 && !r; align *= 2) {
		for (uint32_t size = align; size <= CUSTOM_SIZE_MAX;
		     size += align)
			try_layout(source, f, &e, &best,
				   (struct candidate){ size, align, 0, 0 });
	}
	if (r || best.found == 1)
		return r ? r : format_lay_out(f, best.size, best.align, why);
	format_lay_out(f, 0, 1, why);
	mark_unusable(f, best.found ? "the size of a custom field is ambiguous"
				    : "the size of a custom field is unknown");
	log_warning(log, "%s: cannot read any sample: %s", source->path,
		    f->fields[0].unusable);
	return 0;
}
