/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/gpu/cuda.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/library.h"
#include "fs/base/util/log.h"

/* Constants of the driver's ABI. */
enum {
	CODE_OUT_OF_MEMORY = 2,
	CODE_NOT_READY = 600,
	HOST_ALLOC_PORTABLE = 1,
	STREAM_NON_BLOCKING = 1,
	CAPTURE_MODE_RELAXED = 2,
	EVENT_BLOCKING_SYNC = 1,
	EVENT_DISABLE_TIMING = 2,
	ATTRIBUTE_MULTIPROCESSORS = 16,
	ATTRIBUTE_INTEGRATED = 18,
	ATTRIBUTE_COPY_ENGINES = 40,
	ATTRIBUTE_MAJOR = 75,
	ATTRIBUTE_MINOR = 76,
	ATTRIBUTE_HOST_PAGE_TABLES = 100,
};

/* cuDevicePrimaryCtxRelease_v2 is the newest name that is used. */
enum { OLDEST_DRIVER = 11000 };

/* The driver's functions. A CUresult and a CUdevice are an int, a CUdeviceptr
   is a uint64_t, all else are pointers. */
struct driver {
	int (*init)(unsigned flags);
	int (*driver_version)(int *version);
	int (*error_name)(int code, const char **text);
	int (*error_string)(int code, const char **text);
	int (*device_count)(int *count);
	int (*device_get)(int *device, int ordinal);
	int (*device_name)(char *name, int size, int device);
	int (*device_attribute)(int *value, int attribute, int device);
	int (*device_memory)(size_t *bytes, int device);
	int (*device_pci)(char *id, int size, int device);
	int (*context_retain)(void **context, int device);
	int (*context_release)(int device);
	int (*context_push)(void *context);
	int (*context_pop)(void **context);
	int (*context_synchronize)(void);
	int (*exchange_mode)(int *mode);
	int (*host_alloc)(void **memory, size_t size, unsigned flags);
	int (*host_free)(void *memory);
	int (*device_alloc)(uint64_t *address, size_t size);
	int (*device_free)(uint64_t address);
	int (*stream_create)(struct cuda_stream **stream, unsigned flags);
	int (*stream_destroy)(struct cuda_stream *stream);
	int (*stream_synchronize)(struct cuda_stream *stream);
	int (*stream_wait_event)(struct cuda_stream *stream,
				 struct cuda_event *event, unsigned flags);
	int (*event_create)(struct cuda_event **event, unsigned flags);
	int (*event_destroy)(struct cuda_event *event);
	int (*event_record)(struct cuda_event *event,
			    struct cuda_stream *stream);
	int (*event_query)(struct cuda_event *event);
	int (*event_synchronize)(struct cuda_event *event);
	int (*copy_to_device)(uint64_t to, const void *from, size_t size,
			      struct cuda_stream *stream);
	int (*copy_to_host)(void *to, uint64_t from, size_t size,
			    struct cuda_stream *stream);
	int (*module_load)(struct cuda_module **module, const void *image,
			   unsigned num_options, int *options, void **values);
	int (*module_unload)(struct cuda_module *module);
	int (*module_kernel)(struct cuda_kernel **kernel,
			     struct cuda_module *module, const char *name);
	int (*launch)(struct cuda_kernel *kernel, unsigned grid_x,
		      unsigned grid_y, unsigned grid_z, unsigned block_x,
		      unsigned block_y, unsigned block_z, unsigned shared,
		      struct cuda_stream *stream, void **arguments,
		      void **extra);
};

#define ROW(member, name)                                                      \
	{                                                                      \
		name, offsetof(struct driver, member), true                    \
	}

