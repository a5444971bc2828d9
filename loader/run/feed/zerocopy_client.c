/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/feed/zerocopy_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/data/wire/zerocopy_message.h"
#include "loader/util/cancel.h"

enum {
	HUGE_PAGE = 2 << 20,
	PAGE = 4096,
	/* Longest wait for the daemon's answer to a HELLO. */
	HELLO_SECONDS = 2,
	/* Between two questions whether the caller was interrupted. */
	ASK_MS = 50,
	/* A piece of memory that this many requests did not use is unmapped.
	   The daemon may have dropped it, and its bytes are freed with the last
	   mapping. */
	UNUSED_MAX = 32,
	/* The greatest error number of the kernel. */
	ERRNO_MAX = 4095,
};

/* A mapped piece of the daemon's memory. */
struct mapped {
	struct mapped *prev, *next;
	uint64_t id;	     /* unique in its connection */
	uint64_t connection; /* number of the one that it came by */
	uint8_t *bytes;
	uint64_t capacity;
	uint64_t last_used; /* number of the last request that used it */
	bool may_keep;	    /* of the last answer with it */
	/* Guarded by client.lock. A user may have written to kept memory, in
	   pages that are private to this process. */
	unsigned refs;
	bool is_kept;
};

struct zerocopy_client {
	struct zerocopy_client *prev, *next; /* guarded by clients_lock */
	struct zerocopy_hello hello;
	bool broken;
	uint64_t requests;
	pthread_mutex_t lock; /* guards the members below. The thread that
				 requests batches alone changes the first
				 three, and reads them without it. */
	struct mapped *mapped;
	int fd;		     /* -1: none */
	uint64_t connection; /* its number */
	bool canceled;
	bool is_closed; /* the last release of a kept batch frees the client */
	/* Slots that the loader has released while the daemon took no message.
	   The next request sends them. A daemon shares at most
	   ZEROCOPY_SLOTS_MAX slots with a connection at a time. */
	uint64_t puts[ZEROCOPY_SLOTS_MAX];
	unsigned num_puts;
};

/* --- kept batches and fork() ---
 * A child may read the batches that its parent holds. It gets copies, because
 * other batches will follow in the daemon's memory. */

static pthread_mutex_t clients_lock = PTHREAD_MUTEX_INITIALIZER;
static struct zerocopy_client *clients;
static pthread_once_t handles_forks = PTHREAD_ONCE_INIT;

/* Writes what is there already, and no write of another thread gets lost. A
   compiler may turn an atomic OR of 0 into a load, as clang does. */
static void write_same(uint8_t *at)
{
	uint8_t byte = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(at, &byte, byte, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Makes all pages private to this process. */
static void copy_pages(const struct mapped *mapped)
{
	for (uint64_t at = 0; at < mapped->capacity; at += PAGE)
		write_same(mapped->bytes + at);
	madvise(mapped->bytes, mapped->capacity, MADV_DOFORK);
}

static void before_fork(void)
{
	struct zerocopy_client *l;
	const struct mapped *mapped;

	pthread_mutex_lock(&clients_lock);
	DL_FOREACH(clients, l)
	{
		scoped_lock(&l->lock);
		DL_FOREACH(l->mapped, mapped)
		{
			if (mapped->is_kept)
				copy_pages(mapped);
		}
	}
}

static void after_fork(void)
{
	pthread_mutex_unlock(&clients_lock);
}

static void handle_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

static void clients_add(struct zerocopy_client *l)
{
	pthread_once(&handles_forks, handle_forks);
	scoped_lock(&clients_lock);
	DL_APPEND(clients, l);
}

static void clients_remove(struct zerocopy_client *l)
{
	scoped_lock(&clients_lock);
	DL_DELETE(clients, l);
}

/* --- mappings --- */

static int check_memory(int fd, uint64_t capacity)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st))
		return -EPROTO;
	if (!capacity || capacity > (uint64_t)st.st_size)
		return -EPROTO;
	return 0;
}

/* Maps memory at a multiple of the huge page size, which huge pages need. Maps
   more than that first, and unmaps both ends. The mapping is private: it shows
   the daemon's memory, but pages that are written get separate from it. */
