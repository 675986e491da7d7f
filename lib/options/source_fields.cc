// How checkpoints and models are opened.
#include "options/fields.h"

namespace mckpt::impl {

void file_fields(mckpt::OpenOptions& o, FieldVisitor& v) {
  v({.name = "follow_links",
     .doors = FieldDoors::kEveryCommand,
     .help = "follow links that lead out of a checkpoint's folder"},
    o.follow_links);
  v({.name = "model_files",
     .value = "WHICH",
     .words = "equal single shards",
     .only = true,
     .doors = FieldDoors::kEveryCommand,
     .help =
         "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards"},
    o.model_files);
}

void fields(mckpt::OpenOptions& o, FieldVisitor& v) {
  file_fields(o, v);
  v({.name = "base",
     .value = "DIR",
     .help =
         "the Hugging Face model that an adapter changes: a path with a PEFT adapter (LoRA) is then that model with the adapter merged"},
    o.base);
}

void expert_layout_and_map(ModelOptions& o, FieldVisitor& v) {
  v({.name = "expert_layout",
     .value = "HOW",
     .words = "auto apart fused hub",
     .only = true,
     .help = "how experts are stored: auto, apart, fused or hub (transposed)"},
    o.expert_layout);
  v({.name = "map_file",
     .value = "FILE",
     .help = "JSON file with rows that override the built-in table, as `mckpt mappings draft` writes them"},
    o.map_file);
}

void fields(ModelOptions& o, FieldVisitor& v) {
  expert_layout_and_map(o, v);
  fields(o.files, v);
}

void assets_field(std::optional<std::string>& assets, FieldVisitor& v, std::string_view help) {
  if (help.empty())
    help =
        "folder of the original model, or of its config.json: gives names, packing, data types and tokenizer";
  v({.name = "assets", .value = "HF_DIR", .common = true, .help = help}, assets);
}

void source_rank_fields(std::optional<std::int64_t>& tp, std::optional<std::int64_t>& etp, FieldVisitor& v,
                        FieldDoors doors) {
  v({.name = "source_tp",
     .value = "N",
     .doors = doors,
     .help = "number of tensor-parallel ranks that wrote the checkpoint, if it does not say so itself"},
    tp);
  v({.name = "source_etp",
     .value = "N",
     .doors = doors,
     .help =
         "number of expert-tensor-parallel ranks that wrote the checkpoint, if it does not say so itself"},
    etp);
}

void accept_field(std::vector<std::string>& accept, FieldVisitor& v) {
  v({.name = "accept",
     .value = "CODE",
     .words = "MC1311 MC1312 MC1313 MC1315 MC1317 MC2015 MC2017",
     .help =
         "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that were not trained and are in no file, MC2015 args of a run that contradict config.json, MC2017 scales and codes that are NaN, infinite or negative"},
    accept);
}

void model_dict_field(std::optional<std::string>& dict, FieldVisitor& v) {
  v({.name = "model_dict",
     .value = "NAME",
     .help =
         "of a save with several dicts that may be the model: the one that is, such as actor or state.policy"},
    dict);
}

// The ranks that wrote the checkpoint are asked for in front of damage, as it is read.
void fields(SourceOptions& o, FieldVisitor& v) {
  assets_field(o.assets, v);
  source_rank_fields(o.source_tp, o.source_etp, v);
  accept_field(o.accept, v);
  fields(o.model, v);
}

}  // namespace mckpt::impl
