/* Loading in C: mckpt/load.h. See mckpt/c.h. What was loaded may be used by all threads. */
#pragma once

#include "mckpt/c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mckpt_loaded mckpt_loaded;

/* Settings: those of TensorsToLoad; or, with the setting `rank`, those of RankToLoad. */
MCKPT_API mckpt_loaded* mckpt_load(const char* path, const char* const* settings,
                                   const mckpt_observer* observer, mckpt_error** error);
/* Tensors that were taken over by mckpt_loaded_dlpack() stay. */
MCKPT_API void mckpt_loaded_free(mckpt_loaded* loaded);

/* {"device", "bytes", "tensors": [{"name", "dtype", "shape", "bytes"}]} */
MCKPT_API char* mckpt_loaded_json(const mckpt_loaded* loaded, mckpt_error** error);
/* pre: 0 <= number < the number of tensors. The address is one of the device. */
MCKPT_API void* mckpt_loaded_data(const mckpt_loaded* loaded, int64_t number);
/* A DLManagedTensor of DLPack over the tensor's memory, which its deleter, to be called once from any thread, gives
 * up. `code` and `bits` are DLPack's names of the type: (4, 16) for bfloat16; the bits have to be those of an item, or
 * 8 for the bytes of a tensor without dimensions of its own: its shape is then the number of bytes. */
MCKPT_API void* mckpt_loaded_dlpack(const mckpt_loaded* loaded, int64_t number, int code, int bits,
                                    mckpt_error** error);

#ifdef __cplusplus
}
#endif
