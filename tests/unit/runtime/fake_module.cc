// Modules with one fault each, chosen by FAULT; each is built as a libmckpt_fake.so in a folder of its own.
#include <stdexcept>

#include "runtime/modules/module_abi.h"
#include "runtime/modules/module_guard.h"

#define GOOD 0
#define OLDER_ABI 1
#define SMALL_TABLE 2
#define OTHER_NAME 3
#define NO_TABLE 4
#define NO_ENTRY 5
#define FAILS 6

namespace {

const char* describe(MckptFactSink sink, void* context) {
  return mckpt::impl::guarded([&] {
    if (FAULT == FAILS) throw std::runtime_error("the library is in a bad mood");
    sink(context, "version", "1.2.3");
    sink(context, "threads", "4");
  });
}

constexpr MckptModule kModule = {FAULT == OLDER_ABI ? 999 : kMckptModuleAbi,
                                 FAULT == SMALL_TABLE ? 8 : sizeof(MckptModule),
                                 FAULT == OTHER_NAME ? "mpi" : "fake", describe, nullptr};

}  // namespace

#if FAULT == NO_ENTRY
extern "C" __attribute__((visibility("default"))) const MckptModule* another_function() { return &kModule; }
#else
MCKPT_EXPORT_MODULE { return FAULT == NO_TABLE ? nullptr : &kModule; }
#endif
