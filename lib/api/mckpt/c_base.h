/* What all parts of the C interface share: errors, texts, progress and interruption. See mckpt/c.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "mckpt/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mckpt_error mckpt_error;
typedef struct mckpt_watch mckpt_watch;

MCKPT_API const char* mckpt_version(void);
MCKPT_API void mckpt_text_free(char* text);

/* Errors. */
MCKPT_API int mckpt_error_status(const mckpt_error* error);
MCKPT_API const char* mckpt_error_code(const mckpt_error* error); /* "MC1107" */
MCKPT_API const char* mckpt_error_text(const mckpt_error* error); /* one line */
MCKPT_API const char* mckpt_error_help(const mckpt_error* error); /* what to do, or "" */
MCKPT_API char* mckpt_error_json(const mckpt_error* error);       /* all of ErrorFacts */
MCKPT_API void mckpt_error_free(mckpt_error* error);

/* Progress and interruption. A function that is null is not called. `user` is passed to each. All but `begin` are
 * called from several threads. */
typedef struct mckpt_observer {
  void* user;
  void (*begin)(void* user, const char* phase, int64_t bytes); /* a part of the work; 0 bytes: not known */
  void (*done)(void* user, int64_t bytes);                     /* so many more bytes */
  int (*stop)(void* user);                                     /* not 0: end the work */
} mckpt_observer;

/* An observer that another thread can poll, for languages in which a function that other threads call is expensive:
 *
 *   mckpt_watch* w = mckpt_watch_new();
 *   one thread:       mckpt_observer o = mckpt_watch_observer(w);  mckpt_run(conversion, NULL, &o, &error);
 *   another thread:   mckpt_watch_json(w);  mckpt_watch_stop(w);
 *
 * The watch has to live until the work ends. One watch may see several pieces of work, one after the other. */
MCKPT_API mckpt_watch* mckpt_watch_new(void);
MCKPT_API mckpt_observer mckpt_watch_observer(mckpt_watch* watch);
MCKPT_API void mckpt_watch_stop(mckpt_watch* watch);
/* {"phase": "write", "done": 400, "bytes": 1000, "ended": [{"phase": "prove", "bytes": 0}]}; the phase is "" before the
 * first one, and "ended" has all phases that came before it. */
MCKPT_API char* mckpt_watch_json(mckpt_watch* watch);
MCKPT_API void mckpt_watch_free(mckpt_watch* watch);

#ifdef __cplusplus
}
#endif
