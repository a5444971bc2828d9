/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/gpu/nvrtc.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/library.h"
#include "fs/base/util/log.h"
#include "loader/run/gpu/cuda.h"

enum { OPTIONS_MAX = 16, ARCHITECTURES_MAX = 64 };

/* NVRTC's functions; an nvrtcResult is an int. */
struct nvrtc_functions {
	int (*version)(int *major, int *minor);
	const char *(*error_string)(int code);
	int (*create)(void **program, const char *text, const char *name,
		      int num_headers, const char *const *headers,
		      const char *const *names);
	int (*destroy)(void **program);
	int (*compile)(void *program, int num_options,
		       const char *const *options);
	int (*log_size)(void *program, size_t *size);
	int (*log)(void *program, char *text);
	int (*ptx_size)(void *program, size_t *size);
	int (*ptx)(void *program, char *text);
	/* Available since CUDA 11.1 and 11.2. */
	int (*cubin_size)(void *program, size_t *size);
	int (*cubin)(void *program, char *bytes);
	int (*num_architectures)(int *n);
	int (*architectures)(int *out);
};

#define ROW(member, name, required)                                            \
	{                                                                      \
		name, offsetof(struct nvrtc_functions, member), required       \
	}

static const struct library_symbol symbols[] = {
	ROW(version, "nvrtcVersion", true),
	ROW(error_string, "nvrtcGetErrorString", true),
	ROW(create, "nvrtcCreateProgram", true),
	ROW(destroy, "nvrtcDestroyProgram", true),
	ROW(compile, "nvrtcCompileProgram", true),
	ROW(log_size, "nvrtcGetProgramLogSize", true),
	ROW(log, "nvrtcGetProgramLog", true),
	ROW(ptx_size, "nvrtcGetPTXSize", true),
	ROW(ptx, "nvrtcGetPTX", true),
	ROW(cubin_size, "nvrtcGetCUBINSize", false),
	ROW(cubin, "nvrtcGetCUBIN", false),
	ROW(num_architectures, "nvrtcGetNumSupportedArchs", false),
	ROW(architectures, "nvrtcGetSupportedArchs", false),
};

#undef ROW

/* The newest first. */
static const char *const names[] = { "libnvrtc.so.13", "libnvrtc.so.12",
				     "libnvrtc.so.11.2", "libnvrtc.so" };

/* Directories of packages, below site-packages. */
static const char *const packages[] = { "nvidia/cu13/lib",
					"nvidia/cuda_nvrtc/lib" };

struct nvrtc {
	struct log *log;
	void *library;
	struct nvrtc_functions nvrtc;
	int device_version; /* 90: compute capability 9.0 */
	int driver;
	bool to_cubin;	 /* else PTX */
	char option[64]; /* architecture option */
	char name[64];
};

/* --- finding it --- */

/* Uses the library if it is suitable. */
static bool take_library(struct nvrtc *c, void *library)
{
	int major = 0, minor = 0;

	if (!library)
		return false;
	if (!library_fill(library, symbols, ARRAY_LEN(symbols), &c->nvrtc) &&
	    !c->nvrtc.version(&major, &minor) && major <= c->driver / 1000) {
		snprintf(c->name, sizeof(c->name), "nvrtc %d.%d", major, minor);
		c->library = library;
		return true;
	}
	library_close(library);
	return false;
}

static bool take_named(struct nvrtc *c, bool loaded)
{
	bool taken = false;

	for (size_t i = 0; i < ARRAY_LEN(names) && !taken; i++)
		taken = take_library(c, library_open(names[i], loaded));
	return taken;
}

/* Finds the newest suitable file of this pattern. */
static bool take_file(struct nvrtc *c, const char *pattern)
{
	glob_t found;
	bool taken = false;

	if (glob(pattern, 0, NULL, &found))
		return false;
	for (size_t i = found.gl_pathc; i-- > 0 && !taken;)
		taken = take_library(c, library_open(found.gl_pathv[i], false));
	globfree(&found);
	return taken;
}

static bool take_below(struct nvrtc *c, const char *site_packages)
{
	char pattern[PATH_MAX + 64];
	bool taken = false;

	for (size_t i = 0; i < ARRAY_LEN(packages) && !taken; i++) {
		snprintf(pattern, sizeof(pattern), "%s/%s/libnvrtc.so*",
			 site_packages, packages[i]);
		taken = take_file(c, pattern);
	}
	return taken;
}

/*
 * Searches beside the CUDA libraries that a framework brought, if they are
 * loaded.
 */
static bool take_beside_loaded(struct nvrtc *c)
{
	static const char mark[] = "/site-packages/nvidia/";
	char path[PATH_MAX];

	if (!library_find_loaded(mark, path, sizeof(path)))
		return false;
	strstr(path, mark)[sizeof("/site-packages") - 1] = '\0';
	return take_below(c, path);
}

