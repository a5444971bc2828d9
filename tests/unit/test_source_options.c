/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/source/local/options.h"
#include "tests/unit/t.h"

static char last[1024];

static void keep(void *arg, enum beton_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(last, sizeof(last), "%s", message);
}

static int read_options(const char *text, struct source_options *out)
{
	struct log log;
	int r;

	last[0] = '\0';
	log_init(&log, keep, NULL);
	r = source_options_read(text, &log, out);
	log_fini(&log);
	return r;
}

static void all_keys_are_read(void)
{
	struct source_options o;
	char number[32];

	CHECK(!read_options(
		"connections=8,retry=5m,disk=/var/cache/x,disk_size=2GiB,"
		"header=/h,profile=p,region=eu-1,endpoint=http://h:9000,"
		"no_sign",
		&o));
	CHECK(o.connections == 8 && o.retry_ms == 300000);
	CHECK(!strcmp(o.disk, "/var/cache/x") && o.disk_size == 2ull << 30);
	CHECK(!strcmp(o.header, "/h") && !strcmp(o.profile, "p"));
	CHECK(!strcmp(o.region, "eu-1") &&
	      !strcmp(o.endpoint, "http://h:9000"));
	CHECK(o.no_sign && !o.net && !o.memory);
	CHECK(!strcmp(source_option_text(&o, "retry", number), "300s"));
	CHECK(!strcmp(source_option_text(&o, "connections", number), "8"));
	CHECK(!strcmp(source_option_text(&o, "no_sign", number), ""));
	CHECK(!strcmp(source_option_text(&o, "disk", number), "/var/cache/x"));
	CHECK(!source_option_text(&o, "other", number));
	source_options_fini(&o);
	CHECK(!o.disk && !source_option_text(&o, "connections", number));
}

static void empty_words_are_ignored(void)
{
	struct source_options o;

	CHECK(!read_options(NULL, &o) && !o.disk && !o.connections);
	CHECK(!read_options("", &o));
	CHECK(!read_options(",,connections=3,,", &o) && o.connections == 3);
	source_options_fini(&o);
}

static void the_last_value_counts(void)
{
	struct source_options o;

	CHECK(!read_options("profile=a,profile=b,retry=0", &o));
	CHECK(!strcmp(o.profile, "b"));
	/* 0 would be the default. */
	CHECK(o.retry_ms == 1);
	source_options_fini(&o);
}

static void a_backslash_keeps_a_comma(void)
{
	struct source_options o;

	CHECK(!read_options("disk=/a\\,b,region=r", &o));
	CHECK(!strcmp(o.disk, "/a,b") && !strcmp(o.region, "r"));
	source_options_fini(&o);
}

static void paths_become_absolute(void)
{
	struct source_options o;
	char dir[4096], path[5000];

	CHECK(getcwd(dir, sizeof(dir)));
	snprintf(path, sizeof(path), "%s/cache", dir);
	CHECK(!read_options("disk=cache", &o));
	CHECK(!strcmp(o.disk, path));
	source_options_fini(&o);
}

static void flags_have_python_values(void)
{
	struct source_options o;

	CHECK(!read_options("no_sign=true", &o) && o.no_sign);
	CHECK(!read_options("no_sign,no_sign=false", &o) && !o.no_sign);
	CHECK(read_options("no_sign=1", &o) == -EINVAL);
	CHECK(strstr(last, "expected no_sign without a value"));
}

static void wrong_words_get_one_line(void)
{
	static const struct {
		const char *text, *line;
	} rows[] = {
		{ "connectoins=8",
		  "connectoins: unknown option; did you mean `connections'?" },
		{ "anon=true",
		  "anon: unknown option; did you mean `no_sign'?" },
		{ "endpoint_url=http://x", "did you mean `endpoint'?" },
		{ "connections=0",
		  "connections=0: expected a whole number from 1 to 256" },
		{ "connections=257", "expected a whole number from 1 to 256" },
		{ "connections", "expected connections=N" },
		{ "connections=", "expected connections=N" },
		{ "retry=5d", "retry=5d: expected a time from 0s to 168h" },
		{ "disk_size=1K", "expected a size from 64MiB" },
		{ "disk=", "disk=: expected disk=DIR" },
		{ "endpoint=host:9000",
		  "expected http://HOST or https://HOST" },
		{ "=3", "unknown option" },
	};
	struct source_options o;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK(read_options(rows[i].text, &o) == -EINVAL);
		CHECK(!strncmp(last, "storage options: ", 17));
		CHECK(strstr(last, rows[i].line));
		source_options_fini(&o);
	}
}

