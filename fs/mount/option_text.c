/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/option_text.h"

#include <stdlib.h>

#include "fs/util/name.h"

static const char usage[] =
	"usage: betonfs [-dfs] [-o option[,option...]] dataset... mountpoint\n"
	"\n"
	"Shows an FFCV dataset (.beton) as a directory of ordinary files, and of\n"
	"batches for training; several in one directory each.\n"
	"\n"
	"  betonfs train.beton mnt             one dataset\n"
	"  betonfs train.beton val.beton mnt   mnt/train and mnt/val\n"
	"  betonfs 'train-*.beton' mnt         files that are one dataset\n"
	"  fusermount3 -u mnt                  unmount\n"
	"\n"
	"  -f             stay in the foreground\n"
	"  -d             the same, and print every request\n"
	"  -s             one thread\n"
	"  -h, --help     this text\n"
	"  -V, --version  versions of betonfs and libfuse\n"
	"  --options      the keys of -o, one per line\n"
	"\n"
	"Options of -o:\n";

static const char examples[] =
	"\n"
	"Examples:\n"
	"  betonfs imagenet.beton mnt && ls mnt/samples/000042\n"
	"  betonfs train.beton val.beton mnt && ls mnt/train mnt/val\n"
	"  betonfs -o order=quasi_random,batch=512 imagenet.beton mnt\n"
	"  head -c 64 mnt/batches/default/0/000000.batch | xxd\n"
	"  betonfs -o allow_other,log=/var/log/betonfs.log imagenet.beton /mnt\n"
	"  mount -t fuse.betonfs -o ro,allow_other imagenet.beton /mnt\n"
	"\n"
	"As mount.beton it takes -fnsv, as mount(8) gives them.\n"
	"\n"
	"See betonfs(8).\n";

void opts_help(FILE *out)
{
	const struct opts_row *row;
	char left[32], list[TYPED_EXPECTED_SIZE];

	fputs(usage, out);
	for (size_t i = 0; (row = opts_row_at(i)); i++) {
		if (!row->help)
			continue;
		snprintf(left, sizeof(left), "%s%s%s", row->key,
			 row->value ? "=" : "", row->value ? row->value : "");
		fprintf(out, "  %-24s%s%s\n", left, row->help,
			row->type.word_at ? typed_expected(&row->type, list)
					  : "");
	}
	fputs(examples, out);
}

void opts_list(FILE *out)
{
	const struct opts_row *row;

	for (size_t i = 0; (row = opts_row_at(i)); i++) {
		if (row->help)
			fprintf(out, "%s\n", row->key);
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
	default:
		return false;
	}
}

/* The rows that are set, of some kinds: a bit for each. The caller frees the
   text. */
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
