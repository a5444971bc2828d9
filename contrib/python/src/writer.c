/* SPDX-License-Identifier: Apache-2.0 */
#include "writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "beton/writer.h"

enum { ERROR_SIZE = 1024 };

struct pywriter {
	PyObject_HEAD size_t num_fields;
	enum beton_type *types;
	pthread_mutex_t lock;	       /* never held while Python code runs */
	struct beton_writer *writer;   /* guarded by it; NULL: it is gone */
	char last_message[ERROR_SIZE]; /* guarded by the lock */
};

static void note(void *arg, enum beton_log_level level, const char *message)
{
	struct pywriter *w = arg;

	if (level == BETON_LOG_ERROR) {
		w->last_message[0] = '\0';
		strncat(w->last_message, message, sizeof(w->last_message) - 1);
	}
}

/* --- opening --- */

/* Returns an array of names in UTF-8, whose bytes belong to the tuple. The
   caller frees the array. On failure, sets an exception and returns NULL. */
static const char **parse_classes(PyObject *names)
{
	const Py_ssize_t n = PyTuple_Size(names);
	const char **out = n < 0 ? NULL : calloc((size_t)n + 1, sizeof(*out));

	if (!out && n >= 0)
		PyErr_NoMemory();
	for (Py_ssize_t i = 0; out && i < n; i++) {
		out[i] = PyBytes_AsString(PyTuple_GetItem(names, i));
		if (!out[i]) {
			free(out);
			return NULL;
		}
	}
	return out;
}

static int parse_field(PyObject *item, struct beton_writer_field *out,
		       uint64_t shape[BETON_MAX_NDIM])
{
	PyObject *dims, *classes = NULL;
	int type;
	Py_ssize_t n;

	if (!PyArg_ParseTuple(item, "sizO!|O!", &out->name, &type, &out->dtype,
			      &PyTuple_Type, &dims, &PyTuple_Type, &classes))
		return -1;
	if (classes) {
		out->classes = parse_classes(classes);
		out->num_classes = (size_t)PyTuple_Size(classes);
		if (!out->classes)
			return -1;
	}
	n = PyTuple_Size(dims);
	if (n > BETON_MAX_NDIM) {
		PyErr_SetString(PyExc_ValueError, "too many dimensions");
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++)
		shape[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(dims, i));
	out->type = (enum beton_type)type;
	out->ndim = (uint32_t)n;
	out->shape = shape;
	return PyErr_Occurred() ? -1 : 0;
}

static int open_writer(struct pywriter *w, const char *path, PyObject *list,
		       unsigned long long samples, unsigned page_size,
		       int append)
{
	const struct beton_writer_options o = {
		.size = sizeof(o),
		.page_size = page_size,
		.log = note,
		.log_arg = w,
		.append = append,
	};
	const size_t n = w->num_fields = (size_t)PyTuple_Size(list);
	struct beton_writer_field *fields = calloc(n + 1, sizeof(*fields));
	uint64_t(*shapes)[BETON_MAX_NDIM] = calloc(n + 1, sizeof(*shapes));
	int r = -1;

	w->types = calloc(n + 1, sizeof(*w->types));
	if (!fields || !shapes || !w->types) {
		PyErr_NoMemory();
		goto out;
	}
	for (size_t i = 0; i < n; i++) {
		if (parse_field(PyTuple_GetItem(list, (Py_ssize_t)i),
				&fields[i], shapes[i]))
			goto out;
		w->types[i] = fields[i].type;
	}
	r = beton_writer_open(path, fields, n, samples, &o, &w->writer);
	if (r)
		raise_error(-r, w->last_message, path);
out:
	for (size_t i = 0; fields && i < n; i++)
		free((void *)fields[i].classes);
	free(fields);
	free(shapes);
	return r;
}