static void no_message_has_a_secret(void)
{
	static const char *const rows[] = {
		"secret=hunter2",
		"aws_secret_access_key=hunter2",
		"token=hunter2",
		"typo=hunter2",
		"endpoint=https://user:hunter2@host",
		"endpoint=https://host/?X-Amz-Signature=hunter2",
		"header=hunter2",
		"header=Authorization: Bearer hunter2",
	};
	struct source_options o;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK(read_options(rows[i], &o) == -EINVAL);
		CHECK(last[0] && !strstr(last, "hunter2"));
		source_options_fini(&o);
	}
}

static void a_file_with_secrets_is_private(void)
{
	struct source_options o;
	FILE *f = fopen("header.txt", "w");

	CHECK(f && !fclose(f) && !chmod("header.txt", 0640));
	CHECK(!read_options("header=header.txt", &o) && !last[0]);
	CHECK(strstr(o.header, "/header.txt"));
	source_options_fini(&o);
	CHECK(!chmod("header.txt", 0644));
	CHECK(!read_options("header=header.txt", &o));
	CHECK(strstr(last, "/header.txt: all users can read this file"));
	source_options_fini(&o);
	CHECK(!unlink("header.txt"));
	CHECK(read_options("header=header.txt", &o) == -EINVAL);
	CHECK(strstr(last, "header: expected the path of a file"));
	source_options_fini(&o);
	CHECK(!read_options("header=~/x", &o) && !strcmp(o.header, "~/x"));
	source_options_fini(&o);
}

static void the_environment_has_defaults(void)
{
	struct source_options o;

	CHECK(!setenv("BETON_STORAGE_OPTIONS", "profile=e,connections=4", 1));
	CHECK(!read_options("profile=t", &o));
	CHECK(o.connections == 4 && !strcmp(o.profile, "t"));
	source_options_fini(&o);
	CHECK(!setenv("BETON_STORAGE_OPTIONS", "connections=x", 1));
	CHECK(read_options(NULL, &o) == -EINVAL);
	CHECK(!strncmp(last, "BETON_STORAGE_OPTIONS: connections=x: expected ",
		       47));
	CHECK(!unsetenv("BETON_STORAGE_OPTIONS"));
	source_options_fini(&o);
}

/* It runs last: a process has one command line. */
static void the_command_line_is_before_the_program(void)
{
	struct source_options o;

	CHECK(!setenv("BETON_STORAGE_OPTIONS", "profile=e,connections=4", 1));
	CHECK(!source_options_add("connections=5,retry=7s"));
	CHECK(!source_options_add("region=r"));
	CHECK(!read_options("retry=8s", &o));
	CHECK(o.connections == 5 && o.retry_ms == 8000);
	CHECK(!strcmp(o.profile, "e") && !strcmp(o.region, "r"));
	source_options_fini(&o);
	CHECK(!source_options_add("connections=x"));
	CHECK(read_options(NULL, &o) == -EINVAL);
	CHECK(!strncmp(last, "-o: connections=x: expected ", 28));
	source_options_fini(&o);
}

int main(void)
{
	unsetenv("BETON_STORAGE_OPTIONS");
	all_keys_are_read();
	empty_words_are_ignored();
	the_last_value_counts();
	a_backslash_keeps_a_comma();
	paths_become_absolute();
	flags_have_python_values();
	wrong_words_get_one_line();
	no_message_has_a_secret();
	a_file_with_secrets_is_private();
	the_environment_has_defaults();
	the_command_line_is_before_the_program();
	return 0;
}
