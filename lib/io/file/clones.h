// MCKPT_CLONES, in front of a function with a loop over bytes or numbers, makes the compiler build the
// function twice: for any x86-64 processor and for one with AVX2. Which of the two runs is decided once, when
// the program is loaded, so that one program serves all machines and uses the wider vectors where they are.
//
//   MCKPT_CLONES i64 count(const u8* b, i64 n, u8 mask, u8 least, u8 most) {     (io/values/finite.cc)
//
// A function that such a function calls is built for AVX2 only if it is inlined. Hence the usual form: a
// template that is always inlined has the loop, and one line with MCKPT_CLONES for each type calls it.
#pragma once

// Sanitizers are not ready when that choice is made; clang has no clones before 15.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define MCKPT_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define MCKPT_CLONES
#endif
