/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote (start, preload) and a worker's script process (fresh, run).
 * Owns:    the interpreter's configuration and the frozen module that compiles, runs and ends
 * scripts. The script shares this process: nothing here protects anything. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <marshal.h>

#include "worker/interpreter.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/ask.h"
#include "worker/bootstrap.h"
#include "worker/checkpoints.h"
#include "worker/display.h"
#include "worker/heap.h"
#include "worker/history.h"
#include "worker/hooks.h"
#include "worker/import_check.h"
#include "worker/imports.h"
#include "worker/ipython.h"
#include "worker/installed.h"
#include "worker/jail.h"
#include "worker/lacks.h"
#include "worker/line.h"
#include "worker/jsonable.h"
#include "worker/learned.h"
#include "worker/lenient.h"
#include "worker/ready.h"
#include "worker/modules.h"
#include "worker/notebook.h"
#include "worker/parallel.h"
#include "worker/prompt.h"
#include "worker/python.h"
#include "worker/renew.h"
#include "worker/rich.h"
#include "worker/tools.h"
#include "worker/tools_module.h"
#include "worker/turns.h"
#include "worker/twister.h"
#include "worker/variables.h"
#include "worker/watched.h"
#include "worker/where.h"

struct display_bounds display_bounds;

static PyObject *bootstrap;	/* the frozen module's namespace, a dict */

