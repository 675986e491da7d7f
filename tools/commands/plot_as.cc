// Makes the options of the conversion that would write the checkpoint, and asks for its plan as a store.
#include "tools/commands/plot_as.h"

#include <span>

#include "convert/dialects/fsdp/run.h"
#include "convert/open/source_model.h"
#include "convert/plan/targets/fsdp.h"
#include "convert/plan/targets/planned_store.h"
#include "convert/plan/targets/torch_dist.h"
#include "convert/rank/fused_parameter.h"
#include "convert/rank/rank_share.h"
#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/spellings.h"
#include "hf/model.h"
#include "io/choice/tensor_choice.h"
#include "io/store/store.h"
#include "mappings/fsdp/memory_table.h"
#include "mappings/fsdp/model_packing.h"
#include "mappings/model/expand.h"
#include "options/fields.h"
#include "page/data/fused_picture.h"
#include "page/data/memory_picture.h"
#include "page/svg/memory_svg.h"
#include "tools/options/command_line.h"
#include "tools/options/field_flags.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

// The options that only Megatron-FSDP has.
constexpr const char* kOfFsdp[] = {"--engine",     "--strategy", "--fsdp-unit",     "--fsdp-units-for",
                                   "--fp8-recipe", "--freeze",   "--bucket-size",   "--hsdp",
                                   "--hsdp-outer", "--spelling", "--hybrid-pattern"};
constexpr const char* kOfTorchDist[] = {"--vpp", "--first-stage-layers", "--last-stage-layers"};

MemoryPicture::Row picture_row(const MemoryRow& row) {
  const RankMemory& m = row.memory;
  return {.name = cat(engine_name(row.engine), "  ", strategy_name(row.strategy)),
          .refused = row.refused,
          .bytes = {m.weights, m.main_weights, m.gradients, m.moments, m.buffers, m.gathered, m.unreduced}};
}

}  // namespace

void PlotAs::declare(CommandLine& line) {
  line.heading("A plan");
  line.option(
          "--as WHAT", as_,
          "draw what a training run would save of a Hugging Face model: fsdp (Megatron-FSDP) or torch_dist; nothing is written but the picture")
      .choices({"fsdp", "torch_dist"})
      .common();
  line.only_with("--as");
  line.flag(
      "--memory", memory_,
      "with --as fsdp: draw the memory of a rank, by engine and strategy, as `mckpt layout --memory` lists it; .svg");
  line.flag(
      "--parts", parts_,
      "with --as fsdp, and a GLOB of one fused parameter: draw its parts (W and V; q, k, v, z, b and a) beside the items of the ranks, and into which part they go if parts are cut by a rank's own number of items; .svg or .txt");
  run_.declare(line);
  line.heading("Pipeline of torch_dist");
  FieldFlags flags(line);
  pipeline_fields(pipeline_.chunks, pipeline_.first_layers, pipeline_.last_layers, flags);
}

void PlotAs::refuse_options_of_another(const CommandLine& line) const {
  if (!chosen()) return;
  const auto refuse = [&](std::span<const char* const> names, const char* what) {
    for (const char* name : names)
      if (line.given(name)) throw Error(Code::kUsage, cat(name, " has a meaning only with --as ", what));
  };
  if (as_ == "fsdp")
    refuse(kOfTorchDist, "torch_dist");
  else
    refuse(kOfFsdp, "fsdp");
}

FusedPicture PlotAs::parts_picture(const CommandLine& line, const std::string& path,
                                   const TensorChoice& choice) const {
  if (as_ != "fsdp") throw Error(Code::kUsage, "--parts has a meaning only with --as fsdp");
  if (choice.all()) throw Error(Code::kUsage, "--parts takes a GLOB of one parameter");
  const ShareRun run = run_.run();
  FusedParameter fused = fused_parameter(path, run, choice);
  if (std::string text = run_.grid.note(); !text.empty()) note(line.flags(), text);
  print_notes(line.flags(), fused.notes);
  FusedPicture picture{.title = std::move(fused.name)};
  picture.about = cat(to_string(fused.shape), ", ", counted(fused.shape.items(), "item"),
                      fused.expert      ? " on the ranks of its expert mesh"
                      : run.grid.tp > 1 ? " of tensor-parallel rank 0"
                                        : "",
                      "  |  ", to_string(run.grid), "  |  ", engine_name(run.fsdp.engine), " ",
                      strategy_name(run.fsdp.strategy));
  picture.cut = std::move(fused.cut);
  return picture;
}

HfToFsdpOptions PlotAs::of_fsdp(const std::string& folder, int threads) const {
  HfToFsdpOptions options;
  // g++ 13 destroys members of a braced list twice if a later one throws.
  options.source = folder, options.model = run_.model.options();
  options.grid = run_.grid.grid(), options.fsdp = run_.fsdp.setup(options.grid);
  options.frozen = run_.fsdp.frozen(), options.spelling = run_.spelling.spelling().value_or(Spelling{});
  options.values = run_.values.options(), options.hybrid_pattern = run_.pattern.text(),
  options.threads = threads;
  return options;
}

std::string PlotAs::memory_drawing(const CommandLine& line, const std::string& path) const {
  if (as_ != "fsdp") throw Error(Code::kUsage, "--memory has a meaning only with --as fsdp");
  HfToFsdpOptions options = of_fsdp(folder_with_config(path, run_.model.options().files), 1);
  options.model.shapes_only = true;
  const HfModel model = open_hf_model(options.source, options.model);
  print_notes(line.flags(), notes_of(model));
  const std::optional<LayerPattern> pattern = run_.pattern.pattern(options.grid.pp);
  const FsdpRun run = fsdp_run(options, *model.map, pattern ? &*pattern : nullptr);
  std::vector<ModelParameter> parameters = model.map->parameters(run.grid, Cell{}, run.run);
  options.frozen.apply(parameters);
  MemoryTypes types;
  if (options.values.dtype) types.main = options.values.dtype;
  const MemoryTable table = memory_table(parameters, run.grid, run.fsdp, types);
  const OutsideUnits outside = outside_units(parameters, packing_of(parameters, run.grid, run.fsdp));
  if (std::string text = run_.grid.note(); !text.empty()) note(line.flags(), text);
  MemoryPicture picture{.title = path};
  picture.about = cat("memory of the rank that takes most  |  ", to_string(run.grid), "  |  main weights ",
                      dtype_name(*types.main), ", gradients ", dtype_name(*types.gradients), ", moments ",
                      dtype_name(types.moments));
  for (const MemoryRow& row : table.rows) picture.rows.push_back(picture_row(row));
  if (outside.much())
    picture.warning = cat(with_commas(outside.parameters), " of ",
                          counted(outside.of_parameters, "parameter"), " of layers are outside FSDP units");
  return memory_svg(picture);
}

std::unique_ptr<Store> PlotAs::plan(const CommandLine& line, const std::string& path, int threads) const {
  const std::string folder = folder_with_config(path, run_.model.options().files);
  PlannedCheckpoint planned;
  if (as_ == "fsdp") {
    planned = planned_fsdp(of_fsdp(folder, threads));
  } else {
    ToMcoreOptions options;
    options.source = folder, options.grid = run_.grid.grid(), options.values = run_.values.options(),
    options.threads = threads;
    options.pipeline = pipeline_;
    options.checkpoint.model = run_.model.options();
    planned = planned_torch_dist(options);
  }
  if (std::string text = run_.grid.note(); !text.empty()) note(line.flags(), text);
  print_notes(line.flags(), planned.notes);
  return std::move(planned.store);
}

}  // namespace mckpt::impl
