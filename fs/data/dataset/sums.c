/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/sums.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fs/base/files/outfile.h"
#include "fs/base/files/read_buffer.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/crc32c.h"
#include "fs/base/util/thread.h"
#include "fs/source/object/open.h"
#include "fs/source/url/url.h"

typedef unsigned long long ull;

enum {
	THREADS_MAX = 64,
	/* Bytes per read of a scan: a multiple of blocks. */
	PIECE = 1 << 20,
	/* Blocks that are read to distinguish a damaged dataset from another.
	 */
	PROBES = 16,
	TAIL_SIZE = 4, /* the CRC of the side file */
};

static const char magic[8] = "betonsum";

#define FILE_SIZE_MAX                                                          \
	(SUMS_HEAD_SIZE + (uint64_t)4 * SUMS_BLOCKS_MAX + TAIL_SIZE)

static uint64_t blocks_of(uint64_t size)
{
	return size / SUMS_BLOCK + !!(size % SUMS_BLOCK);
}

/* --- making --- */

int sums_new(struct sums **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void sums_free(struct sums *s)
{
	if (!s)
		return;
	free(s->crc);
	free(s);
}

/* Makes room for `num` blocks. */
static int reserve(struct sums *s, uint64_t num)
{
	uint64_t room = max_u64(num, min_u64(2 * s->room, SUMS_BLOCKS_MAX));
	uint32_t *crc;

	if (num > SUMS_BLOCKS_MAX)
		return -EFBIG;
	if (num <= s->room)
		return 0;
	crc = realloc(s->crc, room * sizeof(*crc));
	if (!crc)
		return -ENOMEM;
	s->crc = crc;
	s->room = room;
	return 0;
}

int sums_add(struct sums *s, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	size_t some;
	int r;

	for (; n; p += some, n -= some) {
		some = min_u64(n, SUMS_BLOCK - s->size % SUMS_BLOCK);
		r = reserve(s, blocks_of(s->size + some));
		if (r)
			return r;
		if (s->size % SUMS_BLOCK == 0)
			s->crc[s->num++] = 0;
		s->crc[s->num - 1] = crc32c(s->crc[s->num - 1], p, some);
		s->size += some;
	}
	return 0;
}

int sums_join(struct sums *s, const struct sums *more)
{
	int r = s->size % SUMS_BLOCK && more->size ? -EINVAL : 0;

	r = r ? r : reserve(s, s->num + more->num);
	if (r)
		return r;
	if (more->num)
		memcpy(s->crc + s->num, more->crc, more->num * sizeof(*s->crc));
	s->num += more->num;
	s->size += more->size;
	return 0;
}

/* --- reading a whole file --- */

struct sums_scan {
	const char *path;
	struct log *log;
	int fd;
	uint64_t size;
	sums_block_fn *fn;
	void *arg;
	atomic_uint_fast64_t next; /* piece that no thread has taken */
	atomic_int result;	   /* of the first failure */
};

static int scan_failed(struct sums_scan *s, uint64_t off, const char *why,
		       int error)
{
	log_error(s->log, "%s: read at %llu: %s", s->path, (ull)off, why);
	return error;
}

static int read_bytes(struct sums_scan *s, uint8_t *to, size_t n, uint64_t off)
{
	size_t got = 0;
	ssize_t some;

	while (got < n) {
		some = pread(s->fd, to + got, n - got, (off_t)(off + got));
		if (some < 0 && errno == EINTR)
			continue;
		if (some < 0)
			return scan_failed(s, off + got, strerror(errno),
					   -errno);
		if (!some)
			return scan_failed(s, off + got,
					   "the file has become shorter", -EIO);
		got += (size_t)some;
	}
	return 0;
}

static int scan_piece(struct sums_scan *s, uint64_t off, uint8_t *buf)
{
	size_t size = min_u64(PIECE, s->size - off), n;
	int r = read_bytes(s, buf, size, off);

	for (size_t at = 0; at < size && !r; at += n) {
		n = min_u64(SUMS_BLOCK, size - at);
		r = s->fn(s->arg, (off + at) / SUMS_BLOCK,
			  crc32c(0, buf + at, n));
	}
	return r;
}

static void *scan_pieces(void *arg)
{
	struct sums_scan *s = arg;
	cleanup_free uint8_t *buf = read_buffer_alloc(PIECE);
	int r = buf ? 0 : -ENOMEM, none = 0;
	uint64_t piece;

	while (!r && !atomic_load(&s->result)) {
		piece = atomic_fetch_add(&s->next, 1);
		if (piece > (s->size - 1) / PIECE)
			break;
		r = scan_piece(s, piece * PIECE, buf);
	}
	if (r)
		atomic_compare_exchange_strong(&s->result, &none, r);
	return NULL;
}

/* The caller's thread works, too; threads that cannot start are left out. */
static void scan_on_threads(struct sums_scan *s, unsigned threads)
{
	pthread_t others[THREADS_MAX];
	unsigned n = 0;

	threads = threads ? threads : thread_usable_cpus();
	threads = (unsigned)min_u64(threads,
				    min_u64(blocks_of(s->size), THREADS_MAX));
	while (n + 1 < threads && !thread_start(&others[n], scan_pieces, s))
		n++;
	scan_pieces(s);
	while (n)
		pthread_join(others[--n], NULL);
}

static int open_to_read(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, st) && S_ISREG(st->st_mode))
		return fd;
	error = S_ISREG(st->st_mode) ? errno : EINVAL;
	close(fd);
	return -error;
}

