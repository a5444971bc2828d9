/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's functions, and the messages if there is no driver. */
#include "tests/unit/gpu.h"

enum { SIZE = 10000 };

static struct gpu gpu;
static const struct standin *standin;

static struct cuda *opened(void)
{
	struct cuda *cuda = NULL;

	gpu_clear_log(&gpu);
	CHECK(!cuda_open(0, &gpu.log, &cuda));
	CHECK(!gpu.lines);
	return cuda;
}

/* One line, which has all of these words; and nothing is left. */
static void check_refused(int device, int error, const char *const *words)
{
	struct cuda *cuda = NULL;

	gpu_clear_log(&gpu);
	CHECK(cuda_open(device, &gpu.log, &cuda) == error);
	CHECK(!cuda && gpu.lines == 1);
	for (; *words; words++)
		CHECK(strstr(gpu.logged, *words));
	CHECK(!standin || !standin->living());
}

#define REFUSED(device, error, ...)                                            \
	check_refused(device, error, (const char *[]){ __VA_ARGS__, NULL })

static void test_no_driver(void)
{
	char *before = getenv("BETON_CUDA_LIBRARY");
	char path[PATH_MAX] = "";

	snprintf(path, sizeof(path), "%s", before ? before : "");
	setenv("BETON_CUDA_LIBRARY", "/proc/nonexistent/libcuda.so", 1);
	REFUSED(0, -ENOSYS, "no CUDA driver", "/proc/nonexistent", "install");
	/* This is a library, but not the driver. */
	setenv("BETON_CUDA_LIBRARY", "libm.so.6", 1);
	REFUSED(0, -ENOSYS, "libm.so.6", "has no cuInit", "11.0");
	if (*path)
		setenv("BETON_CUDA_LIBRARY", path, 1);
	else
		unsetenv("BETON_CUDA_LIBRARY");
}

static void test_refusals(void)
{
	if (!gpu_has_standin(&gpu, "drivers and devices that will not do"))
		return;
	standin->reset(1);
	standin->set_devices(1, 10020);
	REFUSED(0, -ENOSYS, "CUDA 10.2", "11.0", "update");
	standin->set_devices(0, 12040);
	REFUSED(0, -ENODEV, "start the driver", "CUDA_VISIBLE_DEVICES");
	standin->set_devices(2, 11000);
	REFUSED(2, -ENODEV, "no CUDA device 2", "sees 2");
	REFUSED(-1, -ENODEV, "no CUDA device -1");
	standin->reset(1);
	standin->fail("cuInit", 1, 803);
	REFUSED(0, -ENODEV, "reboot", "803");
	standin->fail("cuInit", 1, 3);
	REFUSED(0, -ENODEV, "fork");
	standin->fail("cuDevicePrimaryCtxRetain", 1, 46);
	REFUSED(0, -EBUSY, "context", "nvidia-smi");
	standin->fail("cuDevicePrimaryCtxRetain", 1, 2);
	REFUSED(0, -ENOMEM, "context");
	standin->fail("cuDeviceGetCount", 1, 999);
	REFUSED(0, -EIO, "count devices");
	standin->reset(2);
}

static void test_facts(void)
{
	struct cuda *cuda = opened();
	const struct cuda_facts *f = cuda_facts(cuda);

	CHECK(f->device == 0 && *f->name && f->memory && f->driver >= 11000);
	CHECK(f->major > 0 && f->multiprocessors > 0 && f->copy_engines > 0);
	CHECK(strlen(f->pci) > 6);
	if (standin) {
		CHECK(!strcmp(f->name, "Stand-in 0") && f->major == 9);
		CHECK(!strcmp(f->pci, "ffff:ff:00.0"));
		CHECK(f->coherent == -1 && f->link_width == -1 &&
		      f->numa_node == -1 && !*f->link_speed);
	}
	cuda_range_push(cuda, "a range");
	cuda_range_pop(cuda);
	cuda_range_push(NULL, "none");
	cuda_range_pop(NULL);
	cuda_close(cuda);
	cuda_close(NULL);
}

