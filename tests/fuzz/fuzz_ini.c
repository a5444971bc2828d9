/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a configuration file. Every key that is listed can be found. */
#include "fs/source/keys/ini.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ini ini;
	const char *value;

	if (!ini_parse((const char *)data, size, &ini)) {
		for (size_t i = 0; i < ini.num; i++) {
			value = ini_get(&ini, ini.at[i].section,
					ini.at[i].name);
			MUST(value && !strchr(value, '\n'));
		}
	}
	ini_fini(&ini);
	return 0;
}
