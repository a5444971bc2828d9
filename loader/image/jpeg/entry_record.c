/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/entry_record.h"

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"

/* An entry: offset of the byte, bit, predictors. */
enum {
	BYTE_BITS = 25,
	BIT_BITS = 3,
	DC_AT = BYTE_BITS + BIT_BITS,
	/* Entries of a row. More of them skip little more, and take memory. */
	PER_ROW = 8,
	/* An index is not kept if its steps are shorter, since it would take much
	   memory, or longer by more than this: then reading it takes little
	   time. */
	COARSE = 4,
	HASHED_WORDS = 8,
};

_Static_assert(DC_AT + 3 * ENTRY_DC_BITS == 64, "an entry is a word");

static uint32_t step_without_index(const struct entry_scan *scan)
{
	return div_round_up(scan->mcus_across, PER_ROW);
}

/* Every entry of an index is kept: with fewer of them, later crops would read
   damage that the first one has skipped. */
static uint32_t step_of(const struct entry_scan *scan)
{
	return scan->index_step ? scan->index_step : step_without_index(scan);
}

size_t entry_record_size(const struct entry_scan *scan)
{
	uint32_t least = step_without_index(scan), step = step_of(scan);

	if (scan->size >= 1u << BYTE_BITS || step < least ||
	    step > COARSE * least)
		return 0;
	return sizeof(struct entry_record) +
	       entry_count(scan, step) * sizeof(uint64_t);
}

/* Words at equal distances, from the first to the last. */
static uint64_t hash_of(const struct entry_scan *scan)
{
	uint64_t words[HASHED_WORDS] = { 0 };
	size_t last = scan->size - min_u64(scan->size, sizeof(uint64_t));

	for (size_t i = 0; i < HASHED_WORDS; i++)
		memcpy(&words[i], scan->bytes + last * i / (HASHED_WORDS - 1),
		       min_u64(scan->size, sizeof(uint64_t)));
	return rng_key(words, HASHED_WORDS);
}

void entry_record_init(struct entry_record *record,
		       const struct entry_scan *scan)
{
	record->hash = hash_of(scan);
	record->size = (uint32_t)scan->size;
	record->mcus_across = scan->mcus_across;
	record->mcus_down = scan->mcus_down;
	record->step = step_of(scan);
	record->count = (uint32_t)entry_count(scan, record->step);
	atomic_init(&record->rows, 0);
	atomic_init(&record->is_taken, false);
	record->packed[0] = 0;
}

bool entry_record_is_of(const struct entry_record *record,
			const struct entry_scan *scan)
{
	return record->size == scan->size &&
	       record->mcus_across == scan->mcus_across &&
	       record->mcus_down == scan->mcus_down &&
	       record->hash == hash_of(scan);
}

uint32_t entry_record_rows(const struct entry_record *record)
{
	return atomic_load_explicit(&record->rows, memory_order_acquire);
}

bool entry_record_is_whole(const struct entry_record *record)
{
	return entry_record_rows(record) == record->mcus_down;
}

uint32_t entry_record_per_row(const struct entry_record *record)
{
	return div_round_up(record->mcus_across, record->step);
}

static int16_t unpack_dc(uint64_t v, int i)
{
	return (int16_t)((int64_t)(v
				   << (64 - DC_AT - (i + 1) * ENTRY_DC_BITS)) >>
			 (64 - ENTRY_DC_BITS));
}

struct entry entry_record_at(const struct entry_record *record, size_t i)
{
	uint64_t v = record->packed[i];

	return (struct entry){
		.byte = v & ((1u << BYTE_BITS) - 1),
		.bit = v >> BYTE_BITS & 7,
		.dc = { unpack_dc(v, 0), unpack_dc(v, 1), unpack_dc(v, 2) },
	};
}

bool entry_record_begin(struct entry_record *record, uint32_t rows)
{
	if (atomic_exchange_explicit(&record->is_taken, true,
				     memory_order_acquire))
		return false;
	if (entry_record_rows(record) == rows)
		return true;
	entry_record_end(record, entry_record_rows(record));
	return false;
}

void entry_record_put(struct entry_record *record, size_t i,
		      const struct entry *entry)
{
	uint64_t v = entry->byte | (uint64_t)entry->bit << BYTE_BITS;

	for (int k = 0; k < 3; k++)
		v |= ((uint64_t)entry->dc[k] & ((1 << ENTRY_DC_BITS) - 1))
		     << (DC_AT + k * ENTRY_DC_BITS);
	record->packed[i] = v;
}

void entry_record_end(struct entry_record *record, uint32_t rows)
{
	atomic_store_explicit(&record->rows, rows, memory_order_release);
	atomic_store_explicit(&record->is_taken, false, memory_order_release);
}

/* Whether the index is that of the record, and the record has room for all of its
   bits. */
static bool can_keep(const struct entry_record *record,
		     const struct entry_index *index)
{
	if (record->step != index->step || record->count != index->n)
		return false;
	for (uint32_t i = 0; i < index->n; i++)
		if (index->entries[i].byte >= 1u << BYTE_BITS)
			return false;
	return true;
}

void entry_record_fill(struct entry_record *record,
		       const struct entry_index *index)
{
	if (!can_keep(record, index) || !entry_record_begin(record, 0))
		return;
	for (uint32_t i = 0; i < record->count; i++)
		entry_record_put(record, i, &index->entries[i]);
	entry_record_end(record, record->mcus_down);
}
