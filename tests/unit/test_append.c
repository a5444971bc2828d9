/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>

#include "fs/data/writer/append.h"
#include "tests/unit/made.h"

enum { SAMPLES = 1000 };

static char folder[] = "/tmp/test_append.XXXXXX";
static char target[64];

static unsigned files_in(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static int end_at_three(void *arg)
{
	unsigned *calls = arg;

	return ++*calls == 3 ? -EINTR : 0;
}

static void the_copy_of_old_samples_can_be_ended(void)
{
	unsigned calls = 0;
	struct appender *a = NULL;
	struct appender_setup setup = {
		.path = target,
		.fields = made_fields,
		.num_fields = MADE_FIELDS,
		.num_samples = 1,
		.exists = true,
		.poll = end_at_three,
		.arg = &calls,
	};

	CHECK(appender_open(&setup, &a) == -EINTR && !a && calls == 3);
	CHECK(files_in(folder) == 1);
	calls = 3;
	CHECK(!appender_open(&setup, &a) && calls > 10);
	appender_abort(&a);
	CHECK(files_in(folder) == 1);
}

int main(void)
{
	struct writer *w = NULL;

	CHECK(mkdtemp(folder));
	snprintf(target, sizeof(target), "%s/old", folder);
	CHECK(!writer_open(target, made_fields, MADE_FIELDS, SAMPLES, MADE_PAGE,
			   NULL, &w));
	for (uint64_t i = 0; i < SAMPLES; i++)
		made_append(w, i);
	CHECK(!writer_finish(&w));
	the_copy_of_old_samples_can_be_ended();
	CHECK(!remove(target) && !remove(folder));
	return 0;
}