static bool take_of_environment(struct nvrtc *c, const char *variable)
{
	const char *prefix = secure_getenv(variable);
	char path[PATH_MAX];

	if (!prefix || !*prefix || strlen(prefix) > PATH_MAX - 64)
		return false;
	snprintf(path, sizeof(path), "%s/lib/python3*/site-packages", prefix);
	if (take_below(c, path))
		return true;
	snprintf(path, sizeof(path), "%s/lib/libnvrtc.so*", prefix);
	return take_file(c, path);
}

static bool find_library(struct nvrtc *c)
{
	const char *own = secure_getenv("BETON_NVRTC_LIBRARY");

	if (own && *own)
		return take_library(c, library_open(own, false));
	return take_named(c, true) || take_named(c, false) ||
	       take_beside_loaded(c) || take_of_environment(c, "VIRTUAL_ENV") ||
	       take_of_environment(c, "CONDA_PREFIX");
}

/* --- for which device --- */

/*
 * Selects code for exactly this device if the compiler supports it. Otherwise
 * selects PTX for the newest older device; the driver turns it into code,
 * because PTX is portable to every newer device.
 */
static void choose_architecture(struct nvrtc *c)
{
	int known[ARCHITECTURES_MAX], n = 0, best = 0;
	char target[32];

	if (c->nvrtc.num_architectures && c->nvrtc.architectures &&
	    c->nvrtc.cubin_size && c->nvrtc.cubin &&
	    !c->nvrtc.num_architectures(&n) && n <= ARCHITECTURES_MAX &&
	    !c->nvrtc.architectures(known)) {
		for (int i = 0; i < n; i++) {
			if (known[i] <= c->device_version && known[i] > best)
				best = known[i];
		}
	}
	c->to_cubin = best && best == c->device_version;
	snprintf(target, sizeof(target), "%s_%d",
		 c->to_cubin ? "sm" : "compute",
		 best ? best : c->device_version);
	snprintf(c->option, sizeof(c->option), "--gpu-architecture=%s", target);
	snprintf(c->name + strlen(c->name), sizeof(c->name) - strlen(c->name),
		 " %s", target);
}

int nvrtc_open(const struct cuda_facts *facts, struct log *log,
	       struct nvrtc **out)
{
	struct nvrtc *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->log = log;
	c->driver = facts->driver;
	c->device_version = facts->major * 10 + facts->minor;
	if (!find_library(c)) {
		log_warning(
			log,
			"no CUDA compiler (NVRTC) of version %d or older was found: pip install nvidia-cuda-nvrtc-cu%d, or set BETON_NVRTC_LIBRARY",
			c->driver / 1000, c->driver / 1000);
		free(c);
		return -ENOSYS;
	}
	choose_architecture(c);
	*out = c;
	return 0;
}

void nvrtc_close(struct nvrtc *c)
{
	if (!c)
		return;
	library_close(c->library);
	free(c);
}

const char *nvrtc_name(const struct nvrtc *c)
{
	return c->name;
}

/* --- compiling --- */

/*
 * Logs all output of the compiler, a message for each line. The caller may go
 * on without the code.
 */
static void log_messages(struct nvrtc *c, void *program, const char *name,
			 int code)
{
	cleanup_free char *text = NULL;
	char *rest, *line;
	size_t size = 0;

	log_warning(c->log, "%s: %s refuses it: %s", name, c->name,
		    c->nvrtc.error_string(code));
	if (c->nvrtc.log_size(program, &size) || size < 2)
		return;
	text = calloc(1, size + 1);
	if (!text || c->nvrtc.log(program, text))
		return;
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		if (*line)
			log_warning(c->log, "%s", line);
	}
}

static int copy_out(struct nvrtc *c, void *program, struct cuda_image *out)
{
	struct cuda_image image = { NULL, 0 };
	int code = c->to_cubin ? c->nvrtc.cubin_size(program, &image.size)
			       : c->nvrtc.ptx_size(program, &image.size);

	if (!code && image.size) {
		image.bytes = malloc(image.size);
		if (!image.bytes)
			return -ENOMEM;
		code = c->to_cubin ? c->nvrtc.cubin(program, image.bytes)
				   : c->nvrtc.ptx(program, image.bytes);
	}
	if (!code && image.size) {
		*out = image;
		return 0;
	}
	free(image.bytes);
	log_error(c->log, "%s made nothing: %s", c->name,
		  c->nvrtc.error_string(code));
	return -EIO;
}

int nvrtc_run(struct nvrtc *c, const char *name, const char *text,
	      const char *const *options, size_t num_options,
	      struct cuda_image *out)
{
	const char *all[OPTIONS_MAX] = { c->option };
	void *program;
	int code, r;

	if (num_options > OPTIONS_MAX - 1)
		return -EINVAL;
	for (size_t i = 0; i < num_options; i++)
		all[i + 1] = options[i];
	code = c->nvrtc.create(&program, text, name, 0, NULL, NULL);
	if (code) {
		log_error(c->log, "%s: %s cannot begin: %s", name, c->name,
			  c->nvrtc.error_string(code));
		return -EIO;
	}
	code = c->nvrtc.compile(program, (int)num_options + 1, all);
	if (code)
		log_messages(c, program, name, code);
	r = code ? -EINVAL : copy_out(c, program, out);
	c->nvrtc.destroy(&program);
	return r;
}
