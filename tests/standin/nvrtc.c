/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libnvrtc: makes CUDA C run on the host, so that kernels can be
 * compared without a GPU. The text goes to the machine's C++ compiler between
 * what a device has built in and a table of its kernels; the "cubin" is a
 * shared object, which the stand-in for the driver loads.
 *
 * A kernel's threads run one after another, so there is no __syncthreads(), and
 * __shared__ is of little use. As with NVRTC, no header is there by itself, so
 * uint32_t is unknown. The stand-in ignores all options but -D and -I.
 * Arithmetic is not contracted.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

#define EXPORT __attribute__((visibility("default")))

/* nvrtcResult. */
enum { OK = 0, INVALID_INPUT = 3, COMPILATION = 6, INTERNAL = 11 };

enum { OPTIONS_MAX = 48, NAME_MAX_BYTES = 128 };

struct program {
	char *text;
	char *name;
	char *log;
	char *object;
	size_t size;
};

extern char **environ;

static const char before[] =
	"typedef __SIZE_TYPE__ size_t;\n"
	"struct standin_dim { unsigned x, y, z; };\n"
	"static standin_dim threadIdx, blockIdx, blockDim, gridDim;\n"
	"#define __CUDACC_RTC__ 1\n"
	"#define __global__\n"
	"#define __device__\n"
	"#define __host__\n"
	"#define __constant__\n"
	"#define __shared__ static\n"
	"#define __forceinline__ inline\n"
	"#define __noinline__\n"
	"#define __launch_bounds__(...)\n"
	"#define __CUDA_ARCH__ 900\n"
	"extern \"C\" {\n"
	"float fabsf(float); float floorf(float); float ceilf(float);\n"
	"float fminf(float, float); float fmaxf(float, float);\n"
	"float sqrtf(float); float rintf(float); float roundf(float);\n"
	"float truncf(float); float expf(float); float logf(float);\n"
	"float powf(float, float); float sinf(float); float cosf(float);\n"
	"float fmaf(float, float, float); double fma(double, double, double);\n"
	"double floor(double); double fabs(double); double rint(double);\n"
	"void *memcpy(void *, const void *, size_t);\n"
	"void *memset(void *, int, size_t);\n"
	"}\n"
	"static inline int min(int a, int b) { return a < b ? a : b; }\n"
	"static inline int max(int a, int b) { return a > b ? a : b; }\n"
	"static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }\n"
	"static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }\n"
	"template<class T> static inline T __ldg(const T *p) { return *p; }\n"
	"static inline float __fadd_rn(float a, float b) { return a + b; }\n"
	"static inline float __fsub_rn(float a, float b) { return a - b; }\n"
	"static inline float __fmul_rn(float a, float b) { return a * b; }\n"
	"static inline float __fdiv_rn(float a, float b) { return a / b; }\n"
	"static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }\n"
	"static inline float __fsqrt_rn(float a) { return sqrtf(a); }\n"
	"static inline int __float2int_rn(float a) { return (int)rintf(a); }\n"
	"static inline int __float2int_rz(float a) { return (int)a; }\n"
	"template<class T, class F> static inline T standin_bits(F f) { T t; memcpy(&t, &f, sizeof(t)); return t; }\n"
	"static inline unsigned __float_as_uint(float a) { return standin_bits<unsigned>(a); }\n"
	"static inline int __float_as_int(float a) { return standin_bits<int>(a); }\n"
	"static inline float __uint_as_float(unsigned a) { return standin_bits<float>(a); }\n"
	"static inline float __int_as_float(int a) { return standin_bits<float>(a); }\n"
	"static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }\n"
	"static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)((unsigned __int128)a * b >> 64); }\n";

