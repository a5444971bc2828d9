/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The most recent layouts of an engine. Slots are found by their layout, so a
 * batch has only one at a time. Thread-safe. slots.lock may be taken under
 * layouts.lock.
 */
#ifndef FS_DATA_ENGINE_LAYOUTS_H
#define FS_DATA_ENGINE_LAYOUTS_H

#include "fs/data/engine/batch.h"

struct budget;
struct layouts;
struct slots;

/* The layouts take a part of the budget's limit. Both outlive them. */
int layouts_open(struct budget *budget, struct slots *slots,
		 struct layouts **out);
/* Takes NULL. */
void layouts_close(struct layouts *layouts);

/* Gets a cached layout, with a reference for the caller. `afresh`: drops it
   instead if a sample of it failed by an I/O error, and may be readable by
   now. Returns false if the layout must be computed. */
bool layouts_find(struct layouts *layouts, const struct batch_key *key,
		  bool afresh, struct batch **out);
/* Caches a layout. If another thread has computed the same one meanwhile, that
   one replaces *batch. */
void layouts_keep(struct layouts *layouts, struct batch **batch);

/* A reclaimer of the budget: drops the oldest layouts. */
bool layouts_reclaim(void *layouts, uint64_t bytes);

#endif
