/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>

#include "fs/base/order/spec_text.h"
#include "fs/base/util/rng.h"
#include "loader/tools/beton/shuffle_quality.h"
#include "tests/unit/t.h"

enum { SAMPLES = 20000, CLASSES = 100 };

/* Sorted by class, as in datasets made of directories. */
static int sorted_label(void *arg, uint64_t sample, int64_t *label)
{
	(void)arg;
	*label = (int64_t)(sample / (SAMPLES / CLASSES));
	return 0;
}

static int bad_label(void *arg, uint64_t sample, int64_t *label)
{
	(void)arg;
	(void)label;
	return sample ? -EIO : 0;
}

static struct shuffle_quality quality_of(const char *text,
					 shuffle_quality_label *label)
{
	const struct spec_facts facts = {
		.samples = SAMPLES,
		.data_bytes = (uint64_t)SAMPLES << 16,
	};
	char why[SPEC_WHY_SIZE];
	struct shuffle_quality q;
	struct spec spec;

	CHECK(!spec_parse(text, &facts, &spec, why));
	CHECK(!shuffle_quality_measure(&spec, label, NULL, &q));
	return q;
}

static void a_sequential_order_does_not_mix_classes(void)
{
	struct shuffle_quality q =
		quality_of("order=sequential,batch=100", sorted_label);

	CHECK(q.of_labels && q.batches == 64);
	CHECK(q.spec.mean == 1 && q.spec.worst == 1);
	/* 100 draws from 100 classes: 63.4 distinct ones expected. */
	CHECK(fabs(q.random.mean - 63.4) < 1.5);
}

static void a_random_order_is_its_own_measure(void)
{
	struct shuffle_quality q =
		quality_of("order=random,batch=100", sorted_label);

	CHECK(q.spec.mean == q.random.mean && q.spec.worst == q.random.worst);
	CHECK(q.spec.worst < q.spec.mean);
}

static void quasi_random_is_between_sequential_and_random(void)
{
	struct shuffle_quality q =
		quality_of("order=quasi_random,block=8,window=2000,batch=100",
			   sorted_label);

	CHECK(q.spec.mean > 30 && q.spec.mean <= q.random.mean);
}

static void without_labels_gaps_are_measured(void)
{
	struct shuffle_quality s =
		quality_of("order=sequential,batch=100", NULL);
	struct shuffle_quality r = quality_of("order=random,batch=100", NULL);

	CHECK(!s.of_labels && s.spec.mean == 0);
	CHECK(r.spec.mean > 3 && r.spec.mean == s.random.mean);
}

static void failures_and_empty_epochs_are_reported(void)
{
	const struct spec_facts facts = { .samples = 10, .data_bytes = 10 };
	char why[SPEC_WHY_SIZE];
	struct shuffle_quality q;
	struct spec spec;

	CHECK(!spec_parse("batch=256", &facts, &spec, why));
	CHECK(shuffle_quality_measure(&spec, NULL, NULL, &q) == -ENODATA);
	CHECK(!spec_parse("batch=5", &facts, &spec, why));
	CHECK(shuffle_quality_measure(&spec, bad_label, NULL, &q) == -EIO);
	CHECK(!spec_parse("batch=1", &facts, &spec, why));
	CHECK(!shuffle_quality_measure(&spec, NULL, NULL, &q));
}

/* --- the order on disk --- */

static struct shuffle_quality_on_disk on_disk(uint64_t samples,
					      shuffle_quality_label *label)
{
	struct shuffle_quality_on_disk d;

	CHECK(!shuffle_quality_look_at_disk(samples, label, NULL, &d));
	CHECK(d.samples == (samples < 65536 ? samples : 65536));
	return d;
}

static int one_label(void *arg, uint64_t sample, int64_t *label)
{
	(void)arg;
	(void)sample;
	*label = 7;
	return 0;
}

static int shuffled_label(void *arg, uint64_t sample, int64_t *label)
{
	(void)arg;
	*label = (int64_t)(rng_mix(sample) % CLASSES);
	return 0;
}

static int label_in_runs(void *arg, uint64_t sample, int64_t *label)
{
	return shuffled_label(arg, sample / 32, label);
}

static int ascending_label(void *arg, uint64_t sample, int64_t *label)
{
	(void)arg;
	*label = (int64_t)(sample >> 20);
	return 0;
}

static int descending_label(void *arg, uint64_t sample, int64_t *label)
{
	(void)arg;
	*label = -(int64_t)(sample >> 20);
	return 0;
}

static void orders_on_disk_are_told_apart(uint64_t samples)
{
	struct shuffle_quality_on_disk d = on_disk(samples, one_label);

	CHECK(d.order == DISK_UNIFORM);
	d = on_disk(samples, shuffled_label);
	CHECK(d.order == DISK_SHUFFLED && fabs(d.run - 1.01) < 0.01);
	CHECK(fabs(d.shuffled_run - 1.01) < 0.01);
	d = on_disk(samples, label_in_runs);
	CHECK(d.order == DISK_RUNS && fabs(d.run - 32.3) < 2);
	CHECK(fabs(d.shuffled_run - 1.01) < 0.01);
	d = on_disk(samples, sorted_label);
	CHECK(d.order == DISK_SORTED);
}

/* Runs that are longer than the inspected parts. */
static void long_runs_are_found(void)
{
	struct shuffle_quality_on_disk d =
		on_disk((uint64_t)1 << 30, ascending_label);

	CHECK(d.order == DISK_SORTED);
	d = on_disk((uint64_t)1 << 30, descending_label);
	CHECK(d.order == DISK_RUNS && d.run > 1000);
}

static void too_few_samples_have_no_order(void)
{
	struct shuffle_quality_on_disk d;

	CHECK(shuffle_quality_look_at_disk(0, one_label, NULL, &d) == -ENODATA);
	CHECK(shuffle_quality_look_at_disk(1, one_label, NULL, &d) == -ENODATA);
	CHECK(!shuffle_quality_look_at_disk(2, one_label, NULL, &d));
	CHECK(shuffle_quality_look_at_disk(9, bad_label, NULL, &d) == -EIO);
}

int main(void)
{
	a_sequential_order_does_not_mix_classes();
	a_random_order_is_its_own_measure();
	quasi_random_is_between_sequential_and_random();
	without_labels_gaps_are_measured();
	failures_and_empty_epochs_are_reported();
	orders_on_disk_are_told_apart(20000);
	orders_on_disk_are_told_apart(10000000);
	long_runs_are_found();
	too_few_samples_have_no_order();
	return 0;
}
