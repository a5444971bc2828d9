/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/order/subset.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/rng.h"

enum { READ_BYTES = 16 << 10, HASH_DIGITS = 16, RADIX_BITS = 8 };

typedef unsigned long long ull;

/* --- names --- */

static bool is_name(const char *text, size_t size)
{
	bool has_letter = false;
	unsigned char c;

	for (size_t i = 0; i < size; i++) {
		c = (unsigned char)text[i];
		if (c >= 0x80 || !(isalnum(c) || c == '_' || c == '-'))
			return false;
		has_letter |= isalpha(c) || c == '_';
	}
	return has_letter && size <= SUBSET_NAME_MAX;
}

static bool parse_hash(const char *text, size_t size, uint64_t *out)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t v = 0;
	const char *d;

	if (size != HASH_DIGITS)
		return false;
	for (size_t i = 0; i < size; i++) {
		d = memchr(digits, text[i], HASH_DIGITS);
		if (!d)
			return false;
		v = v << 4 | (uint64_t)(d - digits);
	}
	*out = v;
	return true;
}

bool subset_parse_ref(const char *text, size_t size, struct subset_ref *out)
{
	const char *tilde = memchr(text, '~', size);
	struct subset_ref ref = { .name = text, .size = size };

	if (tilde) {
		ref.size = (size_t)(tilde - text);
		ref.has_hash = true;
		if (!parse_hash(tilde + 1, size - ref.size - 1, &ref.hash))
			return false;
	}
	if (!is_name(ref.name, ref.size))
		return false;
	*out = ref;
	return true;
}

const struct subset *subset_find(const struct subset *list,
				 const struct subset_ref *ref)
{
	for (; list; list = list->next) {
		if (strlen(list->name) == ref->size &&
		    !memcmp(list->name, ref->name, ref->size))
			return list;
	}
	return NULL;
}

void subset_ref_text(const struct subset_ref *ref, char out[SUBSET_TEXT_SIZE])
{
	int n = snprintf(out, SUBSET_TEXT_SIZE, "%.*s", (int)ref->size,
			 ref->name);

	if (ref->has_hash)
		snprintf(out + n, SUBSET_TEXT_SIZE - (size_t)n, "~%016llx",
			 (ull)ref->hash);
}

void subset_text(const struct subset *s, char out[SUBSET_TEXT_SIZE])
{
	const struct subset_ref ref = { s->name, strlen(s->name), true,
					s->hash };

	subset_ref_text(&ref, out);
}

/* --- reading a file byte by byte, so that lines may have any length --- */

struct subset_reader {
	const char *path;
	struct log *log;
	uint64_t samples;
	uint64_t line; /* from 1 */
	/* The position in the line. END: the line is complete. */
	enum { START, ID, BETWEEN, WEIGHT, END, COMMENT } where;
	uint64_t number; /* so far */
	struct subset *into;
	uint64_t capacity; /* of into->ids, and of into->sums */
};

static int fail_line(const struct subset_reader *r, const char *what)
{
	log_error(r->log, "%s:%llu: %s", r->path, (ull)r->line, what);
	return -EINVAL;
}

static int resize_lists(struct subset_reader *r, uint64_t capacity)
{
	struct subset *s = r->into;
	uint64_t *ids = realloc(s->ids, capacity * sizeof(*ids)), *sums;

	if (!ids)
		return -ENOMEM;
	s->ids = ids;
	if (s->sums) {
		sums = realloc(s->sums, capacity * sizeof(*sums));
		if (!sums)
			return -ENOMEM;
		s->sums = sums;
	}
	r->capacity = capacity;
	return 0;
}

static int store_id(struct subset_reader *r)
{
	struct subset *s = r->into;
	int e = 0;

	if (s->n == SUBSET_IDS_MAX)
		return fail_line(r, "more than 4294967295 lines");
	if (s->n == r->capacity)
		e = resize_lists(r, max_u64(1024, 2 * r->capacity));
	if (!e)
		s->ids[s->n++] = r->number;
	return e;
}

/* Stores the weight of the last id. */
static int store_weight(struct subset_reader *r)
{
	struct subset *s = r->into;
	uint64_t sum = 0;

	if (s->n == 1)
		s->sums = malloc(r->capacity * sizeof(*s->sums));
	if (!s->sums)
		return s->n == 1
			       ? -ENOMEM
			       : fail_line(r, "a weight; there is none above");
	if (s->n > 1)
		sum = s->sums[s->n - 2];
	if (!add_ok(sum, r->number, &s->sums[s->n - 1]))
		return fail_line(r, "the weights add up to 2^64 or more");
	return 0;
}

