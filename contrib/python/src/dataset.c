/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "beton/dataset.h"

enum { ERROR_SIZE = 1024 };

struct dataset {
	PyObject_HEAD struct beton_dataset *ds;
	pid_t pid;
};

/* The library's last message in this thread. Functions log before they fail,
   and many threads can read one dataset. */
static _Thread_local char last_message[ERROR_SIZE];

static void note(void *arg, enum beton_log_level level, const char *message)
{
	(void)arg;
	if (level == BETON_LOG_ERROR)
		snprintf(last_message, sizeof(last_message), "%s", message);
}

static struct beton_dataset *of(PyObject *self)
{
	return ((struct dataset *)self)->ds;
}

static PyObject *dataset_new(PyTypeObject *type, PyObject *args,
			     PyObject *kwargs)
{
	static const char *const names[] = { "path", "storage_options", NULL };
	char error[ERROR_SIZE] = "";
	struct beton_dataset_options o = {
		.size = sizeof(o),
		.log = note,
		.error = error,
		.error_size = sizeof(error),
	};
	struct dataset *d;
	PyObject *path = NULL;
	int r;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|z", (char **)names,
					 PyUnicode_FSConverter, &path,
					 &o.storage_options))
		return NULL;
	d = (struct dataset *)PyType_GenericAlloc(type, 0);
	if (!d) {
		Py_DECREF(path);
		return NULL;
	}
	d->pid = getpid();
	Py_BEGIN_ALLOW_THREADS;
	r = beton_dataset_open(PyBytes_AsString(path), &o, &d->ds);
	Py_END_ALLOW_THREADS;
	if (r) {
		raise_error(-r, error, PyBytes_AsString(path));
		Py_CLEAR(d);
	}
	Py_DECREF(path);
	return (PyObject *)d;
}

/* A child of fork() lacks the threads that a close would end. */
static void dataset_dealloc(PyObject *self)
{
	struct dataset *d = (struct dataset *)self;

	if (d->ds && d->pid == getpid()) {
		Py_BEGIN_ALLOW_THREADS;
		beton_dataset_close(d->ds);
		Py_END_ALLOW_THREADS;
	}
	free_object(self);
}

/* --- fields --- */

static PyObject *new_shape(const struct beton_field *f)
{
	PyObject *shape = PyTuple_New(f->ndim);

	for (uint32_t i = 0; shape && i < f->ndim; i++) {
		PyObject *n = PyLong_FromUnsignedLongLong(f->shape[i]);

		if (!n || PyTuple_SetItem(shape, i, n)) {
			Py_DECREF(shape);
			return NULL;
		}
	}
	return shape;
}

/* None: there are no names. */
static PyObject *new_classes(const struct beton_field *f)
{
	PyObject *names;

	if (!f->classes)
		return Py_BuildValue("");
	names = PyTuple_New((Py_ssize_t)f->num_classes);
	for (uint64_t i = 0; names && i < f->num_classes; i++) {
		PyObject *name = PyUnicode_FromString(f->classes[i]);

		if (!name || PyTuple_SetItem(names, (Py_ssize_t)i, name))
			Py_CLEAR(names);
	}
	return names;
}

static PyObject *dataset_fields(PyObject *self, PyObject *unused)
{
	PyObject *list = PyList_New(0);
	struct beton_field f;

	(void)unused;
	for (uint32_t i = 0; list && !beton_dataset_field(of(self), i, &f);
	     i++) {
		PyObject *field = Py_BuildValue(
			"{s:s, s:s, s:s, s:s, s:N, s:z, s:N}", "name", f.name,
			"stem", f.stem, "type", f.kind, "dtype", f.dtype,
			"shape", new_shape(&f), "unusable", f.unusable,
			"classes", new_classes(&f));

		if (!field || PyList_Append(list, field))
			Py_CLEAR(list);
		Py_XDECREF(field);
	}
	return list;
}

static PyObject *get_samples(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(beton_dataset_samples(of(self)));
}

