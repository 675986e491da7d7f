/* What is different in two checkpoints, in C: mckpt/diff.h. See mckpt/c.h. */
#pragma once

#include "mckpt/c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mckpt_difference mckpt_difference;

/* DiffRow. The texts belong to the handle. */
typedef struct mckpt_diff_row {
  const char*
      kind; /* "only_a", "only_b", "shape", "dtype", "cast", "attribute", "values", "object", "file" */
  const char* name;
  const char* at;
  const char* a;
  const char* b;
  int64_t items;  /* how many items differ; -1: not counted */
  double largest; /* the largest difference; -1: not known */
} mckpt_diff_row;

/* Settings: those of DiffOptions. */
MCKPT_API mckpt_difference* mckpt_diff(const char* a, const char* b, const char* const* settings,
                                       const mckpt_observer* observer, mckpt_error** error);
MCKPT_API void mckpt_diff_free(mckpt_difference* difference);

MCKPT_API int mckpt_diff_equal(const mckpt_difference* difference);
MCKPT_API int64_t mckpt_diff_row_count(const mckpt_difference* difference);
/* pre: 0 <= number < mckpt_diff_row_count(). */
MCKPT_API mckpt_diff_row mckpt_diff_row_at(const mckpt_difference* difference, int64_t number);
/* The whole Diff as JSON, which mckpt_text_free() frees. */
MCKPT_API char* mckpt_diff_json(const mckpt_difference* difference, mckpt_error** error);

#ifdef __cplusplus
}
#endif
