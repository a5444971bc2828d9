/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/feed/synthetic_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/log.h"
#include "fs/base/util/rng.h"
#include "fs/base/util/typed.h"
#include "fs/data/dataset/field.h"
#include "loader/pipeline/text/parse.h"

/* Limits that keep sums of sizes, over rows and fields, from overflowing. */
static const uint64_t ROW_BYTES_MAX = (uint64_t)1 << 32;

enum { IMAGE_SIDE_MAX = UINT16_MAX, IMAGE_CHANNELS = 3 };

static const struct typed any_count = TYPED_STRICT_IN(1, UINT64_MAX);
static const struct typed sample_count = TYPED_STRICT_IN(1, (uint64_t)1 << 48);
static const struct typed memory_size = TYPED_SIZE_IN(1, UINT64_MAX);

/* A type that a field can have. */
struct kind {
	const char *name;
	enum dtype dtype;
	enum beton_type type;
	uint64_t limit; /* default limit; 0: not an integer */
	uint64_t limit_max;
};

/* Default limits of integers are small, so that any model accepts them as
   labels. */
static const struct kind kinds[] = {
	{ "bool", DTYPE_B1, BETON_TYPE_NDARRAY, 2, 2 },
	{ "int8", DTYPE_I1, BETON_TYPE_NDARRAY, 2, 1 << 7 },
	{ "uint8", DTYPE_U1, BETON_TYPE_NDARRAY, 256, 1 << 8 },
	{ "int16", DTYPE_I2, BETON_TYPE_NDARRAY, 2, 1 << 15 },
	{ "uint16", DTYPE_U2, BETON_TYPE_NDARRAY, 2, 1 << 16 },
	{ "int32", DTYPE_I4, BETON_TYPE_NDARRAY, 2, (uint64_t)1 << 31 },
	{ "uint32", DTYPE_U4, BETON_TYPE_NDARRAY, 2, (uint64_t)1 << 32 },
	{ "int64", DTYPE_I8, BETON_TYPE_NDARRAY, 2, (uint64_t)1 << 63 },
	{ "uint64", DTYPE_U8, BETON_TYPE_NDARRAY, 2, UINT64_MAX },
	{ "float16", DTYPE_F2, BETON_TYPE_NDARRAY, 0, 0 },
	{ "float32", DTYPE_F4, BETON_TYPE_NDARRAY, 0, 0 },
	{ "float64", DTYPE_F8, BETON_TYPE_NDARRAY, 0, 0 },
	{ "bytes", DTYPE_U1, BETON_TYPE_BYTES, 256, 0 },
	{ "json", DTYPE_U1, BETON_TYPE_JSON, 256, 0 },
};

/* A parser's position in the text of a value. */
struct synthetic_text_reader {
	const struct diagnostic *c;
	size_t at;	  /* offset of the value in the whole text */
	const char *rest; /* rest of the value's text */
};

static int wrong(const struct synthetic_text_reader *in, const char *what)
{
	return complain(in->c, in->at, "%s", what);
}

static void skip_blanks(struct synthetic_text_reader *in)
{
	in->rest += strspn(in->rest, " \t");
}

static bool take_char(struct synthetic_text_reader *in, char c)
{
	skip_blanks(in);
	if (*in->rest != c)
		return false;
	in->rest++;
	skip_blanks(in);
	return true;
}

/* `what` begins the message about anything else, which `example` ends. */
static int take_count(struct synthetic_text_reader *in, const char *what,
		      const char *example, uint64_t *out)
{
	size_t size = strspn(in->rest, "0123456789");
	char expected[TYPED_EXPECTED_SIZE];

	if (!typed_parse(&any_count, in->rest, size, out))
		return complain(in->c, in->at, "%s is %s, as in \"%s\"", what,
				typed_expected(&any_count, expected), example);
	in->rest += size;
	return 0;
}

