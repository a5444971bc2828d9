/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void output_begin(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

		/* open() returns the lowest free descriptor, which is `fd`. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode) != fd)
			abort();
	}
}

int output_flush(struct log *log)
{
	int error;

	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	/* If a write failed earlier, its reason is lost. */
	error = errno;
	log_error(log, "standard output: %s",
		  error ? strerror(error) : "cannot be written");
	clearerr(stdout);
	return error ? -error : -EIO;
}

int output_end(struct log *log, int code)
{
	int r = output_flush(log);

	/* A network file system may report a full disk only now. */
	if (fclose(stdout) && !r) {
		r = -errno;
		log_error(log, "standard output: %s", strerror(-r));
	}
	return r && code == EXIT_SUCCESS ? EXIT_FAILURE : code;
}
