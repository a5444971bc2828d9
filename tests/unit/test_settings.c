/* SPDX-License-Identifier: Apache-2.0 */
/* A file of settings, what a loader takes of it, and what a doctor writes. */
#include "fs/base/settings/settings.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/defaults.h"
#include "loader/tools/doctor/apply.h"
#include "tests/unit/t.h"
#include "tests/unit/write_file.h"

static char path[] = "/tmp/beton-test-settings-XXXXXX";

static void write_text(const char *text)
{
	write_file(path, text, strlen(text));
}

static void keep_message(void *arg, enum beton_log_level level,
			 const char *message)
{
	(void)level;
	snprintf(arg, 2048, "%s", message);
}

static void refused(const char *text, const char *says)
{
	char message[2048] = "";
	struct settings s = { 0 };
	struct log log;

	write_text(text);
	log_init(&log, keep_message, message);
	CHECK(settings_read(path, &log, &s) == -EINVAL);
	log_fini(&log);
	if (!strstr(message, says))
		fprintf(stderr, "%s\n", message);
	CHECK(strstr(message, says) && !s.of[SETTING_WORKERS].is_set);
}

static void test_lines_are_keys_and_values(void)
{
	struct settings s;

	write_text("# why\n\n workers = 3 \r\ncache_size=64MiB\n"
		   "order=quasi_random\nwindow=1000");
	CHECK(!settings_read(path, NULL, &s));
	CHECK(s.of[SETTING_WORKERS].number == 3);
	CHECK(s.of[SETTING_CACHE_SIZE].number == 64 << 20);
	CHECK(!strcmp(s.of[SETTING_ORDER].text, "quasi_random"));
	CHECK(!strcmp(s.of[SETTING_WINDOW].text, "1000"));
	CHECK(!s.of[SETTING_CACHE].is_set && !s.of[SETTING_BLOCK].is_set);
}

static void test_errors_name_the_line(void)
{
	char long_line[200] = "workers=";

	refused("prefetch=2\nworkres=3\n",
		":2: unknown key 'workres': expected one of workers, ");
	refused("workers\n", ":1: expected key=value, not 'workers'");
	refused("\n\nworkers=0\n",
		":3: workers=0: expected a whole number from 1 to 4096");
	refused("workers=-1\n", "workers=-1");
	refused("workers=4097\n", "workers=4097");
	refused("workers=2K\n", "workers=2K");
	refused("workers=\n", "workers=");
	refused("cache=o\n", "expected one of auto, os, process");
	refused("cache=os|process\n", "expected one of auto, os, process");
	refused("cache=\n", "expected one of auto, os, process");
	refused("cache_size=99999999999999999999G\n", "expected a size");
	refused("cache_size=1M\n",
		"expected a size from 16MiB, such as 512MiB");
	refused("decode=exact\n", "expected draft");
	refused("order=weighted\n", "expected one of sequential, random, ");
	refused("delivery=direct\ndelivery=direct\n",
		":2: delivery is given twice");
	refused("window=1000\n",
		"block and window need the line order=quasi_random");
	refused("\033[2J=1\n", "unknown key '?[2J'");
	memset(long_line + 8, '1', sizeof(long_line) - 9);
	refused(long_line, ":1: workers=1111111");
}

static void test_other_than_text_is_refused(void)
{
	static char large[65537];
	struct settings s;

	write_file(path, "workers=1\n\0\n", 12);
	CHECK(settings_read(path, NULL, &s) == -EINVAL);
	memset(large, '\n', sizeof(large));
	write_file(path, large, sizeof(large));
	CHECK(settings_read(path, NULL, &s) == -EINVAL);
	write_file(path, large, sizeof(large) - 1);
	CHECK(!settings_read(path, NULL, &s));
	CHECK(settings_read("/tmp", NULL, &s) == -EINVAL);
	CHECK(settings_read("/proc/nonexistent", NULL, &s) == -ENOENT);
	unlink(path);
	/* It would wait for a writer. */
	CHECK(!mkfifo(path, 0600));
	CHECK(settings_read(path, NULL, &s) == -EINVAL);
	unlink(path);
}

static struct defaults taken(const struct beton_loader_options *o,
			     char *message)
{
	struct beton_loader_options with = *o;
	struct defaults d;
	struct log log;

	message[0] = '\0';
	with.size = sizeof(with);
	with.log = keep_message;
	log_init(&log, keep_message, message);
	CHECK(!setenv("BETON_SETTINGS", path, 1));
	CHECK(!defaults_open(&with, &log, &d));
	CHECK(!unsetenv("BETON_SETTINGS"));
	log_fini(&log);
	return d;
}

