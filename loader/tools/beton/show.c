/* SPDX-License-Identifier: Apache-2.0 */
/* beton show: prints the contents of a batch file, and their offsets. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/field.h"
#include "fs/source/url/url.h"
#include "loader/run/feed/batch_view.h"
#include "loader/tools/beton/command.h"

struct show_options {
	bool json;
};

static const struct option_row rows[] = {
	{ "json", .kind = OPTION_FLAG,
	  .offset = offsetof(struct show_options, json),
	  .help = "Print the header, the fields and the offset of every value "
		  "as JSON" },
};

/* Reads a whole file. The caller frees *bytes. */
static int read_whole(const char *path, uint8_t **bytes, uint64_t *size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	cleanup_free uint8_t *buf = NULL;
	struct stat st;
	uint64_t at = 0;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -BETON_ENOTBETON;
	buf = malloc((size_t)st.st_size + 1);
	if (!buf)
		return -ENOMEM;
	while (n > 0 && at < (uint64_t)st.st_size) {
		n = pread(fd, buf + at, (size_t)st.st_size - at, (off_t)at);
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (uint64_t)n : 0;
	}
	*bytes = steal(buf);
	*size = at;
	return 0;
}

static const char *type_name(const struct beton_batch_field *f)
{
	const struct field_type *type = field_type_by_id(f->type);

	return type ? type->name : "unknown";
}

static json_t *value_json(const struct batch_view *v, uint32_t field,
			  uint32_t row)
{
	struct batch_view_value value = batch_view_at(v, field, row);
	const char *error = value.error ? strerrorname_np(value.error) : NULL;
	json_t *o = json_pack(
		"{s:I, s:I}", "offset",
		(json_int_t)(value.bytes ? value.bytes - v->bytes : 0), "size",
		(json_int_t)value.size);

	if (field_column(v->fields[field].type) == COLUMN_IMAGE) {
		json_object_set_new(o, "mode",
				    json_string(value.mode == BETON_MODE_RAW
							? "raw"
							: "jpg"));
		json_object_set_new(o, "width", json_integer(value.width));
		json_object_set_new(o, "height", json_integer(value.height));
	}
	if (value.error)
		json_object_set_new(o, "error",
				    json_string(error ? error : "error"));
	return o;
}

static json_t *field_json(const struct batch_view *v, uint32_t i)
{
	const struct beton_batch_field *f = &v->fields[i];
	json_t *values = json_array(), *shape = json_array();

	for (uint32_t row = 0; row < v->header->num_samples; row++)
		json_array_append_new(values, value_json(v, i, row));
	for (uint32_t k = 0; k < f->ndim; k++)
		json_array_append_new(shape,
				      json_integer((json_int_t)f->shape[k]));
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:o}",
			 "name", f->name, "stem", f->stem, "type", type_name(f),
			 "dtype", f->dtype, "column",
			 f->column == BETON_COLUMN_FIXED      ? "fixed"
			 : f->column == BETON_COLUMN_VARIABLE ? "variable"
							      : "none",
			 "shape", shape, "column_off",
			 (json_int_t)f->column_off, "error_off",
			 (json_int_t)f->error_off, "values", values);
}

static int print_json(const struct batch_view *v)
{
	const struct beton_batch_header *h = v->header;
	json_t *ids = json_array(), *fields = json_array(), *o;
	char print[2 * BETON_FINGERPRINT_SIZE + 1];

	for (uint32_t row = 0; row < h->num_samples; row++)
		json_array_append_new(ids,
				      json_integer((json_int_t)v->ids[row]));
	for (uint32_t i = 0; i < h->num_fields; i++)
		json_array_append_new(fields, field_json(v, i));
	for (size_t i = 0; i < BETON_FINGERPRINT_SIZE; i++)
		sprintf(print + 2 * i, "%02x", h->fingerprint[i]);
	o = json_pack("{s:i, s:s%, s:I, s:I, s:I, s:I, s:s, s:I, s:o, s:o}",
		      "version", (int)h->version, "spec", v->spec,
		      (size_t)h->spec_size, "epoch", (json_int_t)h->epoch,
		      "batch", (json_int_t)h->batch, "batches",
		      (json_int_t)h->batches, "num_samples",
		      (json_int_t)h->num_samples, "fingerprint", print,
		      "file_size", (json_int_t)h->file_size, "ids", ids,
		      "fields", fields);
	if (!o)
		return -ENOMEM;
	json_dumpf(o, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(o);
	return 0;
}

static void print_shape(const struct beton_batch_field *f, uint32_t n)
{
	printf("(%u", n);
	for (uint32_t k = 0; k < f->ndim; k++)
		printf(", %llu", (unsigned long long)f->shape[k]);
	printf(")");
}

static void print_field(const struct batch_view *v, uint32_t i)
{
	const struct beton_batch_field *f = &v->fields[i];
	uint32_t errors = 0;

	for (uint32_t row = 0; row < v->header->num_samples; row++)
		errors += batch_view_at(v, i, row).error != 0;
	printf("  %-16s %-12s %-6s ", f->stem, type_name(f), f->dtype);
	if (f->column == BETON_COLUMN_FIXED)
		print_shape(f, v->header->num_samples);
	else
		printf("%u values of their own sizes", v->header->num_samples);
	printf(", %llu bytes at %llu", (unsigned long long)f->column_size,
	       (unsigned long long)f->column_off);
	if (errors)
		printf(", %u could not be read", errors);
	putchar('\n');
}

static void print_human(const struct batch_view *v)
{
	typedef unsigned long long ull;
	const struct beton_batch_header *h = v->header;

	printf("batch %llu of %llu, epoch %llu, of %.*s\n", (ull)h->batch,
	       (ull)h->batches, (ull)h->epoch, (int)h->spec_size, v->spec);
	printf("%u samples of %llu, %llu bytes; ids at %llu:", h->num_samples,
	       (ull)h->samples, (ull)h->file_size, (ull)h->ids_off);
	for (uint32_t row = 0; row < h->num_samples && row < 8; row++)
		printf(" %llu", (ull)v->ids[row]);
	printf("%s\n", h->num_samples > 8 ? " ..." : "");
	for (uint32_t i = 0; i < h->num_fields; i++)
		print_field(v, i);
}

static int show(const struct invocation *call)
{
	const struct show_options *o = call->options;
	const char *path = call->operands[0];
	cleanup_free uint8_t *bytes = NULL;
	char why[BATCH_VIEW_WHY_SIZE] = "";
	struct batch_view view;
	uint64_t size = 0;
	int r = read_whole(path, &bytes, &size);

	if (!r)
		r = batch_view_init(&view, bytes, size, why);
	if (r) {
		cleanup_free char *shown = url_visible(path);

		log_error(call->log, "%s: %s", shown ? shown : "URL",
			  why[0]		  ? why
			  : r == -BETON_ENOTBETON ? "not a regular file"
						  : strerror(-r));
		return EXIT_FAILURE;
	}
	if (!o->json) {
		print_human(&view);
		return EXIT_SUCCESS;
	}
	return print_json(&view) ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct command command_show = {
	.name = "show",
	.operands = "BATCHFILE",
	.min_operands = 1,
	.max_operands = 1,
	.summary = "Show what a batch file contains, and where",
	.examples = "  beton show mnt/batches/default/0/000000.batch\n"
		    "  beton show --json mnt/batches/batch=4/0/000001.batch\n",
	.rows = rows,
	.num_rows = ARRAY_LEN(rows),
	.options_size = sizeof(struct show_options),
	.run = show,
};
