// A base that no path needs is a mistake: the command would answer for something else than was meant.
#include "tools/options/base_flag.h"

#include <algorithm>

#include "core/base/error.h"
#include "hf/adapter/adapted_store.h"
#include "io/file/archive.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {

void BaseFlag::declare(CommandLine& line) {
  line.option(
      "--base DIR", base_,
      "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model "
      "with the adapter merged");
}

void BaseFlag::settle(CommandLine& line, std::span<const std::string> paths) const {
  if (!line.given("--base")) return;
  // What is at a path that does not exist is said when it is opened.
  const OpenOptions& opening = line.opening();
  const bool all_there = std::ranges::all_of(
      paths, [&](const std::string& p) { return is_folder(p, opening) || is_file(p, opening); });
  if (all_there &&
      std::ranges::none_of(paths, [&](const std::string& p) { return is_adapter_folder(p, opening); }))
    throw Error(Code::kUsage, "--base is for the folder of an adapter, and no path is one")
        .expected("a folder with adapter_config.json and without config.json")
        .found(listed(paths));
  line.set_base(adapter_base(base_));
}

}  // namespace mckpt::impl
