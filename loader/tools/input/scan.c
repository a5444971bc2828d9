/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "loader/tools/input/input.h"
#include "loader/tools/picture/picture.h"

static const size_t NO_PARENT = SIZE_MAX;

/* A directory to list. Directories are listed in the order they are found. */
struct scan_dir {
	char *path;
	size_t parent; /* index, or NO_PARENT */
	dev_t dev;     /* dev and ino are set when it is opened */
	ino_t ino;
};

struct scan_walk {
	struct scan *scan;
	size_t rel; /* offset of paths relative to the source */
	struct scan_dir *dirs;
	size_t num_dirs;
	size_t room;
};

enum entry_kind {
	ENTRY_IGNORED,
	ENTRY_IMAGE,
	ENTRY_DIR,
};

static int out_of_memory(struct scan *s)
{
	log_error(s->log, "out of memory while listing the images");
	return -ENOMEM;
}

/* Makes room in an array for one more element of `size` bytes. */
static int reserve_element(void **array, size_t used, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 64;
	void *p;

	if (used < *room)
		return 0;
	p = reallocarray(*array, more, size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*room = more;
	return 0;
}

/*
 * A link counts as its target. A broken link counts as a file, so that a
 * missing image is noticed.
 */
static int find_kind(int dir, const struct dirent *e, enum entry_kind *out)
{
	unsigned type = e->d_type;
	struct stat st;

	*out = ENTRY_IGNORED;
	if (e->d_name[0] == '.')
		return 0;
	if (type == DT_LNK || type == DT_UNKNOWN) {
		if (!fstatat(dir, e->d_name, &st, 0))
			type = IFTODT(st.st_mode);
		else if (input_is_own_fault(-errno))
			type = DT_REG;
		else
			return -errno;
	}
	if (type == DT_DIR)
		*out = ENTRY_DIR;
	else if (type == DT_REG && picture_has_extension(e->d_name))
		*out = ENTRY_IMAGE;
	return 0;
}

/* --- collecting ---------------------------------------------------------- */

static int add_file(struct scan_walk *w, char *path)
{
	struct scan *s = w->scan;

	if (reserve_element((void **)&s->files, s->num_files, &s->room,
			    sizeof(*s->files)))
		return -ENOMEM;
	s->files[s->num_files++] = (struct scan_file){
		.path = path,
		.source = s->num_sources,
		.rel = (uint32_t)w->rel,
	};
	return 0;
}

static int add_dir(struct scan_walk *w, char *path, size_t parent)
{
	if (reserve_element((void **)&w->dirs, w->num_dirs, &w->room,
			    sizeof(*w->dirs)))
		return -ENOMEM;
	w->dirs[w->num_dirs++] =
		(struct scan_dir){ .path = path, .parent = parent };
	return 0;
}

static int add_class(struct scan *s, const char *name)
{
	char *copy = strdup(name);

	if (!copy || reserve_element((void **)&s->classes, s->num_classes,
				     &s->classes_room, sizeof(*s->classes))) {
		free(copy);
		return -ENOMEM;
	}
	s->classes[s->num_classes++] = copy;
	return 0;
}

static int add_entry(struct scan_walk *w, size_t parent, int dir,
		     const struct dirent *e)
{
	enum entry_kind kind;
	char *path;
	int r = find_kind(dir, e, &kind);

	if (r) {
		log_error(w->scan->log, "%s/%s: %s", w->dirs[parent].path,
			  e->d_name, strerror(-r));
		return r;
	}
	if (kind == ENTRY_IGNORED) {
		w->scan->ignored += strcmp(e->d_name, ".") != 0 &&
				    strcmp(e->d_name, "..") != 0;
		return 0;
	}
	if (text_print(&path, "%s/%s", w->dirs[parent].path, e->d_name))
		return out_of_memory(w->scan);
	r = kind == ENTRY_IMAGE ? add_file(w, path) : add_dir(w, path, parent);
	if (r)
		free(path);
	return r ? out_of_memory(w->scan) : 0;
}

/* Returns whether directory i is one of its own ancestors, through a link. */
static bool is_loop(const struct scan_walk *w, size_t i)
{
	const struct scan_dir *f = &w->dirs[i];

	for (size_t k = f->parent; k != NO_PARENT; k = w->dirs[k].parent) {
		if (w->dirs[k].dev == f->dev && w->dirs[k].ino == f->ino)
			return true;
	}
	return false;
}

static int report_dir(const struct scan_walk *w, size_t i, int error)
{
	log_error(w->scan->log, "%s: cannot list it: %s", w->dirs[i].path,
		  strerror(error));
	return -error;
}

static int read_dir(struct scan_walk *w, size_t i, DIR *dir)
{
	struct dirent *e;
	struct stat st;
	int r = 0;

	if (fstat(dirfd(dir), &st) < 0)
		return report_dir(w, i, errno);
	w->dirs[i].dev = st.st_dev;
	w->dirs[i].ino = st.st_ino;
	if (is_loop(w, i)) {
		w->scan->ignored++;
		return 0;
	}
	/* Each directory right below the source is a class. */
	if (w->dirs[i].parent == 0 &&
	    add_class(w->scan, w->dirs[i].path + w->rel))
		r = out_of_memory(w->scan);
	while (!r) {
		errno = 0;
		e = readdir(dir);
		if (!e)
			return errno ? report_dir(w, i, errno) : 0;
		r = add_entry(w, i, dirfd(dir), e);
		if (w->scan->seeks_one && w->scan->num_files)
			break;
	}
	return r;
}

static int visit_dir(struct scan_walk *w, size_t i)
{
	DIR *dir = opendir(w->dirs[i].path);
	int r = dir ? read_dir(w, i, dir) : report_dir(w, i, errno);

	if (dir)
		closedir(dir);
	return r;
}

int scan_add(struct scan *s, const char *dir)
{
	struct scan_walk w = { .scan = s };
	size_t n = strlen(dir);
	char *path = strdup(dir);
	int r;

	/* "photos/" and "photos" give the same paths; "/" stays. */
	while (path && n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	w.rel = n + 1;
	r = path ? add_dir(&w, path, NO_PARENT) : -ENOMEM;
	if (r) {
		free(path);
		return out_of_memory(s);
	}
	for (size_t i = 0; i < w.num_dirs && !r; i++) {
		if (s->seeks_one && s->num_files)
			break;
		r = visit_dir(&w, i);
	}
	for (size_t i = 0; i < w.num_dirs; i++)
		free(w.dirs[i].path);
	free(w.dirs);
	s->num_sources++;
	return r;
}

bool scan_has_images(const char *dir)
{
	struct scan s = { .seeks_one = true };
	int r = scan_add(&s, dir);
	bool found = r || s.num_files;

	scan_fini(&s);
	return found;
}

/* --- order --------------------------------------------------------------- */

/* strcmp() compares bytes in any locale. */
static int compare_files(const void *a, const void *b)
{
	const struct scan_file *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return strcmp(x->path + x->rel, y->path + y->rel);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_classes(struct scan *s)
{
	size_t n = 0;

	if (s->num_classes)
		qsort(s->classes, s->num_classes, sizeof(*s->classes),
		      compare_names);
	for (size_t i = 0; i < s->num_classes; i++) {
		if (n && strcmp(s->classes[n - 1], s->classes[i]) == 0)
			free(s->classes[i]);
		else
			s->classes[n++] = s->classes[i];
	}
	s->num_classes = n;
}

static int find_label(struct scan *s, struct scan_file *f)
{
	const char *rel = f->path + f->rel, *slash = strchr(rel, '/');
	cleanup_free char *name = strndup(rel, (size_t)(slash - rel));
	char **class;

	if (!name)
		return out_of_memory(s);
	class = bsearch(&name, s->classes, s->num_classes, sizeof(*s->classes),
			compare_names);
	f->label = (uint32_t)(class - s->classes);
	return 0;
}

enum { EMPTY_NAMED = 10 };

/* Warns of classes without images, which still have numbers. */
static int report_empty(struct scan *s)
{
	cleanup_free bool *seen = calloc(s->num_classes, sizeof(*seen));
	size_t n = 0;

	if (!seen)
		return out_of_memory(s);
	for (size_t i = 0; i < s->num_files; i++)
		seen[s->files[i].label] = true;
	for (size_t i = 0; i < s->num_classes; i++) {
		if (!seen[i] && n++ < EMPTY_NAMED)
			log_warning(s->log, "class %zu, '%s', has no images", i,
				    s->classes[i]);
	}
	if (n > EMPTY_NAMED)
		log_warning(s->log, "%zu more classes have no images",
			    n - EMPTY_NAMED);
	return 0;
}

static bool is_stray(const struct scan_file *f)
{
	return !strchr(f->path + f->rel, '/');
}

/* Counts the images that are not in the directory of a class. If most images
   are, the others are likely an oversight, and all images lose their labels. */
static size_t count_strays(const struct scan *s)
{
	const struct scan_file *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < s->num_files; i++) {
		if (!is_stray(&s->files[i]))
			continue;
		first = first ? first : &s->files[i];
		n++;
	}
	if (n && n < s->num_files)
		log_warning(
			s->log,
			"no labels: %zu of %zu images are not in the directory of a class, for example %s: move them into one",
			n, s->num_files, first->path);
	if (n && n == s->num_files && s->num_sources > 1)
		log_warning(
			s->log,
			"no labels: images are directly in the %u sources, for example %s: a class is a directory in a source, so give the directory that contains these sources",
			s->num_sources, first->path);
	return n;
}

int scan_finish(struct scan *s)
{
	size_t strays;
	int r = 0;

	sort_classes(s);
	if (!s->num_files)
		return 0;
	qsort(s->files, s->num_files, sizeof(*s->files), compare_files);
	strays = count_strays(s);
	s->has_labels = !strays;
	for (size_t i = 0; s->has_labels && i < s->num_files && !r; i++)
		r = find_label(s, &s->files[i]);
	return r || !s->has_labels ? r : report_empty(s);
}

void scan_fini(struct scan *s)
{
	for (size_t i = 0; i < s->num_files; i++)
		free(s->files[i].path);
	for (size_t i = 0; i < s->num_classes; i++)
		free(s->classes[i]);
	free(s->files);
	free(s->classes);
}