static const struct library_symbol driver_symbols[] = {
	ROW(init, "cuInit"),
	ROW(driver_version, "cuDriverGetVersion"),
	ROW(error_name, "cuGetErrorName"),
	ROW(error_string, "cuGetErrorString"),
	ROW(device_count, "cuDeviceGetCount"),
	ROW(device_get, "cuDeviceGet"),
	ROW(device_name, "cuDeviceGetName"),
	ROW(device_attribute, "cuDeviceGetAttribute"),
	ROW(device_memory, "cuDeviceTotalMem_v2"),
	ROW(device_pci, "cuDeviceGetPCIBusId"),
	ROW(context_retain, "cuDevicePrimaryCtxRetain"),
	ROW(context_release, "cuDevicePrimaryCtxRelease_v2"),
	ROW(context_push, "cuCtxPushCurrent_v2"),
	ROW(context_pop, "cuCtxPopCurrent_v2"),
	ROW(context_synchronize, "cuCtxSynchronize"),
	ROW(exchange_mode, "cuThreadExchangeStreamCaptureMode"),
	ROW(host_alloc, "cuMemHostAlloc"),
	ROW(host_free, "cuMemFreeHost"),
	ROW(device_alloc, "cuMemAlloc_v2"),
	ROW(device_free, "cuMemFree_v2"),
	ROW(stream_create, "cuStreamCreate"),
	ROW(stream_destroy, "cuStreamDestroy_v2"),
	ROW(stream_synchronize, "cuStreamSynchronize"),
	ROW(stream_wait_event, "cuStreamWaitEvent"),
	ROW(event_create, "cuEventCreate"),
	ROW(event_destroy, "cuEventDestroy_v2"),
	ROW(event_record, "cuEventRecord"),
	ROW(event_query, "cuEventQuery"),
	ROW(event_synchronize, "cuEventSynchronize"),
	ROW(copy_to_device, "cuMemcpyHtoDAsync_v2"),
	ROW(copy_to_host, "cuMemcpyDtoHAsync_v2"),
	ROW(module_load, "cuModuleLoadDataEx"),
	ROW(module_unload, "cuModuleUnload"),
	ROW(module_kernel, "cuModuleGetFunction"),
	ROW(launch, "cuLaunchKernel"),
};

#undef ROW

/* The functions of NVTX. */
struct cuda_ranges {
	int (*push)(const char *text);
	int (*pop)(void);
};

static const struct library_symbol range_symbols[] = {
	{ "nvtxRangePushA", offsetof(struct cuda_ranges, push), true },
	{ "nvtxRangePop", offsetof(struct cuda_ranges, pop), true },
};

enum { FAILURE_SIZE = 600 };

struct cuda {
	struct log *log;
	void *library;
	struct driver driver;
	void *range_library; /* NULL: none */
	struct cuda_ranges ranges;
	int device;
	void *context; /* NULL: not retained */
	atomic_bool lost;
	struct cuda_facts facts;
	pthread_mutex_t lock; /* guards what is below */
	char failure[FAILURE_SIZE];
};

/* --- errors --- */

static const char capture_advice[] =
	"a CUDA graph is captured on this stream: take and release batches before or after the capture";

/* The errno values of the driver's codes; all others are -EIO. */
static const struct {
	int code;
	int error;
	bool lost;	    /* the device is lost */
	const char *advice; /* NULL: none */
} meanings[] = {
	{ 1, -EINVAL, false, NULL },
	{ CODE_OUT_OF_MEMORY, -ENOMEM, false, NULL },
	{ 3, -ENODEV, false,
	  "after a fork CUDA works only in processes that had not used it: start them afresh (Python: spawn)" },
	{ 4, -EIO, true, NULL },
	{ 34, -ENODEV, false,
	  "this libcuda is a stub for linking: let the driver's be found before it" },
	{ 46, -EBUSY, false,
	  "another process has the device for itself: see nvidia-smi" },
	{ 100, -ENODEV, false,
	  "see CUDA_VISIBLE_DEVICES, nvidia-smi, and in a container whether it was given a GPU" },
	{ 101, -ENODEV, false, "see CUDA_VISIBLE_DEVICES and nvidia-smi" },
	{ 200, -ENOEXEC, false, NULL },
	{ 209, -ENOEXEC, false, NULL },
	{ 214, -EIO, true, NULL },
	{ 218, -ENOEXEC, false, NULL },
	{ 220, -EIO, true, NULL },
	{ 222, -ENOEXEC, false,
	  "the CUDA compiler is newer than the driver: update the driver" },
	{ 300, -ENOEXEC, false, NULL },
	{ 400, -EINVAL, false,
	  "a stream must belong to this device's primary context" },
	{ 500, -ENOENT, false, NULL },
	{ CODE_NOT_READY, -EAGAIN, false, NULL },
	{ 700, -EIO, true, NULL },
	{ 702, -EIO, true, NULL },
	{ 709, -EIO, true, NULL },
	{ 710, -EIO, true, NULL },
	{ 714, -EIO, true, NULL },
	{ 715, -EIO, true, NULL },
	{ 716, -EIO, true, NULL },
	{ 717, -EIO, true, NULL },
	{ 718, -EIO, true, NULL },
	{ 719, -EIO, true, NULL },
	{ 721, -EIO, true, NULL },
	{ 800, -EPERM, false, NULL },
	{ 801, -EOPNOTSUPP, false, NULL },
	{ 802, -ENODEV, false, "see whether nvidia-fabricmanager runs" },
	{ 803, -ENODEV, false,
	  "the driver was updated under the running kernel module: reboot" },
	{ 804, -ENODEV, false,
	  "CUDA's compatibility libraries do not support this GPU: take them off LD_LIBRARY_PATH" },
	{ 810, -EIO, true, NULL },
	{ 900, -EBUSY, false, capture_advice },
	{ 901, -EBUSY, false, capture_advice },
	{ 902, -EBUSY, false, capture_advice },
	{ 903, -EBUSY, false, capture_advice },
	{ 904, -EBUSY, false, capture_advice },
	{ 905, -EBUSY, false, capture_advice },
	{ 906, -EBUSY, false, capture_advice },
	{ 907, -EBUSY, false, capture_advice },
	{ 999, -EIO, true, NULL },
};

