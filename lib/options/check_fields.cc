// Checks, pictures, and loading into memory.
#include "options/fields.h"

namespace mckpt::impl {
namespace {

void threads_field(int& threads, FieldVisitor& v, bool common = true) {
  v({.name = "threads", .common = common, .help = "threads that read; by default one for each processor"},
    threads);
}

// The ranks that wrote the first of two sides.
template <typename What>
void path_ranks(What& o, FieldVisitor& v, std::string_view tp, std::string_view etp) {
  v({.name = "path_tp", .value = "N", .help = tp}, o.path_tp);
  v({.name = "path_etp", .value = "N", .help = etp}, o.path_etp);
}

void choice_of_names(std::string& names, bool& regex, FieldVisitor& v) {
  constexpr FieldDoors kSettings = FieldDoors::kSettings;
  v({.name = "names", .doors = kSettings, .help = "a glob: only tensors whose whole name matches"}, names);
  v({.name = "regex",
     .doors = kSettings,
     .help = "`names` is a regular expression, found anywhere in the name"},
    regex);
}

// A rank's dump on one side.
void live_rank_fields(mckpt::LiveRank& o, FieldVisitor& v) {
  v.heading("A live rank");
  v({.name = "live",
     .value = "HOW",
     .flags = "as",
     .words = "megatron fsdp",
     .only = true,
     .common = true,
     .help =
         "one side is a dump of a live rank, the other its model: what a rank has in a run of megatron or fsdp"},
    o.live);
  v.only_with("live");
  v({.name = "rank",
     .help =
         "the rank whose dump it is, by default the one that the dump says; tp varies fastest, then cp, dp, pp"},
    o.rank);
  fields(o.grid, v, {.dp = "from the number of ranks that the dump says"});
  fields(o.fsdp, v);
  spelling_field(o.spelling, v);
  hybrid_pattern_field(o.hybrid_pattern, v);
  fields(o.values, v);
}

}  // namespace

void fields(mckpt::CardFiles& o, FieldVisitor& v) {
  v({.name = "report",
     .value = "FILE",
     .common = true,
     .help =
         "write a card of PATH: its files and tensors with their SHA-256, the checks, and what was not read; as JSON (.json), Markdown (.md) or a list for sha256sum (.sha256); may be repeated"},
    o.report);
  v({.name = "command", .doors = FieldDoors::kSettings, .help = "for the card: what was asked for"},
    o.command);
}

void fields(mckpt::VerifyOptions& o, FieldVisitor& v) {
  threads_field(o.threads, v);
  fields(o.cards, v);
  v({.name = "card",
     .value = "FILE",
     .common = true,
     .help =
         "check PATH by a card (.json): files, sizes and SHA-256, and which bytes of which tensor changed; nothing else is checked"},
    o.card);
  v({.name = "strict",
     .common = true,
     .help = "warnings are problems: the checkpoint is sound only if nothing at all was found"},
    o.strict);
  assets_field(
      o.assets, v,
      "folder of the original model, or of its config.json: the tensors must have the names and shapes of the model; with `against` gives names, packing and data types");
  fields(o.files, v);
  model_dict_field(o.model_dict, v);
  accept_field(o.accept, v);
}

void fields(mckpt::CompareOptions& o, FieldVisitor& v) {
  InSettingsAlone unflagged(v);
  // The program has these as options of every verification.
  threads_field(o.threads, unflagged);
  fields(o.cards, unflagged);
  assets_field(o.opening.assets, unflagged);
  fields(o.opening.model.files, unflagged);
  model_dict_field(o.model_dict, unflagged);
  accept_field(o.opening.accept, unflagged);
  source_rank_fields(o.opening.source_tp, o.opening.source_etp, v);
  expert_layout_and_map(o.opening.model, v);
  path_ranks(o, v,
             "tensor-parallel ranks that wrote PATH, if SRC is a checkpoint too (`source_tp` describes SRC)",
             "expert-tensor-parallel ranks that wrote PATH, if SRC is a checkpoint too");
  params_dtype_field(o.params_dtype, v);
  v({.name = "dtype",
     .value = "TYPE",
     .help =
         "the type that the conversion was asked for: a weight in another type is a difference; any (the default: types are taken as they are found), keep (those of SRC), bf16, fp16 or fp32"},
    o.dtype);
  dtype_rule_field(o.dtype_rule, v);
  v({.name = "weights_only",
     .help = "PATH was made without the states of the optimizer: those of SRC are named as not compared"},
    o.weights_only);
}

void fields(mckpt::DiffOptions& o, FieldVisitor& v) {
  v({.name = "within",
     .doors = FieldDoors::kSettings,
     .help =
         "tolerances: rtol:1e-3, or atol:1e-6,ulp:4, of all tensors; *.norm.weight=ulp:4 of some, of which the first that matches decides"},
    o.within);
  choice_of_names(o.names, o.regex, v);
  v({.name = "html",
     .value = "FILE",
     .common = true,
     .help = "also draw the change by layer and module as one HTML page; an earlier one is replaced"},
    o.html);
  threads_field(o.threads, v, false);
  v.heading("Reading checkpoints");
  fields(o.opening.model.files, v);
  model_dict_field(o.model_dict, v);
  assets_field(o.opening.assets, v);
  source_rank_fields(o.opening.source_tp, o.opening.source_etp, v);
  accept_field(o.opening.accept, v);
  expert_layout_and_map(o.opening.model, v);
  path_ranks(o, v, "tensor-parallel ranks that wrote A, if it does not say so (`source_tp` describes B)",
             "expert-tensor-parallel ranks that wrote A, if it does not say so");
  live_rank_fields(o.of_rank, v);
}

void fields(mckpt::PlotOptions& o, FieldVisitor& v) {
  choice_of_names(o.names, o.regex, v);
  v({.name = "stats",
     .common = true,
     .help = "also read all values, for their statistics and histograms by layer (HTML)"},
    o.stats);
  threads_field(o.threads, v, false);
  fields(o.files, v);
}

void fields(TensorsToLoad& o, FieldVisitor& v) {
  v({.name = "device", .help = "cpu, cuda (the first one that this process may use), or cuda:N"},
    o.how.device);
  v({.name = "threads",
     .help =
         "threads that read; 0: one for each processor, for a GPU eight, and more while it waits for them"},
    o.how.threads);
  v({.name = "names", .help = "a glob: only tensors whose whole name matches"}, o.names);
  v({.name = "dtype",
     .words = "keep bf16 fp16 fp32",
     .help = "data type on the device: keep, bf16, fp16 or fp32"},
    o.dtype);
  fields(o.files, v);
}

void fields(mckpt::RankToLoad& o, FieldVisitor& v) {
  v({.name = "device", .help = "cpu, cuda (the first one that this process may use), or cuda:N"},
    o.how.device);
  v({.name = "threads",
     .help =
         "threads that read; 0: one for each processor, for a GPU eight, and more while it waits for them"},
    o.how.threads);
  v({.name = "rank", .help = "the rank whose tensors are loaded; tp varies fastest, then cp, dp, pp"},
    o.rank);
  fields(o.model, v);
  fields(o.grid, v);
  fields(o.values, v);
  spelling_field(o.spelling, v);
  hybrid_pattern_field(o.hybrid_pattern, v);
}

}  // namespace mckpt::impl
