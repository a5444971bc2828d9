/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/ring/losses.h"

#include <errno.h>

#include "beton/beton.h"

bool losses_have(const struct losses *l, int error)
{
	return error && error != BETON_ECORRUPT && error != EOPNOTSUPP &&
	       (error != EIO || l->is_remote);
}

bool losses_add(struct losses *l)
{
	bool is_first = !l->is_logged;

	l->is_logged = true;
	l->unlogged += !is_first;
	return is_first;
}

bool losses_take(struct losses *l, uint32_t samples, uint32_t lost,
		 uint64_t batches_of_epoch, uint64_t *unlogged)
{
	bool is_whole = samples && lost == samples;

	*unlogged = lost ? 0 : losses_end(l);
	l->samples = is_whole ? l->samples + samples : 0;
	l->batches = is_whole ? l->batches + 1 : 0;
	return is_whole &&
	       (l->samples >= LOSSES_MAX || l->batches >= batches_of_epoch);
}

uint64_t losses_end(struct losses *l)
{
	uint64_t n = l->unlogged;

	l->unlogged = 0;
	l->is_logged = false;
	return n;
}
