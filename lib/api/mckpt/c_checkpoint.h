/* Checkpoints in C: mckpt/checkpoint.h. See mckpt/c.h. A checkpoint may be used by all threads. */
#pragma once

#include "mckpt/c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mckpt_checkpoint mckpt_checkpoint;

/* Settings: those of OpenOptions. */
MCKPT_API mckpt_checkpoint* mckpt_open(const char* path, const char* const* settings, mckpt_error** error);
/* A view under the names of fsdp_dtensor. Settings: those of SourceOptions. */
MCKPT_API mckpt_checkpoint* mckpt_open_as_fsdp(const char* path, const char* const* settings,
                                               mckpt_error** error);
/* Opens one rank's file with the shapes that the rank had in memory; any other checkpoint as mckpt_open() opens it.
   The settings are those of OpenOptions. */
MCKPT_API mckpt_checkpoint* mckpt_open_local(const char* path, const char* const* settings,
                                             mckpt_error** error);
MCKPT_API void mckpt_checkpoint_free(mckpt_checkpoint* checkpoint);

MCKPT_API const char* mckpt_checkpoint_format(const mckpt_checkpoint* checkpoint);
/* {"path", "format", "ranks", "facts": {name: value}, "findings": [Finding]} */
MCKPT_API char* mckpt_checkpoint_json(const mckpt_checkpoint* checkpoint, mckpt_error** error);
/* {"shard": one rank's file, "packing": of Megatron-FSDP}: as docs/json.md has them of `inspect`; each may be null */
MCKPT_API char* mckpt_writer_json(const mckpt_checkpoint* checkpoint, mckpt_error** error);
/* {"objects": [Object]} */
MCKPT_API char* mckpt_objects_json(const mckpt_checkpoint* checkpoint, mckpt_error** error);
/* The value of an object as a literal of Python; "" if it is not made of numbers, texts, lists and the like alone. A NaN is
 * the name nan. */
MCKPT_API char* mckpt_object_literal(const mckpt_checkpoint* checkpoint, const char* name,
                                     mckpt_error** error);

/* Tensors. Their numbers count from 0 in natural order of their names. */
typedef struct mckpt_tensor {
  const char* name;
  const char* dtype; /* as torch spells it */
  size_t rank;
  const int64_t* shape;
  int64_t bytes;
} mckpt_tensor;

MCKPT_API int64_t mckpt_tensor_count(const mckpt_checkpoint* checkpoint);
/* pre: 0 <= number < mckpt_tensor_count(). The texts live as long as the checkpoint. */
MCKPT_API mckpt_tensor mckpt_tensor_at(const mckpt_checkpoint* checkpoint, int64_t number);

/* All tensors in one call. Every list has `count` items, by number, unless it says otherwise; it lives as long as
 * the checkpoint. */
typedef struct mckpt_table {
  int64_t count;
  const char* names;   /* one after the other, each ended by '\0' */
  int64_t names_bytes; /* of all names with their ends */
  const char* dtypes;  /* the same */
  int64_t dtypes_bytes;
  const int64_t* ranks;  /* the number of dimensions */
  const int64_t* shapes; /* the dimensions of all tensors one after the other */
  const int64_t* bytes;
  const int64_t* in_files; /* the numbers in the order in which the files have the tensors */
} mckpt_table;

MCKPT_API int mckpt_tensor_table(const mckpt_checkpoint* checkpoint, mckpt_table* to, mckpt_error** error);
/* Stores the numbers of the tensors that the glob matches, ascending, and returns how many they are; -1: an error.
 * pre: `to` has room for mckpt_tensor_count() numbers. */
MCKPT_API int64_t mckpt_matching(const mckpt_checkpoint* checkpoint, const char* glob, int64_t* to,
                                 mckpt_error** error);
/* {"chunks": [TensorChunk]} */
MCKPT_API char* mckpt_chunks_json(const mckpt_checkpoint* checkpoint, const char* name, mckpt_error** error);
/* Statistics, as an object; min, max, mean, deviation and l2 are null where no number is finite */
MCKPT_API char* mckpt_statistics_json(const mckpt_checkpoint* checkpoint, const char* name, int threads,
                                      mckpt_error** error);
/* Of the numbers of a slice */
MCKPT_API char* mckpt_slice_statistics_json(const mckpt_checkpoint* checkpoint, const char* name,
                                            const char* slice, mckpt_error** error);
/* SHA-256 of the tensor's bytes, in hexadecimal digits */
MCKPT_API char* mckpt_digest(const mckpt_checkpoint* checkpoint, const char* name, mckpt_error** error);

/* The bytes that mckpt_read() needs for a slice, such as "[0:4, :]"; "" or null: the whole tensor. -1: an error. */
MCKPT_API int64_t mckpt_read_bytes(const mckpt_checkpoint* checkpoint, const char* name, const char* slice,
                                   mckpt_error** error);
MCKPT_API int mckpt_read(const mckpt_checkpoint* checkpoint, const char* name, const char* slice, void* to,
                         int64_t bytes, mckpt_error** error);

/* Where a file has all bytes of a tensor as mckpt_read() stores them, so that a program can map them into its memory.
 * `file` is null if the tensor is stored otherwise; its text lives as long as the checkpoint. */
typedef struct mckpt_stretch {
  const char* file;
  int64_t offset;
} mckpt_stretch;

MCKPT_API int mckpt_tensor_stretch(const mckpt_checkpoint* checkpoint, const char* name, mckpt_stretch* to,
                                   mckpt_error** error);

#ifdef __cplusplus
}
#endif
