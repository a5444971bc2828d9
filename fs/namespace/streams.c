/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/namespace/streams.h"

#include <stdlib.h>
#include <string.h>

#include "fs/util/cleanup.h"

/* The numbers given so far. */
struct ns_streams {
	pthread_mutex_t lock; /* guards all that follows */
	struct ns_spec *by_text;
	struct ns_epoch *by_key;
	struct ns_spec **specs; /* by number */
	struct ns_epoch **epochs;
	uint32_t num_specs;
	uint32_t num_epochs;
	struct subset *subsets; /* not guarded: complete once open */
};

/* Room for one more pointer, doubling. */
static int grow(void *array, uint32_t n)
{
	void **p = array, *bigger;

	if (n & (n - 1))
		return 0;
	bigger = realloc(*p, (n ? 2 * (size_t)n : 1) * sizeof(void *));
	if (!bigger)
		return -ENOMEM;
	*p = bigger;
	return 0;
}

static int full(struct ns *ns, const struct ns_tree *tree, const char *what)
{
	log_error(ns->log, "%s: %d %s were named: mount again to name more",
		  dataset_path(tree->ds), (int)NS_PARTS_MAX, what);
	return -ENFILE;
}

/* Called with the lock held. */
static int add_spec(struct ns *ns, const struct ns_tree *tree,
		    const struct spec *spec, const char *text,
		    struct ns_spec **out)
{
	struct ns_streams *s = tree->streams;
	struct ns_spec *named;

	if (s->num_specs == NS_PARTS_MAX)
		return full(ns, tree, "SPECs");
	named = calloc(1, sizeof(*named));
	if (!named || grow(&s->specs, s->num_specs)) {
		free(named);
		return -ENOMEM;
	}
	named->spec = *spec;
	named->number = s->num_specs;
	strcpy(named->text, text);
	HASH_ADD_STR(s->by_text, text, named);
	s->specs[s->num_specs++] = named;
	*out = named;
	return 0;
}

int ns_spec_named(struct ns *ns, const struct ns_object *of, const char *text,
		  const struct ns_spec **out)
{
	const struct ns_tree *tree = ns_tree(ns, of);
	const struct spec_facts facts = {
		.samples = tree->ds->format.samples,
		.data_bytes = dataset_data_bytes(tree->ds),
		.subsets = tree->streams->subsets,
	};
	char canonical[SPEC_TEXT_MAX], why[SPEC_WHY_SIZE];
	struct ns_spec *named;
	struct spec spec;
	int r = spec_parse(text, &facts, &spec, why);

	if (r) {
		log_warning(ns->log, "%s: batches/%s: %s",
			    dataset_path(tree->ds), text, why);
		return r;
	}
	spec_canonical(&spec, canonical);
	scoped_lock(&tree->streams->lock);
	HASH_FIND_STR(tree->streams->by_text, canonical, named);
	if (!named)
		r = add_spec(ns, tree, &spec, canonical, &named);
	if (!r)
		*out = named;
	return r;
}

/* Called with the lock held. */
static int add_epoch(struct ns *ns, const struct ns_tree *tree,
		     const struct ns_spec *spec, const struct ns_epoch_key *key,
		     struct ns_epoch **out)
{
	struct ns_streams *s = tree->streams;
	struct ns_epoch *named;
	int r;

	if (s->num_epochs == NS_PARTS_MAX)
		return full(ns, tree, "epochs");
	named = calloc(1, sizeof(*named));
	r = !named ? -ENOMEM : grow(&s->epochs, s->num_epochs);
	if (!r)
		r = stream_open(ns->engine, tree->ds, &spec->spec, key->epoch,
				&named->stream);
	if (r) {
		free(named);
		return r;
	}
	named->key = *key;
	named->spec = spec;
	named->number = s->num_epochs;
	HASH_ADD(hh, s->by_key, key, sizeof(named->key), named);
	s->epochs[s->num_epochs++] = named;
	*out = named;
	return 0;
}

int ns_epoch_named(struct ns *ns, const struct ns_object *of,
		   const struct ns_spec *spec, uint64_t epoch,
		   const struct ns_epoch **out)
{
	const struct ns_tree *tree = ns_tree(ns, of);
	const struct ns_epoch_key key = { spec->number, epoch };
	struct ns_epoch *named;
	int r = 0;

	scoped_lock(&tree->streams->lock);
	HASH_FIND(hh, tree->streams->by_key, &key, sizeof(key), named);
	if (!named)
		r = add_epoch(ns, tree, spec, &key, &named);
	if (!r)
		*out = named;
	return r;
}

const struct ns_spec *ns_spec_of(struct ns *ns, const struct ns_object *object)
{
	struct ns_streams *s = ns_tree(ns, object)->streams;

	scoped_lock(&s->lock);
	return object->part < s->num_specs ? s->specs[object->part] : NULL;
}

const struct ns_epoch *ns_epoch_of(struct ns *ns,
				   const struct ns_object *object)
{
	struct ns_streams *s = ns_tree(ns, object)->streams;

	scoped_lock(&s->lock);
	return object->part < s->num_epochs ? s->epochs[object->part] : NULL;
}

/* -EINVAL: the user can mend it. */
static int open_subsets(struct ns *ns, const struct ns_tree *tree,
			const struct ns_options *options)
{
	int r = 0;

	for (size_t i = 0; i < options->num_subsets && !r; i++)
		r = subset_open(options->subsets[i], tree->ds->format.samples,
				ns->log, &tree->streams->subsets);
	return r && r != -ENOMEM ? -EINVAL : r;
}

int ns_streams_open(struct ns *ns, const struct ns_object *top,
		    const struct ns_options *options)
{
	struct ns_streams *s = calloc(1, sizeof(*s));
	const struct ns_spec *first;
	int r;

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	ns_tree(ns, top)->streams = s;
	r = open_subsets(ns, ns_tree(ns, top), options);
	return r ? r : ns_spec_named(ns, top, options->default_spec, &first);
}

void ns_streams_close(struct ns_streams *s)
{
	if (!s)
		return;
	HASH_CLEAR(hh, s->by_text);
	HASH_CLEAR(hh, s->by_key);
	for (uint32_t i = 0; i < s->num_epochs; i++) {
		stream_close(s->epochs[i]->stream);
		free(s->epochs[i]);
	}
	for (uint32_t i = 0; i < s->num_specs; i++)
		free(s->specs[i]);
	free(s->epochs);
	free(s->specs);
	subset_close_all(s->subsets);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