/* sys.executable: the usual path, if the embedded interpreter is installed there. */
static const char *
interpreter_executable(void)
{
	static const char usual[] = "/usr/bin/python3";
	const struct python *python = python_chosen();
	struct stat a, b;

	/* In the jail of another one, the usual path is a link to it. */
	if (!*python->tree && stat(usual, &a) == 0 && stat(python->program, &b) == 0 &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return usual;
	return python->program;
}

/* Takes the free blocks of one size that lie between used ones, so that later blocks follow one
 * another. Python's allocator would give these first, and a worker would have to copy the page of
 * each. If the allocator gives no run of adjacent blocks, it gets all blocks back. */
static void
fill_holes(size_t size)
{
	enum { MOST = 16384, RUN_BYTES = 8192 };
	char **block = malloc(MOST * sizeof(*block));
	size_t n = 0, run = 0, keep = 0;

	while (block && n < MOST && keep == 0 && (block[n] = PyObject_Malloc(size)) != NULL) {
		run = n > 0 && block[n] == block[n - 1] + size ? run + 1 : 0;
		n++;
		if (run * size >= RUN_BYTES)
			keep = n - run;		/* with the first block of the run */
	}
	while (n > keep)
		PyObject_Free(block[--n]);
	free(block);
}

/* Reserves memory in both allocators, so that a small script makes no new mappings. In each
 * allocator the last block stays in use: otherwise Python's allocator would free the arena, and
 * libc would return the free end of its heap. mallopt() would do too, but it ends the adaptation of
 * libc's thresholds: each large block of a script would be a mapping of its own. */
static void
leave_room(void)
{
	enum { BLOCKS = 512, SIZE = 496, LIBC_SIZE = 1008, SIZES_MAX = 512, SIZES_STEP = 16 };
	void *block[BLOCKS];

	for (size_t size = SIZES_STEP; size <= SIZES_MAX; size += SIZES_STEP)
		fill_holes(size);
	for (size_t i = 0; i < BLOCKS; i++)
		block[i] = PyObject_Malloc(SIZE);
	for (size_t i = 0; i < BLOCKS - 1; i++)
		PyObject_Free(block[i]);
	for (size_t i = 0; i < BLOCKS; i++)
		block[i] = malloc(LIBC_SIZE);
	for (size_t i = 0; i < BLOCKS - 1; i++)
		free(block[i]);
}

static PyStatus
interpreter_configure(PyConfig *config)
{
	PyStatus status;

	/* Isolated from environment, user site and arguments, but without -I's mark in
	 * sys.flags, which multiprocessing would pass to its children. */
	PyConfig_InitIsolatedConfig(config);
	config->isolated = 0;
	config->safe_path = 0;
	config->install_signal_handlers = 1;
	config->buffered_stdio = 1;
	config->pathconfig_warnings = 0;
	config->parse_argv = 0;
	config->site_import = 0;	/* import_site() follows */
	status = PyConfig_SetString(config, &config->program_name, L"python3");
	if (PyStatus_Exception(status))
		return status;
	status = PyConfig_SetBytesString(config, &config->executable, interpreter_executable());
	if (PyStatus_Exception(status))
		return status;
	if (*python_chosen()->tree)
		status = PyConfig_SetBytesString(config, &config->home, python_chosen()->tree);
	if (PyStatus_Exception(status))
		return status;
	return Py_InitializeFromConfig(config);
}

/* Did the loader take the Python that the worker was built for? If it cannot read that library, it
 * silently takes another of the same name. *what_r: static. */
static bool
is_the_right_one(const char **what_r)
{
	static char what[512];
	const char *version = interpreter_version(), *tree = python_chosen()->tree;
	const size_t len = strlen(tree);
	Dl_info found;
	void *any;

	if (strncmp(version, PYTHON_VERSION ".", strlen(PYTHON_VERSION ".")) != 0) {
		snprintf(what, sizeof(what), "Python is %s, and the worker was built for %s",
			 version, PYTHON_VERSION);
		*what_r = what;
		return false;
	}
	any = *tree ? dlsym(RTLD_DEFAULT, "Py_GetVersion") : NULL;
	/* A program without libpython has no path: it is the sealed copy. */
	if (any && dladdr(any, &found) && strstr(found.dli_fname, "/libpython") &&
	    (strncmp(found.dli_fname, tree, len) != 0 || found.dli_fname[len] != '/')) {
		snprintf(what, sizeof(what), "Python's library is %.200s, which is not below %.200s",
			 found.dli_fname, tree);
		*what_r = what;
		return false;
	}
	return true;
}

/* Runs one of the frozen files in the namespace that they share. */
static int
run_frozen(const unsigned char *code_bytes, size_t len)
{
	PyObject *code, *result = NULL;

	code = PyMarshal_ReadObjectFromString((const char *)code_bytes, (Py_ssize_t)len);
	if (code)
		result = PyEval_EvalCode(code, bootstrap, bootstrap);
	if (!result)
		PyErr_Print();
	Py_XDECREF(code);
	if (!result)
		return -EIO;
	Py_DECREF(result);
	return 0;
}

static bool
set_number(const char *name, unsigned long number)
{
	PyObject *value = PyLong_FromUnsignedLong(number);
	bool fine = value && PyDict_SetItemString(bootstrap, name, value) == 0;

	Py_XDECREF(value);
	return fine;
}

static bool
is_private(PyObject *key)
{
	Py_ssize_t len = PyUnicode_GET_LENGTH(key);

	return len > 0 && PyUnicode_READ_CHAR(key, 0) == '_' &&
	       (len == 1 || PyUnicode_READ_CHAR(key, 1) != '_');
}

/* Clears the names of a module at its end, in the order of CPython: those with one underscore
 * first, __builtins__ never. No key is removed, so destructors that run meanwhile do no harm. */
static PyObject *
clear_dict(PyObject *, PyObject *dict)
{
	PyObject *key, *value;

	if (!PyDict_Check(dict))
		return PyErr_Format(PyExc_TypeError, "names have to be a dictionary");
	for (int all = 0; all < 2; all++)
		for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
			if (value == Py_None || !PyUnicode_Check(key) ||
			    PyUnicode_READY(key) < 0 || (!all && !is_private(key)) ||
			    PyUnicode_CompareWithASCIIString(key, "__builtins__") == 0)
				continue;
			Py_INCREF(key);
			if (PyDict_SetItem(dict, key, Py_None) < 0)
				PyErr_Clear();
			Py_DECREF(key);
		}
	Py_RETURN_NONE;
}

