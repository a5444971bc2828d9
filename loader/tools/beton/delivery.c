/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/beton/delivery.h"

#include "fs/base/util/log.h"

/* Prints warnings and, with --verbose, less important messages. It prints no
   errors, because the caller of the failing function reports them. */
static void pass_message(void *arg, enum beton_log_level level,
			 const char *message)
{
	const struct log *log = arg;

	if (level == BETON_LOG_WARNING)
		log_warning(arg, "%s", message);
	else if (level > BETON_LOG_WARNING && log &&
		 log->level >= BETON_LOG_DEBUG)
		log_info(arg, "%s", message);
}

void reading_apply(const struct reading *reading, struct log *log,
		   struct beton_loader_options *out)
{
	/* NULL means auto and leaves the choice to $BETON_SETTINGS. */
	static const char *const delivery[] = { NULL, "zero-copy", "direct" };
	static const char *const cache[] = { NULL, "os", "process" };

	out->delivery = delivery[reading->delivery];
	out->cache = cache[reading->cache];
	out->cache_size = reading->cache_size;
	out->cold_size = reading->cold_size;
	out->verify = reading->verify;
	out->log = pass_message;
	out->log_arg = log;
}
