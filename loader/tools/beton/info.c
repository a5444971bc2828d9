/* SPDX-License-Identifier: Apache-2.0 */
/* beton info: prints the contents of a dataset, and how well a sampling spec
   shuffles it. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/base/order/spec_text.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/base/util/npy.h"
#include "fs/data/dataset/joined.h"
#include "fs/data/dataset/value.h"
#include "fs/source/local/options.h"
#include "fs/source/url/url.h"
#include "loader/tools/beton/command.h"
#include "loader/tools/beton/shuffle_quality.h"
#include "loader/tools/ui/html.h"
#include "loader/tools/ui/python.h"

enum {
	PATH_SIZE = 4096,
	CLASSES_SHOWN = 10,
	IMAGES_MAX = 2000,
	NUMBER_SIZE = 24,
};

struct info_options {
	bool json;
	const char *spec;
	const char *subset;
	const char *html;
	uint64_t thumbnails;
};

#define AT(member) .offset = offsetof(struct info_options, member)

static const struct option_row rows[] = {
	{ "spec", .kind = OPTION_TEXT, AT(spec), .argument = "SPEC",
	  .help = "Resolve a sampling spec, beton-orders(7), and measure how "
		  "well it shuffles" },
	{ "subset", .kind = OPTION_TEXT, AT(subset), .argument = "NAME:FILE",
	  .help = "Define the subset NAME of SPEC by a FILE of sample ids" },
	{ "html", .kind = OPTION_TEXT, AT(html), .argument = "FILE",
	  .help = "Write an HTML page with images, class balance and sizes "
		  "to FILE; - is standard output" },
	{ "thumbnails", .kind = OPTION_NUMBER, AT(thumbnails),
	  .max = IMAGES_MAX, .argument = "N",
	  .help = "Show at most N images on the HTML page (default: 100)" },
	{ "json", .kind = OPTION_FLAG, AT(json),
	  .help = "Print the contents of dataset.json; with --spec, the "
		  "resolved spec, its shuffle quality and the order on disk" },
};

static const struct info_options defaults = { .thumbnails = 100 };

/* A dataset, or the schema of a mounted one. */
struct info_subject {
	const char *path;
	struct log *log;
	struct dataset *ds; /* NULL: a mount */
	json_t *schema;
	const char *label; /* file-name form of the first int field, or NULL */
	uint32_t label_field;
	int label_fd; /* of a mount's column, or -1 */
	struct subset *subsets;
};

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Returns why a directory is not a dataset, and the remedy. */
static const char *why_not(const struct info_subject *s, int error)
{
	char name[PATH_SIZE];

	snprintf(name, sizeof(name), "%s/.betonfs", s->path);
	if (error == ENOENT && is_directory(name))
		return "a mount of several datasets: choose one of its "
		       "directories";
	if (error == ENOENT)
		return "a directory, but not a mount of betonfs";
	if (error == ENOTCONN)
		return "its daemon has died: mount the dataset again";
	return strerror(error);
}

static int open_mount(struct info_subject *s)
{
	char name[PATH_SIZE];
	json_error_t error;

	snprintf(name, sizeof(name), "%s/dataset.json", s->path);
	if (access(name, R_OK)) {
		int r = errno;

		log_error(s->log, "%s: %s", s->path, why_not(s, r));
		return -r;
	}
	s->schema = json_load_file(name, 0, &error);
	if (s->schema)
		return 0;
	log_error(s->log, "%s: %s", name, error.text);
	return -EIO;
}

static int open_file(struct info_subject *s)
{
	cleanup_free char *text = NULL;
	int r = joined_open(s->path, NULL, s->log, &s->ds);

	if (!r)
		r = dataset_json(s->ds, &text);
	if (r)
		return r;
	s->schema = json_loads(text, 0, NULL);
	return s->schema ? 0 : -ENOMEM;
}

static void find_label(struct info_subject *s)
{
	json_t *f;
	size_t i;

	json_array_foreach(json_object_get(s->schema, "fields"), i, f)
	{
		const char *type =
			json_string_value(json_object_get(f, "type"));

		if (!s->label && type && !strcmp(type, "int") &&
		    !json_object_get(f, "unusable")) {
			s->label =
				json_string_value(json_object_get(f, "stem"));
			s->label_field = (uint32_t)i;
		}
	}
}

