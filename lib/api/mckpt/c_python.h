/* Memory of Python that is passed on by DLPack: C functions, so that they may run while an exception is on its way.
 *
 *   np.from_dlpack(t)   numpy raises -> the capsule, which nobody took over, ends -> mckpt_python_capsule_ends()
 *                       the exception in flight stays as it is
 *
 * The library is not linked with Python: the package gives it the functions of the interpreter. */
#pragma once

#include "mckpt/c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* PyCapsule_IsValid, PyCapsule_GetPointer, PyErr_Fetch, PyErr_Restore, PyGILState_Ensure, PyGILState_Release,
 * Py_DecRef, Py_IsInitialized. */
typedef struct mckpt_python {
  int (*is_valid)(void* capsule, const char* name);
  void* (*pointer)(void* capsule, const char* name);
  void (*fetch)(void** type, void** value, void** trace);
  void (*restore)(void* type, void* value, void* trace);
  int (*ensure)(void);
  void (*release)(int state);
  void (*decref)(void* object);
  int (*is_initialized)(void);
} mckpt_python;

/* To be called once, before any capsule is made. */
MCKPT_API void mckpt_python_set(const mckpt_python* functions);
/* The destructor of a capsule "dltensor": calls the deleter of the DLManagedTensor, if nobody took it over. */
MCKPT_API void mckpt_python_capsule_ends(void* capsule);
/* A deleter: the context of the DLManagedTensor is an object of Python, of which one reference is given up. The structure
 * may be memory of that object. Any thread may call it. */
MCKPT_API void mckpt_python_deleter(void* managed);

#ifdef __cplusplus
}
#endif
