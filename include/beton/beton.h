/* SPDX-License-Identifier: Apache-2.0 */
/*
 * betonfs: what all of its public headers share.
 *
 * Conventions, true of every function of <beton/...> unless it says otherwise:
 *   - int results are 0 or a negative errno value; outputs are written only
 *     on success;
 *   - sizes and offsets are bytes, sample and batch numbers count from 0;
 *   - strings are UTF-8 and end in NUL;
 *   - x_close() takes NULL;
 *   - a struct with a member `size` has it set to its sizeof by the caller, who
 *     may have been compiled with fewer members than the library, or more: what
 *     one of them does not know is 0. Others may grow until version 1;
 *   - the library prints nothing, changes no signal handler, never exits and
 *     has no global state: messages go to the log callback of the handle.
 */
#ifndef BETON_BETON_H
#define BETON_BETON_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BETON_VERSION_MAJOR 0
#define BETON_VERSION_MINOR 1
#define BETON_VERSION_PATCH 0

/* Marks what the shared library exports. */
#define BETON_API __attribute__((visibility("default")))

/* A dataset or batch file that contradicts itself: damaged, or hostile. */
#define BETON_ECORRUPT EUCLEAN
/* Not a dataset at all, or an unfinished one. */
#define BETON_ENOTBETON EMEDIUMTYPE

enum beton_log_level {
	BETON_LOG_ERROR,
	BETON_LOG_WARNING,
	BETON_LOG_INFO,
	BETON_LOG_DEBUG,
};

/*
 * Receives one message, without a newline, that names the file and the place.
 * Called from any thread of the library, one call at a time per handle; it
 * must not call back into that handle. `message` is valid during the call.
 */
typedef void beton_log_fn(void *arg, enum beton_log_level level,
			  const char *message);

/* The version of the library that runs, "0.1.0"; compare with the macros. */
BETON_API const char *beton_version(void);

#ifdef __cplusplus
}
#endif

#endif
