/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/local/netfs.h"

#include <errno.h>
#include <string.h>
#include <sys/vfs.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/source/local/source.h"
#include "fs/source/pacing/retry.h"

enum {
	/* The threads of a local file, also the least. */
	THREADS_LEAST = 16,
	IN_FLIGHT_MAX = 256 << 20,
};

/* The magic numbers of statfs(2). Most file systems in FUSE are of a network:
   SSHFS, and those of object stores. */
static const struct {
	uint32_t magic;
	const char *name;
} kinds[] = {
	{ 0x00006969, "NFS" },	    { 0x0000517b, "SMB" },
	{ 0xfe534d42, "SMB" },	    { 0xff534d42, "CIFS" },
	{ 0x0bd00bd0, "Lustre" },   { 0x00c36400, "Ceph" },
	{ 0x65735546, "FUSE" },	    { 0x47504653, "GPFS" },
	{ 0x01021997, "9P" },	    { 0x5346414f, "AFS" },
	{ 0x6b414653, "AFS" },	    { 0x19830326, "BeeGFS" },
	{ 0x20030528, "OrangeFS" }, { 0xaad7aaea, "PanFS" },
	{ 0x73757245, "Coda" },
};

/* Errors of file systems whose server may come back. */
static const int passing[] = {
	EIO,	      ETIMEDOUT,    ESTALE,	 EREMOTEIO, EHOSTDOWN,
	EHOSTUNREACH, ENETDOWN,	    ENETUNREACH, ENETRESET, ECONNRESET,
	ECONNREFUSED, ECONNABORTED, ENOTCONN,	 ESHUTDOWN,
};

const char *netfs_kind(int fd)
{
	struct statfs st;

	if (fstatfs(fd, &st))
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i].magic == (uint32_t)st.f_type)
			return kinds[i].name;
	}
	return NULL;
}

void netfs_init(struct netfs *n, const char *name, struct log *log)
{
	*n = (struct netfs){
		.outage = { .log = log, .name = name },
		.retry_ms = SOURCE_RETRY_MS,
		.rng = { .key = (uint64_t)clock_ns() },
	};
	pthread_mutex_init(&n->lock, NULL);
	depth_init(&n->depth, IN_FLIGHT_MAX, NETFS_THREADS_MAX);
}

void netfs_set(struct netfs *n, const char *kind,
	       const struct source_options *options)
{
	n->kind = kind;
	if (options && options->retry_ms)
		n->retry_ms = options->retry_ms;
}

void netfs_fini(struct netfs *n)
{
	pthread_mutex_destroy(&n->lock);
}

unsigned netfs_threads(struct netfs *n)
{
	if (!n->kind)
		return THREADS_LEAST;
	scoped_lock(&n->lock);
	return (unsigned)max_u64(THREADS_LEAST, depth_requests(&n->depth));
}

/* If no request waits, reads cannot be found to be too few. */
unsigned netfs_depth(struct netfs *n)
{
	unsigned threads = netfs_threads(n);

	return (unsigned)max_u64(SOURCE_DEPTH, threads + threads / 4);
}

void netfs_begin(struct netfs *n, uint64_t size)
{
	if (!n->kind)
		return;
	scoped_lock(&n->lock);
	depth_begin(&n->depth, size);
}

void netfs_done(struct netfs *n, uint64_t bytes, int64_t ns)
{
	int64_t now = clock_ns();

	if (!n->kind || !bytes)
		return;
	scoped_lock(&n->lock);
	depth_first_byte(&n->depth, ns);
	depth_bytes(&n->depth, now, bytes);
}

void netfs_succeeds(struct netfs *n)
{
	if (!atomic_load(&n->is_failing))
		return;
	scoped_lock(&n->lock);
	if (atomic_exchange(&n->is_failing, false))
		outage_ends(&n->outage, clock_ns());
	n->has_given_up = false;
}

void netfs_full(struct netfs *n)
{
	if (!n->kind)
		return;
	scoped_lock(&n->lock);
	depth_full(&n->depth);
}

static bool may_pass(int error)
{
	for (size_t i = 0; i < ARRAY_LEN(passing); i++) {
		if (passing[i] == error)
			return true;
	}
	return false;
}

/* After one request has waited in vain, others do not wait. */
int64_t netfs_fails(struct netfs *n, struct netfs_failures *f, int error,
		    uint64_t off, uint64_t size)
{
	int64_t now = clock_ns();

	scoped_lock(&n->lock);
	atomic_store(&n->is_failing, true);
	if (!f->n++)
		f->since_ns = now;
	if (!may_pass(error) || n->has_given_up ||
	    (uint64_t)(now - f->since_ns) >= n->retry_ms * 1000000) {
		n->has_given_up = may_pass(error);
		outage_gives_up(&n->outage, now, off, size, strerror(error));
		return -1;
	}
	outage_fails(&n->outage, now, 0, strerror(error), n->retry_ms);
	return retry_delay_ns(f->n, 0, &n->rng);
}
