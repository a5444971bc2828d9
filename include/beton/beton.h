/* SPDX-License-Identifier: Apache-2.0 */
/*
 * betonfs: the declarations and conventions that all public headers share.
 *
 * These conventions hold for every function of <beton/...> unless its comment
 * states otherwise:
 *   - int results are 0 or a negative errno value; outputs are written only
 *     on success;
 *   - sizes and offsets are in bytes, sample and batch numbers count from 0;
 *   - strings are UTF-8 and end in NUL;
 *   - x_close() takes NULL;
 *   - if a struct has a member `size`, the caller sets it to the struct's
 *     sizeof. Caller and library may be of different versions: members that one
 *     of them does not have are 0. All other structs keep their members and
 *     their layout as long as the soname of the library stays the same;
 *   - the library prints nothing, changes no signal handler, never exits and
 *     has no global state. Messages go to the log callback of the handle.
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

/* Marks the functions that the shared library exports. */
#define BETON_API __attribute__((visibility("default")))

/* A dataset or batch file that contradicts itself: it is damaged or hostile. */
#define BETON_ECORRUPT EUCLEAN
/* The file is not a dataset, or was never finished. */
#define BETON_ENOTBETON EMEDIUMTYPE
/* The values of a sample do not fit into one page of the dataset. */
#define BETON_ETOOLARGE EMSGSIZE

enum beton_log_level {
	BETON_LOG_ERROR,
	BETON_LOG_WARNING,
	BETON_LOG_INFO,
	BETON_LOG_DEBUG,
};

/* Receives one message, without a newline, that names the file and the
   position. Any thread of the library may call it, one call at a time per
   handle. It must not call back into that handle. `message` is valid during the
   call. */
typedef void beton_log_fn(void *arg, enum beton_log_level level,
			  const char *message);

/*
 * Returns the version of the loaded library, such as "0.1.0". If it differs
 * from the macros, the program was compiled with the headers of another
 * version.
 */
BETON_API const char *beton_version(void);

#ifdef __cplusplus
}
#endif

#endif