/* How kernels are called; the structs are those of tests/standin/cuda.h. */
static const char after[] =
	"\nnamespace standin {\n"
	"struct parameter { unsigned size; bool is_pointer, is_const; };\n"
	"struct kernel { void (*run)(void **, const unsigned *, const unsigned *); unsigned n; const parameter *parameters; };\n"
	"template<class T> struct is { static constexpr bool pointer = false, constant = false; };\n"
	"template<class T> struct is<T *> { static constexpr bool pointer = true, constant = false; };\n"
	"template<class T> struct is<const T *> { static constexpr bool pointer = true, constant = true; };\n"
	"template<size_t... I> struct seq {};\n"
	"template<size_t N, size_t... I> struct count : count<N - 1, N - 1, I...> {};\n"
	"template<size_t... I> struct count<0, I...> { typedef seq<I...> type; };\n"
	"template<auto F> struct of;\n"
	"template<class... A, void (*F)(A...)> struct of<F> {\n"
	"	static constexpr parameter parameters[] = { { sizeof(A), is<A>::pointer, is<A>::constant }..., {} };\n"
	"	static constexpr unsigned n = sizeof...(A);\n"
	"	template<size_t... I> static void call(void **a, seq<I...>) { F(*(A *)a[I]...); }\n"
	"	static void threads(void **a) {\n"
	"		for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)\n"
	"		for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)\n"
	"		for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)\n"
	"			call(a, typename count<sizeof...(A)>::type());\n"
	"	}\n"
	"	static void run(void **a, const unsigned *g, const unsigned *b) {\n"
	"		gridDim = { g[0], g[1], g[2] };\n"
	"		blockDim = { b[0], b[1], b[2] };\n"
	"		for (blockIdx.z = 0; blockIdx.z < g[2]; blockIdx.z++)\n"
	"		for (blockIdx.y = 0; blockIdx.y < g[1]; blockIdx.y++)\n"
	"		for (blockIdx.x = 0; blockIdx.x < g[0]; blockIdx.x++)\n"
	"			threads(a);\n"
	"	}\n"
	"};\n"
	"}\n";

/* --- the source --- */

/* The name of the kernel after its mark, which stands before the first
   parenthesis that is not of its launch bounds. */
static bool kernel_name(const char *at, char *name)
{
	static const char bounds[] = "__launch_bounds__";
	const char *end, *begin;

	end = strstr(at, bounds);
	begin = strchr(at, '(');
	if (end && begin && end < begin)
		begin = strchr(begin + 1, '(');
	if (!begin)
		return false;
	for (end = begin; end > at && strchr(" \t\n", end[-1]); end--)
		continue;
	for (begin = end; begin > at && !strchr(" \t\n", begin[-1]); begin--)
		continue;
	if (end == begin || end - begin >= NAME_MAX_BYTES)
		return false;
	snprintf(name, NAME_MAX_BYTES, "%.*s", (int)(end - begin), begin);
	return true;
}

static bool is_in_macro(const char *text, const char *at)
{
	while (at > text && at[-1] != '\n')
		at--;
	return *at == '#';
}

/* Calls of the kernels that begin with a mark. */
static void write_kernels(FILE *f, const char *text, const char *mark)
{
	char name[NAME_MAX_BYTES];

	for (const char *at = text; (at = strstr(at, mark)); at++) {
		if (!is_in_macro(text, at) &&
		    kernel_name(at + strlen(mark), name))
			fprintf(f,
				"extern \"C\" __attribute__((visibility(\"default\"))) const standin::kernel standin_kernel_%s = { standin::of<%s>::run, standin::of<%s>::n, standin::of<%s>::parameters };\n",
				name, name, name, name);
	}
}

static int write_source(const struct program *p, const char *path)
{
	FILE *f = fopen(path, "w");
	int r;

	if (!f)
		return INTERNAL;
	fprintf(f, "%s#line 1 \"%s\"\n%s%s", before, p->name, p->text, after);
	write_kernels(f, p->text, "__global__ ");
	/* A macro of the library's own (emit_device.c). */
	write_kernels(f, p->text, "KERNEL ");
	r = ferror(f) ? INTERNAL : OK;
	return fclose(f) ? INTERNAL : r;
}

static char *read_all(const char *path, size_t *size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *bytes;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	bytes = calloc(1, (size_t)st.st_size + 1);
	if (bytes && read(fd, bytes, (size_t)st.st_size) != st.st_size) {
		free(bytes);
		return NULL;
	}
	*size = (size_t)st.st_size;
	return bytes;
}

