/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/name.h"

#include <ctype.h>
#include <stdio.h>

#include "fs/bytes.h"

enum { FILE_NAMES_MAX = 3, FILE_NAME_SIZE = BETON_STEM_SIZE + 8 };

static bool stays(const char *name, size_t i, size_t size)
{
	unsigned char c = (unsigned char)name[i];

	return isalnum(c) || c == '_' || c == '-' ||
	       (c == '.' && i && i + 1 < size);
}

void name_escape(const char *name, char *out)
{
	size_t size = strlen(name);

	if (!size)
		*out++ = '%';
	for (size_t i = 0; i < size; i++) {
		if (stays(name, i, size))
			*out++ = name[i];
		else
			out += sprintf(out, "%%%02X", (unsigned char)name[i]);
	}
	*out = '\0';
}

/* The names under which a field's files and directories appear. */
static unsigned file_names(const struct field *f,
			   char names[FILE_NAMES_MAX][FILE_NAME_SIZE])
{
	unsigned n = 0;

	snprintf(names[n++], FILE_NAME_SIZE, "%s", f->stem);
	if (f->type->type == BETON_TYPE_IMAGE) {
		snprintf(names[n++], FILE_NAME_SIZE, "%s.jpg", f->stem);
		snprintf(names[n++], FILE_NAME_SIZE, "%s.ppm", f->stem);
	} else {
		snprintf(names[n++], FILE_NAME_SIZE, "%s%s", f->stem,
			 field_is_scalar(f) ? ".npy" : f->type->extension);
	}
	return n;
}

static bool collide(const struct field *a, const struct field *b)
{
	char x[FILE_NAMES_MAX][FILE_NAME_SIZE];
	char y[FILE_NAMES_MAX][FILE_NAME_SIZE];
	unsigned nx = file_names(a, x), ny = file_names(b, y);

	for (unsigned i = 0; i < nx * ny; i++) {
		if (!strcmp(x[i / ny], y[i % ny]))
			return true;
	}
	return false;
}

static bool is_taken(const struct field *fields, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (collide(&fields[j], &fields[i]))
			return true;
	}
	return false;
}

void name_fields(struct field *fields, size_t n)
{
	char plain[BETON_STEM_SIZE];

	for (size_t i = 0; i < n; i++) {
		name_escape(fields[i].name, plain);
		memcpy(fields[i].stem, plain, sizeof(plain));
		for (unsigned k = 2; is_taken(fields, i); k++)
			snprintf(fields[i].stem, BETON_STEM_SIZE, "%.50s~%u",
				 plain, k);
	}
}

/* Names that a root has, or that cannot be looked up, taken by nobody. */
static bool is_reserved(const char *name)
{
	return !*name || !strcmp(name, ".") || !strcmp(name, "..") ||
	       !strcmp(name, ".betonfs");
}

static bool is_directory_taken(char (*names)[NAME_DIRECTORY_SIZE], size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (!strcmp(names[j], names[i]))
			return true;
	}
	return is_reserved(names[i]);
}

/* The length of the part of a path's last word that names its directory. */
static size_t directory_size(const char *file)
{
	static const char suffix[] = ".beton";
	size_t size = strlen(file), cut = sizeof(suffix) - 1;

	return size > cut && !strcmp(file + size - cut, suffix) ? size - cut
								: size;
}

void name_datasets(const char *const *paths, size_t n,
		   char (*out)[NAME_DIRECTORY_SIZE])
{
	const char *slash, *file;
	size_t size;

	for (size_t i = 0; i < n; i++) {
		slash = strrchr(paths[i], '/');
		file = slash ? slash + 1 : paths[i];
		/* Room for the "~" and the number of a second one. */
		size = min_u64(directory_size(file), NAME_DIRECTORY_SIZE - 12);
		snprintf(out[i], NAME_DIRECTORY_SIZE, "%.*s", (int)size, file);
		for (unsigned k = 2; is_directory_taken(out, i); k++)
			snprintf(out[i], NAME_DIRECTORY_SIZE, "%.*s~%u",
				 (int)size, file, k);
	}
}

unsigned name_digits(uint64_t n)
{
	unsigned digits = 1;

	for (uint64_t last = n ? n - 1 : 0; last >= 10; last /= 10)
		digits++;
	return digits < 6 ? 6 : digits;
}

unsigned name_number(char out[NAME_DIGITS_MAX + 1], uint64_t number,
		     unsigned digits)
{
	unsigned size = 1;

	for (uint64_t v = number; v >= 10; v /= 10)
		size++;
	size = size < digits ? digits : size;
	out[size] = '\0';
	for (unsigned i = size; i > 0; number /= 10)
		out[--i] = (char)('0' + number % 10);
	return size;
}

bool name_parse_number(const char *name, uint64_t n, uint64_t *number,
		       const char **rest)
{
	unsigned digits = name_digits(n);
	uint64_t v = 0;

	for (unsigned i = 0; i < digits; i++) {
		if (!isdigit((unsigned char)name[i]) || !mul_ok(v, 10, &v) ||
		    !add_ok(v, (uint64_t)(name[i] - '0'), &v))
			return false;
	}
	if (v >= n)
		return false;
	*number = v;
	*rest = name + digits;
	return true;
}

bool name_parse_u64(const char *text, size_t size, uint64_t *out)
{
	uint64_t v = 0;

	if (!size || (text[0] == '0' && size > 1))
		return false;
	for (size_t i = 0; i < size; i++) {
		if (!isdigit((unsigned char)text[i]) || !mul_ok(v, 10, &v) ||
		    !add_ok(v, (uint64_t)(text[i] - '0'), &v))
			return false;
	}
	*out = v;
	return true;
}