int sums_scan(const char *path, uint64_t size, unsigned threads,
	      sums_block_fn *fn, void *arg, struct log *log)
{
	struct stat st = { 0 };
	cleanup_fd int fd = open_to_read(path, &st);
	struct sums_scan s = { .path = path,
			       .log = log,
			       .fd = fd,
			       .size = size,
			       .fn = fn,
			       .arg = arg };

	if (fd < 0) {
		log_error(log, "%s: %s", path,
			  fd == -EINVAL ? "not a regular file" : strerror(-fd));
		return fd;
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	if (size)
		scan_on_threads(&s, threads);
	if (atomic_load(&s.result) == -ENOMEM)
		log_error(log, "%s: out of memory", path);
	return atomic_load(&s.result);
}

/* The sums that a scan makes. */
struct sums_making {
	struct sums *sums;
	sums_block_fn *seen;
	void *arg;
};

static int take_block(void *arg, uint64_t block, uint32_t crc)
{
	struct sums_making *m = arg;

	m->sums->crc[block] = crc;
	return m->seen ? m->seen(m->arg, block, crc) : 0;
}

int sums_check_same(const char *path, const struct stat *was, struct log *log)
{
	struct stat now;

	if (!stat(path, &now) && now.st_dev == was->st_dev &&
	    now.st_ino == was->st_ino && now.st_size == was->st_size &&
	    now.st_mtim.tv_sec == was->st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == was->st_mtim.tv_nsec)
		return 0;
	log_error(log,
		  "%s: another program changed it meanwhile: its checksums "
		  "were not written",
		  path);
	return -ESTALE;
}

static int sums_of(const struct dataset *ds, unsigned threads,
		   struct sums_making *making)
{
	struct sums *s = making->sums;
	int r;

	s->size = ds->format.file_size;
	s->num = blocks_of(s->size);
	memcpy(s->fingerprint, ds->fingerprint, sizeof(s->fingerprint));
	r = reserve(s, s->num);
	if (r) {
		log_error(ds->log, "%s: %s", dataset_path(ds),
			  r == -EFBIG
				  ? "larger than 4 TiB, the limit of checksums"
				  : "out of memory");
		return r;
	}
	r = sums_scan(dataset_path(ds), s->size, threads, take_block, making,
		      ds->log);
	return r ? r
		 : sums_check_same(dataset_path(ds), &ds->source->stat,
				   ds->log);
}

int sums_of_file(const char *path, unsigned threads, sums_block_fn *seen,
		 void *arg, struct log *log, struct sums **out)
{
	struct sums_making making = { .seen = seen, .arg = arg };
	struct dataset *ds = NULL;
	int r = sums_new(&making.sums);

	if (!r)
		r = dataset_open(path, NULL, log, &ds);
	if (!r)
		r = sums_of(ds, threads, &making);
	dataset_close(ds);
	if (!r)
		*out = steal(making.sums);
	sums_free(making.sums);
	return r;
}

/* --- the side file --- */

char *sums_path(const char *path)
{
	return url_sibling(path, ".sums");
}

int sums_pack(const struct sums *s, uint8_t **out, size_t *out_size)
{
	size_t size = SUMS_HEAD_SIZE + 4 * s->num + TAIL_SIZE;
	uint8_t *bytes = malloc(size);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, magic, sizeof(magic));
	store32(bytes + 8, SUMS_VERSION);
	store32(bytes + 12, SUMS_BLOCK);
	store64(bytes + 16, s->size);
	memcpy(bytes + 24, s->fingerprint, sizeof(s->fingerprint));
	for (uint64_t i = 0; i < s->num; i++)
		store32(bytes + SUMS_HEAD_SIZE + 4 * i, s->crc[i]);
	store32(bytes + size - TAIL_SIZE, crc32c(0, bytes, size - TAIL_SIZE));
	*out = bytes;
	*out_size = size;
	return 0;
}

