/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the file of beton dump, through a whole loader. */
#include "tests/fuzz/command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;

	if (!begun)
		command_begin();
	begun = true;
	command_run_bytes(&command_rows[ARRAY_LEN(command_rows) - 1], data,
			  size);
	return 0;
}
