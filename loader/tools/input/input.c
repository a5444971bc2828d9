/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "fs/files/paths.h"
#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "fs/util/suggest.h"

/* The first kind that matches a path takes it. */
static const struct input_kind *const kinds[] = {
	&input_beton,	 &input_parquet, &input_hdf5,	   &input_lmdb,
	&input_mds,	 &input_litdata, &input_directory, &input_list,
	&input_manifest, &input_numpy,	 &input_tfrecord,  &input_webdataset,
};

const struct input_kind *const *input_kinds(size_t *n)
{
	*n = ARRAY_LEN(kinds);
	return kinds;
}

/* --- kinds --------------------------------------------------------------- */

static int read_head(struct input_path *path, struct log *log)
{
	cleanup_fd int fd =
		open(path->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : pread(fd, path->head, sizeof(path->head), 0);

	if (n < 0) {
		log_error(log, "%s: %s", path->path, strerror(errno));
		return -errno;
	}
	path->head_size = (size_t)n;
	return 0;
}

static int look_at(const char *source, struct log *log, struct input_path *out)
{
	*out = (struct input_path){ .path = source };
	if (!strcmp(source, "-") || paths_is_url(source))
		return 0;
	if (stat(source, &out->st) < 0) {
		log_error(log, "%s: %s", source, strerror(errno));
		return -errno;
	}
	return S_ISREG(out->st.st_mode) ? read_head(out, log) : 0;
}

static const struct input_kind *find_kind(const struct input_path *path)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i]->matches(path))
			return kinds[i];
	}
	return NULL;
}

static int refuse_path(const struct input_path *path, struct log *log)
{
	log_error(log,
		  "%s: not a source: expected a directory of images or a file "
		  "of a kind that beton-sources(7) lists",
		  path->path);
	return -EINVAL;
}

/* All sources have one kind. */
static int choose_kind(const struct input_path *paths, size_t n,
		       struct log *log, const struct input_kind **out)
{
	const struct input_kind *kind = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct input_kind *k = find_kind(&paths[i]);

		if (!k)
			return refuse_path(&paths[i], log);
		if (kind && k != kind) {
			log_error(log,
				  "sources of two kinds: %s: %s, and %s: %s: "
				  "make a dataset of each kind, and join them "
				  "with beton merge",
				  paths[0].path, kind->words, paths[i].path,
				  k->words);
			return -EINVAL;
		}
		kind = k;
	}
	if (kind->missing) {
		log_error(log, "%s: %s: this build lacks %s, and build again",
			  paths[0].path, kind->words, kind->missing);
		return -ENOTSUP;
	}
	*out = kind;
	return 0;
}

int input_open(char *const *sources, size_t num_sources, struct log *log,
	       struct input **out)
{
	cleanup_free struct input_path *paths =
		calloc(num_sources + 1, sizeof(*paths));
	const struct input_kind *kind = NULL;
	int r = 0;

	if (!paths) {
		log_error(log, "out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < num_sources && !r; i++)
		r = look_at(sources[i], log, &paths[i]);
	r = r ? r : choose_kind(paths, num_sources, log, &kind);
	return r ? r : kind->open(paths, num_sources, log, out);
}

void input_close(struct input *in)
{
	if (in)
		in->kind->close(in);
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
