/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/model.h"

#include <math.h>

/* If others use a quarter of the CPUs, everything takes a third longer. */
#define NOISY 0.25

/* Samples per second, if a resource provides `work` per second and a sample
   needs `each`. */
static double quotient(double work, double each)
{
	return work > 0 && each > 0 ? work / each : INFINITY;
}

bool model_is_noisy(const struct model *m)
{
	return m->others >= NOISY * m->cores;
}

double model_misses(const struct model *m)
{
	double bytes = m->samples * m->disk_bytes;

	if (m->first_epoch)
		return 1;
	/* Cached bytes hit in every epoch; the others miss in every epoch. */
	return bytes > m->room ? 1 - m->room / bytes : 0;
}

double model_cpu_us(const struct model *m)
{
	return m->read_us + m->decode_us + m->transform_us;
}

double model_cores(const struct model *m)
{
	double left = m->cores - m->others - m->own;

	/* The scheduler gives every process a share. */
	return fmax(left, m->cores / 8);
}

static double disk(const struct model *m)
{
	return quotient(m->disk_rate, model_misses(m) * m->disk_bytes);
}

static double delivery(const struct model *m)
{
	return quotient(m->delivery_rate, m->batch_bytes);
}

static double cpu(const struct model *m)
{
	return quotient(1e6 * model_cores(m), model_cpu_us(m));
}

static double workers(const struct model *m)
{
	if (m->workers >= m->cores)
		return INFINITY;
	return quotient(1e6 * m->workers, m->decode_us + m->transform_us);
}

static double memory(const struct model *m)
{
	return quotient(m->memory_rate, m->moved_bytes);
}

static double upload(const struct model *m)
{
	return quotient(m->upload_rate, m->upload_bytes);
}

static double trainer(const struct model *m)
{
	return m->trainer_rate > 0 ? m->trainer_rate : INFINITY;
}

static double (*const terms[TERMS])(const struct model *) = {
	[TERM_DISK] = disk,	  [TERM_DELIVERY] = delivery,
	[TERM_CPU] = cpu,	  [TERM_WORKERS] = workers,
	[TERM_MEMORY] = memory,	  [TERM_UPLOAD] = upload,
	[TERM_TRAINER] = trainer,
};

double model_term(const struct model *m, enum term term)
{
	return terms[term](m);
}

static double least(const struct model *m, enum term end, enum term *which)
{
	double rate = INFINITY, r;

	for (enum term t = 0; t < end; t++) {
		r = terms[t](m);
		if (r >= rate)
			continue;
		rate = r;
		if (which)
			*which = t;
	}
	return rate;
}

double model_rate(const struct model *m, enum term *which)
{
	return least(m, TERMS, which);
}

double model_data_rate(const struct model *m)
{
	return least(m, TERM_TRAINER, NULL);
}
