/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/url/command_line.h"

#include <ctype.h>
#include <string.h>

#include "fs/base/util/cleanup.h"
#include "fs/source/url/url.h"

/* Returns the URL in a word, which may begin with "--option=", or NULL. */
static char *find_url(char *word)
{
	char *url = strstr(word, "://");

	if (!url)
		return NULL;
	while (url > word && isalnum((unsigned char)url[-1]))
		url--;
	return url;
}

static void hide(char **word)
{
	char *url = find_url(*word);
	cleanup_free char *visible = url ? url_visible(url) : NULL;
	char *copy;
	size_t size;

	if (!visible || !strcmp(visible, url))
		return;
	copy = strdup(*word);
	if (!copy)
		return;
	*word = copy;
	size = strlen(visible);
	memset(mempcpy(url, visible, size), ' ', strlen(url) - size);
}

void command_line_hide(char **argv)
{
	for (char **word = argv; *word; word++)
		hide(word);
}
