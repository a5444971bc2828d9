/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a dataset behind a URL, or of a mount of one: a loader reads
 * new samples for some seconds, and its figures or those of the daemon are
 * sampled. One thread.
 */
#ifndef LOADER_TOOLS_DOCTOR_NETWORK_H
#define LOADER_TOOLS_DOCTOR_NETWORK_H

#include "loader/tools/doctor/evidence.h"

struct network_plan {
	const struct run_place *place; /* with the spec to read */
	double seconds;
	bool is_large; /* reads in the order quasi_random */
};

/*
 * Fills e->network, and e->small or, if `is_large`, e->large with the rate; a
 * note if nothing was read. 0 or -errno, with a sentence in `why`, which has
 * RUN_WHY_SIZE bytes.
 */
int network_measure(const struct network_plan *plan, struct evidence *e,
		    char *why);

#endif
