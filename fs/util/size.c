/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/util/size.h"

#include <ctype.h>

#include "fs/util/bytes.h"

bool size_parse(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t v = 0;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		if (!mul_ok(v, 10, &v) ||
		    !add_ok(v, (uint64_t)(*text - '0'), &v))
			return false;
	}
	unit = *text ? strchr(units, toupper((unsigned char)*text)) : NULL;
	if (unit) {
		if (!mul_ok(v, (uint64_t)1 << (10 * (unit - units + 1)), &v))
			return false;
		text++;
		if (!strcmp(text, "iB"))
			text += 2;
	}
	if (*text)
		return false;
	*out = v;
	return true;
}
