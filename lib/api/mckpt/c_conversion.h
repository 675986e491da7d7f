/* Conversions in C: mckpt/conversion.h. See mckpt/c.h. A conversion belongs to one thread. */
#pragma once

#include "mckpt/c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mckpt_conversion mckpt_conversion;

/* `kind` is a word of docs/settings.md, such as "to-fsdp" (ToFsdp) or "hf" (ToHf), which has the settings of each kind,
 * too: the fields of its struct; and `threads`. */
MCKPT_API mckpt_conversion* mckpt_plan(const char* kind, const char* const* settings, mckpt_error** error);
MCKPT_API int mckpt_prove(mckpt_conversion* conversion, int threads, const mckpt_observer* observer,
                          mckpt_error** error);
/* Settings: those of RunOptions. Proves before, if mckpt_prove() was not called. */
MCKPT_API int mckpt_run(mckpt_conversion* conversion, const char* const* settings,
                        const mckpt_observer* observer, mckpt_error** error);
MCKPT_API void mckpt_conversion_free(mckpt_conversion* conversion);

MCKPT_API const char* mckpt_conversion_path(const mckpt_conversion* conversion);
/* A number of Account, such as "tensors_in", after proving, or of RunReport, such as "bytes_read", after the
 * run; -1 for another name. */
MCKPT_API int64_t mckpt_conversion_number(const mckpt_conversion* conversion, const char* name);
/* {"path", "bytes", "sources": [text], "outputs": [OutputFile], "notes": [Note], "findings": [Finding],
 *  "grid": ChosenGrid or null if the result has none, "account": Account or null before proving, "run": RunReport or null before the run} */
MCKPT_API char* mckpt_conversion_json(const mckpt_conversion* conversion, mckpt_error** error);

/* All kinds with their settings, and the settings of other functions, as JSON:
 * {"kinds": [{"name", "word", "others", "fields": [{"name", "type", "words", "help", ...}]}], "results": [...]} */
MCKPT_API char* mckpt_settings_json(mckpt_error** error);

#ifdef __cplusplus
}
#endif
