/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/append.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/dataset.h"
#include "fs/data/writer/copy.h"
#include "fs/data/writer/labels.h"
#include "fs/data/writer/rewrite.h"

enum {
	PAGE_SIZE_MIN = 2 << 20, /* the writer's limit */
	STEP = 64,		 /* samples between two calls of poll() */
};

/* A field of the existing dataset. */
struct target {
	size_t from; /* index of the field of appended samples */
	struct labels labels;
	struct labels_map map; /* of the classes of appended samples */
	const char **names;    /* owned; NULL: it has none */
};

struct appender {
	struct log *log;
	struct writer *writer;
	uint32_t page_size;
	/* The rest is NULL for a new file. */
	struct dataset *ds;
	size_t num_fields;
	struct writer_field *fields;
	struct target *targets;
	struct writer_value *values; /* of one sample, in the dataset's order */
};

static int out_of_memory(struct log *log)
{
	log_error(log, "out of memory");
	return -ENOMEM;
}

/* --- fields -------------------------------------------------------------- */

/* Scalars of a dataset have a dtype, too; only that of arrays may vary. */
static bool is_same_type(const struct writer_field *a,
			 const struct writer_field *b)
{
	if (a->type != b->type || field_column(a->type) != COLUMN_ARRAY)
		return a->type == b->type;
	return !strcmp(a->dtype, b->dtype) && a->ndim == b->ndim &&
	       !memcmp(a->shape, b->shape, sizeof(a->shape));
}

static int refuse_field(const struct appender *a, const char *name,
			const char *why)
{
	log_error(a->log, "%s: field '%s': %s", dataset_path(a->ds), name, why);
	return -EINVAL;
}

static int match_field(struct appender *a, const struct appender_setup *setup,
		       size_t i)
{
	const struct writer_field *to = &a->fields[i];
	size_t k = 0;

	while (k < setup->num_fields && strcmp(setup->fields[k].name, to->name))
		k++;
	if (k == setup->num_fields)
		return refuse_field(a, to->name, "the new samples lack it");
	if (!is_same_type(&setup->fields[k], to))
		return refuse_field(a, to->name,
				    "the new samples have another type");
	a->targets[i].from = k;
	return 0;
}

/* Finds the field of the new samples that the dataset lacks. */
static int refuse_extra(const struct appender *a,
			const struct appender_setup *setup)
{
	for (size_t k = 0; k < setup->num_fields; k++) {
		bool used = false;

		for (size_t i = 0; i < a->num_fields && !used; i++)
			used = a->targets[i].from == k;
		if (!used)
			return refuse_field(a, setup->fields[k].name,
					    "the dataset lacks it");
	}
	return 0;
}

/* --- classes ------------------------------------------------------------- */

/* Makes names as a dataset stores them: without control characters. */
static int stored_names(const struct writer_field *f, struct class_names **out)
{
	struct class_names_place place = { .num = f->num_classes };
	char *text = class_names_join(f->classes, f->num_classes, &place.size);

	return text && class_names_split(text, &place, out) ? 0 : -ENOMEM;
}

static int add_old_names(struct target *t, const struct class_names *old)
{
	struct labels_map unused = { 0 };
	int r = labels_add(&t->labels, old, &unused);

	free(unused.numbers);
	return r;
}

static int add_names(struct target *t, const struct class_names *old,
		     const struct writer_field *f)
{
	struct class_names *more = NULL;
	int r = stored_names(f, &more);

	r = r ? r : add_old_names(t, old);
	r = r ? r : labels_add(&t->labels, more, &t->map);
	class_names_free(more);
	t->names = r ? NULL : labels_names(&t->labels);
	return r || t->names ? r : -ENOMEM;
}

/* Unites the names of the dataset with those of the new samples. */
static int unite_names(struct appender *a, const struct appender_setup *setup,
		       size_t i)
{
	const struct class_names *old = a->ds->format.fields[i].classes;
	struct target *t = &a->targets[i];
	const struct writer_field *f = &setup->fields[t->from];
	int r;

	if (!f->num_classes)
		return 0;
	if (!old) {
		log_warning(a->log,
			    "%s: field '%s' has no class names: storing the "
			    "numbers of new classes as they are",
			    dataset_path(a->ds), f->name);
		return 0;
	}
	r = add_names(t, old, f);
	if (r == -E2BIG)
		log_error(a->log,
			  "%s: field '%s': the names of all classes take over "
			  "%d bytes",
			  dataset_path(a->ds), f->name, CLASS_NAMES_SIZE_MAX);
	else if (r)
		out_of_memory(a->log);
	a->fields[i].classes = t->names;
	a->fields[i].num_classes = t->labels.num;
	return r;
}

