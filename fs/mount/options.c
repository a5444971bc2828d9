/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/engine/settings.h"
#include "fs/util/bytes.h"
#include "fs/util/size.h"

enum opts_kind {
	OPTS_MOUNT,  /* bool; passed through to the mount */
	OPTS_ALWAYS, /* every mount is so */
	OPTS_FLAG,   /* bool; the daemon's own */
	OPTS_NUMBER, /* uint64_t in [min, max] */
	OPTS_OCTAL,
	OPTS_SIZE,   /* as a number; may have a unit */
	OPTS_TEXT,   /* char *, owned */
	OPTS_SPEC,   /* the same, a key of a SPEC: checked with the dataset */
	OPTS_SUBSET, /* the same, or NAME:FILE, of which there may be many */
};

struct opts_row {
	const char *key;
	enum opts_kind kind;
	size_t offset;
	uint64_t min, max;
	const char *value; /* what --help calls it */
	const char *help;
};

#define AT(member) offsetof(struct opts, member)

static const struct opts_row rows[] = {
	{ "ro", OPTS_ALWAYS, 0, 0, 0, NULL, "read only: always on" },
	{ "nosuid", OPTS_ALWAYS, 0, 0, 0, NULL, "always on" },
	{ "nodev", OPTS_ALWAYS, 0, 0, 0, NULL, "always on" },
	{ "noexec", OPTS_MOUNT, AT(noexec), 0, 0, NULL,
	  "no file can be executed" },
	{ "allow_other", OPTS_MOUNT, AT(allow_other), 0, 0, NULL,
	  "other users may look, as the modes say" },
	{ "allow_root", OPTS_MOUNT, AT(allow_root), 0, 0, NULL,
	  "root may look" },
	{ "auto_unmount", OPTS_MOUNT, AT(auto_unmount), 0, 0, NULL,
	  "unmount if the daemon is killed" },
	{ "uid", OPTS_NUMBER, AT(uid), 0, UINT32_MAX - 1, "N",
	  "owner of all files (the dataset's)" },
	{ "gid", OPTS_NUMBER, AT(gid), 0, UINT32_MAX - 1, "N",
	  "group of all files (the dataset's)" },
	{ "umask", OPTS_OCTAL, AT(umask), 0, 0777, "OCTAL",
	  "modes are 0777 without it (mirror the dataset's)" },
	{ "order", OPTS_SPEC, AT(spec.order), 0, 0, "NAME",
	  "batches/default: sequential, random, quasi_random, weighted" },
	{ "batch", OPTS_SPEC, AT(spec.batch), 0, 0, "N",
	  "batches/default: samples per batch (256)" },
	{ "seed", OPTS_SPEC, AT(spec.seed), 0, 0, "N",
	  "batches/default: of the order (0)" },
	{ "drop_last", OPTS_SPEC, AT(spec.drop_last), 0, 0, "0|1",
	  "batches/default: leave out a short last batch (1)" },
	{ "block", OPTS_SPEC, AT(spec.block), 0, 0, "N",
	  "batches/default: samples that stay together" },
	{ "window", OPTS_SPEC, AT(spec.window), 0, 0, "N|NMiB",
	  "batches/default: samples that are mixed" },
	{ "subset", OPTS_SUBSET, AT(spec.subset), 0, 0, "A-B|NAME[:FILE]",
	  "batches/default: samples; or FILE's ids get a name" },
	{ "cache", OPTS_TEXT, AT(cache), 0, 0, "auto|os|process",
	  "the kernel's page cache, or our own (by size)" },
	{ "cache_size", OPTS_SIZE, AT(cache_size), 16 << 20, UINT64_MAX - 1,
	  "SIZE", "of all memory of our own cache (half of what there is)" },
	{ "cold_size", OPTS_SIZE, AT(cold_size), 0, UINT64_MAX - 1, "SIZE",
	  "beside it, for evicted pages, compressed (where it pays)" },
	{ "ahead", OPTS_NUMBER, AT(ahead), 0, 8, "N",
	  "batches assembled before their readers come (2)" },
	{ "threads", OPTS_NUMBER, AT(threads), 1, 1024, "N",
	  "threads that assemble batches ahead (2)" },
	{ "xattr", OPTS_FLAG, AT(xattr), 0, 0, NULL,
	  "extended attributes: sizes of images, places in the dataset" },
	{ "log", OPTS_TEXT, AT(log), 0, 0, "FILE",
	  "messages go there instead of to syslog" },
	{ "settings", OPTS_TEXT, AT(settings), 0, 0, "FILE",
	  "of what is not given: what beton doctor --apply wrote" },
};

/* Of mount(8) and fstab(5), without a meaning here; a '*' stands for any end.
   mount(8) adds rw, and mount.fuse3 dev and suid, unless told otherwise; a
   dataset is mounted ro,nosuid,nodev all the same. */
