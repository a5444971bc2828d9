/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/namespace/streams.h"

#include <stdlib.h>
#include <string.h>

/* If memory runs out, uthash leaves the element out instead of exiting. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

/* Numbers below this are datasets, the parents of sampling specs. */
#define FIRST_ID ((uint64_t)1 << NS_DATASET_BITS)
#define LAST_ID                                                                \
	(((uint64_t)1 << (NS_PART_BITS + NS_INDEX_BITS - NS_PIECE_BITS)) - 1)

enum { SPEC, EPOCH, PIECE };

/* A name takes memory besides its own bytes: its stream, and tables. */
enum { MORE_BYTES = 256 };

enum { RANKS = 33 };

/* The key of a name, which is unique. */
struct streams_key {
	uint64_t parent; /* number of a name, or of a dataset */
	char own[SPEC_TEXT_MAX];
};

/* Guarded by names.lock, except for `named`, which does not change. */
struct streams_item {
	struct ns_named named; /* first: callers have a pointer to it */
	UT_hash_handle by_key;
	UT_hash_handle by_id;
	struct streams_item *prev, *next; /* in user.unused while refs is 0 */
	struct streams_user *user;
	unsigned refs;	  /* of callers and of children */
	uint32_t charged; /* bytes of the budget */
	struct spec spec; /* of a spec */
	char key[];	  /* a struct streams_key as long as it is used */
};

/* A user and the user's names. */
struct streams_user {
	UT_hash_handle hh;
	struct streams_user *prev, *next; /* in names.ranks */
	uid_t uid;
	unsigned items;
	unsigned num_unused;
	struct streams_item *unused; /* the least recently used first */
};

struct ns_names {
	struct budget *budget;
	pthread_mutex_t lock; /* guards the members below */
	struct streams_item *by_key;
	struct streams_item *by_id;
	struct streams_user *by_uid;
	/* Users by the number of their unused names: 0, 1, 2-3, 4-7, ... */
	struct streams_user *ranks[RANKS];
	uint64_t last_id;
	unsigned items;
};

static struct streams_item *item_of(struct ns_named *named)
{
	return (struct streams_item *)named;
}

static int level_of(const struct ns_named *named)
{
	if (!named->parent)
		return SPEC;
	return named->parent->parent ? PIECE : EPOCH;
}

/* --- users; with the lock held --- */

static struct streams_user **rank_of(struct ns_names *names,
				     const struct streams_user *user)
{
	unsigned n = user->num_unused;

	return &names->ranks[n ? RANKS - 1 - (unsigned)__builtin_clz(n) : 0];
}

static struct streams_user *user_of(struct ns_names *names, uid_t uid)
{
	struct streams_user *user;

	HASH_FIND(hh, names->by_uid, &uid, sizeof(uid), user);
	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	HASH_ADD(hh, names->by_uid, uid, sizeof(user->uid), user);
	if (!user->hh.tbl) {
		free(user);
		return NULL;
	}
	DL_APPEND(*rank_of(names, user), user);
	return user;
}

/* Frees a user without names. */
static void user_leave(struct ns_names *names, struct streams_user *user)
{
	if (user->items)
		return;
	DL_DELETE(*rank_of(names, user), user);
	HASH_DELETE(hh, names->by_uid, user);
	free(user);
}

static void count_unused(struct ns_names *names, struct streams_user *user,
			 int change)
{
	DL_DELETE(*rank_of(names, user), user);
	user->num_unused += (unsigned)change;
	DL_APPEND(*rank_of(names, user), user);
}

/* Returns the user with the most unused names, or with more than half as
   many. */
static struct streams_user *greediest(const struct ns_names *names)
{
	for (unsigned i = RANKS - 1; i > 0; i--) {
		if (names->ranks[i])
			return names->ranks[i];
	}
	return NULL;
}

/* --- references; with the lock held --- */

static void leave_unused(struct ns_names *names, struct streams_item *item)
{
	DL_DELETE(item->user->unused, item);
	count_unused(names, item->user, -1);
}

static void item_get(struct ns_names *names, struct streams_item *item)
{
	if (!item->refs++)
		leave_unused(names, item);
}

static void item_put(struct ns_names *names, struct streams_item *item)
{
	if (--item->refs)
		return;
	DL_APPEND(item->user->unused, item);
	count_unused(names, item->user, 1);
}

/* The item is unused. */
static void item_free(struct ns_names *names, struct streams_item *item)
{
	HASH_DELETE(by_key, names->by_key, item);
	HASH_DELETE(by_id, names->by_id, item);
	names->items--;
	leave_unused(names, item);
	item->user->items--;
	user_leave(names, item->user);
	if (level_of(&item->named) == EPOCH)
		stream_close(item->named.stream);
	if (item->named.parent)
		item_put(names, item_of(item->named.parent));
	budget_give(names->budget, BUDGET_NAMES, item->charged);
	free(item);
}

static void forget_surplus(struct ns_names *names)
{
	struct streams_user *user;

	while (names->items > NS_NAMES_MAX && (user = greediest(names)))
		item_free(names, user->unused);
}

