/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/loop/state.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

int state_format(const struct state *s, char *buffer, size_t size)
{
	char source[sizeof(s->source) + 16] = "";
	int n;

	if (*s->source)
		snprintf(source, sizeof(source), ", \"source\": \"%s\"",
			 s->source);
	n = snprintf(buffer, size,
		     "{\"version\": %d, \"fingerprint\": \"%s\", "
		     "\"spec\": \"%s\", \"epoch\": %llu, "
		     "\"batches\": %llu%s}",
		     STATE_VERSION, s->fingerprint, s->spec,
		     (unsigned long long)s->epoch,
		     (unsigned long long)s->batches, source);

	return n >= 0 && (size_t)n < size ? 0 : -ENOSPC;
}

static int copy(char *to, size_t size, const char *from)
{
	if (strlen(from) >= size)
		return -EINVAL;
	strcpy(to, from);
	return 0;
}

int state_parse(const char *text, struct state *out, char why[SPEC_WHY_SIZE])
{
	const char *fingerprint, *spec, *source = "";
	json_int_t version, epoch, batches;
	json_error_t error = { .text = "" };
	json_t *o = json_loads(text, 0, &error);
	int r = -EINVAL;

	if (!o || json_unpack_ex(o, &error, 0, "{s:I, s:s, s:s, s:I, s:I, s?s}",
				 "version", &version, "fingerprint",
				 &fingerprint, "spec", &spec, "epoch", &epoch,
				 "batches", &batches, "source", &source)) {
		snprintf(why, SPEC_WHY_SIZE, "not a loader's state: %.100s",
			 error.text);
	} else if (version != STATE_VERSION || epoch < 0 || batches < 0 ||
		   copy(out->fingerprint, sizeof(out->fingerprint),
			fingerprint) ||
		   copy(out->spec, sizeof(out->spec), spec) ||
		   copy(out->source, sizeof(out->source), source)) {
		snprintf(
			why, SPEC_WHY_SIZE,
			"not a state of this version: version %lld, epoch %lld, batches %lld",
			(long long)version, (long long)epoch,
			(long long)batches);
	} else {
		out->epoch = (uint64_t)epoch;
		out->batches = (uint64_t)batches;
		r = 0;
	}
	json_decref(o);
	return r;
}
