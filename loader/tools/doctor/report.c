/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/report.h"

#include <math.h>
#include <string.h>

#include "fs/base/util/bytes.h"

enum { BAR = 40 };

static const struct {
	const char *name;
	const char *key; /* in JSON */
} rungs[RUNGS] = {
	[RUNG_CONSTANT] = { "constant batch", "constant" },
	[RUNG_ALL] = { "everything", "all" },
	[RUNG_TRANSFORM] = { "no upload", "no_upload" },
	[RUNG_DECODE] = { "no transforms", "no_transform" },
	[RUNG_READ] = { "no decoding", "no_decode" },
	[RUNG_COLD] = { "cold reads", "cold" },
};

static const char *const terms[TERMS] = {
	[TERM_DISK] = "disk",	    [TERM_DELIVERY] = "delivery",
	[TERM_CPU] = "cpus",	    [TERM_WORKERS] = "workers",
	[TERM_MEMORY] = "memory",   [TERM_UPLOAD] = "upload",
	[TERM_TRAINER] = "trainer",
};

const char *report_changes(unsigned changes)
{
	static const char *const names[] = {
		[FIX_CHANGES_ORDER] = "order",
		[FIX_CHANGES_PIXELS] = "pixels",
		[FIX_CHANGES_ORDER | FIX_CHANGES_PIXELS] = "order,pixels",
	};

	return changes && changes < ARRAY_LEN(names) ? names[changes] : "";
}

const char *report_rung(enum rung rung)
{
	return rungs[rung].name;
}

const char *report_rung_key(enum rung rung)
{
	return rungs[rung].key;
}

const char *report_term(enum term term)
{
	return terms[term];
}

void report_diagnose(const struct evidence *e, struct diagnosis *out)
{
	out->evidence = e;
	verdict_find(e, &out->verdict);
	out->num_fixes = fix_list(e, out->fixes, FIXES_MAX);
}

size_t report_shares(const struct evidence *e, struct stage_share *out)
{
	const struct model *m = &e->model;
	double all = model_cpu_us(m);
	const struct stage_share shares[SHARES_MAX] = {
		{ "read", m->read_us, 0 },
		{ "decode", m->decode_us, 0 },
		{ "transform", m->transform_us, 0 },
	};

	for (size_t i = 0; i < SHARES_MAX; i++) {
		out[i] = shares[i];
		out[i].share = all > 0 ? out[i].us / all : 0;
	}
	return SHARES_MAX;
}

static void print_bar(double share, FILE *out)
{
	int n = (int)lround(fmin(fmax(share, 0), 1) * BAR);

	for (int i = 0; i < BAR; i++)
		fputc(i < n ? '#' : '.', out);
}

static void print_machine(const struct facts *f, FILE *out)
{
	fact_text(out, facts_head, f);
	fact_text(out, facts_disk, f);
	if (f->e.network.known) {
		fprintf(out, "\nnetwork   ");
		fact_text(out, facts_network, f);
	}
	fprintf(out, "\nmachine   ");
	fact_text(out, facts_cpu, f);
	fact_text(out, facts_memory, f);
	fprintf(out, "\nothers    ");
	fact_text(out, facts_others, f);
	fputc('\n', out);
	for (size_t i = 0; i < f->e.num_gpus; i++) {
		fprintf(out, "GPU %zu     ", i);
		fact_text(out, facts_machine_gpu, &f->e.gpus[i]);
		fputc('\n', out);
	}
}

static void print_ladder(const struct evidence *e, FILE *out)
{
	double best = 0;

	for (enum rung r = RUNG_ALL; r < RUNGS; r++)
		best = fmax(best, e->ladder[r].known ? e->ladder[r].rate : 0);
	fprintf(out, "\n%-16s", "one stage less");
	fact_titles(out, facts_figure);
	for (enum rung r = 0; r < RUNGS; r++) {
		const struct figure *f = &e->ladder[r];

		if (!f->known || (r == RUNG_TRANSFORM && !e->on_gpu))
			continue;
		fprintf(out, "%-16s", rungs[r].name);
		fact_text(out, facts_figure, f);
		fputs("  ", out);
		print_bar(best > 0 ? f->rate / best : 0, out);
		fputc('\n', out);
	}
}

static void print_shares(const struct evidence *e, FILE *out)
{
	struct stage_share s[SHARES_MAX];
	size_t n = report_shares(e, s);

	fprintf(out, "\nCPU time per sample, by stage\n");
	for (size_t i = 0; i < n; i++) {
		fact_text(out, facts_stage_share, &s[i]);
		print_bar(s[i].share, out);
		fprintf(out, " %.1f us\n", s[i].us);
	}
}

