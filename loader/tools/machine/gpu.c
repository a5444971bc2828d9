/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/machine/gpu.h"

#include <stdint.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/library.h"

/* Constants of nvml.h, which are stable. */
enum { CLOCK_SM = 1 };

/* Power cap, thermal slow-downs of soft- and hardware, power brake. */
#define SLOWED (0x4ULL | 0x20ULL | 0x40ULL | 0x80ULL)

typedef struct nvml_device *device;

struct utilization {
	unsigned gpu, memory;
};

struct amount {
	unsigned long long total, unused, used;
};

struct functions {
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *n);
	int (*handle)(unsigned i, device *out);
	int (*name)(device d, char *out, unsigned size);
	int (*utilization)(device d, struct utilization *out);
	int (*memory)(device d, struct amount *out);
	int (*clock)(device d, int which, unsigned *out);
	int (*clock_max)(device d, int which, unsigned *out);
	int (*state)(device d, int *out);
	int (*link)(device d, unsigned *out);
	int (*link_max)(device d, unsigned *out);
	int (*width)(device d, unsigned *out);
	int (*width_max)(device d, unsigned *out);
	int (*slowed)(device d, unsigned long long *out);
};

#define AT(member) offsetof(struct functions, member)

static const struct library_symbol symbols[] = {
	{ "nvmlInit_v2", AT(init), true },
	{ "nvmlShutdown", AT(shutdown), true },
	{ "nvmlDeviceGetCount_v2", AT(count), true },
	{ "nvmlDeviceGetHandleByIndex_v2", AT(handle), true },
	{ "nvmlDeviceGetName", AT(name), true },
	{ "nvmlDeviceGetUtilizationRates", AT(utilization), true },
	{ "nvmlDeviceGetMemoryInfo", AT(memory), true },
	{ "nvmlDeviceGetClockInfo", AT(clock), true },
	{ "nvmlDeviceGetMaxClockInfo", AT(clock_max), true },
	{ "nvmlDeviceGetPerformanceState", AT(state), true },
	{ "nvmlDeviceGetCurrPcieLinkGeneration", AT(link), true },
	{ "nvmlDeviceGetMaxPcieLinkGeneration", AT(link_max), true },
	{ "nvmlDeviceGetCurrPcieLinkWidth", AT(width), true },
	{ "nvmlDeviceGetMaxPcieLinkWidth", AT(width_max), true },
	{ "nvmlDeviceGetCurrentClocksThrottleReasons", AT(slowed), true },
};

static int number(int (*get)(device, unsigned *), device d)
{
	unsigned n;

	return !get(d, &n) && n < INT32_MAX ? (int)n : -1;
}

static void read_one(const struct functions *f, device d,
		     struct machine_gpu *out)
{
	struct utilization busy;
	struct amount memory;
	unsigned n;

	*out = (struct machine_gpu){
		.busy = -1, .memory_used = -1, .clock = -1, .clock_max = -1
	};
	if (f->name(d, out->name, sizeof(out->name)))
		out->name[0] = '\0';
	out->name[sizeof(out->name) - 1] = '\0';
	if (!f->utilization(d, &busy) && busy.gpu <= 100)
		out->busy = (int)busy.gpu;
	if (!f->memory(d, &memory) && memory.total &&
	    memory.used <= memory.total)
		out->memory_used = (int)(100.0 * (double)memory.used /
					 (double)memory.total);
	if (!f->clock(d, CLOCK_SM, &n))
		out->clock = (int)n;
	if (!f->clock_max(d, CLOCK_SM, &n))
		out->clock_max = (int)n;
	if (f->state(d, &out->state))
		out->state = -1;
	out->link = number(f->link, d);
	out->link_max = number(f->link_max, d);
	out->width = number(f->width, d);
	out->width_max = number(f->width_max, d);
	if (f->slowed(d, &out->slowed))
		out->slowed = 0;
}

static size_t read_all(const struct functions *f, struct machine_gpu *out,
		       size_t max)
{
	unsigned n = 0;
	size_t found = 0;
	device d;

	if (f->count(&n))
		return 0;
	for (unsigned i = 0; i < n && found < max; i++) {
		if (!f->handle(i, &d))
			read_one(f, d, &out[found++]);
	}
	return found;
}

size_t machine_gpu_read(struct machine_gpu *out, size_t max)
{
	const char *name = secure_getenv("BETON_NVML_LIBRARY");
	void *library =
		library_open(name && *name ? name : "libnvidia-ml.so.1", false);
	struct functions f;
	size_t n = 0;

	if (!library)
		return 0;
	if (!library_fill(library, symbols, ARRAY_LEN(symbols), &f) &&
	    !f.init()) {
		n = read_all(&f, out, max);
		f.shutdown();
	}
	library_close(library);
	return n;
}

int machine_gpu_is_slowed(const struct machine_gpu *gpu)
{
	return (gpu->slowed & SLOWED) != 0;
}
