/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/log.h"
#include "tests/unit/t.h"

struct seen {
	unsigned lines;
	unsigned inside; /* calls under way: one at a time */
	enum beton_log_level level;
	char last[2048];
};

static void note(void *arg, enum beton_log_level level, const char *message)
{
	struct seen *s = arg;

	CHECK(s->inside++ == 0);
	s->lines++;
	s->level = level;
	snprintf(s->last, sizeof(s->last), "%s", message);
	s->inside--;
}

static void messages_arrive_with_their_level(void)
{
	struct seen seen = { 0 };
	struct log log;

	log_init(&log, note, &seen);
	log_error(&log, "%s: %d", "x", 1);
	CHECK(!strcmp(seen.last, "x: 1") && seen.level == BETON_LOG_ERROR);
	log_warning(&log, "w");
	CHECK(!strcmp(seen.last, "w") && seen.level == BETON_LOG_WARNING);
	log_info(&log, "i");
	CHECK(!strcmp(seen.last, "i") && seen.level == BETON_LOG_INFO);
	log.level = BETON_LOG_ERROR;
	log_warning(&log, "not passed");
	CHECK(seen.lines == 3);
	log_fini(&log);
}

static void no_log_is_silence(void)
{
	struct log log;

	log_error(NULL, "lost message %d", 1);
	log_init(&log, NULL, NULL);
	log_error(&log, "lost message %d", 1);
	log_fini(&log);
}

/* Names of files and fields come from strangers. */
static void a_message_is_one_line_without_control_characters(void)
{
	struct seen seen = { 0 };
	struct log log;

	log_init(&log, note, &seen);
	log_error(&log, "a\nb\r\x1b[31m\x7f\tc");
	CHECK(!strcmp(seen.last, "a?b??[31m??c"));
	/* U+009B starts a sequence, too; U+00A0 and U+0442 are text. */
	log_error(&log, "\xc2\x9b"
			"31m\xc2\x80\xc2\xa0\xd1\x82\xc2");
	CHECK(!strcmp(seen.last, "??31m??\xc2\xa0\xd1\x82\xc2"));
	log_fini(&log);
}

static void a_long_message_is_cut(void)
{
	struct seen seen = { 0 };
	char text[5000];
	struct log log;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_init(&log, note, &seen);
	log_error(&log, "%s", text);
	CHECK(strlen(seen.last) > 500 && strlen(seen.last) < 2000);
	log_fini(&log);
}

static void a_flood_is_held_back_and_counted(void)
{
	struct seen seen = { 0 };
	struct log log;
	unsigned sent = 0;

	log_init(&log, note, &seen);
	/* A second may end on the way, so that two bursts pass. */
	for (; sent < 10 * LOG_BURST; sent++)
		log_error(&log, "flood");
	CHECK(seen.lines >= LOG_BURST && seen.lines <= 2 * LOG_BURST);
	log.second = 0; /* long ago */
	log_error(&log, "later");
	CHECK(!strncmp(seen.last, "later (and ", 11));
	CHECK(strstr(seen.last, "messages held back)"));
	log_fini(&log);
}

static void every_message_can_be_had(void)
{
	struct seen seen = { 0 };
	struct log log;

	log_init(&log, note, &seen);
	log.every = true;
	for (unsigned i = 0; i < 10 * LOG_BURST; i++)
		log_error(&log, "flood");
	CHECK(seen.lines == 10 * LOG_BURST);
	log_fini(&log);
}

static void *shout(void *arg)
{
	for (int i = 0; i < 200; i++)
		log_info(arg, "number %d", i);
	return NULL;
}

static void threads_log_one_at_a_time(void)
{
	struct seen seen = { 0 };
	pthread_t threads[8];
	struct log log;

	log_init(&log, note, &seen);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		CHECK(!pthread_create(&threads[i], NULL, shout, &log));
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	CHECK(seen.lines == 1600);
	log_fini(&log);
}

static void the_library_has_its_version(void)
{
	char want[32];

	snprintf(want, sizeof(want), "%d.%d.%d", BETON_VERSION_MAJOR,
		 BETON_VERSION_MINOR, BETON_VERSION_PATCH);
	CHECK(!strcmp(beton_version(), want));
}

int main(void)
{
	messages_arrive_with_their_level();
	no_log_is_silence();
	a_message_is_one_line_without_control_characters();
	a_long_message_is_cut();
	a_flood_is_held_back_and_counted();
	every_message_can_be_had();
	threads_log_one_at_a_time();
	the_library_has_its_version();
	return 0;
}
