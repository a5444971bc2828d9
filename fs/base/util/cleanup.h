/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership that ends with a scope. */
#ifndef FS_BASE_UTIL_CLEANUP_H
#define FS_BASE_UTIL_CLEANUP_H

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static inline void scope_free(void *p)
{
	free(*(void **)p);
}

static inline void scope_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void scope_unlock(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}

#define cleanup_free __attribute__((cleanup(scope_free)))
#define cleanup_fd __attribute__((cleanup(scope_close)))

#define SCOPE_PASTE(a, b) a##b
#define SCOPE_NAME(line) SCOPE_PASTE(scope_lock_, line)

/* Holds the mutex until the end of the enclosing block. */
#define scoped_lock(mutex)                                                     \
	__attribute__((cleanup(scope_unlock), unused)) pthread_mutex_t *       \
	SCOPE_NAME(__LINE__) = (pthread_mutex_lock(mutex), (mutex))

/* Returns the value of a pointer variable and sets the variable to NULL: the
   ownership moves to the caller. */
#define steal(pointer)                                                         \
	({                                                                     \
		__typeof__(pointer) stolen_ = (pointer);                       \
		(pointer) = NULL;                                              \
		stolen_;                                                       \
	})

#endif