static uint8_t *map_aligned(int fd, uint64_t capacity)
{
	uint64_t size = align_up(capacity, HUGE_PAGE), head;
	uint8_t *all, *at;

	all = mmap(NULL, size + HUGE_PAGE, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	head = align_up((uintptr_t)all, HUGE_PAGE) - (uintptr_t)all;
	at = mmap(all + head, capacity, PROT_READ, MAP_FIXED | MAP_PRIVATE, fd,
		  0);
	if (at == MAP_FAILED) {
		munmap(all, size + HUGE_PAGE);
		return NULL;
	}
	if (head)
		munmap(all, head);
	munmap(at + align_up(capacity, PAGE),
	       size + HUGE_PAGE - head - align_up(capacity, PAGE));
	/* A child of fork() that lives on would keep the memory. */
	madvise(at, capacity, MADV_DONTFORK);
	return at;
}

static void unmap(struct mapped *mapped)
{
	munmap(mapped->bytes, mapped->capacity);
	free(mapped);
}

static void mapped_free(struct zerocopy_client *l, struct mapped *mapped)
{
	pthread_mutex_lock(&l->lock);
	DL_DELETE(l->mapped, mapped);
	pthread_mutex_unlock(&l->lock);
	unmap(mapped);
}

static int mapped_new(struct zerocopy_client *l, int fd,
		      const struct zerocopy_batch *b, struct mapped **out)
{
	struct mapped *mapped;
	int r = check_memory(fd, b->capacity);

	if (r)
		return r;
	mapped = calloc(1, sizeof(*mapped));
	if (!mapped)
		return -ENOMEM;
	mapped->bytes = map_aligned(fd, b->capacity);
	if (!mapped->bytes) {
		free(mapped);
		return -ENOMEM;
	}
	mapped->id = b->slot;
	mapped->connection = l->connection;
	mapped->capacity = b->capacity;
	*out = mapped;
	scoped_lock(&l->lock);
	DL_PREPEND(l->mapped, mapped);
	return 0;
}

static struct mapped *mapped_find(struct zerocopy_client *l, uint64_t id)
{
	struct mapped *mapped;

	DL_FOREACH(l->mapped, mapped)
	{
		if (mapped->id == id && mapped->connection == l->connection)
			return mapped;
	}
	return NULL;
}

static bool is_used(struct zerocopy_client *l, const struct mapped *mapped)
{
	scoped_lock(&l->lock);
	return mapped->refs > 0;
}

/* --- messages --- */

/* Never blocks. -EAGAIN: the daemon has to read other messages first. */
static int send_now(const struct zerocopy_client *l, const void *bytes,
		    size_t size)
{
	ssize_t n;

	do
		n = send(l->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static bool is_canceled(struct zerocopy_client *l)
{
	scoped_lock(&l->lock);
	return l->canceled;
}

/* Waits until the daemon has read messages. Its end, or a cancel, ends the wait
   too. */
static int wait_for_room(struct zerocopy_client *l)
{
	struct pollfd p = { .fd = l->fd, .events = POLLOUT | POLLRDHUP };

	while (poll(&p, 1, -1) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return is_canceled(l) || !(p.revents & POLLOUT) ? -ECONNRESET : 0;
}

/* Blocks until the daemon takes the message, or zerocopy_client_cancel(). */
static int send_bytes(struct zerocopy_client *l, const void *bytes, size_t size)
{
	int r;

	while ((r = send_now(l, bytes, size)) == -EAGAIN) {
		r = wait_for_room(l);
		if (r)
			break;
	}
	return r;
}

static struct zerocopy_number number_message(uint32_t kind, uint64_t number)
{
	return (struct zerocopy_number){ .kind = kind, .number = number };
}

/* Sends the PUTs that the daemon did not take when their slots were released.
 */
static int send_puts(struct zerocopy_client *l)
{
	uint64_t puts[ZEROCOPY_SLOTS_MAX];
	struct zerocopy_number put;
	unsigned n;
	int r = 0;

	pthread_mutex_lock(&l->lock);
	n = l->num_puts;
	memcpy(puts, l->puts, n * sizeof(*puts));
	l->num_puts = 0;
	pthread_mutex_unlock(&l->lock);
	for (unsigned i = 0; i < n && !r; i++) {
		put = number_message(ZEROCOPY_PUT, puts[i]);
		r = send_bytes(l, &put, sizeof(put));
	}
	return r;
}

/* Receives a whole message of this size. *fd is the descriptor that came with
   it, which the caller closes, or -1. There is no room for a second one, which
   the kernel closes. */
static int receive(const struct zerocopy_client *l, void *bytes, size_t size,
		   int *fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { bytes, size };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.bytes,
			    /* CMSG_SPACE() is room for two. */
			    .msg_controllen = CMSG_LEN(sizeof(int)) };
	const struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(l->fd, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	if (n == 0)
		return -ECONNRESET;
	if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EPROTO;
	return (size_t)n == size ? 0 : -EPROTO;
}

/* Waits for the answer to a HELLO. */
static int wait_for_answer(struct zerocopy_client *l,
			   struct cancel *interrupted)
{
	int64_t end = clock_ns() + HELLO_SECONDS * 1000000000LL;
	struct pollfd p = { .fd = l->fd, .events = POLLIN | POLLRDHUP };
	int r;

	do
		r = cancel_poll(interrupted, &p, ASK_MS);
	while (!r && !p.revents && clock_ns() < end);
	if (r)
		return r;
	return p.revents ? 0 : -EAGAIN;
}

static int greet(struct zerocopy_client *l, struct cancel *interrupted)
{
	struct zerocopy_welcome welcome;
	int fd, r;

	r = send_bytes(l, &l->hello, sizeof(l->hello));
	if (!r)
		r = wait_for_answer(l, interrupted);
	if (!r) {
		r = receive(l, &welcome, sizeof(welcome), &fd);
		scope_close(&fd);
	}
	if (!r && (welcome.kind != ZEROCOPY_WELCOME ||
		   welcome.version != ZEROCOPY_VERSION))
		r = -EPROTO;
	return r;
}

/* --- batches --- */

/* The mapping that the message names. Creates it if a descriptor came along. */
static int mapped_of(struct zerocopy_client *l, int fd,
		     const struct zerocopy_batch *b, struct mapped **out)
{
	struct mapped *known = mapped_find(l, b->slot);

	if (fd >= 0 && !known)
		return mapped_new(l, fd, b, out);
	if (!known || known->capacity != b->capacity)
		return -EPROTO;
	*out = known;
	return 0;
}

/* Takes a reference. Returns false if a user may have written to the same batch
   while holding it. */
static bool mapped_get(struct zerocopy_client *l, struct mapped *mapped)
{
	scoped_lock(&l->lock);
	if (mapped->is_kept)
		return false;
	mapped->refs++;
	return true;
}

/* Memory of a closed connection is dropped as soon as no thread reads it. */
static bool is_needed(struct zerocopy_client *l, const struct mapped *mapped)
{
	return is_used(l, mapped) ||
	       (mapped->connection == l->connection &&
		l->requests - mapped->last_used <= UNUSED_MAX);
}

static void drop_unused(struct zerocopy_client *l)
{
	struct zerocopy_number forget;
	struct mapped *mapped, *next;

	DL_FOREACH_SAFE(l->mapped, mapped, next)
	{
		if (is_needed(l, mapped))
			continue;
		forget = number_message(ZEROCOPY_FORGET, mapped->id);
		if (mapped->connection != l->connection ||
		    send_now(l, &forget, sizeof(forget)) != -EAGAIN)
			mapped_free(l, mapped);
	}
}

/* A negation of other numbers may overflow. ECANCELED means that the caller
   canceled the request, so that it would not read the file instead. */
static bool is_result(int32_t result)
{
	return result <= 0 && result >= -ERRNO_MAX && result != -ECANCELED;
}

static int acquire(struct zerocopy_client *l, int fd,
		   const struct zerocopy_batch *b, struct acquired *out)
{
	struct zerocopy_number put;
	struct mapped *mapped = NULL;
	int r;

	if (b->kind != ZEROCOPY_BATCH || b->request != l->requests ||
	    b->size > b->capacity || !is_result(b->result))
		return -EPROTO;
	if (b->result)
		return b->result;
	r = mapped_of(l, fd, b, &mapped);
	if (r)
		return r;
	mapped->last_used = l->requests;
	if (!mapped_get(l, mapped)) {
		put = number_message(ZEROCOPY_PUT, mapped->id);
		r = send_bytes(l, &put, sizeof(put));
		return r ? r : -EBUSY;
	}
	mapped->may_keep = b->may_keep;
	*out = (struct acquired){ mapped->bytes, b->size, mapped };
	return 0;
}

/* Waits for a message as long as it takes. Without `interrupted`, receive()
   waits. */
static int wait_for_batch(struct zerocopy_client *l, struct cancel *interrupted)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN | POLLRDHUP };
	int r = 0;

	while (interrupted && !r && !p.revents)
		r = cancel_poll(interrupted, &p, ASK_MS);
	return r;
}

static int exchange(struct zerocopy_client *l, const char *path,
		    struct cancel *interrupted, struct zerocopy_batch *reply,
		    int *fd)
{
	struct zerocopy_get get;
	int n = zerocopy_make_get(&get, ++l->requests, path), r;

	if (n < 0)
		return n;
	r = send_puts(l);
	if (!r)
		r = send_bytes(l, &get, (size_t)n);
	if (!r)
		r = wait_for_batch(l, interrupted);
	return r ? r : receive(l, reply, sizeof(*reply), fd);
}

int zerocopy_client_get(struct zerocopy_client *l, const char *path,
			struct cancel *interrupted, struct acquired *out)
{
	struct zerocopy_batch reply = { .result = 0 };
	cleanup_fd int fd = -1;
	int r;

	if (l->broken)
		return -ENOTCONN;
	r = exchange(l, path, interrupted, &reply, &fd);
	if (!r)
		r = acquire(l, fd, &reply, out);
	/* An error that the daemon reports is no failure of the connection, and
	   neither is a batch that the user holds. */
	if (r && r != reply.result && r != -EBUSY)
		l->broken = true;
	drop_unused(l);
	return r;
}

bool zerocopy_client_is_broken(const struct zerocopy_client *l)
{
	return l->broken;
}

void zerocopy_client_report(struct zerocopy_client *l,
			    const struct rank_figures *figures)
{
	const struct zerocopy_report tell = { .kind = ZEROCOPY_REPORT,
					      .figures = *figures };

	/* A request that was canceled broke the connection for requests only.
	 */
	send_now(l, &tell, sizeof(tell));
}

bool zerocopy_client_keep(struct zerocopy_client *l, struct mapped *mapped)
{
	if (!mapped->may_keep)
		return false;
	scoped_lock(&l->lock);
	if (mapped->refs != 1)
		return false;
	if (!mapped->is_kept)
		mapped->is_kept = !mprotect(mapped->bytes, mapped->capacity,
					    PROT_READ | PROT_WRITE);
	return mapped->is_kept;
}

/* Drops what a user has written, so that the mapping shows the daemon's memory
   again. */
static void end_keeping(struct mapped *mapped)
{
	madvise(mapped->bytes, mapped->capacity, MADV_DONTNEED);
	madvise(mapped->bytes, mapped->capacity, MADV_DONTFORK);
	mapped->is_kept = false;
}

/* Sends a PUT. If the daemon is gone the message fails, which does no harm. The
   caller holds the lock. */
static void send_put(struct zerocopy_client *l, const struct mapped *mapped)
{
	const struct zerocopy_number put =
		number_message(ZEROCOPY_PUT, mapped->id);

	if (mapped->connection != l->connection)
		return;
	if ((l->num_puts || send_now(l, &put, sizeof(put)) == -EAGAIN) &&
	    l->num_puts < ARRAY_LEN(l->puts))
		l->puts[l->num_puts++] = put.number;
}

static void free_client(struct zerocopy_client *l)
{
	clients_remove(l);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

void zerocopy_client_release(struct zerocopy_client *l, struct mapped *mapped)
{
	bool is_late, is_last;

	pthread_mutex_lock(&l->lock);
	if (mapped->is_kept)
		end_keeping(mapped);
	mapped->refs--;
	send_put(l, mapped);
	is_late = l->is_closed;
	if (is_late)
		DL_DELETE(l->mapped, mapped);
	is_last = is_late && !l->mapped;
	pthread_mutex_unlock(&l->lock);
	if (is_late)
		unmap(mapped);
	if (is_last)
		free_client(l);
}

/* --- opening and closing --- */

static int connect_to(int fd, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strlen(name);

	if (!n || n >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path + 1, name, n);
	n += offsetof(struct sockaddr_un, sun_path) + 1;
	if (connect(fd, (const struct sockaddr *)&address, (socklen_t)n))
		return -errno;
	return 0;
}

/* The owner of shared memory can change it after the loader has checked it. For
   that reason the owner has to be root or this user. */
static int check_owner(int fd)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size))
		return -errno;
	return who.uid == 0 || who.uid == geteuid() ? 0 : -EPERM;
}

