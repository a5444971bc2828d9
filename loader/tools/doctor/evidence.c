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