/* Buffers and streams that all later tests use. */
struct work {
	struct cuda *cuda;
	struct cuda_stream *streams[2];
	struct cuda_event *event;
	uint8_t *from, *to; /* pinned */
	uint64_t device;
};

static struct work work_begin(void)
{
	struct work w = { .cuda = opened() };
	void *p;

	for (size_t i = 0; i < 2; i++)
		CHECK(!cuda_stream_create(w.cuda, &w.streams[i]));
	CHECK(!cuda_event_create(w.cuda, &w.event));
	CHECK(!cuda_host_alloc(w.cuda, SIZE, &p));
	w.from = p;
	CHECK(!cuda_host_alloc(w.cuda, SIZE, &p));
	w.to = p;
	CHECK(!cuda_device_alloc(w.cuda, SIZE, &w.device));
	CHECK((uintptr_t)w.from % 64 == 0 && w.device % 256 == 0);
	for (size_t i = 0; i < SIZE; i++)
		w.from[i] = (uint8_t)(i * 7 + i / 256);
	memset(w.to, 0, SIZE);
	return w;
}

static void work_close(struct work *w)
{
	cuda_device_free(w->cuda, w->device);
	cuda_host_free(w->cuda, w->to);
	cuda_host_free(w->cuda, w->from);
	cuda_event_destroy(w->cuda, w->event);
	for (size_t i = 0; i < 2; i++)
		cuda_stream_destroy(w->cuda, w->streams[i]);
	cuda_close(w->cuda);
}

static void work_end(struct work *w)
{
	work_close(w);
	CHECK(!standin || !standin->living());
}

/* There by one stream and back by another. */
static void test_copies(void)
{
	struct work w = work_begin();

	CHECK(!cuda_event_query(w.cuda, w.event));
	CHECK(!cuda_event_synchronize(w.cuda, w.event));
	CHECK(!cuda_copy_to_device(w.cuda, w.device, w.from, SIZE,
				   w.streams[0]));
	CHECK(!cuda_event_record(w.cuda, w.event, w.streams[0]));
	CHECK(!cuda_stream_wait_event(w.cuda, w.streams[1], w.event));
	CHECK(!cuda_copy_to_host(w.cuda, w.to, w.device, SIZE, w.streams[1]));
	CHECK(!cuda_event_record(w.cuda, w.event, w.streams[1]));
	while (cuda_event_query(w.cuda, w.event) == -EAGAIN)
		usleep(100);
	CHECK(!cuda_event_synchronize(w.cuda, w.event));
	CHECK(!memcmp(w.from, w.to, SIZE));
	CHECK(!gpu.lines);
	work_end(&w);
}

static void test_kernels(void)
{
	struct work w = work_begin();
	struct cuda_module *module;
	struct cuda_kernel *kernel;
	int r = gpu_load_kernel(&gpu, w.cuda, &module, &kernel);

	if (r == -ENOSYS) {
		printf("skipped, there is no NVRTC: kernels\n");
		work_end(&w);
		return;
	}
	CHECK(!r);
	CHECK(!cuda_copy_to_device(w.cuda, w.device, w.from, SIZE,
				   w.streams[0]));
	CHECK(!gpu_launch_add_one(w.cuda, kernel, w.device, SIZE,
				  w.streams[0]));
	CHECK(!cuda_copy_to_host(w.cuda, w.to, w.device, SIZE, w.streams[0]));
	CHECK(!cuda_stream_synchronize(w.cuda, w.streams[0]));
	for (size_t i = 0; i < SIZE; i++)
		CHECK(w.to[i] == (uint8_t)(w.from[i] + 1));
	gpu_clear_log(&gpu);
	CHECK(cuda_module_kernel(w.cuda, module, "none_such", &kernel) ==
	      -ENOENT);
	CHECK(gpu.lines == 1 && strstr(gpu.logged, "none_such"));
	cuda_module_unload(w.cuda, module);
	CHECK(cuda_module_load(w.cuda, "no image", &module) == -ENOEXEC);
	work_end(&w);
}

