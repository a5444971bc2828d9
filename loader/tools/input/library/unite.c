/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/library/unite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/class_union.h"
#include "fs/data/dataset/form.h"

struct unite {
	size_t num_parts;
	size_t num_fields;	    /* of the input when it was opened */
	struct class_names **names; /* of each field; NULL: none */
	struct class_map *maps;	    /* num_fields of each part */
};

/* A file, and the first one. */
struct pair {
	struct log *log;
	const char *path, *first_path;
	const json_t *forms, *first_forms;
};

void unite_close(struct unite *u)
{
	if (!u)
		return;
	for (size_t i = 0; u->names && i < u->num_fields; i++)
		class_names_free(u->names[i]);
	for (size_t i = 0; u->maps && i < u->num_parts * u->num_fields; i++)
		free(u->maps[i].numbers);
	free(u->names);
	free(u->maps);
	free(u);
}

static const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

/* --- forms --------------------------------------------------------------- */

static int refuse(const struct pair *p, const char *name, const char *why)
{
	log_error(p->log, "%s: column '%s' %s: convert the files apart",
		  p->path, name, why);
	return -EINVAL;
}

/* Logs a column of `a` that `b` lacks. */
static int check_missing(const struct pair *p, const json_t *a, const json_t *b,
			 const char *path)
{
	const char *name;
	char why[FORM_WHY_SIZE];
	json_t *unused;

	json_object_foreach((json_t *)a, name, unused)
	{
		if (json_object_get(b, name))
			continue;
		snprintf(why, sizeof(why), "is in %s only", path);
		return refuse(p, name, why);
	}
	return 0;
}

static int check_forms(const struct pair *p)
{
	char why[FORM_WHY_SIZE];
	const char *name;
	json_t *ours;
	int r = check_missing(p, p->forms, p->first_forms, p->path);

	r = r ? r : check_missing(p, p->first_forms, p->forms, p->first_path);
	if (r)
		return r;
	json_object_foreach((json_t *)p->first_forms, name, ours)
	{
		const json_t *its = json_object_get(p->forms, name);

		if (form_check(text(its, "form"), text(ours, "form"),
			       p->first_path, why))
			return refuse(p, name, why);
	}
	return 0;
}

/* --- classes ------------------------------------------------------------- */

/* NULL without an error: there are none. */
static int read_names(const json_t *form, struct class_names **out)
{
	const json_t *list = json_object_get(form, "classes"), *name;
	size_t num = json_array_size(list), i;
	cleanup_free const char **names = calloc(num + 1, sizeof(*names));

	*out = NULL;
	if (!names)
		return -ENOMEM;
	json_array_foreach(list, i, name) names[i] =
		json_string_value(name) ? json_string_value(name) : "";
	if (num)
		*out = class_names_copy(names, num);
	return num && !*out ? -ENOMEM : 0;
}

static int unite_names(struct unite *u, const struct pair *p, size_t part,
		       size_t field, const char *name)
{
	struct class_names *more;
	char why[CLASS_WHY_SIZE] = "has class names: out of memory";
	int r = read_names(json_object_get(p->forms, name), &more);

	if (!r && !part) {
		u->names[field] = more;
		return 0;
	}
	r = r ? r
	      : class_names_unite(&u->names[field], more,
				  &u->maps[part * u->num_fields + field],
				  p->first_path, why);
	class_names_free(more);
	return r ? refuse(p, name, why) : 0;
}

/* --- files --------------------------------------------------------------- */

static int add_part(struct unite *u, const struct pair *p, size_t part,
		    const struct input *in)
{
	int r = check_forms(p);

	for (size_t i = 0; i < u->num_fields && !r; i++)
		r = unite_names(u, p, part, i, in->fields[i].name);
	return r;
}

static int add_parts(struct unite *u, const json_t *description,
		     const struct input *in)
{
	const json_t *parts = json_object_get(description, "parts");
	const json_t *forms = json_object_get(description, "forms");
	struct pair p = {
		.log = in->log,
		.first_path = json_string_value(
			json_array_get(json_array_get(parts, 0), 0)),
		.first_forms = json_array_get(forms, 0),
	};
	int r = 0;

	for (size_t i = 0; i < u->num_parts && !r; i++) {
		p.path = json_string_value(
			json_array_get(json_array_get(parts, i), 0));
		p.forms = json_array_get(forms, i);
		r = p.path ? add_part(u, &p, i, in) : -EPROTO;
	}
	return r;
}

/* The input frees the list, and `u` the names. */
static int set_names(const struct unite *u, struct input *in)
{
	for (size_t i = 0; i < u->num_fields; i++) {
		const struct class_names *all = u->names[i];
		struct input_field *f = &in->fields[i];
		const char **names;

		if (!all)
			continue;
		names = calloc(all->num, sizeof(*names));
		if (!names)
			return log_no_memory(in->log, NULL);
		memcpy(names, all->names, all->num * sizeof(*names));
		free((void *)f->classes);
		f->classes = names;
		f->num_classes = all->num;
	}
	return 0;
}

int unite_open(const json_t *description, struct input *in, struct unite **out)
{
	const json_t *forms = json_object_get(description, "forms");
	struct unite *u;
	int r;

	*out = NULL;
	if (!json_array_size(forms))
		return 0;
	u = calloc(1, sizeof(*u));
	if (!u)
		return log_no_memory(in->log, NULL);
	u->num_parts = json_array_size(forms);
	u->num_fields = in->num_fields;
	u->names = calloc(u->num_fields + 1, sizeof(*u->names));
	u->maps = calloc(u->num_parts * u->num_fields + 1, sizeof(*u->maps));
	r = u->names && u->maps ? add_parts(u, description, in)
				: log_no_memory(in->log, NULL);
	r = r ? r : set_names(u, in);
	if (r)
		unite_close(u);
	else
		*out = u;
	return r;
}

int unite_label(const struct unite *u, const struct input *in, size_t field,
		size_t part, struct input_value *value,
		struct input_error *error)
{
	int64_t *label = &value->integer;

	if (field >= u->num_fields || part >= u->num_parts ||
	    !class_map_apply(&u->maps[part * u->num_fields + field],
			     u->names[field], label))
		return 0;
	return input_refuse(error, -EINVAL,
			    "column '%s': %lld has no class name, but among "
			    "all files it would be '%.60s'",
			    in->fields[field].name, (long long)*label,
			    class_name(u->names[field], *label));
}
