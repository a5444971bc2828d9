/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the file of a command of beton, except dump: the first byte is
 * the command's number, the rest is the file. The command succeeds, or logs an
 * error.
 */
#include "tests/fuzz/command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;

	if (!size)
		return 0;
	if (!begun)
		command_begin();
	begun = true;
	command_run_bytes(
		&command_rows[data[0] % (ARRAY_LEN(command_rows) - 1)],
		data + 1, size - 1);
	return 0;
}
