/* SPDX-License-Identifier: Apache-2.0 */
#include "loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "number.h"
#include "tensor.h"

enum {
	PATIENCE_MS = 50, /* longest delay of a signal during a wait */
	STATE_SIZE = 4096,
	ERROR_SIZE = 1024,
	STAGES_MAX = 16,
	THREADS_MAX = 4096, /* of <beton/loader.h> */
};

struct loader {
	PyObject_HEAD struct handle *handle;
	PyObject *tell; /* called with each message: its level and its text */
	bool on_stream; /* has outputs in GPU memory */
};

struct batch {
	PyObject_HEAD struct hold *hold;
};

/* --- batches --- */

static const struct beton_batch *batch_of(PyObject *self)
{
	return ((struct batch *)self)->hold->batch;
}

static void batch_dealloc(PyObject *self)
{
	hold_put(((struct batch *)self)->hold);
	free_object(self);
}

static PyObject *new_tensor(PyObject *self, const struct tensor_view *view)
{
	return tensor_new(types_of(self), ((struct batch *)self)->hold, view);
}

static PyObject *get_output(PyObject *self, uint32_t i)
{
	const struct beton_batch *b = batch_of(self);
	const struct beton_tensor *t = &b->outputs[i];
	const struct tensor_view v = {
		.name = t->name,
		.dtype = t->dtype,
		.data = (void *)t->data,
		.size = t->size,
		.ndim = t->ndim,
		.shape = t->shape,
		.offsets = t->offsets,
		.rows = b->num_samples,
		.device_type = t->device_type,
		.device_id = t->device_id,
	};

	return new_tensor(self, &v);
}

static PyObject *get_outputs(PyObject *self, void *unused)
{
	uint32_t n = batch_of(self)->num_outputs;
	PyObject *outputs = PyTuple_New(n);

	(void)unused;
	for (uint32_t i = 0; outputs && i < n; i++) {
		PyObject *t = get_output(self, i);

		if (!t || PyTuple_SetItem(outputs, i, t)) {
			Py_DECREF(outputs);
			return NULL;
		}
	}
	return outputs;
}

/* Returns an array with one value per sample. */
static PyObject *get_rows(PyObject *self, const char *name, const char *dtype,
			  const void *data, uint64_t width)
{
	const uint32_t rows = batch_of(self)->num_samples;
	const struct tensor_view v = {
		.name = name,
		.dtype = dtype,
		.data = (void *)data,
		.size = width * rows,
		.ndim = 1,
		.length = rows,
		.device_type = BETON_DEVICE_CPU,
	};

	return new_tensor(self, &v);
}

static PyObject *get_ids(PyObject *self, void *unused)
{
	(void)unused;
	return get_rows(self, "ids", "<i8", batch_of(self)->ids, 8);
}

static PyObject *get_valid(PyObject *self, void *unused)
{
	(void)unused;
	return get_rows(self, "valid", "|b1", batch_of(self)->valid, 1);
}

static PyObject *get_epoch(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(batch_of(self)->epoch);
}

static PyObject *get_number(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(batch_of(self)->number);
}

static PyObject *get_num_samples(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLong(batch_of(self)->num_samples);
}

