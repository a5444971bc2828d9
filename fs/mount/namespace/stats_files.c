/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .betonfs/stats.json, metrics and jobs/: statistics of the mount. If
 * there are several datasets, each one has its own. A text is written when
 * its file is opened, so stat(2) reports the size 0, as in /proc.
 */
#include "fs/mount/namespace/stats_files.h"

#include <string.h>
#include <time.h>

#include "fs/base/util/name.h"
#include "fs/mount/namespace/text_file.h"

static const char suffix[] = ".json";

enum { JOB_FILE_SIZE = NAME_ESCAPED * JOBS_NAME_SIZE + sizeof(suffix) + 2 };

static const char *directory_of(const void *arg, const struct dataset *ds)
{
	const struct ns *ns = arg;

	for (uint32_t i = 0; i < ns->num_trees; i++) {
		if (ns->trees[i].ds == ds)
			return ns->trees[i].name;
	}
	return "";
}

void ns_stats_open(struct ns *ns, const struct ns_options *options)
{
	ns->stats = (struct stats){
		.engine = options->engine,
		.jobs = options->jobs,
		.rings = options->rings,
		.mountpoint = options->mountpoint,
		.started = stats_now(),
		.directory_of = directory_of,
		.arg = ns,
	};
}

/* --- files --- */

/* The time of the last change is always now. */
int ns_stats_attr(struct ns *ns, const struct ns_object *object,
		  struct ns_entry *out)
{
	(void)ns;
	(void)object;
	out->may_change = true;
	clock_gettime(CLOCK_REALTIME, &out->time);
	return 0;
}

int ns_stats_open_file(struct ns *ns, const struct ns_object *object,
		       struct ns_file *out)
{
	const struct stats_subject subject = { object->dataset,
					       ns_dataset(ns, object) };
	char *text;
	int r;

	if (object->kind == NS_JOB)
		r = stats_job(&ns->stats, &subject, object->index, &text);
	else if (object->index == NS_STATS)
		r = stats_json(&ns->stats, &subject, &text);
	else
		r = stats_metrics(&ns->stats, &subject, &text);
	return r ? r : ns_snapshot(text, out);
}

/* --- jobs/ --- */

/* A new time makes the kernel drop a listing that it has cached. */
int ns_jobs_attr(struct ns *ns, const struct ns_object *object,
		 struct ns_entry *out)
{
	out->may_change = true;
	out->time = jobs_changed(ns->stats.jobs, object->dataset);
	return 0;
}

/* Advances to the job with the next number. */
static bool next_job(struct ns *ns, const struct ns_object *dir,
		     struct jobs_entry *job)
{
	return jobs_list(ns->stats.jobs, dir->dataset, job->number + 1, job, 1);
}

static void file_name(const struct jobs_entry *job, char out[JOB_FILE_SIZE])
{
	name_escape(job->name, out);
	strcat(out, suffix);
}

int ns_jobs_lookup(struct ns *ns, const struct ns_object *dir, const char *name,
		   struct ns_entry *out)
{
	char file[JOB_FILE_SIZE];
	struct jobs_entry job = { .number = 0 };
	struct ns_object object;

	out->may_change = true;
	while (next_job(ns, dir, &job)) {
		file_name(&job, file);
		if (strcmp(file, name))
			continue;
		object = ns_make(dir, NS_JOB, 0, job.number);
		return ns_attr(ns, &object, out);
	}
	return -ENOENT;
}

int ns_jobs_list(struct ns *ns, const struct ns_object *dir,
		 const struct ns_listing *listing)
{
	struct jobs_entry job = { .number = listing->first };
	char file[JOB_FILE_SIZE];
	struct ns_object object;
	struct ns_entry entry;

	while (next_job(ns, dir, &job)) {
		file_name(&job, file);
		object = ns_make(dir, NS_JOB, 0, job.number);
		if (ns_attr(ns, &object, &entry) ||
		    !ns_emit_entry(listing, job.number, file, &entry))
			break;
	}
	return 0;
}

static int job_attr(struct ns *ns, const struct ns_object *object,
		    struct ns_entry *out)
{
	struct jobs_entry job;

	if (!jobs_list(ns->stats.jobs, object->dataset, object->index, &job,
		       1) ||
	    job.number != object->index)
		return -ESTALE;
	return ns_stats_attr(ns, object, out);
}

static struct ns_object job_parent(struct ns *ns,
				   const struct ns_object *object)
{
	(void)ns;
	return ns_make(object, NS_FIXED, 0, NS_JOBS);
}

const struct ns_row ns_job_row = {
	.type = S_IFREG,
	.attr = job_attr,
	.open = ns_stats_open_file,
	.parent = job_parent,
};
