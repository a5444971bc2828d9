/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/option_text.h"

#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/name.h"

enum { WORDS_SIZE = 256 };

struct flag {
	const char *left;
	const char *help;
};

static const char usage[] =
	"usage: betonfs [OPTION]... [-o KEY[=VALUE],...] DATASET... MOUNTPOINT\n"
	"\n"
	"Mount FFCV datasets (.beton) as directories of ordinary files, and of "
	"batches\nfor training. Several datasets get a directory each. To "
	"unmount, run\n'fusermount3 -u MOUNTPOINT'.\n"
	"\nOptions:\n";

static const struct flag flags[] = {
	{ "-f", "Stay in the foreground" },
	{ "-d", "Stay in the foreground, and print every request" },
	{ "-s", "Serve all requests with one thread" },
	{ "-q, --quiet", "Print errors only" },
	{ "-v, --verbose", "Print more messages" },
	{ "-h, --help", "Print this help" },
	{ "-V, --version", "Print the version, and that of libfuse" },
	{ "--options", "List the keys of -o, one per line" },
};

static const char examples[] =
	"\nExamples:\n"
	"  betonfs train.beton mnt && ls mnt/samples/000042\n"
	"  betonfs train.beton val.beton mnt && ls mnt/train mnt/val\n"
	"  betonfs 'train-*.beton' mnt         # files that are one dataset\n"
	"  betonfs -o order=quasi_random,batch=512 train.beton mnt\n"
	"  betonfs -o disk=/var/cache/beton https://host/train.beton mnt\n"
	"  betonfs -o allow_other,log=/var/log/betonfs.log train.beton /mnt\n"
	"  mount -t fuse.betonfs -o allow_other train.beton /mnt\n"
	"  fusermount3 -u mnt\n"
	"\n"
	"As mount.beton it takes the options -fnsv of mount(8). See "
	"betonfs(8).\n";

/* Prints an option at the left and, from a fixed column on, its help. */
static void print_paragraph(FILE *out, const char *left, const char *help)
{
	for (const char *end; (end = strchr(help, '\n')); help = end + 1) {
		fprintf(out, "  %-24s%.*s\n", left, (int)(end - help), help);
		left = "";
	}
	fprintf(out, "  %-24s%s\n", left, help);
}

/* Prints the help as one line, with a blank for each end of a line. */
static void print_line(FILE *out, const char *help)
{
	for (; *help; help++)
		fputc(*help == '\n' ? ' ' : *help, out);
	fputc('\n', out);
}

/* Writes the words that a function returns, with `between` them. */
static void join_words(const char *(*word_at)(size_t i), const char *between,
		       char *out, size_t size)
{
	const char *word;
	size_t used = 0;

	for (size_t i = 0; (word = word_at(i)) && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s",
					 i ? between : "", word);
}

/* Returns the row's help with its words in place of '@'. */
static const char *help_of(const struct opts_row *row, char *out, size_t size)
{
	const char *mark = strchr(row->help, '@');
	char list[WORDS_SIZE];

	if (!mark)
		return row->help;
	join_words(row->type.word_at, ", ", list, sizeof(list));
	snprintf(out, size, "%.*s%s%s", (int)(mark - row->help), row->help,
		 list, mark + 1);
	return out;
}

void opts_help(FILE *out)
{
	const struct opts_row *row;
	char left[64], text[512];

	fputs(usage, out);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		print_paragraph(out, flags[i].left, flags[i].help);
	fputs("\nKeys of -o:\n", out);
	for (size_t i = 0; (row = opts_row_at(i)); i++) {
		snprintf(left, sizeof(left), "%s%s%s", row->key,
			 row->value ? "=" : "", row->value ? row->value : "");
		print_paragraph(out, left, help_of(row, text, sizeof(text)));
	}
	fputs(examples, out);
}

void opts_list(FILE *out)
{
	const struct opts_row *row;

	for (size_t i = 0; (row = opts_row_at(i)); i++)
		fprintf(out, "%s\n", row->key);
}

void opts_describe(FILE *out)
{
	const struct opts_row *row;
	char text[512], list[WORDS_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		fprintf(out, "flag\t%s\t%s\n", flags[i].left, flags[i].help);
	for (size_t i = 0; (row = opts_row_at(i)); i++) {
		fprintf(out, "key\t%s\t", row->key);
		if (row->type.word_at) {
			join_words(row->type.word_at, "|", list, sizeof(list));
			fputs(list, out);
		} else if (row->value) {
			fputs(row->value, out);
		}
		fputc('\t', out);
		print_line(out, help_of(row, text, sizeof(text)));
	}
}

void opts_print(FILE *out, const char *key, const char *value)
{
	fprintf(out, "%s=", key);
	name_quote(out, value);
	fputc('\n', out);
}

/* Writes "key=value" of a row that is set. Returns false if it is not. */
static bool print_row(FILE *out, const struct options *opts,
		      const struct opts_row *row, const char *before)
{
	uint64_t number;
	const char *text;
	char digits[32];

	switch (row->kind) {
	case OPTS_MOUNT:
	case OPTS_FLAG:
		if (!*(bool *)opts_member(opts, row))
			return false;
		fprintf(out, "%s%s", before, row->key);
		return true;
	case OPTS_NUMBER:
		number = *(uint64_t *)opts_member(opts, row);
		if (number == OPTS_UNSET)
			return false;
		fprintf(out,
			row->type.kind == TYPED_OCTAL ? "%s%s=%03llo"
						      : "%s%s=%llu",
			before, row->key, (unsigned long long)number);
		return true;
	case OPTS_WORD:
	case OPTS_TEXT:
	case OPTS_SPEC:
	case OPTS_SUBSET:
		text = *(char **)opts_member(opts, row);
		if (!text)
			return false;
		fprintf(out, "%s%s=", before, row->key);
		name_quote(out, text);
		return true;
	case OPTS_STORAGE:
		text = source_option_text(&opts->storage, row->key, digits);
		if (!text)
			return false;
		fprintf(out, "%s%s%s", before, row->key, *text ? "=" : "");
		name_quote(out, text);
		return true;
	default:
		return false;
	}
}

/* Returns the rows of some kinds that are set; `kinds` has a bit for each. The
   caller frees the text. */
static char *print_rows(const struct options *opts, unsigned kinds,
			const char *between)
{
	const struct opts_row *row;
	char *text = NULL;
	const char *before = "";
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; (row = opts_row_at(i)); i++) {
		if (kinds & 1u << row->kind &&
		    print_row(out, opts, row, before))
			before = between;
	}
	fclose(out);
	return text;
}

char *opts_spec(const struct options *opts)
{
	return print_rows(opts, 1u << OPTS_SPEC | 1u << OPTS_SUBSET, ",");
}

char *opts_mount(const struct options *opts)
{
	return print_rows(opts, 1u << OPTS_MOUNT, ",");
}

char *opts_text(const struct options *opts)
{
	char *text = NULL, *set = print_rows(opts, ~0u, "\n");
	size_t size;
	FILE *out = set ? open_memstream(&text, &size) : NULL;

	if (out) {
		fprintf(out, "%s%s", set, *set ? "\n" : "");
		for (size_t i = 0; i < opts->num_subsets; i++)
			opts_print(out, "subset", opts->subsets[i]);
		fclose(out);
	}
	free(set);
	return text;
}
