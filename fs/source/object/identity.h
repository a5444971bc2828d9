/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of an object for copies that outlive the process: a text that
 * differs for other bytes. The visible URL and an ETag are not enough: queries
 * and endpoints name other objects, and some servers send the ETag "1" for all
 * of them. Pure functions, but for a random number.
 */
#ifndef FS_SOURCE_OBJECT_IDENTITY_H
#define FS_SOURCE_OBJECT_IDENTITY_H

#include "fs/source/net/sha256.h"
#include "fs/source/pacing/pin.h"
#include "fs/source/url/url.h"

enum {
	IDENTITY_SIZE =
		PIN_LINE_SIZE + HTTP_VERSION_MAX + 2 * SHA256_HEX_SIZE + 2,
};

/* Whether the server names the version so that other bytes have another name:
   by a strong ETag, or by a version or generation of a store. */
bool identity_is_strong(const struct pin *pin);

/*
 * Writes the identity: the version, and a hash of host, path, query and user.
 * Parameters of a query that only sign it are left out, so that a URL signed
 * again names the same object. No secret can be computed from the text. If the
 * version is not strong, the text has a random number, and no other process
 * makes the same one.
 */
void identity_make(const struct pin *pin, const struct url *url,
		   const struct url_request *request, char out[IDENTITY_SIZE]);

#endif
