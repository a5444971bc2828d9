/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/net/http.h"

#include <string.h>
#include <strings.h>

#include "fs/base/util/bytes.h"

/* The rest of a text that is parsed. */
struct http_text {
	const char *at;
	size_t left;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void skip_blanks(struct http_text *t)
{
	while (t->left && is_blank(*t->at)) {
		t->at++;
		t->left--;
	}
}

static void trim(struct http_text *t)
{
	skip_blanks(t);
	while (t->left &&
	       (is_blank(t->at[t->left - 1]) || t->at[t->left - 1] == '\r' ||
		t->at[t->left - 1] == '\n'))
		t->left--;
}

static bool take(struct http_text *t, const char *word)
{
	size_t n = strlen(word);

	if (t->left < n || strncasecmp(t->at, word, n))
		return false;
	t->at += n;
	t->left -= n;
	return true;
}

/* Digits only; false if there is none, or if the number is too large. */
static bool take_number(struct http_text *t, uint64_t *out)
{
	uint64_t v = 0;
	bool any = false;

	for (; t->left && *t->at >= '0' && *t->at <= '9'; t->at++, t->left--) {
		if (!mul_ok(v, 10, &v) ||
		    !add_ok(v, (uint64_t)(*t->at - '0'), &v))
			return false;
		any = true;
	}
	if (any)
		*out = v;
	return any;
}

static bool take_all_number(struct http_text t, uint64_t *out)
{
	return take_number(&t, out) && !t.left;
}

/* --- values --- */

static bool parse_total(struct http_text *t, uint64_t *out)
{
	if (!take(t, "/"))
		return false;
	if (take(t, "*"))
		*out = HTTP_UNKNOWN;
	else if (!take_number(t, out))
		return false;
	return !t->left;
}

bool http_parse_range(const char *text, size_t size, struct http_answer *out)
{
	struct http_text t = { text, size };
	uint64_t first, last, total;

	trim(&t);
	if (!take(&t, "bytes"))
		return false;
	skip_blanks(&t);
	if (take(&t, "*")) {
		if (!parse_total(&t, &total))
			return false;
		out->unsatisfied = true;
		out->total = total;
		return true;
	}
	if (!take_number(&t, &first) || !take(&t, "-") ||
	    !take_number(&t, &last) || !parse_total(&t, &total))
		return false;
	if (last < first || last == UINT64_MAX || last >= total)
		return false;
	out->has_range = true;
	out->first = first;
	out->last = last;
	out->total = total;
	return true;
}

static bool take_two(struct http_text *t, int low, int high, int *out)
{
	if (t->left < 2 || t->at[0] < '0' || t->at[0] > '9' || t->at[1] < '0' ||
	    t->at[1] > '9')
		return false;
	*out = (t->at[0] - '0') * 10 + (t->at[1] - '0');
	t->at += 2;
	t->left -= 2;
	return *out >= low && *out <= high;
}

static bool take_month(struct http_text *t, int *out)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (int i = 0; i < 12 && t->left >= 3; i++) {
		if (strncmp(t->at, months + 3 * i, 3))
			continue;
		t->at += 3;
		t->left -= 3;
		*out = i;
		return true;
	}
	return false;
}

static bool take_clock(struct http_text *t, struct tm *tm)
{
	return take_two(t, 0, 23, &tm->tm_hour) && take(t, ":") &&
	       take_two(t, 0, 59, &tm->tm_min) && take(t, ":") &&
	       take_two(t, 0, 60, &tm->tm_sec);
}

bool http_parse_date(const char *text, size_t size, time_t *out)
{
	struct http_text t = { text, size };
	struct tm tm = { 0 };
	int century, year;

	trim(&t);
	if (t.left < 5 || t.at[3] != ',' || t.at[4] != ' ')
		return false;
	t.at += 5;
	t.left -= 5;
	if (!take_two(&t, 1, 31, &tm.tm_mday) || !take(&t, " ") ||
	    !take_month(&t, &tm.tm_mon) || !take(&t, " ") ||
	    !take_two(&t, 19, 99, &century) || !take_two(&t, 0, 99, &year) ||
	    !take(&t, " ") || !take_clock(&t, &tm) || !take(&t, " GMT") ||
	    t.left)
		return false;
	tm.tm_year = century * 100 + year - 1900;
	*out = timegm(&tm);
	return true;
}

