/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl, loaded at run time: its functions as pointers. A build without its
 * headers has none of this.
 */
#ifndef FS_SOURCE_NET_CURL_H
#define FS_SOURCE_NET_CURL_H

#ifdef HAVE_CURL

/* The replacements of deprecated options are too new for older libraries. */
#	define CURL_DISABLE_DEPRECATION
#	include <curl/curl.h>

#	include "fs/base/util/log.h"

struct curl_api {
	void *library;
	CURLcode (*global_init)(long flags);
	curl_version_info_data *(*version_info)(CURLversion age);
	CURL *(*easy_init)(void);
	CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
	CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
	void (*easy_reset)(CURL *easy);
	void (*easy_cleanup)(CURL *easy);
	const char *(*easy_strerror)(CURLcode code);
	CURLM *(*multi_init)(void);
	CURLMcode (*multi_cleanup)(CURLM *multi);
	CURLMcode (*multi_setopt)(CURLM *multi, CURLMoption option, ...);
	CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
	CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
	CURLMcode (*multi_socket_action)(CURLM *multi, curl_socket_t fd,
					 int events, int *running);
	CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
};

/* Fills in the pointers. Failures are logged, with the package to install. The
   library stays loaded for the life of the process. */
int curl_load(struct log *log, struct curl_api *out);

#endif

#endif