static const char all[] = "workers=3\nprefetch=5\ndelivery=direct\n"
			  "cache=process\ncache_size=64MiB\ncold_size=1MiB\n"
			  "order=quasi_random\nwindow=64\ndecode=draft\n"
			  "cache_decoded=8MiB\n";

static void test_settings_replace_defaults(void)
{
	const struct beton_loader_options o = { .spec = "batch=8",
						.pipeline =
							"resize(8) | flip" };
	char message[2048];
	struct defaults d;

	write_text(all);
	d = taken(&o, message);
	CHECK(d.options.workers == 3 && d.options.prefetch == 5);
	CHECK(!strcmp(d.options.delivery, "direct"));
	CHECK(!strcmp(d.options.cache, "process"));
	CHECK(d.options.cache_size == 64 << 20);
	CHECK(d.options.cold_size == 1 << 20);
	CHECK(!strcmp(d.options.spec, "batch=8,order=quasi_random,window=64"));
	CHECK(!strcmp(d.options.pipeline, "decode(draft) | cache(decoded, "
					  "8MiB) | resize(8) | flip"));
	CHECK(strstr(message, path) && strstr(message, "using workers=3, "));
	CHECK(strstr(message, "decode=draft") && !strstr(message, "ignoring"));
	defaults_fini(&d);
}

static void test_options_override_settings(void)
{
	const struct beton_loader_options o = {
		.spec = "order=random",
		.pipeline = "decode(exact) | cache(decoded, 1MiB) | resize(8)",
		.cache = "os",
		.delivery = "auto",
		.workers = 1,
		.prefetch = 2,
	};
	char message[2048];
	struct defaults d;

	write_text(all);
	d = taken(&o, message);
	CHECK(d.options.workers == 1 && d.options.prefetch == 2);
	CHECK(!strcmp(d.options.delivery, "auto"));
	CHECK(!strcmp(d.options.cache, "os") && !d.options.cache_size);
	CHECK(!d.options.cold_size);
	CHECK(!strcmp(d.options.spec, "order=random"));
	CHECK(!strcmp(d.options.pipeline, o.pipeline));
	CHECK(strstr(message,
		     "using nothing; ignoring what the program sets: "));
	CHECK(strstr(message, "workers=3") && strstr(message, "window=64"));
	defaults_fini(&d);
}

static void test_without_the_variable_nothing_changes(void)
{
	const struct beton_loader_options o = { .size = sizeof(o),
						.spec = "batch=8" };
	struct defaults d;

	CHECK(!defaults_open(&o, NULL, &d));
	CHECK(d.options.spec == o.spec && !d.options.workers);
	defaults_fini(&d);
	CHECK(!setenv("BETON_SETTINGS", "/proc/nonexistent", 1));
	CHECK(defaults_open(&o, NULL, &d) == -ENOENT);
	CHECK(!unsetenv("BETON_SETTINGS"));
}

static void test_settings_of_the_doctor_are_read_back(void)
{
	const struct fix fixes[] = {
		{ "draft", "", "", 3, "decode=draft", FIX_CHANGES_PIXELS },
		{ "better", "", "", 2, "cache=process,cache_size=64MiB", 0 },
		{ "order", "", "", 2, "order=quasi_random,window=16MiB",
		  FIX_CHANGES_ORDER },
		{ "worse", "", "", 1.5, "cache=os", 0 },
		{ "a file", "", "", 1.5, "", 0 },
		{ "nothing", "", "", 1, "workers=1", 0 },
	};
	const enum apply_fate fates[] = { APPLY_NOT_ALLOWED, APPLY_WRITTEN,
					  APPLY_WRITTEN,     APPLY_OTHER,
					  APPLY_NONE,	     APPLY_NO_GAIN };
	struct applied a;
	struct settings s;

	unlink(path);
	/* The second time it replaces the file. */
	for (int i = 0; i < 2; i++)
		CHECK(!apply_fixes(fixes, 6, path, FIX_CHANGES_ORDER, NULL,
				   &a));
	CHECK(!memcmp(a.fates, fates, sizeof(fates)));
	CHECK(!settings_read(path, NULL, &s));
	CHECK(!s.of[SETTING_DECODE].is_set && !s.of[SETTING_WORKERS].is_set);
	CHECK(!strcmp(s.of[SETTING_CACHE].text, "process"));
	CHECK(s.of[SETTING_WINDOW].number == 16 << 20);
	write_text("import torch\n");
	CHECK(apply_fixes(fixes, 6, path, 0, NULL, &a) == -EEXIST);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !close(fd));
	test_lines_are_keys_and_values();
	test_errors_name_the_line();
	test_other_than_text_is_refused();
	test_settings_replace_defaults();
	test_options_override_settings();
	test_without_the_variable_nothing_changes();
	test_settings_of_the_doctor_are_read_back();
	unlink(path);
	return 0;
}