static PyObject *
dict_clearer(void)
{
	static PyMethodDef method = { "clear_dict", clear_dict, METH_O, NULL };

	return PyCFunction_New(&method, NULL);
}

#define EMPTY_BYTES 40		/* an empty directory of a tmpfs; each name adds to it */

/* Are /tmp and the home directory empty? To list them, or to look at their sizes in Python, would
 * take a tenth of the time of a short script. */
static PyObject *
elsewhere_is_empty(PyObject *, PyObject *)
{
	const char *home = getenv("HOME");
	const char *const places[] = { "/tmp", home ? home : "/tmp" };
	struct stat st;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (stat(places[i], &st) < 0 || st.st_size != EMPTY_BYTES)
			Py_RETURN_FALSE;
	Py_RETURN_TRUE;
}

static PyObject *
elsewhere_looker(void)
{
	static PyMethodDef method = { "elsewhere_is_empty", elsewhere_is_empty, METH_NOARGS,
				      NULL };

	return PyCFunction_New(&method, NULL);
}

/* Undoes the mark in sys.flags that site was not imported, which multiprocessing would pass to its
 * children. */
static int
unmark_site(void)
{
	PyObject *flags = PySys_GetObject("flags"), *zero = PyLong_FromLong(0);
	PyObject *names = flags ? PyObject_GetAttrString(flags, "__match_args__") : NULL;
	PyObject *name = PyUnicode_FromString("no_site");
	Py_ssize_t i = names && name ? PySequence_Index(names, name) : -1;

	Py_XDECREF(names);
	Py_XDECREF(name);
	if (i < 0 || !zero) {
		Py_XDECREF(zero);
		return -EIO;
	}
	PyStructSequence_SetItem(flags, i, zero);
	return 0;
}

/* Imports site, as Python does at its start. To be called after hooks_watch(), because site runs
 * the .pth files of packages, some of which import threading. */
static int
import_site(void)
{
	PyObject *site = unmark_site() == 0 ? PyImport_ImportModule("site") : NULL;

	Py_XDECREF(site);
	return site ? 0 : -EIO;
}

#define FROZEN(name) { name##_code, sizeof(name##_code) }

static int
load_bootstrap(void)
{
	static const struct {
		const unsigned char *code;
		size_t len;
	} frozen[] = {
		FROZEN(jsonable), FROZEN(ipython), FROZEN(renew), FROZEN(lacks), FROZEN(lenient),
		FROZEN(checkpoints), FROZEN(rich), FROZEN(history), FROZEN(notebook), FROZEN(variables),
		FROZEN(import_check), FROZEN(imports), FROZEN(bootstrap), FROZEN(installed), FROZEN(learned),
		FROZEN(watched), FROZEN(ready), FROZEN(tools_module),
	};
	static const struct {
		const char *name;
		PyObject *(*make)(void);
	} natives[] = {
		{ "Turn", turns_type }, { "TurnBuffer", turns_buffer_type },
		{ "send_display", display_sender }, { "clear_dict", dict_clearer },
		{ "elsewhere_is_empty", elsewhere_looker },
		{ "may_ask_module", modules_may_ask }, { "ask_module", modules_ask },
		{ "ask_tool", tools_ask }, { "settle_hooks", hooks_settler },
		{ "watch_events", hooks_event_watcher }, { "signal_actions", hooks_signal_actions },
		{ "call_dense", heap_dense_caller }, { "of_types", heap_type_finder },
		{ "note_twister", twister_noter },
		{ "seed_twister", twister_seeder },
	};
	PyObject *builtins = PyDict_Copy(PyEval_GetBuiltins());
	PyObject *name = PyUnicode_FromString("<mcp-python>");
	int r = -EIO;

	bootstrap = PyDict_New();
	if (bootstrap && prompt_prepare() == 0 && builtins && name &&
	    set_number("OBJECTS_MAX", display_bounds.objects) &&
	    set_number("BYTES_MAX", display_bounds.bytes) &&
	    set_number("SIDE_MAX", display_bounds.pixels) &&
	    set_number("FILE_MAX", display_bounds.file_bytes) &&
	    set_number("FILES_MAX", display_bounds.files_bytes) &&
	    PyDict_SetItemString(bootstrap, "__builtins__", builtins) == 0 &&
	    PyDict_SetItemString(bootstrap, "__name__", name) == 0)
		r = 0;
	Py_XDECREF(builtins);
	Py_XDECREF(name);
	for (size_t i = 0; r == 0 && i < sizeof(natives) / sizeof(natives[0]); i++) {
		PyObject *native = natives[i].make();

		if (!native || PyDict_SetItemString(bootstrap, natives[i].name, native) < 0)
			r = -EIO;
		Py_XDECREF(native);
	}
	if (r < 0)
		PyErr_Print();
	for (size_t i = 0; r == 0 && i < sizeof(frozen) / sizeof(frozen[0]); i++)
		r = run_frozen(frozen[i].code, frozen[i].len);
	return r;
}

