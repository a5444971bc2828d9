/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/output_url.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/files/outfile.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/data/dataset/sums.h"
#include "fs/source/upload/multipart.h"
#include "fs/source/upload/store.h"
#include "fs/source/url/url.h"

enum {
	/* A server that does not answer at the beginning rarely does later. */
	CHECK_RETRY_MS = 30 * 1000,
	SUMS_RETRY_MS = 1000,
	BEGIN_SIZE = 2,
};

struct object {
	struct output output;
	struct output_setup setup;
	struct store *store;
	struct multipart *upload;
	int fd;		       /* of the temporary file */
	struct outfile *front; /* the same file */
	uint64_t front_size;
	/* The object that had the name at the beginning. */
	bool is_new;
	char etag[HTTP_TAG_MAX]; /* "": not known */
	bool expects;		 /* to replace just that */
	/* UINT64_MAX: all bytes go to the file first. */
	uint64_t body;
	uint64_t end;	   /* of the bytes behind the front */
	struct sums *sums; /* of those; NULL: none are wanted */
};

static struct object *object_of(struct output *o)
{
	return (struct object *)o;
}

static const char *name_of(const struct object *o)
{
	return store_name(o->store);
}

static int failed(const struct object *o, const char *what, int error)
{
	log_error(o->setup.log, "%s: %s: %s", name_of(o), what,
		  strerror(error));
	return -error;
}

static int sums_failed(const struct object *o, int r)
{
	return r == -EFBIG ? failed(o,
				    "larger than 4 TiB, the limit of "
				    "checksums",
				    EFBIG)
	       : r	   ? failed(o, "checksums", -r)
			   : 0;
}

static bool spools(const struct object *o)
{
	return o->body == UINT64_MAX;
}

/* --- opening ------------------------------------------------------------- */

static int open_scratch(struct output *output, int *fd)
{
	struct object *o = object_of(output);
	const char *dir = secure_getenv("TMPDIR");
	cleanup_free char *name = NULL;

	if (!dir || !*dir)
		dir = "/tmp";
	*fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (*fd >= 0)
		return 0;
	if (text_print(&name, "%s/beton-XXXXXX", dir))
		return failed(o, "cannot write a temporary file", ENOMEM);
	*fd = mkostemp(name, O_CLOEXEC);
	if (*fd >= 0)
		unlink(name);
	else
		log_error(o->setup.log,
			  "%s: cannot write a temporary file in %s: %s; set "
			  "TMPDIR to a directory with room",
			  name_of(o), dir, strerror(errno));
	return *fd < 0 ? -errno : 0;
}

static int refuse_object(const struct object *o)
{
	log_error(o->setup.log,
		  "%s: cannot write it: an object that is no dataset has this "
		  "name; choose another name, or remove it",
		  name_of(o));
	return -EEXIST;
}

/* Only a dataset replaces a dataset, by the rule of fs/base/files/place.h. */
static bool may_be_replaced(const struct store_request *r)
{
	static const char version[BEGIN_SIZE] = { 2, 0 };
	static const char zeros[BEGIN_SIZE];

	if (r->answer.status == 416 || !r->text_size)
		return true;
	if (r->text_size < BEGIN_SIZE)
		return !r->text[0];
	return !memcmp(r->text, version, BEGIN_SIZE) ||
	       !memcmp(r->text, zeros, BEGIN_SIZE);
}

/* Returns whether the object may still be written, although it cannot be read:
   rights to write alone, and URLs that are signed for PUT. */
static bool is_unknown(const struct object *o, int error)
{
	return error == -EACCES || (!store_has_parts(o->store) &&
				    (error == -ENOTSUP || error == -EINVAL));
}

/* Returns a request for the first bytes of an object, if there is one. */
static struct store_request look_at(const struct object *o, uint64_t retry_ms)
{
	return (struct store_request){
		.method = NET_GET,
		.headers = { "range: bytes=0-1" },
		.begins = true,
		.retry_ms = retry_ms,
		.poll = o->setup.poll,
		.arg = o->setup.arg,
	};
}

