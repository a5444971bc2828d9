/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations and conventions that all public headers share.
 *
 * libbeton loads training batches from datasets in FFCV's format (.beton), and
 * reads and writes such datasets. beton_loader(3) has a complete program for a
 * training loop, beton_dataset(3) for single samples, beton_writer(3) for a new
 * dataset, and beton_image(3) for single images. For example, this command
 * compiles a program:
 *
 *   cc program.c $(pkg-config --cflags --libs beton)
 *
 * These conventions hold for every function of <beton/...> unless its comment
 * states otherwise:
 *   - int results are 0 or a negative errno value; outputs are written only
 *     on success;
 *   - sizes and offsets are in bytes, sample and batch numbers count from 0;
 *   - strings are UTF-8 and end in NUL;
 *   - x_close() takes NULL;
 *   - the library prints nothing, changes no signal handler, never exits and
 *     has no global state. Messages go to the log callback of the handle.
 *
 * A program linked with one version of the library also runs with each later
 * version of the same soname. Its source compiles with later headers without a
 * change. To make this possible, structs follow three rules:
 *
 *   - they may grow at the end if they begin with a member `size`. The caller
 *     sets it to the struct's sizeof. Members that the caller or the library
 *     does not have are 0. If a caller sets a member that the library does not
 *     have, the function returns -EINVAL.
 *     Input: struct beton_loader_options, struct beton_dataset_options,
 *     struct beton_writer_options, struct beton_merge_options. Output:
 *     struct beton_throughput_stats, struct beton_makers_stats,
 *     struct beton_network_stats, struct beton_entry_points_stats;
 *   - struct beton_batch belongs to the library. It may grow at the end, so
 * copy its members and not the struct;
 *   - all other structs keep their members, their layout and their size.
 *     Output, filled in memory of the caller: struct beton_loader_info,
 *     struct beton_output, struct beton_stage_stats,
 *     struct beton_image_cache_stats, struct beton_field, struct beton_value,
 *     struct beton_writer_value. Output, in memory of the library:
 *     struct beton_tensor. Input: struct beton_writer_field,
 *     struct beton_writer_image, struct beton_writer_recipe,
 *     struct beton_image, struct beton_image_part. In files:
 *     struct beton_batch_header, struct beton_batch_field,
 *     struct beton_batch_value, struct beton_array_header.
 *
 * Enums may get more values at the end.
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

/* A dataset or batch file contradicts itself: it is damaged or hostile. */
#define BETON_ECORRUPT EUCLEAN
/* The file is not a dataset, or its writer did not finish it. */
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
