/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the JSON of a metadata service, of a credential_process, of a
   bearer token, as a time, and as a file of headers. Accepted keys can stand in
   a header. */
#include <errno.h>

#include "fs/source/keys/header_file.h"
#include "fs/source/keys/session.h"
#include "tests/fuzz/fuzz.h"

static time_t now(void *arg)
{
	(void)arg;
	return 1700000000;
}

static void check_plain(const char *text)
{
	for (; text && *text; text++)
		MUST(*text > ' ' && *text <= '~');
}

static void check(struct search *search, int r, struct session *session)
{
	MUST(!r || r == -ENOMEM || search->why[0]);
	MUST(r || session->token || session->id);
	check_plain(session->id);
	check_plain(session->secret);
	check_plain(session->token);
	session_fini(session);
}

static void check_headers(struct search *search, char *text)
{
	struct header_file file;

	if (!header_file_parse(search, "FILE", text, &file)) {
		for (size_t i = 0; i < file.num; i++) {
			MUST(strchr(file.at[i], ':'));
			MUST(!strpbrk(file.at[i], "\r\n"));
		}
	}
	header_file_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct outside outside = { .now = now };
	struct search search = { .outside = &outside };
	const char *json = (const char *)data;
	char *text = fuzz_text(data, size);
	struct session session;
	time_t t;
	int r;

	r = session_parse(&search, "PLACE", json, size, false, &session);
	check(&search, r, &session);
	r = session_parse(&search, "PLACE", json, size, true, &session);
	check(&search, r, &session);
	r = session_parse_bearer(&search, "PLACE", json, size, &session);
	check(&search, r, &session);
	session_parse_time(text, &t);
	check_headers(&search, text);
	free(text);
	return 0;
}
