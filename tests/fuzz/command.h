/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of beton as functions on one file, with the messages that they log.
 */
#ifndef TESTS_FUZZ_COMMAND_H
#define TESTS_FUZZ_COMMAND_H

#include <ftw.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/beton/command.h"
#include "tests/fuzz/fuzz.h"

enum { COMMAND_ARGS_MAX = 16 };

#define COMMAND_SPEC "order=random,batch=5,seed=0,drop_last=0"

/* Where dump writes. */
static char command_out[] = "/tmp/beton_fuzz.XXXXXX";

static const struct command_row {
	const struct command *command;
	const char *options[COMMAND_ARGS_MAX - 2];
} command_rows[] = {
	{ &command_info, { NULL } },
	{ &command_info, { "--json", NULL } },
	{ &command_info, { "--spec", COMMAND_SPEC, NULL } },
	{ &command_show, { NULL } },
	{ &command_show, { "--json", NULL } },
	/* The last: it takes a hundred times as long as the others. */
	{ &command_dump,
	  { "--out", command_out, "--spec", COMMAND_SPEC, "--batches", "0:2",
	    "--jobs", "1", "--on-error", "skip", NULL } },
};

static inline int command_remove(const char *path, const struct stat *st,
				 int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void command_remove_out(void)
{
	nftw(command_out, command_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Chooses a directory for dump, and lets commands print nothing. */
static inline void command_begin(void)
{
	MUST(mkdtemp(command_out) && freopen("/dev/null", "w", stdout));
	command_remove_out();
}

/* Called with the log's lock held. */
static inline void command_check_message(void *arg, enum beton_log_level level,
					 const char *message)
{
	unsigned *errors = arg;

	MUST(*message);
	for (const char *p = message; *p; p++)
		MUST((unsigned char)*p >= ' ');
	*errors += level == BETON_LOG_ERROR;
}

/* Runs a command on a file. Returns the exit code, which agrees with the errors
   that were logged, each of one line without control characters. */
static inline int command_run_on(const struct command_row *row,
				 const char *file)
{
	const char *const *option = row->options;
	char *argv[COMMAND_ARGS_MAX] = { (char *)row->command->name };
	unsigned n = 1, errors = 0;
	struct log log;
	int code;

	while (*option)
		argv[n++] = (char *)*option++;
	argv[n] = (char *)file;
	log_init(&log, command_check_message, &errors);
	code = command_run(row->command, argv, &log);
	MUST(code ? code == EXIT_FAILURE && errors : !errors);
	log_fini(&log);
	return code;
}

/* Runs a command on a file with these bytes. */
static inline void command_run_bytes(const struct command_row *row,
				     const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[32];

	MUST(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	command_run_on(row, path);
	close(fd);
	if (row->command == &command_dump)
		command_remove_out();
}

#endif