/* Reads the name of a type. NULL: unknown, and a message was written. */
static const struct kind *take_kind(struct synthetic_text_reader *in)
{
	size_t size = strcspn(in->rest, "[< \t");

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strlen(kinds[i].name) == size &&
		    !memcmp(in->rest, kinds[i].name, size)) {
			in->rest += size;
			return &kinds[i];
		}
	}
	complain(in->c, in->at,
		 "no type is called `%.*s'; they are bool, int8 to int64, "
		 "uint8 to uint64, float16 to float64, bytes, json",
		 (int)min_u64(size, 24), in->rest);
	return NULL;
}

/* Reads a shape in brackets. The brackets are optional and may be empty. */
static int take_shape(struct synthetic_text_reader *in,
		      struct synthetic_field *f)
{
	uint64_t bytes = dtype_size(f->dtype);
	int r;

	f->count = 1;
	if (!take_char(in, '[') || take_char(in, ']'))
		return 0;
	do {
		if (f->ndim == BETON_MAX_NDIM)
			return wrong(in, "a value has so many sides");
		r = take_count(in, "a side of a shape", "uint8[224,224,3]",
			       &f->shape[f->ndim]);
		if (r)
			return r;
		if (!mul_ok(bytes, f->shape[f->ndim], &bytes) ||
		    bytes > ROW_BYTES_MAX)
			return wrong(in, "a value is of at most 4 GiB");
		f->count *= f->shape[f->ndim++];
	} while (take_char(in, ','));
	return take_char(in, ']') ? 0
				  : wrong(in, "`]' is missing in the shape");
}

static int take_limit(struct synthetic_text_reader *in, const struct kind *kind,
		      struct synthetic_field *f)
{
	int r;

	f->limit = kind->limit;
	if (!take_char(in, '<'))
		return 0;
	if (!kind->limit_max)
		return wrong(in, "only integers have a limit");
	r = take_count(in, "a limit", "int64<1000", &f->limit);
	if (r)
		return r;
	return f->limit <= kind->limit_max
		       ? 0
		       : wrong(in, "the limit is above the type's");
}

/* The field type that a dataset has for this kind and shape. uint8[H,W,3] is an
   image. */
static enum beton_type type_of(const struct kind *kind,
			       const struct synthetic_field *f)
{
	if (f->dtype == DTYPE_U1 && f->ndim == 3 &&
	    f->shape[2] == IMAGE_CHANNELS && f->shape[0] <= IMAGE_SIDE_MAX &&
	    f->shape[1] <= IMAGE_SIDE_MAX)
		return BETON_TYPE_IMAGE;
	if (!f->ndim && f->dtype == DTYPE_I8)
		return BETON_TYPE_INT;
	if (!f->ndim && f->dtype == DTYPE_F8)
		return BETON_TYPE_FLOAT;
	return kind->type;
}

/* Reads TYPE, TYPE[SHAPE], TYPE<LIMIT or TYPE[SHAPE]<LIMIT. */
static int read_value(struct synthetic_text_reader *in,
		      struct synthetic_field *f)
{
	const struct kind *kind;
	int r;

	skip_blanks(in);
	kind = take_kind(in);
	if (!kind)
		return -EINVAL;
	f->dtype = kind->dtype;
	r = take_shape(in, f);
	if (!r)
		r = take_limit(in, kind, f);
	skip_blanks(in);
	if (!r && *in->rest)
		r = wrong(in, "a value is TYPE[SHAPE]<LIMIT, of which shape "
			      "and limit may be left out");
	if (!r && field_column(kind->type) == COLUMN_RAGGED && f->ndim > 1)
		r = wrong(in, "bytes and JSON have one length");
	f->type = type_of(kind, f);
	if (f->type == BETON_TYPE_JSON && !f->ndim)
		f->count = strlen("{}");
	return r;
}

/* --- synthetic(SAMPLES, FIELD=VALUE, ...) --- */

static int read_samples(const struct diagnostic *c, const struct parse_arg *arg,
			struct synthetic *f)
{
	char expected[TYPED_EXPECTED_SIZE];

