/* SPDX-License-Identifier: Apache-2.0 */
/* Links between the chains of a graph, made when all chains exist. */
#ifndef LOADER_GRAPH_LINKS_H
#define LOADER_GRAPH_LINKS_H

#include "loader/graph/bind.h"

/* Mixing operations of one group use the same image. -EINVAL */
int link_mixtures(const struct builder *b);
/* Operations find the outputs that they name. -EINVAL */
int link_outputs(const struct builder *b);

#endif
