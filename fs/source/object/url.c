/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/source/keys/credentials.h"
#include "fs/source/keys/net_outside.h"
#include "fs/source/object/identity.h"
#include "fs/source/object/remote.h"
#include "fs/source/url/percent.h"
#include "fs/source/url/url.h"

enum {
	IN_FLIGHT_MAX = 256 << 20,
	ASK_MS = 50,
};

struct url_source {
	struct source base;
	struct url url;
	struct url_request request;
	struct remote remote;
	struct outside outside;
	struct credentials *keys;
	bool has_remote;
	void *head; /* NULL: taken */
	size_t head_size;
	char identity[IDENTITY_SIZE];
};

static struct url_source *url_of(const struct source *source)
{
	return (struct url_source *)source;
}

/* --- attempts --- */

static bool is_store(const struct url_source *s)
{
	return s->url.scheme->bucket != NULL;
}

/* Moves the secret lines to the target. The range is not signed, because a
   proxy that caches may ask the store for another one. */
static int sign(struct url_source *s, struct attempt_target *out)
{
	const struct credentials_request request = {
		.method = "GET",
		.url = &s->request,
	};
	struct credentials_lines lines = { 0 };
	int r = credentials_sign(s->keys, &request, &lines);

	for (size_t i = 0; i < lines.num && !r; i++)
		out->secrets[out->num_secrets++] = steal(lines.at[i]);
	out->keys = lines.version;
	credentials_lines_fini(&lines);
	return r;
}

static int aim(struct remote *remote, const struct net_lines *headers,
	       struct attempt_target *out)
{
	struct url_source *s = remote->arg;
	int r = sign(s, out);

	(void)headers;
	if (r)
		return r;
	out->url = strdup(s->request.url);
	out->userinfo = s->url.userinfo;
	out->netrc = !is_store(s) && !s->url.userinfo && !out->num_secrets;
	/* A signature is that of one host. */
	out->stays = is_store(s);
	return out->url ? 0 : -ENOMEM;
}

/* Makes the URL of requests again. */
static int set_request(struct url_source *s, char why[URL_WHY_SIZE])
{
	struct url_request request = { 0 };
	int r = credentials_url(s->keys, &s->url, &request, why);

	if (r) {
		url_request_fini(&request);
		return r;
	}
	url_request_fini(&s->request);
	s->request = request;
	return 0;
}

/* The bucket may be in another region. */
static bool take_refusal(struct remote *remote,
			 const struct attempt_target *target,
			 const struct refusal *refusal)
{
	struct url_source *s = remote->arg;
	char why[URL_WHY_SIZE];

	return credentials_refused(s->keys, target->keys, refusal) &&
	       !set_request(s, why);
}

static void keys_have_changed(void *arg)
{
	struct url_source *s = arg;

	remote_wake(&s->remote);
}

/* Requests name the version from now on. They did not before, because that
   needs another permission. */
static bool use_version(struct remote *remote)
{
	struct url_source *s = remote->arg;
	cleanup_free char *version = NULL;
	char why[URL_WHY_SIZE];
	char *query;

	if (!s->url.scheme->keeps_versions || !*remote->peer.pin.version ||
	    url_encode(remote->peer.pin.version, true, &version) ||
	    text_print(&query, "%s=%s", s->url.scheme->version, version))
		return false;
	free(s->url.query);
	s->url.query = query;
	return !set_request(s, why);
}

/* --- requests --- */

static bool is_in_head(const struct url_source *s, uint64_t off, uint64_t size)
{
	return s->head && range_ok(off, size, s->head_size);
}

static void copy_head(const struct url_source *s, struct source_request *q)
{
	struct scatter memory = { .request = q };

	scatter_append(&memory, (const char *)s->head + q->off, q->size);
	q->got = q->size;
}

/* Returns whether the object has the bytes that the request needs. */
static bool has_needed(const struct url_source *s,
		       const struct source_request *q)
{
	uint64_t size = (uint64_t)s->base.stat.st_size;

	return q->off < size &&
	       range_ok(q->off, q->need ? q->need : q->size, size);
}

