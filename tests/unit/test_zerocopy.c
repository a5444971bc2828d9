/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's end of the zero-copy delivery, with the loader's and with a rude
 * one. */
#include "fs/mount/zerocopy/zerocopy.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "fs/base/memory/budget.h"
#include "fs/base/order/spec_text.h"
#include "fs/base/util/rng.h"
#include "fs/data/wire/zerocopy_message.h"
#include "fs/mount/zerocopy/peer.h"
#include "loader/run/feed/zerocopy_client.h"
#include "tests/unit/daemon_end.h"
#include "tests/unit/gate.h"

enum { SAMPLES = 96, BATCH = 8, BATCHES = SAMPLES / BATCH, THREADS = 8 };

static const char spec[] = "order=random,batch=8,seed=0,drop_last=1";

struct fixture {
	struct dataset *ds;
	struct engine *engine;
	struct ns *ns;
	struct zerocopy *zerocopy;
	struct log log;
	atomic_uint messages; /* that were logged */
	char address[ZEROCOPY_NAME_SIZE + 1];
};

static void count_message(void *arg, enum beton_log_level level,
			  const char *message)
{
	(void)level;
	(void)message;
	atomic_fetch_add((atomic_uint *)arg, 1);
}

static void set_up_with(struct fixture *f, struct zerocopy_options options)
{
	const struct engine_options engine = {
		.threads = 2,
		.slot_bytes = options.max_bytes,
	};
	struct ns_top top = {
		.name = "",
		.owner = { .file_mode = 0444, .dir_mode = 0555 },
		.options = "",
	};

	log_init(&f->log, count_message, &f->messages);
	atomic_init(&f->messages, 0);
	options.log = &f->log;
	f->ds = made_open(SAMPLES, NULL);
	top.dataset = f->ds;
	CHECK(!engine_open(&engine, &f->engine));
	CHECK(!engine_start(f->engine));
	CHECK(!zerocopy_open(&options, &f->zerocopy));
	CHECK(!ns_open(&(struct ns_options){ .tops = &top,
					     .num_tops = 1,
					     .engine = f->engine,
					     .log = &f->log,
					     .default_spec = spec },
		       &f->ns));
	CHECK(!zerocopy_serve(f->zerocopy, f->ns));
	snprintf(f->address, sizeof(f->address), "@%s",
		 zerocopy_name(f->zerocopy));
}

static void set_up(struct fixture *f, uint64_t max_bytes)
{
	set_up_with(f, (struct zerocopy_options){ .max_bytes = max_bytes });
}

static void tear_down(struct fixture *f)
{
	zerocopy_close(f->zerocopy);
	ns_close(f->ns);
	engine_close(f->engine);
	dataset_close(f->ds);
	log_fini(&f->log);
}

/* The same after a test with a slow disk. */
static void tear_down_behind(struct fixture *f, struct gate *gate)
{
	gate_open(gate);
	zerocopy_close(f->zerocopy);
	f->zerocopy = NULL;
	engine_stop(f->engine);
	gate_remove(gate);
	tear_down(f);
}

static struct zerocopy_client *lender_of(const struct fixture *f)
{
	const struct zerocopy_client_name name = { "test", 1, 2 };
	struct zerocopy_client *l;

	CHECK(!zerocopy_client_open(f->address, &name, &l));
	return l;
}

static void path_of(char path[128], uint64_t epoch, uint64_t batch)
{
	snprintf(path, 128, "batches/%s/%llu/%06llu.batch", spec,
		 (unsigned long long)epoch, (unsigned long long)batch);
}

/* The batch file as the engine's own thread would not make it. */
static void check_bytes(const struct fixture *f, uint64_t epoch, uint64_t batch,
			const struct acquired *acquired)
{
	const struct spec_facts facts = { f->ds->format.samples,
					  dataset_data_bytes(f->ds), NULL };
	char why[SPEC_WHY_SIZE];
	struct spec parsed;
	struct batch *b;
	uint8_t *bytes;
	bool failed;

	CHECK(!spec_parse(spec, &facts, &parsed, why));
	CHECK(!batch_open(&(struct batch_key){ f->ds, &parsed, epoch, batch },
			  NULL, &b));
	CHECK(acquired->size == b->vfile.size);
	bytes = malloc(acquired->size);
	CHECK(bytes && !batch_collate(b, NULL, bytes, &failed));
	CHECK(!memcmp(bytes, acquired->bytes, acquired->size));
	free(bytes);
	batch_put(&b);
}

