/* MCKPT_API marks what libmckpt offers to other programs. Everything else in the library is hidden. */
#pragma once

#if defined(__GNUC__)
#define MCKPT_API __attribute__((visibility("default")))
#else
#define MCKPT_API
#endif
