// Makes the options of the conversion that would write the checkpoint, and asks for its plan as a store.
#include "tools/commands/plot_as.h"

#include "convert/open/source_model.h"
#include "convert/plan/targets/fsdp.h"
#include "convert/plan/targets/planned_store.h"
#include "convert/plan/targets/torch_dist.h"
#include "core/base/error.h"
#include "core/hybrid/spellings.h"
#include "io/store/store.h"
#include "tools/options/command_line.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

// The options that only Megatron-FSDP has.
constexpr const char* kOfFsdp[] = {"--engine",   "--strategy",      "--fsdp-unit", "--fsdp-units-for",
                                   "--freeze",   "--bucket-size",   "--hsdp",      "--hsdp-outer",
                                   "--spelling", "--hybrid-pattern"};

}  // namespace

void PlotAs::declare(CommandLine& line) {
  line.heading("A plan");
  line.option(
          "--as WHAT", as_,
          "draw what a training run would save of a Hugging Face model: fsdp (Megatron-FSDP) or torch_dist; nothing is written but the picture")
      .choices({"fsdp", "torch_dist"})
      .common();
  line.only_with("--as");
  run_.declare(line);
}

std::unique_ptr<Store> PlotAs::plan(const CommandLine& line, const std::string& path, int threads) const {
  const Grid grid = run_.grid.grid();
  const std::string folder = folder_with_config(path, run_.model.options().files);
  PlannedCheckpoint planned;
  // g++ 13 destroys members of a braced list twice if a later one throws.
  if (as_ == "fsdp") {
    HfToFsdpOptions options;
    options.source = folder, options.model = run_.model.options();
    options.grid = grid, options.fsdp = run_.fsdp.setup(grid);
    options.frozen = run_.fsdp.frozen(), options.spelling = run_.spelling.spelling();
    options.values = run_.values.options(), options.hybrid_pattern = run_.pattern.text(),
    options.threads = threads;
    planned = planned_fsdp(options);
  } else {
    for (const char* name : kOfFsdp)
      if (line.given(name)) throw Error(Code::kUsage, cat(name, " has a meaning only with --as fsdp"));
    ToMcoreOptions options;
    options.source = folder, options.grid = grid, options.values = run_.values.options(),
    options.threads = threads;
    options.checkpoint.model = run_.model.options();
    planned = planned_torch_dist(options);
  }
  if (std::string text = run_.grid.note(); !text.empty()) note(line.flags(), text);
  print_notes(line.flags(), planned.notes);
  return std::move(planned.store);
}

}  // namespace mckpt::impl