int sums_save(const struct sums *s, const char *path, struct log *log)
{
	cleanup_free uint8_t *bytes = NULL;
	cleanup_free char *side = sums_path(path);
	size_t size = 0;

	if (!side || sums_pack(s, &bytes, &size)) {
		log_error(log, "%s.sums: out of memory", path);
		return -ENOMEM;
	}
	return outfile_save(side, bytes, size, log);
}

#define WHY(why, ...) snprintf(why, SUMS_WHY_SIZE, __VA_ARGS__)

/* Checks everything but the CRCs of the blocks. */
static int check_side(const uint8_t *bytes, size_t size, char *why)
{
	uint64_t num;

	if (size < SUMS_HEAD_SIZE + TAIL_SIZE || memcmp(bytes, magic, 8)) {
		WHY(why, "not a file of checksums (beton(5))");
		return -BETON_ECORRUPT;
	}
	if (load32(bytes + 8) != SUMS_VERSION ||
	    load32(bytes + 12) != SUMS_BLOCK) {
		WHY(why,
		    "version %u with blocks of %u bytes, expected %d and %d",
		    load32(bytes + 8), load32(bytes + 12), SUMS_VERSION,
		    SUMS_BLOCK);
		return -BETON_ECORRUPT;
	}
	num = blocks_of(load64(bytes + 16));
	if (num > SUMS_BLOCKS_MAX ||
	    size != SUMS_HEAD_SIZE + 4 * num + TAIL_SIZE) {
		WHY(why,
		    "%zu bytes, but a dataset of %llu bytes needs checksums of %llu blocks",
		    size, (ull)load64(bytes + 16), (ull)num);
		return -BETON_ECORRUPT;
	}
	if (load32(bytes + size - TAIL_SIZE) !=
	    crc32c(0, bytes, size - TAIL_SIZE)) {
		WHY(why, "its own CRC is %08x, but it ends with %08x",
		    crc32c(0, bytes, size - TAIL_SIZE),
		    load32(bytes + size - TAIL_SIZE));
		return -BETON_ECORRUPT;
	}
	return 0;
}

int sums_parse(const uint8_t *bytes, size_t size, struct sums **out,
	       char why[SUMS_WHY_SIZE])
{
	int r = check_side(bytes, size, why);
	struct sums *s;

	if (r)
		return r;
	WHY(why, "out of memory");
	r = sums_new(&s);
	if (r)
		return r;
	s->size = load64(bytes + 16);
	memcpy(s->fingerprint, bytes + 24, sizeof(s->fingerprint));
	r = reserve(s, blocks_of(s->size));
	if (r) {
		sums_free(s);
		return r;
	}
	s->num = blocks_of(s->size);
	for (uint64_t i = 0; i < s->num; i++)
		s->crc[i] = load32(bytes + SUMS_HEAD_SIZE + 4 * i);
	*out = s;
	return 0;
}

/* Reads a whole side file; the caller frees *out. */
static int read_side(const char *side, struct log *log, uint8_t **out,
		     size_t *size)
{
	struct stat st = { 0 };
	cleanup_fd int fd = open_to_read(side, &st);
	struct sums_scan scan = { .path = side, .log = log, .fd = fd };
	int r;

	if (fd == -ENOENT)
		return fd;
	if (fd < 0 || (uint64_t)st.st_size > FILE_SIZE_MAX) {
		log_error(log, "%s: %s", side,
			  fd < 0 && fd != -EINVAL
				  ? strerror(-fd)
				  : "not a file of checksums (beton(5))");
		return fd < 0 && fd != -EINVAL ? fd : -BETON_ECORRUPT;
	}
	*size = (size_t)st.st_size;
	*out = malloc(*size + 1);
	if (!*out)
		return -ENOMEM;
	r = read_bytes(&scan, *out, *size, 0);
	if (r)
		free(*out);
	return r;
}

/* The server of a dataset need not have this file: a missing one is no error
   for the log. */
static int read_remote(const char *url, const char *shown,
		       const struct source_options *options, struct log *log,
		       uint8_t **out, size_t *size)
{
	struct source *source = NULL;
	int r = source_open(url, options, NULL, &source);

	if (!r && (uint64_t)source->stat.st_size > FILE_SIZE_MAX)
		r = -EFBIG;
	if (!r) {
		*size = (size_t)source->stat.st_size;
		*out = malloc(*size + 1);
		r = *out ? source_read(source, *out, *size, 0) : -ENOMEM;
		if (r)
			free(*out);
	}
	source_close(source);
	if (r && r != -ENOENT)
		log_error(log, "%s: %s", shown,
			  r == -EFBIG ? "not a file of checksums (beton(5))"
				      : strerror(-r));
	return r == -EFBIG ? -BETON_ECORRUPT : r;
}

static int load_side(const char *side, const char *shown,
		     const struct source_options *options, struct log *log,
		     struct sums **out)
{
	char why[SUMS_WHY_SIZE];
	uint8_t *bytes;
	size_t size;
	int r = url_is(side)
			? read_remote(side, shown, options, log, &bytes, &size)
			: read_side(side, log, &bytes, &size);