static int subject_open(struct info_subject *s)
{
	int r = is_directory(s->path) ? open_mount(s) : open_file(s);

	if (!r)
		find_label(s);
	return r;
}

static void subject_close(struct info_subject *s)
{
	json_decref(s->schema);
	subset_close_all(s->subsets);
	dataset_close(s->ds);
	if (s->label_fd >= 0)
		close(s->label_fd);
}

static int label_of(void *arg, uint64_t sample, int64_t *label)
{
	struct info_subject *s = arg;
	struct value v;
	char name[PATH_SIZE], head[NPY_HEADER_MAX];
	uint64_t n = sample;
	size_t skip = npy_header(head, "<i8", 1, &n);
	int r;

	if (s->ds) {
		r = dataset_value_at(s->ds, s->label_field, sample, &v);
		memcpy(label, v.scalar, sizeof(*label));
		return r;
	}
	if (s->label_fd < 0) {
		snprintf(name, sizeof(name), "%s/columns/%s.npy", s->path,
			 s->label);
		s->label_fd = open(name, O_RDONLY | O_CLOEXEC);
	}
	/*
	 * The header of a column has the same size for any length of the
	 * dataset.
	 */
	if (pread(s->label_fd, label, sizeof(*label),
		  (off_t)(skip + 8 * sample)) != sizeof(*label)) {
		log_error(s->log, "%s: columns/%s.npy: %s", s->path, s->label,
			  strerror(errno ? errno : EIO));
		return -EIO;
	}
	return 0;
}

static uint64_t number(const struct info_subject *s, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(s->schema, key));
}

static void print_quality(const struct shuffle_quality *q)
{
	if (q->of_labels)
		printf("shuffle quality: %.1f classes per batch, %.0f in the worst (random order: %.1f, %.0f), over %llu batches\n",
		       q->spec.mean, q->spec.worst, q->random.mean,
		       q->random.worst, (unsigned long long)q->batches);
	else
		printf("shuffle quality: %.2f bits of entropy in the gaps between ids, %.2f in the worst batch (random order: %.2f, %.2f), over %llu batches\n",
		       q->spec.mean, q->spec.worst, q->random.mean,
		       q->random.worst, (unsigned long long)q->batches);
}

static json_t *measure_json(const struct shuffle_quality_measure *m)
{
	return json_pack("{s:f, s:f}", "mean", m->mean, "worst", m->worst);
}

static void print_classes(json_t *classes)
{
	size_t n = json_array_size(classes), num = min_u64(n, CLASSES_SHOWN);

	printf(" %zu classes: ", n);
	for (size_t i = 0; i < num; i++)
		printf("%s%s", i ? ", " : "",
		       json_string_value(json_array_get(classes, i)));
	printf("%s", n > num ? ", ..." : "");
}

static void print_field(json_t *f)
{
	const char *name = "", *stem = "", *type = "", *dtype = "", *bad = NULL;
	json_t *shape = NULL, *classes = NULL, *dim;
	size_t i;

	json_unpack(f, "{s:s, s:s, s:s, s?s, s?o, s?s, s?o}", "name", &name,
		    "stem", &stem, "type", &type, "dtype", &dtype, "shape",
		    &shape, "unusable", &bad, "classes", &classes);
	printf("  %-16s %-12s %s", stem, type, dtype);
	if (shape) {
		printf(" (");
		json_array_foreach(shape, i, dim)
			printf("%s%lld", i ? ", " : "",
			       (long long)json_integer_value(dim));
		printf(")");
	}
	if (bad)
		printf(" not usable: %s", bad);
	if (classes)
		print_classes(classes);
	putchar('\n');
}

/* The order on disk by the label, and the default orders upon it. */
struct on_disk {
	struct shuffle_quality_on_disk disk;
	struct shuffle_quality quality; /* of quasi_random */
	uint32_t batch;
};

static const char *const disk_orders[] = {
	[DISK_UNIFORM] = "uniform",
	[DISK_SORTED] = "sorted",
	[DISK_RUNS] = "runs",
	[DISK_SHUFFLED] = "shuffled",
};

/* -ENODATA: there is no label, nothing to compare, or a link that labels all
   over the file would have to cross. */
