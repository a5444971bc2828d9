/* SPDX-License-Identifier: Apache-2.0 */
#include "merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "beton/writer.h"

enum { ERROR_SIZE = 1024 };

struct merging {
	PyObject *report;
	PyThreadState *thread; /* while the library runs */
	char last_message[ERROR_SIZE];
};

static void note(void *arg, enum beton_log_level level, const char *message)
{
	struct merging *m = arg;

	if (level == BETON_LOG_ERROR) {
		m->last_message[0] = '\0';
		strncat(m->last_message, message, sizeof(m->last_message) - 1);
	}
}

static int report(PyObject *function, uint64_t done, uint64_t total)
{
	PyObject *args = Py_BuildValue("(KK)", (unsigned long long)done,
				       (unsigned long long)total);
	PyObject *none = args ? PyObject_CallObject(function, args) : NULL;

	Py_XDECREF(args);
	Py_XDECREF(none);
	return none ? 0 : -1;
}

/* Returns -ECANCELED if Python code raised an exception, which stays set. */
static int progress(void *arg, uint64_t done, uint64_t total)
{
	struct merging *m = arg;
	int r;

	PyEval_RestoreThread(m->thread);
	r = PyErr_CheckSignals();
	if (!r && m->report != Py_None)
		r = report(m->report, done, total);
	m->thread = PyEval_SaveThread();
	return r ? -ECANCELED : 0;
}

static int parse_paths(PyObject *tuple, const char **out)
{
	const Py_ssize_t n = PyTuple_Size(tuple);

	for (Py_ssize_t i = 0; i < n; i++) {
		out[i] = PyBytes_AsString(PyTuple_GetItem(tuple, i));
		if (!out[i])
			return -1;
	}
	return 0;
}

static PyObject *run(struct merging *m, const char *const *paths, size_t n,
		     const char *path, struct beton_merge_options *o)
{
	uint64_t samples = 0;
	int r;

	o->log = note;
	o->log_arg = m;
	o->progress = progress;
	o->progress_arg = m;
	m->thread = PyEval_SaveThread();
	r = beton_merge(paths, n, path, o, &samples);
	PyEval_RestoreThread(m->thread);
	if (PyErr_Occurred())
		return NULL;
	if (r)
		return raise_error(-r, m->last_message, path);
	return PyLong_FromUnsignedLongLong(samples);
}

PyObject *merge(PyObject *module, PyObject *args)
{
	struct beton_merge_options o = { .size = sizeof(o) };
	struct merging m = { .report = NULL };
	PyObject *sources, *path = NULL, *result = NULL;
	int keep_numbers;
	const char **paths;
	size_t n;

	(void)module;
	if (!PyArg_ParseTuple(args, "O!O&IpO", &PyTuple_Type, &sources,
			      PyUnicode_FSConverter, &path, &o.page_size,
			      &keep_numbers, &m.report))
		return NULL;
	o.keep_numbers = keep_numbers;
	n = (size_t)PyTuple_Size(sources);
	paths = calloc(n + 1, sizeof(*paths));
	if (!paths)
		PyErr_NoMemory();
	else if (!parse_paths(sources, paths))
		result = run(&m, paths, n, PyBytes_AsString(path), &o);
	free(paths);
	Py_DECREF(path);
	return result;
}