static const char *const words[] = {
	"rw",	       "dev",
	"suid",	       "exec",
	"defaults",    "default_permissions",
	"auto",	       "noauto",
	"nofail",      "_netdev",
	"user",	       "user=*",
	"users",       "nouser",
	"owner",       "group",
	"sync",	       "async",
	"dirsync",     "silent",
	"atime",       "noatime",
	"diratime",    "nodiratime",
	"relatime",    "norelatime",
	"strictatime", "nostrictatime",
	"lazytime",    "nolazytime",
	"comment=*",   "x-*",
	"X-*",
};

/* One option of a -o list, which is not changed: ps shows it. */
struct word {
	const char *at;
	size_t size;
	size_t key_size;
	const char *value; /* NULL: none */
	size_t value_size;
};

static void *member_of(const struct opts *opts, const struct opts_row *row)
{
	return (char *)opts + row->offset;
}

static const struct opts_row *find_row(const struct word *word)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strlen(rows[i].key) == word->key_size &&
		    !memcmp(rows[i].key, word->at, word->key_size))
			return &rows[i];
	}
	return NULL;
}

static bool is_ignored(const struct word *word)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t size = strcspn(words[i], "*");

		if ((words[i][size] ? word->size >= size
				    : word->size == size) &&
		    !memcmp(words[i], word->at, size))
			return true;
	}
	return false;
}

static int parse_number(const struct opts_row *row, const char *text, int base,
			uint64_t *out)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, base);
	if (errno || *end || text[0] < '0' || text[0] > '9' || v < row->min ||
	    v > row->max)
		return -EINVAL;
	*out = v;
	return 0;
}

static bool is_text(const struct opts_row *row)
{
	return row->kind == OPTS_TEXT || row->kind == OPTS_SPEC ||
	       row->kind == OPTS_SUBSET;
}

/* Takes the text. */
static int add_subset(struct opts *opts, char *text)
{
	size_t n = opts->num_subsets;
	char **bigger = realloc(opts->subsets, (n + 1) * sizeof(*bigger));

	if (!bigger) {
		free(text);
		return -ENOMEM;
	}
	opts->subsets = bigger;
	opts->subsets[n] = text;
	opts->num_subsets++;
	return 0;
}

static int parse_size(const struct opts_row *row, const char *text,
		      uint64_t *out)
{
	uint64_t v;

	if (!size_parse(text, &v) || v < row->min || v > row->max)
		return -EINVAL;
	*out = v;
	return 0;
}

/* Takes the value's text, NULL if there is none. */
static int set_value(struct opts *opts, const struct opts_row *row, char *text)
{
	char **member = member_of(opts, row);
	int r = -EINVAL;

	if (text && row->kind == OPTS_SUBSET && strchr(text, ':'))
		return add_subset(opts, text);
	if (text && *text && is_text(row)) {
		free(*member);
		*member = text;
		return 0;
	}
	if (text && row->kind == OPTS_NUMBER)
		r = parse_number(row, text, 10, member_of(opts, row));
	if (text && row->kind == OPTS_SIZE)
		r = parse_size(row, text, member_of(opts, row));
	if (text && row->kind == OPTS_OCTAL)
		r = parse_number(row, text, 8, member_of(opts, row));
	free(text);
	return r;
}

static int set_flag(struct opts *opts, const struct opts_row *row,
		    const struct word *word)
{
	if (word->value)
		return -EINVAL;
	if (row->kind == OPTS_MOUNT || row->kind == OPTS_FLAG)
		*(bool *)member_of(opts, row) = true;
	return 0;
}

static bool takes_value(const struct opts_row *row)
{
	return row->value != NULL;
}

static int set_word(struct opts *opts, const struct word *word, struct log *log)
{
	const struct opts_row *row = find_row(word);
	int size = (int)word->size;
	int r;

	if (!row && is_ignored(word))
		return 0;
	if (!row) {
		log_error(log,
			  "-o %.*s: unknown option (betonfs --help lists them)",
			  size, word->at);
		return -EINVAL;
	}
	if (takes_value(row))
		r = set_value(opts, row,
			      word->value
				      ? strndup(word->value, word->value_size)
				      : NULL);
	else
		r = set_flag(opts, row, word);
	if (r)
		log_error(log, "-o %.*s: expected %s%s%s", size, word->at,
			  row->key, row->value ? "=" : " without a value",
			  row->value ? row->value : "");
	return r;
}

/* "a,b=c". Empty words mean nothing. */
static int parse_words(struct opts *opts, const char *list, struct log *log)
{
	int r = 0;

	for (size_t size; *list && !r; list += size + (list[size] == ',')) {
		struct word word = { .at = list };

		size = strcspn(list, ",");
		word.size = size;
		word.key_size = strcspn(list, ",=");
		if (word.key_size < size) {
			word.value = list + word.key_size + 1;
			word.value_size = size - word.key_size - 1;
		}
		if (size)
			r = set_word(opts, &word, log);
	}
	return r;
}

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ "options", no_argument, NULL, 'l' },
	{ NULL, 0, NULL, 0 },
};