static int get(struct zerocopy_client *l, uint64_t epoch, uint64_t batch,
	       struct acquired *out)
{
	char path[128];

	path_of(path, epoch, batch);
	return zerocopy_client_get(l, path, NULL, out);
}

static void batches_come_as_they_are(void)
{
	struct fixture f;
	struct zerocopy_client *l;
	struct acquired acquired;

	set_up(&f, 64 << 20);
	l = lender_of(&f);
	for (uint64_t i = 0; i < 3 * BATCHES; i++) {
		CHECK(!get(l, i / BATCHES, i % BATCHES, &acquired));
		check_bytes(&f, i / BATCHES, i % BATCHES, &acquired);
		CHECK((uintptr_t)acquired.bytes % (2 << 20) == 0);
		zerocopy_client_release(l, acquired.mapped);
	}
	zerocopy_client_close(l);
	CHECK(!atomic_load(&f.messages));
	tear_down(&f);
}

static void held_memory_is_not_reused(void)
{
	struct acquired acquired[BATCHES];
	struct fixture f;
	struct zerocopy_client *l;

	set_up(&f, 64 << 20);
	l = lender_of(&f);
	for (uint64_t i = 0; i < BATCHES; i++)
		CHECK(!get(l, 0, i, &acquired[i]));
	for (uint64_t i = 0; i < BATCHES; i++)
		check_bytes(&f, 0, i, &acquired[i]);
	for (uint64_t i = 0; i < BATCHES; i++)
		zerocopy_client_release(l, acquired[i].mapped);
	zerocopy_client_close(l);
	tear_down(&f);
}

static void the_same_batch_twice_is_held_twice(void)
{
	struct acquired a, b;
	struct fixture f;
	struct zerocopy_client *l;

	set_up(&f, 64 << 20);
	l = lender_of(&f);
	CHECK(!get(l, 0, 3, &a) && !get(l, 0, 3, &b));
	CHECK(a.bytes == b.bytes);
	zerocopy_client_release(l, a.mapped);
	for (uint64_t i = 0; i < BATCHES; i++) {
		CHECK(!get(l, 1, i, &a));
		zerocopy_client_release(l, a.mapped);
	}
	check_bytes(&f, 0, 3, &b);
	zerocopy_client_release(l, b.mapped);
	zerocopy_client_close(l);
	CHECK(!atomic_load(&f.messages));
	tear_down(&f);
}

/* Slots of 2 MiB and room for eight: loaders may keep up to four. */
static void half_of_the_memory_may_be_kept(void)
{
	struct acquired acquired[BATCHES];
	struct fixture f;
	struct zerocopy_client *l, *other;

	set_up(&f, 16 << 20);
	l = lender_of(&f);
	other = lender_of(&f);
	for (uint64_t i = 0; i < 5; i++) {
		CHECK(!get(i % 2 ? other : l, 0, i, &acquired[i]));
		CHECK(zerocopy_client_keep(i % 2 ? other : l,
					   acquired[i].mapped) == (i < 4));
	}
	for (uint64_t i = 0; i < 5; i++)
		check_bytes(&f, 0, i, &acquired[i]);
	for (uint64_t i = 0; i < 5; i++)
		zerocopy_client_release(i % 2 ? other : l, acquired[i].mapped);
	CHECK(!get(l, 0, 4, &acquired[0]));
	CHECK(zerocopy_client_keep(l, acquired[0].mapped));
	zerocopy_client_release(l, acquired[0].mapped);
	zerocopy_client_close(l);
	zerocopy_client_close(other);
	tear_down(&f);
}

/* Slots of 2 MiB and room for four, of which one is left to other jobs. */
static void a_request_beyond_the_shared_memory_is_refused(void)
{
	struct acquired a, b, c;
	struct fixture f;
	struct zerocopy_client *l, *other;

	set_up(&f, 8 << 20);
	l = lender_of(&f);
	other = lender_of(&f);
	CHECK(!get(l, 0, 0, &a) && !get(other, 0, 1, &b));
	CHECK(!get(l, 0, 4, &c));
	CHECK(get(l, 0, 2, &c) == -ENOSPC && !zerocopy_client_is_broken(l));
	CHECK(get(other, 0, 2, &c) == -ENOSPC);
	/* By message, or by closing. */
	zerocopy_client_release(other, b.mapped);
	CHECK(!get(other, 0, 2, &c));
	zerocopy_client_close(other);
	do /* until that was noticed */
		other = NULL;
	while (get(l, 0, 3, &c) == -ENOSPC);
	check_bytes(&f, 0, 0, &a);
	check_bytes(&f, 0, 3, &c);
	zerocopy_client_close(l);
	tear_down(&f);
}