int
interpreter_start(const char **what_r)
{
	PyPreConfig before;
	PyConfig config;
	PyStatus status;

	if (!is_the_right_one(what_r))
		return -ENOEXEC;
	heap_gather();
	PyPreConfig_InitIsolatedConfig(&before);
	before.utf8_mode = 1;
	before.configure_locale = 1;
	status = Py_PreInitialize(&before);
	if (!PyStatus_Exception(status)) {
		status = interpreter_configure(&config);
		PyConfig_Clear(&config);
	}
	if (PyStatus_Exception(status)) {
		*what_r = status.err_msg ? status.err_msg : "starting Python";
		return -EIO;
	}
	*what_r = "the module site";
	if (hooks_watch() < 0 || import_site() < 0) {
		PyErr_Print();
		return -EIO;
	}
	*what_r = "the frozen module";
	return load_bootstrap();
}

static PyObject *
interpreter_call_python(const char *name, PyObject *args)
{
	PyObject *function = PyDict_GetItemString(bootstrap, name);

	return function && args ? PyObject_CallObject(function, args) : NULL;
}

/* A list of str, decoded as Python decodes bytes that should be UTF-8. */
static PyObject *
list_of(const struct msg_strs *strs)
{
	PyObject *list = PyList_New((Py_ssize_t)strs->n);

	for (size_t i = 0; list && i < strs->n; i++) {
		PyObject *item = PyUnicode_DecodeUTF8(strs->item[i].at,
						      (Py_ssize_t)strs->item[i].len,
						      "surrogateescape");

		if (!item) {
			Py_CLEAR(list);
			break;
		}
		PyList_SET_ITEM(list, (Py_ssize_t)i, item);
	}
	return list;
}

static char packages[PACKAGES_TEXT_MAX + 1];
static uint64_t learned, untried;
static PyObject *reasons;	/* holds the texts of unlearned */
static struct msg_str unlearned[64];

/* Appends the items of modules whose names are in the list to missing. */
static void
add_missing(PyObject *names, const struct msg_strs *modules, struct msg_strs *missing)
{
	for (size_t i = 0; i < modules->n; i++) {
		PyObject *name = PyUnicode_DecodeUTF8(modules->item[i].at,
						      (Py_ssize_t)modules->item[i].len,
						      "surrogateescape");

		if (name && PySequence_Contains(names, name) == 1)
			missing->item[missing->n++] = modules->item[i];
		Py_XDECREF(name);
	}
}

/* Takes the result of bootstrap.prepare. */
static int
take_prepared(PyObject *result, const struct msg_strs *modules, struct msg_strs *missing)
{
	unsigned long long mask, left;
	PyObject *names;
	const char *text;

	if (!PyArg_ParseTuple(result, "O!sKKO!", &PyList_Type, &names, &text, &mask, &left,
			      &PyList_Type, &reasons) ||
	    strlen(text) >= sizeof(packages))
		return -EIO;
	memcpy(packages, text, strlen(text) + 1);
	learned = mask;
	untried = left;
	Py_INCREF(reasons);
	add_missing(names, modules, missing);
	return 0;
}