static void url_submit(struct source *source, struct source_request *q)
{
	struct url_source *s = url_of(source);

	q->got = 0;
	q->queued = false;
	q->fetch = NULL;
	if (is_in_head(s, q->off, q->size)) {
		copy_head(s, q);
		q->done(q, 0);
	} else if (has_needed(s, q)) {
		remote_submit(&s->remote, q);
	} else {
		log_error(source->log,
			  "%s: read of %zu bytes at %llu: the object has %lld",
			  source->path, q->size, (unsigned long long)q->off,
			  (long long)source->stat.st_size);
		q->done(q, -EIO);
	}
}

static void url_cancel(struct source *source, struct source_request *q)
{
	remote_cancel(&url_of(source)->remote, q);
}

/* A read that a thread waits for. */
struct read {
	struct source_request request;
	struct source_wait wait;
	int result;
};

static void end_read(struct source_request *q, int result)
{
	struct read *read = q->arg;

	read->result = result;
	source_wait_done(&read->wait);
}

static void begin_read(struct read *read, void *buf, size_t size, uint64_t off)
{
	read->request = (struct source_request){ .buf = buf,
						 .size = size,
						 .off = off,
						 .must = true,
						 .done = end_read,
						 .arg = read };
	source_wait_init(&read->wait);
	source_wait_add(&read->wait);
}

static int end_wait(struct read *read)
{
	source_wait_idle(&read->wait);
	source_wait_fini(&read->wait);
	return read->result;
}

static int url_read(struct source *source, void *buf, size_t size, uint64_t off)
{
	struct read read = { 0 };

	if (!size)
		return 0;
	begin_read(&read, buf, size, off);
	source_submit(source, &read.request);
	return end_wait(&read);
}

static bool url_is_direct(const struct source *source)
{
	(void)source;
	/* There is no page cache to bypass, and no alignment to keep. */
	return true;
}

static unsigned url_depth(const struct source *source)
{
	unsigned depth = atomic_load(&url_of(source)->remote.peer.counts.depth);

	/* Some requests wait, so that one begins when another ends, and so that
	   the depth can be found to be too small. */
	return depth + depth / 2;
}

static size_t url_best_read(const struct source *source)
{
	return atomic_load(&url_of(source)->remote.peer.counts.best);
}

static void url_net_stats(const struct source *source,
			  struct source_net_stats *out)
{
	remote_stats(&url_of(source)->remote, out);
}

static void url_pause(struct source *source)
{
	struct url_source *s = url_of(source);

	credentials_pause(s->keys);
	net_pause(s->remote.peer.net);
}

static bool url_needs_program(const struct source *source)
{
	return credentials_need_program(url_of(source)->keys);
}

static void url_halt(struct source *source)
{
	remote_halt(&url_of(source)->remote);
}

/* --- opening and closing --- */

static void url_close(struct source *source)
{
	struct url_source *s = url_of(source);

	if (s->has_remote)
		remote_stop(&s->remote);
	credentials_close(s->keys);
	if (s->has_remote)
		remote_fini(&s->remote);
	net_unref(s->remote.peer.net);
	url_request_fini(&s->request);
	url_fini(&s->url);
	free(s->head);
}

static const struct source_ops url_ops = {
	.name = "url",
	.submit = url_submit,
	.cancel = url_cancel,
	.read = url_read,
	.is_direct = url_is_direct,
	.depth = url_depth,
	.best_read = url_best_read,
	.pause = url_pause,
	.halt = url_halt,
	.needs_program = url_needs_program,
	.net_stats = url_net_stats,
	.close = url_close,
};

void *url_source_take_head(struct source *source, size_t *size)
{
	struct url_source *s = url_of(source);

	*size = s->head_size;
	return steal(s->head);
}

const char *url_source_identity(const struct source *source)
{
	return url_of(source)->identity;
}

bool url_source_is_strong(const struct source *source)
{
	return identity_is_strong(&url_of(source)->remote.peer.pin);
}

static int parse(struct url_source *s, const char *text)
{
	char why[URL_WHY_SIZE];
	int r = url_parse(text, &s->url, why);

	if (r == -ENOMEM)
		return r;
	if (r)
		log_error(s->base.log, "%s: %s", s->base.path, why);
	return r;
}

static int open_net(struct url_source *s, const struct source_options *options)
{
	if (!options->net)
		return net_open(s->base.log, &s->remote.peer.net);
	s->remote.peer.net = net_ref(options->net);
	return 0;
}

static uint64_t in_flight_max(const struct source_options *options)
{
	uint64_t memory = options->memory ? options->memory : SOURCE_MEMORY;

	return min_u64(memory, IN_FLIGHT_MAX);
}

