/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

#include "dlpack.h"

/* Alignment of copies, equal to that of batches. Some libraries copy less
   aligned memory again. */
enum { ALIGNMENT = 64 };

struct tensor {
	PyObject_HEAD struct hold *hold;
	struct tensor_view view;
};

PyObject *tensor_new(struct types *types, struct hold *hold,
		     const struct tensor_view *view)
{
	struct tensor *t =
		(struct tensor *)PyType_GenericAlloc(types->tensor, 0);

	if (!t)
		return NULL;
	t->view = *view;
	if (!t->view.shape)
		t->view.shape = &t->view.length;
	t->hold = hold;
	hold_get(hold);
	return (PyObject *)t;
}

static void dealloc(PyObject *self)
{
	hold_put(((struct tensor *)self)->hold);
	free_object(self);
}

/* --- types of elements --- */

/* A type in NumPy, in the buffer protocol (NULL: it has none), and in DLPack. */
struct element {
	const char *dtype;
	const char *format;
	unsigned size;
	struct dl_type dl;
};

static const struct element elements[] = {
	{ "|u1", "B", 1, { DL_UINT, 8, 1 } },
	{ "<f4", "f", 4, { DL_FLOAT, 32, 1 } },
	{ "<f2", "e", 2, { DL_FLOAT, 16, 1 } },
	/* bfloat16, by the name that ml_dtypes gives it. */
	{ "<V2", NULL, 2, { DL_BFLOAT, 16, 1 } },
	{ "<i8", "q", 8, { DL_INT, 64, 1 } },
	{ "<f8", "d", 8, { DL_FLOAT, 64, 1 } },
	{ "<i4", "i", 4, { DL_INT, 32, 1 } },
	{ "<i2", "h", 2, { DL_INT, 16, 1 } },
	{ "|i1", "b", 1, { DL_INT, 8, 1 } },
	{ "|b1", "?", 1, { DL_BOOL, 8, 1 } },
	{ "<u2", "H", 2, { DL_UINT, 16, 1 } },
	{ "<u4", "I", 4, { DL_UINT, 32, 1 } },
	{ "<u8", "Q", 8, { DL_UINT, 64, 1 } },
	{ "<c8", "Zf", 8, { DL_COMPLEX, 64, 1 } },
	{ "<c16", "Zd", 16, { DL_COMPLEX, 128, 1 } },
};

/* Returns the element type of a tensor, or NULL if only NumPy has it, for
   example strings. */
static const struct element *element_of(const struct tensor *t)
{
	for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++) {
		if (!strcmp(t->view.dtype, elements[i].dtype))
			return &elements[i];
	}
	return NULL;
}

/* Sets the strides of C order. `unit` is the stride of one element. */
static void fill_strides(const struct tensor *t, int64_t *strides, int64_t unit)
{
	for (uint32_t i = t->view.ndim; i--; unit *= (int64_t)t->view.shape[i])
		strides[i] = unit;
}

/* --- the buffer protocol --- */

/* The content of view->internal. */
struct dimensions {
	Py_ssize_t shape[BETON_MAX_NDIM + 1];
	int64_t strides[BETON_MAX_NDIM + 1];
};

/* Elements without a name in the buffer protocol are bytes. */
static int fill_buffer(struct tensor *t, Py_buffer *view, int flags)
{
	const struct element *found = element_of(t);
	const struct element *e = found && found->format ? found : NULL;
	struct dimensions *d = malloc(sizeof(*d));

	if (!d) {
		PyErr_NoMemory();
		return -1;
	}
	view->ndim = e ? (int)t->view.ndim : 1;
	view->itemsize = e ? (Py_ssize_t)e->size : 1;
	view->format =
		flags & PyBUF_FORMAT ? (char *)(e ? e->format : "B") : NULL;
	d->shape[0] = (Py_ssize_t)t->view.size;
	d->strides[0] = 1;
	for (uint32_t i = 0; e && i < t->view.ndim; i++)
		d->shape[i] = (Py_ssize_t)t->view.shape[i];
	if (e)
		fill_strides(t, d->strides, e->size);
	view->shape = flags & PyBUF_ND ? d->shape : NULL;
	view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
				? (Py_ssize_t *)d->strides
				: NULL;
	view->internal = d;
	return 0;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct tensor *t = (struct tensor *)self;

	view->obj = NULL;
	if (t->view.device_type != BETON_DEVICE_CPU) {
		PyErr_SetString(PyExc_BufferError,
				"the tensor is in a GPU's memory: use DLPack");
		return -1;
	}
	if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS) {
		PyErr_SetString(PyExc_BufferError,
				"the tensor is in C order, not Fortran's");
		return -1;
	}
	if (fill_buffer(t, view, flags))
		return -1;
	view->buf = t->view.data;
	view->len = (Py_ssize_t)t->view.size;
	view->readonly = 0;
	view->suboffsets = NULL;
	view->obj = Py_NewRef(self);
	return 0;
}