static int look_at_disk(struct info_subject *s, struct on_disk *out)
{
	const struct spec_facts facts = {
		.samples = number(s, "samples"),
		.data_bytes = number(s, "data_bytes"),
	};
	char why[SPEC_WHY_SIZE];
	struct spec spec;
	int r;

	if (!s->ds || !s->label || source_prefetches(s->ds->source) ||
	    spec_parse("order=quasi_random,drop_last=0", &facts, &spec, why))
		return -ENODATA;
	out->batch = (uint32_t)min_u64(spec.batch, facts.samples);
	r = shuffle_quality_look_at_disk(facts.samples, label_of, s,
					 &out->disk);
	return r ? r
		 : shuffle_quality_measure(&spec, label_of, s, &out->quality);
}

static void print_order_on_disk(const struct info_subject *s,
				const struct on_disk *o)
{
	switch (o->disk.order) {
	case DISK_UNIFORM:
		printf("on disk: all samples have one %s\n", s->label);
		return;
	case DISK_SORTED:
		printf("on disk: sorted by %s", s->label);
		break;
	case DISK_RUNS:
		printf("on disk: runs of %.0f samples with one %s", o->disk.run,
		       s->label);
		break;
	case DISK_SHUFFLED:
		printf("on disk: %s is shuffled", s->label);
		break;
	}
	printf("; classes in a batch of %u: %.1f with order=quasi_random, %.1f with order=random\n",
	       o->batch, o->quality.spec.mean, o->quality.random.mean);
}

/* Adds the order on disk, unless there is no label, or the labels cannot be
   read. */
static void add_order_on_disk(struct info_subject *s, json_t *to)
{
	struct on_disk o;

	if (look_at_disk(s, &o))
		return;
	json_object_set_new(
		to, "on_disk",
		json_pack("{s:s, s:s, s:f, s:f, s:I, s:i, s:f, s:f}", "field",
			  s->label, "order", disk_orders[o.disk.order], "run",
			  o.disk.run, "shuffled_run", o.disk.shuffled_run,
			  "inspected", (json_int_t)o.disk.samples, "batch",
			  (int)o.batch, "quasi_random", o.quality.spec.mean,
			  "random", o.quality.random.mean));
}

static int print_spec(struct info_subject *s, const struct info_options *o)
{
	const struct spec_facts facts = {
		.samples = number(s, "samples"),
		.data_bytes = number(s, "data_bytes"),
		.subsets = s->subsets,
	};
	char why[SPEC_WHY_SIZE], text[SPEC_TEXT_MAX];
	struct shuffle_quality q = { .batches = 0 };
	struct spec spec;
	json_t *out;
	int r = spec_parse(o->spec, &facts, &spec, why);

	if (r) {
		log_error(s->log, "%s", why);
		return r;
	}
	r = shuffle_quality_measure(&spec, s->label ? label_of : NULL, s, &q);
	if (r && r != -ENODATA)
		return r;
	spec_canonical(&spec, text);
	if (!o->json) {
		printf("%s\n%llu batches\n", text,
		       (unsigned long long)spec_batches(&spec));
		if (q.batches)
			print_quality(&q);
		return 0;
	}
	out = json_pack("{s:s, s:I, s:s, s:I, s:o, s:o}", "spec", text,
			"batches", (json_int_t)spec_batches(&spec), "measure",
			q.of_labels ? "classes" : "entropy", "measured",
			(json_int_t)q.batches, "quality", measure_json(&q.spec),
			"random", measure_json(&q.random));
	add_order_on_disk(s, out);
	json_dumpf(out, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(out);
	return 0;
}

static void print_human(struct info_subject *s)
{
	typedef unsigned long long ull;
	cleanup_free char *shown = url_visible(s->path);
	struct on_disk o;
	json_t *f;
	size_t i;

	name_print(stdout, shown ? shown : "dataset");
	printf(": %llu samples, %llu bytes, %llu pages of %llu bytes\n",
	       (ull)number(s, "samples"), (ull)number(s, "file_size"),
	       (ull)number(s, "pages"), (ull)number(s, "page_size"));
	json_array_foreach(json_object_get(s->schema, "fields"), i, f)
		print_field(f);
	if (!look_at_disk(s, &o))
		print_order_on_disk(s, &o);
}

/* --- page --- */

/* Sets *reads to the reads that finding the size of a value takes. 0: none. */
static int count_reads(struct dataset *ds, size_t *reads)
{
	const struct format *f = &ds->format;

	*reads = 0;
	for (uint32_t i = 0; f->samples && f->itemsize && i < f->num_fields;
	     i++) {
		if (field_is_image(&f->fields[i]))
			return dataset_size_reads(ds, reads);
	}
	return 0;
}

/* Returns numbers of the file that the page shows, as JSON that the caller
   frees. NULL: failed, logged. */
static char *file_facts(struct dataset *ds, struct log *log)
{
	const struct format *f = &ds->format;
	json_int_t pages = (f->table_off - f->first_page) / f->page_size;
	json_int_t metadata = f->meta_off + f->samples * f->itemsize;
	json_int_t table = f->file_size - f->table_off;
	json_t *facts;
	char *text;
	size_t reads;

	if (count_reads(ds, &reads))
		return NULL;
	facts = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "file_size",
			  (json_int_t)f->file_size, "page_size",
			  (json_int_t)f->page_size, "pages", pages, "record",
			  (json_int_t)f->itemsize, "metadata", metadata,
			  "table", table, "reads", (json_int_t)reads);
	text = json_dumps(facts, JSON_COMPACT);
	json_decref(facts);
	if (!text)
		log_error(log, "out of memory");
	return text;
}

