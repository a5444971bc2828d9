/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GPU, by the functions of NVIDIA's driver, libcuda.so.1 or
 * $BETON_CUDA_LIBRARY, which is looked for when the program runs. Nothing else
 * knows CUDA, but for cuda_compiler. The names are those of the driver's ABI
 * since CUDA 11.0, so any driver from 450 on will do.
 *
 * The device's primary context is used, as the CUDA runtime, PyTorch and others
 * do, so that memory, streams and events may be passed between them and us.
 * Every call makes it current for as long as it takes: what the calling thread
 * has as its current context stays that. The program may capture graphs
 * meanwhile: calls neither fail for that nor disturb the capture, unless they
 * are given the captured stream. These fail with -EBUSY.
 *
 * Results are 0 or -errno. What the driver refuses is logged here, with what
 * was tried: as a warning where it is memory (-ENOMEM), else as an error. After
 * an error that the device does not recover from, every call fails at once with
 * -EIO, and is not logged again.
 *
 * Threads: any call from any thread, except that things end after their last
 * use. There is no lock. Nothing here synchronizes the device, but for what is
 * said to.
 */
#ifndef LOADER_GPU_CUDA_H
#define LOADER_GPU_CUDA_H

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
	char pci[16];	/* "0000:3b:00.0"; empty: not told */
	/* Of the bus, as the kernel reports it; empty or -1: unknown. */
	char link_speed[32]; /* "16.0 GT/s PCIe" */
	int link_width;	     /* lanes */
	int numa_node;
};

/*
 * Device by its ordinal, as CUDA_VISIBLE_DEVICES leaves them. -ENOSYS: there is
 * no driver, or it is older than CUDA 11.0. -ENODEV: there is no GPU, or not
 * that many. One line is logged that says what to do.
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
 * Of the calling thread, nested. Nothing happens without libnvToolsExt.so.1 or
 * libnvtx3interop.so.1, and nearly nothing without a profiler. Takes NULL.
 */
void cuda_range_push(struct cuda *cuda, const char *text);
void cuda_range_pop(struct cuda *cuda);

#endif
