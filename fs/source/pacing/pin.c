/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/pacing/pin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"

/* "Sun, 06 Nov 1994 08:49:37 GMT", in no locale. */
static void format_date(time_t at, char *out, size_t size)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct tm tm;

	gmtime_r(&at, &tm);
	snprintf(out, size, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
		 days + 3 * tm.tm_wday, tm.tm_mday, months + 3 * tm.tm_mon,
		 tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

const char *pin_name(const char *etag, bool has_modified, time_t modified,
		     char buf[PIN_LINE_SIZE])
{
	char date[64] = "no ETag";

	if (has_modified)
		format_date(modified, date, sizeof(date));
	snprintf(buf, PIN_LINE_SIZE, "%s", *etag ? etag : date);
	return buf;
}

bool pin_condition(const struct pin *pin, char line[PIN_LINE_SIZE])
{
	char date[64];

	if (*pin->etag && !pin->etag_is_weak) {
		snprintf(line, PIN_LINE_SIZE, "If-Match: %s", pin->etag);
		return true;
	}
	if (!pin->has_modified)
		return false;
	format_date(pin->modified, date, sizeof(date));
	snprintf(line, PIN_LINE_SIZE, "If-Unmodified-Since: %s", date);
	return true;
}

static enum pin_verdict say(enum pin_verdict verdict, char *why,
			    const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static enum pin_verdict say(enum pin_verdict verdict, char *why,
			    const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, PIN_WHY_SIZE, format, args);
	va_end(args);
	return verdict;
}

/* --- the bytes of an answer --- */

struct pin_extent {
	uint64_t first, last, total;
};

/* An answer to a range that the object does not have. */
static bool is_whole(const struct http_answer *a)
{
	return a->status == 200 && !a->has_range;
}

static enum pin_verdict read_extent(const struct http_answer *a, uint64_t off,
				    uint64_t size, struct pin_extent *out,
				    char *why)
{
	if (a->malformed)
		return say(
			PIN_REFUSED, why,
			"the answer has a malformed Content-Length or Content-Range, or two that differ");
	if (a->is_multipart)
		return say(
			PIN_REFUSED, why,
			"the server sends multipart/byteranges for one range");
	if (a->is_encoded)
		return say(
			PIN_REFUSED, why,
			"the server compresses the object: switch its Content-Encoding off");
	if (a->has_range) {
		*out = (struct pin_extent){ a->first, a->last, a->total };
		return PIN_OK;
	}
	if (!is_whole(a))
		return say(PIN_WRONG, why, "status %d without Content-Range",
			   a->status);
	if (!a->has_length || off || a->length > size)
		return say(
			PIN_REFUSED, why,
			"the server ignores Range and sends the whole object: use a server that answers requests for ranges, such as nginx");
	*out = (struct pin_extent){ 0, a->length ? a->length - 1 : 0,
				    a->length };
	return PIN_OK;
}

/* The answer begins at `off`, and has no byte beyond the requested ones. It may
   be shorter. */
static enum pin_verdict check_extent(const struct http_answer *a,
				     const struct pin_extent *got, uint64_t off,
				     uint64_t size, char *why)
{
	uint64_t last = min_u64(off + size, got->total);

	if (got->total == HTTP_UNKNOWN)
		return say(PIN_REFUSED, why,
			   "the server does not report the object's size");
	if (!got->total)
		return PIN_OK;
	if (got->first != off || got->last >= last)
		return say(
			PIN_WRONG, why,
			"Content-Range is %llu-%llu/%llu instead of %llu-%llu",
			(unsigned long long)got->first,
			(unsigned long long)got->last,
			(unsigned long long)got->total, (unsigned long long)off,
			(unsigned long long)last - 1);
	if (a->has_length && a->length != got->last - got->first + 1)
		return say(PIN_WRONG, why,
			   "Content-Length %llu does not match Content-Range",
			   (unsigned long long)a->length);
	return PIN_OK;
}

/* --- the version of an answer --- */

static void set_pin(struct pin *pin, const struct http_answer *a, uint64_t size)
{
	pin->is_set = true;
	pin->size = size;
	memcpy(pin->etag, a->etag, sizeof(pin->etag));
	pin->etag_is_weak = a->etag_is_weak;
	memcpy(pin->version, a->version, sizeof(pin->version));
	pin->generation = a->generation;
	pin->has_modified = a->has_modified;
	pin->modified = a->modified;
}

/* The answer has what the pin has been compared by so far. */
static bool is_comparable(const struct pin *pin, const struct http_answer *a)
{
	if (*pin->etag)
		return *a->etag;
	return !pin->has_modified || a->has_modified;
}

static bool is_same(const struct pin *pin, const struct http_answer *a)
{
	if (strcmp(pin->etag, a->etag) || pin->etag_is_weak != a->etag_is_weak)
		return false;
	if (*pin->version && *a->version && strcmp(pin->version, a->version))
		return false;
	if (pin->generation && a->generation &&
	    pin->generation != a->generation)
		return false;
	return (*pin->etag && !pin->etag_is_weak) || !pin->has_modified ||
	       pin->modified == a->modified;
}

static enum pin_verdict check_version(const struct pin *pin,
				      const struct http_answer *a,
				      uint64_t total, char *why)
{
	if (!is_comparable(pin, a))
		return say(PIN_WRONG, why, "the answer has no ETag and date");
	if (!is_same(pin, a))
		return say(PIN_REPLACED, why, "another version");
	if (total == pin->size)
		return PIN_OK;
	if (*pin->etag && !pin->etag_is_weak)
		return say(
			PIN_WRONG, why,
			"the object has %llu bytes instead of %llu, and the same ETag",
			(unsigned long long)total,
			(unsigned long long)pin->size);
	return say(PIN_REPLACED, why, "another version");
}

enum pin_verdict pin_check(struct pin *pin, const struct http_answer *answer,
			   uint64_t off, uint64_t size, uint64_t *end,
			   char why[PIN_WHY_SIZE])
{
	struct pin_extent got = { 0 };
	enum pin_verdict v = read_extent(answer, off, size, &got, why);

	/* The server could serve ranges before. */
	if (v == PIN_REFUSED && pin->is_set)
		v = PIN_WRONG;
	if (v == PIN_OK && pin->is_set && got.total != HTTP_UNKNOWN)
		v = check_version(pin, answer, got.total, why);
	if (v == PIN_OK && got.total != HTTP_UNKNOWN && got.total > INT64_MAX)
		v = say(PIN_REFUSED, why,
			"the server reports a size of %llu bytes, more than a file can have",
			(unsigned long long)got.total);
	if (v == PIN_OK)
		v = check_extent(answer, &got, off, size, why);
	if (v != PIN_OK)
		return v;
	if (!pin->is_set)
		set_pin(pin, answer, got.total);
	*end = got.total ? got.last + 1 : 0;
	return PIN_OK;
}
