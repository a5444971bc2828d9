/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/graph/links.h"

#include <errno.h>
#include <string.h>

#include "fs/base/util/suggest.h"
#include "loader/pipeline/text/diagnostic.h"

/* --- mixing of samples --- */

static bool needs_image(const struct node *n)
{
	bool needs = n->op->batch && n->op->batch->needs_image;

	for (size_t i = 0; i < n->num_branches; i++)
		needs |= n->branches[i].nodes->op->batch->needs_image;
	return needs;
}

/* Sets the image whose random numbers `n` shares, if there is one. */
static int find_image(const struct builder *b, struct node *n)
{
	for (size_t i = 0; i < b->out->num_chains; i++) {
		const struct node *m = chain_mixture(&b->out->chains[i]);

		if (!m || m->stream != n->stream || m->op != n->op ||
		    m->type.kind != TYPE_IMAGE)
			continue;
		if (n->image.width && (n->image.width != m->type.width ||
				       n->image.height != m->type.height))
			return complain(
				b->diagnostic, n->at,
				"%s of labels finds images of two sizes; "
				"name the group of one",
				n->op->name);
		n->image = (struct size){ m->type.width, m->type.height };
	}
	return 0;
}

int link_mixtures(const struct builder *b)
{
	int r = 0;

	for (size_t i = 0; !r && i < b->out->num_chains; i++) {
		struct node *n = chain_mixture(&b->out->chains[i]);

		if (!n || !needs_image(n))
			continue;
		n->image = (struct size){ n->type.width, n->type.height };
		if (n->type.kind != TYPE_IMAGE)
			r = find_image(b, n);
		if (!r && !n->image.width)
			r = complain(
				b->diagnostic, n->at,
				"%s of labels needs that of an image: the "
				"pipeline has no `IMAGE | %s' of this group",
				n->op->name, n->op->name);
	}
	return r;
}

/* --- outputs that operations name --- */

static struct chain *find_output(const struct builder *b, const char *name,
				 struct suggestion *s)
{
	for (size_t i = 0; i < b->out->num_chains; i++) {
		struct chain *chain = &b->out->chains[i];

		if (chain->name && !strcmp(chain->name, name))
			return chain;
		if (chain->name)
			suggest_try(s, chain->name);
	}
	return NULL;
}

static const char *refuse_moves(const struct chain *chain);

/* Returns the reason why boxes cannot follow the pixels of an operation, or
   NULL. */
static const char *refuse_move(const struct node *n)
{
	const struct op_image *image = n->op->image;
	const char *wrong = NULL;

	if (n->op->kind == OP_BATCH)
		return "mixes two images, but boxes belong to one";
	for (size_t i = 0; !wrong && i < n->num_branches; i++)
		wrong = refuse_moves(&n->branches[i]);
	if (!image || image->move || image->maps || image->keeps_places)
		return wrong;
	return image->in_place
		       ? "mixes differently warped images, which boxes cannot "
			 "follow; leave out aug_mix"
		       : "bends straight lines, which boxes cannot follow; "
			 "leave out elastic";
}

static const char *refuse_moves(const struct chain *chain)
{
	const char *wrong = NULL;

	for (size_t i = 0; !wrong && i < chain->num_nodes; i++)
		wrong = refuse_move(&chain->nodes[i]);
	return wrong;
}

/* Returns the reason why boxes cannot follow the pixels of a chain's image, or
   NULL. */
static const char *refuse_image(const struct chain *of)
{
	if (of->source.kind != TYPE_IMAGE || chain_of(of))
		return "is not an image";
	for (size_t i = 0; i < of->num_nodes; i++) {
		if (of->nodes[i].type.views)
			return "has several views of each sample";
	}
	return refuse_moves(of);
}

static const char *refuse_list(const struct chain *of)
{
	const struct node *n = chain_of(of);

	return n && op_refers_to(n->op) == OP_OF_IMAGE &&
			       of->source.kind == TYPE_RAGGED
		       ? NULL
		       : "follows no image";
}

static int resolve_node(const struct builder *b, struct chain *chain,
			struct node *n)
{
	struct suggestion s = { .word = n->of_name };
	const struct chain *of = find_output(b, n->of_name, &s);
	char text[SUGGEST_TEXT_SIZE];
	const char *wrong;

	if (!of)
		return complain(b->diagnostic, n->of_at,
				"%s: there is no output `%s'%s", n->op->name,
				n->of_name,
				suggest_text(&s, text, sizeof(text)));
	wrong = (op_refers_to(n->op) == OP_OF_IMAGE ? refuse_image
						    : refuse_list)(of);
	if (wrong)
		return complain(b->diagnostic, n->of_at, "%s: output `%s' %s",
				n->op->name, n->of_name, wrong);
	n->of = of;
	if (chain->source.kind == TYPE_IMAGE) {
		chain->field = of->field;
		chain->source = of->source;
	}
	return 0;
}

int link_outputs(const struct builder *b)
{
	int r = 0;

	for (size_t i = 0; !r && i < b->out->num_chains; i++) {
		struct chain *chain = &b->out->chains[i];

		for (size_t k = 0; !r && k < chain->num_nodes; k++) {
			if (op_refers_to(chain->nodes[k].op))
				r = resolve_node(b, chain, &chain->nodes[k]);
		}
	}
	return r;
}