/* A refused loader opens the same batch as a file: that is one reader. */
static void a_refused_user_is_not_counted(void)
{
	struct plan_reader readers[2];
	struct acquired a, b, c;
	struct fixture f;
	struct zerocopy_client *l;

	set_up(&f, 8 << 20);
	l = lender_of(&f);
	CHECK(!get(l, 0, 0, &a) && !get(l, 0, 1, &b) && !get(l, 0, 2, &c));
	for (int i = 0; i < 3; i++)
		CHECK(get(l, 0, 3, &c) == -ENOSPC);
	CHECK(engine_readers(f.engine, readers, 2) == 1);
	CHECK(readers[0].opened == 3 && readers[0].number == 2);
	zerocopy_client_close(l);
	tear_down(&f);
}

static void paths_that_are_no_batch_are_errors(void)
{
	static const char *const bad[] = {
		"/",
		"..",
		".",
		"batches",
		"batches/default/0/000000.batch",
		"/batches/order=random,batch=8,seed=0,drop_last=1/0/000000.batch",
		"batches/../dataset.json",
		"dataset.json",
		"samples/000000/int",
		"batches/order=none/0/000000.batch",
		"batches/order=random,batch=8,seed=0,drop_last=1/0/000012.batch",
		"batches/order=random,batch=8,seed=0,drop_last=1/0/000000.batch/",
		"batches/order=random,batch=8,seed=0,drop_last=1/-1/000000.batch",
	};
	struct fixture f;
	struct zerocopy_client *l;
	struct acquired acquired;

	set_up(&f, 64 << 20);
	l = lender_of(&f);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(zerocopy_client_get(l, bad[i], NULL, &acquired) < 0 &&
		      !zerocopy_client_is_broken(l));
	CHECK(!get(l, 0, 0, &acquired));
	check_bytes(&f, 0, 0, &acquired);
	zerocopy_client_release(l, acquired.mapped);
	zerocopy_client_close(l);
	tear_down(&f);
}

/* Shared memory keeps its contents, even if the daemon closes meanwhile. */
static void a_daemon_that_ends_leaves_the_bytes(void)
{
	struct acquired before, after;
	struct fixture f;
	struct zerocopy_client *l;
	uint8_t *bytes;

	set_up(&f, 64 << 20);
	l = lender_of(&f);
	CHECK(!get(l, 0, 5, &before));
	bytes = malloc(before.size);
	CHECK(bytes);
	memcpy(bytes, before.bytes, before.size);
	tear_down(&f);
	CHECK(!memcmp(bytes, before.bytes, before.size));
	CHECK(get(l, 0, 6, &after) < 0 && zerocopy_client_is_broken(l));
	CHECK(get(l, 0, 6, &after) == -ENOTCONN);
	zerocopy_client_release(l, before.mapped);
	zerocopy_client_close(l);
	free(bytes);
}

static void no_daemon_is_an_error(void)
{
	const struct zerocopy_client_name name = { NULL, 0, 1 };
	struct zerocopy_client *l;

	CHECK(zerocopy_client_open("@betonfs-nobody", &name, &l) ==
	      -ECONNREFUSED);
	CHECK(zerocopy_client_open("@", &name, &l) == -EINVAL);
	CHECK(zerocopy_client_open("", &name, &l) == -EINVAL);
	CHECK(zerocopy_client_open("/tmp", &name, &l) == -EINVAL);
	zerocopy_client_close(NULL);
	zerocopy_close(NULL);
}

/* --- threads --- */

struct reader {
	const struct fixture *f;
	uint64_t key;
};

static void *read_at_random(void *arg)
{
	struct reader *r = arg;
	struct rng rng = { .key = r->key };
	struct zerocopy_client *l = lender_of(r->f);
	struct acquired acquired;
	uint64_t batch;
	int result;

	for (int i = 0; i < 60; i++) {
		batch = rng_next(&rng) % BATCHES;
		result = get(l, 0, batch, &acquired);
		CHECK(!result || result == -ENOSPC);
		if (!result)
			check_bytes(r->f, 0, batch, &acquired);
		/* Some leave with what they have. */
		if (!result && rng_next(&rng) % 16)
			zerocopy_client_release(l, acquired.mapped);
		else if (!result) {
			zerocopy_client_close(l);
			l = lender_of(r->f);
		}
	}
	zerocopy_client_close(l);
	return NULL;
}