int
interpreter_preload(const struct msg_configure *configure, struct msg_strs *missing,
		    const char **what_r)
{
	PyObject *names = list_of(&configure->modules), *learnable = list_of(&configure->learnable);
	PyObject *unset = PyList_New(0), *args, *result;
	const char *const *variable = parallel_unset();

	*what_r = "importing modules";
	for (size_t i = 0; unset && variable[i]; i++) {
		PyObject *item = PyUnicode_FromString(variable[i]);

		if (!item || PyList_Append(unset, item) < 0)
			Py_CLEAR(unset);
		Py_XDECREF(item);
	}
	args = names && unset && learnable
		? Py_BuildValue("(OOOKi)", names, unset, learnable,
				(unsigned long long)configure->learned, configure->bare ? 1 : 16)
		: NULL;
	result = interpreter_call_python("prepare", args);
	Py_XDECREF(args);
	Py_XDECREF(names);
	Py_XDECREF(unset);
	Py_XDECREF(learnable);
	if (!result || take_prepared(result, &configure->modules, missing) < 0) {
		PyErr_Print();
		return -EIO;
	}
	Py_DECREF(result);
	leave_room();
	heap_settle(configure->bare);
	return 0;
}

const char *
interpreter_packages(void)
{
	return packages;
}

const char *
interpreter_version(void)
{
	static char version[64];
	size_t len = strcspn(Py_GetVersion(), " ");

	if (len >= sizeof(version))
		len = sizeof(version) - 1;
	memcpy(version, Py_GetVersion(), len);
	version[len] = '\0';
	return version;
}

const char *
interpreter_text(const char *name)
{
	PyObject *text = PyDict_GetItemString(bootstrap, name);
	const char *utf8 = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;

	return utf8 ? utf8 : "";
}

void
interpreter_before_fork(void)
{
	PyOS_BeforeFork();
}

void
interpreter_after_fork(void)
{
	PyOS_AfterFork_Child();
	hooks_born();
}

static int
call_plain(const char *name)
{
	PyObject *none = PyTuple_New(0), *result = interpreter_call_python(name, none);

	Py_XDECREF(none);
	if (!result) {
		PyErr_Print();
		return -EIO;
	}
	Py_DECREF(result);
	return 0;
}

int
interpreter_use_proxy(unsigned int port)
{
	PyObject *args = Py_BuildValue("(I)", port);
	PyObject *result = interpreter_call_python("use_proxy", args);

	Py_XDECREF(args);
	if (!result) {
		PyErr_Print();
		return -EIO;
	}
	Py_DECREF(result);
	return 0;
}

int
interpreter_fresh(void)
{
	return call_plain("fresh");
}

static bool
take_text(PyObject *tuple, Py_ssize_t at, struct msg_str *text_r)
{
	PyObject *item = PyTuple_GET_ITEM(tuple, at);

	if (!PyBytes_Check(item))
		return false;
	text_r->at = PyBytes_AS_STRING(item);
	text_r->len = (size_t)PyBytes_GET_SIZE(item);
	return true;
}

/* The tuple: exit code, raised, repr, json, cut, exact, type, message, traceback, line,
 * undisplayed; of a script, names and refused imports too. */
