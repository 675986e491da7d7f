// convert pt-to-safetensors and safetensors-to-pt: the tensors of a store into one file, bit for bit.
//
//   $ mckpt convert pt-to-safetensors model.pt model.safetensors
//   plan    19 in -> 19 out: 19 copied; dropped 0, invented 0        (on stderr)
//   model.safetensors
//
// Both modes take the same options, declared in FileFlags; they differ in the planner of the library. The
// work is not shared among ranks.
#include "convert/plan/file.h"

#include <sys/stat.h>

#include "convert/plan/conversion.h"
#include "core/base/error.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/command_line.h"
#include "tools/options/convert_options.h"
#include "tools/run/conversion.h"

namespace mckpt::impl {
namespace {

// The options of both modes. `planning()` is what the planner takes.
struct FileFlags {
  ConvertOptions options;
  bool tensors_only = false;
  OpenOptions files{};

  // `source` and `target` are what SRC and DST are.
  void declare(CommandLine& line, const char* source, const char* target);
  void parse(CommandLine& line);
  FileOptions planning() const {
    return {options.source, options.target, options.include, options.exclude, files};
  }
};

void FileFlags::declare(CommandLine& line, const char* source, const char* target) {
  options.declare(line, source, cat("where the result goes: ", target));
  options.declare_choice(line);
  line.description(
      "Copies every tensor bit for bit under its own name. If the target format cannot store a tensor or an "
      "object, the command names it and writes nothing. Prints the path of the result.");
}

// Refuses a DST that is a folder: these modes write one file, and its name is not guessed.
void FileFlags::parse(CommandLine& line) {
  line.parse();
  files = line.opening();
  struct stat st;
  if (options.target.ends_with('/') && ::stat(options.target.c_str(), &st) != 0)
    throw Error(Code::kUsage, "DST has the name of a folder, but the result is one file")
        .found(escaped(options.target, 4096))
        .help(cat("name a file, such as ", escaped(options.target, 4096), "model.pt or .safetensors"));
  if (::stat(options.target.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
    throw Error(Code::kUsage, "DST is a folder, but the result is one file")
        .found(escaped(options.target))
        .help("name a file in this folder");
}

}  // namespace

Exit convert_pt_to_safetensors(CommandLine& line) {
  FileFlags flags;
  flags.declare(line, "a .pt file, or a folder of them", "a safetensors file");
  line.flag("--tensors-only", flags.tensors_only,
            "write only tensors; skip args, iteration number and other objects")
      .common();
  line.example("mckpt convert pt-to-safetensors model.pt model.safetensors");
  line.example("mckpt convert pt-to-safetensors model.pt model.safetensors --overwrite");
  line.example(
      "mckpt convert pt-to-safetensors checkpoint.pt model.safetensors --include 'model.*' --tensors-only");
  flags.parse(line);
  return run_conversion([&] { return plan_pt_to_safetensors(flags.planning(), flags.tensors_only); },
                        "convert", flags.options, line.flags(), false);
}

Exit convert_safetensors_to_pt(CommandLine& line) {
  FileFlags flags;
  flags.declare(line, "a safetensors file, or a folder of them", "a .pt file");
  line.example("mckpt convert safetensors-to-pt model.safetensors model.pt");
  line.example("mckpt convert safetensors-to-pt hf_folder model.pt --dry-run");
  line.example("mckpt convert safetensors-to-pt hf_folder model.pt --exclude '*lm_head*'");
  flags.parse(line);
  return run_conversion([&] { return plan_safetensors_to_pt(flags.planning()); }, "convert", flags.options,
                        line.flags(), false);
}

}  // namespace mckpt::impl
