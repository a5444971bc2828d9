/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/beton_reading.h"

void reading_apply(const struct reading *reading,
		   struct beton_loader_options *out)
{
	static const char *const delivery[] = { "auto", "handover", "direct" };
	static const char *const cache[] = { "auto", "os", "process" };

	out->delivery = delivery[reading->delivery];
	out->cache = cache[reading->cache];
	out->cache_size = reading->cache_size;
	out->cold_size = reading->cold_size;
}
