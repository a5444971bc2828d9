/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/ns_stream.h"

#include <stdlib.h>
#include <string.h>

#include "fs/scope.h"

/* All numbers given so far. */
struct ns_streams {
	pthread_mutex_t lock; /* guards all that follows */
	struct ns_spec *by_text;
	struct ns_epoch *by_key;
	struct ns_spec **specs; /* by number */
	struct ns_epoch **epochs;
	uint32_t num_specs;
	uint32_t num_epochs;
	struct subset *subsets; /* not guarded: all there is when open */
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

static int full(struct ns *ns, const char *what)
{
	log_error(ns->log, "%s: %d %s were named: mount again to name more",
		  dataset_path(ns->ds), (int)NS_PARTS_MAX, what);
	return -ENFILE;
}

/* Called with the lock held. */
static int add_spec(struct ns *ns, const struct spec *spec, const char *text,
		    struct ns_spec **out)
{
	struct ns_streams *s = ns->streams;
	struct ns_spec *named;

	if (s->num_specs == NS_PARTS_MAX)
		return full(ns, "SPECs");
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

int ns_spec_named(struct ns *ns, const char *text, const struct ns_spec **out)
{
	const struct spec_facts facts = {
		.samples = ns->ds->format.samples,
		.data_bytes = dataset_data_bytes(ns->ds),
		.subsets = ns->streams->subsets,
	};
	char canonical[SPEC_TEXT_MAX], why[SPEC_WHY_SIZE];
	struct ns_spec *named;
	struct spec spec;
	int r = spec_parse(text, &facts, &spec, why);

	if (r) {
		log_warning(ns->log, "batches/%s: %s", text, why);
		return r;
	}
	spec_canonical(&spec, canonical);
	scoped_lock(&ns->streams->lock);
	HASH_FIND_STR(ns->streams->by_text, canonical, named);
	if (!named)
		r = add_spec(ns, &spec, canonical, &named);
	if (!r)
		*out = named;
	return r;
}

/* Called with the lock held. */
static int add_epoch(struct ns *ns, const struct ns_spec *spec,
		     const struct ns_epoch_key *key, struct ns_epoch **out)
{
	struct ns_streams *s = ns->streams;
	struct ns_epoch *named;
	int r;

	if (s->num_epochs == NS_PARTS_MAX)
		return full(ns, "epochs");
	named = calloc(1, sizeof(*named));
	r = !named ? -ENOMEM : grow(&s->epochs, s->num_epochs);
	if (!r)
		r = stream_open(ns->engine, ns->ds, &spec->spec, key->epoch,
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

int ns_epoch_named(struct ns *ns, const struct ns_spec *spec, uint64_t epoch,
		   const struct ns_epoch **out)
{
	const struct ns_epoch_key key = { spec->number, epoch };
	struct ns_epoch *named;
	int r = 0;

	scoped_lock(&ns->streams->lock);
	HASH_FIND(hh, ns->streams->by_key, &key, sizeof(key), named);
	if (!named)
		r = add_epoch(ns, spec, &key, &named);
	if (!r)
		*out = named;
	return r;
}

const struct ns_spec *ns_spec_at(struct ns *ns, uint32_t number)
{
	struct ns_streams *s = ns->streams;

	scoped_lock(&s->lock);
	return number < s->num_specs ? s->specs[number] : NULL;
}

const struct ns_epoch *ns_epoch_at(struct ns *ns, uint32_t number)
{
	struct ns_streams *s = ns->streams;

	scoped_lock(&s->lock);
	return number < s->num_epochs ? s->epochs[number] : NULL;
}

/* -EINVAL for all that a user can mend. */
static int open_subsets(struct ns *ns, const struct ns_options *options)
{
	int r = 0;

	for (size_t i = 0; i < options->num_subsets && !r; i++)
		r = subset_open(options->subsets[i], ns->ds->format.samples,
				ns->log, &ns->streams->subsets);
	return r && r != -ENOMEM ? -EINVAL : r;
}

int ns_streams_open(struct ns *ns, const struct ns_options *options)
{
	const struct ns_spec *first;
	int r;

	ns->streams = calloc(1, sizeof(*ns->streams));
	if (!ns->streams)
		return -ENOMEM;
	pthread_mutex_init(&ns->streams->lock, NULL);
	r = open_subsets(ns, options);
	return r ? r : ns_spec_named(ns, options->default_spec, &first);
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