static size_t meaning_of(int code)
{
	size_t i = 0;

	while (i < ARRAY_LEN(meanings) && meanings[i].code != code)
		i++;
	return i;
}

static const char *text_of(int (*get)(int, const char **), int code)
{
	const char *text = NULL;

	return get(code, &text) || !text ? "unknown" : text;
}

/* Keeps the reason of a failure. False: the device was lost before, so that
   this failure is only a consequence. The reason is there before any thread
   can see that the device is lost. */
static bool keep_failure(struct cuda *cuda, const char *why, bool lost)
{
	scoped_lock(&cuda->lock);
	if (atomic_load(&cuda->lost))
		return false;
	memcpy(cuda->failure, why, FAILURE_SIZE);
	atomic_store(&cuda->lost, lost);
	return true;
}

/* Logs the failure once, and returns -errno. */
static int complain(struct cuda *cuda, int code, const char *format,
		    va_list args)
{
	size_t m = meaning_of(code);
	bool known = m < ARRAY_LEN(meanings);
	const char *advice = known ? meanings[m].advice : NULL;
	int error = known ? meanings[m].error : -EIO;
	bool lost = known && meanings[m].lost;
	char what[200], why[FAILURE_SIZE];

	vsnprintf(what, sizeof(what), format, args);
	snprintf(why, sizeof(why), "CUDA device %d: cannot %s: %s (%s)%s%s%s",
		 cuda->device, what, text_of(cuda->driver.error_string, code),
		 text_of(cuda->driver.error_name, code), advice ? "; " : "",
		 advice ? advice : "",
		 lost ? "; nothing more can be done on it" : "");
	if (!keep_failure(cuda, why, lost))
		return -EIO;
	(error == -ENOMEM ? log_warning : log_error)(cuda->log, "%s", why);
	return error;
}

__attribute__((format(printf, 3, 4))) static int
check(struct cuda *cuda, int code, const char *format, ...)
{
	va_list args;
	int r;

	if (!code)
		return 0;
	va_start(args, format);
	r = complain(cuda, code, format, args);
	va_end(args);
	return r;
}

/* --- the context --- */

/* The state of the calling thread that a call changes and restores. */
struct visit {
	int capture_mode;
};

/*
 * Leaves the thread in relaxed mode: while the program captures a graph, in any
 * thread, the driver refuses calls that could wait for the captured work, and
 * the capture fails. This code waits for its own work alone.
 */
static void relax(struct cuda *cuda, struct visit *v)
{
	v->capture_mode = CAPTURE_MODE_RELAXED;
	cuda->driver.exchange_mode(&v->capture_mode);
}

static void restore(struct cuda *cuda, struct visit *v)
{
	cuda->driver.exchange_mode(&v->capture_mode);
}

/* Makes the context current, until leave(). */
static int enter(struct cuda *cuda, struct visit *v)
{
	int r;

	if (atomic_load(&cuda->lost))
		return -EIO;
	relax(cuda, v);
	r = check(cuda, cuda->driver.context_push(cuda->context),
		  "use its context");
	if (r)
		restore(cuda, v);
	return r;
}