static void
take_result(PyObject *result, struct msg_done *done)
{
	PyObject *cut = PyTuple_GET_ITEM(result, 4),
		 *line = PyTuple_GET_ITEM(result, 9),
		 *undisplayed = PyTuple_GET_ITEM(result, 10);

	done->exit_code =
		(uint32_t)PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(result, 0));
	done->raised = PyObject_IsTrue(PyTuple_GET_ITEM(result, 1)) == 1;
	done->has_value_repr = take_text(result, 2, &done->value_repr);
	done->has_value_json = take_text(result, 3, &done->value_json);
	done->has_value_cut = PyBool_Check(cut);
	done->value_cut = cut == Py_True;
	done->has_value_exact = done->has_value_json;
	done->value_exact = PyTuple_GET_ITEM(result, 5) == Py_True;
	done->has_error_type = take_text(result, 6, &done->error_type);
	done->has_error_message = take_text(result, 7, &done->error_message);
	done->has_error_traceback = take_text(result, 8, &done->error_traceback);
	done->has_error_line = PyLong_Check(line);
	if (done->has_error_line)
		done->error_line = (uint32_t)PyLong_AsUnsignedLongMask(line);
	done->has_names = PyTuple_GET_SIZE(result) > 11 && take_text(result, 11, &done->names);
	done->has_undisplayed = PyLong_Check(undisplayed);
	if (done->has_undisplayed)
		done->undisplayed =
			(uint32_t)(PyLong_AsUnsignedLongMask(undisplayed) & INT32_MAX);
}

/* The first of a list's texts, in item, which has room for most. False: it is no list. */
static bool
take_texts(PyObject *list, struct msg_str *item, size_t most, struct msg_strs *texts_r)
{
	if (!PyList_Check(list))
		return false;
	*texts_r = (struct msg_strs){ .item = item };
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && texts_r->n < most; i++) {
		PyObject *text = PyList_GET_ITEM(list, i);

		if (PyBytes_Check(text))
			item[texts_r->n++] = (struct msg_str){
				PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text) };
	}
	return true;
}

uint64_t
interpreter_learned(struct msg_strs *unlearned_r, uint64_t *untried_r)
{
	take_texts(reasons, unlearned, 64, unlearned_r);
	*untried_r = untried;
	return learned;
}

/* bootstrap.run itself failed: memory ran out, or a signal handler of the script raised at the
 * very end. */
static void
take_failure(struct msg_done *done)
{
	PyObject *kind = PyErr_Occurred();
	const char *name = kind && PyType_Check(kind) ?
		((PyTypeObject *)kind)->tp_name : "SystemError";

	done->exit_code = 1;
	done->raised = true;
	done->has_error_type = true;
	done->error_type = msg_str(name);
	if (done->error_type.len > 512)
		done->error_type.len = 512;
	PyErr_Print();
}

/* Makes the module "tools" available to the script. */
static void
offer_tools(const struct msg_run *run)
{
	PyObject *servers = list_of(&run->tools), *args, *result;

	tools_begin(run->tool_calls);
	args = servers ? Py_BuildValue("(OI)", servers, run->tool_calls_at_once) : NULL;
	result = interpreter_call_python("offer_tools", args);
	if (!result)
		PyErr_Print();
	Py_XDECREF(servers);
	Py_XDECREF(args);
	Py_XDECREF(result);
}

/* The end of the tuple of a script or a cell: lists, and the time of imports. */
static void
take_lists(PyObject *result, struct msg_done *done)
{
	static struct msg_str refused[REFUSED_IMPORTS_MAX], imported[IMPORTED_MAX];

	done->has_refused_imports = take_texts(PyTuple_GET_ITEM(result, 12), refused,
					       REFUSED_IMPORTS_MAX, &done->refused_imports);
	done->has_imported = take_texts(PyTuple_GET_ITEM(result, 13), imported, IMPORTED_MAX,
					&done->imported);
	done->import_us = (uint32_t)PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(result, 14));
	done->has_import_us = done->import_us > 0;
}

/* Begins a run: enables the messages that the script's process may send from now on. */
static void
interpreter_begin_run(const struct msg_run *run)
{
	ask_begin(run->id, run->prompts + run->modules > 0 || run->has_tools);
	display_begin(run->id);
	prompt_begin(run->prompts);
	modules_begin(run->modules);
	if (run->modules > 0 && call_plain("find_installed") < 0)
		modules_begin(0);
	if (run->has_tools)
		offer_tools(run);
	where_begin(run->id, run->has_cell ? run->cell : 0,
		    run->has_script_name ? &run->script_name : NULL);
}

