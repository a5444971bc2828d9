/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/input.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/suggest.h"
#include "fs/data/dataset/field.h"

void input_close(struct input *in)
{
	if (in)
		in->kind->close(in);
}

const char *input_title(const struct input *in)
{
	return in->title ? in->title : in->kind->words;
}

int input_begin(struct input *in, const bool *wanted,
		const struct input_order *order)
{
	return in->kind->begin ? in->kind->begin(in, wanted, order) : 0;
}

static void list_fields(const struct input *in, char out[INPUT_ADVICE_SIZE])
{
	size_t n = 0;

	for (size_t i = 0; i < in->num_fields && n < INPUT_ADVICE_SIZE; i++)
		n += (size_t)snprintf(out + n, INPUT_ADVICE_SIZE - n, "%s%s",
				      i ? ", " : "; it has ",
				      in->fields[i].name);
	if (n >= INPUT_ADVICE_SIZE)
		strcpy(out + INPUT_ADVICE_SIZE - sizeof("..."), "...");
}

const char *input_advice(const struct input *in, const char *name,
			 char out[INPUT_ADVICE_SIZE])
{
	struct suggestion s = { .word = name };

	for (size_t i = 0; i < in->num_fields; i++)
		suggest_try(&s, in->fields[i].name);
	if (!*suggest_text(&s, out, INPUT_ADVICE_SIZE))
		list_fields(in, out);
	return out;
}

/* --- for kinds ----------------------------------------------------------- */

void *input_new(const struct input_kind *kind, size_t size, struct log *log)
{
	struct input *in = calloc(1, size);

	if (!in) {
		log_error(log, "out of memory");
		return NULL;
	}
	in->kind = kind;
	in->log = log;
	return in;
}

bool input_is_own_fault(int error)
{
	static const int own[] = {
		EACCES, EBADMSG, EFBIG,	  EINVAL, EISDIR, ELOOP,   ENAMETOOLONG,
		ENOENT, ENOTDIR, ENOTSUP, ENXIO,  EPERM,  EUCLEAN,
	};

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (error == -own[i])
			return true;
	return false;
}

int input_refuse(struct input_error *error, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->why, sizeof(error->why), format, args);
	va_end(args);
	error->fatal = !input_is_own_fault(code);
	return code;
}

struct input_field *input_add_field(struct input *in, const char *name,
				    enum input_type type)
{
	struct input_field *f;
	void *more;

	if (strlen(name) >= INPUT_NAME_SIZE) {
		log_error(in->log,
			  "field '%.40s...': a name of %zu bytes, but "
			  "it may have %d",
			  name, strlen(name), INPUT_NAME_SIZE - 1);
		return NULL;
	}
	more = reallocarray(in->fields, in->num_fields + 1,
			    sizeof(*in->fields));
	if (!more) {
		log_error(in->log, "out of memory");
		return NULL;
	}
	in->fields = more;
	f = &in->fields[in->num_fields++];
	*f = (struct input_field){ .type = type };
	memcpy(f->name, name, strlen(name) + 1);
	return f;
}

uint64_t input_array_size(const struct input_field *f)
{
	uint64_t size = field_dtype_size(f->dtype);

	for (uint32_t i = 0; i < f->ndim; i++)
		size *= f->shape[i];
	return size;
}

bool input_has_extension(const char *name, const char *extensions)
{
	const char *dot = strrchr(name, '.');
	size_t n;

	for (; dot && *extensions; extensions += n + (extensions[n] == '|')) {
		n = strcspn(extensions, "|");
		if (strlen(dot + 1) == n &&
		    strncasecmp(dot + 1, extensions, n) == 0)
			return true;
	}
	return false;
}