/*
 * Enters to free something, which is tried on a lost device too. False: the
 * context could not be made current.
 */
static bool enter_to_end(struct cuda *cuda, struct visit *v)
{
	relax(cuda, v);
	if (!cuda->driver.context_push(cuda->context))
		return true;
	restore(cuda, v);
	return false;
}

/* Restores the previous context and mode, then calls check(). */
__attribute__((format(printf, 4, 5))) static int
leave(struct cuda *cuda, struct visit *v, int code, const char *format, ...)
{
	void *ours;
	va_list args;
	int r = 0;

	cuda->driver.context_pop(&ours);
	restore(cuda, v);
	if (!code)
		return 0;
	va_start(args, format);
	r = complain(cuda, code, format, args);
	va_end(args);
	return r;
}

/* Calls a function of the driver, `call`, with the context current. The format
   and its arguments describe the call in the log. */
#define CALL(cuda, call, ...)                                                  \
	({                                                                     \
		struct visit visit_;                                           \
		int entered_ = enter(cuda, &visit_);                           \
		entered_ ? entered_ : leave(cuda, &visit_, call, __VA_ARGS__); \
	})

/* Calls a function that frees something. */
#define END(cuda, call, ...)                                                   \
	({                                                                     \
		struct visit visit_;                                           \
		if (enter_to_end(cuda, &visit_))                               \
			leave(cuda, &visit_, call, __VA_ARGS__);               \
	})

/* --- opening --- */

static int open_driver(struct cuda *cuda)
{
	const char *own = secure_getenv("BETON_CUDA_LIBRARY");
	const char *name = own && *own ? own : "libcuda.so.1";
	const char *missing;
	int version = 0;

	cuda->library = library_open(name, false);
	if (!cuda->library) {
		log_error(
			cuda->log,
			"no CUDA driver: %s; install NVIDIA's driver, or set BETON_CUDA_LIBRARY",
			library_error());
		return -ENOSYS;
	}
	missing = library_fill(cuda->library, driver_symbols,
			       ARRAY_LEN(driver_symbols), &cuda->driver);
	/* Closes libraries that were opened before the failure. */
	if (cuda->driver.driver_version)
		cuda->driver.driver_version(&version);
	cuda->facts.driver = version;
	if (!missing && version >= OLDEST_DRIVER)
		return 0;
	log_error(
		cuda->log,
		"%s is of CUDA %d.%d%s%s; 11.0 is the oldest that will do: update the driver to 450 or later",
		name, version / 1000, version % 1000 / 10,
		missing ? " and has no " : "", missing ? missing : "");
	return -ENOSYS;
}

static int open_context(struct cuda *cuda)
{
	struct driver *d = &cuda->driver;
	int count = 0;
	int r = check(cuda, d->init(0), "start the driver");

	if (!r)
		r = check(cuda, d->device_count(&count), "count devices");
	if (!r && (cuda->device < 0 || cuda->device >= count)) {
		log_error(
			cuda->log,
			"there is no CUDA device %d: this process sees %d, counted from 0; see CUDA_VISIBLE_DEVICES and nvidia-smi",
			cuda->device, count);
		return -ENODEV;
	}
	if (!r)
		r = check(cuda, d->device_get(&cuda->device, cuda->device),
			  "find it");
	if (!r)
		r = check(cuda, d->context_retain(&cuda->context, cuda->device),
			  "make its primary context");
	return r;
}

/* NVTX has had two names. It is optional. */
static void open_ranges(struct cuda *cuda)
{
	static const char *const names[] = { "libnvToolsExt.so.1",
					     "libnvtx3interop.so.1" };

	for (size_t i = 0; i < ARRAY_LEN(names) && !cuda->range_library; i++)
		cuda->range_library = library_open(names[i], false);
	if (!cuda->range_library ||
	    !library_fill(cuda->range_library, range_symbols,
			  ARRAY_LEN(range_symbols), &cuda->ranges))
		return;
	cuda->ranges = (struct cuda_ranges){ NULL, NULL };
}

static int attribute(struct cuda *cuda, int which)
{
	int value;

	return cuda->driver.device_attribute(&value, which, cuda->device)
		       ? -1
		       : value;
}