static PyObject *pywriter_new(PyTypeObject *type, PyObject *args,
			      PyObject *kwargs)
{
	static const char *const names[] = { "path",	  "fields", "samples",
					     "page_size", "append", NULL };
	PyObject *path = NULL, *fields;
	unsigned long long samples;
	unsigned page_size;
	int append = 0;
	struct pywriter *w;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O!KI|p",
					 (char **)names, PyUnicode_FSConverter,
					 &path, &PyTuple_Type, &fields,
					 &samples, &page_size, &append))
		return NULL;
	w = (struct pywriter *)PyType_GenericAlloc(type, 0);
	if (w)
		pthread_mutex_init(&w->lock, NULL);
	if (w && open_writer(w, PyBytes_AsString(path), fields, samples,
			     page_size, append))
		Py_CLEAR(w);
	Py_DECREF(path);
	return (PyObject *)w;
}

static void pywriter_dealloc(PyObject *self)
{
	struct pywriter *w = (struct pywriter *)self;

	beton_writer_abort(w->writer);
	pthread_mutex_destroy(&w->lock);
	free(w->types);
	free_object(self);
}

/* --- samples --- */

static int parse_image(PyObject *item, struct beton_writer_value *out,
		       Py_buffer *held)
{
	unsigned mode, width, height;

	if (!PyArg_ParseTuple(item, "y*III", held, &mode, &width, &height))
		return -1;
	out->bytes = held->buf;
	out->size = (uint64_t)held->len;
	out->mode = (enum beton_mode)mode;
	out->width = (uint16_t)width;
	out->height = (uint16_t)height;
	return 0;
}

static int parse_value(enum beton_type type, PyObject *item,
		       struct beton_writer_value *out, Py_buffer *held)
{
	switch (type) {
	case BETON_TYPE_INT:
		out->integer = PyLong_AsLongLong(item);
		break;
	case BETON_TYPE_FLOAT:
		out->real = PyFloat_AsDouble(item);
		break;
	case BETON_TYPE_IMAGE:
		return parse_image(item, out, held);
	default:
		if (PyObject_GetBuffer(item, held, PyBUF_SIMPLE))
			return -1;
		out->bytes = held->buf;
		out->size = (uint64_t)held->len;
	}
	return PyErr_Occurred() ? -1 : 0;
}

/* Copies the library's message to `message`. Returns -ECANCELED if the writer
   is closed. */
static int append_locked(struct pywriter *w, const struct beton_writer_value *v,
			 char message[ERROR_SIZE])
{
	int r = -ECANCELED;

	Py_BEGIN_ALLOW_THREADS;
	pthread_mutex_lock(&w->lock);
	if (w->writer) {
		r = beton_writer_append(w->writer, v);
		memcpy(message, w->last_message, ERROR_SIZE);
	}
	pthread_mutex_unlock(&w->lock);
	Py_END_ALLOW_THREADS;
	return r;
}

static PyObject *append(struct pywriter *w, PyObject *values,
			struct beton_writer_value *v, Py_buffer *held)
{
	char message[ERROR_SIZE];
	int r;

	for (size_t i = 0; i < w->num_fields; i++) {
		if (parse_value(w->types[i],
				PyTuple_GetItem(values, (Py_ssize_t)i), &v[i],
				&held[i]))
			return NULL;
	}
	r = append_locked(w, v, message);
	if (r == -ECANCELED) {
		PyErr_SetString(PyExc_ValueError, "the writer is finished");
		return NULL;
	}
	if (r == -BETON_ETOOLARGE)
		return raise_error(-r, "the sample is larger than a page",
				   NULL);
	if (r)
		return raise_error(-r, message, NULL);
	Py_RETURN_NONE;
}

static PyObject *pywriter_append(PyObject *self, PyObject *values)
{
	struct pywriter *w = (struct pywriter *)self;
	struct beton_writer_value *v;
	Py_buffer *held;
	PyObject *result = NULL;

	if (!PyTuple_Check(values) ||
	    (size_t)PyTuple_Size(values) != w->num_fields) {
		PyErr_SetString(PyExc_ValueError, "not a value per field");
		return NULL;
	}
	v = calloc(w->num_fields + 1, sizeof(*v));
	held = calloc(w->num_fields + 1, sizeof(*held));
	if (v && held)
		result = append(w, values, v, held);
	else
		PyErr_NoMemory();
	for (size_t i = 0; held && i < w->num_fields; i++)
		PyBuffer_Release(&held[i]);
	free(held);
	free(v);
	return result;
}

