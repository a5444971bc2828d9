/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>

#include "fs/slot.h"
#include "tests/unit/made.h"

enum { BATCHES = 3, SAMPLES = 4 * BATCHES };

/* Room for one slot, and readers who wait for it. */
struct fixture {
	struct dataset *ds;
	struct spec spec;
	struct batch *batches[BATCHES];
	struct slots *slots;
	atomic_uint assembled;
};

static int assemble(void *arg, const struct batch *batch, void *buf,
		    uint64_t *marks)
{
	struct fixture *f = arg;
	bool failed;

	atomic_fetch_add(&f->assembled, 1);
	*marks = batch->key.number;
	return batch_assemble(batch, buf, &failed);
}

static void set_up(struct fixture *f)
{
	const struct slots_options options = {
		.limit = 2 << 20,
		.is_hard = true,
		.assemble = assemble,
		.arg = f,
	};

	f->ds = made_open(SAMPLES, NULL);
	f->spec = (struct spec){ .batch = 4, .end = SAMPLES };
	atomic_init(&f->assembled, 0);
	for (uint64_t i = 0; i < BATCHES; i++) {
		const struct batch_key key = { f->ds, &f->spec, 0, i };

		CHECK(!batch_open(&key, &f->batches[i]));
	}
	CHECK(!slots_open(&options, &f->slots));
}

static void tear_down(struct fixture *f)
{
	slots_close(f->slots);
	for (size_t i = 0; i < BATCHES; i++)
		batch_put(&f->batches[i]);
	dataset_close(f->ds);
}

/* Reads a piece of a batch; whether another is to follow. */
static void read_piece(struct fixture *f, size_t number, bool is_begun)
{
	struct slot *slot;

	CHECK(!slots_get(f->slots, f->batches[number], &slot));
	CHECK(slot_marks(slot) == number);
	if (is_begun)
		slot_put_begun(&slot);
	else
		slot_put(&slot);
	CHECK(!slot);
}

static void what_was_read_to_its_end_is_taken_over(void)
{
	struct fixture f;

	set_up(&f);
	read_piece(&f, 0, true);
	read_piece(&f, 0, false);
	CHECK(!slots_prepare(f.slots, f.batches[1]));
	read_piece(&f, 1, false);
	CHECK(atomic_load(&f.assembled) == 2);
	tear_down(&f);
}

/* Its reader is waited for a while: a machine may take longer than that to come
   from one line to the next, though not each time. */
static void what_was_begun_is_kept(void)
{
	struct fixture f;
	bool kept = false;

	set_up(&f);
	for (int i = 0; i < 20 && !kept; i++) {
		read_piece(&f, 0, true);
		kept = slots_prepare(f.slots, f.batches[1]) == -EAGAIN;
	}
	CHECK(kept);
	tear_down(&f);
}

/* Who never comes for the rest holds nobody up for good. */
static void a_reader_that_stays_away_is_given_up(void)
{
	struct fixture f;

	set_up(&f);
	read_piece(&f, 0, true);
	read_piece(&f, 1, true);
	read_piece(&f, 2, false);
	CHECK(atomic_load(&f.assembled) == 3);
	tear_down(&f);
}

int main(void)
{
	what_was_read_to_its_end_is_taken_over();
	what_was_begun_is_kept();
	a_reader_that_stays_away_is_given_up();
	return 0;
}
