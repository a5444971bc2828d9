/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/order/spec.h"
#include "fs/base/util/typed.h"
#include "fs/data/cache/choice.h"
#include "fs/data/wire/zerocopy_message.h"
#include "loader/pipeline/op/op.h"
#include "loader/run/feed/feed.h"
#include "loader/sized.h"

/* Size of the first version of the options. */
enum { OPTIONS_MIN = offsetof(struct beton_loader_options, trace) };

static bool is_delivery(const char *word)
{
	const struct typed deliveries = TYPED_WORD_OF(FEED_DELIVERIES);
	uint64_t i;

	return typed_parse_string(&deliveries, word, &i);
}

bool options_device(const char *text, int *gpu)
{
	static const struct typed number = TYPED_STRICT_IN(0, OP_DEVICE_MAX);
	uint64_t n = 0;

	*gpu = -1;
	if (!text || !*text || !strcmp(text, "cpu"))
		return true;
	if (strncmp(text, "cuda", 4) ||
	    (text[4] &&
	     (text[4] != ':' || !typed_parse_string(&number, text + 5, &n))))
		return false;
	*gpu = (int)n;
	return true;
}

const char *options_job(const struct beton_loader_options *o)
{
	const char *job =
		o->job && *o->job ? o->job : secure_getenv("BETON_JOB");

	return job && *job ? job : NULL;
}

static bool is_job_name(const char *name)
{
	size_t size = 0;

	for (; name[size]; size++) {
		if (name[size] < ' ' || name[size] > '~')
			return false;
	}
	return size < ZEROCOPY_JOB_SIZE;
}

int options_take(const struct beton_loader_options *from,
		 struct beton_loader_options *out, char *why)
{
	int r = sized_take(out, sizeof(*out), from, OPTIONS_MIN);

	if (r) {
		*out = (struct beton_loader_options){ .size = sizeof(*out) };
		snprintf(why, LOADER_ERROR_SIZE,
			 "options of %zu bytes, this library's have %zu",
			 from->size, sizeof(*from));
	}
	return r;
}

int options_check(const struct beton_loader_options *o, char *why)
{
	uint32_t world_size = o->world_size ? o->world_size : 1;
	const char *job = options_job(o);
	enum cache_mode mode;
	int gpu;

	if (o->rank >= world_size)
		snprintf(why, LOADER_ERROR_SIZE,
			 "rank %u with world size %u: ranks are from 0 to %u",
			 o->rank, world_size, world_size - 1);
	else if (o->delivery && !is_delivery(o->delivery))
		snprintf(
			why, LOADER_ERROR_SIZE,
			"unknown delivery '%.40s'; there are auto, zero-copy, direct",
			o->delivery);
	else if (o->cache && !cache_parse_mode(o->cache, &mode))
		snprintf(why, LOADER_ERROR_SIZE,
			 "unknown cache '%.40s'; there are auto, os, process",
			 o->cache);
	else if (!options_device(o->device, &gpu))
		snprintf(why, LOADER_ERROR_SIZE,
			 "unknown device '%.40s'; there are cpu, cuda, and "
			 "cuda:0 to cuda:%d",
			 o->device, OP_DEVICE_MAX);
	else if (job && !is_job_name(job))
		snprintf(
			why, LOADER_ERROR_SIZE,
			"job '%.40s' of %zu bytes: a job's name (also in BETON_JOB) has up to %d characters of ASCII",
			job, strlen(job), ZEROCOPY_JOB_SIZE - 1);
	else if (o->on_error > BETON_ON_ERROR_ZERO ||
		 o->until > BETON_STAGE_TRANSFORM ||
		 o->workers > OPTIONS_THREADS_MAX ||
		 o->prefetch > OPTIONS_THREADS_MAX ||
		 o->epoch > SPEC_EPOCH_MAX || o->role > BETON_ROLE_TRAINER ||
		 (o->role && o->until != BETON_STAGE_ALL))
		snprintf(why, LOADER_ERROR_SIZE,
			 "an option is out of range: workers=%u and "
			 "prefetch=%u are at most %d, epoch=%llu is below "
			 "2^63, on_error=%d, until=%d and role=%llu are of "
			 "their enum, and a role needs all stages",
			 o->workers, o->prefetch, OPTIONS_THREADS_MAX,
			 (unsigned long long)o->epoch, (int)o->on_error,
			 (int)o->until, (unsigned long long)o->role);
	else
		return 0;
	return -EINVAL;
}
