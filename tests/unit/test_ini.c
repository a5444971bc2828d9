/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/ini.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/t.h"

static const char text[] = "\xef\xbb\xbf# comment\n"
			   "lost = 1\n"
			   "[default]\r\n"
			   "aws_access_key_id = AKID\r\n"
			   "AWS_Secret_Access_Key=a=b;c#d/e+\n"
			   "region = eu-west-1 # here\n"
			   "; output = json\n"
			   "s3 =\n"
			   "  addressing_style = path\n"
			   "\tmax_queue = 3\n"
			   "\n"
			   "output = text\n"
			   "  continued = 1\n"
			   "[ profile my own ] ; note\n"
			   "role_arn = first\n"
			   "role_arn = second\n"
			   "no key\n"
			   "= no name\n"
			   "empty =\n"
			   "[broken\n"
			   "lost = 2\n"
			   "[default]\n"
			   "late = 1";

static void values_are_found(void)
{
	static const char *const table[][3] = {
		{ "default", "aws_access_key_id", "AKID" },
		{ "default", "aws_secret_access_key", "a=b;c#d/e+" },
		{ "default", "region", "eu-west-1" },
		{ "default", "s3.addressing_style", "path" },
		{ "default", "s3.max_queue", "3" },
		{ "default", "output", "text" },
		{ "default", "late", "1" },
		{ "profile my own", "role_arn", "second" },
		{ "default", "continued", NULL },
		{ "default", "lost", NULL },
		{ "", "lost", NULL },
		{ "broken", "lost", NULL },
		{ "profile my own", "lost", NULL },
		{ "profile my own", "empty", NULL },
		{ "default", "role_arn", NULL },
	};
	struct ini ini;
	const char *value;

	CHECK(!ini_parse(text, sizeof(text) - 1, &ini));
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		value = ini_get(&ini, table[i][0], table[i][1]);
		if (!value != !table[i][2] ||
		    (value && strcmp(value, table[i][2]))) {
			fprintf(stderr, "%s: %s\n", table[i][1], value);
			exit(1);
		}
	}
	ini_fini(&ini);
}

static void files_have_limits(void)
{
	char *big = malloc(INI_SIZE_MAX + 1);
	size_t size = 4;
	struct ini ini;

	CHECK(big);
	memset(big, '\n', INI_SIZE_MAX + 1);
	CHECK(ini_parse(big, INI_SIZE_MAX + 1, &ini) == -EFBIG);
	ini_fini(&ini);
	memcpy(big, "[a]\n", 4);
	for (int i = 0; i <= INI_KEYS_MAX; i++, size += 4)
		memcpy(big + size, "a=b\n", 4);
	CHECK(ini_parse(big, size - 4, &ini) == 0 && ini.num == INI_KEYS_MAX);
	ini_fini(&ini);
	CHECK(ini_parse(big, size, &ini) == -EFBIG);
	ini_fini(&ini);
	CHECK(!ini_parse("", 0, &ini) && !ini.num);
	free(big);
}

int main(void)
{
	values_are_found();
	files_have_limits();
	return 0;
}
