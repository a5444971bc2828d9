/* SPDX-License-Identifier: Apache-2.0 */
/* Links the chains of a graph. Call the functions when all chains exist. */
#ifndef LOADER_PIPELINE_GRAPH_LINKS_H
#define LOADER_PIPELINE_GRAPH_LINKS_H

#include "loader/pipeline/graph/bind.h"

/* Gives all mixing operations of a group the same image. Returns -EINVAL, with
   a message. */
int link_mixtures(const struct builder *b);
/* Finds the outputs that operations name. Returns -EINVAL, with a message. */
int link_outputs(const struct builder *b);

#endif
