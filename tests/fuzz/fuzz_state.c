/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a loader's state. An accepted state survives a round trip. */
#include "fs/base/util/bytes.h"
#include "loader/run/loop/state.h"
#include "tests/fuzz/fuzz.h"

/* A loader compares these with its own before it writes a state. */
static bool is_plain(const char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~' || strchr("\"\\", *text))
			return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), why[SPEC_WHY_SIZE] = "", out[4096];
	struct state s, again;

	if (state_parse(text, &s, why)) {
		MUST(why[0]);
	} else if (is_plain(s.spec) && is_plain(s.fingerprint)) {
		MUST(!state_format(&s, out, sizeof(out)));
		MUST(!state_parse(out, &again, why));
		MUST(s.epoch == again.epoch && s.batches == again.batches);
		MUST(!strcmp(s.spec, again.spec));
		MUST(!strcmp(s.fingerprint, again.fingerprint));
	}
	free(text);
	return 0;
}
