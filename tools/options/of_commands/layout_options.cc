// The options of a model describe a training run and the checkpoint that is opened. Options with a meaning
// for shapes are listed here, so that a new option is refused for them until it is read.
#include "tools/options/of_commands/layout_options.h"

#include "core/base/error.h"
#include "tools/options/command_line.h"
#include "tools/options/parse_number.h"

namespace mckpt::impl {
namespace {

// The options that have a meaning for shapes.
constexpr const char* kOfShapes[] = {"--world",  "--hsdp",     "--hsdp-outer",
                                     "--engine", "--strategy", "--dtype"};

}  // namespace

void LayoutFlags::declare(CommandLine& line) {
  line.option("--group", group, "show this group of the model in detail: all its parameters, and a picture")
      .common();
  line.flag("--regex", regex, "GLOB is a regular expression, found anywhere in the name of a parameter");
  line.option("--rank", rank, "the rank whose groups are shown; default 0").common();
  line.option(
          "--dtype TYPE", dtype,
          "data type of the stored weights, such as bf16, fp16 or fp32, for sizes in bytes; by default bf16 for shapes, and for a model the type that each parameter has at run time (under v2 fp32)")
      .words({"bf16", "fp16", "fp32"});
  line.option("--world", world, "ranks that share the buffer of the shapes; default 1").common();
  line.flag(
      "--memory", memory,
      "show the memory of a rank instead of the buffers: weights, main weights, gradients, moments, holes, padding, and the largest unit that is gathered, by engine and strategy; main weights are fp32 unless --dtype gives another type");
  line.option(
          "--gradients TYPE", gradients,
          "with --memory: data type of gradients: auto (as each parameter), bf16, fp16, fp32; default fp32")
      .choices({"auto", "bf16", "fp16", "fp32"});
  line.option("--moments TYPE", moments,
              "with --memory: data type of the two moments of each parameter: bf16, fp16, fp32; default fp32")
      .choices({"bf16", "fp16", "fp32"});
  grid.declare(line);
  fsdp.declare(line);
  spelling.declare(line);
  pattern.declare(line);
  line.heading("Model");
  values.declare_vocab(line);
  values.declare_params(line);
  source.declare(line);
}

MemoryTypes LayoutFlags::memory_types() const {
  MemoryTypes out;
  if (dtype) out.main = parse_dtype(*dtype, "--dtype");
  out.gradients.reset();
  if (gradients != "auto") out.gradients = parse_dtype(gradients, "--gradients");
  out.moments = parse_dtype(moments, "--moments");
  return out;
}

void LayoutFlags::refuse_for_shapes(const CommandLine& line) const {
  if (std::vector<std::string> given = line.given_except(kOfShapes); !given.empty())
    throw Error(Code::kUsage, cat(given[0], " has a meaning only for a model"))
        .help("for shapes, --world is the number of ranks that share the buffer");
}

}  // namespace mckpt::impl