/* Looks at what has the name now. */
static int check_object(struct object *o)
{
	struct store_request r = look_at(o, CHECK_RETRY_MS);
	int error = store_send(o->store, &r);

	o->is_new = error == -ENOENT && strcmp(r.code, "NoSuchBucket");
	if (!error || r.answer.status == 416) {
		snprintf(o->etag, sizeof(o->etag), "%s", r.answer.etag);
		error = may_be_replaced(&r) ? 0 : refuse_object(o);
	} else if (o->is_new || is_unknown(o, error)) {
		error = 0;
	} else {
		store_failed(o->store, &r, "cannot write it", error);
	}
	store_request_fini(&r);
	return error;
}

static int open_store(const char *url, const struct source_options *given,
		      struct log *log, struct store **out)
{
	struct source_options own = { .net = NULL };
	int r = given ? 0 : source_options_read(NULL, log, &own);
	const struct source_options *o = given ? given : &own;
	const struct store_options options = {
		.net = o->net,
		.retry_ms = o->retry_ms,
		.header = o->header,
		.profile = o->profile,
		.region = o->region,
		.endpoint = o->endpoint,
		.no_sign = o->no_sign,
	};

	r = r ? r : store_open(url, &options, log, out);
	source_options_fini(&own);
	return r;
}

static int open_object(struct object *o)
{
	int r = open_store(o->setup.path, o->setup.options, o->setup.log,
			   &o->store);

	r = r ? r : check_object(o);
	if (!r && o->setup.sums)
		r = sums_failed(o, sums_new(&o->sums));
	r = r ? r : open_scratch(&o->output, &o->fd);
	return r ? r
		 : outfile_open_to(o->fd, name_of(o), o->setup.log, &o->front);
}

static void close_object(struct output *output)
{
	struct object *o = object_of(output);

	multipart_close(o->upload);
	sums_free(o->sums);
	outfile_abort(&o->front);
	if (o->fd >= 0)
		close(o->fd);
	store_close(o->store);
	free(o);
}

static int open_url(const struct output_setup *setup, struct output **out)
{
	struct object *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return log_no_memory(setup->log, NULL);
	o->output.ops = &output_url;
	o->setup = *setup;
	o->fd = -1;
	o->body = UINT64_MAX;
	r = open_object(o);
	if (r)
		close_object(&o->output);
	else
		*out = &o->output;
	return r;
}

/* --- bytes --------------------------------------------------------------- */

static int poll_owner(void *arg)
{
	const struct object *o = arg;

	return o->setup.poll ? o->setup.poll(o->setup.arg) : 0;
}

static int open_upload(struct object *o, uint64_t front)
{
	const bool equal =
		!store_has_parts(o->store) || store_has_equal_parts(o->store);
	const struct multipart_setup setup = {
		.store = o->store,
		.log = o->setup.log,
		.front = front,
		.poll = poll_owner,
		.arg = o,
		.equal = equal,
	};

	return multipart_open(&setup, &o->upload);
}

static int set_body(struct output *output, uint64_t at)
{
	struct object *o = object_of(output);

	if (!store_has_parts(o->store) || store_has_equal_parts(o->store))
		return open_upload(o, 0);
	o->body = o->end = o->front_size = at;
	return open_upload(o, at);
}

static int add_zeros(struct object *o, uint64_t size)
{
	static const uint8_t zeros[SUMS_BLOCK];
	int r = 0;

	for (uint64_t n; size && !r; size -= n) {
		n = min_u64(size, sizeof(zeros));
		r = sums_add(o->sums, zeros, n);
	}
	return r;
}

/* Appends bytes to the body; NULL: zeros. */
static int append(struct object *o, const void *bytes, uint64_t size)
{
	int r = 0;

	if (o->sums)
		r = bytes ? sums_add(o->sums, bytes, size) : add_zeros(o, size);
	o->end += size;
	return r ? sums_failed(o, r) : multipart_append(o->upload, bytes, size);
}

static int write_bytes(struct output *output, const void *bytes, size_t size,
		       uint64_t off)
{
	struct object *o = object_of(output);
	int r;

	if (off < o->body)
		return outfile_write(o->front, bytes, size, off);
	r = append(o, NULL, off - o->end);
	return r ? r : append(o, bytes, size);
}

static int read_bytes(struct output *output, void *bytes, size_t size,
		      uint64_t off)
{
	return outfile_read(object_of(output)->front, bytes, size, off);
}

static int64_t copy(struct output *output, int fd, uint64_t from, uint64_t size,
		    uint64_t off)
{
	struct object *o = object_of(output);

	return spools(o) ? outfile_copy(o->front, fd, from, size, off) : 0;
}

