/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/field_names.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/name.h"

enum { FILE_NAMES_MAX = 3, FILE_NAME_SIZE = BETON_STEM_SIZE + 8 };

/* A name that a file has; or a field's name and extension with a slash between,
   and the lowest number that may be free for such a field. */
struct known {
	char text[FILE_NAME_SIZE];
	unsigned number;
};

/* All entries by their text. No entry is ever removed, so a name that is taken
   once is taken for all later fields. */
struct names {
	void *tree;
	struct known *known;
	size_t used;
};

static int by_text(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return strcmp(x->text, y->text);
}

/* Returns the extension that distinguishes files of this type from files of
   other types. */
static const char *extension_of(const struct field *f)
{
	if (field_is_image(f))
		return ".jpg";
	return field_is_scalar(f) ? ".npy" : f->type->extension;
}

/* The names of a field's files and directories. */
static unsigned file_names_of(const struct field *f,
			      struct known names[FILE_NAMES_MAX])
{
	unsigned n = 0;

	snprintf(names[n++].text, FILE_NAME_SIZE, "%s", f->stem);
	snprintf(names[n++].text, FILE_NAME_SIZE, "%s%s", f->stem,
		 extension_of(f));
	if (field_is_image(f))
		snprintf(names[n++].text, FILE_NAME_SIZE, "%s.ppm", f->stem);
	return n;
}

static bool is_stem_taken(const struct names *names, const struct field *f)
{
	struct known mine[FILE_NAMES_MAX];
	unsigned n = file_names_of(f, mine);

	for (unsigned i = 0; i < n; i++) {
		if (tfind(&mine[i], &names->tree, by_text))
			return true;
	}
	return false;
}

/* Finds the entry with this text, or adds it. NULL without memory. */
static struct known *need_known(struct names *names, const char *text)
{
	struct known *e = &names->known[names->used], **found;

	snprintf(e->text, sizeof(e->text), "%s", text);
	e->number = 1;
	found = tsearch(e, &names->tree, by_text);
	if (found && *found == e)
		names->used++;
	return found ? *found : NULL;
}

static int take_stem(struct names *names, const struct field *f)
{
	struct known mine[FILE_NAMES_MAX];
	unsigned n = file_names_of(f, mine);

	for (unsigned i = 0; i < n; i++) {
		if (!need_known(names, mine[i].text))
			return -ENOMEM;
	}
	return 0;
}

static void set_stem(struct field *f, const char *plain, unsigned number)
{
	if (number > 1)
		snprintf(f->stem, BETON_STEM_SIZE, "%.50s~%u", plain, number);
	else
		snprintf(f->stem, BETON_STEM_SIZE, "%.63s", plain);
}

static int name_field(struct names *names, struct field *f)
{
	char plain[BETON_STEM_SIZE], text[FILE_NAME_SIZE];
	struct known *alike;

	name_escape(f->name, plain);
	snprintf(text, sizeof(text), "%.50s/%s", plain, extension_of(f));
	alike = need_known(names, text);
	if (!alike)
		return -ENOMEM;
	set_stem(f, plain, alike->number);
	while (is_stem_taken(names, f))
		set_stem(f, plain, ++alike->number);
	return take_stem(names, f);
}

static void keep_known(void *known)
{
	(void)known;
}

int name_fields(struct field *fields, size_t n)
{
	struct names names = {
		.known = calloc(n * (FILE_NAMES_MAX + 1) + 1,
				sizeof(*names.known)),
	};
	int r = names.known ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !r; i++)
		r = name_field(&names, &fields[i]);
	tdestroy(names.tree, keep_known);
	free(names.known);
	return r;
}
