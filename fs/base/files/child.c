/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/files/child.h"

#include <signal.h>

int child_attributes(posix_spawnattr_t *a)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_setsigmask(a, &none);
	if (!r)
		r = posix_spawnattr_setsigdefault(a, &all);
	if (!r)
		r = posix_spawnattr_setpgroup(a, 0);
	return r ? r
		 : posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGMASK |
						       POSIX_SPAWN_SETSIGDEF |
						       POSIX_SPAWN_SETPGROUP);
}