/* The user's context stays current, and is not needed. */
static void test_context(void)
{
	int (*push)(void *) = NULL;
	int (*pop)(void **) = NULL;
	int (*retain)(void **, int) = NULL;
	int (*release)(int) = NULL;
	struct work w;
	void *context, *popped;

	if (!gpu_has_standin(&gpu, "contexts of the user"))
		return;
	standin->reset(3);
	standin->set_devices(2, 12040);
	*(void **)&push = dlsym(gpu.library, "cuCtxPushCurrent_v2");
	*(void **)&pop = dlsym(gpu.library, "cuCtxPopCurrent_v2");
	*(void **)&retain = dlsym(gpu.library, "cuDevicePrimaryCtxRetain");
	*(void **)&release = dlsym(gpu.library, "cuDevicePrimaryCtxRelease_v2");
	w = work_begin();
	CHECK(!standin->pushed());
	CHECK(!retain(&context, 1) && !push(context));
	CHECK(!cuda_copy_to_device(w.cuda, w.device, w.from, SIZE,
				   w.streams[0]));
	CHECK(!cuda_stream_synchronize(w.cuda, w.streams[0]));
	CHECK(standin->pushed() == 1);
	CHECK(!pop(&popped) && popped == context);
	CHECK(!release(1));
	work_end(&w);
}

/* While another part of the program captures a graph, in the mode that forbids
   most, nothing is refused and nothing disturbs the capture. The thread keeps
   its own mode. */
static void test_captures(void)
{
	static const int modes[] = { GPU_MODE_GLOBAL, GPU_MODE_THREAD,
				     GPU_MODE_RELAXED };
	struct gpu_capture c;
	struct work w, during;

	if (standin)
		standin->reset(3);
	w = work_begin();
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		CHECK(gpu_exchange_mode(&gpu, modes[i]) == GPU_MODE_GLOBAL);
		gpu_capture_begin(&gpu, w.streams[1], &c);
		during = work_begin();
		CHECK(!cuda_copy_to_device(during.cuda, during.device,
					   during.from, SIZE,
					   during.streams[0]));
		CHECK(!cuda_event_record(during.cuda, during.event,
					 during.streams[0]));
		while (cuda_event_query(during.cuda, during.event) == -EAGAIN)
			usleep(100);
		CHECK(!cuda_event_synchronize(during.cuda, during.event));
		CHECK(!cuda_stream_synchronize(during.cuda, during.streams[0]));
		cuda_device_free(during.cuda, during.device);
		during.device = 0;
		CHECK(!gpu_capture_end(&c));
		work_close(&during);
		CHECK(gpu_exchange_mode(&gpu, GPU_MODE_GLOBAL) == modes[i]);
	}
	CHECK(!gpu.lines);
	work_end(&w);
}

/* --- errors --- */

static void test_errors(void)
{
	static const struct {
		int code, error;
		enum beton_log_level level;
	} rows[] = {
		{ 1, -EINVAL, BETON_LOG_ERROR },
		{ 2, -ENOMEM, BETON_LOG_WARNING },
		{ 400, -EINVAL, BETON_LOG_ERROR },
		{ 801, -EOPNOTSUPP, BETON_LOG_ERROR },
		{ 900, -EBUSY, BETON_LOG_ERROR },
		{ 901, -EBUSY, BETON_LOG_ERROR },
		{ 907, -EBUSY, BETON_LOG_ERROR },
		{ 12345, -EIO, BETON_LOG_ERROR },
	};
	struct work w;
	uint64_t address;

	if (!gpu_has_standin(&gpu, "errors of the driver"))
		return;
	standin->reset(4);
	w = work_begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		gpu_clear_log(&gpu);
		standin->fail("cuMemAlloc_v2", 1, rows[i].code);
		CHECK(cuda_device_alloc(w.cuda, 4711, &address) ==
		      rows[i].error);
		CHECK(gpu.lines == 1 && gpu.level == rows[i].level);
		CHECK(strstr(gpu.logged, "4711 bytes"));
		CHECK(!cuda_is_lost(w.cuda));
		CHECK(!cuda_stream_synchronize(w.cuda, w.streams[0]));
		CHECK(!standin->pushed());
	}
	work_end(&w);
}

