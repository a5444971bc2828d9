/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/facts.h"

void facts_of(const struct diagnosis *d, struct facts *out)
{
	const struct evidence *e = d->evidence;
	bool has_rate = e->watch.rate > 0;

	*out = (struct facts){
		.d = d,
		.e = *e,
		.verdict = d->verdict,
		.cores = machine_cpu_cores(&e->cpu),
		.misses = model_misses(&e->model),
		.latency_ms = 1e3 * e->network.latency_s,
		/* No limit is UINT64_MAX, which JSON's integers cannot hold. */
		.memlock = e->memory.memlock >> 1,
		.files = e->memory.files >> 1,
		.is_limited = e->cpu.quota > 0,
		.is_measured = has_rate && !e->watch.rate_is_guess,
		.is_guessed = has_rate && e->watch.rate_is_guess,
		.has_constant_rate = e->watch.own_rate > 0,
		.has_gpu_busy = e->watch.gpu_busy >= 0,
	};
}

#define BOTH(format) .text = (format), .html = (format)
#define OF(member) FACT_AT(struct facts, member)
#define IF(member) .known = offsetof(struct facts, member)

const struct fact facts_head[] = {
	{ "sentence", OF(verdict.text) },
	{ "cause", OF(verdict.cause) },
	{ "path", OF(e.path), .text = "dataset   %s",
	  .html = "<code>%s</code>" },
	{ "spec", OF(e.spec) },
	{ "source", OF(e.source) },
	{ "delivery", OF(e.delivery) },
	{ "jit", OF(e.jit) },
	{ "samples", OF(e.model.samples), BOTH(", %.0f samples") },
	{ "seconds", OF(e.seconds) },
	{ "measured_samples_per_s", OF(e.ladder[RUNG_ALL].rate) },
	FACT_LAST,
};

const struct fact facts_cpu[] = {
	{ "online", OF(e.cpu.online), BOTH("%.0f CPUs") },
	{ "allowed", OF(e.cpu.allowed), BOTH(", %.0f allowed") },
	{ NULL, OF(cores), BOTH(", %.1f cores") },
	{ "quota", OF(e.cpu.quota) },
	{ "quota_of", OF(e.cpu.quota_of) },
	{ NULL, OF(e.cpu.quota_of), .text = " by the quota of %s",
	  IF(is_limited) },
	{ "nodes", OF(e.cpu.nodes) },
	{ "nodes_used", OF(e.cpu.nodes_used) },
	{ "mhz", OF(e.cpu.mhz) },
	{ "mhz_max", OF(e.cpu.mhz_max) },
	{ "governor", OF(e.cpu.governor) },
	FACT_LAST,
};

/* JSON has them in the object of the CPUs. */
const struct fact facts_others[] = {
	{ "others_idle", OF(e.others_idle),
	  .text = "used %.2f cores before the pipeline ran" },
	{ "others", OF(e.others), .text = ", %.2f while it ran",
	  .html = "; other processes used %.2f cores" },
	{ "stolen", OF(e.stolen), .text = "; the hypervisor took %.2f" },
	{ "throttled", OF(e.throttled), .unit = FACT_PERCENT,
	  .text = "; a quota throttled %.0f %% of periods" },
	FACT_LAST,
};

const struct fact facts_memory[] = {
	{ "total", OF(e.memory.size.total) },
	{ "available", OF(e.memory.size.available), .unit = FACT_GIGA,
	  .text = ", %.1f GB free", .html = "; %.1f GB of memory free" },
	{ "why", OF(e.memory.size.why), .text = " (%s)" },
	{ "bytes_per_s", OF(e.memory_rate), .unit = FACT_GIGA,
	  .html = "; memory copies at %.1f GB/s" },
	{ "memlock", OF(memlock) },
	{ "nofile", OF(files) },
	FACT_LAST,
};

const struct fact facts_disk[] = {
	{ NULL, OF(e.file_size), .unit = FACT_MEGA, BOTH(", %.1f MB") },
	{ NULL, OF(e.disk.source), BOTH(", on %s") },
	{ "type", OF(e.disk.type), BOTH(" (%s)") },
	{ "source", OF(e.disk.source) },
	{ "network", OF(e.disk.network), .text = ", over the network" },
	{ "rotates", OF(e.disk.rotates) },
	{ "size", OF(e.file_size) },
	{ "resident", OF(e.disk.resident) },
	{ "small_bytes_per_s", OF(e.small.bytes) },
	{ "small_reads_per_s", OF(e.small.reads) },
	{ "small_latency_s", OF(e.small.latency_s) },
	{ "large_bytes_per_s", OF(e.large.bytes) },
	{ "misses", OF(misses) },
	{ "room", OF(e.model.room) },
	FACT_LAST,
};