void
interpreter_make_ready(const struct msg_prepare *prepare, struct msg_str *trouble_r)
{
	PyObject *modules = list_of(&prepare->modules);
	PyObject *args = modules ? Py_BuildValue("(OO)", modules, prepare->finds
						 ? Py_True : Py_False) : NULL;
	static PyObject *why;		/* holds the text */

	why = interpreter_call_python("make_ready", args);
	PyErr_Clear();
	Py_XDECREF(args);
	Py_XDECREF(modules);
	*trouble_r = msg_str("it cannot be made ready");
	if (why && PyBytes_Check(why))
		*trouble_r = (struct msg_str){ PyBytes_AS_STRING(why),
					       (size_t)PyBytes_GET_SIZE(why) };
	if (trouble_r->len == 0)
		parallel_prepare();
}

void
interpreter_run(const struct msg_run *run, int environment, struct msg_done *done_r)
{
	struct msg_done done = { .id = run->id };
	PyObject *args, *list = list_of(&run->args), *result = NULL, *imports;

	interpreter_begin_run(run);
	imports = run->has_imports ? list_of(&run->imports) : Py_NewRef(Py_None);
	args = list && imports ? Py_BuildValue("(y#OIOOiz#z#)", run->script.at ? run->script.at : "",
					       (Py_ssize_t)run->script.len, list,
					       (unsigned int)run->value_max, imports,
					       run->tell_names ? Py_True : Py_False, environment,
					       run->has_script_name ? run->script_name.at : NULL,
					       (Py_ssize_t)run->script_name.len,
					       run->has_globals ? run->globals.at : NULL,
					       (Py_ssize_t)run->globals.len)
			: NULL;
	Py_XDECREF(list);
	Py_XDECREF(imports);
	result = interpreter_call_python("run", args);
	where_end();
	Py_XDECREF(args);
	if (result && PyTuple_Check(result) && PyTuple_GET_SIZE(result) == 15) {
		take_result(result, &done);
		take_lists(result, &done);
	} else {
		take_failure(&done);
	}
	*done_r = done;
}

/* ---- sessions ---- */

static PyObject *kept;		/* of before_copy(), for after_copy() */
static PyObject *last_cell;	/* holds the texts of the cell's DONE */
static PyObject *last_stake;	/* holds the texts of AT_STAKE */

int
interpreter_session(void)
{
	if (turns_background(JAIL_BACKGROUND, JAIL_BACKGROUND + 1) < 0)
		return -EIO;
	heap_session();
	return call_plain("become_session");
}

void
interpreter_before_copy(void)
{
	PyObject *none = PyTuple_New(0);

	Py_CLEAR(kept);
	kept = interpreter_call_python("before_copy", none);
	Py_XDECREF(none);
	PyErr_Clear();
	PyOS_BeforeFork();
}

void
interpreter_after_copy(bool is_copy)
{
	PyObject *args, *result;

	if (!is_copy) {
		PyOS_AfterFork_Parent();
		return;
	}
	PyOS_AfterFork_Child();
	args = kept ? PyTuple_Pack(2, kept, turns_forked() ? Py_True : Py_False) : NULL;
	result = interpreter_call_python("after_copy", args);
	PyErr_Clear();
	Py_XDECREF(args);
	Py_XDECREF(result);
	Py_CLEAR(kept);
}

void
interpreter_streams_closed(void)
{
	turns_divide();
	/* Output that a thread of an earlier cell has left in a buffer does not belong to the next
	 * cell. */
	if (turns_closed())
		call_plain("flush_buffers");
	turns_rest();
}

