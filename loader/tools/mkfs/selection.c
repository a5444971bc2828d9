/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/selection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/order/subset.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/typed.h"
#include "loader/tools/mkfs/survey.h"
#include "loader/tools/mkfs/where.h"

struct selection_builder {
	struct input *in;
	const struct selection_options *options;
	struct log *log;
	struct selection *s;
	uint64_t n; /* samples so far */
};

static int out_of_memory(const struct selection_builder *b)
{
	log_error(b->log, "out of memory while choosing %llu samples",
		  (unsigned long long)b->n);
	return -ENOMEM;
}

int selection_parse_shard(const char *text, void *shard)
{
	static const struct typed number = TYPED_STRICT_IN(0, UINT32_MAX);
	const char *slash = strchr(text, '/');
	struct selection_shard out;

	if (!slash ||
	    !typed_parse(&number, text, (size_t)(slash - text), &out.index) ||
	    !typed_parse_string(&number, slash + 1, &out.count) ||
	    out.index >= out.count)
		return -EINVAL;
	*(struct selection_shard *)shard = out;
	return 0;
}

/* --- subsets ------------------------------------------------------------- */

static bool parse_range(const char *text, uint64_t *from, uint64_t *to)
{
	static const struct typed number = TYPED_NUMBER_IN(0, INT64_MAX);
	const char *dash = strchr(text, '-');

	return dash &&
	       typed_parse(&number, text, (size_t)(dash - text), from) &&
	       typed_parse_string(&number, dash + 1, to);
}

static int take_range(struct selection_builder *b, uint64_t from, uint64_t to)
{
	if (from >= to || to > b->in->num_samples) {
		log_error(b->log,
			  "--subset=%s: expected A-B with A < B <= %llu, the "
			  "number of samples",
			  b->options->subset,
			  (unsigned long long)b->in->num_samples);
		return -EINVAL;
	}
	b->s->base = from;
	b->n = to - from;
	return 0;
}

static int take_list(struct selection_builder *b)
{
	struct subset *list = NULL;
	cleanup_free char *text = NULL;
	int r = asprintf(&text, "subset:%s", b->options->subset) < 0
			? out_of_memory(b)
			: subset_open(text, b->in->num_samples, b->log, &list);

	if (!r) {
		b->n = list->n;
		b->s->numbers = steal(list->ids);
	} else if (r == -ENOMEM) {
		out_of_memory(b);
	}
	subset_close_all(list);
	return r;
}

static int take_subset(struct selection_builder *b)
{
	uint64_t from, to;

	if (!b->options->subset)
		return 0;
	return parse_range(b->options->subset, &from, &to)
		       ? take_range(b, from, to)
		       : take_list(b);
}

/* --- conditions and keys ------------------------------------------------- */

/* Lists the numbers, if a formula gave them so far. */
static int list_numbers(struct selection_builder *b)
{
	struct selection *s = b->s;

	if (s->numbers)
		return 0;
	s->numbers = calloc(b->n + 1, sizeof(*s->numbers));
	if (!s->numbers)
		return out_of_memory(b);
	for (uint64_t i = 0; i < b->n; i++)
		s->numbers[i] = s->base + i;
	return 0;
}

struct selection_filter {
	const struct where *where;
	bool *holds; /* by number */
};

/* A sample that cannot be read stays, so that it is reported. */
static int note_holds(void *arg, uint64_t sample,
		      const struct input_value *values)
{
	const struct selection_filter *f = arg;

	f->holds[sample] = !values || where_holds(f->where, values);
	return 0;
}

static int run_filter(struct selection_builder *b, struct selection_filter *f)
{
	cleanup_free bool *wanted =
		calloc(b->in->num_fields + 1, sizeof(*wanted));
	uint64_t n = 0;
	int r;

	f->holds = calloc(b->in->num_samples + 1, sizeof(*f->holds));
	if (!wanted || !f->holds)
		return out_of_memory(b);
	where_mark(f->where, wanted);
	r = survey_run(b->in, wanted, 0, b->in->num_samples, b->log, note_holds,
		       f);
	r = r ? r : list_numbers(b);
	for (uint64_t i = 0; i < b->n && !r; i++) {
		if (f->holds[b->s->numbers[i]])
			b->s->numbers[n++] = b->s->numbers[i];
	}
	b->n = n;
	return r;
}

