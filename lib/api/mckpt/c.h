/* The C interface of mckpt, for other languages: the main functions of
 * mckpt/mckpt.h, with handles and texts. Chunks, objects, digests and all facts of an error are in C++ only.
 *
 *   mckpt_error* error = NULL;
 *   const char* settings[] = {"source=Qwen3-0.6B", "target=ckpt", "tp=2", NULL};
 *   mckpt_conversion* c = mckpt_plan("to-fsdp", settings, &error);
 *   if (!c || mckpt_run(c, NULL, NULL, &error) != 0) puts(mckpt_error_text(error));
 *
 * Settings are texts "name=value", ended by NULL; a null list is an empty one. The names are those of the fields
 * in mckpt/plans.h, mckpt/options.h, mckpt/conversion.h and mckpt/verify.h. Flags are 0 or 1; a list is the
 * same setting several times, and of any other setting that is given twice the last counts; a rule of dtype_rule is "dtype_rule=GLOB=TYPE".
 *
 * A function that can fail has `error` as its last parameter, which may be null. It returns null, or a status
 * other than 0 (enum Status of mckpt/error.h), and stores an error that the caller frees. Texts belong to the
 * handle that they were asked of and live as long. A handle is freed with its own function; freeing null does
 * nothing. pre: handles and errors that are asked for something are not null. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "mckpt/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mckpt_error mckpt_error;
typedef struct mckpt_checkpoint mckpt_checkpoint;
typedef struct mckpt_conversion mckpt_conversion;
typedef struct mckpt_report mckpt_report;

MCKPT_API const char* mckpt_version(void);

/* Errors. */
MCKPT_API int mckpt_error_status(const mckpt_error* error);
MCKPT_API const char* mckpt_error_code(const mckpt_error* error); /* "MC1107" */
MCKPT_API const char* mckpt_error_text(const mckpt_error* error); /* one line */
MCKPT_API const char* mckpt_error_help(const mckpt_error* error); /* what to do, or "" */
MCKPT_API void mckpt_error_free(mckpt_error* error);

/* Progress and interruption. A function that is null is not called. `user` is passed to each. All but `begin` are
 * called from several threads. */
typedef struct mckpt_observer {
  void* user;
  void (*begin)(void* user, const char* phase, int64_t bytes); /* a part of the work; 0 bytes: not known */
  void (*done)(void* user, int64_t bytes);                     /* so many more bytes */
  int (*stop)(void* user);                                     /* not 0: end the work */
} mckpt_observer;

/* Checkpoints. Numbers of tensors count from 0 in natural order of their names. */
typedef struct mckpt_tensor {
  const char* name;
  const char* dtype; /* as torch spells it */
  size_t rank;
  const int64_t* shape;
  int64_t bytes;
} mckpt_tensor;

/* Settings: those of OpenOptions. */
MCKPT_API mckpt_checkpoint* mckpt_open(const char* path, const char* const* settings, mckpt_error** error);
/* A view under the names of fsdp_dtensor. Settings: those of SourceOptions. */
MCKPT_API mckpt_checkpoint* mckpt_open_as_fsdp(const char* path, const char* const* settings, mckpt_error** error);
MCKPT_API const char* mckpt_checkpoint_format(const mckpt_checkpoint* checkpoint);
MCKPT_API int64_t mckpt_tensor_count(const mckpt_checkpoint* checkpoint);
/* pre: 0 <= number < mckpt_tensor_count(). The texts live as long as the checkpoint. */
MCKPT_API mckpt_tensor mckpt_tensor_at(const mckpt_checkpoint* checkpoint, int64_t number);
/* The bytes that mckpt_read() needs for a slice, such as "[0:4, :]"; "" or null: the whole tensor. -1: an error. */
MCKPT_API int64_t mckpt_read_bytes(const mckpt_checkpoint* checkpoint, const char* name, const char* slice,
                                   mckpt_error** error);
MCKPT_API int mckpt_read(const mckpt_checkpoint* checkpoint, const char* name, const char* slice, void* to,
                         int64_t bytes, mckpt_error** error);
MCKPT_API void mckpt_checkpoint_free(mckpt_checkpoint* checkpoint);

/* Conversions. `kind` and its settings: to-fsdp (ToFsdp), to-hf (ToHf), reshard (Reshard), ungroup, group,
 * hybrid-to-gpt, gpt-to-hybrid (Relayer), to-safetensors (ToSafetensors), to-pt (ToPt); and `threads`. */
MCKPT_API mckpt_conversion* mckpt_plan(const char* kind, const char* const* settings, mckpt_error** error);
MCKPT_API int mckpt_prove(mckpt_conversion* conversion, int threads, mckpt_error** error);
/* Settings: those of RunOptions. Proves before, if mckpt_prove() was not called. */
MCKPT_API int mckpt_run(mckpt_conversion* conversion, const char* const* settings, const mckpt_observer* observer,
                        mckpt_error** error);
MCKPT_API const char* mckpt_conversion_path(const mckpt_conversion* conversion);
/* A number of Account, such as "tensors_in", after proving, or of RunReport, such as "bytes_read", after the
 * run; -1 for another name. */
MCKPT_API int64_t mckpt_conversion_number(const mckpt_conversion* conversion, const char* name);
MCKPT_API void mckpt_conversion_free(mckpt_conversion* conversion);

/* Verifying; with the setting `against`, comparing instead. Settings: those of VerifyOptions, or CompareOptions. */
MCKPT_API mckpt_report* mckpt_verify(const char* path, const char* const* settings, const mckpt_observer* observer,
                                     mckpt_error** error);
MCKPT_API int mckpt_report_sound(const mckpt_report* report);
MCKPT_API int mckpt_report_equal(const mckpt_report* report); /* 1, 0, or -1: nothing was compared */
MCKPT_API size_t mckpt_report_finding_count(const mckpt_report* report);
/* pre: number < mckpt_report_finding_count(). */
MCKPT_API const char* mckpt_report_finding(const mckpt_report* report, size_t number); /* one line */
MCKPT_API void mckpt_report_free(mckpt_report* report);

#ifdef __cplusplus
}
#endif
