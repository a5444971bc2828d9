/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any paths in a mount of one dataset, or of two. The first byte selects the
 * mount and the user; the rest is paths, one a line. Each name on the way is
 * looked up. Objects that exist are listed, opened, read and described, and the
 * harness checks that the answers agree.
 */
#include <errno.h>
#include <sys/mman.h>

#include "fs/base/metrics/jobs.h"
#include "fs/mount/namespace/ns.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/made.h"

enum { SAMPLES = 12, MANY_SAMPLES = 3000, PATHS_MAX = 8, LISTED_MAX = 4 };

struct mount {
	struct ns *ns;
	uid_t user;
};

static struct ns *mounts[2];

/* --- two mounts --- */

static int open_text(const char *text)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (int)strlen(text));
	return fd;
}

static struct jobs *make_jobs(uint32_t datasets)
{
	struct jobs *jobs;
	struct job *job;

	MUST(!jobs_open(datasets, &jobs));
	for (uint32_t i = 0; i < datasets; i++) {
		job = jobs_get(jobs, i, "job a/b\n");
		job_add(job, JOBS_ZEROCOPY, 3, 100);
		jobs_put(&job);
	}
	return jobs;
}

static void open_mounts(void)
{
	const struct ns_owner owner = { .file_mode = 0444, .dir_mode = 0555 };
	struct dataset *few = made_open(SAMPLES, NULL);
	const struct ns_top tops[] = {
		{ .dataset = few, .name = "", .owner = owner, .options = "x" },
		{ .name = "", .owner = owner, .of_all = owner, .options = "" },
		{ .dataset = few,
		  .name = "few",
		  .owner = owner,
		  .options = "" },
		{ .dataset = made_open(MANY_SAMPLES, NULL),
		  .name = "many",
		  .owner = owner,
		  .options = "" },
	};
	char subset[64];
	char *const subsets[] = { subset };
	struct ns_options o = { .num_tops = 1,
				.tops = tops,
				.subsets = subsets,
				.num_subsets = 1,
				.default_spec = "batch=5,drop_last=0",
				.mountpoint = "/mnt" };

	snprintf(subset, sizeof(subset), "few:/proc/self/fd/%d",
		 open_text("3\n1\n4\n1\n5\n"));
	MUST(!engine_open(&(struct engine_options){ .threads = 1 }, &o.engine));
	o.jobs = make_jobs(1);
	MUST(!ns_open(&o, &mounts[0]));
	o.tops = tops + 1;
	o.num_tops = 3;
	o.jobs = make_jobs(3);
	MUST(!ns_open(&o, &mounts[1]));
}

/* --- what is at a path --- */

static bool is_same(const struct ns_object *a, const struct ns_object *b)
{
	return a->kind == b->kind && a->dataset == b->dataset &&
	       a->part == b->part && a->index == b->index;
}

struct listing {
	const struct mount *m;
	const struct ns_object *dir;
	unsigned left;
	uint64_t last;
};

static bool check_name(void *arg, const struct ns_name *name)
{
	struct listing *l = arg;
	struct ns_entry entry;

	MUST(*name->name && strlen(name->name) <= NS_NAME_MAX);
	MUST(!strchr(name->name, '/') && strcmp(name->name, "..") &&
	     strcmp(name->name, "."));
	MUST(name->next > l->last);
	l->last = name->next;
	MUST(!ns_lookup(l->m->ns, l->dir, name->name, l->m->user, &entry));
	MUST(is_same(&entry.object, &name->entry.object));
	return --l->left;
}

static void list(const struct mount *m, const struct ns_object *dir,
		 uint64_t first)
{
	struct listing l = { m, dir, LISTED_MAX, first };
	const struct ns_listing listing = { .first = first,
					    .hint = LISTED_MAX,
					    .with_attr = first & 1,
					    .user = m->user,
					    .emit = check_name,
					    .arg = &l };

	MUST(!ns_list(m->ns, dir, &listing));
}

