/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netfs SOURCE MOUNTPOINT MILLISECONDS: the files of a directory, as a server
 * far away has them. Each read takes so long. While SOURCE/.errno contains a
 * number, reads fail with that errno. For ESTALE, this is true only of files
 * that were opened before .errno was written, as on NFS. Runs until it is
 * unmounted.
 */
#define FUSE_USE_VERSION 312
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 256, PATH_SIZE = 4096 };

struct handle {
	int fd;
	int64_t opened_ns;
};

struct far {
	const char *root;
	long delay_ms;
};

static const struct far *far_of(void)
{
	return fuse_get_context()->private_data;
}

static void path_of(const char *path, char *out)
{
	snprintf(out, PATH_SIZE, "%s%s", far_of()->root, path);
}

static int64_t ns_of(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh; /* NOLINT */
}

/* Returns the errno of reads of this handle, or 0. */
static int failure_of(const struct handle *h)
{
	char path[PATH_SIZE], text[16] = "";
	struct stat st;
	int fd, error;

	path_of("/.errno", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	error = atoi(text);
	return error == ESTALE && h->opened_ns > ns_of(&st.st_mtim) ? 0 : error;
}

static void *far_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	conn->max_background = THREADS;
	config->use_ino = 1;
	config->attr_timeout = 0;
	config->entry_timeout = 0;
	return fuse_get_context()->private_data;
}

static int far_getattr(const char *path, struct stat *st,
		       struct fuse_file_info *fi)
{
	char real[PATH_SIZE];

	(void)fi;
	path_of(path, real);
	return stat(real, st) ? -errno : 0;
}

static int far_readdir(const char *path, void *buf, fuse_fill_dir_t fill,
		       off_t off, struct fuse_file_info *fi,
		       enum fuse_readdir_flags flags)
{
	char real[PATH_SIZE];
	struct dirent *e;
	DIR *d;

	(void)off;
	(void)fi;
	(void)flags;
	path_of(path, real);
	d = opendir(real);
	if (!d)
		return -errno;
	while ((e = readdir(d)))
		fill(buf, e->d_name, NULL, 0, 0);
	closedir(d);
	return 0;
}

static int far_open(const char *path, struct fuse_file_info *fi)
{
	struct handle *h = calloc(1, sizeof(*h));
	char real[PATH_SIZE];
	struct timespec now;

	if (!h)
		return -ENOMEM;
	path_of(path, real);
	h->fd = open(real, O_RDONLY | O_CLOEXEC);
	if (h->fd < 0) {
		free(h);
		return -errno;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	h->opened_ns = ns_of(&now);
	fi->fh = (uintptr_t)h;
	return 0;
}

static int far_read(const char *path, char *buf, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	const struct handle *h = handle_of(fi);
	int error = failure_of(h);
	ssize_t n;

	(void)path;
	usleep((useconds_t)far_of()->delay_ms * 1000);
	if (error)
		return -error;
	n = pread(h->fd, buf, size, off);
	return n < 0 ? -errno : (int)n;
}

static int far_release(const char *path, struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);

	(void)path;
	close(h->fd);
	free(h);
	return 0;
}

static const struct fuse_operations operations = {
	.init = far_init,
	.getattr = far_getattr,
	.readdir = far_readdir,
	.open = far_open,
	.read = far_read,
	.release = far_release,
};

int main(int argc, char **argv)
{
	char name[] = "netfs";
	char *args[] = { name };
	struct fuse_args fuse_args = FUSE_ARGS_INIT(1, args);
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	struct far far;
	struct fuse *fuse;
	int r;

	if (argc != 4) {
		fprintf(stderr, "usage: netfs SOURCE MOUNTPOINT MS\n");
		return 2;
	}
	far = (struct far){ argv[1], atol(argv[3]) };
	fuse = fuse_new(&fuse_args, &operations, sizeof(operations), &far);
	if (!fuse || fuse_mount(fuse, argv[2]))
		return 1;
	fuse_set_signal_handlers(fuse_get_session(fuse));
	fuse_loop_cfg_set_max_threads(config, THREADS);
	fuse_loop_cfg_set_idle_threads(config, THREADS);
	r = fuse_loop_mt(fuse, config);
	fuse_unmount(fuse);
	fuse_destroy(fuse);
	fuse_loop_cfg_destroy(config);
	fuse_opt_free_args(&fuse_args);
	return r ? 1 : 0;
}