/* --- opening ------------------------------------------------------------- */

static int open_existing(struct appender *a, const struct appender_setup *setup)
{
	int r = dataset_open(setup->path, NULL, a->log, &a->ds);

	r = r ? r : rewrite_fields(a->ds, &a->fields);
	if (r)
		return r;
	a->num_fields = a->ds->format.num_fields;
	a->targets = calloc(a->num_fields, sizeof(*a->targets));
	a->values = calloc(a->num_fields, sizeof(*a->values));
	if (!a->targets || !a->values)
		return out_of_memory(a->log);
	for (size_t i = 0; i < a->num_fields && !r; i++)
		r = match_field(a, setup, i);
	r = r ? r : refuse_extra(a, setup);
	for (size_t i = 0; i < a->num_fields && !r; i++)
		r = unite_names(a, setup, i);
	if (!a->page_size)
		a->page_size = (uint32_t)max_u64(a->ds->format.page_size,
						 PAGE_SIZE_MIN);
	return r;
}

static int copy_samples(struct copy *c, uint64_t samples,
			const struct appender_setup *setup)
{
	uint64_t n;
	int r = 0;

	for (uint64_t i = 0; i < samples && !r; i += n) {
		n = min_u64(STEP, samples - i);
		r = copy_range(c, i, n);
		if (!r && setup->poll)
			r = setup->poll(setup->arg);
	}
	return r;
}

static int copy_existing(struct appender *a, const struct appender_setup *setup)
{
	struct copy *c = NULL;
	int r = copy_open(a->writer, a->log, &c);

	r = r ? r : copy_from(c, a->ds, NULL);
	r = r ? r : copy_samples(c, a->ds->format.samples, setup);
	copy_close(c);
	return r;
}

static int open_writer(struct appender *a, const struct appender_setup *setup)
{
	uint64_t old = a->ds ? a->ds->format.samples : 0;
	int r = writer_begin(
		&(struct writer_setup){
			.path = setup->path,
			.fields = a->ds ? a->fields : setup->fields,
			.num_fields = setup->num_fields,
			.num_samples = old + setup->num_samples,
			.page_size = a->page_size,
			.options = setup->options,
			.poll = setup->poll,
			.arg = setup->arg,
			.sums = setup->sums,
			.log = a->log,
		},
		&a->writer);

	if (r || !a->ds)
		return r;
	writer_expect(a->writer, &a->ds->source->stat);
	return copy_existing(a, setup);
}

int appender_open(const struct appender_setup *setup, struct appender **out)
{
	struct appender *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return out_of_memory(setup->log);
	a->log = setup->log;
	a->page_size = setup->page_size;
	r = setup->exists ? open_existing(a, setup) : 0;
	r = r ? r : open_writer(a, setup);
	if (r)
		appender_abort(&a);
	else
		*out = a;
	return r;
}

uint32_t appender_page_size(const struct appender *a)
{
	return a->page_size;
}

/* --- samples ------------------------------------------------------------- */

static void renumber(const struct target *t, struct writer_value *v)
{
	if (t->map.numbers && v->integer >= 0 &&
	    (uint64_t)v->integer < t->map.num)
		v->integer = t->map.numbers[v->integer];
}

int appender_append(struct appender *a, const struct writer_value *values)
{
	if (!a->ds)
		return writer_append(a->writer, values);
	for (size_t i = 0; i < a->num_fields; i++) {
		a->values[i] = values[a->targets[i].from];
		renumber(&a->targets[i], &a->values[i]);
	}
	return writer_append(a->writer, a->values);
}

/* --- the end ------------------------------------------------------------- */

int appender_finish(struct appender **appender)
{
	struct appender *a = *appender;
	int r = writer_finish(&a->writer);

	appender_abort(appender);
	return r;
}

void appender_abort(struct appender **appender)
{
	struct appender *a = *appender;

	if (!a)
		return;
	*appender = NULL;
	writer_abort(&a->writer);
	for (size_t i = 0; a->targets && i < a->num_fields; i++) {
		labels_fini(&a->targets[i].labels);
		free(a->targets[i].map.numbers);
		free(a->targets[i].names);
	}
	free(a->targets);
	free(a->values);
	free(a->fields);
	dataset_close(a->ds);
	free(a);
}