static int parse_letter(struct opts *opts, int letter, struct log *log)
{
	switch (letter) {
	case 'o':
		return parse_words(opts, optarg, log);
	case 'd':
		opts->debug = true;
		opts->foreground = true;
		return 0;
	case 'f':
		opts->foreground = true;
		return 0;
	case 's':
		opts->single_thread = true;
		return 0;
	case 'h':
		opts->help = true;
		return 0;
	case 'V':
		opts->version = true;
		return 0;
	case 'l':
		opts->list = true;
		return 0;
	}
	/* getopt has said what is wrong. */
	return -EINVAL;
}

/* mount(8) gives its own letters to the program of a type. */
static bool is_helper(const char *program)
{
	const char *slash = strrchr(program, '/');

	return !strncmp(slash ? slash + 1 : program, "mount.", 6);
}

static int parse_helper_letter(struct opts *opts, int letter, struct log *log)
{
	switch (letter) {
	case 'f':
		opts->fake = true;
		return 0;
	case 'n':
	case 's':
	case 't':
	case 'v':
		return 0;
	}
	return parse_letter(opts, letter, log);
}

static int add_dataset(struct opts *opts, char *path)
{
	size_t n = opts->num_datasets;
	char **more = realloc(opts->datasets, (n + 1) * sizeof(*more));

	if (more)
		opts->datasets = more;
	if (!more || !path) {
		free(path);
		return -ENOMEM;
	}
	more[n] = path;
	opts->num_datasets++;
	return 0;
}

/* Takes a path off a list: up to a colon that is part neither of "\:", which
   means a colon, nor of "://". The caller's, or NULL. */
static char *next_path(const char **list)
{
	const char *s = *list;
	char *path = malloc(strlen(s) + 1), *out = path;

	for (; path && *s && (*s != ':' || !strncmp(s, "://", 3)); s++) {
		if (s[0] == '\\' && s[1] == ':')
			s++;
		*out++ = *s;
	}
	if (path)
		*out = '\0';
	*list = s;
	return path;
}

/* fstab(5) has one word for all of them, so that what is no file may be a list
   with colons. */
static int add_datasets(struct opts *opts, const char *operand)
{
	int r;

	if (!access(operand, F_OK))
		return add_dataset(opts, strdup(operand));
	do
		r = add_dataset(opts, next_path(&operand));
	while (!r && *operand++ == ':');
	return r;
}

static int parse_operands(struct opts *opts, int n, char **operands,
			  struct log *log)
{
	int r = 0;

	if (opts->help || opts->version || opts->list)
		return 0;
	if (n < 2) {
		log_error(
			log,
			"usage: betonfs [-dfs] [-o options] dataset... mountpoint (see betonfs --help)");
		return -EINVAL;
	}
	for (int i = 0; i < n - 1 && !r; i++)
		r = add_datasets(opts, operands[i]);
	opts->mountpoint = operands[n - 1];
	return r;
}

/* Settings that are options, each by its key; others are a loader's. */
static const enum setting of_a_mount[] = {
	SETTING_CACHE,	   SETTING_ORDER, SETTING_CACHE_SIZE,
	SETTING_COLD_SIZE, SETTING_BLOCK, SETTING_WINDOW
};

/* Of a size that belongs to a cache, or of a key that belongs to an order, that
   was chosen, the setting means another one. */
static bool is_free(const struct opts *opts, enum setting s)
{
	switch (s) {
	case SETTING_CACHE:
		return !opts->cache;
	case SETTING_CACHE_SIZE:
		return !opts->cache && opts->cache_size == OPTS_UNSET;
	case SETTING_COLD_SIZE:
		return !opts->cache && opts->cold_size == OPTS_UNSET;
	case SETTING_BLOCK:
		return !opts->spec.order && !opts->spec.block;
	case SETTING_WINDOW:
		return !opts->spec.order && !opts->spec.window;
	default:
		return !opts->spec.order;
	}
}

static int take_settings(struct opts *opts, struct log *log)
{
	char taken[256] = "", left[256] = "";
	bool take[SETTINGS] = { false };
	struct settings s;
	int r = settings_read(opts->settings, log, &s);

	/* First all questions: an answer changes the next ones. */
	for (size_t i = 0; i < ARRAY_LEN(of_a_mount) && !r; i++) {
		enum setting key = of_a_mount[i];

		take[key] = s.of[key].is_set && is_free(opts, key);
		if (s.of[key].is_set)
			settings_say(&s, key, take[key] ? taken : left,
				     sizeof(taken));
	}
	for (size_t i = 0; i < SETTINGS && !r; i++) {
		char text[2 * SETTING_SIZE];

		if (!take[i])
			continue;
		snprintf(text, sizeof(text), "%s=%s", settings_key(i),
			 s.of[i].text);
		r = parse_words(opts, text, log);
	}
	if (!r)
		log_info(log, "%s: taken %s%s%s", opts->settings,
			 *taken ? taken : "nothing",
			 *left ? "; given otherwise: " : "", left);
	return r;
}

