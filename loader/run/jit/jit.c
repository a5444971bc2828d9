/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/jit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/log.h"
#include "fs/base/util/thread.h"
#include "loader/run/jit/code.h"
#include "loader/run/jit/code_cache.h"
#include "loader/run/jit/compiler.h"
#include "loader/run/jit/pointwise_rows.h"
#include "loader/util/cancel.h"

enum {
	COMPILE_MS = 60000,
	/* How long to wait for another process that compiles the same object.
	   It needs about as long as this one. */
	LOCK_MS = 5000,
	CACHE_LIMIT = 64 << 20,
};

enum mode {
	MODE_BACKGROUND,
	MODE_WAIT,
	MODE_OFF,
};

/* Another pointwise stage that uses the code of an item. */
struct sharer {
	struct sharer *next;
	struct pointwise *stage;
};

/* A kernel, loaded or being compiled. */
struct jit_item {
	struct jit_item *next;
	struct jit_item *next_waiting;
	struct pointwise *stage;
	char *key;
	void *library;		/* NULL: not loaded */
	int fd;			/* of its file; -1: none */
	kernel_fn *run;		/* NULL: not there; guarded by jit.lock, as the
				   next */
	struct sharer *sharers; /* pointwise stages that get it too */
};

struct jit {
	struct log *log;
	enum mode mode;
	bool stays; /* keep code in files, for profilers */
	bool dumps;
	bool has_compiler;
	struct compiler compiler;
	struct code_cache *objects;
	struct cancel closed;	   /* cancels what the thread does */
	struct cancel interrupted; /* cancels what the caller does */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct jit_item *items;	  /* all, for unloading; guarded by lock, as all
				 that follows */
	struct jit_item *waiting; /* for the thread, in their order */
	bool closing;
	bool has_thread;
	pthread_t thread;
};

/* --- opening --- */

static int read_mode(struct log *log, enum mode *out)
{
	static const char *const modes[] = { "background", "wait", "off" };
	const char *own = secure_getenv("BETON_JIT");

	*out = MODE_BACKGROUND;
	if (!own || !*own)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		if (!strcmp(own, modes[i])) {
			*out = (enum mode)i;
			return 0;
		}
	}
	log_error(log,
		  "BETON_JIT is `%.40s'; there are background, wait and off",
		  own);
	return -EINVAL;
}

int jit_open(const struct jit_options *options, struct jit **out)
{
	struct log *log = options->log;
	const char *dump = secure_getenv("BETON_DUMP");
	const char *perf = secure_getenv("BETON_PERF");
	struct jit *jit;
	enum mode mode;
	int r = read_mode(log, &mode);

	if (r)
		return r;
	jit = calloc(1, sizeof(*jit));
	if (!jit)
		return -ENOMEM;
	jit->log = log;
	jit->mode = mode;
	jit->dumps = dump && !strcmp(dump, "1");
	jit->stays = perf && !strcmp(perf, "1");
	pthread_mutex_init(&jit->lock, NULL);
	pthread_cond_init(&jit->wake, NULL);
	jit->interrupted = (struct cancel){ .fd = -1,
					    .asked = options->interrupted,
					    .arg = options->interrupted_arg };
	jit->closed.fd = eventfd(0, EFD_CLOEXEC);
	if (jit->closed.fd < 0) {
		r = -errno;
		jit_close(jit);
		return r;
	}
	jit->has_compiler = mode != MODE_OFF && !compiler_find(&jit->compiler);
	if (jit->has_compiler)
		jit->objects =
			code_cache_open(isa_best()->name, CACHE_LIMIT, log);
	*out = jit;
	return 0;
}

/* --- loading --- */

static int write_whole(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

/*
 * Loads a file by its descriptor, so that another user who replaces the file
 * changes nothing. The descriptor stays open as long as the library, since
 * dlopen() identifies libraries by their names. Closes it on failure.
 */
static void *load_descriptor(int fd, const uint8_t *bytes, size_t size,
			     int *fd_out)
{
	void *library = NULL;
	char path[48];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!write_whole(fd, bytes, size))
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library)
		*fd_out = fd;
	else
		close(fd);
	return library;
}

/*
 * Loads from memory, which works on machines that forbid execution on writable
 * file systems. No other process can change it either.
 */
static void *load_from_memory(const uint8_t *bytes, size_t size, int *fd_out)
{
	int fd = memfd_create("beton-kernel", MFD_CLOEXEC);

	return fd < 0 ? NULL : load_descriptor(fd, bytes, size, fd_out);
}

/*
 * If memory files may not be executed, uses a temporary file. For profilers the
 * file stays, since they read names of functions after the run. Its name
 * contains the owner's process.
 */
