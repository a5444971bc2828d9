/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/state.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

int state_format(const struct state *s, char *buffer, size_t size)
{
	int n = snprintf(
		buffer, size,
		"{\"version\": %d, \"fingerprint\": \"%s\", "
		"\"spec\": \"%s\", \"epoch\": %llu, \"batches\": %llu}",
		STATE_VERSION, s->fingerprint, s->spec,
		(unsigned long long)s->epoch, (unsigned long long)s->batches);

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
	const char *fingerprint, *spec;
	json_int_t version, epoch, batches;
	json_error_t error = { .text = "" };
	json_t *o = json_loads(text, 0, &error);
	int r = -EINVAL;

	if (!o ||
	    json_unpack_ex(o, &error, 0, "{s:I, s:s, s:s, s:I, s:I}", "version",
			   &version, "fingerprint", &fingerprint, "spec", &spec,
			   "epoch", &epoch, "batches", &batches)) {
		snprintf(why, SPEC_WHY_SIZE, "not a loader's state: %.100s",
			 error.text);
	} else if (version != STATE_VERSION || epoch < 0 || batches < 0 ||
		   copy(out->fingerprint, sizeof(out->fingerprint),
			fingerprint) ||
		   copy(out->spec, sizeof(out->spec), spec)) {
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