/* Closes the connection also for children of fork(), which have the descriptor
   too. */
static void disconnect(int fd)
{
	if (fd < 0)
		return;
	shutdown(fd, SHUT_RDWR);
	close(fd);
}

static void set_timeout(int fd, time_t seconds)
{
	const struct timeval t = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

/* Replaces the connection by a new socket, which a cancel finds from then on.
 */
static int renew_socket(struct zerocopy_client *l)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	scoped_lock(&l->lock);
	if (l->canceled) {
		close(fd);
		return -ECANCELED;
	}
	disconnect(l->fd);
	l->fd = fd;
	l->connection++;
	l->num_puts = 0;
	return 0;
}

int zerocopy_client_reopen(struct zerocopy_client *l, const char *address,
			   struct cancel *interrupted)
{
	int r;

	if (*address != '@')
		return -EINVAL;
	r = renew_socket(l);
	if (r)
		return r;
	set_timeout(l->fd, HELLO_SECONDS);
	r = connect_to(l->fd, address + 1);
	if (!r)
		r = check_owner(l->fd);
	if (!r)
		r = greet(l, interrupted);
	/* A batch may take as long as the disk needs. */
	set_timeout(l->fd, 0);
	l->broken = r != 0;
	return r;
}

int zerocopy_client_make(const struct zerocopy_client_name *name,
			 struct zerocopy_client **out)
{
	struct zerocopy_client *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	pthread_mutex_init(&l->lock, NULL);
	l->fd = -1;
	l->broken = true;
	l->hello = (struct zerocopy_hello){
		.kind = ZEROCOPY_HELLO,
		.version = ZEROCOPY_VERSION,
		.magic = ZEROCOPY_MAGIC,
		.rank = name->rank,
		.world_size = name->world_size,
	};
	if (name->job)
		snprintf(l->hello.job, ZEROCOPY_JOB_SIZE, "%s", name->job);
	clients_add(l);
	*out = l;
	return 0;
}