/* --- finding and making; with the lock held --- */

/* Finds an item and takes a reference to it. */
static bool find_item(struct ns_names *names, const struct streams_key *key,
		      size_t size, struct streams_item **out)
{
	HASH_FIND(by_key, names->by_key, key, size, *out);
	if (*out)
		item_get(names, *out);
	return *out;
}

/* Adds an item to both tables, or to none. */
static int item_link(struct ns_names *names, struct streams_item *item,
		     size_t size)
{
	HASH_ADD_KEYPTR(by_key, names->by_key, item->key, size, item);
	if (!item->by_key.tbl)
		return -ENOMEM;
	HASH_ADD(by_id, names->by_id, named.id, sizeof(item->named.id), item);
	if (item->by_id.tbl)
		return 0;
	HASH_DELETE(by_key, names->by_key, item);
	return -ENOMEM;
}

/* Makes a name that has a number and its key, with one reference. */
/* Allocates an item within the budget. */
static struct streams_item *item_new(struct ns_names *names, size_t size)
{
	uint32_t bytes =
		(uint32_t)(sizeof(struct streams_item) + size + MORE_BYTES);
	struct streams_item *item = NULL;

	if (!budget_take(names->budget, BUDGET_NAMES, bytes, 0))
		item = calloc(1, sizeof(*item) + size + 1);
	else
		bytes = 0;
	if (!item)
		budget_give(names->budget, BUDGET_NAMES, bytes);
	else
		item->charged = bytes;
	return item;
}

static void item_drop(struct ns_names *names, struct streams_item *item)
{
	if (item)
		budget_give(names->budget, BUDGET_NAMES, item->charged);
	free(item);
}

static int item_add(struct ns_names *names, const struct streams_key *key,
		    size_t size, uid_t uid, struct streams_item **out)
{
	struct streams_item *item;
	struct streams_user *user;

	if (names->last_id == LAST_ID)
		return -ENFILE;
	item = item_new(names, size);
	user = item ? user_of(names, uid) : NULL;
	if (!user) {
		item_drop(names, item);
		return -ENOMEM;
	}
	memcpy(item->key, key, size);
	item->named.names = names;
	item->named.id = names->last_id + 1;
	if (item_link(names, item, size)) {
		user_leave(names, user);
		item_drop(names, item);
		return -ENOMEM;
	}
	names->last_id++;
	names->items++;
	item->refs = 1;
	item->user = user;
	user->items++;
	*out = item;
	return 0;
}

/* The caller holds the lock. */
static int spec_named(struct ns_names *names, const struct ns_object *of,
		      const struct spec *spec, uid_t user,
		      struct streams_item **out)
{
	struct streams_key key = { .parent = of->dataset };
	size_t size;
	int r;

	spec_canonical(spec, key.own);
	size = offsetof(struct streams_key, own) + strlen(key.own);
	if (find_item(names, &key, size, out))
		return 0;
	r = item_add(names, &key, size, user, out);
	if (r)
		return r;
	(*out)->spec = *spec;
	(*out)->named.dataset = of->dataset;
	(*out)->named.spec = &(*out)->spec;
	(*out)->named.text = (*out)->key + offsetof(struct streams_key, own);
	return 0;
}

int ns_spec_named(struct ns *ns, const struct ns_object *of, const char *text,
		  uid_t user, struct ns_named **out)
{
	const struct ns_tree *tree = ns_tree(ns, of);
	const struct spec_facts facts = {
		.samples = tree->ds->format.samples,
		.data_bytes = dataset_data_bytes(tree->ds),
		.subsets = tree->subsets,
	};
	char why[SPEC_WHY_SIZE];
	struct streams_item *item;
	struct spec spec;
	int r = spec_parse(text, &facts, &spec, why);

	if (r) {
		log_warning(ns->log, "%s: batches/%s: %s",
			    dataset_path(tree->ds), text, why);
		return r;
	}
	scoped_lock(&ns->names->lock);
	r = spec_named(ns->names, of, &spec, user, &item);
	if (r)
		return r;
	forget_surplus(ns->names);
	*out = &item->named;
	return 0;
}

/* The caller holds the lock. An epoch opens a stream, and its pieces share
   it. */
static int child_named(struct ns *ns, struct ns_named *parent, uint64_t number,
		       uid_t user, struct streams_item **out)
{
	struct streams_key key = { .parent = parent->id };
	size_t size = offsetof(struct streams_key, own) + sizeof(number);
	struct streams_item *item;
	int r;

	memcpy(key.own, &number, sizeof(number));
	if (find_item(ns->names, &key, size, out))
		return 0;
	r = item_add(ns->names, &key, size, user, &item);
	if (r)
		return r;
	item_get(ns->names, item_of(parent));
	item->named.parent = parent;
	item->named.dataset = parent->dataset;
	item->named.number = number;
	item->named.spec = parent->spec;
	item->named.stream = parent->stream;
	if (!parent->parent)
		r = stream_open(ns->engine, ns->trees[parent->dataset].ds,
				parent->spec, number, &item->named.stream);
	if (!r) {
		*out = item;
		return 0;
	}
	item_put(ns->names, item);
	item_free(ns->names, item);
	return r;
}