/* Reads a one-line attribute of a PCI device from sysfs; empty: none. */
static void read_pci(const char *pci, const char *what, char *out, size_t size)
{
	char path[96];
	cleanup_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", pci, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

static int read_pci_number(const char *pci, const char *what)
{
	char text[16];

	read_pci(pci, what, text, sizeof(text));
	return *text ? atoi(text) : -1;
}

static void read_facts(struct cuda *cuda)
{
	struct cuda_facts *f = &cuda->facts;
	size_t memory = 0;

	f->device = cuda->device;
	cuda->driver.device_name(f->name, sizeof(f->name), cuda->device);
	cuda->driver.device_memory(&memory, cuda->device);
	f->memory = memory;
	f->major = attribute(cuda, ATTRIBUTE_MAJOR);
	f->minor = attribute(cuda, ATTRIBUTE_MINOR);
	f->multiprocessors = attribute(cuda, ATTRIBUTE_MULTIPROCESSORS);
	f->copy_engines = attribute(cuda, ATTRIBUTE_COPY_ENGINES);
	f->integrated = attribute(cuda, ATTRIBUTE_INTEGRATED);
	f->coherent = attribute(cuda, ATTRIBUTE_HOST_PAGE_TABLES);
	if (cuda->driver.device_pci(f->pci, sizeof(f->pci), cuda->device))
		f->pci[0] = '\0';
	/* The kernel writes hexadecimal digits as small letters. */
	for (char *c = f->pci; *c; c++)
		*c |= *c >= 'A' && *c <= 'F' ? 'a' - 'A' : 0;
	read_pci(f->pci, "max_link_speed", f->link_speed,
		 sizeof(f->link_speed));
	f->link_width = read_pci_number(f->pci, "max_link_width");
	f->numa_node = read_pci_number(f->pci, "numa_node");
}

int cuda_open(int device, struct log *log, struct cuda **out)
{
	struct cuda *cuda = calloc(1, sizeof(*cuda));
	int r;

	if (!cuda)
		return -ENOMEM;
	cuda->log = log;
	cuda->device = device;
	pthread_mutex_init(&cuda->lock, NULL);
	r = open_driver(cuda);
	if (!r)
		r = open_context(cuda);
	if (r) {
		cuda_close(cuda);
		return r;
	}
	open_ranges(cuda);
	read_facts(cuda);
	*out = cuda;
	return 0;
}

void cuda_close(struct cuda *cuda)
{
	if (!cuda)
		return;
	if (cuda->context)
		check(cuda, cuda->driver.context_release(cuda->device),
		      "release its primary context");
	library_close(cuda->range_library);
	library_close(cuda->library);
	pthread_mutex_destroy(&cuda->lock);
	free(cuda);
}

const struct cuda_facts *cuda_facts(const struct cuda *cuda)
{
	return &cuda->facts;
}

bool cuda_is_lost(const struct cuda *cuda)
{
	return atomic_load(&cuda->lost);
}

void cuda_failure(struct cuda *cuda, char *out, size_t size)
{
	scoped_lock(&cuda->lock);
	snprintf(out, size, "%s", cuda->failure);
}

/* --- memory --- */

int cuda_host_alloc(struct cuda *cuda, uint64_t size, void **out)
{
	return CALL(cuda,
		    cuda->driver.host_alloc(out, size, HOST_ALLOC_PORTABLE),
		    "pin %llu bytes of memory", (unsigned long long)size);
}

void cuda_host_free(struct cuda *cuda, void *memory)
{
	if (memory)
		END(cuda, cuda->driver.host_free(memory), "free pinned memory");
}

int cuda_device_alloc(struct cuda *cuda, uint64_t size, uint64_t *out)
{
	return CALL(cuda, cuda->driver.device_alloc(out, size),
		    "allocate %llu bytes", (unsigned long long)size);
}

void cuda_device_free(struct cuda *cuda, uint64_t address)
{
	if (address)
		END(cuda, cuda->driver.device_free(address), "free memory");
}

/* --- streams and events --- */

int cuda_stream_create(struct cuda *cuda, struct cuda_stream **out)
{
	return CALL(cuda, cuda->driver.stream_create(out, STREAM_NON_BLOCKING),
		    "make a stream");
}

void cuda_stream_destroy(struct cuda *cuda, struct cuda_stream *stream)
{
	if (stream)
		END(cuda, cuda->driver.stream_destroy(stream), "end a stream");
}

int cuda_stream_synchronize(struct cuda *cuda, struct cuda_stream *stream)
{
	return CALL(cuda, cuda->driver.stream_synchronize(stream),
		    "wait for a stream");
}

int cuda_stream_wait_event(struct cuda *cuda, struct cuda_stream *stream,
			   struct cuda_event *event)
{
	return CALL(cuda, cuda->driver.stream_wait_event(stream, event, 0),
		    "have stream %p wait for an event", (void *)stream);
}

int cuda_event_create(struct cuda *cuda, struct cuda_event **out)
{
	return CALL(cuda,
		    cuda->driver.event_create(
			    out, EVENT_BLOCKING_SYNC | EVENT_DISABLE_TIMING),
		    "make an event");
}

void cuda_event_destroy(struct cuda *cuda, struct cuda_event *event)
{
	if (event)
		END(cuda, cuda->driver.event_destroy(event), "end an event");
}

int cuda_event_record(struct cuda *cuda, struct cuda_event *event,
		      struct cuda_stream *stream)
{
	return CALL(cuda, cuda->driver.event_record(event, stream),
		    "record an event of stream %p", (void *)stream);
}

/* "Not ready" is a normal answer that is not logged. */
static int query(struct cuda *cuda, struct cuda_event *event, int *code)
{
	*code = cuda->driver.event_query(event);
	return *code == CODE_NOT_READY ? 0 : *code;
}

int cuda_event_query(struct cuda *cuda, struct cuda_event *event)
{
	int code = 0;
	int r = CALL(cuda, query(cuda, event, &code), "ask for an event");

	return code == CODE_NOT_READY ? -EAGAIN : r;
}

int cuda_event_synchronize(struct cuda *cuda, struct cuda_event *event)
{
	return CALL(cuda, cuda->driver.event_synchronize(event),
		    "wait for an event");
}

int cuda_synchronize(struct cuda *cuda)
{
	return CALL(cuda, cuda->driver.context_synchronize(),
		    "wait for the device");
}

/* --- work --- */

int cuda_copy_to_device(struct cuda *cuda, uint64_t to, const void *from,
			uint64_t size, struct cuda_stream *stream)
{
	return CALL(cuda, cuda->driver.copy_to_device(to, from, size, stream),
		    "copy %llu bytes to it", (unsigned long long)size);
}

int cuda_copy_to_host(struct cuda *cuda, void *to, uint64_t from, uint64_t size,
		      struct cuda_stream *stream)
{
	return CALL(cuda, cuda->driver.copy_to_host(to, from, size, stream),
		    "copy %llu bytes from it", (unsigned long long)size);
}

int cuda_module_load(struct cuda *cuda, const void *image,
		     struct cuda_module **out)
{
	return CALL(cuda, cuda->driver.module_load(out, image, 0, NULL, NULL),
		    "load kernels");
}

void cuda_module_unload(struct cuda *cuda, struct cuda_module *module)
{
	if (module)
		END(cuda, cuda->driver.module_unload(module), "unload kernels");
}

int cuda_module_kernel(struct cuda *cuda, struct cuda_module *module,
		       const char *name, struct cuda_kernel **out)
{
	return CALL(cuda, cuda->driver.module_kernel(out, module, name),
		    "find the kernel %s", name);
}

static unsigned at_least_1(uint32_t n)
{
	return n ? n : 1;
}

int cuda_launch(struct cuda *cuda, const struct cuda_launch *l,
		struct cuda_stream *stream)
{
	return CALL(cuda,
		    cuda->driver.launch(
			    l->kernel, at_least_1(l->grid[0]),
			    at_least_1(l->grid[1]), at_least_1(l->grid[2]),
			    at_least_1(l->block[0]), at_least_1(l->block[1]),
			    at_least_1(l->block[2]), l->shared, stream,
			    l->arguments, NULL),
		    "launch a kernel of %u blocks of %u threads",
		    at_least_1(l->grid[0]), at_least_1(l->block[0]));
}

/* --- ranges --- */

void cuda_range_push(struct cuda *cuda, const char *text)
{
	if (cuda && cuda->ranges.push)
		cuda->ranges.push(text);
}

void cuda_range_pop(struct cuda *cuda)
{
	if (cuda && cuda->ranges.pop)
		cuda->ranges.pop();
}
