/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/common.h"

#include "fs/base/util/bytes.h"
#include "fs/source/local/options.h"

/* Options of URLs are not members: they apply to all that the process opens. */
static int add_storage(const char *text, void *member)
{
	(void)member;
	return source_options_add(text);
}

#define AT(member) .offset = offsetof(struct common_options, member)

static const struct option_row rows[] = {
	{ "quiet", 'q', OPTION_SET, AT(level), .min = BETON_LOG_ERROR,
	  .help = "Print errors only" },
	{ "verbose", 'v', OPTION_SET, AT(level), .min = BETON_LOG_DEBUG,
	  .help = "Print more messages" },
	{ "storage-options", 'o', OPTION_PARSED, .parse = add_storage,
	  .argument = "KEY=VALUE,...",
	  .help = "Read URLs with these options of betonfs(8), for example disk=DIR" },
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