static void eight_loaders_share_a_small_pool(void)
{
	struct reader readers[THREADS];
	pthread_t threads[THREADS];
	struct fixture f;

	set_up(&f, 6 << 20);
	for (uint64_t i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){ &f, i };
		CHECK(!pthread_create(&threads[i], NULL, read_at_random,
				      &readers[i]));
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	tear_down(&f);
}

/* --- rude ones --- */

static void connect_socket(const struct fixture *f, int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strlen(f->address);

	memcpy(address.sun_path, f->address, n);
	address.sun_path[0] = '\0';
	CHECK(!connect(
		fd, (const struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)));
}

/* Waits for messages, but not indefinitely. */
static int socket_raw(void)
{
	const struct timeval patience = { .tv_sec = 10 };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			  sizeof(patience)));
	return fd;
}

static int connect_raw(const struct fixture *f)
{
	int fd = socket_raw();

	connect_socket(f, fd);
	return fd;
}

static void hello(int fd)
{
	const struct zerocopy_hello message = { .kind = ZEROCOPY_HELLO,
						.version = ZEROCOPY_VERSION,
						.magic = ZEROCOPY_MAGIC };
	struct zerocopy_welcome welcome;

	CHECK(send(fd, &message, sizeof(message), 0) > 0);
	CHECK(recv(fd, &welcome, sizeof(welcome), 0) == sizeof(welcome));
	CHECK(welcome.kind == ZEROCOPY_WELCOME);
}

static void ask_path(int fd, uint64_t request, const char *path)
{
	struct zerocopy_get g;
	int n = zerocopy_make_get(&g, request, path);

	CHECK(send(fd, &g, (size_t)n, 0) == n);
}

/* Sends a GET of a sequential batch of `size` samples. */
static void ask(int fd, uint64_t request, unsigned size, uint64_t number)
{
	char path[128];

	snprintf(
		path, sizeof(path),
		"batches/order=sequential,batch=%u,seed=0,drop_last=1/0/%06llu.batch",
		size, (unsigned long long)number);
	ask_path(fd, request, path);
}

static struct zerocopy_batch answer_of(int fd)
{
	struct zerocopy_batch answer = { .kind = 0 };

	CHECK(recv(fd, &answer, sizeof(answer), 0) == sizeof(answer));
	CHECK(answer.kind == ZEROCOPY_BATCH);
	return answer;
}

/* Whether the other end closes, now or after some answers. */
static bool is_cut_off(int fd)
{
	uint8_t bytes[4096];
	ssize_t n;

	do
		n = recv(fd, bytes, sizeof(bytes), 0);
	while (n > 0);
	return n == 0 || errno == ECONNRESET;
}

static void one_message_cuts_off(struct fixture *f, bool greets,
				 const void *bytes, size_t size)
{
	int fd = connect_raw(f);

	if (greets)
		hello(fd);
	CHECK(send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size);
	CHECK(is_cut_off(fd));
	close(fd);
}

static void bad_messages_end_the_connection(void)
{
	struct zerocopy_number number = { ZEROCOPY_PUT, 0, 77 };
	struct zerocopy_report tell = { .kind = ZEROCOPY_REPORT };
	uint8_t large[1 << 16] = { ZEROCOPY_GET };
	struct zerocopy_hello h = { .kind = ZEROCOPY_HELLO,
				    .version = ZEROCOPY_VERSION,
				    .magic = ZEROCOPY_MAGIC };
	struct zerocopy_get g;
	int size = zerocopy_make_get(&g, 1, "batches");
	struct fixture f;

	set_up(&f, 64 << 20);
	one_message_cuts_off(&f, false, "x", 1);
	one_message_cuts_off(&f, false, &g, (size_t)size);
	one_message_cuts_off(&f, false, &number, sizeof(number));
	one_message_cuts_off(&f, false, &h, sizeof(h) - 1);
	one_message_cuts_off(&f, true, &h, sizeof(h));
	h.magic++;
	one_message_cuts_off(&f, false, &h, sizeof(h));
	one_message_cuts_off(&f, true, &number, sizeof(number));
	one_message_cuts_off(&f, true, &number, sizeof(number) - 4);
	one_message_cuts_off(&f, true, &g, (size_t)size - 1);
	one_message_cuts_off(&f, true, large, sizeof(large));
	one_message_cuts_off(&f, false, &tell, sizeof(tell));
	one_message_cuts_off(&f, true, &tell, sizeof(tell) - 8);
	tell.figures.n[FIGURE_WAITS] = RANK_FIGURES_MAX + 1;
	one_message_cuts_off(&f, true, &tell, sizeof(tell));
	CHECK(atomic_load(&f.messages) == 13);
	tear_down(&f);
}

