#include "tools/commands/plot_as.h"

#include "convert/plan/hf_to_fsdp.h"
#include "convert/plan/planned_store.h"
#include "convert/plan/to_mcore.h"
#include "core/base/error.h"
#include "core/hybrid/spellings.h"
#include "io/store/store.h"
#include "tools/options/command_line.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

// The options that only Megatron-FSDP has.
constexpr const char* kOfFsdp[] = {"--engine", "--strategy", "--fsdp-unit", "--fsdp-units-for", "--freeze", "--bucket-size",
                                   "--hsdp", "--hsdp-outer", "--spelling", "--hybrid-pattern"};

}  // namespace

void PlotAs::declare(CommandLine& line) {
  line.heading("A plan");
  line.option("--as WHAT", as_,
              "draw what a training run would save of a Hugging Face model: fsdp (Megatron-FSDP) or torch_dist; nothing is written "
              "but the picture")
      .choices({"fsdp", "torch_dist"})
      .common();
  line.only_with("--as");
  model_.declare(line);
  grid_.declare(line);
  fsdp_.declare(line);
  spelling_.declare(line);
  pattern_.declare(line);
  values_.declare(line);
}

std::unique_ptr<Store> PlotAs::plan(const CommandLine& line, const std::string& path, int threads) const {
  const Grid grid = grid_.grid();
  if (std::string text = grid_.note(); !text.empty()) note(line.flags(), text);
  PlannedCheckpoint planned;
  if (as_ == "fsdp") {
    HfToFsdpOptions options{.source = path, .target = "", .model = model_.options(), .grid = grid, .fsdp = fsdp_.setup(grid)};
    options.frozen = fsdp_.frozen(), options.spelling = spelling_.spelling();
    options.values = values_.options(), options.hybrid_pattern = pattern_.text(), options.threads = threads;
    planned = planned_fsdp(options);
  } else {
    for (const char* name : kOfFsdp)
      if (line.given(name)) throw Error(Code::kUsage, cat(name, " has a meaning only with --as fsdp"));
    ToMcoreOptions options{.source = path, .target = "", .grid = grid, .values = values_.options(), .threads = threads};
    options.checkpoint.model = model_.options();
    planned = planned_torch_dist(options);
  }
  print_notes(line.flags(), planned.notes);
  return std::move(planned.store);
}

}  // namespace mckpt::impl
