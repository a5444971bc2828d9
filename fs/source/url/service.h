/* SPDX-License-Identifier: Apache-2.0 */
/* Where the objects of a service are: endpoints, hosts with and without the
   bucket, paths. */
#ifndef FS_SOURCE_URL_SERVICE_H
#define FS_SOURCE_URL_SERVICE_H

#include "fs/source/url/parts.h"

enum { URL_LABEL_MAX = 63 }; /* bytes between two dots of a host name */

/* A member of struct url_scheme. */
int url_service_request(const struct url *url, const struct url_place *place,
			struct url_request *out, char why[URL_WHY_SIZE]);

/* Sets *out to the host of a service of AWS: "s3", "sts". The caller frees it.
   -EINVAL: the region has characters that names cannot have. */
int url_aws_host(const char *service, const char *region, char **out);

#endif
