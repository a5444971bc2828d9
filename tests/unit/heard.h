/* SPDX-License-Identifier: Apache-2.0 */
/* A callback of logs that counts warnings and errors, and keeps the last one. Any
   thread may log. */
#ifndef TESTS_UNIT_HEARD_H
#define TESTS_UNIT_HEARD_H

#include <pthread.h>
#include <stdio.h>

#include <beton/beton.h>

struct heard {
	pthread_mutex_t lock;
	unsigned lines;
	char last[1024];
};

#define HEARD_NOTHING                                                          \
	{                                                                      \
		.lock = PTHREAD_MUTEX_INITIALIZER                              \
	}

static inline void hear(void *arg, enum beton_log_level level,
			const char *message)
{
	struct heard *h = arg;

	if (level == BETON_LOG_INFO)
		return;
	pthread_mutex_lock(&h->lock);
	h->lines++;
	snprintf(h->last, sizeof(h->last), "%s", message);
	pthread_mutex_unlock(&h->lock);
}

#endif