	if (r)
		return r;
	r = sums_parse(bytes, size, out, why);
	if (r)
		log_error(
			log,
			"%s: %s: write it again with fsck.beton --sums, or delete it",
			shown, why);
	free(bytes);
	return r;
}

int sums_load(const char *path, const struct source_options *options,
	      struct log *log, struct sums **out)
{
	cleanup_free char *side = sums_path(path);
	cleanup_free char *shown = side ? url_visible(side) : NULL;

	return shown ? load_side(side, shown, options, log, out) : -ENOMEM;
}

/* Returns whether a block of the dataset is right; `buf` has SUMS_BLOCK bytes.
 */
static bool is_right(const struct sums *s, const struct dataset *ds,
		     uint64_t block, uint8_t *buf)
{
	size_t n = sums_block_size(s, block);

	return !source_read(ds->source, buf, n, block * SUMS_BLOCK) &&
	       !sums_check(s, block, buf, n);
}

/* How much of a dataset with another fingerprint is right. */
enum match { MATCHES_NOWHERE, MATCHES_SOMEWHERE, MATCHES_IN_HEADER };

/* Looks at the blocks of the header and the descriptors, and at some blocks all
   over the file. */
static enum match match_of(const struct sums *s, const struct dataset *ds)
{
	cleanup_free uint8_t *buf = malloc(SUMS_BLOCK);
	uint64_t probes = min_u64(s->num, PROBES), block = 0;

	while (buf && block * SUMS_BLOCK < ds->format.meta_off &&
	       is_right(s, ds, block, buf))
		block++;
	if (block * SUMS_BLOCK >= ds->format.meta_off)
		return MATCHES_IN_HEADER;
	for (uint64_t i = 0; i < probes && buf; i++) {
		if (is_right(s, ds, i * s->num / probes, buf))
			return MATCHES_SOMEWHERE;
	}
	return MATCHES_NOWHERE;
}

static int check_dataset(const struct sums *s, const char *path,
			 const struct dataset *ds, struct log *log)
{
	if (s->size != ds->format.file_size) {
		log_error(
			log,
			"%s.sums: of a file of %llu bytes, but %s has %llu: if you have changed that file, run fsck.beton --update-sums",
			path, (ull)s->size, path, (ull)ds->format.file_size);
		return -ESTALE;
	}
	if (!memcmp(s->fingerprint, ds->fingerprint, sizeof(s->fingerprint)))
		return 0;
	switch (match_of(s, ds)) {
	case MATCHES_IN_HEADER:
		log_warning(
			log,
			"%s: damaged: its header is right, but its fingerprint is not the one of %s.sums: run fsck.beton, or restore it from a copy",
			path, path);
		return 0;
	case MATCHES_SOMEWHERE:
		log_error(
			log,
			"%s: damaged in its header: some blocks are right, but its fingerprint is not the one of %s.sums: run fsck.beton, or restore it from a copy",
			path, path);
		return -BETON_ECORRUPT;
	case MATCHES_NOWHERE:
		break;
	}
	log_error(
		log,
		"%s.sums: of another file, because its fingerprint is not the one of %s: if you have changed that file, run fsck.beton --update-sums",
		path, path);
	return -ESTALE;
}

int sums_open(const struct dataset *ds, const struct source_options *options,
	      struct log *log, struct sums **out)
{
	struct sums *s = NULL;
	int r = sums_load(ds->given ? ds->given : dataset_path(ds), options,
			  log, &s);

	if (!r)
		r = check_dataset(s, dataset_path(ds), ds, log);
	if (!r)
		*out = steal(s);
	sums_free(s);
	return r;
}

/* --- checking --- */

int sums_check(const struct sums *s, uint64_t block, const void *bytes,
	       size_t n)
{
	if (n == sums_block_size(s, block) &&
	    crc32c(0, bytes, n) == s->crc[block])
		return 0;
	return -BETON_ECORRUPT;
}

void sums_explain(const struct sums *s, uint64_t block, uint32_t crc,
		  char why[SUMS_WHY_SIZE])
{
	uint64_t off = block * SUMS_BLOCK;
	size_t n = sums_block_size(s, block), byte, used;
	unsigned bit;

	WHY(why,
	    "block %llu (bytes %llu to %llu) is damaged: its CRC is %08x, expected %08x",
	    (ull)block, (ull)off, (ull)(off + n - 1), crc, s->crc[block]);
	used = strlen(why);
	if (crc32c_flipped_bit(crc, s->crc[block], n, &byte, &bit))
		snprintf(why + used, SUMS_WHY_SIZE - used,
			 ", as if bit %u of byte %llu were flipped", bit,
			 (ull)(off + byte));
}
