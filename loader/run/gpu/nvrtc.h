/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles CUDA C for one device, by NVIDIA's run-time compiler NVRTC. The
 * program looks for the library at run time: $BETON_NVRTC_LIBRARY; a library
 * that the process has loaded; one that the linker finds; and those of Python
 * packages and of conda, beside a loaded CUDA library, in $VIRTUAL_ENV and in
 * $CONDA_PREFIX. It needs neither a CUDA toolkit nor its headers.
 *
 * If NVRTC has a newer major version than the driver, it is skipped, because
 * the driver could not load its output. Compiling needs no GPU.
 *
 * Threads: any.
 */
#ifndef LOADER_RUN_GPU_NVRTC_H
#define LOADER_RUN_GPU_NVRTC_H

#include <stddef.h>

struct log;
struct cuda_facts;
struct nvrtc;

/*
 * Opens NVRTC for a device; driver, major and minor of the facts count.
 * -ENOSYS: there is no NVRTC, and a logged line names the package to install.
 */
int nvrtc_open(const struct cuda_facts *facts, struct log *log,
	       struct nvrtc **out);
/* Takes NULL. */
void nvrtc_close(struct nvrtc *compiler);

/*
 * The compiler and its target, for keys of caches: the compiled code depends on
 * these besides the source and the options. "nvrtc 12.4 sm_90" is code; if the
 * compiler does not support the device yet, "nvrtc 12.4 compute_90" is PTX.
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