static int take_where(struct selection_builder *b)
{
	struct where *where = NULL;
	struct selection_filter f = { 0 };
	int r;

	if (!b->options->where)
		return 0;
	r = where_parse(b->options->where, b->in, b->log, &where);
	f.where = where;
	r = r ? r : run_filter(b, &f);
	free(f.holds);
	where_free(where);
	if (!r && !b->n) {
		log_error(b->log, "--where=%s: no sample meets it",
			  b->options->where);
		r = -ENODATA;
	}
	return r;
}

/* --- order --------------------------------------------------------------- */

/* A sample and the key by which it is sorted. */
struct keyed {
	double real;
	int64_t integer;
	uint64_t position; /* among the chosen samples */
	uint64_t number;
};

struct keys {
	const struct selection_builder *b;
	size_t field;
	enum input_type type;
	char **texts; /* sorted; a text's key is its index */
	size_t num_texts;
	struct keyed *by_number; /* by the number of the sample */
};

static int note_key(void *arg, uint64_t sample,
		    const struct input_value *values)
{
	const struct keys *k = arg;
	struct keyed *to = &k->by_number[sample];
	size_t text;

	if (!values)
		return 0;
	to->integer = values[k->field].integer;
	/* NaN has no order. */
	to->real = values[k->field].real;
	if (to->real != to->real)
		to->real = 0;
	if (k->type != INPUT_TEXT)
		return 0;
	if (survey_find_text(k->texts, k->num_texts, &values[k->field], &text))
		to->integer = (int64_t)text;
	return 0;
}

static int compare_keys(const struct keyed *x, const struct keyed *y)
{
	if (x->real != y->real)
		return x->real < y->real ? -1 : 1;
	return (x->integer > y->integer) - (x->integer < y->integer);
}

static int compare_keyed(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int r = compare_keys(x, y);

	return r ? r
		 : (x->position > y->position) - (x->position < y->position);
}

static int find_field(const struct selection_builder *b, const char *option,
		      const char *name, size_t *out)
{
	char advice[INPUT_ADVICE_SIZE];

	for (size_t i = 0; i < b->in->num_fields; i++) {
		const struct input_field *f = &b->in->fields[i];

		if (strcmp(f->name, name))
			continue;
		*out = i;
		if (f->type == INPUT_INT || f->type == INPUT_FLOAT ||
		    f->type == INPUT_TEXT)
			return 0;
		log_error(b->log,
			  "--%s=%s: the field has neither numbers nor texts",
			  option, name);
		return -EINVAL;
	}
	log_error(b->log, "--%s=%s: the source has no such field%s", option,
		  name, input_advice(b->in, name, advice));
	return -EINVAL;
}

static int read_keys(const struct selection_builder *b, struct keys *k)
{
	cleanup_free bool *wanted =
		calloc(b->in->num_fields + 1, sizeof(*wanted));
	int r = 0;

	k->type = b->in->fields[k->field].type;
	k->by_number = calloc(b->in->num_samples + 1, sizeof(*k->by_number));
	if (!wanted || !k->by_number)
		return out_of_memory(b);
	wanted[k->field] = true;
	if (k->type == INPUT_TEXT)
		r = survey_texts(b->in, k->field, b->log, &k->texts,
				 &k->num_texts);
	return r ? r
		 : survey_run(b->in, wanted, 0, b->in->num_samples, b->log,
			      note_key, k);
}

/* Sets *out to the chosen samples by key, then by position. */
static int sort_samples(struct selection_builder *b, const char *option,
			const char *name, struct keyed **out)
{
	struct keys k = { .b = b };
	struct keyed *sorted = calloc(b->n + 1, sizeof(*sorted));
	int r = sorted ? find_field(b, option, name, &k.field)
		       : out_of_memory(b);

	r = r ? r : read_keys(b, &k);
	r = r ? r : list_numbers(b);
	for (uint64_t i = 0; i < b->n && !r; i++) {
		sorted[i] = k.by_number[b->s->numbers[i]];
		sorted[i].position = i;
		sorted[i].number = b->s->numbers[i];
	}
	for (size_t i = 0; k.texts && i < k.num_texts; i++)
		free(k.texts[i]);
	free(k.texts);
	free(k.by_number);
	if (r) {
		free(sorted);
		return r;
	}
	qsort(sorted, b->n, sizeof(*sorted), compare_keyed);
	*out = sorted;
	return 0;
}

