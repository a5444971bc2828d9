/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libnvidia-ml.so.1: one GPU with the state in $STANDIN_NVML,
   "busy clock state link width slowed" of at most 100, 1980, 15, 5, 16. */
#include <stdio.h>
#include <stdlib.h>

/* All of it is what the library exports. */
#pragma GCC visibility push(default)

typedef struct nvml_device *device;

struct gpu {
	unsigned busy, clock;
	int state;
	unsigned link, width;
	unsigned long long slowed;
};

static struct gpu gpu(void)
{
	const char *text = getenv("STANDIN_NVML");
	struct gpu g = { 0, 1980, 0, 5, 16, 0 };

	if (text)
		sscanf(text, "%u %u %d %u %u %llx", &g.busy, &g.clock, &g.state,
		       &g.link, &g.width, &g.slowed);
	return g;
}

int nvmlInit_v2(void)
{
	return 0;
}

int nvmlShutdown(void)
{
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
	*n = 1;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *out)
{
	*out = NULL;
	return i ? 2 : 0;
}

int nvmlDeviceGetName(device d, char *out, unsigned size)
{
	(void)d;
	snprintf(out, size, "Stand-in");
	return 0;
}

int nvmlDeviceGetUtilizationRates(device d, unsigned out[2])
{
	(void)d;
	out[0] = gpu().busy;
	out[1] = 0;
	return 0;
}

int nvmlDeviceGetMemoryInfo(device d, unsigned long long out[3])
{
	(void)d;
	out[0] = 80000;
	out[1] = out[2] = 40000;
	return 0;
}

int nvmlDeviceGetClockInfo(device d, int which, unsigned *out)
{
	(void)d;
	(void)which;
	*out = gpu().clock;
	return 0;
}

int nvmlDeviceGetMaxClockInfo(device d, int which, unsigned *out)
{
	(void)d;
	(void)which;
	*out = 1980;
	return 0;
}

int nvmlDeviceGetPerformanceState(device d, int *out)
{
	(void)d;
	*out = gpu().state;
	return 0;
}

int nvmlDeviceGetCurrPcieLinkGeneration(device d, unsigned *out)
{
	(void)d;
	*out = gpu().link;
	return 0;
}

int nvmlDeviceGetMaxPcieLinkGeneration(device d, unsigned *out)
{
	(void)d;
	*out = 5;
	return 0;
}

int nvmlDeviceGetCurrPcieLinkWidth(device d, unsigned *out)
{
	(void)d;
	*out = gpu().width;
	return 0;
}

int nvmlDeviceGetMaxPcieLinkWidth(device d, unsigned *out)
{
	(void)d;
	*out = 16;
	return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(device d, unsigned long long *out)
{
	(void)d;
	*out = gpu().slowed;
	return 0;
}
