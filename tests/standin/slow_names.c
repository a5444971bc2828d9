/* SPDX-License-Identifier: Apache-2.0 */
/* A name server that does not answer, by LD_PRELOAD: look-ups of names below
   slow.test fail after the seconds that SLOW_NAMES gives. */
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

/* The C library's own. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

SEEN int getaddrinfo(const char *name, const char *service,
		     const struct addrinfo *hints, struct addrinfo **out)
{
	const char *seconds = getenv("SLOW_NAMES");

	if (!name || !seconds || !strstr(name, "slow.test"))
		return NEXT(getaddrinfo)(name, service, hints, out);
	sleep((unsigned)atoi(seconds));
	return EAI_AGAIN;
}
