/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/text/schedule.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/order/spec.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/name.h"

bool epochs_reach(struct epochs *epochs, uint64_t first)
{
	if (first <= epochs->now)
		return true;
	epochs->end = min_u64(epochs->end, first);
	return false;
}

static int __attribute__((format(printf, 3, 4)))
refuse(struct schedule *s, const char *at, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->wrong, sizeof(s->wrong), format, args);
	va_end(args);
	s->at = at;
	return -EINVAL;
}

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t");
}

/* Takes EPOCH of a part, up to its `='. */
static int take_epoch(struct schedule *s, const char *equals)
{
	const char *end = equals;
	uint64_t epoch;
	size_t size;

	while (end > s->at && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	size = (size_t)(end - s->at);
	if (!name_parse_u64(s->at, size, &epoch) || epoch > SPEC_EPOCH_MAX)
		return refuse(s, s->at, "`%.*s' is not the number of an epoch",
			      (int)min_u64(size, 24), s->at);
	/* `numbers' is still that of the previous part. */
	if (!s->numbers && epoch)
		return refuse(s, s->at, "the first epoch is 0, not %llu",
			      (unsigned long long)epoch);
	if (s->numbers && epoch <= s->epoch)
		return refuse(s, s->at, "epoch %llu does not come after %llu",
			      (unsigned long long)epoch,
			      (unsigned long long)s->epoch);
	s->epoch = epoch;
	s->numbers = equals + 1;
	return 0;
}

/* The last comma in [from, end). */
static const char *last_comma(const char *from, const char *end)
{
	return memrchr(from, ',', (size_t)(end - from));
}

int schedule_next(struct schedule *s)
{
	const char *equals = strchr(s->rest, '='), *next;
	int r;

	s->at = skip_blanks(s->rest);
	s->is_scheduled = equals != NULL;
	s->end = s->rest + strlen(s->rest);
	if (!equals) {
		s->numbers = s->rest;
		s->rest = NULL;
		return 0;
	}
	if (last_comma(s->at, equals))
		return refuse(s, s->at, "`0=' is missing before the first");
	r = take_epoch(s, equals);
	if (r)
		return r;
	next = strchr(s->numbers, '=');
	s->rest = NULL;
	if (!next)
		return 0;
	s->end = last_comma(s->numbers, next);
	if (!s->end)
		return refuse(s, next, "a comma is missing before an epoch");
	s->rest = s->end + 1;
	return 0;
}
