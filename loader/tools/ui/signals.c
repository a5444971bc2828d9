/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/signals.h"

#include <stddef.h>

#include "fs/util/bytes.h"

void signals_block(sigset_t *set)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;

	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		if (sigaction(signals[i], NULL, &action) == 0 &&
		    action.sa_handler != SIG_IGN)
			sigaddset(set, signals[i]);
	}
	pthread_sigmask(SIG_BLOCK, set, NULL);
}
