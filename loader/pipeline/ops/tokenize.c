/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/pipeline/list/vocabulary.h"
#include "loader/pipeline/list/words.h"

enum { VOCABULARY, LOWER, UNKNOWN, BEGIN, END };

/* Maximum number of bytes of a character. */
enum { WORD_BYTES = 4 * VOCABULARY_WORD_MAX };

/* Keep the order of the choices of lower. */
enum { TRUE, FALSE };

static const struct param params[] = {
	[VOCABULARY] = { .name = "vocabulary",
			 .kind = PARAM_NAME,
			 .help = "file of one token per line, such as BERT's vocab.txt" },
	[LOWER] = { .name = "lower",
		    .kind = PARAM_CHOICE,
		    .initial = "true",
		    .choices = "true|false",
		    .help = "convert ASCII capitals to lower case" },
	[UNKNOWN] = { .name = "unknown",
		      .kind = PARAM_NAME,
		      .initial = "[UNK]",
		      .help = "token of words that have none" },
	[BEGIN] = { .name = "begin",
		    .kind = PARAM_NAME,
		    .initial = "",
		    .help = "token before the text, such as \"[CLS]\"" },
	[END] = { .name = "end",
		  .kind = PARAM_NAME,
		  .initial = "",
		  .help = "token after the text, such as \"[SEP]\"" },
	{ 0 },
};

struct tokenizer {
	struct vocabulary *vocabulary;
	int32_t unknown;
	int32_t begin; /* -1: no such token, like end */
	int32_t end;
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	if (in->kind != TYPE_RAGGED || !in->fresh)
		return "works on bytes fields only, as the first operation";
	out->kind = TYPE_LIST;
	out->is_array = false;
	out->dtype = DTYPE_I4;
	out->ndim = 0;
	return NULL;
}

static int find(const struct tokenizer *t, const struct arg *arg, int32_t *id,
		char *why, size_t size)
{
	*id = -1;
	if (!arg->text || !*arg->text)
		return 0;
	*id = vocabulary_find(t->vocabulary, arg->text, strlen(arg->text));
	if (*id >= 0)
		return 0;
	snprintf(why, size, "the vocabulary has no token `%s'", arg->text);
	return -EINVAL;
}

static void unload(void *loaded)
{
	struct tokenizer *t = loaded;

	if (t)
		vocabulary_close(t->vocabulary);
	free(t);
}

static int load(struct args *args, char *why, size_t size)
{
	struct tokenizer *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	r = vocabulary_open(args->arg[VOCABULARY].text, &t->vocabulary, why,
			    size);
	r = r ? r : find(t, &args->arg[UNKNOWN], &t->unknown, why, size);
	r = r ? r : find(t, &args->arg[BEGIN], &t->begin, why, size);
	r = r ? r : find(t, &args->arg[END], &t->end, why, size);
	if (r)
		unload(t);
	else
		args->loaded = t;
	return r;
}

/* Each token has at least one byte of the text, except the first and the last.
 */
static uint64_t most(const struct args *args, uint64_t bytes)
{
	(void)args;
	return bytes < OP_ROWS_MAX ? bytes + 2 : OP_ROWS_MAX;
}

static int32_t *put_word(const struct tokenizer *t, const char *word,
			 size_t size, size_t characters, int32_t *to)
{
	size_t count = 0;

	if (characters <= VOCABULARY_WORD_MAX)
		count = vocabulary_cut(t->vocabulary, word, size, to);
	if (count)
		return to + count;
	*to = t->unknown;
	return to + 1;
}

static const char *list(const struct args *args, const struct op_sample *sample,
			const struct list *in, const struct type *out, void *to,
			uint64_t *rows)
{
	const struct tokenizer *t = args->loaded;
	struct words words = { in->values, (const char *)in->values + in->rows,
			       args->arg[LOWER].choice == TRUE };
	char word[WORD_BYTES];
	int32_t *at = to;
	size_t size, n;

	(void)sample;
	(void)out;
	if (in->rows > OP_ROWS_MAX - 2)
		return "the text has more than 268435454 bytes";
	if (t->begin >= 0)
		*at++ = t->begin;
	while ((n = words_next(&words, word, sizeof(word), &size)))
		at = put_word(t, word, size, n, at);
	if (t->end >= 0)
		*at++ = t->end;
	*rows = (uint64_t)(at - (int32_t *)to);
	return NULL;
}

const struct op op_tokenize = {
	.name = "tokenize",
	.help = "Split a text into tokens of a WordPiece vocabulary",
	.kind = OP_LIST,
	.params = params,
	.infer = infer,
	.load = load,
	.unload = unload,
	.list =
		&(const struct op_list){
			.takes_bytes = true,
			.most = most,
			.map = list,
		},
};
