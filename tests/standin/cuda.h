/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcuda.so.1, for what cannot be run without a GPU: who may
 * touch which memory when. Built for the tests alone.
 *
 * A thread of each device runs what is queued, one thing at a time, and picks
 * at random among the streams whose next thing may run. Memory of the device is
 * memory of the process, in a range of its own. It watches that
 *
 *   - what runs was ordered: two accesses to one range, one of them a write,
 *     come after each other by stream order, events, or a host that waited;
 *     vector clocks detect it, so a lucky schedule hides nothing;
 *   - copies are of pinned memory, and its bytes are the same when the copy
 *     runs as when it was queued;
 *   - memory is freed after its last use was waited for;
 *   - handles live, and belong to the context that is current;
 *   - no copy or kernel is queued on a default stream, unless that is allowed;
 *   - the host does not wait while the device is paused.
 *
 * Like the driver, it refuses a call that could disturb a capture of a graph,
 * by the modes of the capture and of the calling thread, and the capture is
 * invalid then.
 *
 * $STANDIN_CUDA_RATE, in bytes a second, makes its link slow.
 *
 * A violation ends the program, or is counted where it is expected. The clock
 * of the host is one for all of its threads: an order that one thread has
 * established counts for the others too.
 */
#ifndef TESTS_STANDIN_CUDA_H
#define TESTS_STANDIN_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct standin_parameter {
	uint32_t size;
	bool is_pointer; /* to memory of the device */
	bool is_const;	 /* that is only read */
};

struct standin_kernel {
	void (*run)(void **arguments, const unsigned grid[3],
		    const unsigned block[3]);
	uint32_t num_parameters;
	const struct standin_parameter *parameters;
};

/* A pointer that a kernel is given stands for all of its allocation. Modules
   are shared objects with a struct standin_kernel for each kernel, of its name
   with this before it; or this text, for what kernel() registered. */
#define STANDIN_KERNEL "standin_kernel_"
#define STANDIN_REGISTERED "standin: registered"

/* A code for fail(): cuStreamWaitEvent() and cuEventQuery() do nothing, and
   return success. */
enum { STANDIN_PRETEND = -1 };

/* The one thing that it exports besides the driver's functions, as `standin`.
 */
struct standin {
	/* All as at first, but for what lives; for schedules. */
	void (*reset)(uint64_t seed);
	void (*set_devices)(int n, int driver_version);
	/* Runs nothing until resumed; the host may not wait meanwhile. */
	void (*pause)(bool on);
	/* Runs nothing of one stream. */
	void (*hold)(void *stream, bool on);
	void (*allow_default)(bool on);
	/* From now on the n-th call of this function, counted from 1, fails
	   with the code. If a device does not recover from the code, every
	   later call fails, too. */
	void (*fail)(const char *function, unsigned n, int code);
	/* Since reset(). */
	unsigned (*calls)(const char *function);
	/* Violations are counted; the number up to now. */
	void (*expect)(bool on);
	unsigned (*violations)(void);
	/* The message of the last violation. */
	const char *(*violation)(void);
	/* Streams, events, memory, modules and contexts that live. */
	unsigned (*living)(void);
	/* How many contexts this thread has pushed. */
	unsigned (*pushed)(void);
	/* Kernels by name, for STANDIN_REGISTERED; it stays the caller's. */
	void (*register_kernel)(const char *name,
				const struct standin_kernel *kernel);
	/* A stream that waits with the legacy default stream. */
	void *(*blocking_stream)(void);
};

#endif