/* The body has no offset before it is complete: the front becomes shorter. */
static int move_down(struct output *output, uint64_t from, uint64_t to,
		     uint64_t size)
{
	struct object *o = object_of(output);

	if (spools(o))
		return outfile_move_down(o->front, from, to, size);
	o->end -= from - to;
	o->body = o->front_size = to;
	return outfile_resize(o->front, to);
}

static int resize(struct output *output, uint64_t size)
{
	struct object *o = object_of(output);

	if (!spools(o) && size >= o->body)
		return write_bytes(output, NULL, 0, size);
	o->front_size = size;
	return outfile_resize(o->front, size);
}

static void expect(struct output *output, const struct stat *old)
{
	(void)old;
	object_of(output)->expects = true;
}

/* --- the end ------------------------------------------------------------- */

static void report(const struct object *o, const struct multipart_result *r)
{
	char parts[64] = "";

	if (r->parts)
		snprintf(parts, sizeof(parts), " in %u parts", r->parts);
	log_info(o->setup.log, "%s: uploaded %" PRIu64 " bytes%s%s%s%s",
		 name_of(o), r->size, parts, *r->etag ? ", ETag " : "", r->etag,
		 r->repeated ? ", some requests were repeated" : "");
}

/* Returns whether there is an object, which may be read. */
static bool exists(const struct object *o, const char *url)
{
	struct store_request r = look_at(o, SUMS_RETRY_MS);
	struct store *store;
	bool is;

	if (open_store(url, o->setup.options, o->setup.log, &store))
		return false;
	is = !store_send(store, &r) || r.answer.status == 416;
	store_request_fini(&r);
	store_close(store);
	return is;
}

/* The checksums of the object that was replaced are wrong for the new one. */
static void warn_of_sums(const struct object *o)
{
	cleanup_free char *side = url_sibling(o->setup.path, ".sums");
	cleanup_free char *shown = side ? url_visible(side) : NULL;

	if (shown && exists(o, side))
		log_warning(o->setup.log,
			    "%s: contains the checksums of the replaced "
			    "object: write them again, or delete it",
			    shown);
}

/* Makes the sums of the front, and joins those of the body. */
static int make_sums(struct object *o)
{
	cleanup_free uint8_t *block = malloc(SUMS_BLOCK);
	struct sums *all = o->setup.sums;
	int r = block ? 0 : -ENOMEM;

	for (uint64_t at = 0, n; at < o->front_size && !r; at += n) {
		n = min_u64(o->front_size - at, SUMS_BLOCK);
		r = outfile_read(o->front, block, n, at);
		if (r)
			return r;
		r = sums_add(all, block, n);
	}
	return sums_failed(o, r ? r : sums_join(all, o->sums));
}

static int publish(struct output *output)
{
	struct object *o = object_of(output);
	struct multipart_result result;
	struct stat st;
	int r;

	if (spools(o) && !fstat(o->fd, &st))
		o->front_size = (uint64_t)st.st_size;
	r = outfile_resize(o->front, o->front_size);
	if (!r && o->sums)
		r = make_sums(o);
	r = r ? r
	      : multipart_expect(o->upload, o->is_new,
				 o->expects && *o->etag ? o->etag : NULL);
	r = r ? r : multipart_finish(o->upload, o->fd, o->front_size, &result);
	if (r)
		return r;
	report(o, &result);
	if (!o->is_new && !o->sums)
		warn_of_sums(o);
	return 0;
}

int output_url_save(const struct output_setup *setup, const void *bytes,
		    size_t size)
{
	struct store *store = NULL;
	int r = open_store(setup->path, setup->options, setup->log, &store);
	struct store_request request = {
		.method = NET_PUT,
		.body = bytes,
		.body_size = size,
		.poll = setup->poll,
		.arg = setup->arg,
	};

	if (r)
		return r;
	request.headers[0] = store_whole_header(store);
	r = store_send(store, &request);
	if (r)
		store_failed(store, &request, "cannot upload it", r);
	store_request_fini(&request);
	store_close(store);
	return r;
}

const struct output_ops output_url = {
	.name = "url",
	.takes = url_is,
	.open = open_url,
	.body = set_body,
	.write = write_bytes,
	.read = read_bytes,
	.copy = copy,
	.scratch = open_scratch,
	.move_down = move_down,
	.resize = resize,
	.expect = expect,
	.publish = publish,
	.close = close_object,
};