/* Removes the writer from the object, so that later calls fail. */
static struct beton_writer *take_writer(struct pywriter *w)
{
	struct beton_writer *writer;

	Py_BEGIN_ALLOW_THREADS;
	pthread_mutex_lock(&w->lock);
	writer = w->writer;
	w->writer = NULL;
	pthread_mutex_unlock(&w->lock);
	Py_END_ALLOW_THREADS;
	return writer;
}

static PyObject *pywriter_finish(PyObject *self, PyObject *unused)
{
	struct pywriter *w = (struct pywriter *)self;
	struct beton_writer *writer = take_writer(w);
	int r;

	(void)unused;
	if (!writer)
		Py_RETURN_NONE;
	Py_BEGIN_ALLOW_THREADS;
	r = beton_writer_finish(writer);
	Py_END_ALLOW_THREADS;
	if (r)
		return raise_error(-r, w->last_message, NULL);
	Py_RETURN_NONE;
}

static PyObject *pywriter_abort(PyObject *self, PyObject *unused)
{
	(void)unused;
	beton_writer_abort(take_writer((struct pywriter *)self));
	Py_RETURN_NONE;
}

/* --- images --- */

PyObject *writer_encode(PyObject *module, PyObject *args)
{
	struct beton_writer_recipe recipe = { .mode = BETON_MODE_JPG };
	struct beton_writer_image image;
	struct beton_writer_value v;
	Py_buffer pixels;
	PyObject *result;
	int raw, r = -EINVAL;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*IIpII", &pixels, &image.width,
			      &image.height, &raw, &recipe.quality,
			      &recipe.max_resolution))
		return NULL;
	image.pixels = pixels.buf;
	if (raw)
		recipe.mode = BETON_MODE_RAW;
	if ((uint64_t)pixels.len == 3 * (uint64_t)image.width * image.height) {
		Py_BEGIN_ALLOW_THREADS;
		r = beton_writer_encode(&recipe, &image, &v);
		Py_END_ALLOW_THREADS;
	}
	PyBuffer_Release(&pixels);
	if (r)
		return raise_error(-r, "an image that cannot be stored", NULL);
	result = Py_BuildValue("y#III", (const char *)v.bytes,
			       (Py_ssize_t)v.size, (unsigned)v.mode,
			       (unsigned)v.width, (unsigned)v.height);
	free((void *)v.bytes);
	return result;
}

PyObject *writer_keep(PyObject *module, PyObject *args)
{
	struct beton_writer_value v;
	PyObject *jpeg;
	char *bytes;
	Py_ssize_t size;
	int r;

	(void)module;
	if (!PyArg_ParseTuple(args, "S", &jpeg) ||
	    PyBytes_AsStringAndSize(jpeg, &bytes, &size))
		return NULL;
	r = beton_writer_keep(bytes, (uint64_t)size, &v);
	if (r == -EBADMSG) {
		PyErr_SetString(PyExc_ValueError,
				"bytes that are no JPEG of RGB or gray");
		return NULL;
	}
	if (r == -ENODATA) {
		PyErr_SetString(PyExc_ValueError,
				"a JPEG that is cut off: it has no end marker");
		return NULL;
	}
	if (r)
		return raise_error(-r, NULL, NULL);
	return Py_BuildValue("OIII", jpeg, (unsigned)v.mode, (unsigned)v.width,
			     (unsigned)v.height);
}

static PyMethodDef methods[] = {
	{ "append", pywriter_append, METH_O, NULL },
	{ "finish", pywriter_finish, METH_NOARGS, NULL },
	{ "abort", pywriter_abort, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_new, pywriter_new },
	{ Py_tp_dealloc, pywriter_dealloc },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

PyType_Spec writer_spec = {
	.name = "betonfs._beton.Writer",
	.basicsize = sizeof(struct pywriter),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
