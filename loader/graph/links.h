/* SPDX-License-Identifier: Apache-2.0 */
/* What chains of a graph say of each other, once all of them are there. */
#ifndef LOADER_GRAPH_LINKS_H
#define LOADER_GRAPH_LINKS_H

#include "loader/graph/bind.h"

/* Mixtures of rows of one group mix by the same image. -EINVAL */
int link_mixtures(const struct builder *b);
/* Operations find the outputs that they name. -EINVAL */
int link_outputs(const struct builder *b);

#endif