/* Asks for more than it may, and reads nothing. */
static void a_flood_ends_the_connection(void)
{
	struct zerocopy_get g;
	struct fixture f;
	struct zerocopy_client *l;
	struct acquired acquired;
	char path[128];
	int fd, size;

	set_up(&f, 64 << 20);
	fd = connect_raw(&f);
	hello(fd);
	for (uint64_t i = 0; i < 5000; i++) {
		path_of(path, 0, i % (BATCHES + 1));
		size = zerocopy_make_get(&g, i, path);
		if (send(fd, &g, (size_t)size, MSG_NOSIGNAL) < 0)
			break;
	}
	CHECK(is_cut_off(fd));
	close(fd);
	/* A loader that obeys the protocol is served. */
	l = lender_of(&f);
	CHECK(!get(l, 0, 7, &acquired));
	check_bytes(&f, 0, 7, &acquired);
	zerocopy_client_close(l);
	tear_down(&f);
}

/* All requests that may be open can be answered before the first answer is
   read. */
static void few_answers_wait_to_be_read(void)
{
	struct fixture f;
	uint8_t bytes[256];
	unsigned n = 0;
	ssize_t got;
	int fd;

	set_up(&f, 64 << 20);
	fd = connect_raw(&f);
	hello(fd);
	for (uint64_t i = 0; i < 5000; i++) {
		struct zerocopy_get g;
		int size = zerocopy_make_get(&g, i, "x");

		if (send(fd, &g, (size_t)size, MSG_NOSIGNAL) < 0)
			break;
	}
	do {
		got = recv(fd, bytes, sizeof(bytes), 0);
		n += got > 0;
	} while (got > 0 || (got < 0 && errno == ECONNRESET));
	CHECK(!got);
	CHECK(n >= ZEROCOPY_REQUESTS_MAX && n <= 3 * ZEROCOPY_REQUESTS_MAX);
	close(fd);
	tear_down(&f);
}

static void requests_can_be_cancelled_at_any_time(void)
{
	struct zerocopy_number cancel = { ZEROCOPY_CANCEL, 0, 0 };
	struct zerocopy_batch answer;
	struct zerocopy_get g;
	struct fixture f;
	char path[128];
	int fd, size;

	set_up(&f, 64 << 20);
	fd = connect_raw(&f);
	hello(fd);
	for (uint64_t i = 1; i <= 30; i++) {
		path_of(path, i, i % BATCHES);
		size = zerocopy_make_get(&g, i, path);
		CHECK(send(fd, &g, (size_t)size, 0) == size);
		cancel.number = i;
		CHECK(send(fd, &cancel, sizeof(cancel), 0) > 0);
	}
	path_of(path, 0, 0);
	size = zerocopy_make_get(&g, 99, path);
	CHECK(send(fd, &g, (size_t)size, 0) == size);
	do
		CHECK(recv(fd, &answer, sizeof(answer), 0) == sizeof(answer));
	while (answer.request != 99);
	CHECK(!answer.result);
	close(fd);
	tear_down(&f);
}

static void more_connections_than_there_may_be_are_refused(void)
{
	int fds[ZEROCOPY_CONNECTIONS_MAX / 2], one_more;
	struct fixture f;

	set_up(&f, 64 << 20);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = connect_raw(&f);
		hello(fds[i]);
	}
	one_more = connect_raw(&f);
	CHECK(is_cut_off(one_more));
	close(one_more);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	CHECK(atomic_load(&f.messages) == 1);
	tear_down(&f);
}

