/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/blocks.h"

#include <stdlib.h>
#include <utlist.h>

struct block *blocks_find(struct blocks *b, uint64_t index)
{
	struct block *block;

	HASH_FIND(hh, b->table, &index, sizeof(index), block);
	return block;
}

/* The caller has taken the block off the list of idle ones. */
static void free_block(struct blocks *b, struct block *block)
{
	if (block->state != BLOCK_FAILED)
		HASH_DEL(b->table, block);
	b->num[block->kind]--;
	free(block);
}

static bool make_room(struct blocks *b, enum block_kind kind)
{
	struct block *oldest;

	while (b->num[kind] >= b->most[kind]) {
		oldest = b->idle[kind];
		if (!oldest)
			return false;
		DL_DELETE(b->idle[kind], oldest);
		free_block(b, oldest);
	}
	return true;
}

struct block *blocks_add(struct blocks *b, uint64_t index, enum block_kind kind)
{
	struct block *block =
		make_room(b, kind) ? malloc(sizeof(*block)) : NULL;

	if (!block)
		return NULL;
	block->index = index;
	block->users = 1;
	block->state = BLOCK_READING;
	block->kind = kind;
	block->error = 0;
	block->fetch = NULL;
	HASH_ADD(hh, b->table, index, sizeof(block->index), block);
	if (!block->hh.tbl) {
		free(block);
		return NULL;
	}
	b->num[kind]++;
	return block;
}

void blocks_use(struct blocks *b, struct block *block)
{
	if (!block->users++)
		DL_DELETE(b->idle[block->kind], block);
}

void blocks_drop(struct blocks *b, struct block *block)
{
	if (--block->users)
		return;
	if (block->state == BLOCK_FAILED)
		free_block(b, block);
	else
		DL_APPEND(b->idle[block->kind], block);
}

void blocks_settle(struct blocks *b, struct block *block, int error)
{
	block->fetch = NULL;
	block->error = error;
	block->state = error ? BLOCK_FAILED : BLOCK_READY;
	if (error)
		HASH_DEL(b->table, block);
	blocks_drop(b, block);
}

void blocks_sort(struct blocks *b, struct block *block, enum block_kind kind)
{
	if (!block->users)
		DL_DELETE(b->idle[block->kind], block);
	b->num[block->kind]--;
	block->kind = kind;
	b->num[kind]++;
	if (!block->users)
		DL_APPEND(b->idle[kind], block);
}

void blocks_fini(struct blocks *b)
{
	struct block *block, *next;

	HASH_ITER(hh, b->table, block, next)
	free_block(b, block);
}
