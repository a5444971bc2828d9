/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads whole files of a mount, or does something else with a path there, so
 * that the caller can abandon it. The kernel does not interrupt the read of a
 * file whose daemon is stopped or waits for a disk. A thread in such a read
 * cannot be joined, and its process cannot end, not even by SIGKILL.
 *
 * For that reason the reads happen in a helper process that shares the memory
 * of this one, and has no open files. A thread owns the helper process, and
 * replaces it where there cannot be one. An abandoned thread frees the reader
 * once the kernel returns, and with it the memory that the kernel may still
 * write.
 *
 * One thread reads. Any thread may cancel.
 */
#ifndef LOADER_RUN_FEED_FILE_READER_H
#define LOADER_RUN_FEED_FILE_READER_H

#include "loader/util/scratch.h"

struct cancel;

struct file_reader;

int file_reader_open(struct file_reader **out);
/* Abandons a read that does not end soon. Takes NULL. */
void file_reader_close(struct file_reader *reader);

/* Reads the file into a buffer, which grows as needed. -ECANCELED: the read was
   canceled, and the reader keeps the buffer's memory. */
int file_reader_read(struct file_reader *reader, const char *path,
		     struct buffer *into, uint64_t *size);

/* Reads a path into a buffer. The reader may be killed at any moment, so the
   function takes no lock; the buffer is its only memory. */
typedef int file_reader_fn(const char *path, struct buffer *into,
			   uint64_t *size);

/* As file_reader_read(), for another function than file_reader_read_here().
   Meanwhile asks `interrupted`, which may be NULL, 20 times a second. If it is
   canceled, so is the reader, as by file_reader_cancel(). */
int file_reader_do(struct file_reader *reader, file_reader_fn *fn,
		   const char *path, struct buffer *into, uint64_t *size,
		   struct cancel *interrupted);
/* Ends the helper process until the next read, unless a read was abandoned. */
void file_reader_rest(struct file_reader *reader);
/* Makes file_reader_read() fail with -ECANCELED, now and later. */
void file_reader_cancel(struct file_reader *reader);

/* As file_reader_read(), in the calling thread, which may block for as long as
   the daemon does not answer. */
int file_reader_read_here(const char *path, struct buffer *into,
			  uint64_t *size);

#endif