int opts_parse(struct opts *opts, int argc, char **argv, struct log *log)
{
	bool helper = is_helper(argv[0]);
	int letter, r = 0;

	*opts = (struct opts){
		.uid = OPTS_UNSET,
		.gid = OPTS_UNSET,
		.umask = OPTS_UNSET,
		.cache_size = OPTS_UNSET,
		.cold_size = OPTS_UNSET,
		.ahead = 2,
		.threads = 2,
	};
	while (!r && (letter = getopt_long(argc, argv,
					   helper ? "o:fnst:vhV" : "o:dfshV",
					   long_options, NULL)) != -1)
		r = helper ? parse_helper_letter(opts, letter, log)
			   : parse_letter(opts, letter, log);
	if (!r && opts->settings)
		r = take_settings(opts, log);
	return r ? r : parse_operands(opts, argc - optind, argv + optind, log);
}

void opts_fini(struct opts *opts)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (is_text(&rows[i]))
			free(*(char **)member_of(opts, &rows[i]));
	}
	for (size_t i = 0; i < opts->num_subsets; i++)
		free(opts->subsets[i]);
	free(opts->subsets);
	for (size_t i = 0; i < opts->num_datasets; i++)
		free(opts->datasets[i]);
	free(opts->datasets);
}

/* --- printing --- */

static const char usage[] =
	"usage: betonfs [-dfs] [-o option[,option...]] dataset... mountpoint\n"
	"\n"
	"Shows an FFCV dataset (.beton) as a directory of ordinary files, and of\n"
	"batches for training; several in one directory each. Unmount with:\n"
	"fusermount3 -u mountpoint\n"
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
	char left[32];

	fputs(usage, out);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!rows[i].help)
			continue;
		snprintf(left, sizeof(left), "%s%s%s", rows[i].key,
			 rows[i].value ? "=" : "",
			 rows[i].value ? rows[i].value : "");
		fprintf(out, "  %-24s%s\n", left, rows[i].help);
	}
	fputs(examples, out);
}

void opts_list(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].help)
			fprintf(out, "%s\n", rows[i].key);
	}
}

/* "key=value" of a row that is set; false if it is not. */
static bool print_row(FILE *out, const struct opts *opts,
		      const struct opts_row *row, const char *before)
{
	uint64_t number;
	const char *text;

	switch (row->kind) {
	case OPTS_MOUNT:
	case OPTS_FLAG:
		if (!*(bool *)member_of(opts, row))
			return false;
		fprintf(out, "%s%s", before, row->key);
		return true;
	case OPTS_NUMBER:
	case OPTS_SIZE:
	case OPTS_OCTAL:
		number = *(uint64_t *)member_of(opts, row);
		if (number == OPTS_UNSET)
			return false;
		fprintf(out,
			row->kind == OPTS_OCTAL ? "%s%s=%03llo" : "%s%s=%llu",
			before, row->key, (unsigned long long)number);
		return true;
	case OPTS_TEXT:
	case OPTS_SPEC:
	case OPTS_SUBSET:
		text = *(char **)member_of(opts, row);
		if (!text)
			return false;
		fprintf(out, "%s%s=%s", before, row->key, text);
		return true;
	default:
		return false;
	}
}

/* The rows of some kinds, a bit each, that are set. */
static char *print_rows(const struct opts *opts, unsigned kinds,
			const char *between)
{
	char *text = NULL;
	const char *before = "";
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (kinds & 1u << rows[i].kind &&
		    print_row(out, opts, &rows[i], before))
			before = between;
	}
	fclose(out);
	return text;
}

char *opts_spec(const struct opts *opts)
{
	return print_rows(opts, 1u << OPTS_SPEC | 1u << OPTS_SUBSET, ",");
}

char *opts_mount(const struct opts *opts)
{
	return print_rows(opts, 1u << OPTS_MOUNT, ",");
}

char *opts_text(const struct opts *opts)
{
	char *text = NULL, *set = print_rows(opts, ~0u, "\n");
	size_t size;
	FILE *out = set ? open_memstream(&text, &size) : NULL;

	if (out) {
		fprintf(out, "%s%s", set, *set ? "\n" : "");
		for (size_t i = 0; i < opts->num_subsets; i++)
			fprintf(out, "subset=%s\n", opts->subsets[i]);
		fclose(out);
	}
	free(set);
	return text;
}
