/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/net_outside.h"

#include <stdio.h>
#include <string.h>

static enum net_method method_of(const char *name)
{
	if (!strcmp(name, "PUT"))
		return NET_PUT;
	return strcmp(name, "POST") ? NET_GET : NET_POST;
}

static int fetch(void *arg, struct outside_fetch *request)
{
	struct net_fetch f = {
		.method = method_of(request->method),
		.url = request->url,
		.secrets = { request->lines, request->num_lines },
		.body = request->body,
		.body_size = request->body_size,
		.direct = request->direct,
		/* A signature is for one host. */
		.no_redirects = true,
		.timeout_ms = request->timeout_ms,
		.buf = request->buf,
		.size = request->size,
	};
	int r = net_fetch(arg, &f);

	request->got = f.got;
	request->status = f.answer.status;
	snprintf(request->why, sizeof(request->why), "%s", f.why);
	return r;
}

void net_outside_init(struct outside *outside, const struct outside *base,
		      struct net *net)
{
	*outside = *base;
	outside->fetch = fetch;
	outside->fetch_arg = net;
}
