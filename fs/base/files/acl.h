/* SPDX-License-Identifier: Apache-2.0 */
/* The permissions of a file that has an access control list, expressed as a
   mode. In the mode of such a file, the bits of the group are the maximum over
   all entries of the list, not the rights of the owning group. */
#ifndef FS_BASE_FILES_ACL_H
#define FS_BASE_FILES_ACL_H

#include <sys/types.h>

/* Returns the mode of an open file. A bit is cleared unless the list grants it
   to every user to whom the mode grants it. If only the list admits a user, the
   returned mode does not. */
mode_t acl_mode(int fd, mode_t mode);

#endif