/* An error that the device does not recover from is logged once. After that,
   the loader calls the driver only to release objects. */
static void test_loss(void)
{
	static const int codes[] = { 214, 700, 719, 999 };
	struct work w;
	uint64_t address;

	if (!gpu_has_standin(&gpu, "a lost device"))
		return;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		standin->reset(5 + i);
		w = work_begin();
		standin->fail("cuEventSynchronize", 1, codes[i]);
		CHECK(cuda_event_synchronize(w.cuda, w.event) == -EIO);
		CHECK(gpu.lines == 1 && strstr(gpu.logged, "nothing more"));
		CHECK(cuda_is_lost(w.cuda));
		CHECK(cuda_event_query(w.cuda, w.event) == -EIO);
		CHECK(cuda_device_alloc(w.cuda, 1, &address) == -EIO);
		CHECK(cuda_copy_to_device(w.cuda, w.device, w.from, SIZE,
					  w.streams[0]) == -EIO);
		CHECK(standin->calls("cuEventQuery") == 0);
		CHECK(standin->calls("cuMemAlloc_v2") == 1);
		CHECK(standin->calls("cuMemcpyHtoDAsync_v2") == 0);
		CHECK(!standin->pushed());
		work_end(&w);
		CHECK(gpu.lines == 1);
	}
	standin->reset(1);
}

/* --- the stand-in's own checks; each can fail --- */

static void expect_violation(const char *text)
{
	CHECK(standin->violations() > 0);
	CHECK(strstr(standin->violation(), text));
	standin->reset(9);
	standin->expect(true);
}

static void test_standin_orders(struct work *w)
{
	/* Read while it is written. */
	CHECK(!cuda_copy_to_device(w->cuda, w->device, w->from, SIZE,
				   w->streams[0]));
	CHECK(!cuda_copy_to_host(w->cuda, w->to, w->device, SIZE,
				 w->streams[1]));
	expect_violation("a read of");
	CHECK(!cuda_stream_synchronize(w->cuda, w->streams[0]));
	CHECK(!cuda_stream_synchronize(w->cuda, w->streams[1]));
	CHECK(!standin->violations());
	/* Written while it is read, which was in order. */
	CHECK(!cuda_copy_to_host(w->cuda, w->to, w->device, SIZE,
				 w->streams[1]));
	CHECK(!cuda_copy_to_device(w->cuda, w->device + SIZE - 1, w->from, 1,
				   w->streams[0]));
	expect_violation("a write of");
	/* It is freed before it was waited for; tear-down needs it again. */
	cuda_device_free(w->cuda, w->device);
	expect_violation("is freed while");
	CHECK(!cuda_stream_synchronize(w->cuda, w->streams[0]));
	CHECK(!cuda_stream_synchronize(w->cuda, w->streams[1]));
	CHECK(!cuda_device_alloc(w->cuda, SIZE, &w->device));
}

static void test_standin_memory(struct work *w)
{
	uint8_t *plain = calloc(1, SIZE);

	CHECK(!cuda_copy_to_device(w->cuda, w->device, plain, SIZE,
				   w->streams[0]));
	expect_violation("is not pinned");
	CHECK(!cuda_stream_synchronize(w->cuda, w->streams[0]));
	free(plain);
	CHECK(cuda_copy_to_device(w->cuda, w->device + 1, w->from, SIZE,
				  w->streams[0]) == -EINVAL);
	expect_violation("not all of a device");
	/* Bytes that change on the way. */
	standin->pause(true);
	CHECK(!cuda_copy_to_device(w->cuda, w->device, w->from, SIZE,
				   w->streams[0]));
	w->from[SIZE / 2]++;
	standin->pause(false);
	CHECK(!cuda_stream_synchronize(w->cuda, w->streams[0]));
	expect_violation("changed before");
}