static int print_page(FILE *out, void *run)
{
	return python_print(run, out);
}

/* Writes the page, or prints it if `path` is "-". */
static int write_page(const struct info_subject *s, const char *path,
		      const char *const *args)
{
	struct python_run run = { .log = s->log,
				  .program = "beton",
				  .need = "--html",
				  .module = "betonfs._gallery",
				  .args = args };

	return strcmp(path, "-") ? html_save(path, s->log, print_page, &run)
				 : python_exec(&run);
}

static int make_page(struct info_subject *s, const struct invocation *call)
{
	const struct info_options *o = call->options;
	const char *storage = source_options_added();
	cleanup_free char *facts = NULL;
	char images[NUMBER_SIZE];

	/* The files of a mount do not contain the offsets of values. */
	if (!s->ds) {
		log_error(s->log,
			  "%s: --html needs a FILE, but this is a mount",
			  s->path);
		return -EINVAL;
	}
	facts = file_facts(s->ds, s->log);
	if (!facts)
		return -EIO;
	/* The page reads the dataset on its own. */
	dataset_close(steal(s->ds));
	snprintf(images, sizeof(images), "%llu",
		 (unsigned long long)o->thumbnails);
	return write_page(
		s, o->html,
		(const char *[]){ s->path, storage ? storage : "", images,
				  command_is_talkative(call) ? "1" : "0", facts,
				  NULL });
}

static int info(const struct invocation *call)
{
	const struct info_options *o = call->options;
	struct info_subject s = { .path = call->operands[0],
				  .log = call->log,
				  .label_fd = -1 };
	int r;

	if (o->html && (o->json || o->spec)) {
		option_refuse(call->set, call->log,
			      "--html and --%s exclude each other",
			      o->json ? "json" : "spec");
		return BETON_EXIT_USAGE;
	}
	r = subject_open(&s);
	if (!r && o->subset)
		r = subset_open(o->subset, number(&s, "samples"), s.log,
				&s.subsets);
	if (!r && o->html) {
		r = make_page(&s, call);
	} else if (!r && o->spec) {
		r = print_spec(&s, o);
	} else if (!r && o->json) {
		json_dumpf(s.schema, stdout, JSON_INDENT(2));
		putchar('\n');
	} else if (!r) {
		print_human(&s);
	}
	subject_close(&s);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct command command_info = {
	.name = "info",
	.operands = "FILE|MOUNT",
	.min_operands = 1,
	.max_operands = 1,
	.summary =
		"Show a dataset's contents, and how well a sampling spec shuffles it",
	.examples = "  beton info train.beton\n"
		    "  beton info mnt --spec order=quasi_random,batch=256\n"
		    "  beton info train.beton --html train.html\n",
	.rows = rows,
	.num_rows = ARRAY_LEN(rows),
	.options_size = sizeof(struct info_options),
	.defaults = &defaults,
	.run = info,
};
