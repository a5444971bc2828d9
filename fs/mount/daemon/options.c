/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/files/paths.h"
#include "fs/base/order/order.h"
#include "fs/base/settings/settings.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/suggest.h"

/* One option of a -o list. The list stays as it is, because ps shows it. */
struct word {
	const char *at;
	size_t size;
	size_t key_size;
	const char *value; /* NULL: none */
	size_t value_size;
};

/* Owns the text, "NAME:FILE". */
static int add_subset(struct options *opts, char *text)
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

/* Sets the member of a row that has a value. Keeps or frees the text. */
static int set_value(struct options *opts, const struct opts_row *row,
		     char *text)
{
	void *member = opts_member(opts, row);
	uint64_t v;
	int r = 0;

	if (!text)
		return -ENOMEM;
	if (row->kind == OPTS_SUBSET && strchr(text, ':'))
		return add_subset(opts, text);
	if (row->kind == OPTS_NUMBER)
		r = typed_parse_string(&row->type, text, member) ? 0 : -EINVAL;
	else if (row->kind == OPTS_WORD)
		r = typed_parse_string(&row->type, text, &v) ? 0 : -EINVAL;
	else if (!*text)
		r = -EINVAL;
	if (!r && opts_is_text(row)) {
		free(*(char **)member);
		*(char **)member = steal(text);
	}
	free(text);
	return r;
}

static void set_flag(struct options *opts, const struct opts_row *row)
{
	if (row->kind == OPTS_MOUNT || row->kind == OPTS_FLAG)
		*(bool *)opts_member(opts, row) = true;
	if (row->kind == OPTS_CHOICE)
		*(const char **)opts_member(opts, row) = row->key;
}

/* Ends every message about wrong usage. */
#define SEE_HELP " See 'betonfs --help'."

static int refuse_word(const struct opts_row *row, const struct word *word,
		       struct log *log)
{
	bool has_type = row->kind == OPTS_NUMBER || row->kind == OPTS_WORD;
	char expected[TYPED_EXPECTED_SIZE];
	int size = (int)word->size;

	if (word->value && has_type)
		log_error(log, "-o %.*s: expected %s." SEE_HELP, size, word->at,
			  typed_expected(&row->type, expected));
	else
		log_error(log, "-o %.*s: expected %s%s%s." SEE_HELP, size,
			  word->at, row->key,
			  row->value ? "=" : " without a value",
			  row->value ? row->value : "");
	return -EINVAL;
}

/* Options of loaders, and of other file systems. */
static const struct other_word other_keys[] = {
	{ "batch_size", "batch" },   { "shuffle", "order" },
	{ "readahead", "prefetch" }, { "workers", "jobs" },
	{ "num_workers", "jobs" },   { "threads", "jobs" },
	{ "max_threads", "jobs" },   { "class_names", "names" },
	{ "classes", "names" },	     { "logfile", "log" },
	{ "config", "settings" },    { "mode", "umask" },
	{ "user_id", "uid" },	     { NULL, NULL },
};

static int unknown_word(const struct word *word, struct log *log)
{
	struct suggestion s = { word->at, word->key_size, NULL, 0 };
	char meant[SUGGEST_TEXT_SIZE];

	for (size_t i = 0; word->key_size && opts_row_at(i); i++)
		suggest_try(&s, opts_row_at(i)->key);
	if (word->key_size)
		suggest_other(&s, other_keys);
	suggest_text(&s, meant, sizeof(meant));
	log_error(log, "-o %.*s: unknown option%s%s" SEE_HELP, (int)word->size,
		  word->at, meant, *meant ? "" : ".");
	return -EINVAL;
}

static int set_storage(struct options *opts, const struct word *word,
		       struct log *log)
{
	char why[SOURCE_OPTION_WHY_SIZE];
	int r = source_option_set(&opts->storage, word->at, word->key_size,
				  word->value, word->value_size, why);

	if (r == -EINVAL)
		log_error(log, "-o %.*s: %s." SEE_HELP,
			  (int)source_option_shown(word->at, word->key_size,
						   word->size),
			  word->at, why);
	if (!r)
		source_option_warn(&opts->storage, word->at, word->key_size,
				   log);
	return r;
}

static int set_word(struct options *opts, const struct word *word,
		    struct log *log)
{
	const struct opts_row *row = opts_row_of(word->at, word->key_size);
	int r;

	if (!row && opts_is_ignored(word->at, word->size))
		return 0;
	if (!row)
		return unknown_word(word, log);
	if (row->kind == OPTS_STORAGE)
		return set_storage(opts, word, log);
	if (!row->value != !word->value)
		return refuse_word(row, word, log);
	if (!row->value) {
		set_flag(opts, row);
		return 0;
	}
	r = set_value(opts, row, strndup(word->value, word->value_size));
	return r == -EINVAL ? refuse_word(row, word, log) : r;
}