/* --- fields --- */

static void read_length(struct http_answer *a, struct http_text value)
{
	uint64_t length;

	if (!take_all_number(value, &length) ||
	    (a->has_length && a->length != length)) {
		a->malformed = true;
		return;
	}
	a->has_length = true;
	a->length = length;
}

static void read_range(struct http_answer *a, struct http_text value)
{
	if (a->has_range || a->unsatisfied ||
	    !http_parse_range(value.at, value.left, a))
		a->malformed = true;
}

/* Printable characters; others could end up in a request of ours. */
static bool is_plain(struct http_text value)
{
	for (size_t i = 0; i < value.left; i++) {
		if (value.at[i] <= ' ' || value.at[i] > '~')
			return false;
	}
	return value.left;
}

static void copy_plain(struct http_text value, char *out, size_t size)
{
	if (!is_plain(value) || value.left >= size)
		return;
	memcpy(out, value.at, value.left);
	out[value.left] = '\0';
}

static void read_etag(struct http_answer *a, struct http_text value)
{
	bool is_weak =
		value.left > 2 && value.at[0] == 'W' && value.at[1] == '/';

	if (is_weak) {
		value.at += 2;
		value.left -= 2;
	}
	a->etag[0] = '\0';
	copy_plain(value, a->etag, sizeof(a->etag));
	a->etag_is_weak = is_weak;
}

/* "null" is the only version of an object that has no versions. */
static void read_version(struct http_answer *a, struct http_text value)
{
	copy_plain(value, a->version, sizeof(a->version));
	if (!strcmp(a->version, "null"))
		a->version[0] = '\0';
}

static void read_generation(struct http_answer *a, struct http_text value)
{
	uint64_t number;

	if (take_all_number(value, &number))
		a->generation = number;
}

static void read_modified(struct http_answer *a, struct http_text value)
{
	a->has_modified = http_parse_date(value.at, value.left, &a->modified);
}

/* A date instead of seconds is rare and counts as absent. */
static void read_retry_after(struct http_answer *a, struct http_text value)
{
	uint64_t seconds;

	if (take_all_number(value, &seconds))
		a->retry_after = seconds;
}

static void read_type(struct http_answer *a, struct http_text value)
{
	a->is_multipart = take(&value, "multipart/byteranges");
	a->is_html = take(&value, "text/html");
}

static void read_encoding(struct http_answer *a, struct http_text value)
{
	if (value.left && !(take(&value, "identity") && !value.left))
		a->is_encoded = true;
}

static void read_location(struct http_answer *a, struct http_text value)
{
	a->has_location = value.left;
}

static const struct {
	const char *name;
	void (*read)(struct http_answer *a, struct http_text value);
} fields[] = {
	{ "Content-Length", read_length },
	{ "Content-Range", read_range },
	{ "Content-Type", read_type },
	{ "Content-Encoding", read_encoding },
	{ "ETag", read_etag },
	{ "Last-Modified", read_modified },
	{ "Location", read_location },
	{ "Retry-After", read_retry_after },
	{ "x-amz-version-id", read_version },
	{ "x-goog-generation", read_generation },
};

static void read_field(struct http_answer *a, struct http_text line)
{
	const char *colon = memchr(line.at, ':', line.left);
	struct http_text value;
	size_t n;

	if (!colon)
		return;
	n = (size_t)(colon - line.at);
	value = (struct http_text){ colon + 1, line.left - n - 1 };
	trim(&value);
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (strlen(fields[i].name) == n &&
		    !strncasecmp(fields[i].name, line.at, n))
			fields[i].read(a, value);
	}
}

/* "HTTP/1.1 206 Partial Content" */
static bool read_status(struct http_answer *a, struct http_text line)
{
	uint64_t status;

	if (!take(&line, "HTTP/"))
		return false;
	while (line.left && !is_blank(*line.at)) {
		line.at++;
		line.left--;
	}
	skip_blanks(&line);
	*a = (struct http_answer){ 0 };
	if (take_number(&line, &status) && status >= 100 && status <= 999)
		a->status = (int)status;
	else
		a->malformed = true;
	return true;
}

void http_line(struct http_answer *answer, const char *line, size_t size)
{
	struct http_text t = { line, size };

	if (!read_status(answer, t))
		read_field(answer, t);
}
