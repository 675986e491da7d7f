/* The C interface of mckpt, for other languages: the functions of mckpt/mckpt.h, with handles and texts.
 *
 *   mckpt_error* error = NULL;
 *   const char* settings[] = {"source=Qwen3-0.6B", "target=ckpt", "tp=2", NULL};
 *   mckpt_conversion* c = mckpt_plan("to-fsdp", settings, &error);
 *   if (!c || mckpt_run(c, NULL, NULL, &error) != 0) puts(mckpt_error_text(error));
 *
 * Settings are texts "name=value", ended by NULL; a null list is an empty one. The names are those of the fields
 * in mckpt/plans.h, mckpt/plain_plans.h, mckpt/options.h, mckpt/conversion.h, mckpt/verify.h, mckpt/diff.h,
 * mckpt/plot.h and mckpt/load.h. Flags are 0 or 1; a list is the same setting several times, and any other setting that is given twice is an error; a rule of dtype_rule is "dtype_rule=GLOB=TYPE".
 *
 * A function that can fail has `error` as its last parameter, which may be null. It returns null, or a status
 * other than 0 (enum Status of mckpt/error.h), and stores an error that the caller frees. A `const char*` belongs
 * to the handle that it was asked of and lives as long. A `char*` is a text that the caller frees with
 * mckpt_text_free(). A handle is freed with its own function; freeing null does nothing.
 * pre: handles and errors that are asked for something are not null.
 *
 * Functions that end in _json return one JSON object. Its keys are the fields of the C++ structs, in their order;
 * what is not known is null, "" or -1, as in the struct. Bytes that are not UTF-8 are U+FFFD; in paths (path, sources,
 * output, file of an error, a finding, an object and a chunk) each is the escape of a lone surrogate, "\udcff" for 0xff,
 * as Python has it in names of files. */
#pragma once

#include "mckpt/c_base.h"
#include "mckpt/c_checkpoint.h"
#include "mckpt/c_conversion.h"
#include "mckpt/c_diff.h"
#include "mckpt/c_load.h"
#include "mckpt/c_plot.h"
#include "mckpt/c_python.h"
#include "mckpt/c_report.h"