	if (typed_parse_string(&sample_count, arg->value, &f->samples))
		return 0;
	return complain(c, arg->value_at,
			"the number of samples is %s, not `%.24s'",
			typed_expected(&sample_count, expected), arg->value);
}

static int read_field(const struct diagnostic *c, const struct parse_arg *arg,
		      struct synthetic *f)
{
	struct synthetic_field *field = &f->fields[f->num_fields];
	struct synthetic_text_reader in = { c, arg->value_at, arg->value };

	if (!arg->name)
		return complain(c, arg->value_at,
				"a field is NAME=TYPE, as label=int64");
	if (!*arg->name || strlen(arg->name) > SYNTHETIC_NAME_MAX)
		return complain(c, arg->name_at,
				"a field's name is of 1 to %d bytes",
				SYNTHETIC_NAME_MAX);
	for (uint32_t i = 0; i < f->num_fields; i++) {
		if (!strcmp(f->fields[i].name, arg->name))
			return complain(c, arg->name_at, "a second field `%s'",
					arg->name);
	}
	strcpy(field->name, arg->name);
	f->num_fields++;
	return read_value(&in, field);
}

static int read_dataset(const struct diagnostic *c, const struct parse *parse,
			const struct parse_stage *stage, struct synthetic *f)
{
	const struct parse_arg *args = &parse->args[stage->first_arg];
	int r;

	if (stage->num_args < 2 || args[0].name)
		return complain(
			c, stage->at,
			"samples and fields are missing: synthetic(10000, "
			"image=\"uint8[224,224,3]\", "
			"label=\"int64<1000\")");
	if (stage->num_args - 1 > SYNTHETIC_FIELDS_MAX)
		return complain(c, stage->at, "more than %d fields",
				SYNTHETIC_FIELDS_MAX);
	f->fields = calloc(stage->num_args - 1, sizeof(*f->fields));
	if (!f->fields)
		return -ENOMEM;
	r = read_samples(c, &args[0], f);
	for (size_t i = 1; !r && i < stage->num_args; i++)
		r = read_field(c, &args[i], f);
	return r;
}

/* --- constant, memory(SIZE) --- */

static int read_constant(const struct diagnostic *c, const struct parse *parse,
			 const struct parse_stage *stage, struct synthetic *f)
{
	(void)parse;
	f->replay = SYNTHETIC_REPLAY_CONSTANT;
	if (!stage->num_args)
		return 0;
	return complain(c, stage->at, "constant takes no arguments");
}

static int read_memory(const struct diagnostic *c, const struct parse *parse,
		       const struct parse_stage *stage, struct synthetic *f)
{
	const struct parse_arg *arg = &parse->args[stage->first_arg];

	f->replay = SYNTHETIC_REPLAY_MEMORY;
	if (!stage->num_args)
		return 0;
	if (stage->num_args == 1 && !arg->name &&
	    typed_parse_string(&memory_size, arg->value, &f->memory))
		return 0;
	return complain(c, stage->at,
			"memory takes one size above 0, as in memory(4GiB)");
}

/* --- the whole text --- */

static const struct stage_row {
	const char *name;
	bool is_first; /* first in the text; else last */
	int (*read)(const struct diagnostic *c, const struct parse *parse,
		    const struct parse_stage *stage, struct synthetic *f);
} stages[] = {
	{ "synthetic", true, read_dataset },
	{ "constant", false, read_constant },
	{ "memory", false, read_memory },
};

static int refuse_lists(const struct diagnostic *c, const struct parse *parse,
			const struct parse_stage *stage)
{
	for (size_t i = 0; i < stage->num_args; i++) {
		const struct parse_arg *arg =
			&parse->args[stage->first_arg + i];

		if (!arg->is_plain)
			return complain(c, arg->value_at,
					"arguments of a source are plain; "
					"quote types: \"uint8[224,224,3]\"");
	}
	return 0;
}

