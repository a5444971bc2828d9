/* SPDX-License-Identifier: Apache-2.0 */
/* betonfs._beton: the library's handles and memory. The Python modules of the
   package build the public classes on it. */
#include "dataset.h"
#include "loader.h"
#include "merge.h"
#include "python.h"
#include "tensor.h"
#include "writer.h"

#include "beton/loader.h"

#include <stdlib.h>

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out)
{
	*out = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
	return *out ? PyModule_AddType(module, *out) : -1;
}

static int fill(PyObject *module)
{
	struct types *t = PyModule_GetState(module);

	if (PyModule_AddStringConstant(module, "version", beton_version()) ||
	    add_type(module, &tensor_spec, &t->tensor) ||
	    add_type(module, &batch_spec, &t->batch) ||
	    add_type(module, &loader_spec, &t->loader) ||
	    add_type(module, &dataset_spec, &t->dataset) ||
	    add_type(module, &writer_spec, &t->writer))
		return -1;
	return 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
	struct types *t = PyModule_GetState(module);

	Py_VISIT(t->tensor);
	Py_VISIT(t->batch);
	Py_VISIT(t->loader);
	Py_VISIT(t->dataset);
	Py_VISIT(t->writer);
	return 0;
}

static int clear(PyObject *module)
{
	struct types *t = PyModule_GetState(module);

	Py_CLEAR(t->tensor);
	Py_CLEAR(t->batch);
	Py_CLEAR(t->loader);
	Py_CLEAR(t->dataset);
	Py_CLEAR(t->writer);
	return 0;
}

static PyObject *operations(PyObject *module, PyObject *unused)
{
	PyObject *result;
	char *text;
	int r = beton_operations(&text);

	(void)module;
	(void)unused;
	if (r)
		return raise_error(-r, NULL, NULL);
	result = PyUnicode_FromString(text);
	free(text);
	return result;
}

static PyMethodDef functions[] = {
	{ "operations", operations, METH_NOARGS, NULL },
	{ "encode", writer_encode, METH_VARARGS, NULL },
	{ "keep", writer_keep, METH_VARARGS, NULL },
	{ "merge", merge, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, fill },
#ifdef Py_GIL_DISABLED
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
	{ 0, NULL },
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "betonfs._beton",
	.m_size = sizeof(struct types),
	.m_methods = functions,
	.m_slots = slots,
	.m_traverse = traverse,
	.m_clear = clear,
};

/* Python calls this function by its name. */
PyMODINIT_FUNC PyInit__beton(void);

PyMODINIT_FUNC PyInit__beton(void)
{
	return PyModuleDef_Init(&module);
}
