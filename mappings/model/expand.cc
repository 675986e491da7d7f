// Pairs the parameters of a model with its tensors (ModelMap), and lists the parameters that one rank of a
// grid holds.
//
// A rank's list is made in one walk over the tables: sites of other pipeline stages are left out, experts of
// other ranks are left out, layer and expert numbers become local in `name` and stay global in `global_name`:
//
//   pp = 2, 4 layers, ep = 2, 8 experts, a rank of stage 1 and ep 1
//     name           decoder.layers.0.mlp.experts.linear_fc1.weight0
//     global_name    decoder.layers.2.mlp.experts.linear_fc1.weight4
//
// The holding of a row is the same in every layer, and for experts with a tensor each the same for every
// expert, so it is computed once and shared; a model of 100,000 parameters has some dozens of holdings.
#include "mappings/model/expand.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/pipes.h"
#include "mappings/family.h"
#include "mappings/key_split.h"
#include "mappings/model/accounting.h"
#include "mappings/model/fit/fitting_sizes.h"
#include "mappings/model/fit/grid_fit.h"
#include "mappings/model/grouped_names.h"
#include "mappings/model/holdings.h"
#include "mappings/model/learned_sizes.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/source_parts.h"
#include "mappings/model/stacks.h"
#include "mappings/model/stages.h"
#include "mappings/model/walk.h"
#include "mappings/needs.h"
#include "mappings/row.h"
#include "mappings/rule.h"

