// Findings about a tensor of a store, which carry its name.
#include "io/store/findings.h"

#include "io/store/store.h"

namespace mckpt::impl {

void Findings::add(const Store& store, Code code, i64 tensor, std::string message, const char* help,
                   bool warning) {
  add({.code = code,
       .tensor = tensor < 0 ? std::string() : std::string(store.name(tensor)),
       .message = std::move(message),
       .help = help,
       .warning = warning});
}

}  // namespace mckpt::impl
