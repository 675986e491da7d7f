// convert to-hdf5 and from-hdf5: a checkpoint of any format as an HDF5 archive, and its files back again.
//
//   $ mckpt convert to-hdf5 ckpt/iter_0000010 archive
//   $ mckpt convert to-hdf5 Qwen3-0.6B qwen.h5
//   $ mckpt convert from-hdf5 qwen.h5 Qwen3-0.6B
#include "convert/plan/archive.h"

#include <optional>

#include "convert/plan/conversion.h"
#include "core/base/error.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/command_line.h"
#include "tools/options/convert_options.h"
#include "tools/options/run_flags.h"
#include "tools/run/conversion.h"

namespace mckpt::impl {

Exit convert_to_hdf5(CommandLine& line) {
  ConvertOptions options;
  bool single_file = false;
  std::optional<std::string> assets;
  AcceptFlag accept;
  options.declare(line, "a checkpoint of any format", "the folder to make; a name that ends in .h5 is one file");
  options.declare_resume(line);
  line.flag("--single-file", single_file, "one HDF5 file, not a folder with a file for each file of SRC, whatever its name")
      .common();
  line.option("--assets HF_DIR", assets,
              "folder with config.json and tokenizer that go into the archive; by default those that are "
              "with SRC")
      .common();
  accept.declare(line);
  line.description(
      "Archives every file of a checkpoint in HDF5, bit for bit. h5py, h5dump and h5diff see each tensor "
      "whole, under "
      "its name and as numbers, whatever ranks have its rows. All commands read an archive as they read the "
      "checkpoint "
      "itself.");
  line.description(
      "A folder has archive.h5, with all tensors, and beside it a file for each file of the checkpoint that "
      "has large "
      "ones. Under mpirun the ranks share the work.");
  line.example("mckpt convert to-hdf5 ckpt/iter_0000010 archive");
  line.example("mckpt convert to-hdf5 Qwen3-0.6B qwen.h5");
  line.example("mckpt export archive hf_folder");
  line.parse();
  options.check();
  if (single_file && options.resume)
    throw Error(Code::kUsage, "--resume is for folders: a single file is begun anew")
        .help("leave out --resume");
  auto plan = [&] {
    return plan_to_hdf5({.source = options.source,
                         .target = options.target,
                         .single_file = single_file,
                         .assets = assets,
                         .accept = accept.codes(),
                         .files = line.opening()});
  };
  return run_conversion(plan, "convert", options, line.flags());
}

Exit convert_from_hdf5(CommandLine& line) {
  ConvertOptions options;
  options.declare(line, "an archive that convert to-hdf5 made",
                  "the folder to make, or the file if SRC has only one");
  options.declare_resume(line);
  line.description(
      "Writes the files that an archive was made of, byte for byte, but for mckpt_manifest.json, which is "
      "made anew. "
      "The data are compared with the sums in the archive while they are copied.");
  line.description("Under mpirun the ranks share the work.");
  line.example("mckpt convert from-hdf5 qwen.h5 Qwen3-0.6B");
  line.example("mckpt convert from-hdf5 archive ckpt/iter_0000010");
  line.example("mckpt convert from-hdf5 model.h5 model.pt --dry-run");
  line.parse();
  options.check();
  auto plan = [&] {
    return plan_from_hdf5({.source = options.source, .target = options.target, .files = line.opening()});
  };
  return run_conversion(plan, "convert", options, line.flags());
}

}  // namespace mckpt::impl
