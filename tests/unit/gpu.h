/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests that need a GPU: the stand-in of tests/standin/cuda.h, or, with
 * BETON_CUDA_TEST_REAL=1, the machine's own driver and its first device. On a
 * real device the tests skip checks that need the stand-in, and print that.
 */
#ifndef TESTS_UNIT_GPU_H
#define TESTS_UNIT_GPU_H

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/log.h"
#include "loader/run/gpu/cuda.h"
#include "loader/run/gpu/nvrtc.h"
#include "tests/standin/cuda.h"
#include "tests/unit/t.h"

struct gpu {
	const struct standin *standin; /* NULL: a GPU */
	void *library;
	struct log log;
	char path[PATH_MAX]; /* of the stand-in */
	char logged[1100];   /* the last line */
	unsigned lines;	     /* since it was cleared */
	enum beton_log_level level;
};

static inline void gpu_note(void *arg, enum beton_log_level level,
			    const char *message)
{
	struct gpu *g = arg;

	snprintf(g->logged, sizeof(g->logged), "%s", message);
	g->lines++;
	g->level = level;
}

/* Beside the program. */
static inline void gpu_find_standin(struct gpu *g, const char *name)
{
	char self[PATH_MAX - 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	CHECK(n > 0);
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(g->path, sizeof(g->path), "%s/standin/%s.so", self, name);
}

static inline void gpu_begin(struct gpu *g)
{
	const char *real = getenv("BETON_CUDA_TEST_REAL");

	*g = (struct gpu){ .standin = NULL };
	log_init(&g->log, gpu_note, g);
	if (real && !strcmp(real, "1"))
		return;
	gpu_find_standin(g, "cuda");
	g->library = dlopen(g->path, RTLD_NOW | RTLD_LOCAL);
	CHECK(g->library);
	g->standin = dlsym(g->library, "standin");
	CHECK(g->standin);
	setenv("BETON_CUDA_LIBRARY", g->path, 1);
}

static inline void gpu_end(struct gpu *g)
{
	CHECK(!g->standin || !g->standin->living());
	log_fini(&g->log);
	if (g->library)
		dlclose(g->library);
}

static inline void gpu_clear_log(struct gpu *g)
{
	g->logged[0] = '\0';
	g->lines = 0;
}

/* Whether a test has the stand-in that it needs. */
static inline bool gpu_has_standin(const struct gpu *g, const char *test)
{
	if (!g->standin)
		printf("skipped, needs the stand-in: %s\n", test);
	return g->standin != NULL;
}

/* --- a capture of a graph, by another part of the program --- */

enum { GPU_MODE_GLOBAL, GPU_MODE_THREAD, GPU_MODE_RELAXED };

struct gpu_capture {
	void *driver;
	struct cuda_stream *stream;
	int (*pop)(void **context);
};

static inline void *gpu_function(struct gpu_capture *c, const char *name)
{
	void *function = dlsym(c->driver, name);

	CHECK(function);
	return function;
}

/* As torch.cuda.graph() begins one; the stream is captured from then on. */
static inline void gpu_capture_begin(const struct gpu *g,
				     struct cuda_stream *stream,
				     struct gpu_capture *c)
{
	int (*retain)(void **context, int device);
	int (*push)(void *context);
	int (*begin)(struct cuda_stream * stream, int mode);
	void *context;

	c->driver = dlopen(g->standin ? g->path : "libcuda.so.1", RTLD_NOW);
	CHECK(c->driver);
	c->stream = stream;
	*(void **)&retain = gpu_function(c, "cuDevicePrimaryCtxRetain");
	*(void **)&push = gpu_function(c, "cuCtxPushCurrent_v2");
	*(void **)&c->pop = gpu_function(c, "cuCtxPopCurrent_v2");
	*(void **)&begin = gpu_function(c, "cuStreamBeginCapture_v2");
	CHECK(!retain(&context, 0) && !push(context));
	CHECK(!begin(stream, GPU_MODE_GLOBAL));
}

/* Returns the driver's code; 0: nothing disturbed the capture. */
static inline int gpu_capture_end(struct gpu_capture *c)
{
	int (*end)(struct cuda_stream * stream, void **graph);
	int (*destroy)(void *graph);
	int (*release)(int device);
	void *graph = NULL, *context;
	int code;

	*(void **)&end = gpu_function(c, "cuStreamEndCapture");
	*(void **)&release = gpu_function(c, "cuDevicePrimaryCtxRelease_v2");
	code = end(c->stream, &graph);
	if (graph) {
		*(void **)&destroy = gpu_function(c, "cuGraphDestroy");
		CHECK(!destroy(graph));
	}
	CHECK(!c->pop(&context) && !release(0));
	dlclose(c->driver);
	return code;
}

/* Sets the mode of the calling thread, and returns the one before. */
static inline int gpu_exchange_mode(const struct gpu *g, int mode)
{
	struct gpu_capture c = { .driver = dlopen(g->standin ? g->path
							     : "libcuda.so.1",
						  RTLD_NOW) };
	int (*exchange)(int *mode);

	CHECK(c.driver);
	*(void **)&exchange =
		gpu_function(&c, "cuThreadExchangeStreamCaptureMode");
	CHECK(!exchange(&mode));
	dlclose(c.driver);
	return mode;
}

/* --- a kernel: adds one to every byte --- */

static const char gpu_text[] =
	"extern \"C\" __global__ void add_one(unsigned char *p, unsigned n)\n"
	"{\n"
	"	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"	if (i < n)\n"
	"		p[i]++;\n"
	"}\n";

static inline void gpu_add_one(void **arguments, const unsigned grid[3],
			       const unsigned block[3])
{
	uint8_t *p = *(uint8_t **)arguments[0];
	uint32_t n = *(uint32_t *)arguments[1];

	CHECK((uint64_t)grid[0] * block[0] >= n);
	for (uint32_t i = 0; i < n; i++)
		p[i]++;
}

/* By the compiler if there is a GPU; -ENOSYS: it has none. */
static inline int gpu_load_kernel(struct gpu *g, struct cuda *cuda,
				  struct cuda_module **module,
				  struct cuda_kernel **kernel)
{
	static const struct standin_parameter parameters[] = {
		{ sizeof(void *), true, false },
		{ sizeof(uint32_t), false, false },
	};
	static const struct standin_kernel add_one = {
		.run = gpu_add_one,
		.num_parameters = 2,
		.parameters = parameters,
	};
	struct cuda_image image = { NULL, 0 };
	struct nvrtc *compiler;
	int r = 0;

	if (g->standin) {
		g->standin->register_kernel("add_one", &add_one);
		r = cuda_module_load(cuda, STANDIN_REGISTERED, module);
	} else {
		r = nvrtc_open(cuda_facts(cuda), &g->log, &compiler);
		if (r)
			return r;
		CHECK(!nvrtc_run(compiler, "add_one", gpu_text, NULL, 0,
				 &image));
		r = cuda_module_load(cuda, image.bytes, module);
		free(image.bytes);
		nvrtc_close(compiler);
	}
	return r ? r : cuda_module_kernel(cuda, *module, "add_one", kernel);
}

static inline int gpu_launch_add_one(struct cuda *cuda,
				     struct cuda_kernel *kernel, uint64_t p,
				     uint32_t n, struct cuda_stream *stream)
{
	void *arguments[] = { &p, &n };
	struct cuda_launch launch = { .kernel = kernel,
				      .grid = { (n + 255) / 256 },
				      .block = { 256 },
				      .arguments = arguments };

	return cuda_launch(cuda, &launch, stream);
}

#endif
