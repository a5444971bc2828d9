/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/common.h"

#include "fs/util/bytes.h"

#define AT(member) .offset = offsetof(struct common_options, member)

static const struct option_row rows[] = {
	{ "quiet", 'q', OPTION_SET, AT(level), .min = BETON_LOG_ERROR,
	  .help = "Print errors only" },
	{ "verbose", 'v', OPTION_SET, AT(level), .min = BETON_LOG_DEBUG,
	  .help = "Print more messages" },
	{ "help", 'h', OPTION_FLAG, AT(help), .help = "Print this help" },
	{ "version", 'V', OPTION_FLAG, AT(version),
	  .help = "Print the version and the features of this build" },
	{ "options", .kind = OPTION_FLAG, AT(list) },
	{ "completions", .kind = OPTION_FLAG, AT(describe) },
};

struct option_group common_init(struct common_options *options)
{
	*options = (struct common_options){ .level = BETON_LOG_INFO };
	return (struct option_group){ rows, ARRAY_LEN(rows), options };
}
