// The functions of NVIDIA's driver (libcuda.so.1) and of its compiler (libnvrtc) that the cuda module calls.
// Both libraries are found when the module runs, and what they take and return is declared here: so the
// module is built without CUDA, needs no version of it, and works where only a driver is installed.
//
//   driver().mem_alloc(&at, bytes)      libcuda.so.1: cuMemAlloc_v2
//   nvrtc().compile(program, ...)       libnvrtc.so.13 or .12: nvrtcCompileProgram
//
// A name with a suffix (_v2) is the form that these declarations are of; drivers keep such forms for ever.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mckpt::impl {

// Handles of the driver. They are pointers, except a device, which is a number, and an address in its memory.
using CuContext = void*;
using CuStream = void*;
using CuEvent = void*;
using CuModule = void*;
using CuFunction = void*;
using CuDevice = int;
using CuAddress = unsigned long long;

// Results and constants of the driver's interface.
enum : int { kCuSuccess = 0, kCuOutOfMemory = 2, kCuNoDevice = 100, kCuNotReady = 600 };
enum : int { kCuCapabilityMajor = 75, kCuCapabilityMinor = 76 };  // attributes of a device
enum : unsigned { kCuBlockingContext = 4 };                       // flags of a context
enum : unsigned { kCuRegisterPortable = 1 };                      // of cuMemHostRegister
enum : unsigned { kCuStreamNonBlocking = 1, kCuEventBlocking = 1, kCuEventUntimed = 2 };

struct CudaDriver {
  int (*init)(unsigned flags);
  int (*version)(int*);
  int (*error_name)(int result, const char**);
  int (*error_text)(int result, const char**);
  int (*device_count)(int*);
  int (*device_at)(CuDevice*, int number);
  int (*device_name)(char*, int room, CuDevice);
  int (*device_uuid)(unsigned char* sixteen, CuDevice);
  int (*device_attribute)(int*, int attribute, CuDevice);
  int (*retain_primary)(CuContext*, CuDevice);
  int (*primary_flags)(CuDevice, unsigned flags);
  int (*push_context)(CuContext);
  int (*pop_context)(CuContext*);
  int (*set_context)(CuContext);
  int (*mem_info)(std::size_t* free, std::size_t* total);
  int (*mem_alloc)(CuAddress*, std::size_t);
  int (*mem_free)(CuAddress);
  int (*host_register)(void*, std::size_t, unsigned flags);
  int (*host_unregister)(void*);
  int (*stream_create)(CuStream*, unsigned flags);
  int (*stream_destroy)(CuStream);
  int (*stream_synchronize)(CuStream);
  int (*stream_query)(CuStream);
  int (*stream_wait_event)(CuStream, CuEvent, unsigned flags);
  int (*event_create)(CuEvent*, unsigned flags);
  int (*event_destroy)(CuEvent);
  int (*event_record)(CuEvent, CuStream);
  int (*event_synchronize)(CuEvent);
  int (*memcpy_async)(CuAddress to, CuAddress from, std::size_t, CuStream);
  int (*memset_async)(CuAddress, unsigned char, std::size_t, CuStream);
  int (*module_load)(CuModule*, const void* image);
  int (*module_function)(CuFunction*, CuModule, const char* name);
  int (*function_attribute)(int*, int attribute, CuFunction);
  int (*launch)(CuFunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, CuStream, void** arguments,
                void** extra);
};

struct NvrtcLibrary {
  int (*version)(int* major, int* minor);
  const char* (*error_text)(int result);
  int (*known_count)(int*);
  int (*known)(int* capabilities);
  int (*create)(void** program, const char* source, const char* name, int headers, const char* const* texts,
                const char* const* names);
  int (*destroy)(void** program);
  int (*compile)(void* program, int options, const char* const*);
  int (*log_size)(void* program, std::size_t*);
  int (*log)(void* program, char*);
  int (*cubin_size)(void* program, std::size_t*);
  int (*cubin)(void* program, char*);
  int (*ptx_size)(void* program, std::size_t*);
  int (*ptx)(void* program, char*);
};

// The driver, loaded and started at the first call. Throws std::runtime_error if there is none, or if it does
// not work; the next call tries again.
const CudaDriver& driver();
// The compiler, loaded at the first call, of the version that fits the driver. Throws std::runtime_error with
// the names that were looked for.
const NvrtcLibrary& nvrtc();

// Throws std::runtime_error with the driver's own words unless the result is a success.
void check_driver(int result);

}  // namespace mckpt::impl