/* Stores a number when the first byte after it is read. */
static int end_number(struct subset_reader *r)
{
	bool is_id = r->where == ID;

	if (!is_id && r->where != WEIGHT)
		return 0;
	r->where = is_id ? BETWEEN : END;
	return is_id ? store_id(r) : store_weight(r);
}

static int end_line(struct subset_reader *r)
{
	if (r->where == BETWEEN && r->into->sums)
		return fail_line(r, "no weight; there is one above");
	r->where = COMMENT;
	return 0;
}

static int take_digit(struct subset_reader *r, unsigned char digit)
{
	if (r->where == START || r->where == BETWEEN) {
		r->where = r->where == START ? ID : WEIGHT;
		r->number = 0;
	}
	if (mul_ok(r->number, 10, &r->number) &&
	    add_ok(r->number, (uint64_t)(digit - '0'), &r->number) &&
	    (r->where == WEIGHT || r->number < r->samples))
		return 0;
	if (r->where == WEIGHT)
		return fail_line(r, "a weight of 2^64 or more");
	log_error(r->log, "%s:%llu: sample %llu...: the dataset has %llu",
		  r->path, (ull)r->line, (ull)r->number, (ull)r->samples);
	return -EINVAL;
}

static int take_byte(struct subset_reader *r, unsigned char c)
{
	int e = 0;

	if (isdigit(c) && r->where != END && r->where != COMMENT)
		return take_digit(r, c);
	e = end_number(r);
	if (!e && (c == '\n' || c == '#'))
		e = end_line(r);
	if (e || r->where == COMMENT) {
		if (c == '\n') {
			r->line++;
			r->where = START;
		}
		return e;
	}
	if (c == ' ' || c == '\t' || c == '\r')
		return 0;
	log_error(
		r->log,
		"%s:%llu: byte 0x%02x: expected one sample number per line, with or without a weight, or # and a comment",
		r->path, (ull)r->line, c);
	return -EINVAL;
}

static int read_ids(struct subset_reader *r, int fd)
{
	char bytes[READ_BYTES];
	ssize_t got = 1;
	int e = 0;

	while (got && !e) {
		got = read(fd, bytes, sizeof(bytes));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			e = -errno;
			log_error(r->log, "%s: %s", r->path, strerror(errno));
			return e;
		}
		for (ssize_t i = 0; i < got && !e; i++)
			e = take_byte(r, (unsigned char)bytes[i]);
	}
	if (!e)
		e = end_number(r);
	return e ? e : end_line(r);
}

/* --- by id --- */

static bool ascends(const struct subset *s)
{
	for (uint64_t i = 1; i < s->n; i++) {
		if (s->ids[i] <= s->ids[i - 1])
			return false;
	}
	return true;
}

/* One pass of a radix sort: writes the places of `from` to `to`, ordered by
   some bits of their ids. Places with equal bits keep their order. */
static void sort_by_bits(const struct subset *s, unsigned shift,
			 const uint32_t *from, uint32_t *to)
{
	uint64_t ends[1 << RADIX_BITS] = { 0 }, sum = 0, count;
	const unsigned mask = (1 << RADIX_BITS) - 1;

	for (uint64_t i = 0; i < s->n; i++)
		ends[s->ids[i] >> shift & mask]++;
	for (unsigned b = 0; b <= mask; b++) {
		count = ends[b];
		ends[b] = sum;
		sum += count;
	}
	for (uint64_t i = 0; i < s->n; i++)
		to[ends[s->ids[from[i]] >> shift & mask]++] = from[i];
}

static int sort_places(struct subset *s, uint64_t samples)
{
	cleanup_free uint32_t *spare = NULL;
	uint32_t *from;

	if (ascends(s))
		return 0;
	s->sorted = malloc(s->n * sizeof(*s->sorted));
	spare = malloc(s->n * sizeof(*spare));
	if (!s->sorted || !spare)
		return -ENOMEM;
	for (uint64_t i = 0; i < s->n; i++)
		s->sorted[i] = (uint32_t)i;
	for (unsigned shift = 0; shift < 64 && (samples - 1) >> shift;
	     shift += RADIX_BITS) {
		from = s->sorted;
		sort_by_bits(s, shift, from, spare);
		s->sorted = spare;
		spare = from;
	}
	return 0;
}

static uint64_t place_by_id(const struct subset *s, uint64_t i)
{
	return s->sorted ? s->sorted[i] : i;
}