/* Parses "a,b=c". Empty words have no effect. */
static int parse_words(struct options *opts, const char *list, struct log *log)
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

/* Options without a letter. */
enum { OPTION_LIST = 256, OPTION_DESCRIBE };

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ "options", no_argument, NULL, OPTION_LIST },
	{ "completions", no_argument, NULL, OPTION_DESCRIBE },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ NULL, 0, NULL, 0 },
};

static int parse_letter(struct options *opts, int letter, struct log *log)
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
	case OPTION_LIST:
		opts->list = true;
		return 0;
	case OPTION_DESCRIBE:
		opts->describe = true;
		return 0;
	case 'q':
		opts->quiet = true;
		opts->verbose = false;
		return 0;
	case 'v':
		opts->verbose = true;
		opts->quiet = false;
		return 0;
	}
	return -EINVAL;
}

/* Writes the options that begin with the name, "--one, --other". Returns how
   many there are. */
static unsigned list_beginning(const char *name, size_t size, char out[64])
{
	unsigned num = 0;

	*out = '\0';
	for (const struct option *o = long_options; o->name; o++) {
		if (strncmp(o->name, name, size) != 0)
			continue;
		snprintf(out + strlen(out), 64 - strlen(out), "%s--%s",
			 num++ ? ", " : "", o->name);
	}
	return num;
}

/* Suggests "--name", or "-o key" for a key. */
static const char *suggest_long(const char *name, size_t size,
				char out[SUGGEST_TEXT_SIZE])
{
	struct suggestion s = { name, size, NULL, 0 }, key = s;
	char best[SUGGEST_TEXT_SIZE];

	for (const struct option *o = long_options; o->name; o++) {
		if (o->val != OPTION_DESCRIBE)
			suggest_try(&s, o->name);
	}
	for (size_t i = 0; opts_row_at(i); i++)
		suggest_try(&key, opts_row_at(i)->key);
	suggest_other(&key, other_keys);
	if (key.best && (!s.best || key.distance < s.distance)) {
		snprintf(best, sizeof(best), "-o %s", key.best);
		s.best = best;
	} else if (s.best) {
		snprintf(best, sizeof(best), "--%s", s.best);
		s.best = best;
	}
	return suggest_text(&s, out, SUGGEST_TEXT_SIZE);
}

/* "--name" or "--name=value", and whether an option has that name. */
static int refuse_long(const char *word, bool is_known, struct log *log)
{
	const char *name = word + 2;
	size_t size = strcspn(name, "=");
	char text[SUGGEST_TEXT_SIZE], list[64];

	if (is_known) {
		log_error(log, "%s: the option takes no value." SEE_HELP, word);
	} else if (size && list_beginning(name, size, list) > 1) {
		log_error(log, "%s: the option is ambiguous: %s." SEE_HELP,
			  word, list);
	} else {
		if (!size || !*suggest_long(name, size, text))
			strcpy(text, ".");
		log_error(log, "%s: unknown option%s" SEE_HELP, word, text);
	}
	return -EINVAL;
}

/* Logs the option that getopt_long() refused, when it returned '?' or ':'.
   optopt is 0 for an unknown name, and the value of one that is known. */
static int refuse_letter(int letter, char *const *argv, struct log *log)
{
	const char one[] = { '-', (char)optopt, '\0' };
	const struct option *o = long_options;

	while (o->name && o->val != optopt)
		o++;
	if (letter == '?' && (!optopt || o->name))
		return refuse_long(argv[optind - 1], o->name, log);
	log_error(log, "%s: %s." SEE_HELP, one,
		  letter == ':' ? "the option needs a value"
				: "unknown option");
	return -EINVAL;
}

/* mount(8) starts "mount.TYPE" with letters of its own. */
static bool is_helper(const char *program)
{
	const char *slash = strrchr(program, '/');

	return !strncmp(slash ? slash + 1 : program, "mount.", 6);
}

static int parse_helper_letter(struct options *opts, int letter,
			       struct log *log)
{
	switch (letter) {
	case 'f':
		opts->fake = true;
		return 0;
	case 'n':
	case 's':
	case 't':
		return 0;
	}
	return parse_letter(opts, letter, log);
}

static int add_dataset(struct options *opts, char *path)
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

/* Returns whether a path ends at a colon. A URL has colons, for example before
   a port, and so it ends only where a path from the root or a URL follows. */
static bool is_end(const char *colon, bool is_url)
{
	return !is_url || (colon[1] == '/' && colon[2] != '/') ||
	       paths_is_url(colon + 1);
}

/* Takes the first path or URL off a list. "\:" is a colon within it, and so is
   one between braces, which can have URLs. The caller frees it; NULL without
   memory. */
static char *next_path(const char **list)
{
	const char *s = *list;
	char *path = malloc(strlen(s) + 1), *out = path;
	bool is_url = paths_is_url(s);
	size_t depth = 0;

	for (; path && *s; s++) {
		if (*s == ':' && !depth && is_end(s, is_url))
			break;
		if (s[0] == '\\' && s[1] == ':')
			s++;
		depth += *s == '{' && strchr(s, '}');
		depth -= *s == '}' && depth;
		*out++ = *s;
	}
	if (path)
		*out = '\0';
	*list = s;
	return path;
}

