/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/gpu/driver.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/library.h"
#include "fs/base/util/log.h"

/* cuDevicePrimaryCtxRelease_v2 is the newest name that is used. */
enum { OLDEST_DRIVER = 11000 };

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

static const struct library_symbol range_symbols[] = {
	{ "nvtxRangePushA", offsetof(struct driver_ranges, push), true },
	{ "nvtxRangePop", offsetof(struct driver_ranges, pop), true },
};

int driver_open(struct driver *d, struct log *log, int *version)
{
	const char *own = secure_getenv("BETON_CUDA_LIBRARY");
	const char *name = own && *own ? own : "libcuda.so.1";
	const char *missing;

	*version = 0;
	d->library = library_open(name, false);
	if (!d->library) {
		log_error(
			log,
			"no CUDA driver: %s; install NVIDIA's driver, or set BETON_CUDA_LIBRARY",
			library_error());
		return -ENOSYS;
	}
	missing = library_fill(d->library, driver_symbols,
			       ARRAY_LEN(driver_symbols), d);
	/* Closes libraries that were opened before the failure. */
	if (d->driver_version)
		d->driver_version(version);
	if (!missing && *version >= OLDEST_DRIVER)
		return 0;
	log_error(
		log,
		"%s is of CUDA %d.%d%s%s; 11.0 is the oldest that will do: update the driver to 450 or later",
		name, *version / 1000, *version % 1000 / 10,
		missing ? " and has no " : "", missing ? missing : "");
	return -ENOSYS;
}

void driver_close(struct driver *d)
{
	library_close(d->library);
}

/* NVTX has had two names. It is optional. */
void driver_ranges_open(struct driver_ranges *r)
{
	static const char *const names[] = { "libnvToolsExt.so.1",
					     "libnvtx3interop.so.1" };

	for (size_t i = 0; i < ARRAY_LEN(names) && !r->library; i++)
		r->library = library_open(names[i], false);
	if (!r->library || !library_fill(r->library, range_symbols,
					 ARRAY_LEN(range_symbols), r))
		return;
	r->push = NULL;
	r->pop = NULL;
}

void driver_ranges_close(struct driver_ranges *r)
{
	library_close(r->library);
}

static const char capture_advice[] =
	"a CUDA graph is captured on this stream: take and release batches before or after the capture";

/* The errno values of the driver's codes; all others are -EIO. */
static const struct driver_meaning meanings[] = {
	{ 1, -EINVAL, false, NULL },
	{ DRIVER_OUT_OF_MEMORY, -ENOMEM, false, NULL },
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
	{ DRIVER_NOT_READY, -EAGAIN, false, NULL },
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

struct driver_meaning driver_meaning(int code)
{
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		if (meanings[i].code == code)
			return meanings[i];
	}
	return (struct driver_meaning){ code, -EIO, false, NULL };
}