/* Connections leave the budget to what they are for. */
static void a_small_budget_has_fewer_connections(void)
{
	struct budget_stats stats;
	struct budget *budget;
	struct fixture f;
	int fds[256];

	CHECK(!budget_open(16 << 20, NULL, &budget));
	set_up_with(&f, (struct zerocopy_options){ .max_bytes = 64 << 20,
						   .budget = budget });
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = connect_raw(&f);
	CHECK(is_cut_off(fds[ARRAY_LEN(fds) - 1]));
	hello(fds[0]);
	budget_stats(budget, &stats);
	CHECK(stats.used[BUDGET_CONNECTIONS] <= 2 << 20);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	tear_down(&f);
	budget_close(budget);
}

enum { SILENT = 8, FILES = 64 };

static int first_answer(const struct fixture *f, int *fd)
{
	char path[128];

	*fd = connect_raw(f);
	hello(*fd);
	path_of(path, 0, 0);
	ask_path(*fd, 1, path);
	return answer_of(*fd).result;
}

/* Descriptors that no process has received count against the limit of the
   user who sent them. */
static void use_up_descriptors(void)
{
	const struct rlimit few = { FILES, FILES };
	int silent[SILENT], honest, r;
	struct fixture f;
	char path[128];

	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	/* Root has no limit. */
	CHECK(geteuid() || !setuid(65534));
	set_up(&f, 256 << 20);
	for (size_t i = 0; i < SILENT; i++) {
		silent[i] = connect_raw(&f);
		hello(silent[i]);
		for (uint64_t k = 0; k < BATCHES; k++) {
			path_of(path, 0, k);
			ask_path(silent[i], k, path);
		}
	}
	/* Until they have got enough of their answers. */
	while (!(r = first_answer(&f, &honest)))
		close(honest);
	CHECK(r == -ENOSPC);
	for (size_t i = 0; i < SILENT; i++)
		close(silent[i]);
	do { /* until their ends were noticed */
		ask_path(honest, 2, path);
		r = answer_of(honest).result;
	} while (r == -ENOSPC);
	CHECK(!r);
	close(honest);
	tear_down(&f);
}

static void loaders_that_do_not_read_break_no_other(void)
{
	pid_t child;
	int status;

	/* Root has no limit of descriptors. */
	if (!geteuid() && !can_be_another_user("no descriptors are left"))
		return;
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		use_up_descriptors();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

/*
 * The daemon may fork, as libfuse does to unmount. Until the child has called
 * exec(), it keeps the daemon's end of a connection open after the daemon has
 * closed it.
 */
static void a_child_keeps_no_connection_alive(void)
{
	struct fixture f;
	struct zerocopy_client *l;
	struct acquired acquired;
	pid_t child;
	int fd;

	set_up(&f, 64 << 20);
	fd = connect_raw(&f);
	hello(fd);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fd);
		for (;;)
			pause();
	}
	close(fd);
	l = lender_of(&f);
	for (uint64_t i = 0; i < BATCHES; i++) {
		CHECK(!get(l, 0, i, &acquired));
		zerocopy_client_release(l, acquired.mapped);
	}
	zerocopy_client_close(l);
	tear_down(&f);
	CHECK(!kill(child, SIGKILL));
	CHECK(waitpid(child, NULL, 0) == child);
}

/* --- slow disks --- */

/* Room for three slots: without the PUT, the last request would be refused. */
static void a_slow_disk_delays_its_own_reader_only(void)
{
	struct zerocopy_number put = { .kind = ZEROCOPY_PUT };
	struct zerocopy_batch first, second;
	struct fixture f;
	struct gate gate;
	int slow, honest;

	set_up(&f, 8 << 20);
	slow = connect_raw(&f);
	honest = connect_raw(&f);
	hello(slow);
	hello(honest);
	ask(honest, 1, 8, 5);
	ask(honest, 2, 8, 6);
	first = answer_of(honest);
	second = answer_of(honest);
	CHECK(!first.result && !second.result);
	ask(honest, 3, 8, 8);
	CHECK(!answer_of(honest).result);
	gate_shut(&gate, f.ds, 0, 1);
	ask(slow, 1, 4, 0);
	gate_wait(&gate, 1);
	put.number = first.slot;
	CHECK(send(honest, &put, sizeof(put), 0) == sizeof(put));
	ask(honest, 4, 8, 7);
	CHECK(!answer_of(honest).result);
	gate_open(&gate);
	/* There is no room for it now. */
	CHECK(answer_of(slow).result == -ENOSPC);
	close(slow);
	close(honest);
	tear_down_behind(&f, &gate);
}

