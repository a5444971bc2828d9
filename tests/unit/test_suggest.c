/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/suggest.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

static const char *const words[] = { "order", "batch", "max_resolution" };
static const struct other_word others[] = { { "shuffle", "order" },
					    { NULL, NULL } };

struct mistake {
	const char *word;
	size_t size;
	const char *meant;
};

static const struct mistake mistakes[] = {
	{ "ordre", 0, "; did you mean `order'?" },
	{ "Batch", 0, "; did you mean `batch'?" },
	{ "batch=3", 5, "; did you mean `batch'?" },
	{ "max-resolution", 0, "; did you mean `max_resolution'?" },
	{ "Shuffle", 0, "; did you mean `order'?" },
	{ "shuffled", 7, "; did you mean `order'?" },
	{ "window", 0, "" },
	{ "a word of more than forty bytes, which no table has", 0, "" },
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		const struct mistake *m = &mistakes[i];
		struct suggestion s = { .word = m->word, .size = m->size };
		char text[SUGGEST_TEXT_SIZE];

		for (size_t k = 0; k < ARRAY_LEN(words); k++)
			suggest_try(&s, words[k]);
		suggest_other(&s, others);
		CHECK(!strcmp(suggest_text(&s, text, sizeof(text)), m->meant));
	}
	return 0;
}
