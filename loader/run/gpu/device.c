/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/gpu/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/log.h"
#include "fs/base/util/name.h"
#include "loader/run/gpu/nvrtc.h"
#include "loader/run/jit/code_cache.h"
#include "loader/run/jit/emit_device.h"
#include "loader/run/transform/pipeline.h"

enum { CACHE_LIMIT = 64 << 20, PIECE = 4 << 20 };

/* Options that make the device round as the CPU does (beton-gpu(7)). */
static const char *const OPTIONS[] = {
	"-default-device", "--fmad=false",     "--ftz=false",
	"--prec-div=true", "--prec-sqrt=true",
};

/* A loaded text. */
struct device_code {
	struct device_code *next;
	char *text;
	struct cuda_module *module;
	struct cuda_kernel *kernel;
};

/* The output of this code. */
struct use {
	struct use *next;
	const struct pipeline *pipeline;
	size_t output;
	const struct device_code *code;
};

struct device {
	struct log *log;
	struct cuda *cuda;
	struct upload *upload;
	struct nvrtc *compiler;	    /* NULL until needed */
	struct code_cache *objects; /* as it is */
	struct device_code *codes;
	struct use *uses;
	pthread_mutex_t downloading; /* guards the next two */
	struct cuda_stream *stream;  /* NULL until something is downloaded */
	void *piece;		     /* as it is; pinned */
};

int device_open(int ordinal, uint64_t pinned, struct log *log,
		struct device **out)
{
	struct device *d = calloc(1, sizeof(*d));
	int r = d ? 0 : -ENOMEM;

	if (!r) {
		d->log = log;
		pthread_mutex_init(&d->downloading, NULL);
		r = cuda_open(ordinal, log, &d->cuda);
	}
	if (!r)
		r = upload_open(&(struct upload_options){ .cuda = d->cuda,
							  .pinned = pinned,
							  .log = log },
				&d->upload);
	if (r)
		device_close(d);
	else
		*out = d;
	return r;
}

void device_close(struct device *d)
{
	struct device_code *code, *next_code;
	struct use *use, *next_use;

	if (!d)
		return;
	upload_close(d->upload);
	cuda_stream_destroy(d->cuda, d->stream);
	if (d->piece)
		cuda_host_free(d->cuda, d->piece);
	pthread_mutex_destroy(&d->downloading);
	LL_FOREACH_SAFE(d->uses, use, next_use)
	{
		free(use);
	}
	LL_FOREACH_SAFE(d->codes, code, next_code)
	{
		cuda_module_unload(d->cuda, code->module);
		free(code->text);
		free(code);
	}
	nvrtc_close(d->compiler);
	code_cache_close(d->objects);
	cuda_close(d->cuda);
	free(d);
}

struct cuda *device_cuda(const struct device *d)
{
	return d->cuda;
}

struct upload *device_upload(const struct device *d)
{
	return d->upload;
}

struct cuda_kernel *device_kernel(const struct device *d,
				  const struct pipeline *p, size_t i)
{
	const struct use *use;

	LL_FOREACH(d->uses, use)
	{
		if (use->pipeline == p && use->output == i)
			return use->code->kernel;
	}
	return NULL;
}

static int prepare_download(struct device *d)
{
	int r = 0;

	if (!d->piece)
		r = cuda_host_alloc(d->cuda, PIECE, &d->piece);
	if (!r && !d->stream)
		r = cuda_stream_create(d->cuda, &d->stream);
	return r;
}

int device_download(struct device *d, uint64_t from, void *to, uint64_t size)
{
	uint8_t *out = to;
	int r;

	scoped_lock(&d->downloading);
	r = prepare_download(d);
	while (!r && size) {
		uint64_t n = min_u64(size, PIECE);

		r = cuda_copy_to_host(d->cuda, d->piece, from, n, d->stream);
		if (!r)
			r = cuda_stream_synchronize(d->cuda, d->stream);
		if (r)
			break;
		memcpy(out, d->piece, n);
		from += n;
		out += n;
		size -= n;
	}
	return r;
}

