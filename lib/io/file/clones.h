// MCKPT_CLONES in front of a function with a loop over bytes: compiled a second time for AVX2, chosen when
// the program is loaded.
#pragma once

// Sanitizers are not ready when that choice is made; clang has no clones before 15.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define MCKPT_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define MCKPT_CLONES
#endif