static void test_standin_streams(struct work *w)
{
	int (*query)(void *) = NULL;

	CHECK(!cuda_copy_to_device(w->cuda, w->device, w->from, SIZE,
				   CUDA_STREAM_LEGACY));
	expect_violation("on a default stream");
	CHECK(!cuda_stream_synchronize(w->cuda, NULL));
	standin->pause(true);
	CHECK(!cuda_event_record(w->cuda, w->event, w->streams[0]));
	CHECK(!cuda_event_synchronize(w->cuda, w->event));
	expect_violation("waits for a device that is paused");
	cuda_stream_destroy(w->cuda, w->streams[1]);
	CHECK(cuda_stream_synchronize(w->cuda, w->streams[1]) == -EINVAL);
	expect_violation("there is no stream");
	CHECK(!cuda_stream_create(w->cuda, &w->streams[1]));
	*(void **)&query = dlsym(gpu.library, "cuEventQuery");
	CHECK(query(w->event) == 201);
	expect_violation("without a current context");
	CHECK(standin->living() == 7);
}

/* A call of the program's own, and of a thread that the capture is none of. */
static void test_standin_captures(struct work *w)
{
	int (*query)(void *) = NULL;
	struct gpu_capture c;

	*(void **)&query = dlsym(gpu.library, "cuEventQuery");
	gpu_capture_begin(&gpu, w->streams[1], &c);
	CHECK(query(w->event) == 900);
	CHECK(gpu_capture_end(&c) == 901);
	gpu_capture_begin(&gpu, w->streams[1], &c);
	CHECK(gpu_exchange_mode(&gpu, GPU_MODE_RELAXED) == GPU_MODE_GLOBAL);
	CHECK(!query(w->event));
	CHECK(gpu_exchange_mode(&gpu, GPU_MODE_GLOBAL) == GPU_MODE_RELAXED);
	CHECK(!gpu_capture_end(&c));
}

static void test_standin(void)
{
	struct work w;

	if (!gpu_has_standin(&gpu, "what the stand-in watches"))
		return;
	standin->reset(9);
	w = work_begin();
	standin->expect(true);
	test_standin_orders(&w);
	test_standin_memory(&w);
	test_standin_streams(&w);
	test_standin_captures(&w);
	CHECK(!standin->violations());
	standin->expect(false);
	work_end(&w);
}

/* --- the compiler --- */

static void test_no_compiler(void)
{
	struct cuda_facts facts = { .driver = 12040, .major = 9 };
	struct nvrtc *compiler = NULL;
	char *before = getenv("BETON_NVRTC_LIBRARY");
	char path[PATH_MAX] = "";

	snprintf(path, sizeof(path), "%s", before ? before : "");
	setenv("BETON_NVRTC_LIBRARY", "/proc/nonexistent", 1);
	gpu_clear_log(&gpu);
	CHECK(nvrtc_open(&facts, &gpu.log, &compiler) == -ENOSYS);
	CHECK(!compiler && gpu.lines == 1);
	CHECK(strstr(gpu.logged, "nvidia-cuda-nvrtc-cu12"));
	if (*path)
		setenv("BETON_NVRTC_LIBRARY", path, 1);
	else
		unsetenv("BETON_NVRTC_LIBRARY");
}

static const char two_kernels[] =
	"struct size { unsigned x, y; };\n"
	"extern \"C\" __global__ void __launch_bounds__(64)\n"
	"spread(const unsigned char *from, float *to, struct size s, float by)\n"
	"{\n"
	"	unsigned x = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"	unsigned y = blockIdx.y * blockDim.y + threadIdx.y;\n"
	"	if (x < s.x && y < s.y)\n"
	"		to[y * s.x + x] = __fmul_rn((float)from[x], by) + (float)y + ADDED;\n"
	"}\n"
	"extern \"C\" __global__ void nothing(void) {}\n";

