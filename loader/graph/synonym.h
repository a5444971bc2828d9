/* SPDX-License-Identifier: Apache-2.0 */
/* Names that other libraries have for operations. */
#ifndef LOADER_GRAPH_SYNONYM_H
#define LOADER_GRAPH_SYNONYM_H

/*
 * Returns what to write instead of a word of torchvision or FFCV, as a clause
 * for a message, or NULL if the word is unknown. Case and `_' do not count, so
 * that a class and a function have one row.
 */
const char *synonym_of(const char *word);

#endif