/* --- text -> kernel --- */

static int start_compiler(struct device *d)
{
	int r;

	if (d->compiler)
		return 0;
	r = nvrtc_open(cuda_facts(d->cuda), d->log, &d->compiler);
	if (!r)
		d->objects = code_cache_open("cuda", CACHE_LIMIT, d->log);
	return r;
}

/* The key of code: everything that it depends on. */
static char *make_key(const struct device *d, const char *text)
{
	char *key;

	if (text_print(&key, "%s\n%s %s %s %s %s\n%s", nvrtc_name(d->compiler),
		       OPTIONS[0], OPTIONS[1], OPTIONS[2], OPTIONS[3],
		       OPTIONS[4], text))
		return NULL;
	return key;
}

static int load_code(const struct device *d, const void *image,
		     struct device_code *code)
{
	int r = cuda_module_load(d->cuda, image, &code->module);

	if (r)
		return r;
	r = cuda_module_kernel(d->cuda, code->module, EMIT_DEVICE_NAME,
			       &code->kernel);
	if (r)
		cuda_module_unload(d->cuda, steal(code->module));
	return r;
}

static int compile(const struct device *d, const char *key,
		   struct device_code *code)
{
	struct cuda_image image = { 0 };
	int r = nvrtc_run(d->compiler, "pipeline", code->text, OPTIONS,
			  ARRAY_LEN(OPTIONS), &image);

	if (!r)
		r = load_code(d, image.bytes, code);
	if (!r)
		code_cache_store(d->objects, key, (const uint8_t *)image.bytes,
				 image.size);
	free(image.bytes);
	return r;
}

/* Cached code ends with a zero, as PTX must. */
static int load_kept(const struct device *d, const char *key,
		     struct device_code *code)
{
	uint8_t *bytes, *image;
	size_t size;
	int r = code_cache_load(d->objects, key, &bytes, &size);

	if (r)
		return r;
	image = realloc(bytes, size + 1);
	if (!image) {
		free(bytes);
		return -ENOMEM;
	}
	image[size] = '\0';
	r = load_code(d, image, code);
	free(image);
	return r;
}

static int make(struct device *d, struct device_code *code)
{
	cleanup_free char *key = NULL;
	int r = start_compiler(d);

	if (r)
		return r;
	key = make_key(d, code->text);
	if (!key)
		return -ENOMEM;
	if (!load_kept(d, key, code))
		return 0;
	r = compile(d, key, code);
	return r == -EINVAL ? -ENOSYS : r;
}

/* Becomes the owner of the text. */
static int find_code(struct device *d, char *text,
		     const struct device_code **out)
{
	struct device_code *code;
	int r;

	LL_FOREACH(d->codes, code)
	{
		if (!strcmp(code->text, text)) {
			free(text);
			*out = code;
			return 0;
		}
	}
	code = calloc(1, sizeof(*code));
	if (!code) {
		free(text);
		return -ENOMEM;
	}
	code->text = text;
	LL_PREPEND(d->codes, code);
	r = make(d, code);
	*out = code;
	return r;
}

static int add_use(struct device *d, const struct pipeline *p, size_t i)
{
	struct use *use = calloc(1, sizeof(*use));
	char *text = pipeline_rest(p, i);

	if (!use || !text) {
		free(use);
		free(text);
		return -ENOMEM;
	}
	use->pipeline = p;
	use->output = i;
	LL_PREPEND(d->uses, use);
	return find_code(d, text, &use->code);
}

int device_add(struct device *d, const struct pipeline *p)
{
	int r = 0;

	for (size_t i = 0; !r && i < pipeline_num_outputs(p); i++) {
		if (pipeline_has_rest(p, i))
			r = add_use(d, p, i);
	}
	return r;
}