namespace mckpt::impl {
namespace {

// The layers and experts of one rank.
struct Place {
  const Grid& grid;
  const Cell& cell;
  const StagePart& chunk;                // of the stage
  i64 first_expert = 0, end_expert = 0;  // on this rank
};

// A pattern with pipes, which may divide the layers of a hybrid model otherwise; "" for other models.
std::string pattern_that_fits(const ModelConfig& model, i64 stages) {
  const std::string own = hybrid_pattern(model);
  if (own.empty()) return "";
  const std::optional<LayerPattern> cut = with_segments(parse_pattern(own, Dialect::kGrouped), stages);
  return cut ? cat("; or a `hybrid_pattern` with | at the ends of stages, such as '", cut->text, "'") : "";
}

// As refuse_misfit(), for a run without a pattern.
void refuse_misfit_of_stages(const ModelConfig& model, const Grid& grid) {
  try {
    refuse_misfit(model, grid);
  } catch (Error& e) {
    if (std::ssize(model.text.layers) % grid.pp != 0)
      e.help(cat(e.help(), pattern_that_fits(model, grid.pp)));
    throw;
  }
}

// pre: refuse_misfit()
Place place_of_rank(const ModelConfig& model, const Grid& grid, const Cell& cell, const StagePart& chunk) {
  i64 e = model.moe.experts / grid.ep;
  return {grid, cell, chunk, cell.ep * e, (cell.ep + 1) * e};
}

// True if the rank's chunk of its pipeline stage has the site. Layers of the text tower are divided among the
// chunks; the vision tower is in the first.
bool on_stage(const Site& site, const ModelConfig& model, const Place& place) {
  const StagePart& chunk = place.chunk;
  if (site.section->scope == Scope::kLayers && site.section->tower == Tower::kText)
    return site.numbers['L'] >= chunk.first_layer && site.numbers['L'] < chunk.end_layer;
  return has_sections(chunk, site.section->stage, model.mtp.depths > 0, place.grid.pp > 1);
}

// A family that names no trained parts trains all of them.
bool is_trained(const Family& family, const Section& section) {
  return family.trained.empty() || std::ranges::count(family.trained, section.megatron) > 0;
}

// Only Megatron's own layers are units; one with attention and Mamba side by side is of neither class.
UnitClass unit_class_of(const Site& site) {
  if (!site.layer || !site.section->own_layers) return UnitClass::kNone;
  if (site.layer->mixer == Mixer::kAttentionAndMamba) return UnitClass::kNone;
  return site.layer->mixer == Mixer::kMamba ? UnitClass::kMambaLayer : UnitClass::kTransformerLayer;
}

// The one type of a parameter's sources; without sources, the model's type. Throws kUnaccounted if they have
// several.
DType common_type(const SourceTable& sources, const ModelParameter& p, const ModelConfig& model) {
  DType first = sources.size() > 0 && sources[0].header_known ? sources[0].dtype : DType::kF32;
  DType promised = model.dtype.value_or(DType::kF32), type = model.dtype.value_or(first);
  for (std::size_t s = 0; s < p.sources.size() && p.sources[s] >= 0; s++) {
    const SourceTensor& tensor = sources[p.sources[s]];
    DType mine = tensor.header_known ? tensor.dtype : promised;
    if (s == 0) type = mine;
    if (mine != type)
      throw Error(Code::kUnaccounted, "the tensors of one parameter are of different types")
          .tensor(p.global_name)
          .expected(cat(dtype_name(type), " as ", escaped(sources[p.sources[0]].name)))
          .found(cat(dtype_name(mine), " in ", escaped(tensor.name)));
  }
  return type;
}

// Counts and tables of numbers keep the type that the file has.
DType type_of_integers(const SourceTable& sources, const ModelParameter& p) {
  const i32 at = p.sources[0];
  return at >= 0 && sources[at].header_known ? sources[at].dtype : DType::kI64;
}

// The modules that the row names: with the site's numbers, or in every layer if the site is in none.
std::vector<std::string> gathered_with(const Site& site, const Row& row, const ModelConfig& model) {
  std::vector<std::string> modules;
  if (row.gathered_with.empty() || row.gathered_with == kOwnLayer) return modules;
  bool every = site.numbers['L'] < 0 && row.gathered_with.find("{L}") != std::string_view::npos;
  Numbers numbers = site.numbers;
  for (i64 layer = 0, end = every ? std::ssize(model.text.layers) : 1; layer < end; layer++) {
    if (every) numbers['L'] = layer;
    append_name(modules.emplace_back(), row.gathered_with, numbers);
  }
  return modules;
}

Site on_this_stage(Site site, const Place& place) {
  bool own = site.section->tower == Tower::kText && site.section->own_layers;
  if (site.section->scope == Scope::kLayers && own) site.numbers['L'] -= place.chunk.first_layer;
  return site;
}

// A list of every tensor that the family's tables name for the model.
SourceTable promised_sources(const Family& family, const ModelConfig& model,
                             const std::vector<Needs>& forms) {
  SourceTable sources;
  each_site(family, model, [&](const Site& site) {
    Needs form = forms[site.section - family.sections.data()];
    each_row(site, model, form, 0, model.moe.experts, [&](const Row& row, i64 expert) {
      each_source(site, row, model, [&](std::size_t s, i64, const Site& of) {
        sources.add_promised(source_name(of, row, row.sources[s].name, expert));
      });
    });
  });
  return sources;
}

}  // namespace

// The order matters: the number of MTP depths and the form of the experts are read from the tensors, and
// both are needed to account for every tensor.
ModelMap::ModelMap(ModelConfig model, const Family& family, SourceTable tensors, const MapOptions& options)
    : model_(std::move(model)), family_(&family), sources_(std::move(tensors)) {
  refuse_quantized(sources_);
  learn_sizes(*family_, sources_, model_);
  i64 depths = mtp_depths_in(*family_, model_, sources_);
  if (!model_.mtp.stated && depths > 0)
    notes_.push_back(cat("the config does not say how many MTP layers there are; the file has ", depths));
  if (model_.mtp.stated && model_.mtp.depths > 0 && depths == 0)
    notes_.push_back(cat("the config has MTP layers (", model_.mtp.depths, "), but the file has none"));
  if (!model_.mtp.stated || depths == 0) model_.mtp.depths = depths;
  forms_ = expert_forms(*family_, model_, sources_, options);
  Mismatches mismatches;
  parameter_count_ = account(*family_, model_, forms_, sources_, unread_, notes_, mismatches);
  mismatches.refuse_any();
}

ModelMap::ModelMap(ModelConfig model, const Family& family, SourceTable tensors, const MapOptions& options,
                   Promised)
    : model_(std::move(model)), family_(&family), sources_(std::move(tensors)) {
  forms_ = expert_forms(*family_, model_, sources_, options);
  sources_ = promised_sources(*family_, model_, forms_);
  Mismatches mismatches;
  parameter_count_ = account(*family_, model_, forms_, sources_, unread_, notes_, mismatches);
  mismatches.refuse_any();
}

ModelMap ModelMap::promised(ModelConfig model, const Family& family, const MapOptions& options) {
  return ModelMap(std::move(model), family, SourceTable(), options, Promised{});
}

Needs ModelMap::form_of(const Section& section) const { return forms_[&section - family_->sections.data()]; }

Holding ModelMap::holding(const ModelParameter& p, Part part, const RunSetup& setup) const {
  const TowerConfig& tower = sizes_of(model_, p.section->tower, p.sizes);
  i64 expert = is_fused_expert(*p.row, p.expert_number) ? p.expert_number : 0;
  try {
    return holding_of(model_, tower, *p.row, part, expert, setup.vocab_rows);
  } catch (const Error& e) {
    if (!is_misfit(e)) throw;
    throw Error(Code::kGridMisfit, "the model does not divide over this grid")
        .note(misfit_line(p.global_name, e))
        .help(fitting_parts(part.count, part.count));
  }
}

// Whether every parameter divides over so many cells. The vocabulary is padded for each number of them.
bool ModelMap::divides_over(i64 cells, bool experts) const {
  const i64 rows = round_up(model_.vocab, cells, "the padded vocabulary");
  Holdings holdings(model_, rows);
  bool fits = true;
  each_site(*family_, model_, [&](const Site& site) {
    each_row(site, model_, form_of(*site.section), 0, 1, [&](const Row& row, i64 expert) {
      if ((expert >= 0) == experts) fits = fits && holdings.of(site, row, {0, cells}, expert);
    });
  });
  return fits;
}

std::string ModelMap::fitting_parts(i64 tp, i64 etp) const {
  std::string out;
  for (auto [setting, size, experts] : {std::tuple{"tp", tp, false}, {"etp", etp, true}})
    if (!divides_over(size, experts)) {
      const bool of_experts = experts;
      const std::string sizes = sizes_that_fit(setting, [&](i64 n) { return divides_over(n, of_experts); });
      out += cat(out.empty() ? "" : "; ", sizes);
    }
  return out.empty() ? "choose other parallel sizes" : out;
}

std::vector<ModelParameter> ModelMap::parameters(const Grid& grid, const Cell& cell,
                                                 const RunSetup& setup) const {
  // A pattern divides its layers otherwise, and is refused for reasons of its own.
  if (setup.groups)
    refuse_other_pattern(*setup.groups, model_);
  else
    refuse_misfit_of_stages(model_, grid);
  const PipelineSplit split = pipeline_split(std::ssize(model_.text.layers), grid.pp, {}, setup.groups);
  if (split.chunks() > 1)
    throw Error(Code::kBadGrid, "the pattern gives each pipeline stage several chunks of layers")
        .expected(cat("a pattern of ", grid.pp, " segments"))
        .found(cat(split.chunks() * grid.pp, " segments"));
  return parameters(grid, cell, setup, split.part(cell.pp, 0));
}

std::vector<ModelParameter> ModelMap::parameters(const Grid& grid, const Cell& cell, const RunSetup& setup,
                                                 const StagePart& chunk) const {
  refuse_stages(model_, grid);
  Grid layers_apart = grid;
  layers_apart.pp = 1;  // the chunks divide the layers
  refuse_misfit(model_, layers_apart);
  Place place = place_of_rank(model_, grid, cell, chunk);
  Holdings holdings(model_, setup.vocab_rows);
  std::vector<ModelParameter> out;
  // A run with a misfit on any stage fails, so what other stages have is checked as well.
  auto check = [&](const Site& site) {
    each_row(site, model_, form_of(*site.section), 0, 1, [&](const Row& row, i64 expert) {
      holdings.of(site, row, expert < 0 ? Part{cell.tp, grid.tp} : Part{cell.etp, grid.etp}, expert);
    });
  };
  each_site(*family_, model_, [&](const Site& site) {
    if (!on_stage(site, model_, place)) return check(site);
    Site local = on_this_stage(site, place);
    auto add = [&](const Row& row, i64 expert) {
      ModelParameter p;
      p.row = &row;
      p.section = site.section;
      p.sizes = site.sizes;
      p.global_name = megatron_name(site, row, expert);
      p.name = megatron_name(local, row, expert - (expert < 0 ? 0 : place.first_expert));
      p.sources.clear();
      each_source(site, row, model_, [&](std::size_t s, i64, const Site& of) {
        p.sources.push_back(sources_.find(present_name(of, row, s, expert, sources_)));
      });
      p.part = expert < 0 ? Part{cell.tp, grid.tp} : Part{cell.etp, grid.etp};
      p.expert_number = expert;
      p.holding = holdings.of(site, row, p.part, expert);
      p.source_dtype = row.counter ? type_of_integers(sources_, p) : common_type(sources_, p, model_);
      p.typed_by_run = !row.counter && (setup.params_dtype.has_value() || row.fp32);
      p.dtype = row.fp32 ? DType::kF32 : p.source_dtype;
      if (setup.params_dtype && !row.fp32 && !row.counter)
        p.dtype = row.buffer && !row.typed_as_model ? DType::kF32 : *setup.params_dtype;
      p.unit = site.unit;
      p.unit_class = unit_class_of(site);
      p.gathered_with = gathered_with(local, row, model_);
      p.trainable = is_trained(*family_, *site.section);
      bool split = row.split != KeySplit::kSwiglu || site.tower->swiglu;
      if (split && !setup.whole) p.split = row.split;
      if (p.holding) out.push_back(std::move(p));
    };
    each_row(site, model_, form_of(*site.section), place.first_expert, place.end_expert, add);
  });
  holdings.refuse_misfits([&] { return fitting_parts(grid.tp, grid.etp); });
  if (setup.groups) {
    refuse_other_pattern(*setup.groups, model_);
    group_layers(*setup.groups, chunk, out);
  }
  number_stacks(model_, setup.groups, out);
  respell(setup.spelling, out);
  return out;
}

std::vector<bool> ModelMap::dropped() const {
  std::vector<bool> dropped(sources_.size());
  for (const UnreadTensor& u : unread_) dropped[u.tensor] = dropped[u.tensor] || u.of < 0;
  return dropped;
}

std::vector<Shape> ModelMap::source_shapes() const {
  std::vector<Shape> shapes(static_cast<std::size_t>(sources_.size()));
  each_site(*family_, model_, [&](const Site& site) {
    each_row(site, model_, form_of(*site.section), 0, model_.moe.experts, [&](const Row& row, i64 expert) {
      each_source(site, row, model_, [&](std::size_t s, i64 part, const Site& of) {
        if (i32 t = sources_.find(present_name(of, row, s, expert, sources_)); t >= 0)
          shapes[t] = shape_of_part(row.sources[s], model_, *of.tower, part);
      });
    });
  });
  for (const UnreadTensor& u : unread_)
    if (u.of >= 0) shapes[u.tensor] = shapes[u.of];
  return shapes;
}

// Megatron-Bridge: the family's divisor, or the largest power of two, 128 at most, that divides the
// vocabulary.
i64 vocab_divisor(const ModelConfig& model, const Family& family) {
  if (family.vocab_divisor > 0) return family.vocab_divisor;
  i64 divisor = 128;
  while (model.vocab % divisor != 0) divisor /= 2;
  return divisor;
}

std::string padding_note(const ModelConfig& model, const RunSetup& run, i64 cells) {
  return run.vocab_rows <= model.vocab ? "" : added_rows_note(model.vocab, run.vocab_rows, cells);
}

std::string added_rows_note(i64 before, i64 after, i64 cells) {
  return cat("vocab   ", with_commas(before), " rows become ", with_commas(after), ": ", after - before,
             after - before == 1 ? " row of zeros is" : " rows of zeros are", " added, for tp ", cells);
}

bool gives_vocab_rows(const ModelConfig& model, i64 divisor, i64 rows, i64 cells) {
  return divisor > 0 &&
         round_up(model.vocab, checked_mul(divisor, cells, "the padding"), "the padded vocabulary") == rows;
}

i64 vocab_divisor_of(const ModelConfig& model, const Family& family, i64 rows, i64 cells) {
  if (i64 own = vocab_divisor(model, family); gives_vocab_rows(model, own, rows, cells)) return own;
  for (i64 divisor = 128; divisor > 0; divisor /= 2)
    if (gives_vocab_rows(model, divisor, rows, cells)) return divisor;
  return rows / cells;
}

std::string vocab_run_note(const ModelConfig& model, const Family& family, const RunSetup& run, i64 cells) {
  constexpr i64 kDefault = 128;
  if (run.vocab_rows <= 0 || model.vocab <= 0) return "";
  i64 usual = round_up(model.vocab, checked_mul(kDefault, cells, "the padding"), "the padded vocabulary");
  if (usual == run.vocab_rows) return "";
  return cat("vocab   for these ", with_commas(run.vocab_rows),
             " rows Megatron takes `make_vocab_size_divisible_by` ",
             vocab_divisor_of(model, family, run.vocab_rows, cells), "; its default, ", kDefault, ", makes ",
             with_commas(usual));
}

// Megatron pads the vocabulary so that every cell has equally many rows.
i64 vocab_rows(const ModelConfig& model, const Family& family, i64 cells, VocabChoice choice) {
  if (choice.kind == VocabChoice::kRows) {
    if (choice.rows < model.vocab || choice.rows % cells != 0)
      throw Error(Code::kVocabulary, "the vocabulary cannot have this number of rows")
          .expected(cat("at least ", model.vocab, ", and a multiple of ", cells))
          .found(choice.rows);
    return choice.rows;
  }
  if (choice.kind == VocabChoice::kDivisor)
    return round_up(model.vocab, checked_mul(choice.rows, cells, "the padding"), "the padded vocabulary");
  if (model.vocab % cells == 0) return model.vocab;
  if (choice.kind == VocabChoice::kKeep)
    throw Error(Code::kVocabulary, "the vocabulary does not divide by the tensor-parallel size")
        .expected(cat("a multiple of ", cells))
        .found(model.vocab)
        .help(
            "`vocab_size` auto pads the vocabulary as Megatron-Bridge does, `vocab_size` N pads it to N rows");
  i64 step = checked_mul(vocab_divisor(model, family), cells, "the padding");
  return round_up(model.vocab, step, "the padded vocabulary");
}

i64 vocab_rows_from(i64 stored, const ModelConfig& model, const Family& family, i64 cells,
                    VocabChoice choice) {
  const bool given = choice.kind == VocabChoice::kRows || choice.kind == VocabChoice::kDivisor;
  if (!given && stored % cells == 0) return stored;
  if (choice.kind != VocabChoice::kKeep) return vocab_rows(model, family, cells, choice);
  throw Error(Code::kVocabulary,
              "the vocabulary of the checkpoint does not divide by the tensor-parallel size")
      .expected(cat("a multiple of ", cells, " rows"))
      .found(stored)
      .help("`vocab_size` auto changes the padding as Megatron-Bridge would pad, `vocab_size` N to N rows");
}

}  // namespace mckpt::impl
