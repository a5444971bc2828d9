/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns libjpeg's errors into return values. An error ends the step that
 * codec_error_run() runs, with an errno value and a message; nothing is
 * printed. Warnings that mean wrong pixels are failures, others are ignored.
 */
#ifndef LOADER_IMAGE_CODEC_ERROR_H
#define LOADER_IMAGE_CODEC_ERROR_H

struct codec_error;
struct jpeg_error_mgr;

int codec_error_open(struct codec_error **out);
void codec_error_close(struct codec_error *error);

/* For a decoder's or an encoder's `err`. */
struct jpeg_error_mgr *codec_error_manager(struct codec_error *error);

/*
 * Clears the message and runs step(arg). Returns -EBADMSG or -ENOMEM if libjpeg
 * raised an error, else the step's result. An error leaves the step anywhere
 * inside libjpeg, so the step must own nothing.
 */
int codec_error_run(struct codec_error *error, int (*step)(void *arg),
		    void *arg);

/* Sets the message; returns e, a negative errno value. */
int codec_error_set(struct codec_error *error, int e, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

const char *codec_error_message(const struct codec_error *error);

#endif
