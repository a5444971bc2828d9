/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of the machine: from the metadata service of an EC2 instance or a
   Google machine, and from the endpoint of a container or pod. */
#ifndef FS_SOURCE_KEYS_METADATA_H
#define FS_SOURCE_KEYS_METADATA_H

#include "fs/source/keys/session.h"
#include "fs/source/keys/settings.h"

/* IMDSv2, and IMDSv1 where the service has no version 2. */
int metadata_instance(struct search *search,
		      const struct keys_settings *settings,
		      struct session *out);

/* The bearer token of a Google machine: a session without id and secret. */
int metadata_google(struct search *search, const struct keys_settings *settings,
		    struct session *out);

/* ECS, EKS pod identity, and whatever speaks their protocol. */
int metadata_container(struct search *search,
		       const struct keys_settings *settings,
		       struct session *out);

#endif