/* Only of a dataset behind a URL. */
const struct fact facts_network[] = {
	{ "bytes_per_s", OF(e.network.rate), .unit = FACT_MEGA,
	  BOTH("%.1f MB/s") },
	{ "latency_s", OF(e.network.latency_s), .unit = FACT_ONE },
	{ NULL, OF(latency_ms), BOTH(", %.1f ms to the first byte") },
	{ "first_byte_p50_s", OF(e.network.p50_s) },
	{ "first_byte_p99_s", OF(e.network.p99_s) },
	{ "in_flight", OF(e.network.in_flight), BOTH(", %.1f") },
	{ "depth", OF(e.network.depth), BOTH(" of %.1f requests in flight") },
	{ "waiting", OF(e.network.waiting) },
	{ "request_bytes", OF(e.network.request_bytes) },
	{ "requests", OF(e.network.requests) },
	{ "retries", OF(e.network.retries), BOTH(", %.0f retries") },
	{ "throttled", OF(e.network.throttled), BOTH(", %.0f throttled") },
	{ "is_out", OF(e.network.is_out),
	  BOTH(", the server does not answer") },
	{ "tier_size_bytes", OF(e.network.tier_size) },
	{ "tier_stored_bytes", OF(e.network.tier_stored) },
	FACT_LAST,
};

const struct fact facts_watch[] = {
	{ "seconds", OF(e.watch.seconds) },
	{ "main_busy", OF(e.watch.main_busy), .unit = FACT_PERCENT,
	  .text = "main thread %.0f %% busy",
	  .html = "main thread busy %.0f %%" },
	{ "loader_cores", OF(e.watch.loader_cores),
	  BOTH(", loader %.2f cores") },
	{ "other_cores", OF(e.watch.other_cores),
	  .text = ", other threads %.2f" },
	{ "samples_per_s", OF(e.watch.rate), .html = ", %.0f samples/s" },
	{ NULL, OF(e.watch.rate), .text = ", %.0f samples/s", IF(is_measured) },
	{ NULL, OF(e.watch.rate), .text = ", about %.0f samples/s",
	  IF(is_guessed) },
	{ "is_guess", OF(e.watch.rate_is_guess) },
	{ "constant_samples_per_s", OF(e.watch.own_rate) },
	{ NULL, OF(e.watch.own_rate), .text = ", %.0f with synthetic batches",
	  IF(has_constant_rate) },
	{ "constant_main_busy", OF(e.watch.main_busy_alone) },
	{ "gpu_busy", OF(e.watch.gpu_busy) },
	{ NULL, OF(e.watch.gpu_busy), .text = ", GPU %.0f %% busy",
	  IF(has_gpu_busy) },
	FACT_LAST,
};
#undef OF
#undef IF

#define OF(member) FACT_AT(struct machine_gpu, member)
const struct fact facts_machine_gpu[] = {
	{ "name", OF(name), .text = "%s" },
	{ "busy", OF(busy), .text = ", busy %.0f %%" },
	{ "memory_used", OF(memory_used) },
	{ "clock", OF(clock), .text = ", %.0f" },
	{ "clock_max", OF(clock_max), .text = " of %.0f MHz" },
	{ "p_state", OF(state), .text = ", P%.0f" },
	{ "link", OF(link), .text = ", PCIe %.0f" },
	{ "link_max", OF(link_max) },
	{ "width", OF(width), .text = " x%.0f" },
	{ NULL, OF(link_max), .text = " of %.0f" },
	{ "width_max", OF(width_max), .text = " x%.0f" },
	FACT_LAST,
};
#undef OF

#define OF(member) FACT_AT(struct rank_seen, member)
const struct fact facts_rank_seen[] = {
	{ "rank", OF(rank), .text = "%.0f" },
	{ "batches_per_s", OF(rate), .text = ": %.1f batches/s" },
	{ "ready", OF(ready), .unit = FACT_PERCENT, .text = ", %.0f %% ready" },
	FACT_LAST,
};
#undef OF

#define OF(member) FACT_AT(struct figure, member)
const struct fact facts_figure[] = {
	{ "samples_per_s", OF(rate), .text = " %10.0f", .title = "samples/s",
	  .width = 10 },
	{ "spread", OF(spread), .unit = FACT_HALF, .text = " %9.0f",
	  .title = "+-", .width = 9 },
	{ "cpu_us_per_sample", OF(cpu_us), .text = " %15.1f",
	  .title = "CPU us/sample", .width = 15 },
	{ "bytes_per_sample", OF(bytes) },
	{ "runs", OF(runs) },
	FACT_LAST,
};
#undef OF

#define OF(member) FACT_AT(struct stage_share, member)
const struct fact facts_stage_share[] = {
	{ "name", OF(name), .text = "%-12s" },
	{ "cpu_us_per_sample", OF(us) },
	{ "share", OF(share), .unit = FACT_PERCENT, .text = " %5.1f %% " },
	FACT_LAST,
};
#undef OF

#define OF(member) FACT_AT(struct fix, member)
const struct fact facts_fix[] = {
	{ NULL, OF(gain), .text = "x%.2f",
	  .html = "<tr><td class=\"n\">&times; %.2f</td>" },
	{ "option", OF(option), .text = "  %s\n",
	  .html = "<td><code>%s</code>" },
	{ "predicted_gain", OF(gain) },
	{ "why", OF(why), .text = "           %s\n",
	  .html = "<br><small>%s</small></td>" },
	{ "cost", OF(cost), .text = "           cost: %s\n",
	  .html = "<td>%s</td></tr>\n" },
	{ "setting", OF(setting) },
	FACT_LAST,
};
#undef OF
