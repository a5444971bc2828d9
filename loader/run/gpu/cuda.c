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
#include "fs/base/util/log.h"
#include "loader/run/gpu/driver.h"

/* Constants of the driver's ABI. */
enum {
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

enum { FAILURE_SIZE = 600 };

struct cuda {
	struct log *log;
	struct driver driver;
	struct driver_ranges ranges;
	int device;
	void *context; /* NULL: not retained */
	atomic_bool lost;
	struct cuda_facts facts;
	pthread_mutex_t lock; /* guards what is below */
	char failure[FAILURE_SIZE];
};

/* --- errors --- */

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
	const struct driver_meaning m = driver_meaning(code);
	char what[200], why[FAILURE_SIZE];

	vsnprintf(what, sizeof(what), format, args);
	snprintf(why, sizeof(why), "CUDA device %d: cannot %s: %s (%s)%s%s%s",
		 cuda->device, what, text_of(cuda->driver.error_string, code),
		 text_of(cuda->driver.error_name, code), m.advice ? "; " : "",
		 m.advice ? m.advice : "",
		 m.lost ? "; nothing more can be done on it" : "");
	if (!keep_failure(cuda, why, m.lost))
		return -EIO;
	(m.error == -ENOMEM ? log_warning : log_error)(cuda->log, "%s", why);
	return m.error;
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
	r = driver_open(&cuda->driver, log, &cuda->facts.driver);
	if (!r)
		r = open_context(cuda);
	if (r) {
		cuda_close(cuda);
		return r;
	}
	driver_ranges_open(&cuda->ranges);
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
	driver_ranges_close(&cuda->ranges);
	driver_close(&cuda->driver);
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
	return *code == DRIVER_NOT_READY ? 0 : *code;
}

int cuda_event_query(struct cuda *cuda, struct cuda_event *event)
{
	int code = 0;
	int r = CALL(cuda, query(cuda, event, &code), "ask for an event");

	return code == DRIVER_NOT_READY ? -EAGAIN : r;
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