int ns_epoch_named(struct ns *ns, struct ns_named *spec, uint64_t epoch,
		   uid_t user, struct ns_named **out)
{
	struct streams_item *item;
	int r;

	scoped_lock(&ns->names->lock);
	r = child_named(ns, spec, epoch, user, &item);
	if (r)
		return r;
	forget_surplus(ns->names);
	*out = &item->named;
	return 0;
}

int ns_piece_named(struct ns *ns, struct ns_named *epoch, uint64_t number,
		   uid_t user, struct ns_named **out)
{
	return ns_epoch_named(ns, epoch, number - number % NS_PIECE, user, out);
}

/* --- objects --- */

/* The part and the index of an object as one number. */
static struct ns_object object_of(enum ns_kind kind, uint32_t dataset,
				  uint64_t number)
{
	return (struct ns_object){
		.kind = kind,
		.dataset = dataset,
		.part = (uint32_t)(number >> NS_INDEX_BITS),
		.index = number & (((uint64_t)1 << NS_INDEX_BITS) - 1),
	};
}

static uint64_t number_of(const struct ns_object *object)
{
	return (uint64_t)object->part << NS_INDEX_BITS | object->index;
}

struct ns_object ns_named_object(const struct ns_named *named,
				 enum ns_kind kind)
{
	return object_of(kind, named->dataset, named->id);
}

struct ns_object ns_batch_object(const struct ns_named *piece, uint64_t number)
{
	return object_of(NS_BATCH, piece->dataset,
			 piece->id << NS_PIECE_BITS | number % NS_PIECE);
}

uint64_t ns_batch_number(const struct ns_named *piece,
			 const struct ns_object *object)
{
	return piece->number + number_of(object) % NS_PIECE;
}

static bool is_of_kind(const struct ns_named *named, enum ns_kind kind)
{
	switch (level_of(named)) {
	case SPEC:
		return kind == NS_SPEC || kind == NS_SPEC_LINK;
	case EPOCH:
		return kind == NS_EPOCH;
	default:
		return kind == NS_BATCH;
	}
}

struct ns_named *ns_named_get(struct ns *ns, const struct ns_object *object)
{
	uint64_t id = number_of(object);
	struct streams_item *item;

	if (object->kind == NS_BATCH)
		id >>= NS_PIECE_BITS;
	scoped_lock(&ns->names->lock);
	HASH_FIND(by_id, ns->names->by_id, &id, sizeof(id), item);
	if (!item || item->named.dataset != object->dataset ||
	    !is_of_kind(&item->named, object->kind))
		return NULL;
	item_get(ns->names, item);
	return &item->named;
}

void ns_named_put(struct ns_named **pointer)
{
	struct ns_named *named = steal(*pointer);
	struct ns_names *names;

	if (!named)
		return;
	names = named->names;
	scoped_lock(&names->lock);
	item_put(names, item_of(named));
	forget_surplus(names);
}

/* --- opening and closing --- */

int ns_names_open(struct ns *ns)
{
	struct ns_names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	pthread_mutex_init(&names->lock, NULL);
	names->budget = engine_budget(ns->engine);
	names->last_id = FIRST_ID - 1;
	ns->names = names;
	return 0;
}

void ns_names_close(struct ns_names *names)
{
	struct streams_user *user;

	if (!names)
		return;
	while ((user = greediest(names)))
		item_free(names, user->unused);
	pthread_mutex_destroy(&names->lock);
	free(names);
}

/* -EINVAL, because the user can correct the option. */
static int open_subsets(struct ns *ns, struct ns_tree *tree,
			const struct ns_options *options)
{
	int r = 0;

	for (size_t i = 0; i < options->num_subsets && !r; i++)
		r = subset_open(options->subsets[i], tree->ds->format.samples,
				ns->log, &tree->subsets);
	return r && r != -ENOMEM ? -EINVAL : r;
}

static void warn_of_no_batches(struct ns *ns, const struct ns_tree *tree)
{
	const struct spec *spec = tree->default_spec->spec;
	unsigned long long n = spec_positions(spec);

	if (!n || spec_batches(spec))
		return;
	log_warning(
		ns->log,
		"%s: batches/default has no batches: the dataset has %llu samples, fewer than a batch of %llu; use -o batch=%llu",
		dataset_path(tree->ds), n, (unsigned long long)spec->batch, n);
}

int ns_streams_open(struct ns *ns, const struct ns_object *top,
		    const struct ns_options *options)
{
	struct ns_tree *tree = ns_tree(ns, top);
	int r = open_subsets(ns, tree, options);

	if (!r)
		r = ns_spec_named(ns, top, options->default_spec, geteuid(),
				  &tree->default_spec);
	/* Most programs that only look at files never read a batch. */
	if (!r && strstr(options->default_spec, "batch="))
		warn_of_no_batches(ns, tree);
	return r;
}

void ns_streams_close(struct ns_tree *tree)
{
	ns_named_put(&tree->default_spec);
	subset_close_all(tree->subsets);
}
