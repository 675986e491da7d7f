// Family: all tables of one kind of model. Sections are in the order in which the modules of the Megatron
// model register their parameters, which is the order in which Megatron-FSDP packs them:
//
//   vision tower   embedding   layer 0, 1, ...   final norm   MTP depth 0, 1, ...   output layer
//
// A section that repeats is written once; its prefixes contain the numbers.
#pragma once

#include <span>
#include <string_view>

#include "core/base/int.h"
#include "mappings/config_steps.h"
#include "mappings/row.h"

namespace mckpt::impl {

// How often a section is written in a model, and with which numbers in its names.
enum class Scope : u8 {
  kOnce,
  kLayers,     // every layer of the tower
  kMergers,    // every deepstack merger
  kMtpHead,    // every MTP depth: the part before its layers,
  kMtpLayers,  //   the layers,
  kMtpTail,    //   the part after them; sections of these three scopes are walked depth by depth
};

// The pipeline stages that hold a section (mappings/model/stages.h). Layers belong to one stage each.
enum class Stage : u8 {
  kFirst,        // the first: the embedding and towers
  kFirstAndMtp,  // the first, and MTP's: the embedding of a model that may have MTP
  kFinalNorm,
  kMtp,
  kOutput,
  kTiedOutput,  // the stage of the output layer, where it is not the only one: the copy of a tied embedding
};

// The model of which the section is a part; it gives the TowerConfig for shapes and conditions.
enum class Tower : u8 { kText, kVision, kAudio };

// The rows of a layer by its kind: first the rows of its mixer, then the rows of its feed-forward part.
struct LayerRows {
  std::span<const Row> attention{}, sparse_attention{}, latent_attention{}, indexed_attention{}, gdn{},
      mamba{}, attention_and_mamba{};
  std::span<const Row> dense{}, moe{};
};

// A part of a model: prefixes for both sides, and the rows that follow them. A section has either `rows` or
// `layer`.
struct Section {
  Scope scope = Scope::kOnce;
  std::string_view megatron, hugging_face;  // prefixes of the names of the rows
  std::span<const Row> rows{};              // of scopes without layers
  const LayerRows* layer = nullptr;         // of scopes with layers
  Stage stage = Stage::kFirst;
  Tower tower = Tower::kText;
  // False for layers that are not Megatron's own: layers of a tower that is Hugging Face's module, and
  // parameters of a layer that are registered outside of the decoder. They are not FSDP units, and keep the
  // numbers of the whole model.
  bool own_layers = true;
  std::string_view also{};  // another spelling of the Hugging Face prefix, in older or newer files
};

// Facts of a family for people who want to try it: models on the hub that have it, the quantised forms in
// which they are released, and the grids on which real Megatron ranks were compared with its table
// (test_data/golden). `mckpt mappings list` and README show these facts;
// tests/program/general/family_facts.py keeps them true and complete, and writes the grids.
struct FamilyFacts {
  std::string_view examples{};   // "Qwen/Qwen3-8B, Qwen/Qwen3-32B"
  std::string_view quantised{};  // "fp8, gptq"; "" if no release is known
  std::string_view tested{};     // "tp2 ep4, pp3": sizes that are 1 are left out; "1" for one rank alone
};

// A Hugging Face tensor that no parameter reads, and why nothing is lost.
struct Unread {
  std::string_view name;     // numbers: {L}, and {N} for the layers of MTP depths
  std::string_view copy_of;  // the tensor it is a copy of; "" if it is not a copy
  std::string_view reason;
  Needs needs = Needs::kAlways;
  // The name stands in a map file. A row that reads the tensor is told, one that always reads it is refused.
  bool of_map = false;
};

// A number that no entry of config.json has, only the code of the model: it is a dimension of a tensor.
// Without `number` it is how many layers the vision tower has, and the tensor has {L}.
struct LearnedSize {
  NumberOf number = nullptr;
  std::string_view tensor;
  int dimension = 0;
};

// The views of a Family point into tables that live as long as the program, or into the OwnFamily or
// PlainFamily that made it.
struct Family {
  std::string_view name;
  std::span<const std::string_view> model_types;  // of config.json
  std::string_view architecture;                  // as config.json writes it
  std::string_view summary;
  std::span<const Section> sections;
  std::span<const Unread> unread{};
  std::span<const Needs> expert_forms{};  // kExpertsApart and so on, the usual one first
  // The conditions that models of the family can meet, beside tied or untied and the forms of experts: tables
  // are shared, and rows with other conditions belong to other families.
  std::span<const Needs> conditions{};
  // The sections, by their Megatron prefixes, that Megatron-Bridge trains; all others are frozen. Empty: all
  // are trained.
  std::span<const std::string_view> trained{};
  i64 vocab_divisor = 0;  // a padded vocabulary is a multiple of this many rows a cell; 0: of its own factors
  std::span<const LearnedSize> learned{};  // where ModelConfig::vision says that its sizes are not stated
  std::span<const ConfigStep>
      config{};  // how config.json spells its numbers; empty: lib/hf reads the usual names
  FamilyFacts facts{};
};

}  // namespace mckpt::impl
