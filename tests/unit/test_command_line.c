/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/url/command_line.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

/* A word, what the program sees of it, and what the list of processes shows. */
static void check(const char *word, const char *shown)
{
	char memory[200], *argv[] = { (char[]){ "beton" }, memory, NULL };

	CHECK(strlen(word) == strlen(shown) && strlen(word) < sizeof(memory));
	strcpy(memory, word);
	command_line_hide(argv);
	CHECK(!strcmp(argv[0], "beton") && !strcmp(argv[1], word));
	if (strcmp(memory, shown))
		fprintf(stderr, "%s\n", memory);
	CHECK(!strcmp(memory, shown));
	if (argv[1] != memory)
		free(argv[1]);
}

int main(void)
{
	char *none[] = { NULL };

	check("http://u:p@h/a?s", "http://h/a      ");
	check("--out=https://u:p@h/a", "--out=https://h/a    ");
	check("-oendpoint=http://u@h,x", "-oendpoint=http://h,x  ");
	check("https://h/a?X-Amz=s#f", "https://h/a          ");
	check("az://c/b?sig=s", "az://c/b      ");
	check("az://c@acc/b", "az://c@acc/b");
	check("s3://b/{0..9}", "s3://b/{0..9}");
	check("://u:p@h", "://h    ");
	check("/a/b?c@d", "/a/b?c@d");
	check("", "");
	command_line_hide(none);
	return 0;
}