/* Writes the compiler's output into a file. */
static int run_compiler(const char *const *arguments, const char *log)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status, r;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 2, log,
					 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	r = posix_spawnp(&pid, arguments[0], &actions, NULL,
			 (char *const *)arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r || waitpid(pid, &status, 0) != pid)
		return INTERNAL;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? OK : COMPILATION;
}

static int compile_in(struct program *p, const char *dir, int n,
		      const char *const *options)
{
	const char *all[OPTIONS_MAX] = { "c++",
					 "-std=c++17",
					 "-O1",
					 "-fPIC",
					 "-shared",
					 "-fno-math-errno",
					 "-w",
					 "-fvisibility=hidden",
					 "-ffp-contract=off" };
	char source[64], object[64], log[64];
	size_t used = 9, size = 0;
	int r;

	snprintf(source, sizeof(source), "%s/kernels.cc", dir);
	snprintf(object, sizeof(object), "%s/kernels.so", dir);
	snprintf(log, sizeof(log), "%s/log", dir);
	for (int i = 0; i < n && used < OPTIONS_MAX - 4; i++) {
		if (!strncmp(options[i], "-D", 2) ||
		    !strncmp(options[i], "-I", 2))
			all[used++] = options[i];
	}
	all[used++] = "-o";
	all[used++] = object;
	all[used++] = source;
	r = write_source(p, source);
	if (!r)
		r = run_compiler(all, log);
	p->log = read_all(log, &size);
	p->object = r ? NULL : read_all(object, &p->size);
	unlink(source);
	unlink(object);
	unlink(log);
	return r || p->object ? r : INTERNAL;
}

/* --- NVRTC --- */

EXPORT int nvrtcVersion(int *major, int *minor)
{
	*major = 12;
	*minor = 4;
	return OK;
}

EXPORT const char *nvrtcGetErrorString(int code)
{
	return code == OK	     ? "no error"
	       : code == COMPILATION ? "compilation failed"
				     : "something else";
}

EXPORT int nvrtcGetNumSupportedArchs(int *n)
{
	*n = 3;
	return OK;
}

EXPORT int nvrtcGetSupportedArchs(int *out)
{
	memcpy(out, (int[]){ 70, 80, 90 }, 3 * sizeof(*out));
	return OK;
}

EXPORT int nvrtcCreateProgram(struct program **out, const char *text,
			      const char *name, int num_headers,
			      const char *const *headers,
			      const char *const *names)
{
	(void)headers;
	(void)names;
	if (num_headers)
		return INVALID_INPUT;
	*out = calloc(1, sizeof(**out));
	(*out)->text = strdup(text);
	(*out)->name = strdup(name ? name : "default_program");
	return OK;
}

EXPORT int nvrtcDestroyProgram(struct program **p)
{
	free((*p)->text);
	free((*p)->name);
	free((*p)->log);
	free((*p)->object);
	free(steal(*p));
	return OK;
}

EXPORT int nvrtcCompileProgram(struct program *p, int n,
			       const char *const *options)
{
	char dir[] = "/tmp/beton-standin-XXXXXX";
	int r;

	if (!mkdtemp(dir))
		return INTERNAL;
	r = compile_in(p, dir, n, options);
	rmdir(dir);
	return r;
}

/* The size includes the zero at its end. */
EXPORT int nvrtcGetProgramLogSize(struct program *p, size_t *size)
{
	*size = p->log ? strlen(p->log) + 1 : 1;
	return OK;
}

EXPORT int nvrtcGetProgramLog(struct program *p, char *out)
{
	strcpy(out, p->log ? p->log : "");
	return OK;
}

EXPORT int nvrtcGetCUBINSize(struct program *p, size_t *size)
{
	*size = p->size;
	return OK;
}

EXPORT int nvrtcGetCUBIN(struct program *p, char *out)
{
	memcpy(out, p->object, p->size);
	return OK;
}

EXPORT int nvrtcGetPTXSize(struct program *p, size_t *size)
{
	return nvrtcGetCUBINSize(p, size);
}

EXPORT int nvrtcGetPTX(struct program *p, char *out)
{
	return nvrtcGetCUBIN(p, out);
}