static void *load_from_file(const struct jit *jit, const uint8_t *bytes,
			    size_t size, int *fd_out)
{
	char path[64];
	int fd;
	void *library;

	snprintf(path, sizeof(path), "/tmp/beton-kernel-%d-XXXXXX.so",
		 (int)getpid());
	fd = mkostemps(path, 3, O_CLOEXEC);
	if (fd < 0)
		return NULL;
	library = load_descriptor(fd, bytes, size, fd_out);
	if (!jit->stays || !library)
		unlink(path);
	return library;
}

static void unload(struct jit_item *item)
{
	if (item->library)
		dlclose(item->library);
	if (item->fd >= 0)
		close(item->fd);
	item->library = NULL;
	item->fd = -1;
}

static void give_kernel(struct pointwise *stage, kernel_fn *run)
{
	if (pointwise_agrees(stage, run))
		pointwise_set_kernel(stage, run, POINTWISE_GENERATED);
}

/* Gives the code to all pointwise stages that share the item. */
static void publish(struct jit *jit, struct jit_item *item, kernel_fn *run)
{
	struct sharer *s;

	pointwise_set_kernel(item->stage, run, POINTWISE_GENERATED);
	scoped_lock(&jit->lock);
	item->run = run;
	for (s = item->sharers; s; s = s->next)
		give_kernel(s->stage, run);
}

/* Gives the pointwise stage its kernel. -ENOEXEC: it cannot be loaded, or is
 * wrong. */
static int load_item(struct jit *jit, struct jit_item *item,
		     const uint8_t *bytes, size_t size)
{
	kernel_fn *run;

	if (jit->stays)
		item->library = load_from_file(jit, bytes, size, &item->fd);
	if (!item->library)
		item->library = load_from_memory(bytes, size, &item->fd);
	if (!item->library)
		item->library = load_from_file(jit, bytes, size, &item->fd);
	if (!item->library)
		return -ENOEXEC;
	*(void **)&run = dlsym(item->library, KERNEL_NAME);
	if (!run || !pointwise_agrees(item->stage, run)) {
		unload(item);
		return -ENOEXEC;
	}
	publish(jit, item, run);
	return 0;
}

/* --- compiling --- */

static struct compiler_job job_of(const struct pointwise *stage,
				  struct cancel *cancel)
{
	return (struct compiler_job){
		.source = stage->code,
		.isa_flags = stage->isa->flags,
		.is_user = stage->is_custom,
		.cancel = cancel,
		.limit_ms = COMPILE_MS,
	};
}

/* The key of an object: everything that it depends on. */
static char *make_key(const struct jit *jit, const struct pointwise *stage)
{
	const struct compiler_job job = job_of(stage, NULL);
	const char *flags[COMPILER_FLAGS_MAX];
	struct code c = { 0 };

	code_add(&c, "abi %d\ncompiler %s\nisa %s\nflags", KERNEL_ABI,
		 jit->compiler.identity, stage->isa->name);
	compiler_flags(&job, flags);
	for (size_t i = 0; flags[i]; i++)
		code_add(&c, " %s", flags[i]);
	code_add(&c, "\n%s", stage->code);
	return code_take(&c);
}

static int load_cached(struct jit *jit, struct jit_item *item)
{
	cleanup_free uint8_t *bytes = NULL;
	size_t size;
	int r = code_cache_load(jit->objects, item->key, &bytes, &size);

	return r ? r : load_item(jit, item, bytes, size);
}

static int compile(struct jit *jit, struct jit_item *item,
		   struct cancel *cancel, char **messages)
{
	const struct compiler_job job = job_of(item->stage, cancel);
	cleanup_free uint8_t *bytes = NULL;
	size_t size;
	int r = compiler_run(&jit->compiler, &job, &bytes, &size, messages);

	if (!r) {
		r = load_item(jit, item, bytes, size);
		if (r && messages)
			*messages = strdup("the compiler made code that cannot "
					   "be loaded, or gives other values");
	}
	if (!r)
		code_cache_store(jit->objects, item->key, bytes, size);
	return r;
}

/*
 * Compiles the kernel of an item that the first lookup did not find in the
 * cache.
 */
static int make(struct jit *jit, struct jit_item *item, struct cancel *cancel,
		char **messages)
{
	int lock = code_cache_lock(jit->objects, item->key, LOCK_MS, cancel);
	int r;

	if (lock == -ECANCELED)
		return lock;
	/* Another process may have stored it meanwhile. */
	r = lock < 0 ? lock : load_cached(jit, item);
	if (r)
		r = compile(jit, item, cancel, messages);
	code_cache_unlock(lock);
	return r;
}

/* Compiles code that the definitions can replace. 0 or -ECANCELED. */
static int make_quietly(struct jit *jit, struct jit_item *item,
			struct cancel *cancel)
{
	cleanup_free char *messages = NULL;
	int r = make(jit, item, cancel, &messages);

	if (!r || r == -ECANCELED)
		return r;
	if (messages)
		messages[strcspn(messages, "\n")] = '\0';
	log_warning(jit->log, "%s: %s%s%s; rows of `%s' are made without it",
		    jit->compiler.path, strerror(-r),
		    messages && *messages ? ": " : "", messages ? messages : "",
		    item->stage->chain->name);
	return 0;
}

