/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/net/curl.h"

#ifdef HAVE_CURL

#	include <errno.h>
#	include <stddef.h>

#	include "fs/base/util/bytes.h"
#	include "fs/base/util/library.h"

#	define SYMBOL(name)                                                   \
		{                                                              \
			"curl_" #name, offsetof(struct curl_api, name), true   \
		}

static const struct library_symbol symbols[] = {
	SYMBOL(global_init),	     SYMBOL(version_info),
	SYMBOL(easy_init),	     SYMBOL(easy_setopt),
	SYMBOL(easy_getinfo),	     SYMBOL(easy_reset),
	SYMBOL(easy_cleanup),	     SYMBOL(easy_strerror),
	SYMBOL(multi_init),	     SYMBOL(multi_cleanup),
	SYMBOL(multi_setopt),	     SYMBOL(multi_add_handle),
	SYMBOL(multi_remove_handle), SYMBOL(multi_socket_action),
	SYMBOL(multi_info_read),
};

static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

/*
 * OpenSSL frees its tables when the program exits, while a thread may still use
 * them: a program that exits with an open loader would crash. Its first caller
 * can forbid that.
 */
static void keep_tls_until_the_end(void)
{
	enum { NO_ATEXIT = 0x80000 }; /* OPENSSL_INIT_NO_ATEXIT */
	struct {
		int (*init)(uint64_t options, const void *settings);
	} crypto = { 0 };
	const struct library_symbol symbol = { "OPENSSL_init_crypto", 0, true };
	void *library = library_open("libcrypto.so.3", true);

	if (!library)
		library = library_open("libcrypto.so.1.1", true);
	if (library && !library_fill(library, &symbol, 1, &crypto))
		crypto.init(NO_ATEXIT, NULL);
	library_close(library);
}

static int refuse(struct log *log, const char *why)
{
	log_error(
		log,
		"URLs need libcurl 7.68 or later (%s): install the package libcurl4, or libcurl on other systems than Debian's",
		why);
	return -ENOTSUP;
}

int curl_load(struct log *log, struct curl_api *out)
{
	const char *missing;

	*out = (struct curl_api){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(names) && !out->library; i++)
		out->library = library_open(names[i], false);
	if (!out->library)
		return refuse(log, library_error());
	missing = library_fill(out->library, symbols, ARRAY_LEN(symbols), out);
	if (missing) {
		library_close(out->library);
		return refuse(log, missing);
	}
	keep_tls_until_the_end();
	if (out->global_init(CURL_GLOBAL_DEFAULT))
		return refuse(log, "its initialization failed");
	return 0;
}

#endif
