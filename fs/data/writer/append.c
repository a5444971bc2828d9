/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/append.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/class_union.h"
#include "fs/data/dataset/dataset.h"
#include "fs/data/dataset/form.h"
#include "fs/data/writer/copy.h"
#include "fs/data/writer/rewrite.h"

enum {
	PAGE_SIZE_MIN = 2 << 20, /* the writer's limit */
	STEP = 64,		 /* samples between two calls of poll() */
};

/* A field of the existing dataset. */
struct append_target {
	size_t from;		   /* index of the field of appended samples */
	struct class_names *names; /* NULL: it has none */
	struct class_map map;	   /* of the classes of appended samples */
};

struct appender {
	struct log *log;
	struct writer *writer;
	uint32_t page_size;
	/* The rest is NULL for a new file. */
	struct dataset *ds;
	size_t num_fields;
	struct writer_field *fields;
	struct append_target *targets;
	struct writer_value *values; /* of one sample, in the dataset's order */
};

/* --- fields -------------------------------------------------------------- */

/* A type that does not exist has an empty form. */
static const char *form_of(const struct writer_field *f, char out[FORM_SIZE])
{
	const struct field_type *type = field_type_by_id(f->type);

	*out = '\0';
	return type ? form_print(type, f->dtype, f->ndim, f->shape, out) : out;
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
	char have[FORM_SIZE], want[FORM_SIZE], why[FORM_WHY_SIZE];
	size_t k = 0;

	while (k < setup->num_fields && strcmp(setup->fields[k].name, to->name))
		k++;
	if (k == setup->num_fields)
		return refuse_field(a, to->name, "the new samples lack it");
	if (form_check(form_of(to, have), form_of(&setup->fields[k], want),
		       "the new samples", why))
		return refuse_field(a, to->name, why);
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

/* Numbers of samples without names stay as they are. */
static int unite(struct appender *a, struct append_target *t,
		 const struct writer_field *f, const struct class_names *more)
{
	char why[CLASS_WHY_SIZE];
	int r = class_names_unite(&t->names, more, &t->map, dataset_path(a->ds),
				  why);

	if (!r)
		return 0;
	if (r == -ENODATA) {
		t->map = (struct class_map){ 0 };
		log_warning(a->log,
			    "%s: field '%s' has %sclass names, but that of the "
			    "new samples has %s: storing their numbers as they "
			    "are",
			    dataset_path(a->ds), f->name, more ? "no " : "",
			    more ? "some" : "none");
		return 0;
	}
	log_error(a->log, "%s: field '%s' of the new samples %s",
		  dataset_path(a->ds), f->name, why);
	return r;
}

/* Unites the names of the dataset with those of the new samples. */
static int unite_names(struct appender *a, const struct appender_setup *setup,
		       size_t i)
{
	struct append_target *t = &a->targets[i];
	struct writer_field *to = &a->fields[i];
	const struct writer_field *f = &setup->fields[t->from];
	struct class_names *more = NULL;
	int r;

	if (f->num_classes)
		more = class_names_copy(f->classes, f->num_classes);
	if (f->num_classes && !more)
		return log_no_memory(a->log, NULL);
	t->names = steal(a->ds->format.fields[i].classes);
	r = unite(a, t, f, more);
	class_names_free(more);
	to->classes = t->names ? t->names->names : NULL;
	to->num_classes = t->names ? t->names->num : 0;
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
		return log_no_memory(a->log, NULL);
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
			.renews_sums = setup->renews_sums,
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
		return log_no_memory(setup->log, NULL);
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

/* A number without a name among the new samples must not get one. */
static int renumber(const struct appender *a, size_t i, int64_t *value)
{
	const struct append_target *t = &a->targets[i];

	if (!class_map_apply(&t->map, t->names, value))
		return 0;
	log_error(a->log,
		  "%s: field '%s': %lld has no class name among the new "
		  "samples, but in the dataset it would be '%s'",
		  dataset_path(a->ds), a->fields[i].name, (long long)*value,
		  class_name(t->names, *value));
	return -EINVAL;
}

int appender_append(struct appender *a, const struct writer_value *values)
{
	int r = 0;

	if (!a->ds)
		return writer_append(a->writer, values);
	for (size_t i = 0; i < a->num_fields && !r; i++) {
		a->values[i] = values[a->targets[i].from];
		r = renumber(a, i, &a->values[i].integer);
	}
	return r ? r : writer_append(a->writer, a->values);
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
		class_names_free(a->targets[i].names);
		free(a->targets[i].map.numbers);
	}
	free(a->targets);
	free(a->values);
	free(a->fields);
	dataset_close(a->ds);
	free(a);
}
