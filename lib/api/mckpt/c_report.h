/* Verifying in C: mckpt/verify.h. See mckpt/c.h. */
#pragma once

#include "mckpt/c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mckpt_report mckpt_report;

/* With the setting `against`, compares instead. Settings: those of VerifyOptions, or CompareOptions, with those of
   CardFiles beside them: `report` (one for each file), `command`. */
MCKPT_API mckpt_report* mckpt_verify(const char* path, const char* const* settings,
                                     const mckpt_observer* observer, mckpt_error** error);
MCKPT_API void mckpt_report_free(mckpt_report* report);

MCKPT_API int mckpt_report_sound(const mckpt_report* report);
MCKPT_API int mckpt_report_equal(const mckpt_report* report); /* 1, 0, or -1: nothing was compared */
MCKPT_API size_t mckpt_report_finding_count(const mckpt_report* report);
/* pre: number < mckpt_report_finding_count(). */
MCKPT_API const char* mckpt_report_finding(const mckpt_report* report, size_t number); /* one line */
/* All of Report. */
MCKPT_API char* mckpt_report_json(const mckpt_report* report, mckpt_error** error);

#ifdef __cplusplus
}
#endif
