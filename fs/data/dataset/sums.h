/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checksums of a dataset file, in a side file X.beton.sums (beton(5)): the
 * CRC-32C of each block of 64 KiB, the size and the fingerprint of the dataset,
 * and a CRC-32C of the side file itself.
 *
 * A struct sums is immutable once it is complete; then all functions that take
 * a const one are thread-safe. It takes 64 bytes for each MiB of the dataset.
 */
#ifndef FS_DATA_DATASET_SUMS_H
#define FS_DATA_DATASET_SUMS_H

#include <sys/stat.h>

#include "fs/data/dataset/dataset.h"

enum {
	/* Small, because reads of single samples have to read whole blocks. */
	SUMS_BLOCK = 64 << 10,
	SUMS_VERSION = 1,
	SUMS_HEAD_SIZE = 40,
	/* Bounds the memory for hostile side files: 256 MiB, for 4 TiB. */
	SUMS_BLOCKS_MAX = 1 << 26,
	SUMS_WHY_SIZE = 160,
};

struct sums {
	uint64_t size; /* of the dataset file, in bytes */
	uint8_t fingerprint[BETON_FINGERPRINT_SIZE];
	uint64_t num;  /* blocks; the last one may be short */
	uint32_t *crc; /* of each block; owned */
	uint64_t room; /* for blocks */
};

/* --- making --- */

/* Makes sums of no bytes. -ENOMEM. */
int sums_new(struct sums **out);
/* Frees; takes NULL. */
void sums_free(struct sums *s);

/* Adds the next bytes of the dataset file, in pieces of any size. -ENOMEM,
   -EFBIG beyond SUMS_BLOCKS_MAX. */
int sums_add(struct sums *s, const void *bytes, size_t n);

/* Adds the sums of bytes that follow. -EINVAL: the bytes so far end within a
   block. -ENOMEM, -EFBIG. */
int sums_join(struct sums *s, const struct sums *more);

/* Called once per block, from any thread; a result other than 0 ends the scan
   and becomes its result. */
typedef int sums_block_fn(void *arg, uint64_t block, uint32_t crc);

/*
 * Reads the first `size` bytes of a file in large pieces, on `threads` threads
 * (0: as many as there are CPUs), and passes each block's CRC to `fn`. Takes 1
 * MiB of memory per thread. Failures are logged: -errno of open() and read(),
 * -EIO if the file is shorter, -ENOMEM.
 */
int sums_scan(const char *path, uint64_t size, unsigned threads,
	      sums_block_fn *fn, void *arg, struct log *log);

/* Makes the sums of a dataset file by sums_scan(). If `seen` is not NULL, it is
   called as well, for progress and to cancel. Failures are logged: those of
   dataset_open(), sums_scan() and sums_check_same(), and -EFBIG. */
int sums_of_file(const char *path, unsigned threads, sums_block_fn *seen,
		 void *arg, struct log *log, struct sums **out);

/* Returns -ESTALE, logged, if the path no longer leads to the file of `was`, or
   if that was written to: its sums may be those of two files. */
int sums_check_same(const char *path, const struct stat *was, struct log *log);

/* --- the side file --- */

/* Returns the path or URL of the side file of a dataset file, which the caller
   frees, or NULL if memory is short. */
char *sums_path(const char *path);

/* Makes the bytes of a side file, which the caller frees. -ENOMEM. */
int sums_pack(const struct sums *s, uint8_t **bytes, size_t *size);

/* Writes the side file of the dataset file `path` by fs/base/files/outfile.
   Failures are logged. */
int sums_save(const struct sums *s, const char *path, struct log *log);

/*
 * Reads the side file of the dataset file or URL `path`, without looking at that
 * file.
 * -ENOENT, not logged: there is none. All other failures are logged:
 * -BETON_ECORRUPT if it is damaged, -errno of open() and read(), -ENOMEM.
 */
int sums_load(const char *path, const struct source_options *options,
	      struct log *log, struct sums **out);

/* Like sums_load(), for its bytes; writes the reason of -BETON_ECORRUPT to
   `why` and logs nothing. */
int sums_parse(const uint8_t *bytes, size_t size, struct sums **out,
	       char why[SUMS_WHY_SIZE]);

/*
 * Like sums_load(), and checks that the sums are those of this dataset, which
 * is one file, opened with these options. Logged: -ESTALE if its size differs, or if its fingerprint does
 * and no block is right; -BETON_ECORRUPT if its header is damaged. If only
 * other parts are damaged, it logs a warning and succeeds.
 */
int sums_open(const struct dataset *ds, const struct source_options *options,
	      struct log *log, struct sums **out);

/* --- checking --- */

/* Returns the size of a block in bytes. Requires block < s->num. */
static inline size_t sums_block_size(const struct sums *s, uint64_t block)
{
	uint64_t left = s->size - block * SUMS_BLOCK;

	return left < SUMS_BLOCK ? (size_t)left : SUMS_BLOCK;
}

/* Checks the bytes of one block. -BETON_ECORRUPT, not logged: they are damaged,
   or not as many as the block has. Requires block < s->num. */
int sums_check(const struct sums *s, uint64_t block, const void *bytes,
	       size_t n);

/*
 * Writes what is wrong with a block whose CRC is `crc`: its number, its offsets
 * in the file, both CRCs, and the position of the flipped bit if one bit
 * explains the difference. Takes some milliseconds.
 */
void sums_explain(const struct sums *s, uint64_t block, uint32_t crc,
		  char why[SUMS_WHY_SIZE]);

#endif
