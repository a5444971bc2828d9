/* SPDX-License-Identifier: Apache-2.0 */
#include "handle.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct handle *handle_new(void)
{
	struct handle *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	atomic_store(&h->refs, 1);
	h->pid = getpid();
	h->fresh = true;
	pthread_mutex_init(&h->lock, NULL);
	pthread_mutex_init(&h->log_lock, NULL);
	return h;
}

bool handle_is_ours(const struct handle *h)
{
	return h->pid == getpid();
}

void handle_get(struct handle *h)
{
	atomic_fetch_add(&h->refs, 1);
}

void handle_put(struct handle *h)
{
	if (!h || atomic_fetch_sub(&h->refs, 1) != 1 || !handle_is_ours(h))
		return;
	beton_loader_close(h->loader);
	for (unsigned i = 0; i < h->num_messages; i++)
		free(h->messages[i].text);
	pthread_mutex_destroy(&h->log_lock);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

void handle_log(void *arg, enum beton_log_level level, const char *message)
{
	struct handle *h = arg;
	unsigned n;

	pthread_mutex_lock(&h->log_lock);
	n = h->num_messages;
	if (n < MESSAGES_MAX && level <= BETON_LOG_WARNING) {
		h->messages[n].level = level;
		h->messages[n].text = strdup(message);
		h->num_messages = n + (h->messages[n].text != NULL);
	}
	pthread_mutex_unlock(&h->log_lock);
}

void handle_stop(struct handle *h)
{
	if (!atomic_exchange(&h->closed, true))
		beton_loader_stop(h->loader);
}

struct hold *hold_new(struct handle *handle, const struct beton_batch *batch,
		      bool on_stream, void *stream)
{
	struct hold *hold = malloc(sizeof(*hold));

	if (!hold)
		return NULL;
	atomic_init(&hold->refs, 1);
	hold->handle = handle;
	hold->batch = batch;
	hold->on_stream = on_stream;
	hold->stream = stream;
	handle_get(handle);
	return hold;
}

void hold_get(struct hold *hold)
{
	atomic_fetch_add(&hold->refs, 1);
}

static void release(struct hold *hold)
{
	struct beton_loader *l = hold->handle->loader;

	/* If the stream no longer exists, the other call waits for the
	   device. */
	if (!hold->on_stream ||
	    beton_loader_release_on(l, hold->batch, hold->stream))
		beton_loader_release(l, hold->batch);
}

void hold_put(struct hold *hold)
{
	if (!hold || atomic_fetch_sub(&hold->refs, 1) != 1)
		return;
	if (handle_is_ours(hold->handle))
		release(hold);
	handle_put(hold->handle);
	free(hold);
}
