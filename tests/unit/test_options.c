/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "fs/base/order/order.h"
#include "fs/base/util/bytes.h"
#include "fs/mount/daemon/option_text.h"
#include "tests/unit/t.h"

enum { WORDS_MAX = 16 };

/* Splits a command line at blanks, in place, and parses it. */
static int parse_as(char *program, struct options *opts, char *line,
		    struct log *log)
{
	char *argv[WORDS_MAX + 2] = { program };
	int argc = 1;

	for (char *w = strtok(line, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	optind = 0;
	return options_parse(opts, argc, argv, log);
}

static int parse(struct options *opts, char *line, struct log *log)
{
	static char program[] = "betonfs";

	return parse_as(program, opts, line, log);
}

static void keep_message(void *arg, enum beton_log_level level,
			 const char *message)
{
	(void)level;
	snprintf(arg, 256, "%s", message);
}

/* The line is refused with a message that holds `word`. */
static void refused(const char *text, const char *word)
{
	char line[256], message[256] = "";
	struct options opts;
	struct log log;

	log_init(&log, keep_message, message);
	snprintf(line, sizeof(line), "%s", text);
	CHECK(parse(&opts, line, &log) == -EINVAL);
	CHECK(strstr(message, word));
	options_fini(&opts);
	log_fini(&log);
}

static void test_options_and_operands_come_in_any_order(void)
{
	char line[] = "-o uid=5,umask=027 data.beton -s -o uid=6,noexec mnt -f";
	struct options opts;
	char *mount;

	CHECK(parse(&opts, line, NULL) == 0);
	CHECK(opts.num_datasets == 1);
	CHECK(!strcmp(opts.datasets[0], "data.beton"));
	CHECK(!strcmp(opts.mountpoint, "mnt"));
	CHECK(opts.foreground && opts.single_thread && !opts.debug);
	CHECK(opts.uid == 6 && opts.umask == 027 && opts.gid == OPTS_UNSET);
	mount = opts_mount(&opts);
	CHECK(!strcmp(mount, "noexec"));
	free(mount);
	options_fini(&opts);
}

static void test_the_keys_of_a_spec_make_one(void)
{
	char line[] = "d m -o seed=3,batch=7,order=random -o batch=8";
	struct options opts;
	char *spec, *text;

	CHECK(parse(&opts, line, NULL) == 0);
	spec = opts_spec(&opts);
	text = opts_text(&opts);
	CHECK(!strcmp(spec, "order=random,batch=8,seed=3"));
	CHECK(!strcmp(text,
		      "order=random\nbatch=8\nseed=3\nprefetch=2\njobs=2\n"));
	free(spec);
	free(text);
	options_fini(&opts);
}

static void test_storage_options_are_checked_and_shown(void)
{
	char line[] = "d m -o connections=8,no_sign,seed=3,retry=2m -o disk=/c";
	struct options opts;
	char *text, *spec, *mount;

	CHECK(parse(&opts, line, NULL) == 0);
	CHECK(opts.storage.connections == 8 && opts.storage.no_sign);
	CHECK(!strcmp(opts.storage.disk, "/c"));
	text = opts_text(&opts);
	spec = opts_spec(&opts);
	mount = opts_mount(&opts);
	CHECK(!strcmp(text, "seed=3\nprefetch=2\njobs=2\nconnections=8\n"
			    "retry=120s\ndisk=/c\nno_sign\n"));
	CHECK(!strcmp(spec, "seed=3") && !*mount);
	free(text);
	free(spec);
	free(mount);
	options_fini(&opts);
	refused("d m -o connections=0", "-o connections=0: expected a whole "
					"number from 1 to 256. See");
	refused("d m -o retry", "expected retry=TIME");
	refused("d m -o header=tok-en", "-o header: expected the path of a");
	refused("d m -o endpoint=http://u:p@h", "-o endpoint: expected http");
	refused("d m -o no_sign=1", "expected no_sign without a value");
}

static void test_words_of_fstab_mean_nothing(void)
{
	char line[] = "d m -o defaults,ro,nofail,_netdev,x-systemd.automount,"
		      "comment=a=b,noauto,user=me,,noatime,dev,suid";
	struct options opts;
	char *mount, *spec;

	CHECK(parse(&opts, line, NULL) == 0);
	mount = opts_mount(&opts);
	spec = opts_spec(&opts);
	CHECK(!*mount && !*spec);
	free(mount);
	free(spec);
	options_fini(&opts);
}

static void test_wrong_options_are_refused_by_name(void)
{
	refused("d m -o nosuch", "nosuch");
	refused("d m -o ro,nosuch=3", "nosuch=3");
	refused("d m -o use", "use");
	refused("d m -o uid", "uid=N");
	refused("d m -o uid=", "uid=: expected a whole number from 0 to ");
	refused("d m -o uid=-1", "uid=-1");
	refused("d m -o uid=4294967295",
		"uid=4294967295: expected a whole number from 0 to 4294967294");
	refused("d m -o umask=8",
		"umask=8: expected an octal number up to 0777");
	refused("d m -o umask=1000", "umask=1000");
	refused("d m -o jobs=0",
		"jobs=0: expected a whole number from 1 to 1024");
	refused("d m -o jobs=1k", "jobs=1k");
	refused("d m -o workers=1", "did you mean `jobs'?");
	refused("d m -o threads=1", "did you mean `jobs'?");
	refused("d m -o ahead=1", "-o ahead=1: unknown option");
	refused("d m --nosuch", "--nosuch: unknown option");
	refused("d m -o",
		"-o: the option needs a value. See 'betonfs --help'.");
	refused("d m -o cache_size=1M",
		"cache_size=1M: expected a size from 16MiB, such as 512MiB");
	refused("d m -o cache=", "cache=: expected one of auto, os, process");
	refused("d m -o cache=o", "cache=o: expected one of auto, os, process");
	refused("d m -o cache", "cache: expected cache=auto|os|process");
	refused("d m -o noexec=1", "noexec=1: expected noexec without a value");
	refused("d m -o noexec=", "noexec=: expected noexec without a value");
	refused("d m -o log=", "log=FILE");
	refused("d m -o seed=", "seed=N");
	refused("d", "missing operand: MOUNTPOINT");
	refused("", "missing operand: DATASET and MOUNTPOINT");
}

static void test_values_have_types(void)
{
	char line[] = "d m -o umask=0022,jobs=0008,cache_size=16m,cold_size=0"
		      ",cache=os,cache=process,subset=few:f:g,subset=few";
	struct options opts;

	CHECK(parse(&opts, line, NULL) == 0);
	CHECK(opts.umask == 022 && opts.jobs == 8);
	CHECK(opts.cache_size == 16 << 20 && opts.cold_size == 0);
	CHECK(!strcmp(opts.cache, "process"));
	CHECK(opts.num_subsets == 1 && !strcmp(opts.subsets[0], "few:f:g"));
	CHECK(!strcmp(opts.spec.subset, "few"));
	options_fini(&opts);
}

static void test_help_lists_the_orders(void)
{
	char text[8192] = "", *order;
	FILE *f = fmemopen(text, sizeof(text) - 1, "w");

	CHECK(f);
	opts_help(f);
	fclose(f);
	order = strstr(text, "  order=NAME ");
	CHECK(order);
	*strstr(order, "  batch=") = '\0';
	for (size_t i = 0; order_name_at(i); i++)
		CHECK(strstr(order, order_name_at(i)));
}

static void test_keys_are_listed(void)
{
	char line[] = "d m -o prefetch=3", text[16384] = "";
	FILE *f = fmemopen(text, sizeof(text) - 1, "w");
	struct options opts;

	CHECK(parse(&opts, line, NULL) == 0);
	CHECK(opts.prefetch == 3 && opts.jobs == 2);
	options_fini(&opts);
	CHECK(f);
	opts_help(f);
	opts_list(f);
	opts_describe(f);
	fclose(f);
	CHECK(strstr(text, "  prefetch=N") && strstr(text, "\njobs\n"));
	CHECK(strstr(text, "\nkey\tjobs\tN\t"));
	CHECK(strstr(text, "\nkey\torder\tsequential|random|"));
	CHECK(strstr(text, "\nflag\t-q, --quiet\t"));
}

static void test_options_are_refused_as_they_were_written(void)
{
	refused("d m --quiet -zf", "-z: unknown option.");
	refused("d m --quiet -fz", "-z: unknown option.");
	refused("d m -l", "-l: unknown option.");
	refused("d m --hlep", "--hlep: unknown option; did you mean `--help'?");
	refused("d m --vers=2", "--vers=2: the option takes no value.");
	refused("d m --options=2", "--options=2: the option takes no value.");
	refused("d m --ver",
		"--ver: the option is ambiguous: --version, --verbose.");
	refused("d m --allow-other", "did you mean `-o allow_other'?");
	refused("d m --batch-size=7", "did you mean `-o batch'?");
	refused("d m --=3", "--=3: unknown option.");
}

static void test_the_last_of_quiet_and_verbose_wins(void)
{
	char quiet[] = "d m -v --quiet", verbose[] = "d m -q -vf";
	struct options opts;

	CHECK(parse(&opts, quiet, NULL) == 0 && opts.quiet && !opts.verbose);
	options_fini(&opts);
	CHECK(parse(&opts, verbose, NULL) == 0 && opts.verbose && !opts.quiet);
	CHECK(opts.foreground);
	options_fini(&opts);
}

static void datasets_are(const char *text, const char *joined)
{
	char line[256], got[256] = "";
	struct options opts;

	snprintf(line, sizeof(line), "%s mnt", text);
	CHECK(parse(&opts, line, NULL) == 0);
	for (size_t i = 0; i < opts.num_datasets; i++) {
		strcat(got, opts.datasets[i]);
		strcat(got, "|");
	}
	CHECK(!strcmp(got, joined));
	CHECK(!strcmp(opts.mountpoint, "mnt"));
	options_fini(&opts);
}

static void test_datasets_are_operands_or_a_list(void)
{
	datasets_are("a", "a|");
	datasets_are("a b c", "a|b|c|");
	datasets_are("a:b:c d", "a|b|c|d|");
	datasets_are("a:", "a||");
	datasets_are("a\\:b:c\\d", "a:b|c\\d|");
	datasets_are("s3://x/y:http://z:8/a", "s3://x/y|http://z:8/a|");
	datasets_are("http://u:p@z:8/a?b=c:d", "http://u:p@z:8/a?b=c:d|");
	datasets_are("/a:s3://x/y:/b:c", "/a|s3://x/y|/b|c|");
	datasets_are("{http://z:8/a,s3://x/b}", "{http://z:8/a,s3://x/b}|");
	datasets_are("{http\\://z\\:8/{a,b},c}d:{e:f",
		     "{http://z:8/{a,b},c}d|{e|f|");
}

static void test_the_letters_of_mount_are_others(void)
{
	char program[] = "/sbin/mount.beton", other[] = "/mount.d/betonfs";
	char line[] = "d m -s -f -n -v -t beton -o rw,noexec";
	char again[] = "d m -s -f";
	struct options opts;
	char *mount;

	CHECK(parse_as(program, &opts, line, NULL) == 0);
	CHECK(opts.fake && !opts.foreground && !opts.single_thread);
	mount = opts_mount(&opts);
	CHECK(!strcmp(mount, "noexec"));
	free(mount);
	options_fini(&opts);
	CHECK(parse_as(other, &opts, again, NULL) == 0);
	CHECK(!opts.fake && opts.foreground && opts.single_thread);
	options_fini(&opts);
}

int main(void)
{
	test_options_and_operands_come_in_any_order();
	test_the_keys_of_a_spec_make_one();
	test_datasets_are_operands_or_a_list();
	test_storage_options_are_checked_and_shown();
	test_words_of_fstab_mean_nothing();
	test_the_letters_of_mount_are_others();
	test_wrong_options_are_refused_by_name();
	test_values_have_types();
	test_help_lists_the_orders();
	test_keys_are_listed();
	test_options_are_refused_as_they_were_written();
	test_the_last_of_quiet_and_verbose_wins();
	return 0;
}
