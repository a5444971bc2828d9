/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA C to code for one device, by NVIDIA's run-time compiler NVRTC, which is
 * looked for when the program runs: $BETON_NVRTC_LIBRARY; one that the process
 * has loaded; one that the linker finds; and those of Python packages and of
 * conda, beside a CUDA library that is loaded, in $VIRTUAL_ENV and in
 * $CONDA_PREFIX. A CUDA toolkit is not needed, nor its headers.
 *
 * One of a newer major version than the driver's is passed over: the driver
 * could not load what it makes. No GPU is needed to compile.
 *
 * Threads: any.
 */
#ifndef LOADER_GPU_NVRTC_H
#define LOADER_GPU_NVRTC_H

#include <stddef.h>

struct log;
struct cuda_facts;
struct nvrtc;

/*
 * Opens NVRTC for a device; driver, major and minor of the facts count.
 * -ENOSYS: there is no NVRTC, and a logged line says what to install.
 */
int nvrtc_open(const struct cuda_facts *facts, struct log *log,
	       struct nvrtc **out);
/* Takes NULL. */
void nvrtc_close(struct nvrtc *compiler);

/*
 * What code depends on besides the text and the options, for keys of caches:
 * "nvrtc 12.4 sm_90", or "nvrtc 12.4 compute_90", which is PTX, where the
 * compiler does not know so new a device.
 */
const char *nvrtc_name(const struct nvrtc *compiler);

/* Code for cuda_module_load(). The caller frees the bytes. */
struct cuda_image {
	char *bytes;
	size_t size;
};

/*
 * Compiles a text; messages contain `name`. Functions must be extern "C".
 * -EINVAL: the compiler refuses the text, and its output is logged.
 */
int nvrtc_run(struct nvrtc *compiler, const char *name, const char *text,
	      const char *const *options, size_t num_options,
	      struct cuda_image *out);

#endif