/* A kernel that was compiled, and all of its threads. */
static void run_compiled(struct work *w, const char *image)
{
	enum { X = 50, Y = 37 };
	struct {
		unsigned x, y;
	} size = { X, Y };
	float by = 0.5f, *to = (float *)w->to;
	struct cuda_module *module;
	struct cuda_launch l = { .grid = { 7, 10 }, .block = { 8, 4 } };
	uint64_t out;

	CHECK(X * Y * sizeof(*to) <= SIZE);
	CHECK(!cuda_device_alloc(w->cuda, SIZE, &out));
	l.arguments = (void *[]){ &w->device, &out, &size, &by };
	CHECK(!cuda_module_load(w->cuda, image, &module));
	CHECK(!cuda_module_kernel(w->cuda, module, "spread", &l.kernel));
	CHECK(!cuda_copy_to_device(w->cuda, w->device, w->from, SIZE,
				   w->streams[0]));
	CHECK(!cuda_launch(w->cuda, &l, w->streams[0]));
	CHECK(!cuda_copy_to_host(w->cuda, to, out, X * Y * sizeof(*to),
				 w->streams[0]));
	CHECK(!cuda_stream_synchronize(w->cuda, w->streams[0]));
	for (unsigned i = 0; i < X * Y; i++)
		CHECK(to[i] == (float)w->from[i % X] * by + (float)(i / X) + 3);
	cuda_module_unload(w->cuda, module);
	cuda_device_free(w->cuda, out);
}

static void test_compiler(void)
{
	static const char *const options[] = { "-DADDED=3" };
	struct nvrtc *compiler;
	struct cuda_image image = { NULL, 0 };
	struct work w = work_begin();
	int r = nvrtc_open(cuda_facts(w.cuda), &gpu.log, &compiler);

	if (r) {
		printf("skipped, there is no NVRTC: compiling\n");
		work_end(&w);
		return;
	}
	CHECK(!strncmp(nvrtc_name(compiler), "nvrtc ", 6));
	r = nvrtc_run(compiler, "kernels.cu", two_kernels, options, 1, &image);
	CHECK(!r && image.size);
	run_compiled(&w, image.bytes);
	free(image.bytes);
	gpu_clear_log(&gpu);
	CHECK(nvrtc_run(compiler, "bad.cu", "oops\n", NULL, 0, &image) ==
	      -EINVAL);
	CHECK(gpu.lines > 1);
	nvrtc_close(compiler);
	work_end(&w);
}

/* Which code is made for which device, and which compiler is passed over. */
static void test_architectures(void)
{
	static const struct {
		int driver, major, minor;
		const char *name; /* NULL: there is none */
	} rows[] = {
		{ 12040, 9, 0, "nvrtc 12.4 sm_90" },
		{ 13000, 8, 0, "nvrtc 12.4 sm_80" },
		{ 12040, 8, 9, "nvrtc 12.4 compute_80" },
		{ 12000, 12, 0, "nvrtc 12.4 compute_90" },
		{ 11080, 9, 0, NULL },
	};
	struct nvrtc *compiler;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cuda_facts f = { .driver = rows[i].driver,
					.major = rows[i].major,
					.minor = rows[i].minor };
		int r = nvrtc_open(&f, &gpu.log, &compiler);

		CHECK(r == (rows[i].name ? 0 : -ENOSYS));
		if (r)
			continue;
		CHECK(!strcmp(nvrtc_name(compiler), rows[i].name));
		nvrtc_close(compiler);
	}
}

static void test_compilers(void)
{
	if (!standin) {
		test_compiler();
		return;
	}
	gpu_find_standin(&gpu, "nvrtc");
	setenv("BETON_NVRTC_LIBRARY", gpu.path, 1);
	standin->reset(1);
	test_architectures();
	if (system("c++ --version >/dev/null 2>&1") == 0)
		test_compiler();
	else
		printf("skipped, there is no C++ compiler: compiling\n");
}

int main(void)
{
	gpu_begin(&gpu);
	standin = gpu.standin;
	test_no_driver();
	test_refusals();
	test_facts();
	test_copies();
	test_kernels();
	test_context();
	test_captures();
	test_errors();
	test_loss();
	test_standin();
	test_compilers();
	test_no_compiler();
	gpu_end(&gpu);
	return 0;
}
