/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the file of a command of beton, except dump: the first byte is
 * the command's number, the rest is the file. The command succeeds, or logs an
 * error. A batch file for show has the right CRC.
 */
#include "tests/fuzz/command.h"
#include "tests/fuzz/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;
	const struct command_row *row;
	uint8_t *bytes;

	if (!size)
		return 0;
	if (!begun)
		command_begin();
	begun = true;
	row = &command_rows[data[0] % (ARRAY_LEN(command_rows) - 1)];
	bytes = malloc(size);
	MUST(bytes);
	memcpy(bytes, data + 1, size - 1);
	if (row->command == &command_show)
		seal_batch(bytes, size - 1);
	command_run_bytes(row, bytes, size - 1);
	free(bytes);
	return 0;
}
