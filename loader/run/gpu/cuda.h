/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GPU, by the functions of NVIDIA's driver. The program loads the driver at
 * run time: libcuda.so.1, or $BETON_CUDA_LIBRARY. All calls of CUDA are in this
 * file, and those of its compiler in nvrtc.h. The names are those of the
 * driver's ABI since CUDA 11.0, so any driver from 450 on is new enough.
 *
 * All calls use the device's primary context, as the CUDA runtime and PyTorch
 * do, so that memory, streams and events can pass between them and the loader.
 * Each call makes this context current and restores the calling thread's
 * context before it returns. If the program captures a graph meanwhile, calls
 * neither fail nor disturb the capture, unless their stream is the captured
 * one. Then they return -EBUSY.
 *
 * Results are 0 or -errno. If the driver refuses a call, these functions log
 * the call and the reason: as a warning if memory is short (-ENOMEM), otherwise
 * as an error. If the device does not recover from an error, every later call
 * returns -EIO at once and logs nothing.
 *
 * Threads: any thread may make any call, but close an object after its last
 * use. There is no lock. Only functions whose comment mentions it synchronize
 * the device.
 */
#ifndef LOADER_RUN_GPU_CUDA_H
#define LOADER_RUN_GPU_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log;
struct cuda;

/*
 * Handles of the driver, with its own types. This code never looks into them.
 */
struct cuda_stream;
struct cuda_event;
struct cuda_module;
struct cuda_kernel;

/*
 * Streams that always exist: the legacy default stream, which NULL means too,
 * and each calling thread's own default stream. The numbers are CUDA's and
 * DLPack's.
 */
#define CUDA_STREAM_LEGACY ((struct cuda_stream *)1)
#define CUDA_STREAM_PER_THREAD ((struct cuda_stream *)2)

/* Properties of a device. -1: the driver does not report it. */
struct cuda_facts {
	int device; /* its ordinal */
	int driver; /* CUDA version of the driver: 12040 is 12.4 */
	char name[128];
	int major, minor; /* compute capability */
	uint64_t memory;  /* bytes */
	int multiprocessors;
	int copy_engines;
	int integrated; /* 1: shares the memory of the host */
	int coherent;	/* 1: reads the host's pageable memory by its page
			   tables, as over NVLink-C2C */
	char pci[16];	/* "0000:3b:00.0"; empty: not reported */
	/* Properties of the bus, as the kernel reports them; empty or -1:
	   unknown. */
	char link_speed[32]; /* "16.0 GT/s PCIe" */
	int link_width;	     /* lanes */
	int numa_node;
};

/*
 * Opens a device by its ordinal, as CUDA_VISIBLE_DEVICES leaves them. -ENOSYS:
 * there is no driver, or it is older than CUDA 11.0. -ENODEV: there is no GPU,
 * or not that many. Logs one line that contains the fix.
 */
int cuda_open(int device, struct log *log, struct cuda **out);
/* Closes the device; everything made from it is closed. Takes NULL. */
void cuda_close(struct cuda *cuda);

const struct cuda_facts *cuda_facts(const struct cuda *cuda);
/* Whether the device was lost; calls fail with -EIO from then on. */
bool cuda_is_lost(const struct cuda *cuda);
/*
 * The last logged failure; after the device was lost, the loss. "" if there is
 * none.
 */
void cuda_failure(struct cuda *cuda, char *out, size_t size);

/* --- memory; at least one byte ---
 *
 * Making and, above all, freeing waits for the whole device: never per batch.
 */

/* Pinned, for every context of the process, aligned to a page or better. */
int cuda_host_alloc(struct cuda *cuda, uint64_t size, void **out);
void cuda_host_free(struct cuda *cuda, void *memory);
/* An address of the device, aligned to 256 bytes. */
int cuda_device_alloc(struct cuda *cuda, uint64_t size, uint64_t *out);
void cuda_device_free(struct cuda *cuda, uint64_t address);

/* --- streams and events --- */

/* Makes a stream that does not synchronize with the legacy default stream. */
int cuda_stream_create(struct cuda *cuda, struct cuda_stream **out);
/* Closes a stream; queued work is still done. Takes NULL. */
void cuda_stream_destroy(struct cuda *cuda, struct cuda_stream *stream);
/* Blocks the host until the work queued so far is done. */
int cuda_stream_synchronize(struct cuda *cuda, struct cuda_stream *stream);
/*
 * Makes work that is queued from now on wait, on the device, for the event as
 * last recorded. It does not wait if the event was never recorded.
 */
int cuda_stream_wait_event(struct cuda *cuda, struct cuda_stream *stream,
			   struct cuda_event *event);

/* Makes an event without a timestamp. Waiting for it sleeps. */
int cuda_event_create(struct cuda *cuda, struct cuda_event **out);
/* Closes an event; streams may still wait for it. Takes NULL. */
void cuda_event_destroy(struct cuda *cuda, struct cuda_event *event);
int cuda_event_record(struct cuda *cuda, struct cuda_event *event,
		      struct cuda_stream *stream);
/* 0: the event occurred, or was never recorded. -EAGAIN: not yet. */
int cuda_event_query(struct cuda *cuda, struct cuda_event *event);
int cuda_event_synchronize(struct cuda *cuda, struct cuda_event *event);
/*
 * Blocks the host until everything that this process queued on the device is
 * done.
 */
int cuda_synchronize(struct cuda *cuda);

/* --- work; queued on a stream, done when its turn comes --- */

/* The host's memory must be pinned, and stay as it is until the copy is done.
 */
int cuda_copy_to_device(struct cuda *cuda, uint64_t to, const void *from,
			uint64_t size, struct cuda_stream *stream);
int cuda_copy_to_host(struct cuda *cuda, void *to, uint64_t from, uint64_t size,
		      struct cuda_stream *stream);

/* A cubin, PTX or a fat binary. -ENOEXEC: not for this device or driver. */
int cuda_module_load(struct cuda *cuda, const void *image,
		     struct cuda_module **out);
/* Closes a module; none of its kernels runs. Takes NULL. */
void cuda_module_unload(struct cuda *cuda, struct cuda_module *module);
/* Finds a kernel, which belongs to the module. -ENOENT: no such name. */
int cuda_module_kernel(struct cuda *cuda, struct cuda_module *module,
		       const char *name, struct cuda_kernel **out);

struct cuda_launch {
	struct cuda_kernel *kernel;
	uint32_t grid[3];  /* blocks; 0 counts as 1 */
	uint32_t block[3]; /* threads of one; 0 counts as 1 */
	uint32_t shared;   /* bytes of a block's dynamic shared memory */
	void **arguments;  /* pointers to them; copied by the call */
};

int cuda_launch(struct cuda *cuda, const struct cuda_launch *launch,
		struct cuda_stream *stream);

/* --- ranges on the timeline of NVIDIA's profilers ---
 *
 * Push and pop nested ranges of the calling thread. If neither
 * libnvToolsExt.so.1 nor libnvtx3interop.so.1 is installed, they do nothing;
 * without a profiler they cost almost nothing. They take NULL.
 */
void cuda_range_push(struct cuda *cuda, const char *text);
void cuda_range_pop(struct cuda *cuda);

#endif