/* Adds the dataset of an operand, or the datasets of "PATH:PATH" if no such
   file exists: fstab(5) has only one word for all datasets. */
static int add_datasets(struct options *opts, const char *operand)
{
	int r;

	if (!access(operand, F_OK))
		return add_dataset(opts, strdup(operand));
	do
		r = add_dataset(opts, next_path(&operand));
	while (!r && *operand++ == ':');
	return r;
}

static int parse_operands(struct options *opts, int n, char **operands,
			  struct log *log)
{
	int r = 0;

	if (opts->help || opts->version || opts->list || opts->describe)
		return 0;
	if (n < 2) {
		log_error(
			log,
			"missing operand: %s: usage: betonfs [OPTION]... DATASET... MOUNTPOINT." SEE_HELP,
			n ? "MOUNTPOINT" : "DATASET and MOUNTPOINT");
		return -EINVAL;
	}
	for (int i = 0; i < n - 1 && !r; i++)
		r = add_datasets(opts, operands[i]);
	opts->mountpoint = operands[n - 1];
	return r;
}

/* Settings that are options of the same key. The others are for loaders. */
static const enum setting of_a_mount[] = {
	SETTING_CACHE,	   SETTING_ORDER, SETTING_CACHE_SIZE,
	SETTING_COLD_SIZE, SETTING_BLOCK, SETTING_WINDOW
};

/* Returns whether a setting may set its option. A size belongs to a cache, and
   a key to an order. It does not apply if the user chose another cache or
   order. */
static bool is_free(const struct options *opts, enum setting s)
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

static int take_settings(struct options *opts, struct log *log)
{
	char taken[256] = "", left[256] = "";
	bool take[SETTINGS] = { false };
	struct settings s;
	int r = settings_read(opts->settings, log, &s);

	/* Check all settings before one is set, because setting one changes the
	   result for others. */
	for (size_t i = 0; i < ARRAY_LEN(of_a_mount) && !r; i++) {
		enum setting key = of_a_mount[i];

		take[key] = s.of[key].is_set && is_free(opts, key);
		if (s.of[key].is_set)
			settings_print(&s, key, take[key] ? taken : left,
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
		log_info(log, "%s: using %s%s%s", opts->settings,
			 *taken ? taken : "nothing",
			 *left ? "; ignoring what options set: " : "", left);
	return r;
}

/* Keys that belong to some orders only. */
static void warn_of_keys(const struct options *opts, struct log *log)
{
	const struct opts_spec *spec = &opts->spec;
	const char *name = spec->order ? spec->order : "random";
	const struct order_row *row = order_by_name(name, strlen(name));

	if (!row || row->uses_blocks || (!spec->block && !spec->window))
		return;
	log_warning(
		log,
		"-o %s=%s has no effect with order=%s, only with order=quasi_random",
		spec->window ? "window" : "block",
		spec->window ? spec->window : spec->block, name);
}

int options_parse(struct options *opts, int argc, char **argv, struct log *log)
{
	bool helper = is_helper(argv[0]);
	int letter, r = 0;

	*opts = (struct options){
		.uid = OPTS_UNSET,
		.gid = OPTS_UNSET,
		.umask = OPTS_UNSET,
		.cache_size = OPTS_UNSET,
		.cold_size = OPTS_UNSET,
		.prefetch = 2,
		.jobs = 2,
	};
	opterr = 0;
	r = source_options_read(NULL, log, &opts->storage);
	while (!r &&
	       (letter = getopt_long(argc, argv,
				     helper ? ":o:fnst:vqhV" : ":o:dfsvqhV",
				     long_options, NULL)) != -1) {
		if (letter == '?' || letter == ':')
			r = refuse_letter(letter, argv, log);
		else
			r = helper ? parse_helper_letter(opts, letter, log)
				   : parse_letter(opts, letter, log);
	}
	if (opts->quiet && log)
		log->level = BETON_LOG_ERROR;
	if (!r && opts->settings)
		r = take_settings(opts, log);
	if (!r)
		warn_of_keys(opts, log);
	return r ? r : parse_operands(opts, argc - optind, argv + optind, log);
}

void options_fini(struct options *opts)
{
	const struct opts_row *row;

	for (size_t i = 0; (row = opts_row_at(i)); i++) {
		if (opts_is_text(row))
			free(*(char **)opts_member(opts, row));
	}
	source_options_fini(&opts->storage);
	for (size_t i = 0; i < opts->num_subsets; i++)
		free(opts->subsets[i]);
	free(opts->subsets);
	for (size_t i = 0; i < opts->num_datasets; i++)
		free(opts->datasets[i]);
	free(opts->datasets);
}
