/* SPDX-License-Identifier: Apache-2.0 */
/* A transfer of a net, as libcurl sees it: an easy handle, its options, and the
   redirects that it follows. On the thread of the net only. */
#ifndef FS_SOURCE_NET_JOB_H
#define FS_SOURCE_NET_JOB_H

#ifdef HAVE_CURL

#	include "fs/source/net/curl.h"
#	include "fs/source/net/transfer.h"

struct net_job {
	const struct curl_api *curl;
	CURL *easy;
	struct net_transfer *transfer;
	struct net_job *prev, *next;
	struct curl_slist lines[NET_LINES_MAX + 4];
	char error[CURL_ERROR_SIZE];
	size_t sent;	/* bytes of the body */
	size_t unnoted; /* bytes of the answer since its last progress */
	size_t trailers;
	unsigned redirects;
	int stopped; /* -errno of a callback or a limit */
	bool canceled;
	bool head_is_complete;
};

/* NULL without memory. */
struct net_job *job_new(const struct curl_api *curl);
void job_free(struct net_job *job);

/* Prepares the easy handle for a transfer. Returns 0 or -errno. */
int job_begin(struct net_job *job, struct net_transfer *transfer);

/* Returns whether the answer is a redirect that the job now follows: add the
   easy handle again. */
bool job_redirects(struct net_job *job);

/* Returns the result of a transfer that ended, and fills in its outcome. */
int job_result(struct net_job *job, CURLcode code);

/* Returns 0, or -errno of the limit that the job exceeds at `now`. *next is the
   earliest moment at which it may exceed one. */
int job_check(struct net_job *job, int64_t now, int64_t *next);

#endif

#endif