/* As files they read metadata. */
static void names_wait_for_no_disk(void)
{
	static const char *const paths[] = {
		"by/int/00000",		  "by/int/00000/000000.jpg",
		"samples/000000/int",	  "samples/000000/jpg.jpg",
		"columns/jpg/000000.jpg", "shards/000000.tar",
	};
	struct fixture f;
	struct gate gate;
	int fd;

	set_up(&f, 4 << 20);
	gate_shut(&gate, f.ds, 0, SAMPLES);
	fd = connect_raw(&f);
	hello(fd);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		ask_path(fd, i, paths[i]);
		CHECK(answer_of(fd).result == -EINVAL);
	}
	close(fd);
	tear_down_behind(&f, &gate);
}

/* --- places --- */

static void peers_that_say_nothing_are_closed(void)
{
	struct fixture f;
	struct zerocopy_client *l;
	struct acquired acquired;
	int fds[3];

	set_up_with(&f, (struct zerocopy_options){ .max_bytes = 64 << 20,
						   .hello_ms = 300 });
	l = lender_of(&f);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = connect_raw(&f);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		CHECK(is_cut_off(fds[i]));
		close(fds[i]);
	}
	CHECK(atomic_load(&f.messages) == 3);
	/* Others may be silent after their HELLO. */
	CHECK(!get(l, 0, 0, &acquired));
	zerocopy_client_close(l);
	tear_down(&f);
}

/* Connects as often as it may, and more often. */
static uint32_t connect_as(uid_t uid, const struct fixture *f)
{
	const struct zerocopy_hello message = { .kind = ZEROCOPY_HELLO,
						.version = ZEROCOPY_VERSION,
						.magic = ZEROCOPY_MAGIC };
	struct zerocopy_welcome welcome;
	uint32_t n = 0;
	int fd;

	CHECK(!setuid(uid));
	for (int i = 0; i < ZEROCOPY_CONNECTIONS_MAX; i++) {
		fd = connect_raw(f);
		send(fd, &message, sizeof(message), MSG_NOSIGNAL);
		n += recv(fd, &welcome, sizeof(welcome), 0) == sizeof(welcome);
	}
	return n;
}

/* A process that keeps its connections until it is killed. */
static pid_t crowd_of(uid_t uid, const struct fixture *f, uint32_t *n)
{
	int ready[2];
	pid_t child;

	CHECK(!pipe(ready));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		*n = connect_as(uid, f);
		CHECK(write(ready[1], n, sizeof(*n)) == sizeof(*n));
		for (;;)
			pause();
	}
	close(ready[1]);
	CHECK(read(ready[0], n, sizeof(*n)) == sizeof(*n));
	close(ready[0]);
	return child;
}