static void print_ops(const struct evidence *e, FILE *out)
{
	if (e->num_ops)
		fprintf(out,
			"\nwithout one operation          samples/s   CPU us/sample saved\n");
	for (size_t i = 0; i < e->num_ops; i++) {
		const struct left_out *o = &e->ops[i];

		if (o->without.known)
			fprintf(out, "%-28.28s %11.0f %21.1f\n", o->written,
				o->without.rate,
				e->ladder[RUNG_ALL].cpu_us - o->without.cpu_us);
		else
			fprintf(out, "%-28.28s %11s %21s\n", o->written, "-",
				"cannot be removed");
	}
}

/* The rule of thumb is that of SPDL, a thread-based loader: its guide on noisy
   neighbors and its case studies. */
static void print_sweep(const struct evidence *e, FILE *out)
{
	fprintf(out, "\nworkers  ");
	for (size_t i = 0; i < e->num_sweep; i++) {
		if (e->sweep[i].figure.known)
			fprintf(out, "  %u: %.0f/s", e->sweep[i].workers,
				e->sweep[i].figure.rate);
	}
	fprintf(out,
		"  (rule of thumb: 4 to 8; for light work, one per 8 CPUs: %u)\n",
		e->cpu.online >= 8 ? e->cpu.online / 8 : 1);
}

static void print_terms(const struct evidence *e, FILE *out)
{
	enum term least = TERMS;
	double rate = model_rate(&e->model, &least);

	fprintf(out, "limits   ");
	for (enum term t = 0; t < TERMS; t++) {
		double r = model_term(&e->model, t);

		if (isfinite(r))
			fprintf(out, "  %s%s %.0f/s", t == least ? "*" : "",
				terms[t], r);
	}
	if (isfinite(rate))
		fprintf(out, "  (measured: %.0f/s)", e->ladder[RUNG_ALL].rate);
	fputc('\n', out);
}

static void print_watch(const struct facts *f, FILE *out)
{
	if (!f->e.watch.known)
		return;
	fputs("trainer    ", out);
	fact_text(out, facts_watch, f);
	fputc('\n', out);
}

static void print_ranks(const struct evidence *e, FILE *out)
{
	char text[VERDICT_TEXT_SIZE];

	for (size_t i = 0; i < e->num_ranks; i++) {
		fputs(i ? ", " : "ranks      ", out);
		fact_text(out, facts_rank_seen, &e->ranks[i]);
	}
	if (e->num_ranks)
		fputc('\n', out);
	verdict_ranks(e, text, sizeof(text));
	if (*text)
		fprintf(out, "scaling    %s\n", text);
}

static void print_fixes(const struct diagnosis *d, FILE *out)
{
	if (!d->num_fixes)
		fprintf(out,
			"\nThe doctor found no change that makes loading faster.\n");
	else
		fprintf(out, "\nPossible fixes, by predicted gain:\n");
	for (size_t i = 0; i < d->num_fixes; i++) {
		fprintf(out, "%2zu. ", i + 1);
		fact_text(out, facts_fix, &d->fixes[i]);
	}
}

static void print_applied(const struct diagnosis *d, FILE *out)
{
	const struct applied *a = d->applied;
	unsigned written = 0, denied = 0;

	fprintf(out, "\nWritten to %s:\n", a->path);
	for (size_t i = 0; i < d->num_fixes; i++) {
		if (a->fates[i] == APPLY_NONE)
			continue;
		fprintf(out, "%3zu. %s: %s\n", i + 1, d->fixes[i].setting,
			apply_fate_name(a->fates[i]));
		written += a->fates[i] == APPLY_WRITTEN;
		if (a->fates[i] == APPLY_NOT_ALLOWED)
			denied |= d->fixes[i].changes;
	}
	if (!written)
		fprintf(out, "  nothing: no setting gains anything\n");
	else
		fprintf(out,
			"To use it, set BETON_SETTINGS=%s for a loader, or -o settings=%s for a mount.\n",
			a->path, a->path);
	if (denied)
		fprintf(out,
			"To also write settings that change %s, use --allow %s\n",
			report_changes(denied), report_changes(denied));
}

void report_text(const struct diagnosis *d, FILE *out)
{
	const struct evidence *e = d->evidence;
	struct facts f;

	facts_of(d, &f);
	print_machine(&f, out);
	print_ladder(e, out);
	print_shares(e, out);
	print_ops(e, out);
	print_sweep(e, out);
	print_terms(e, out);
	print_watch(&f, out);
	print_ranks(e, out);
	for (size_t i = 0; i < e->num_notes; i++)
		fprintf(out, "note       %s\n", e->notes[i]);
	fprintf(out, "\nVERDICT: %s%s%s%s: %s.\n", d->verdict.name,
		*d->verdict.cause ? " (" : "", d->verdict.cause,
		*d->verdict.cause ? ")" : "", d->verdict.text);
	print_fixes(d, out);
	if (d->applied)
		print_applied(d, out);
}