static void *work(void *arg)
{
	struct jit *jit = arg;
	struct jit_item *item;

	pthread_mutex_lock(&jit->lock);
	for (;;) {
		while (!jit->waiting && !jit->closing)
			pthread_cond_wait(&jit->wake, &jit->lock);
		if (jit->closing)
			break;
		item = jit->waiting;
		jit->waiting = item->next_waiting;
		pthread_mutex_unlock(&jit->lock);
		make_quietly(jit, item, &jit->closed);
		pthread_mutex_lock(&jit->lock);
	}
	pthread_mutex_unlock(&jit->lock);
	return NULL;
}

static int start_thread(struct jit *jit)
{
	int r = thread_start(&jit->thread, work, jit);

	jit->has_thread = !r;
	return r;
}

/* --- pointwise stages --- */

static void dump(const struct jit *jit, const struct pointwise *stage)
{
	if (jit->dumps)
		fprintf(stderr, "/* %s: %s */\n%s\n", stage->chain->name,
			pointwise_engine_name(stage), stage->code);
}

static struct jit_item *add_item(struct jit *jit, struct pointwise *stage,
				 char *key)
{
	struct jit_item *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->fd = -1;
	item->stage = stage;
	item->key = key;
	scoped_lock(&jit->lock);
	item->next = jit->items;
	jit->items = item;
	return item;
}

/* Needs no lock: only callers of this function add items. */
static struct jit_item *find_item(const struct jit *jit, const char *key)
{
	struct jit_item *item = jit->items;

	while (item && strcmp(item->key, key) != 0)
		item = item->next;
	return item;
}

/* The pointwise stage shares another pointwise stage's kernel, now or once it
 * is ready. */
static int share(struct jit *jit, struct jit_item *item,
		 struct pointwise *stage)
{
	struct sharer *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->stage = stage;
	scoped_lock(&jit->lock);
	s->next = item->sharers;
	item->sharers = s;
	if (item->run)
		give_kernel(stage, item->run);
	return 0;
}

/* Queues the item for the thread, or compiles it at once. */
static int queue(struct jit *jit, struct jit_item *item)
{
	struct jit_item **end = &jit->waiting;

	if (jit->mode == MODE_WAIT)
		return make_quietly(jit, item, &jit->interrupted);
	scoped_lock(&jit->lock);
	while (*end)
		end = &(*end)->next_waiting;
	*end = item;
	if (!jit->has_thread && start_thread(jit))
		log_warning(jit->log, "no thread to compile in");
	pthread_cond_signal(&jit->wake);
	return 0;
}

static int refuse(const struct jit *jit, char **messages)
{
	if (messages)
		*messages = strdup(jit->mode == MODE_OFF
					   ? "it must be compiled, and "
					     "BETON_JIT is off"
					   : "it must be compiled, and there "
					     "is no C compiler");
	return -ENOSYS;
}

int jit_add(struct jit *jit, struct pointwise *stage, char **messages)
{
	cleanup_free char *key = NULL;
	struct jit_item *item;
	int r = 0;

	if (!jit->has_compiler && stage->is_custom)
		return refuse(jit, messages);
	if (!jit->has_compiler || atomic_load(&stage->kernel) ||
	    pointwise_is_copy(stage)) {
		dump(jit, stage);
		return 0;
	}
	key = make_key(jit, stage);
	if (!key)
		return -ENOMEM;
	item = find_item(jit, key);
	if (item)
		return share(jit, item, stage);
	item = add_item(jit, stage, key);
	if (!item)
		return -ENOMEM;
	key = NULL;
	r = load_cached(jit, item);
	if (r && stage->is_custom)
		r = make(jit, item, &jit->interrupted, messages);
	else if (r)
		r = queue(jit, item);
	dump(jit, stage);
	return r;
}

static void free_item(struct jit_item *item)
{
	struct sharer *s, *next;

	unload(item);
	for (s = item->sharers; s; s = next) {
		next = s->next;
		free(s);
	}
	free(item->key);
	free(item);
}

void jit_close(struct jit *jit)
{
	struct jit_item *item, *next;

	if (!jit)
		return;
	pthread_mutex_lock(&jit->lock);
	jit->closing = true;
	pthread_cond_signal(&jit->wake);
	pthread_mutex_unlock(&jit->lock);
	if (jit->has_thread) {
		eventfd_write(jit->closed.fd, 1);
		pthread_join(jit->thread, NULL);
	}
	for (item = jit->items; item; item = next) {
		next = item->next;
		free_item(item);
	}
	code_cache_close(jit->objects);
	if (jit->closed.fd >= 0)
		close(jit->closed.fd);
	pthread_cond_destroy(&jit->wake);
	pthread_mutex_destroy(&jit->lock);
	free(jit);
}