static void init_remote(struct url_source *s,
			const struct source_options *options)
{
	struct remote *r = &s->remote;
	uint64_t connections = options->connections ? options->connections
						    : SOURCE_CONNECTIONS;

	r->log = s->base.log;
	r->name = s->base.path;
	r->retry_ms = options->retry_ms ? options->retry_ms : SOURCE_RETRY_MS;
	r->waits_to_open = options->retry_ms;
	r->aim = aim;
	r->use_version = use_version;
	r->refused = take_refusal;
	r->arg = s;
	r->reads = &s->base.reads;
	depth_init(&r->peer.depth, in_flight_max(options),
		   (unsigned)connections);
	remote_init(r);
	s->has_remote = true;
}

static int open_keys(struct url_source *s, const struct source_options *o)
{
	const struct credentials_options options = {
		.scheme = s->url.scheme,
		.name = s->base.path,
		.profile = o->profile,
		.region = o->region,
		.endpoint = o->endpoint,
		.header = o->header,
		.no_sign = o->no_sign,
		.changed = keys_have_changed,
		.arg = s,
	};
	char why[URL_WHY_SIZE];
	int r;

	net_outside_init(&s->outside, &outside_own, s->remote.peer.net);
	r = credentials_open(&options, &s->outside, s->base.log, &s->keys);
	if (r)
		return r;
	r = set_request(s, why);
	if (r && r != -ENOMEM)
		log_error(s->base.log, "%s: %s", s->base.path, why);
	return r;
}

/* The stat of a file of this process that no other user may read. */
static void set_stat(struct url_source *s)
{
	const struct pin *pin = &s->remote.peer.pin;
	struct stat *st = &s->base.stat;

	st->st_mode = S_IFREG | 0400;
	st->st_nlink = 1;
	st->st_uid = geteuid();
	st->st_gid = getegid();
	st->st_size = (off_t)pin->size;
	st->st_blksize = SOURCE_ALIGN;
	st->st_blocks = st->st_size / 512;
	if (pin->has_modified)
		st->st_mtim.tv_sec = st->st_ctim.tv_sec = pin->modified;
}

static void warn_of_version(const struct url_source *s)
{
	const struct pin *pin = &s->remote.peer.pin;

	if (*pin->etag && !pin->etag_is_weak)
		return;
	log_warning(
		s->base.log,
		"%s: the server sends no %sETag: a replaced object is recognized by its size%s only",
		s->base.path, *pin->etag ? "strong " : "",
		pin->has_modified ? " and date" : "");
}

static void wait_or_cancel(struct url_source *s, struct read *read,
			   const struct source_options *o)
{
	while (o->interrupted && !source_wait_some(&read->wait, ASK_MS)) {
		if (!o->interrupted(o->interrupted_arg))
			continue;
		remote_cancel(&s->remote, &read->request);
		return;
	}
}

/* Reads the first bytes, which sets the pin. */
static int read_head(struct url_source *s, const struct source_options *o)
{
	struct read read = { 0 };
	int r;

	s->head = malloc(URL_SOURCE_HEAD);
	if (!s->head)
		return -ENOMEM;
	begin_read(&read, s->head, URL_SOURCE_HEAD, 0);
	remote_submit(&s->remote, &read.request);
	wait_or_cancel(s, &read, o);
	r = end_wait(&read);
	if (r)
		return r;
	s->head_size = read.request.got;
	return 0;
}

static int open_source(struct url_source *s, const char *url,
		       const struct source_options *options)
{
	int r = parse(s, url);

	if (!r)
		r = open_net(s, options);
	if (r)
		return r;
	init_remote(s, options);
	r = open_keys(s, options);
	if (!r)
		r = read_head(s, options);
	if (r)
		return r;
	set_stat(s);
	identity_make(&s->remote.peer.pin, &s->url, &s->request, s->identity);
	warn_of_version(s);
	return 0;
}

int url_source_open(const char *url, const struct source_options *options,
		    struct log *log, struct source **out)
{
	const struct source_options defaults = { 0 };
	struct url_source *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->base.ops = &url_ops;
	s->base.log = log;
	s->base.path = url_visible(url);
	r = s->base.path ? open_source(s, url, options ? options : &defaults)
			 : -ENOMEM;
	if (!r) {
		*out = &s->base;
		return 0;
	}
	source_close(&s->base);
	return r;
}
