/* SPDX-License-Identifier: Apache-2.0 */
/* net_fetch(): an exchange whose answer fits into the caller's memory. */
#include <errno.h>
#include <string.h>

#include "fs/source/net/exchange.h"

enum { TIMEOUT_MS = 5000 };

static int take_bytes(void *arg, const void *bytes, size_t size)
{
	struct net_fetch *f = arg;

	if (size > f->size - f->got)
		return -EFBIG;
	memcpy(f->buf + f->got, bytes, size);
	f->got += size;
	return 0;
}

int net_fetch(struct net *net, struct net_fetch *f)
{
	unsigned ms = f->timeout_ms ? f->timeout_ms : TIMEOUT_MS;
	struct exchange e = {
		.method = f->method,
		.url = f->url,
		.headers = f->headers,
		.secrets = f->secrets,
		.body = f->body,
		.body_size = f->body_size,
		.netrc = f->netrc,
		.direct = f->direct,
		.no_redirects = f->no_redirects,
		.connect_ms = ms,
		.first_byte_ms = ms,
		.stall_ms = ms,
		.line = f->line,
		.line_arg = f->arg,
		.sink = take_bytes,
		.sink_arg = f,
	};
	int r;

	f->got = 0;
	r = exchange_run(net, &e);
	f->answer = e.answer;
	memcpy(f->why, e.why, sizeof(f->why));
	return r;
}
