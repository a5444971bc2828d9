/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The permissions of a file that has an access control list, for whoever knows
 * modes only. In the mode of such a file, the bits of the group are the most
 * that any entry of the list permits, not what the group may.
 */
#ifndef FS_UTIL_ACL_H
#define FS_UTIL_ACL_H

#include <sys/types.h>

/*
 * Returns the mode of an open file without the bits that the list does not
 * grant to every user to whom the mode grants them. Users whom only the list
 * lets in are left out.
 */
mode_t acl_mode(int fd, mode_t mode);

#endif
