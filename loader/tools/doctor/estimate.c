/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/estimate.h"

#include <math.h>
#include <string.h>

/* If the first epoch from the disk takes this long, it is the bottleneck. */
#define FIRST_EPOCH_S 600
/* If reads are no faster than the disk and use little CPU time, they wait for
   it. */
#define WAITING_CORES 0.5
#define WAITING_RATE 2.0
/* A trainer whose batches are ready for a smaller share of its time waits. */
#define TRAINER_READY 0.9

static void model_cpus(struct evidence *e)
{
	const struct figure *l = e->ladder;
	struct model *m = &e->model;
	double all = l[RUNG_ALL].cpu_us;

	/* Clamp differences between runs at 0, because noise may make them
	   negative. */
	m->read_us = l[RUNG_READ].known ? fmin(l[RUNG_READ].cpu_us, all) : 0;
	m->decode_us =
		l[RUNG_DECODE].known
			? fmax(fmin(l[RUNG_DECODE].cpu_us, all) - m->read_us, 0)
			: 0;
	m->transform_us = fmax(all - m->read_us - m->decode_us, 0);
	m->cores = machine_cpu_cores(&e->cpu);
	m->memory_rate = e->memory_rate;
}

static void model_disk(struct evidence *e)
{
	const struct figure *read = &e->ladder[RUNG_READ];
	struct model *m = &e->model;
	double bytes = m->samples > 0 ? (double)e->file_size / m->samples : 0;
	double cores = 1e-6 * read->rate * read->cpu_us;
	bool random = !strcmp(e->order, "random");

	m->disk_bytes = bytes;
	m->disk_rate = random ? e->small.bytes : e->large.bytes;
	m->room = e->cache_size ? (double)e->cache_size
				: (double)e->memory.size.available;
	/* A disk tier keeps samples, as memory does. */
	m->room += e->network.tier_stored;
	m->batch_bytes = read->bytes;
	/* This rung reads every byte, while the whole pipeline may read
	   fewer. */
	m->delivery_rate =
		fmax(read->rate, e->ladder[RUNG_ALL].rate) * read->bytes;
	/* Reads wait although the same bytes were read before: nothing is
	   cached, and the figure is that of the disk. */
	if (read->known && m->disk_rate > 0 && !e->network.is_copied &&
	    cores < WAITING_CORES &&
	    read->rate * bytes < WAITING_RATE * m->disk_rate) {
		m->delivery_rate = 0;
		/* Longer than the probe: some devices are fast at first. */
		m->disk_rate = fmin(m->disk_rate, read->rate * bytes);
		if (!e->cache_size)
			m->room = 0;
	}
	if (e->disk.resident >= 0 && e->disk.resident < 0.5 &&
	    m->disk_rate > 0 &&
	    (double)e->file_size / m->disk_rate > FIRST_EPOCH_S)
		m->first_epoch = true;
}

void ladder_model(struct evidence *e)
{
	struct figure *cold = &e->ladder[RUNG_COLD];
	struct model *m = &e->model;

	model_cpus(e);
	model_disk(e);
	if (e->target > 0)
		m->trainer_rate = e->target;
	if (m->disk_rate > 0 && m->disk_bytes > 0)
		*cold = (struct figure){
			.known = true,
			.rate = fmin(m->disk_rate / m->disk_bytes,
				     e->ladder[RUNG_READ].known
					     ? e->ladder[RUNG_READ].rate
					     : INFINITY),
			.cpu_us = m->read_us,
			.bytes = m->disk_bytes,
		};
	if (!m->first_epoch && m->room > 0 && model_misses(m) <= 0 &&
	    e->disk.resident >= 0 && e->disk.resident < 0.9 && cold->known &&
	    cold->rate < model_data_rate(m))
		doctor_note(
			e,
			"the first epoch reads the %s at %.0f samples/s; later epochs read memory",
			e->network.is_remote ? "network" : "disk", cold->rate);
	if (e->pinned && e->memory.memlock < e->pinned)
		doctor_note(
			e,
			"RLIMIT_MEMLOCK is %llu KB, but batches for the GPU need %llu KB: if the driver refuses to pin them, raise the limit (ulimit -l)",
			(unsigned long long)(e->memory.memlock >> 10),
			(unsigned long long)(e->pinned >> 10));
}

/* If a trainer waits for data, and memory would have it only after this epoch,
   the epoch is the first one. */
static bool waits_for_network(const struct evidence *e)
{
	double ready = 1;

	for (size_t i = 0; i < e->num_ranks; i++)
		ready = fmin(ready, e->ranks[i].ready);
	return e->network.known && e->disk.resident < 0.5 &&
	       ready < TRAINER_READY;
}

void watch_model(struct evidence *e)
{
	struct watch *w = &e->watch;
	struct model *m = &e->model;

	if (!w->known)
		return;
	/* The CPU time of its loader, divided by the cost of a sample, gives
	   the rate. */
	if (w->rate <= 0 && w->loader_cores > 0.01 && model_cpu_us(m) > 0) {
		w->rate = 1e6 * w->loader_cores / model_cpu_us(m);
		w->rate_is_guess = true;
	}
	if (waits_for_network(e))
		m->first_epoch = true;
	m->own = fmin(w->main_cores + w->other_cores, m->cores);
	if (w->own_rate > 0)
		m->trainer_rate = w->own_rate;
	else if (w->rate > 0 && w->rate * 1.25 < model_data_rate(m))
		m->trainer_rate = w->rate;
}
