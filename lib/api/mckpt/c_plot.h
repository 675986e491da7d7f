/* A picture of a checkpoint, in C: mckpt/plot.h. See mckpt/c.h. */
#pragma once

#include "mckpt/c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Plotted. */
typedef struct mckpt_plotted {
  int sound;
  int64_t bytes;
  int64_t tensors;
  int64_t faulty_tensors;
} mckpt_plotted;

/* Settings: those of PlotOptions. Returns 0, and stores what was drawn in `to`, which may be null; or a status. */
MCKPT_API int mckpt_plot(const char* path, const char* output, const char* const* settings,
                         const mckpt_observer* observer, mckpt_plotted* to, mckpt_error** error);

#ifdef __cplusplus
}
#endif