static int take_sort(struct selection_builder *b)
{
	cleanup_free struct keyed *sorted = NULL;
	int r = sort_samples(b, "sort", b->options->sort, &sorted);

	for (uint64_t i = 0; i < b->n && !r; i++)
		b->s->numbers[i] = sorted[i].number;
	return r;
}

/* Returns the length of the run that begins at i: samples with one key. */
static uint64_t run_at(const struct keyed *sorted, uint64_t n, uint64_t i)
{
	uint64_t k = i + 1;

	while (k < n && k < i + SELECTION_RUN &&
	       !compare_keys(&sorted[i], &sorted[k]))
		k++;
	return k - i;
}

/* Puts the runs in the order of a permutation. */
static int place_runs(struct selection_builder *b, const struct keyed *sorted)
{
	uint64_t key[] = { b->options->seed, rng_key_of_text("cluster") };
	cleanup_free uint64_t *starts = calloc(b->n + 1, sizeof(*starts));
	uint64_t runs = 0, at = 0;
	struct permutation order;

	if (!starts)
		return out_of_memory(b);
	for (uint64_t i = 0; i < b->n; i += run_at(sorted, b->n, i))
		starts[runs++] = i;
	order = permutation_init(runs, rng_key(key, ARRAY_LEN(key)));
	for (uint64_t r = 0; r < runs; r++) {
		uint64_t first = starts[permutation_at(&order, r)];
		uint64_t n = run_at(sorted, b->n, first);

		for (uint64_t i = first; i < first + n; i++)
			b->s->numbers[at++] = sorted[i].number;
	}
	return 0;
}

static int take_cluster(struct selection_builder *b)
{
	cleanup_free struct keyed *sorted = NULL;
	int r = sort_samples(b, "cluster", b->options->cluster, &sorted);

	return r ? r : place_runs(b, sorted);
}

static int take_order(struct selection_builder *b)
{
	uint64_t key[] = { b->options->seed, rng_key_of_text("shuffle") };

	if (b->options->sort)
		return take_sort(b);
	if (b->options->cluster)
		return take_cluster(b);
	b->s->shuffle = b->options->shuffle;
	if (b->s->shuffle && b->n)
		b->s->order =
			permutation_init(b->n, rng_key(key, ARRAY_LEN(key)));
	return 0;
}

/* --- the whole ----------------------------------------------------------- */

static void take_shard(struct selection_builder *b)
{
	const struct selection_shard *shard = &b->options->shard;
	struct selection *s = b->s;
	/* 128 bits: both factors may be large. */
	unsigned __int128 n = s->total;

	if (!shard->count) {
		s->count = s->total;
		return;
	}
	s->first = (uint64_t)(n * shard->index / shard->count);
	s->count = (uint64_t)(n * (shard->index + 1) / shard->count) - s->first;
}

int selection_open(struct input *in, const struct selection_options *options,
		   struct log *log, struct selection *out)
{
	struct selection_builder b = { in, options, log, out, in->num_samples };
	int r;

	*out = (struct selection){ 0 };
	r = take_subset(&b);
	r = r ? r : take_where(&b);
	r = r ? r : take_order(&b);
	if (r) {
		selection_fini(out);
		return r;
	}
	out->total = min_u64(b.n, options->limit);
	take_shard(&b);
	return 0;
}

void selection_fini(struct selection *s)
{
	free(s->numbers);
	s->numbers = NULL;
}

uint64_t selection_at(const struct selection *s, uint64_t i)
{
	uint64_t k = s->first + i;

	if (s->shuffle)
		k = permutation_at(&s->order, k);
	return s->numbers ? s->numbers[k] : s->base + k;
}