static void read_file(const struct mount *m, const struct ns_entry *entry)
{
	static uint8_t bytes[5000];
	struct ns_file file;
	uint64_t size;
	ssize_t n;

	MUST(!ns_open_file(m->ns, &entry->object, &file));
	size = file.vfile->size;
	MUST(file.is_snapshot || size == entry->size);
	n = vfile_read(file.vfile, bytes, sizeof(bytes), 0, NULL, NULL);
	MUST(n == (ssize_t)min_u64(size, sizeof(bytes)));
	n = vfile_read(file.vfile, bytes, 9, size - min_u64(size, 9), NULL,
		       NULL);
	MUST(n == (ssize_t)min_u64(size, 9));
	ns_note_file(&file);
	ns_close_file(&file);
}

/* A link leads to a name beside it. */
static struct ns_object follow(const struct mount *m,
			       const struct ns_object *dir,
			       const struct ns_object *link)
{
	char target[SPEC_TEXT_MAX];
	struct ns_entry entry;

	MUST(!ns_readlink(m->ns, link, target));
	MUST(!ns_lookup(m->ns, dir, target, m->user, &entry));
	MUST(entry.object.kind == NS_SPEC);
	return entry.object;
}

static void read_xattrs(const struct mount *m, const struct ns_object *object)
{
	char names[NS_XATTR_MAX], text[NS_XATTR_MAX];
	size_t size, used;

	MUST(!ns_xattr_names(m->ns, object, names, &size));
	for (size_t at = 0; at < size; at += strlen(names + at) + 1)
		MUST(!ns_xattr(m->ns, object, names + at, text, &used));
}

static void look_at(const struct mount *m, const struct ns_object *dir,
		    const struct ns_entry *entry, size_t seed)
{
	const struct ns_object *object = &entry->object;
	const struct ns_object back = ns_object(ns_ino(object));
	struct ns_object parent = ns_parent(m->ns, object);
	struct ns_entry again;
	struct stat st;

	MUST(is_same(object, &back));
	MUST(!ns_attr(m->ns, object, &again) && again.size == entry->size);
	ns_stat_object(m->ns, &parent, &st);
	MUST(S_ISDIR(st.st_mode));
	ns_stat(m->ns, entry, &st);
	read_xattrs(m, object);
	if (S_ISDIR(st.st_mode)) {
		MUST(is_same(&parent, dir));
		list(m, object, 0);
		list(m, object, seed);
	} else if (!S_ISLNK(st.st_mode)) {
		read_file(m, entry);
	}
}

/* The shorter way to a batch leads to the same, or nowhere. */
static int find(const struct mount *m, const struct ns_object *dir,
		const char *name, struct ns_entry *out)
{
	struct ns_object object;
	int fast = ns_batch_lookup(m->ns, dir, name, m->user, &object);
	int r = ns_lookup(m->ns, dir, name, m->user, out);

	MUST(fast ? r || fast == -EINVAL
		  : !r && is_same(&object, &out->object));
	return r;
}

static void walk(const struct mount *m, char *path)
{
	struct ns_object dir = ns_object(NS_ROOT);
	size_t seed = strlen(path);
	struct ns_entry entry;
	char *name;

	while ((name = strsep(&path, "/"))) {
		/* The kernel takes these itself. */
		if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		if (find(m, &dir, name, &entry))
			break;
		look_at(m, &dir, &entry, seed);
		dir = entry.object.kind == NS_SPEC_LINK
			      ? follow(m, &dir, &entry.object)
			      : entry.object;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text, *rest, *path;
	struct mount m;

	if (!size)
		return 0;
	if (!mounts[0])
		open_mounts();
	m = (struct mount){ mounts[data[0] & 1], data[0] >> 1 & 3 };
	rest = text = fuzz_text(data + 1, size - 1);
	for (int i = 0; i < PATHS_MAX && (path = strsep(&rest, "\n")); i++)
		walk(&m, path);
	free(text);
	return 0;
}