int zerocopy_client_open(const char *address,
			 const struct zerocopy_client_name *name,
			 struct zerocopy_client **out)
{
	struct zerocopy_client *l;
	int r = zerocopy_client_make(name, &l);

	if (r)
		return r;
	r = zerocopy_client_reopen(l, address, NULL);
	if (r)
		zerocopy_client_close(l);
	else
		*out = l;
	return r;
}

/* Ends the wait for a message from the daemon. Those to the daemon still pass,
   the loader's last report among them. */
void zerocopy_client_cancel(struct zerocopy_client *l)
{
	scoped_lock(&l->lock);
	l->canceled = true;
	shutdown(l->fd, SHUT_RD);
}

/* Takes out the memory that no user keeps. The caller holds the lock. */
static struct mapped *take_unkept(struct zerocopy_client *l)
{
	struct mapped *out = NULL, *mapped, *next;

	DL_FOREACH_SAFE(l->mapped, mapped, next)
	{
		if (mapped->is_kept)
			continue;
		DL_DELETE(l->mapped, mapped);
		DL_APPEND(out, mapped);
	}
	return out;
}

void zerocopy_client_close(struct zerocopy_client *l)
{
	struct mapped *unkept, *mapped, *next;
	bool is_last;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	/* Another thread may be releasing a batch, through this socket. */
	disconnect(l->fd);
	l->fd = -1;
	l->connection++;
	l->is_closed = true;
	unkept = take_unkept(l);
	is_last = !l->mapped;
	pthread_mutex_unlock(&l->lock);
	DL_FOREACH_SAFE(unkept, mapped, next)
	{
		unmap(mapped);
	}
	if (is_last)
		free_client(l);
}
