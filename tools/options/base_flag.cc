// Gives the base to all that the command opens.
#include "tools/options/base_flag.h"

#include "convert/own/memory_names.h"
#include "hf/adapter/adapted_store.h"
#include "options/fields.h"
#include "tools/options/command_line.h"
#include "tools/options/field_flags.h"

namespace mckpt::impl {

void BaseFlag::declare(CommandLine& line) {
  FieldFlags flags(line);
  fields(given_, flags);
}

void settle_base(CommandLine& line, const mckpt::OpenOptions& given, std::span<const std::string> paths) {
  if (given.base) line.set_base(adapter_base_for(*given.base, paths, line.opening(), memory_names()));
}

}  // namespace mckpt::impl
