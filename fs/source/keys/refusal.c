/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/refusal.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "fs/source/net/http.h"
#include "fs/source/net/xml.h"

/* Returns the value of a header line of this name, trimmed, or NULL. */
static const char *value_of(const char *line, size_t size, const char *name,
			    size_t *out)
{
	size_t length = strlen(name);

	if (size <= length || line[length] != ':' ||
	    strncasecmp(line, name, length) != 0)
		return NULL;
	line += length + 1;
	size -= length + 1;
	while (size && strchr(" \t", *line)) {
		line++;
		size--;
	}
	while (size && strchr(" \t\r\n", line[size - 1]))
		size--;
	*out = size;
	return line;
}

void refusal_line(struct refusal *refusal, const char *line, size_t size)
{
	size_t length;
	const char *value =
		value_of(line, size, "x-amz-bucket-region", &length);

	if (value && length < sizeof(refusal->region)) {
		memcpy(refusal->region, value, length);
		refusal->region[length] = '\0';
	}
	value = value_of(line, size, "Date", &length);
	if (value && !http_parse_date(value, length, &refusal->date))
		refusal->date = 0;
}

void refusal_body(struct refusal *refusal, const char *body, size_t size)
{
	char region[REFUSAL_CODE_SIZE];

	xml_text(body, size, "Code", refusal->code, sizeof(refusal->code));
	if (!refusal->region[0] &&
	    xml_text(body, size, "Region", region, sizeof(region)))
		memcpy(refusal->region, region, sizeof(region));
}
