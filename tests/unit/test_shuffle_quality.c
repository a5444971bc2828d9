/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>

#include "fs/order/spec_text.h"
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

int main(void)
{
	a_sequential_order_does_not_mix_classes();
	a_random_order_is_its_own_measure();
	quasi_random_is_between_sequential_and_random();
	without_labels_gaps_are_measured();
	failures_and_empty_epochs_are_reported();
	return 0;
}
