/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of NVIDIA's driver and of NVTX, from libraries that are loaded
 * at run time, and the meaning of the driver's codes.
 */
#ifndef LOADER_RUN_GPU_DRIVER_H
#define LOADER_RUN_GPU_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cuda_event;
struct cuda_kernel;
struct cuda_module;
struct cuda_stream;
struct log;

enum {
	DRIVER_OUT_OF_MEMORY = 2,
	DRIVER_NOT_READY = 600,
};

/* The driver's functions. A CUresult and a CUdevice are an int, a CUdeviceptr
   is a uint64_t, all else are pointers. */
struct driver {
	void *library; /* NULL: not opened */
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

/* The functions of NVTX, which is optional. */
struct driver_ranges {
	void *library; /* NULL: none */
	int (*push)(const char *text);
	int (*pop)(void);
};

/* Opens the driver; *version is 0 if it has none. Logs the reason of a
   failure; the caller closes the driver, too. */
int driver_open(struct driver *driver, struct log *log, int *version);
void driver_close(struct driver *driver);

void driver_ranges_open(struct driver_ranges *ranges);
void driver_ranges_close(struct driver_ranges *ranges);

/* The meaning of a code of the driver. */
struct driver_meaning {
	int code;
	int error;
	bool lost;	    /* the device is lost */
	const char *advice; /* NULL: none */
};

struct driver_meaning driver_meaning(int code);

#endif
