/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/evidence.h"

#include <stdarg.h>
#include <stdio.h>

void doctor_note(struct evidence *e, const char *format, ...)
{
	va_list args;

	if (e->num_notes == DOCTOR_NOTES_MAX)
		return;
	va_start(args, format);
	vsnprintf(e->notes[e->num_notes++], DOCTOR_NOTE_SIZE, format, args);
	va_end(args);
}

/* Requests that wait for each other have more bytes in flight than arrive in
   the time of an answer, by more than this factor. */
#define QUEUED 2.0
/* A smaller share of the answers is noise of a large service. */
#define THROTTLED_ANSWERS 0.01

bool network_is_late(const struct network_seen *n)
{
	return n->known && n->latency_s > 0 &&
	       n->in_flight * n->request_bytes <
		       QUEUED * n->rate * n->latency_s;
}

bool network_is_throttled(const struct network_seen *n)
{
	return n->known && n->throttled > 0 &&
	       n->throttled >= THROTTLED_ANSWERS * n->requests;
}