static int read_stage(const struct diagnostic *c, const struct parse *parse,
		      const struct parse_stage *stage, struct synthetic *f)
{
	int r = refuse_lists(c, parse, stage);

	if (r)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(stages); i++) {
		if (stage->quoted || stage->file ||
		    strcmp(stages[i].name, stage->name) != 0)
			continue;
		if (f->replay || (stages[i].is_first && f->samples))
			return complain(c, stage->at, "%s cannot come here",
					stage->name);
		return stages[i].read(c, parse, stage, f);
	}
	return complain(c, stage->at,
			"no source is called `%.40s'; there are constant, "
			"memory, synthetic(...)",
			stage->name);
}

static int read_text(const struct diagnostic *c, const struct parse *parse,
		     struct synthetic *f)
{
	const struct parse_statement *s = parse->statements;
	int r = 0;

	if (parse->num_statements > 1)
		return complain(c, s[1].at, "a source is one statement");
	if (parse->num_members)
		return complain(c, s->at, "a source is a word");
	if (parse->num_statements && s->name)
		return complain(c, s->at, "a source has no name");
	for (size_t i = 0; !r && i < parse->num_stages; i++)
		r = read_stage(c, parse, &parse->stages[i], f);
	return r;
}

/* Computes the fingerprint, which depends on the dataset's samples and fields
   only. */
static void fill_print(struct synthetic *f)
{
	uint64_t print[2] = { f->samples };

	for (uint32_t i = 0; i < f->num_fields; i++) {
		const struct synthetic_field *field = &f->fields[i];
		const uint64_t words[] = {
			print[0],
			rng_key_of_text(field->name),
			field->type,
			field->dtype,
			rng_key(field->shape, field->ndim),
			field->limit,
		};

		print[0] = rng_key(words, ARRAY_LEN(words));
	}
	print[1] = rng_mix(print[0]);
	memcpy(f->fingerprint, print, sizeof(f->fingerprint));
}

static int parse(const char *text, struct synthetic *out, char *error,
		 size_t error_size)
{
	struct diagnostic c = { text ? text : "", error, error_size };
	struct synthetic f = { .replay = SYNTHETIC_REPLAY_NONE };
	struct parse words;
	int r = parse_text(&c, &words);

	if (r)
		return r;
	r = read_text(&c, &words, &f);
	parse_fini(&words);
	if (r) {
		synthetic_fini(&f);
		return r;
	}
	fill_print(&f);
	*out = f;
	return 0;
}

/* The text of the variable that replaces the source; NULL: there is none. */
static const char *set_source(void)
{
	const char *text = secure_getenv("BETON_SYNTHETIC");

	return text && *text ? text : NULL;
}

/* Warns that the variable is set, in case it was left over from another run. */
static void warn(const char *text, struct log *log, bool has_log)
{
	char line[256];

	snprintf(line, sizeof(line),
		 "BETON_SYNTHETIC is `%.100s': batches are synthetic, for "
		 "measuring only",
		 text);
	log_warning(log, "%s", line);
	if (!has_log)
		fprintf(stderr, "beton: %s\n", line);
}

int synthetic_open(const char *source, struct log *log, bool has_log,
		   struct synthetic *out)
{
	const char *set = set_source();
	char error[512];
	int r = parse(set ? set : source, out, error, sizeof(error));

	if (r == -EINVAL)
		log_error(log, "%s: %s", set ? "BETON_SYNTHETIC" : "source",
			  error);
	else if (!r && set)
		warn(set, log, has_log);
	return r;
}

void synthetic_fini(struct synthetic *f)
{
	free(f->fields);
	*f = (struct synthetic){ .replay = SYNTHETIC_REPLAY_NONE };
}

const char *synthetic_name(const struct synthetic *f)
{
	if (f->replay == SYNTHETIC_REPLAY_CONSTANT)
		return "constant";
	if (f->replay == SYNTHETIC_REPLAY_MEMORY)
		return "memory";
	return f->samples ? "synthetic" : NULL;
}