/* The number of places whose ids are below `id`. */
static uint64_t lower_bound(const struct subset *s, uint64_t id)
{
	uint64_t low = 0, high = s->n, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (s->ids[place_by_id(s, mid)] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Equal ids are in the order of their places. */
bool subset_place(const struct subset *s, uint64_t id, uint64_t nth,
		  uint64_t *place)
{
	uint64_t i = lower_bound(s, id);

	if (nth >= s->n - i || s->ids[place_by_id(s, i + nth)] != id)
		return false;
	*place = place_by_id(s, i + nth);
	return true;
}

static bool has_repeats(const struct subset *s)
{
	for (uint64_t i = 1; s->sorted && i < s->n; i++) {
		if (s->ids[s->sorted[i]] == s->ids[s->sorted[i - 1]])
			return true;
	}
	return false;
}

/* --- weights --- */

uint64_t subset_weight(const struct subset *s, uint64_t place)
{
	return s->sums[place] - (place ? s->sums[place - 1] : 0);
}

uint64_t subset_draw(const struct subset *s, uint64_t number)
{
	uint64_t total = s->sums[s->n - 1], low = 0, high = s->n - 1, mid;
	uint64_t at = (uint64_t)((unsigned __int128)number * total >> 64);

	while (low < high) {
		mid = low + (high - low) / 2;
		if (s->sums[mid] <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* --- opening --- */

/* Opens the file of a list. O_NONBLOCK keeps the open of a FIFO or a device
   from blocking. */
static int open_list(const char *path, struct log *log, int *fd)
{
	struct stat st;
	int e = 0;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0 || fstat(*fd, &st))
		e = -errno;
	else if (S_ISDIR(st.st_mode))
		e = -EISDIR;
	if (e || !S_ISREG(st.st_mode))
		log_error(log, "%s: %s", path,
			  e ? strerror(-e) : "not a regular file");
	else
		return 0;
	return e ? e : -EINVAL;
}

static int read_list(struct subset *s, const char *path, uint64_t samples,
		     struct log *log)
{
	struct subset_reader reader = {
		.path = path,
		.log = log,
		.samples = samples,
		.line = 1,
		.into = s,
	};
	cleanup_fd int fd = -1;
	int e = open_list(path, log, &fd);

	if (!e)
		e = read_ids(&reader, fd);
	if (!e && !s->n) {
		log_error(log, "%s: contains no sample number", path);
		return -EINVAL;
	}
	if (!e && s->sums && !s->sums[s->n - 1]) {
		log_error(log, "%s: all weights are 0", path);
		return -EINVAL;
	}
	if (!e)
		e = resize_lists(&reader, s->n);
	if (!e)
		e = sort_places(s, samples);
	if (!e)
		s->repeats = has_repeats(s);
	return e;
}

static void subset_free(struct subset *s)
{
	free(s->ids);
	free(s->sums);
	free(s->sorted);
	free(s);
}

static struct subset *subset_new(const struct subset_ref *ref)
{
	struct subset *s = calloc(1, sizeof(*s));

	if (s)
		memcpy(s->name, ref->name, ref->size);
	return s;
}

/* Refuses a name that the list has already, because a spec could not choose
   between both. */
static int check_name(const char *text, const struct subset *list,
		      struct log *log, struct subset_ref *out)
{
	const char *colon = strchr(text, ':');

	if (!colon || !colon[1] ||
	    !subset_parse_ref(text, (size_t)(colon - text), out) ||
	    out->has_hash)
		log_error(
			log,
			"subset %s: expected NAME:FILE, where NAME has at most %d letters, digits, _ and -, and not only digits",
			text, SUBSET_NAME_MAX);
	else if (subset_find(list, out))
		log_error(log, "subset %s: the name is given twice", text);
	else
		return 0;
	return -EINVAL;
}

/* A hash of the ids and, if there are weights, of their sums. */
static uint64_t hash_of(const struct subset *s)
{
	uint64_t words[2] = { rng_key(s->ids, s->n) };

	if (!s->sums)
		return words[0];
	words[1] = rng_key(s->sums, s->n);
	return rng_key(words, ARRAY_LEN(words));
}

int subset_open(const char *text, uint64_t samples, struct log *log,
		struct subset **list)
{
	struct subset_ref ref;
	struct subset *s;
	int e = check_name(text, *list, log, &ref);

	if (e)
		return e;
	s = subset_new(&ref);
	if (!s)
		return -ENOMEM;
	e = read_list(s, ref.name + ref.size + 1, samples, log);
	if (e) {
		subset_free(s);
		return e;
	}
	s->hash = hash_of(s);
	s->next = *list;
	*list = s;
	return 0;
}

void subset_close_all(struct subset *list)
{
	struct subset *next;

	for (; list; list = next) {
		next = list->next;
		subset_free(list);
	}
}

int subset_add_known(const struct subset_ref *ref, uint64_t n,
		     struct subset **list)
{
	struct subset *s = subset_new(ref);

	if (!s)
		return -ENOMEM;
	s->hash = ref->hash;
	s->n = n;
	s->next = *list;
	*list = s;
	return 0;
}
