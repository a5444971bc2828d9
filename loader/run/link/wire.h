/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between a trainer and a maker, over one stream socket. First each
 * side sends a wire_hello, and checks that of the other side. Then the trainer
 * sends wire_names, and the maker answers each of them, in their order, with a
 * wire_answer and `size` bytes: a batch file of the outputs (sent_batch.h), or,
 * if it failed, a message of text. All numbers are little-endian.
 */
#ifndef LOADER_RUN_LINK_WIRE_H
#define LOADER_RUN_LINK_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "fs/base/order/spec_text.h"

#define WIRE_MAGIC "BETONWIR"

enum {
	WIRE_VERSION = 1,
	WIRE_FINGERPRINT_SIZE = 40,
	WIRE_LIBRARY_SIZE = 24,
	WIRE_MESSAGE_SIZE = 1024,
};

/* Both sides must be equal. Texts are padded with NUL. */
struct wire_hello {
	char magic[8]; /* WIRE_MAGIC, no NUL */
	uint32_t version;
	uint32_t pipeline; /* CRC-32C of the pipeline string */
	uint32_t on_error;
	uint32_t reserved;
	char library[WIRE_LIBRARY_SIZE]; /* its version */
	char fingerprint[WIRE_FINGERPRINT_SIZE];
	char spec[SPEC_TEXT_MAX];
};

struct wire_name {
	uint64_t epoch;
	uint64_t number;
};

struct wire_answer {
	struct wire_name name;
	int64_t error; /* 0, or a negative errno value */
	uint64_t size; /* of the bytes that follow */
};

/* Send and receive all bytes. They return 0 or -errno. At the end of the stream,
   wire_receive() returns -ECONNRESET; before the first byte, -ENODATA. */
int wire_send(int fd, const void *bytes, size_t size);
int wire_send_parts(int fd, struct iovec *parts, size_t count);
int wire_receive(int fd, void *bytes, size_t size);

/* Sends `own`, receives the hello of the other side, and compares them. If they
   differ, returns -EPROTO, and `why` receives the reason. */
int wire_greet(int fd, const struct wire_hello *own,
	       char why[WIRE_MESSAGE_SIZE]);

#endif
