/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/library/pass.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

/* Threads take samples in order, but one may be late by some blocks. */
enum { RECENT = 8, RECENT_BYTES = 64 << 20 };

#define NO_BLOCK UINT64_MAX

/* Blocks i with i % num_lanes of the lane come through it. */
struct pass_lane {
	pthread_mutex_t lock; /* while a block is asked for and received */
	unsigned number;
	uint64_t asked; /* the block whose answer is to come, or NO_BLOCK */
	/* The last blocks, newest first. */
	struct block *blocks[RECENT];
	uint64_t indices[RECENT];
	unsigned num_blocks;
};

struct pass {
	struct pass_setup setup;
	uint32_t *columns;
	unsigned num_lanes;
	struct pass_lane lanes[SERVER_LANES_MAX];
};

int pass_open(const struct pass_setup *setup, struct pass **out)
{
	struct pass *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->setup = *setup;
	p->columns = calloc(setup->num_columns + 1, sizeof(*p->columns));
	if (!p->columns) {
		free(p);
		return -ENOMEM;
	}
	memcpy(p->columns, setup->columns,
	       setup->num_columns * sizeof(*p->columns));
	p->num_lanes = setup->server->num_lanes;
	for (unsigned i = 0; i < p->num_lanes; i++) {
		pthread_mutex_init(&p->lanes[i].lock, NULL);
		p->lanes[i].number = i;
		p->lanes[i].asked = NO_BLOCK;
	}
	*out = p;
	return 0;
}

uint64_t pass_num_blocks(const struct pass *p)
{
	return (p->setup.count + p->setup.rows - 1) / p->setup.rows;
}

static uint64_t rows_of(const struct pass *p, uint64_t index)
{
	return min_u64(p->setup.rows, p->setup.count - index * p->setup.rows);
}

/* --- the last blocks ----------------------------------------------------- */

static uint64_t size_of(const struct block *b)
{
	uint64_t size;

	block_bytes(b, &size);
	return size;
}

static void remember(struct pass_lane *l, uint64_t index, struct block *b)
{
	uint64_t bytes = size_of(b);
	unsigned n = 0;

	while (n < l->num_blocks && n < RECENT - 1 &&
	       (bytes += size_of(l->blocks[n])) <= RECENT_BYTES)
		n++;
	while (l->num_blocks > n)
		block_put(&l->blocks[--l->num_blocks]);
	memmove(l->blocks + 1, l->blocks, n * sizeof(*l->blocks));
	memmove(l->indices + 1, l->indices, n * sizeof(*l->indices));
	l->blocks[0] = b;
	l->indices[0] = index;
	l->num_blocks = n + 1;
}

static struct block *find_recent(const struct pass_lane *l, uint64_t index)
{
	for (unsigned i = 0; i < l->num_blocks; i++)
		if (l->indices[i] == index)
			return l->blocks[i];
	return NULL;
}

/* --- asking -------------------------------------------------------------- */

static json_t *numbers(const uint32_t *columns, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_integer(columns[i]));
	return list;
}

static json_t *request_of(const struct pass *p, uint64_t index)
{
	const struct pass_setup *s = &p->setup;
	uint64_t at = index * s->rows, rows = rows_of(p, index);
	json_t *ids = s->ids ? json_array() : json_null();

	for (uint64_t i = at; s->ids && i < at + rows; i++)
		json_array_append_new(ids, json_integer((json_int_t)s->ids[i]));
	return json_pack("{s:o, s:I, s:I, s:o}", "columns",
			 numbers(p->columns, s->num_columns), "first",
			 (json_int_t)(s->ids ? 0 : s->first + at), "rows",
			 (json_int_t)rows, "ids", ids);
}

static int fail(const struct pass *p, int r, const char *why)
{
	if (*why)
		log_error(p->setup.log, "%s: %s", p->setup.path, why);
	return r;
}

static int ask(struct pass *p, struct pass_lane *l, uint64_t index)
{
	char why[SERVER_WHY_SIZE];
	json_t *request = request_of(p, index);
	int r = server_ask(p->setup.server, l->number, request, -1, why);

	json_decref(request);
	if (r)
		return fail(p, r, why);
	l->asked = index;
	return 0;
}

static int receive(struct pass *p, struct pass_lane *l, struct block **out)
{
	uint64_t rows = rows_of(p, l->asked);
	char why[SERVER_WHY_SIZE];
	cleanup_fd int fd = -1;
	struct stat st = { 0 };
	int r = server_answer(p->setup.server, l->number, &fd, why);

	l->asked = NO_BLOCK;
	if (r)
		return fail(p, r, why);
	r = fstat(fd, &st) < 0 ? -errno
			       : block_map(fd, 0, (uint64_t)st.st_size, rows,
					   p->setup.num_columns, out);
	return r ? fail(p, r,
			r == -EBADMSG ? "Python sent a damaged block"
				      : strerror(-r))
		 : 0;
}

/* Receives the block, whatever was asked for before, and asks for the next one
   of the lane. */
static int fetch(struct pass *p, struct pass_lane *l, uint64_t index,
		 struct block **out)
{
	uint64_t next = index + p->num_lanes;
	struct block *b = NULL;
	int r = 0;

	while (!r && l->asked != NO_BLOCK && l->asked != index) {
		r = receive(p, l, &b);
		block_put(&b);
	}
	if (!r && l->asked == NO_BLOCK)
		r = ask(p, l, index);
	r = r ? r : receive(p, l, &b);
	if (!r && next < pass_num_blocks(p))
		r = ask(p, l, next);
	if (r) {
		block_put(&b);
		return r;
	}
	remember(l, index, b);
	*out = block_get(b);
	return 0;
}

int pass_block(struct pass *p, uint64_t index, struct block **out)
{
	struct pass_lane *l = &p->lanes[index % p->num_lanes];
	struct block *recent;

	scoped_lock(&l->lock);
	recent = find_recent(l, index);
	if (!recent)
		return fetch(p, l, index, out);
	*out = block_get(recent);
	return 0;
}

/* The next pass must not receive this one's answer. */
static void drain(struct pass *p, struct pass_lane *l)
{
	struct block *b = NULL;

	if (l->asked != NO_BLOCK && l->number < p->setup.server->num_lanes &&
	    !receive(p, l, &b))
		block_put(&b);
	while (l->num_blocks)
		block_put(&l->blocks[--l->num_blocks]);
	pthread_mutex_destroy(&l->lock);
}

void pass_close(struct pass *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->num_lanes; i++)
		drain(p, &p->lanes[i]);
	free(p->columns);
	free(p);
}
