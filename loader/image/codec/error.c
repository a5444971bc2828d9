/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include "fs/base/util/bytes.h"

struct codec_error {
	struct jpeg_error_mgr manager; /* first member, which libjpeg passes */
	jmp_buf escape;
	char message[JMSG_LENGTH_MAX];
};

/* Warnings that leave the pixels as they were encoded. */
static const int HARMLESS[] = {
	JWRN_ADOBE_XFORM, JWRN_BOGUS_ICC,      JWRN_EXTRANEOUS_DATA,
	JWRN_JFIF_MAJOR,  JWRN_NOT_SEQUENTIAL, JWRN_TOO_MUCH_DATA,
};

static void leave_step(j_common_ptr cinfo)
{
	struct codec_error *error = (struct codec_error *)cinfo->err;

	error->manager.format_message(cinfo, error->message);
	longjmp(error->escape, 1);
}

static bool is_harmless(int code)
{
	for (size_t i = 0; i < ARRAY_LEN(HARMLESS); i++)
		if (code == HARMLESS[i])
			return true;
	return false;
}

/* Level -1 is a warning; the other levels are progress messages. */
static void hear(j_common_ptr cinfo, int level)
{
	if (level < 0 && !is_harmless(cinfo->err->msg_code))
		leave_step(cinfo);
}

static void print_nothing(j_common_ptr cinfo)
{
	(void)cinfo;
}

int codec_error_open(struct codec_error **out)
{
	struct codec_error *error = calloc(1, sizeof(*error));

	if (!error)
		return -ENOMEM;
	jpeg_std_error(&error->manager);
	error->manager.error_exit = leave_step;
	error->manager.emit_message = hear;
	error->manager.output_message = print_nothing;
	*out = error;
	return 0;
}

void codec_error_close(struct codec_error *error)
{
	free(error);
}

struct jpeg_error_mgr *codec_error_manager(struct codec_error *error)
{
	return &error->manager;
}

int codec_error_run(struct codec_error *error, int (*step)(void *arg),
		    void *arg)
{
	error->message[0] = '\0';
	if (!setjmp(error->escape))
		return step(arg);
	return error->manager.msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM
							     : -EBADMSG;
}

int codec_error_set(struct codec_error *error, int e, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return e;
}

const char *codec_error_message(const struct codec_error *error)
{
	return error->message;
}
