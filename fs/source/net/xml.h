/* SPDX-License-Identifier: Apache-2.0 */
/* The text of one element in an XML answer of S3 or STS. The answer is hostile,
   and no more of XML is understood than these services send. */
#ifndef FS_SOURCE_NET_XML_H
#define FS_SOURCE_NET_XML_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies the text of the first element of this name, at any depth, with its
 * entities decoded. Returns false, with `out` empty, if there is none, if it
 * has elements inside, or if it does not fit. Comments, CDATA sections and
 * control characters are refused.
 */
bool xml_text(const char *xml, size_t size, const char *name, char *out,
	      size_t out_size);

#endif