static void release_buffer(PyObject *self, Py_buffer *view)
{
	(void)self;
	free(view->internal);
}

/* --- DLPack --- */

/* A managed tensor of either form, its arrays, and the reference to the batch,
   or a copy of the values. */
struct export
{
	union {
		struct dl_managed managed;
		struct dl_versioned versioned;
	};
	struct hold *hold;
	void *copy;
	int64_t shape[BETON_MAX_NDIM + 1];
	int64_t strides[BETON_MAX_NDIM + 1];
};

static void export_free(struct export *e)
{
	hold_put(e->hold);
	free(e->copy);
	free(e);
}

static void delete_managed(struct dl_managed *self)
{
	export_free(self->context);
}

static void delete_versioned(struct dl_versioned *self)
{
	export_free(self->context);
}

static const char *capsule_name(bool versioned)
{
	return versioned ? "dltensor_versioned" : "dltensor";
}

/* Frees the content of an unconsumed capsule. Consumers rename the capsule. */
static void delete_capsule(PyObject *capsule)
{
	for (int versioned = 0; versioned < 2; versioned++) {
		const char *name = capsule_name(versioned);

		if (PyCapsule_IsValid(capsule, name))
			export_free(versioned ? ((struct dl_versioned *)
							 PyCapsule_GetPointer(
								 capsule, name))
							->context
					      : ((struct dl_managed *)
							 PyCapsule_GetPointer(
								 capsule, name))
							->context);
	}
}

/* Copies the values, which have C order without gaps. */
static int fill_copy(struct export *e, const struct tensor *t)
{
	const size_t size = t->view.size ? t->view.size : 1;

	if (posix_memalign(&e->copy, ALIGNMENT, size))
		return -1;
	if (t->view.size)
		memcpy(e->copy, t->view.data, t->view.size);
	return 0;
}

static void fill_export(struct export *e, struct tensor *t,
			const struct element *element, bool versioned)
{
	struct dl_tensor *dl =
		versioned ? &e->versioned.tensor : &e->managed.tensor;

	for (uint32_t i = 0; i < t->view.ndim; i++)
		e->shape[i] = (int64_t)t->view.shape[i];
	fill_strides(t, e->strides, 1);
	*dl = (struct dl_tensor){
		.data = e->copy ? e->copy : t->view.data,
		.device = { t->view.device_type, t->view.device_id },
		.ndim = (int32_t)t->view.ndim,
		.dtype = element->dl,
		.shape = e->shape,
		.strides = e->strides,
	};
	e->hold = e->copy ? NULL : t->hold;
	if (versioned) {
		e->versioned.major = 1;
		e->versioned.minor = 0;
		e->versioned.flags = e->copy ? DL_IS_COPIED : 0;
		e->versioned.context = e;
		e->versioned.deleter = delete_versioned;
	} else {
		e->managed.context = e;
		e->managed.deleter = delete_managed;
	}
}

static PyObject *make_capsule(struct tensor *t, bool versioned, bool copy)
{
	const struct element *element = element_of(t);
	struct export *e;
	PyObject *capsule;

	if (!element)
		return PyErr_Format(PyExc_BufferError,
				    "DLPack has no type for %s", t->view.dtype);
	e = calloc(1, sizeof(*e));
	if (!e || (copy && fill_copy(e, t))) {
		free(e);
		return PyErr_NoMemory();
	}
	fill_export(e, t, element, versioned);
	if (e->hold)
		hold_get(e->hold);
	capsule = PyCapsule_New(e, capsule_name(versioned), delete_capsule);
	if (!capsule)
		export_free(e);
	return capsule;
}

/* Makes a stream wait until the tensor is complete. -1 means no stream. */
static int acquire(struct tensor *t, PyObject *stream)
{
	long long n = stream == Py_None ? 0 : PyLong_AsLongLong(stream);
	int r;

	if (PyErr_Occurred())
		return -1;
	if (t->view.device_type == BETON_DEVICE_CPU || n == -1)
		return 0;
	Py_BEGIN_ALLOW_THREADS;
	r = beton_loader_acquire(t->hold->handle->loader, t->hold->batch,
				 (void *)(intptr_t)n);
	Py_END_ALLOW_THREADS;
	if (!r)
		return 0;
	raise_error(-r, "the GPU cannot be waited for", NULL);
	return -1;
}