void
interpreter_at_stake(const struct msg_run *run, struct msg_at_stake *stake_r)
{
	static const char unlisted[] = "threads and connections of earlier cells, if there were any, have ended";
	static struct msg_str note[NOTES_MAX];
	PyObject *none = PyTuple_New(0);

	Py_XDECREF(last_stake);
	last_stake = interpreter_call_python("at_stake", none);
	Py_XDECREF(none);
	PyErr_Clear();
	*stake_r = (struct msg_at_stake){ .id = run->id };
	if (!last_stake || !take_texts(last_stake, note, NOTES_MAX, &stake_r->notes)) {
		note[0] = (struct msg_str){ unlisted, sizeof(unlisted) - 1 };
		stake_r->notes = (struct msg_strs){ .item = note, .n = 1 };
	}
	stake_r->has_notes = stake_r->notes.n > 0;
}

void
interpreter_rolled_back(const struct child_end *end, size_t n)
{
	PyObject *ends = PyDict_New(), *args, *result;

	for (size_t i = 0; ends && i < n; i++) {
		PyObject *pid = PyLong_FromLong(end[i].pid);
		PyObject *status = PyLong_FromLong(end[i].status);

		if (pid && status)
			PyDict_SetItem(ends, pid, status);
		Py_XDECREF(pid);
		Py_XDECREF(status);
	}
	args = ends ? PyTuple_Pack(1, ends) : NULL;
	result = args ? interpreter_call_python("renew_children", args) : NULL;
	PyErr_Clear();
	Py_XDECREF(ends);
	Py_XDECREF(args);
	Py_XDECREF(result);
}

bool
interpreter_has_tasks(void)
{
	PyObject *none = PyTuple_New(0), *has = interpreter_call_python("has_tasks", none);
	bool some = has && PyObject_IsTrue(has) > 0;

	PyErr_Clear();
	Py_XDECREF(none);
	Py_XDECREF(has);
	return some;
}

void
interpreter_go_on(int line)
{
	PyObject *args = Py_BuildValue("(i)", line);
	PyObject *result = interpreter_call_python("go_on", args);

	PyErr_Clear();
	Py_XDECREF(args);
	Py_XDECREF(result);
}

static PyThreadState *waiting;

void
interpreter_give_way(void)
{
	waiting = PyEval_SaveThread();
}

void
interpreter_take_back(void)
{
	PyEval_RestoreThread(waiting);
}

void
interpreter_drop_signals(void)
{
	PyErr_CheckSignals();
	PyErr_Clear();
}

/* Calls the function of that name in bootstrap.py. args: a new reference, which is released. */
static void
call_in_session(const char *name, PyObject *args, const struct msg_run *run,
		struct msg_done *done_r)
{
	struct msg_done done = { .id = run->id };
	PyObject *result;

	Py_CLEAR(last_cell);
	interpreter_begin_run(run);
	turns_divide();
	result = interpreter_call_python(name, args);
	where_end();
	Py_XDECREF(args);
	if (result && PyTuple_Check(result) &&
	    (PyTuple_GET_SIZE(result) == 11 || PyTuple_GET_SIZE(result) == 15)) {
		take_result(result, &done);
		if (PyTuple_GET_SIZE(result) == 15)
			take_lists(result, &done);
	} else {
		take_failure(&done);
	}
	last_cell = result;
	*done_r = done;
}

void
interpreter_cell(const struct msg_run *run, struct msg_done *done_r)
{
	call_in_session("run_cell",
			Py_BuildValue("(Iy#Ii)", (unsigned int)run->cell,
				      run->script.at ? run->script.at : "",
				      (Py_ssize_t)run->script.len, (unsigned int)run->value_max,
				      (int)run->has_stdin),
			run, done_r);
}

void
interpreter_inspect(const struct msg_run *run, struct msg_done *done_r)
{
	if (run->script.len > 0)
		call_in_session("order_files", Py_BuildValue("(y#)", run->script.at,
							     (Py_ssize_t)run->script.len),
				run, done_r);
	else
		call_in_session("inspect_names", Py_BuildValue("(I)", (unsigned int)run->value_max),
				run, done_r);
}