static void one_user_leaves_places_for_others(void)
{
	struct fixture f;
	pid_t children[2];
	uint32_t n[2];
	int fds[4];

	/* Only root can be other users. */
	if (geteuid())
		return;
	set_up_with(&f,
		    (struct zerocopy_options){ .max_bytes = 64 << 20,
					       .allow = ZEROCOPY_ALLOW_OTHER });
	children[0] = crowd_of(65534, &f, &n[0]);
	children[1] = crowd_of(65533, &f, &n[1]);
	CHECK(n[0] == ZEROCOPY_CONNECTIONS_MAX / 2);
	CHECK(n[1] == ZEROCOPY_CONNECTIONS_MAX / 4);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = connect_raw(&f);
		hello(fds[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	for (size_t i = 0; i < ARRAY_LEN(children); i++) {
		CHECK(!kill(children[i], SIGKILL));
		CHECK(waitpid(children[i], NULL, 0) == children[i]);
	}
	tear_down(&f);
}

static void a_loader_waits_for_descriptors(void)
{
	struct rlimit before, none;
	struct fixture f;
	int fd, free_fd;

	set_up(&f, 64 << 20);
	fd = socket_raw();
	CHECK(!getrlimit(RLIMIT_NOFILE, &before));
	none = before;
	free_fd = dup(fd);
	none.rlim_cur = (rlim_t)free_fd;
	close(free_fd);
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	connect_socket(&f, fd);
	usleep(50000);
	CHECK(!setrlimit(RLIMIT_NOFILE, &before));
	hello(fd);
	close(fd);
	tear_down(&f);
}

/* --- permissions --- */

/* The answer to a user who owns nothing, if the mount has these modes. */
static int answer_with_modes(mode_t directories, mode_t files)
{
	const struct ns_owner owner = { .dir_mode = directories,
					.file_mode = files };
	struct daemon_end d;
	int fd, result;

	daemon_end_open(&d, &owner, 64 << 20);
	fd = daemon_end_connect(&d, geteuid() + 1);
	daemon_end_hello(&d, fd);
	result = daemon_end_get(&d, fd, 0, NULL).result;
	close(fd);
	daemon_end_close(&d);
	return result;
}

static void batches_need_permissions(void)
{
	CHECK(!answer_with_modes(0555, 0444));
	CHECK(!answer_with_modes(0111, 0004));
	CHECK(answer_with_modes(0555, 0440) == -EACCES);
	CHECK(answer_with_modes(0554, 0444) == -EACCES);
}

/* A process that has gone may have left the memory to another. */
static void memory_of_a_closed_connection_holds_no_other_batch(void)
{
	const struct ns_owner owner = { .dir_mode = 0555, .file_mode = 0444 };
	struct zerocopy_number put = { .kind = ZEROCOPY_PUT };
	struct zerocopy_batch first, other;
	struct daemon_end d;
	uint8_t *seen, *before;
	int gone, next, memory;

	daemon_end_open(&d, &owner, 8 << 20);
	gone = daemon_end_connect(&d, geteuid());
	daemon_end_hello(&d, gone);
	first = daemon_end_get(&d, gone, 0, &memory);
	CHECK(!first.result && memory >= 0);
	seen = mmap(NULL, first.size, PROT_READ, MAP_SHARED, memory, 0);
	before = malloc(first.size);
	CHECK(seen != MAP_FAILED && before);
	memcpy(before, seen, first.size);
	close(gone);
	next = daemon_end_connect(&d, geteuid());
	daemon_end_hello(&d, next);
	for (uint64_t i = 1; i < BATCHES; i++) {
		other = daemon_end_get(&d, next, i, NULL);
		CHECK(!other.result);
		put.number = other.slot;
		CHECK(send(next, &put, sizeof(put), 0) == sizeof(put));
	}
	CHECK(!memcmp(seen, before, first.size));
	munmap(seen, first.size);
	close(memory);
	free(before);
	close(next);
	daemon_end_close(&d);
}

static void permissions_are_those_of_the_kernel(void)
{
	const struct stat st = { .st_uid = 10, .st_gid = 20, .st_mode = 0754 };
	struct peer peer = { .uid = 10, .gid = 20 };

	CHECK(peer_may(&peer, &st, 5) && peer_may(&peer, &st, 4));
	peer.uid = 11;
	CHECK(peer_may(&peer, &st, 5) && !peer_may(&peer, &st, 2));
	peer.gid = 21;
	CHECK(peer_may(&peer, &st, 4) && !peer_may(&peer, &st, 1));
	peer.groups[0] = 20;
	peer.num_groups = 1;
	CHECK(peer_may(&peer, &st, 5));
	peer.uid = 0;
	CHECK(peer_is_trusted(&peer) &&
	      peer_may(&peer, &(struct stat){ .st_mode = 0 }, 4));
	peer.uid = geteuid();
	CHECK(peer_is_trusted(&peer));
}

int main(void)
{
	batches_come_as_they_are();
	held_memory_is_not_reused();
	the_same_batch_twice_is_held_twice();
	half_of_the_memory_may_be_kept();
	a_request_beyond_the_shared_memory_is_refused();
	a_refused_user_is_not_counted();
	paths_that_are_no_batch_are_errors();
	a_daemon_that_ends_leaves_the_bytes();
	no_daemon_is_an_error();
	eight_loaders_share_a_small_pool();
	bad_messages_end_the_connection();
	a_flood_ends_the_connection();
	few_answers_wait_to_be_read();
	requests_can_be_cancelled_at_any_time();
	more_connections_than_there_may_be_are_refused();
	a_small_budget_has_fewer_connections();
	loaders_that_do_not_read_break_no_other();
	a_child_keeps_no_connection_alive();
	peers_that_say_nothing_are_closed();
	one_user_leaves_places_for_others();
	a_loader_waits_for_descriptors();
	a_slow_disk_delays_its_own_reader_only();
	names_wait_for_no_disk();
	permissions_are_those_of_the_kernel();
	batches_need_permissions();
	memory_of_a_closed_connection_holds_no_other_batch();
	return 0;
}