/* Parses an argument of two integers. On failure, sets an exception and returns
   -1. */
static int parse_pair(PyObject *pair, const char *name, int *first, int *second)
{
	if (PyTuple_Check(pair) && PyArg_ParseTuple(pair, "ii", first, second))
		return 0;
	PyErr_Clear();
	PyErr_Format(PyExc_TypeError, "%s is a tuple of two integers, not %R",
		     name, pair);
	return -1;
}

/* Checks that the tensor fits a requested device and copy. */
static int check_request(struct tensor *t, PyObject *device, PyObject *copy)
{
	int type, id;

	if (copy == Py_True && t->view.device_type != BETON_DEVICE_CPU) {
		PyErr_SetString(PyExc_BufferError,
				"what is in a GPU's memory is not copied here");
		return -1;
	}
	if (device == Py_None)
		return 0;
	if (parse_pair(device, "dl_device", &type, &id))
		return -1;
	if (type == t->view.device_type && id == t->view.device_id)
		return 0;
	PyErr_SetString(PyExc_BufferError, "the tensor is on another device");
	return -1;
}

static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static const char *const names[] = { "stream", "max_version",
					     "dl_device", "copy", NULL };
	struct tensor *t = (struct tensor *)self;
	PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None,
		 *copy = Py_None;
	int major = 0, minor = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", (char **)names,
					 &stream, &max_version, &device, &copy))
		return NULL;
	if (max_version != Py_None &&
	    parse_pair(max_version, "max_version", &major, &minor))
		return NULL;
	if (check_request(t, device, copy) || acquire(t, stream))
		return NULL;
	return make_capsule(t, major >= 1, copy == Py_True);
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused)
{
	const struct tensor *t = (struct tensor *)self;

	(void)unused;
	return Py_BuildValue("ii", t->view.device_type, t->view.device_id);
}

/* --- attributes --- */

static PyObject *get_shape(PyObject *self, void *unused)
{
	const struct tensor *t = (struct tensor *)self;
	PyObject *shape = PyTuple_New(t->view.ndim);

	(void)unused;
	for (uint32_t i = 0; shape && i < t->view.ndim; i++) {
		PyObject *n = PyLong_FromUnsignedLongLong(t->view.shape[i]);

		if (!n || PyTuple_SetItem(shape, i, n)) {
			Py_DECREF(shape);
			return NULL;
		}
	}
	return shape;
}

static PyObject *get_name(PyObject *self, void *unused)
{
	(void)unused;
	return PyUnicode_FromString(((struct tensor *)self)->view.name);
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
	(void)unused;
	return PyUnicode_FromString(((struct tensor *)self)->view.dtype);
}

static PyObject *get_pointer(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromVoidPtr(((struct tensor *)self)->view.data);
}

static PyObject *get_has_dlpack(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(element_of((struct tensor *)self) != NULL);
}

static PyObject *get_offsets(PyObject *self, void *unused)
{
	struct tensor *t = (struct tensor *)self;
	const struct tensor_view v = {
		.name = t->view.name,
		.dtype = "<i8",
		.data = (void *)t->view.offsets,
		.size = 8 * (t->view.rows + 1),
		.ndim = 1,
		.length = t->view.rows + 1,
		.device_type = BETON_DEVICE_CPU,
	};

	(void)unused;
	return t->view.offsets ? tensor_new(types_of(self), t->hold, &v)
			       : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
	{ "__dlpack__", (PyCFunction)(void (*)(void))dlpack,
	  METH_VARARGS | METH_KEYWORDS, NULL },
	{ "__dlpack_device__", dlpack_device, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef attributes[] = {
	{ "name", get_name, NULL, NULL, NULL },
	{ "dtype", get_dtype, NULL, NULL, NULL },
	{ "shape", get_shape, NULL, NULL, NULL },
	{ "pointer", get_pointer, NULL, NULL, NULL },
	{ "has_dlpack", get_has_dlpack, NULL, NULL, NULL },
	{ "offsets", get_offsets, NULL, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, attributes },
	{ Py_bf_getbuffer, get_buffer },
	{ Py_bf_releasebuffer, release_buffer },
	{ 0, NULL },
};

PyType_Spec tensor_spec = {
	.name = "betonfs._beton.Tensor",
	.basicsize = sizeof(struct tensor),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