static PyGetSetDef batch_attributes[] = {
	{ "epoch", get_epoch, NULL, NULL, NULL },
	{ "number", get_number, NULL, NULL, NULL },
	{ "num_samples", get_num_samples, NULL, NULL, NULL },
	{ "outputs", get_outputs, NULL, NULL, NULL },
	{ "ids", get_ids, NULL, NULL, NULL },
	{ "valid", get_valid, NULL, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot batch_slots[] = {
	{ Py_tp_dealloc, batch_dealloc },
	{ Py_tp_getset, batch_attributes },
	{ 0, NULL },
};

PyType_Spec batch_spec = {
	.name = "betonfs._beton.Batch",
	.basicsize = sizeof(struct batch),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = batch_slots,
};

/* --- who may call --- */

static struct handle *handle_of(PyObject *self)
{
	return ((struct loader *)self)->handle;
}

static int check_process(const struct handle *h)
{
	if (handle_is_ours(h))
		return 0;
	PyErr_SetString(PyExc_RuntimeError,
			"this loader belongs to the process that opened it, "
			"and its threads are there: open it after fork(), or "
			"start processes by spawn");
	return -1;
}

static int lock_a_while(struct handle *h)
{
	struct timespec end;
	int r;

	Py_BEGIN_ALLOW_THREADS;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += PATIENCE_MS * 1000000L;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	r = pthread_mutex_timedlock(&h->lock, &end);
	Py_END_ALLOW_THREADS;
	return r;
}

/* Locks the state that one thread at a time may use. On failure, sets an
   exception and returns -1 without the lock. */
static int lock(struct handle *h)
{
	if (check_process(h))
		return -1;
	if (pthread_mutex_trylock(&h->lock)) {
		while (lock_a_while(h)) {
			if (PyErr_CheckSignals())
				return -1;
		}
	}
	if (!h->closed)
		return 0;
	pthread_mutex_unlock(&h->lock);
	PyErr_SetString(PyExc_RuntimeError, "the loader is closed");
	return -1;
}

static void unlock(struct handle *h)
{
	pthread_mutex_unlock(&h->lock);
}

/* --- the library's messages --- */

static int tell_one(PyObject *function, const struct message *m)
{
	PyObject *text = PyUnicode_DecodeUTF8(
		m->text, (Py_ssize_t)strlen(m->text), "replace");
	PyObject *done = text ? PyObject_CallFunction(function, "iO",
						      (int)m->level, text)
			      : NULL;

	Py_XDECREF(text);
	Py_XDECREF(done);
	return done ? 0 : -1;
}

/* Passes the messages that have arrived to Python. The caller has no lock,
   because a handler of Python's logging may call the loader. */
static int tell(PyObject *self)
{
	struct handle *h = handle_of(self);
	struct message m[MESSAGES_MAX];
	unsigned n;
	int r = 0;

	pthread_mutex_lock(&h->log_lock);
	n = h->num_messages;
	memcpy(m, h->messages, n * sizeof(*m));
	h->num_messages = 0;
	pthread_mutex_unlock(&h->log_lock);
	for (unsigned i = 0; i < n; i++) {
		if (!r)
			r = tell_one(((struct loader *)self)->tell, &m[i]);
		free(m[i].text);
	}
	return r;
}

/* Does what a thread that waits owes Python: runs the handlers of signals, and
   passes messages on, so that the user reads the reason of a long wait. */
static int attend(PyObject *self)
{
	if (PyErr_CheckSignals())
		return -1;
	return handle_of(self)->num_messages ? tell(self) : 0;
}

/* --- opening and closing --- */

static bool has_gpu_output(const struct beton_loader *l)
{
	struct beton_output o;

	for (uint32_t i = 0; !beton_loader_output(l, i, &o); i++) {
		if (o.device_type != BETON_DEVICE_CPU)
			return true;
	}
	return false;
}

/* A thread that opens a loader without the GIL. */
struct opening {
	PyObject *loader;
	PyThreadState *state;
};

static bool is_interrupted(void *arg)
{
	struct opening *o = arg;
	bool interrupted;

	PyEval_RestoreThread(o->state);
	interrupted = attend(o->loader) != 0;
	o->state = PyEval_SaveThread();
	return interrupted;
}

static int open_loader(PyObject *self, const char *path,
		       struct beton_loader_options *o)
{
	struct opening opening = { self, PyEval_SaveThread() };
	int r;

	o->interrupted = is_interrupted;
	o->interrupted_arg = &opening;
	r = beton_loader_open(path, o, &handle_of(self)->loader);
	PyEval_RestoreThread(opening.state);
	return r;
}

#define BYTES "; in bytes, as 64 << 20"

/* Index of each number among the options. */
enum {
	CACHE_SIZE,
	COLD_SIZE,
	PINNED,
	EPOCH,
	WORKERS,
	PREFETCH,
	RANK,
	WORLD,
};

/* A string option, or None. */
struct text {
	const char *name; /* for messages */
	const char *value;
};

static int text_convert(PyObject *object, void *text)
{
	struct text *t = text;
	Py_ssize_t size = 0;
	char wrong[64];

	if (object == Py_None)
		return 1;
	if (PyUnicode_Check(object)) {
		t->value = PyUnicode_AsUTF8AndSize(object, &size);
		if (!t->value || strlen(t->value) == (size_t)size)
			return t->value != NULL;
	}
	snprintf(wrong, sizeof(wrong), "%s=%%R: a text", t->name);
	PyErr_Format(PyExc_TypeError, wrong, object);
	return 0;
}

/* Parses the arguments. The path is a bytes object that the caller releases. On
   failure, sets an exception and returns -1. */
static int parse_options(PyObject *args, PyObject *kwargs, PyObject **path,
			 PyObject **tell, struct beton_loader_options *o)
{
	static const char *const names[] = { "path",
					     "spec",
					     "subset",
					     "pipeline",
					     "device",
					     "source",
					     "cache",
					     "delivery",
					     "job",
					     "cache_size",
					     "cold_size",
					     "pinned",
					     "epoch",
					     "workers",
					     "prefetch",
					     "rank",
					     "world_size",
					     "on_error",
					     "callback",
					     "no_padding",
					     "verify",
					     "storage_options",
					     "on_demand",
					     "role",
					     "spare_workers",
					     "tell",
					     NULL };
	struct number n[] = {
		[CACHE_SIZE] = { .name = "cache_size",
				 .unit = BYTES,
				 .max = UINT64_MAX },
		[COLD_SIZE] = { .name = "cold_size",
				.unit = BYTES,
				.max = UINT64_MAX },
		[PINNED] = { .name = "pinned",
			     .unit = BYTES,
			     .max = UINT64_MAX },
		[EPOCH] = { .name = "epoch", .max = INT64_MAX },
		[WORKERS] = { .name = "workers", .max = THREADS_MAX },
		[PREFETCH] = { .name = "prefetch", .max = THREADS_MAX },
		[RANK] = { .name = "rank", .max = UINT32_MAX },
		[WORLD] = { .name = "world_size", .max = UINT32_MAX },
	};
	struct text source = { "source", NULL }, cache = { "cache", NULL },
		    delivery = { "delivery", NULL }, job = { "job", NULL };
	int on_error = 0, callback = 0, no_padding = 0, verify = 0,
	    on_demand = 0, role = 0, spare_workers = 0;

	if (!PyArg_ParseTupleAndKeywords(
		    args, kwargs, "O&|$zzzzO&O&O&O&O&O&O&O&O&O&O&O&ipppzpipO",
		    (char **)names, PyUnicode_FSConverter, path, &o->spec,
		    &o->subset, &o->pipeline, &o->device, text_convert, &source,
		    text_convert, &cache, text_convert, &delivery, text_convert,
		    &job, number_convert, &n[CACHE_SIZE], number_convert,
		    &n[COLD_SIZE], number_convert, &n[PINNED], number_convert,
		    &n[EPOCH], number_convert, &n[WORKERS], number_convert,
		    &n[PREFETCH], number_convert, &n[RANK], number_convert,
		    &n[WORLD], &on_error, &callback, &no_padding, &verify,
		    &o->storage_options, &on_demand, &role, &spare_workers,
		    tell))
		return -1;
	o->source = source.value;
	o->cache = cache.value;
	o->delivery = delivery.value;
	o->job = job.value;
	o->cache_size = n[CACHE_SIZE].value;
	o->cold_size = n[COLD_SIZE].value;
	o->pinned = n[PINNED].value;
	o->epoch = n[EPOCH].value;
	o->workers = (uint32_t)n[WORKERS].value;
	o->prefetch = (uint32_t)n[PREFETCH].value;
	o->rank = (uint32_t)n[RANK].value;
	o->world_size = (uint32_t)n[WORLD].value;
	o->on_error = (enum beton_on_error)on_error;
	o->callback = callback;
	o->no_padding = no_padding;
	o->verify = (uint64_t)verify;
	o->on_demand = (uint64_t)on_demand;
	o->role = (uint64_t)role;
	o->spare_workers = (uint64_t)spare_workers;
	return 0;
}

static PyObject *loader_new(PyTypeObject *type, PyObject *args,
			    PyObject *kwargs)
{
	struct loader *l = NULL;
	PyObject *path = NULL, *tell = NULL;
	char error[ERROR_SIZE] = "";
	int r;
	struct beton_loader_options o = {
		.size = sizeof(o),
		.log = handle_log,
		.error = error,
		.error_size = sizeof(error),
	};

	if (parse_options(args, kwargs, &path, &tell, &o))
		return NULL;
	if (!tell) {
		PyErr_SetString(PyExc_TypeError, "tell= is missing");
		goto out;
	}
	l = (struct loader *)PyType_GenericAlloc(type, 0);
	if (!l)
		goto out;
	l->tell = Py_NewRef(tell);
	o.log_arg = l->handle = handle_new();
	if (!l->handle) {
		PyErr_NoMemory();
		Py_CLEAR(l);
		goto out;
	}
	r = open_loader((PyObject *)l, PyBytes_AsString(path), &o);
	if (r) {
		/* If a signal handler has raised an exception, keep it. */
		if (!PyErr_Occurred())
			raise_error(-r, error, PyBytes_AsString(path));
		Py_CLEAR(l);
	} else {
		l->on_stream = has_gpu_output(l->handle->loader);
	}
out:
	Py_DECREF(path);
	return (PyObject *)l;
}

static void stop(struct handle *h)
{
	Py_BEGIN_ALLOW_THREADS;
	pthread_mutex_lock(&h->lock);
	handle_stop(h);
	pthread_mutex_unlock(&h->lock);
	Py_END_ALLOW_THREADS;
}

static void loader_dealloc(PyObject *self)
{
	struct handle *h = handle_of(self);

	if (h && h->loader && handle_is_ours(h))
		stop(h);
	handle_put(h);
	Py_XDECREF(((struct loader *)self)->tell);
	free_object(self);
}

static PyObject *loader_close(PyObject *self, PyObject *unused)
{
	struct handle *h = handle_of(self);

	(void)unused;
	if (handle_is_ours(h))
		stop(h);
	Py_RETURN_NONE;
}

/* Sets a beton_callback_fn by its address, which must stay valid until the
   threads end. */
static PyObject *loader_callback(PyObject *self, PyObject *address)
{
	struct handle *h = handle_of(self);
	beton_callback_fn *callback =
		(beton_callback_fn *)PyLong_AsVoidPtr(address);
	int r;

	if (PyErr_Occurred() || lock(h))
		return NULL;
	r = beton_loader_set_callback(h->loader, callback, NULL);
	unlock(h);
	if (r)
		return raise_error(-r, "the loader has a callback, or none",
				   NULL);
	Py_RETURN_NONE;
}

/* --- batches of it --- */

/* Locks like lock(), for an iteration. Fails if another iteration has begun. */
static int lock_turn(struct handle *h, uint64_t turn)
{
	if (lock(h))
		return -1;
	if (h->turn == turn)
		return 0;
	unlock(h);
	PyErr_SetString(PyExc_RuntimeError,
			"another iteration of the loader began, or its "
			"position changed: run one iteration at a time");
	return -1;
}

/* Waits for a batch. Calls Python without the lock, because handlers can request
   the state or close the loader. */
static int wait_for_batch(PyObject *self, uint64_t turn)
{
	struct handle *h = handle_of(self);

	if (lock_turn(h, turn))
		return -1;
	while (!h->ended && beton_loader_wait(h->loader, 0)) {
		Py_BEGIN_ALLOW_THREADS;
		beton_loader_wait(h->loader, PATIENCE_MS);
		pthread_mutex_unlock(&h->lock);
		Py_END_ALLOW_THREADS;
		if (attend(self) || lock_turn(h, turn))
			return -1;
	}
	return 0;
}

static int take(PyObject *self, void *stream, const struct beton_batch **out)
{
	struct loader *l = (struct loader *)self;
	int r;

	if (!l->on_stream)
		return beton_loader_next(l->handle->loader, out);
	Py_BEGIN_ALLOW_THREADS;
	r = beton_loader_next_on(l->handle->loader, stream, out);
	Py_END_ALLOW_THREADS;
	return r;
}

static PyObject *wrap(PyObject *self, const struct beton_batch *b, void *stream)
{
	struct loader *l = (struct loader *)self;
	struct types *types = types_of(self);
	struct batch *batch =
		(struct batch *)PyType_GenericAlloc(types->batch, 0);

	if (batch)
		batch->hold = hold_new(l->handle, b, l->on_stream, stream);
	if (batch && batch->hold)
		return (PyObject *)batch;
	beton_loader_release(l->handle->loader, b);
	Py_XDECREF((PyObject *)batch);
	return PyErr_NoMemory();
}

/* Copies the reason of a failure, which the next call replaces. */
static void copy_error(const struct handle *h, char error[static ERROR_SIZE])
{
	snprintf(error, ERROR_SIZE, "%s", beton_loader_error(h->loader));
}

static PyObject *loader_next(PyObject *self, PyObject *args)
{
	struct handle *h = handle_of(self);
	PyObject *stream;
	unsigned long long turn;
	void *on;
	const struct beton_batch *b;
	char error[ERROR_SIZE] = "";
	int r;

	if (!PyArg_ParseTuple(args, "OK", &stream, &turn))
		return NULL;
	on = stream == Py_None ? NULL : PyLong_AsVoidPtr(stream);
	if (PyErr_Occurred() || wait_for_batch(self, turn))
		return NULL;
	/* After the last batch, a request must not begin another epoch. */
	r = h->ended ? -ENODATA : take(self, on, &b);
	h->ended = r == -ENODATA;
	if (!r)
		h->epoch = b->epoch;
	if (!r || h->ended)
		h->fresh = h->ended;
	if (r)
		copy_error(h, error);
	unlock(h);
	if (r == -ENODATA)
		Py_RETURN_NONE;
	return r ? raise_error(-r, error, NULL) : wrap(self, b, on);
}

/* --- batches by name --- */

static int parse_name(PyObject *args, struct number *epoch,
		      struct number *batch, PyObject **stream)
{
	*epoch = (struct number){ .name = "epoch", .max = INT64_MAX };
	*batch = (struct number){ .name = "number", .max = INT64_MAX };
	return PyArg_ParseTuple(args, "O&O&|O", number_convert, epoch,
				number_convert, batch, stream)
		       ? 0
		       : -1;
}

/* Waits as wait_for_batch() does, and returns the result of
   beton_loader_ask() with the lock, or 1 with an exception. */
static int wait_for_name(PyObject *self, uint64_t epoch, uint64_t number)
{
	struct handle *h = handle_of(self);
	int r;

	if (lock(h))
		return 1;
	while ((r = beton_loader_ask(h->loader, epoch, number, 0)) == -EAGAIN) {
		Py_BEGIN_ALLOW_THREADS;
		beton_loader_ask(h->loader, epoch, number, PATIENCE_MS);
		pthread_mutex_unlock(&h->lock);
		Py_END_ALLOW_THREADS;
		if (attend(self) || lock(h))
			return 1;
	}
	return r;
}

/* Begins to make a batch, and does not wait. */
static PyObject *loader_ask(PyObject *self, PyObject *args)
{
	struct handle *h = handle_of(self);
	struct number epoch, number;
	PyObject *stream = NULL;
	char error[ERROR_SIZE] = "";
	int r;

	if (parse_name(args, &epoch, &number, &stream) || lock(h))
		return NULL;
	r = beton_loader_ask(h->loader, epoch.value, number.value, 0);
	if (r && r != -EAGAIN)
		copy_error(h, error);
	unlock(h);
	if (r && r != -EAGAIN)
		return raise_error(-r, error, NULL);
	return PyBool_FromLong(!r);
}

static PyObject *loader_make(PyObject *self, PyObject *args)
{
	struct loader *l = (struct loader *)self;
	struct handle *h = handle_of(self);
	struct number epoch, number;
	PyObject *stream = Py_None;
	char error[ERROR_SIZE] = "";
	const struct beton_batch *b;
	void *on;
	int r;

	if (parse_name(args, &epoch, &number, &stream))
		return NULL;
	on = stream == Py_None ? NULL : PyLong_AsVoidPtr(stream);
	r = PyErr_Occurred() ? 1
			     : wait_for_name(self, epoch.value, number.value);
	if (r > 0)
		return NULL;
	if (!r)
		r = beton_loader_make(h->loader, epoch.value, number.value, &b);
	if (r) {
		copy_error(h, error);
	} else if (l->on_stream) {
		r = beton_loader_acquire(h->loader, b, on);
		if (r)
			beton_loader_release(h->loader, b);
	}
	unlock(h);
	return r ? raise_error(-r, error, NULL) : wrap(self, b, on);
}

/* --- makers --- */

typedef int link_fn(struct beton_loader *loader, int fd, char *why,
		    size_t size);

/* Runs one end of a link. Other threads may use the loader meanwhile, so the
   handle is not locked. */
static PyObject *run_link(PyObject *self, PyObject *socket, link_fn *run)
{
	struct handle *h = handle_of(self);
	int fd = PyObject_AsFileDescriptor(socket), r;
	char error[ERROR_SIZE] = "";

	if (fd < 0 || lock(h))
		return NULL;
	unlock(h);
	Py_BEGIN_ALLOW_THREADS;
	r = run(h->loader, fd, error, sizeof(error));
	Py_END_ALLOW_THREADS;
	if (r && r != -ECANCELED)
		return raise_error(-r, error, NULL);
	Py_RETURN_NONE;
}

static PyObject *loader_serve(PyObject *self, PyObject *socket)
{
	return run_link(self, socket, beton_loader_serve);
}

static PyObject *loader_attach(PyObject *self, PyObject *socket)
{
	return run_link(self, socket, beton_loader_attach);
}

/* --- its place --- */

static PyObject *loader_state(PyObject *self, PyObject *unused)
{
	struct handle *h = handle_of(self);
	char text[STATE_SIZE];
	int r;

	(void)unused;
	if (lock(h))
		return NULL;
	r = beton_loader_state(h->loader, text, sizeof(text));
	unlock(h);
	return r ? raise_error(-r, NULL, NULL) : PyUnicode_FromString(text);
}

/* Finishes a change of the position, which ends all earlier iterations. The
   caller holds the lock. Returns the turn of the next iteration. */
static PyObject *finish(struct handle *h, int r)
{
	char error[ERROR_SIZE] = "";
	uint64_t turn = 0;

	if (r) {
		copy_error(h, error);
	} else {
		h->ended = false;
		turn = ++h->turn;
	}
	unlock(h);
	return r ? raise_error(-r, error, NULL)
		 : PyLong_FromUnsignedLongLong(turn);
}

/* Finishes a move to a position where an iteration can begin. */
static PyObject *finish_fresh(struct handle *h, int r)
{
	h->fresh = h->fresh || !r;
	return finish(h, r);
}

static PyObject *loader_load(PyObject *self, PyObject *args)
{
	struct handle *h = handle_of(self);
	const char *text;

	if (!PyArg_ParseTuple(args, "s", &text) || lock(h))
		return NULL;
	return finish_fresh(h, beton_loader_load(h->loader, text));
}

/* Begins an iteration at the current position. */
static PyObject *loader_begin(PyObject *self, PyObject *unused)
{
	struct handle *h = handle_of(self);

	(void)unused;
	return lock(h) ? NULL : finish(h, 0);
}

/* Begins an iteration, in the next epoch if the user has taken batches of the
   current one. */
static PyObject *loader_begin_epoch(PyObject *self, PyObject *unused)
{
	struct handle *h = handle_of(self);

	(void)unused;
	if (lock(h))
		return NULL;
	return finish_fresh(
		h, h->fresh ? 0 : beton_loader_seek(h->loader, h->epoch + 1));
}

static PyObject *loader_seek(PyObject *self, PyObject *epoch)
{
	struct handle *h = handle_of(self);
	struct number n = { .name = "epoch", .max = INT64_MAX };

	if (!number_convert(epoch, &n) || lock(h))
		return NULL;
	return finish_fresh(h, beton_loader_seek(h->loader, n.value));
}

static PyObject *loader_is_fresh(PyObject *self, PyObject *unused)
{
	struct handle *h = handle_of(self);
	bool fresh;

	(void)unused;
	if (lock(h))
		return NULL;
	fresh = h->fresh;
	unlock(h);
	return PyBool_FromLong(fresh);
}

/* --- facts --- */

/* Create objects without the lock, because the garbage collector can run a
   user's finalizer, which can call this loader. */
static PyObject *loader_info(PyObject *self, PyObject *unused)
{
	struct beton_loader_info i;
	struct handle *h = handle_of(self);

	(void)unused;
	if (lock(h))
		return NULL;
	beton_loader_info(h->loader, &i);
	unlock(h);
	return Py_BuildValue(
		"{s:s, s:s, s:s, s:z, s:s, s:s, s:s, s:K, s:K, s:K, s:I}",
		"spec", i.spec, "source", i.source, "delivery", i.delivery,
		"why_direct", i.why_direct, "decoder", i.decoder, "jit", i.jit,
		"placement", i.placement, "samples",
		(unsigned long long)i.samples, "batches",
		(unsigned long long)i.batches, "steps",
		(unsigned long long)i.steps, "workers", i.workers);
}

static PyObject *new_shape(const struct beton_output *o)
{
	PyObject *shape = PyTuple_New(o->ndim);

	for (uint32_t i = 0; shape && i < o->ndim; i++) {
		PyObject *n =
			o->is_list && !i
				? Py_NewRef(Py_None)
				: PyLong_FromUnsignedLongLong(o->shape[i]);

		if (!n || PyTuple_SetItem(shape, i, n)) {
			Py_DECREF(shape);
			return NULL;
		}
	}
	return shape;
}

static PyObject *new_output(const struct beton_output *o)
{
	return Py_BuildValue("{s:s, s:s, s:N, s:O, s:O, s:i, s:i, s:s}", "name",
			     o->name, "dtype", o->dtype, "shape", new_shape(o),
			     "ragged", o->ragged ? Py_True : Py_False,
			     "is_list", o->is_list ? Py_True : Py_False,
			     "device_type", (int)o->device_type, "device_id",
			     (int)o->device_id, "jit", o->jit);
}

/* Describes an output. Returns -ENOENT past the last output, or -1 with an
   exception. */
static int find_output(struct handle *h, uint32_t i, struct beton_output *out)
{
	int r;

	if (lock(h))
		return -1;
	r = beton_loader_output(h->loader, i, out);
	unlock(h);
	return r;
}

static PyObject *loader_outputs(PyObject *self, PyObject *unused)
{
	PyObject *list = PyList_New(0);
	struct beton_output o;
	int r = 0;

	(void)unused;
	for (uint32_t i = 0; list && !r; i++) {
		PyObject *output;

		r = find_output(handle_of(self), i, &o);
		if (r)
			break;
		output = new_output(&o);
		if (!output || PyList_Append(list, output))
			r = -1;
		Py_XDECREF(output);
	}
	if (r == -ENOENT)
		return list;
	Py_XDECREF(list);
	return NULL;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static PyObject *new_stage(const struct beton_stage_stats *s)
{
	typedef unsigned long long ull;

	return Py_BuildValue(
		"{s:K, s:K, s:d, s:d, s:d, s:d, s:d, s:d, s:d}", "items",
		(ull)s->items, "bytes", (ull)s->bytes, "busy_s",
		seconds(s->busy_ns), "input_wait_s", seconds(s->input_wait_ns),
		"room_wait_s", seconds(s->room_wait_ns), "delay_s",
		seconds(s->delay_ns), "p50_s", seconds(s->p50_ns), "p90_s",
		seconds(s->p90_ns), "p99_s", seconds(s->p99_ns));
}

struct stats {
	struct beton_stage_stats stages[STAGES_MAX];
	size_t num_stages;
	struct beton_throughput_stats throughput;
	struct beton_image_cache_stats kept;
	struct beton_entry_points_stats entries;
	struct beton_network_stats network; /* size 0: not known */
	struct beton_makers_stats makers;   /* size 0: not known */
	uint64_t failed_samples;
};

static void read_stats(const struct beton_loader *l, struct stats *s)
{
	s->num_stages = beton_loader_stats(l, s->stages, STAGES_MAX);
	s->throughput.size = sizeof(s->throughput);
	beton_loader_throughput(l, &s->throughput);
	beton_loader_image_cache(l, &s->kept);
	s->entries.size = sizeof(s->entries);
	beton_loader_entry_points(l, &s->entries);
	s->network.size = sizeof(s->network);
	if (beton_loader_network(l, &s->network))
		s->network.size = 0;
	s->makers.size = sizeof(s->makers);
	if (beton_loader_makers(l, &s->makers))
		s->makers.size = 0;
	s->failed_samples = beton_loader_failed_samples(l);
}

static PyObject *new_throughput(const struct beton_throughput_stats *p)
{
	typedef unsigned long long ull;

	return Py_BuildValue(
		"{s:K, s:K, s:K, s:d, s:d, s:K, s:K, s:K, s:K}", "batches",
		(ull)p->batches, "samples", (ull)p->samples, "waits",
		(ull)p->waits, "wait_s", seconds(p->wait_ns), "trainer_s",
		seconds(p->trainer_ns), "queue_capacity",
		(ull)p->queue_capacity, "queue_ready", (ull)p->queue_ready,
		"queue_empty", (ull)p->queue_empty, "queue_full",
		(ull)p->queue_full);
}

static PyObject *new_kept(const struct beton_image_cache_stats *k)
{
	typedef unsigned long long ull;

	return Py_BuildValue("{s:K, s:K, s:K, s:K}", "size", (ull)k->size,
			     "used", (ull)k->used, "samples", (ull)k->samples,
			     "hits", (ull)k->hits);
}

static PyObject *new_entries(const struct beton_entry_points_stats *e)
{
	typedef unsigned long long ull;

	return Py_BuildValue("{s:K, s:K, s:K, s:K}", "capacity",
			     (ull)e->capacity, "used", (ull)e->used, "samples",
			     (ull)e->samples, "hits", (ull)e->hits);
}

/* None: the loader reads no URL. */
static PyObject *new_network(const struct beton_network_stats *n)
{
	typedef unsigned long long ull;

	if (!n->size)
		Py_RETURN_NONE;
	return Py_BuildValue(
		"{s:K, s:d, s:d, s:d, s:K, s:K, s:K, s:K, s:K, s:K, s:K, s:K, "
		"s:K, s:K, s:K, s:K, s:O, s:{s:K, s:K, s:K}}",
		"rate", (ull)n->rate, "latency_s", seconds(n->latency_ns),
		"first_byte_p50_s", seconds(n->p50_ns), "first_byte_p99_s",
		seconds(n->p99_ns), "in_flight", (ull)n->in_flight, "waiting",
		(ull)n->waiting, "depth", (ull)n->depth, "requests",
		(ull)n->requests, "connections", (ull)n->connections, "retries",
		(ull)n->retries, "stalls", (ull)n->stalls, "hedges",
		(ull)n->hedges, "throttled", (ull)n->throttled, "wire_bytes",
		(ull)n->wire_bytes, "payload_bytes", (ull)n->payload_bytes,
		"failures", (ull)n->failures, "is_out",
		n->is_out ? Py_True : Py_False, "tier", "size_bytes",
		(ull)n->tier_size, "stored_bytes", (ull)n->tier_stored,
		"limit_bytes", (ull)n->tier_limit);
}

/* None: the loader is no trainer. */
static PyObject *new_makers(const struct beton_makers_stats *m)
{
	typedef unsigned long long ull;

	if (!m->size)
		Py_RETURN_NONE;
	return Py_BuildValue(
		"{s:K, s:K, s:K, s:K, s:K, s:K, s:K, s:K, s:d}", "makers",
		(ull)m->makers, "batches", (ull)m->batches, "samples",
		(ull)m->samples, "bytes", (ull)m->bytes, "here", (ull)m->here,
		"repeated", (ull)m->repeated, "refused", (ull)m->refused,
		"lost", (ull)m->lost, "latency_s", seconds(m->latency_ns));
}

static PyObject *new_stats(const struct stats *s)
{
	PyObject *stages = PyDict_New();

	for (size_t i = 0; stages && i < s->num_stages && i < STAGES_MAX; i++) {
		PyObject *stage = new_stage(&s->stages[i]);

		if (!stage ||
		    PyDict_SetItemString(stages, s->stages[i].name, stage)) {
			Py_XDECREF(stage);
			Py_DECREF(stages);
			return NULL;
		}
		Py_DECREF(stage);
	}
	if (!stages)
		return NULL;
	return Py_BuildValue(
		"{s:N, s:N, s:N, s:N, s:N, s:N, s:K}", "stages", stages,
		"throughput", new_throughput(&s->throughput), "image_cache",
		new_kept(&s->kept), "entry_points", new_entries(&s->entries),
		"network", new_network(&s->network), "makers",
		new_makers(&s->makers), "failed_samples",
		(unsigned long long)s->failed_samples);
}

static PyObject *loader_stats(PyObject *self, PyObject *unused)
{
	struct handle *h = handle_of(self);
	struct stats stats;

	(void)unused;
	if (lock(h))
		return NULL;
	read_stats(h->loader, &stats);
	unlock(h);
	return new_stats(&stats);
}

/* --- its messages --- */

static PyObject *loader_tell(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (check_process(handle_of(self)) || tell(self))
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *get_has_messages(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(handle_of(self)->num_messages != 0);
}

static PyObject *get_closed(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(handle_of(self)->closed);
}

static PyMethodDef loader_methods[] = {
	{ "close", loader_close, METH_NOARGS, NULL },
	{ "callback", loader_callback, METH_O, NULL },
	{ "next", loader_next, METH_VARARGS, NULL },
	{ "ask", loader_ask, METH_VARARGS, NULL },
	{ "make", loader_make, METH_VARARGS, NULL },
	{ "serve", loader_serve, METH_O, NULL },
	{ "attach", loader_attach, METH_O, NULL },
	{ "begin", loader_begin, METH_NOARGS, NULL },
	{ "begin_epoch", loader_begin_epoch, METH_NOARGS, NULL },
	{ "is_fresh", loader_is_fresh, METH_NOARGS, NULL },
	{ "state", loader_state, METH_NOARGS, NULL },
	{ "load", loader_load, METH_VARARGS, NULL },
	{ "seek", loader_seek, METH_O, NULL },
	{ "info", loader_info, METH_NOARGS, NULL },
	{ "outputs", loader_outputs, METH_NOARGS, NULL },
	{ "stats", loader_stats, METH_NOARGS, NULL },
	{ "tell", loader_tell, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef loader_attributes[] = {
	{ "closed", get_closed, NULL, NULL, NULL },
	{ "has_messages", get_has_messages, NULL, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot loader_slots[] = {
	{ Py_tp_new, loader_new },
	{ Py_tp_dealloc, loader_dealloc },
	{ Py_tp_methods, loader_methods },
	{ Py_tp_getset, loader_attributes },
	{ 0, NULL },
};

PyType_Spec loader_spec = {
	.name = "betonfs._beton.Loader",
	.basicsize = sizeof(struct loader),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = loader_slots,
};
