// Gives the base to all that the command opens.
#include "tools/options/base_flag.h"

#include "convert/views/memory_names.h"
#include "hf/adapter/adapted_store.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {

void BaseFlag::declare(CommandLine& line) {
  line.option(
      "--base DIR", base_,
      "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model "
      "with the adapter merged");
}

void BaseFlag::settle(CommandLine& line, std::span<const std::string> paths) const {
  if (line.given("--base")) line.set_base(adapter_base_for(base_, paths, line.opening(), memory_names()));
}

}  // namespace mckpt::impl
