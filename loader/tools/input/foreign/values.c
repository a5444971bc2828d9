/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/foreign/values.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "loader/util/read_file.h"
#include "loader/util/utf8.h"

static const size_t JSON_MAX = (size_t)256 << 20;

/* --- images -------------------------------------------------------------- */

static const struct magic {
	size_t at;
	const char *bytes;
	size_t size;
} magics[] = {
	{ 0, "\xff\xd8\xff", 3 },
	{ 0, "\x89PNG\r\n\x1a\n", 8 },
	{ 8, "WEBP", 4 },
	{ 0, "GIF87a", 6 },
	{ 0, "GIF89a", 6 },
	{ 0, "II*\0", 4 },
	{ 0, "MM\0*", 4 },
	{ 4, "ftypavif", 8 },
	{ 4, "ftypavis", 8 },
	{ 4, "ftypheic", 8 },
	{ 4, "ftypheix", 8 },
	{ 4, "ftypmif1", 8 },
	{ 4, "ftypmsf1", 8 },
	{ 0, "\xff\x0a", 2 },
	{ 0, "\0\0\0\x0cJXL \r\n\x87\n", 12 },
};

/* "BM" alone is also the beginning of a word. */
static bool is_bmp(const uint8_t *bytes, uint64_t size)
{
	uint32_t header;

	if (size < 18 || memcmp(bytes, "BM", 2) != 0)
		return false;
	header = load32(bytes + 14);
	return header == 12 || header == 40 || header == 52 || header == 56 ||
	       header == 64 || header == 108 || header == 124;
}

bool input_is_image(const void *bytes, uint64_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(magics); i++) {
		const struct magic *m = &magics[i];

		if (range_ok(m->at, m->size, size) &&
		    !memcmp((const char *)bytes + m->at, m->bytes, m->size))
			return true;
	}
	return is_bmp(bytes, size);
}

/* --- values -------------------------------------------------------------- */

int input_check_value(const struct input_field *field,
		      const struct input_value *value,
		      struct input_error *error)
{
	if (field->type != INPUT_TEXT && field->type != INPUT_JSON)
		return 0;
	if (utf8_is_text(value->bytes, value->size))
		return 0;
	return input_refuse(error, -EBADMSG,
			    "field '%.60s': not UTF-8 without a NUL",
			    field->name);
}

/* --- numbers ------------------------------------------------------------- */

double input_half_float(uint16_t bits)
{
	int exponent = bits >> 10 & 31;
	double fraction = (bits & 1023) / 1024.0, sign = bits >> 15 ? -1 : 1;

	if (exponent == 31)
		return fraction != 0 ? __builtin_nan("")
				     : sign * __builtin_inf();
	if (!exponent)
		return sign * __builtin_ldexp(fraction, -14);
	return sign * __builtin_ldexp(1 + fraction, exponent - 15);
}

/* --- JSON ---------------------------------------------------------------- */

int input_load_json(const char *path, struct log *log, json_t **out)
{
	cleanup_free char *text = NULL;
	json_error_t why;
	size_t size;
	int r = read_file(path, JSON_MAX, &text, &size);

	if (r) {
		log_error(log, "%s: %s", path, strerror(-r));
		return r;
	}
	*out = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
	if (*out)
		return 0;
	log_error(log, "%s:%d: not JSON: %s", path, why.line, why.text);
	return -EBADMSG;
}

bool input_first_key(const char *path, const char *name, char *out, size_t size)
{
	char full[PATH_MAX], head[256];
	cleanup_fd int fd = -1;
	const char *key, *end;
	ssize_t n;

	if (snprintf(full, sizeof(full), "%s/%s", path, name) >=
	    (int)sizeof(full))
		return false;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	n = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);
	if (n <= 0)
		return false;
	head[n] = '\0';
	key = head + strspn(head, " \t\r\n");
	if (*key++ != '{')
		return false;
	key += strspn(key, " \t\r\n");
	end = *key == '"' ? strchr(key + 1, '"') : NULL;
	if (!end || (size_t)(end - key) > size)
		return false;
	memcpy(out, key + 1, (size_t)(end - key) - 1);
	out[end - key - 1] = '\0';
	return true;
}
