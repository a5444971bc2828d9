/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that may be secrets: their memory is cleared before it is freed. */
#ifndef FS_SOURCE_NET_SECRET_H
#define FS_SOURCE_NET_SECRET_H

#include <stdlib.h>
#include <string.h>

/* Clears and frees a text, and sets the pointer to NULL. */
static inline void secret_free(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

/* Clears and frees memory of any bytes. */
static inline void secret_free_bytes(void *bytes, size_t size)
{
	if (bytes)
		explicit_bzero(bytes, size);
	free(bytes);
}

/* For texts of a block. */
#define cleanup_secret __attribute__((cleanup(secret_free)))

#endif