/* Returns the fingerprint as a string, as in dataset.json. */
static PyObject *get_fingerprint(PyObject *self, void *unused)
{
	const uint8_t *bytes = beton_dataset_fingerprint(of(self));
	char text[2 * BETON_FINGERPRINT_SIZE + 1];

	(void)unused;
	for (size_t i = 0; i < BETON_FINGERPRINT_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return PyUnicode_FromString(text);
}

/* --- values --- */

static int find(PyObject *self, unsigned field, unsigned long long sample,
		struct beton_value *out)
{
	int r;

	last_message[0] = '\0';
	Py_BEGIN_ALLOW_THREADS;
	r = beton_dataset_value(of(self), field, sample, out);
	Py_END_ALLOW_THREADS;
	if (r)
		raise_error(-r, last_message, NULL);
	return r;
}

/* Returns an int, a float, or (height, width, stored bytes, whether an image is
   stored as raw pixels). */
static PyObject *dataset_value(PyObject *self, PyObject *args)
{
	unsigned field;
	unsigned long long sample;
	struct beton_value v;
	struct beton_field f;

	if (!PyArg_ParseTuple(args, "IK", &field, &sample) ||
	    find(self, field, sample, &v))
		return NULL;
	beton_dataset_field(of(self), field, &f);
	if (f.type == BETON_TYPE_INT)
		return PyLong_FromLongLong(v.integer);
	if (f.type == BETON_TYPE_FLOAT)
		return PyFloat_FromDouble(v.real);
	return Py_BuildValue("IIKO", v.height, v.width,
			     (unsigned long long)v.size,
			     v.mode == BETON_MODE_RAW ? Py_True : Py_False);
}

/* Returns the stored bytes, or the first of them if a third argument limits
   their number. */
static PyObject *dataset_read(PyObject *self, PyObject *args)
{
	unsigned field;
	unsigned long long sample, most = UINT64_MAX;
	struct beton_value v;
	PyObject *bytes;
	int r;

	if (!PyArg_ParseTuple(args, "IK|K", &field, &sample, &most) ||
	    find(self, field, sample, &v))
		return NULL;
	v.size = v.size < most ? v.size : most;
	bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)v.size);
	if (!bytes)
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	r = beton_dataset_read(of(self), &v, PyBytes_AsString(bytes));
	Py_END_ALLOW_THREADS;
	if (!r)
		return bytes;
	Py_DECREF(bytes);
	return raise_error(-r, last_message, NULL);
}

static int fill(PyObject *self, const struct beton_value *v,
		const Py_buffer *into)
{
	struct beton_field f;
	uint64_t size = v->size;
	int r;

	beton_dataset_field(of(self), v->field, &f);
	if (f.type == BETON_TYPE_IMAGE)
		size = 3 * (uint64_t)v->width * v->height;
	if ((uint64_t)into->len != size) {
		PyErr_Format(PyExc_ValueError, "%zd bytes for a value of %llu",
			     into->len, (unsigned long long)size);
		return -1;
	}
	Py_BEGIN_ALLOW_THREADS;
	r = f.type == BETON_TYPE_IMAGE
		    ? beton_dataset_decode(of(self), v, into->buf)
		    : beton_dataset_read(of(self), v, into->buf);
	Py_END_ALLOW_THREADS;
	if (r)
		raise_error(-r, last_message, NULL);
	return r;
}

/* Returns the pixels of an image, or the bytes of another value. */
static PyObject *dataset_fill(PyObject *self, PyObject *args)
{
	unsigned field;
	unsigned long long sample;
	struct beton_value v;
	Py_buffer into;
	int r;

	if (!PyArg_ParseTuple(args, "IKw*", &field, &sample, &into))
		return NULL;
	r = find(self, field, sample, &v);
	if (!r)
		r = fill(self, &v, &into);
	PyBuffer_Release(&into);
	if (r)
		return NULL;
	Py_RETURN_NONE;
}

/* Reads `n` numbers of 8 bytes, from sample `first` on. */
typedef int read_numbers_fn(struct beton_dataset *ds, uint32_t field,
			    uint64_t first, uint64_t n, void *out);

/* Reads the stored size of each value in bytes. */
static int read_sizes(struct beton_dataset *ds, uint32_t field, uint64_t first,
		      uint64_t n, void *out)
{
	uint64_t *sizes = out;
	struct beton_value v;
	int r = 0;

	for (uint64_t i = 0; !r && i < n; i++) {
		r = beton_dataset_value(ds, field, first + i, &v);
		sizes[i] = v.size;
	}
	return r;
}

/* Reads into a Python buffer. */
static PyObject *read_numbers(PyObject *self, PyObject *args,
			      read_numbers_fn *read)
{
	unsigned field;
	unsigned long long first;
	Py_buffer into;
	int r;

	if (!PyArg_ParseTuple(args, "IKw*", &field, &first, &into))
		return NULL;
	last_message[0] = '\0';
	Py_BEGIN_ALLOW_THREADS;
	r = read(of(self), field, first, (uint64_t)into.len / 8, into.buf);
	Py_END_ALLOW_THREADS;
	PyBuffer_Release(&into);
	if (r)
		return raise_error(-r, last_message, NULL);
	Py_RETURN_NONE;
}

static PyObject *dataset_column(PyObject *self, PyObject *args)
{
	return read_numbers(self, args, beton_dataset_column);
}

static PyObject *dataset_sizes(PyObject *self, PyObject *args)
{
	return read_numbers(self, args, read_sizes);
}

static PyMethodDef methods[] = {
	{ "fields", dataset_fields, METH_NOARGS, NULL },
	{ "value", dataset_value, METH_VARARGS, NULL },
	{ "read", dataset_read, METH_VARARGS, NULL },
	{ "fill", dataset_fill, METH_VARARGS, NULL },
	{ "column", dataset_column, METH_VARARGS, NULL },
	{ "sizes", dataset_sizes, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef attributes[] = {
	{ "samples", get_samples, NULL, NULL, NULL },
	{ "fingerprint", get_fingerprint, NULL, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_new, dataset_new },
	{ Py_tp_dealloc, dataset_dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, attributes },
	{ 0, NULL },
};

PyType_Spec dataset_spec = {
	.name = "betonfs._beton.Dataset",
	.basicsize = sizeof(struct dataset),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
