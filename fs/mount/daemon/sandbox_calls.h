/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of a confined daemon, as a program for seccomp(2). */
#ifndef FS_MOUNT_DAEMON_SANDBOX_CALLS_H
#define FS_MOUNT_DAEMON_SANDBOX_CALLS_H

/* AddressSanitizer and ThreadSanitizer inspect their own process. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#	define SANDBOX_IS_WATCHED 1
#else
#	define SANDBOX_IS_WATCHED 0
#endif

#include <stdbool.h>

struct sock_fprog;

/* The program allows the calls of a table, with `network` also those that read
   URLs, and refuses all others with EPERM. The caller frees its `filter`.
   -ENOMEM; -ENOSYS: not for this machine. */
int sandbox_calls(bool network, struct sock_fprog *out);

#endif
