/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum { TEXTS_MAX = 1000000 };

static uint64_t from(const void *first, uint64_t i)
{
	return *(const uint64_t *)first + i;
}

int survey_run(struct input *in, const bool *wanted, uint64_t first, uint64_t n,
	       struct log *log, survey_fn *fn, void *arg)
{
	cleanup_free struct input_value *values =
		calloc(in->num_fields + 1, sizeof(*values));
	const struct input_order order = { from, &first, n };
	struct input_reader *reader = NULL;
	struct input_error error;
	int r = input_begin(in, wanted, &order);

	if (r)
		return r;
	r = values ? in->kind->reader_open(in, &reader) : -ENOMEM;
	if (r)
		log_error(log, "cannot read the source: %s", strerror(-r));
	for (uint64_t i = first; i < first + n && !r; i++) {
		error = (struct input_error){ 0 };
		memset(values, 0, in->num_fields * sizeof(*values));
		r = in->kind->read(reader, i, wanted, values, &error);
		if (r && error.fatal)
			log_error(log, "%s", error.why);
		else
			r = fn(arg, i, r ? NULL : values);
	}
	in->kind->reader_close(reader);
	return r;
}

/* --- texts --------------------------------------------------------------- */

struct survey_text {
	char *text;
	UT_hash_handle hh;
};

struct texts {
	struct survey_text *set;
	size_t field;
	struct log *log;
};

static int refuse_text(const struct texts *t, int code, const char *why)
{
	log_error(t->log, "the classes of a field: %s", why);
	return code;
}

static int note_text(void *arg, uint64_t sample,
		     const struct input_value *values)
{
	struct texts *t = arg;
	const struct input_value *v = values ? &values[t->field] : NULL;
	const char *text;
	struct survey_text *found;

	(void)sample;
	if (!v)
		return 0;
	text = v->size ? v->bytes : "";
	HASH_FIND(hh, t->set, text, v->size, found);
	if (found)
		return 0;
	if (v->size && memchr(text, 0, v->size))
		return refuse_text(t, -EINVAL, "a name contains a NUL");
	if (HASH_COUNT(t->set) == TEXTS_MAX)
		return refuse_text(t, -E2BIG,
				   "over a million names: store the field as "
				   "text with --fields=NAME:bytes");
	found = calloc(1, sizeof(*found));
	if (found)
		found->text = strndup(text, v->size);
	if (!found || !found->text) {
		free(found);
		return refuse_text(t, -ENOMEM, "out of memory");
	}
	HASH_ADD_KEYPTR(hh, t->set, found->text, v->size, found);
	return 0;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Moves the texts to *out and frees the set; NULL: frees them, too. */
static void empty_set(struct texts *t, char **out)
{
	struct survey_text *at, *next;

	HASH_ITER(hh, t->set, at, next)
	{
		HASH_DEL(t->set, at);
		if (out)
			*out++ = at->text;
		else
			free(at->text);
		free(at);
	}
}

int survey_texts(struct input *in, size_t field, struct log *log, char ***texts,
		 size_t *num)
{
	cleanup_free bool *wanted = calloc(in->num_fields + 1, sizeof(*wanted));
	struct texts t = { .field = field, .log = log };
	size_t n;
	int r = wanted ? 0 : refuse_text(&t, -ENOMEM, "out of memory");

	if (!r) {
		wanted[field] = true;
		r = survey_run(in, wanted, 0, in->num_samples, log, note_text,
			       &t);
	}
	n = HASH_COUNT(t.set);
	*texts = r ? NULL : calloc(n + 1, sizeof(**texts));
	if (!r && !*texts)
		r = refuse_text(&t, -ENOMEM, "out of memory");
	empty_set(&t, r ? NULL : *texts);
	if (r)
		return r;
	qsort(*texts, n, sizeof(**texts), compare_texts);
	*num = n;
	return 0;
}

int survey_compare_text(const struct input_value *value, const char *text)
{
	size_t n = strlen(text), common = min_u64(value->size, n);
	/* An empty text may have no bytes. */
	int r = common ? memcmp(value->bytes, text, common) : 0;

	return r ? r : (value->size > n) - (value->size < n);
}

static int compare_to_element(const void *value, const void *text)
{
	return survey_compare_text(value, *(char *const *)text);
}

bool survey_find_text(char *const *texts, size_t num,
		      const struct input_value *value, size_t *index)
{
	char *const *found =
		bsearch(value, texts, num, sizeof(*texts), compare_to_element);

	if (found)
		*index = (size_t)(found - texts);
	return found != NULL;
}
