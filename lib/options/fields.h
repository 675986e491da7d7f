// The fields of the structs in lib/options/mckpt, in the order in which help lists them. Fields of nested
// structs have no prefix: `tp`, not grid.tp. A new option is a member of a struct, one v() in the function
// that shows its fields, and its use in convert/asked/plan.cc.
#pragma once

#include "mckpt/check_options.h"
#include "mckpt/load_options.h"
#include "mckpt/plain_plans.h"
#include "mckpt/plans.h"
#include "mckpt/run_options.h"
#include "options/field.h"

namespace mckpt::impl {

// Every struct shows its fields by reference: the visitor may set them, and they must live as long as it.
void fields(mckpt::OpenOptions& o, FieldVisitor& v);
// The fields of OpenOptions without `base`, for what reads no adapters.
void file_fields(mckpt::OpenOptions& o, FieldVisitor& v);
void fields(ModelOptions& o, FieldVisitor& v);
void fields(SourceOptions& o, FieldVisitor& v);
void fields(mckpt::RunOptions& o, FieldVisitor& v);
void fields(mckpt::Fsdp& o, FieldVisitor& v);
void fields(mckpt::Values& o, FieldVisitor& v);

// How the sizes of a grid are shown.
struct GridFields {
  std::string_view dp = "the smallest that works";  // without `dp`
  bool stages = false;                              // `pp` is common
  bool instances = true;                            // hsdp is read
};
void fields(mckpt::Grid& o, FieldVisitor& v, const GridFields& how = {});

// Parts of structs that other structs have, too.
void assets_field(std::optional<std::string>& assets, FieldVisitor& v, std::string_view help = "");
void source_rank_fields(std::optional<std::int64_t>& tp, std::optional<std::int64_t>& etp, FieldVisitor& v,
                        FieldDoors doors = FieldDoors::kBoth);
void accept_field(std::vector<std::string>& accept, FieldVisitor& v);
void model_dict_field(std::optional<std::string>& dict, FieldVisitor& v);
void expert_layout_and_map(ModelOptions& o, FieldVisitor& v);
void spelling_field(std::vector<std::string>& words, FieldVisitor& v, bool rank_files = false);
void hybrid_pattern_field(std::string& pattern, FieldVisitor& v);
void pipeline_fields(std::int64_t& chunks, std::optional<std::int64_t>& first,
                     std::optional<std::int64_t>& last, FieldVisitor& v);
void vocab_fields(std::string& rows, FieldVisitor& v);
void params_dtype_field(std::string& type, FieldVisitor& v);
void dtype_rule_field(TextPairs& rules, FieldVisitor& v);

// Conversions.
void fields(ToFsdp& o, FieldVisitor& v);
void fields(ToMcore& o, FieldVisitor& v);
void fields(ToHf& o, FieldVisitor& v);
void fields(Reshard& o, FieldVisitor& v);
void fields(ToRanks& o, FieldVisitor& v);
void fields(Relayer& o, FieldVisitor& v);
void fields(ToSafetensors& o, FieldVisitor& v);
void fields(ToDcp& o, FieldVisitor& v);
void fields(Dequantize& o, FieldVisitor& v);
void fields(Quantize& o, FieldVisitor& v);
void fields(ToHdf5& o, FieldVisitor& v);
void fields(FromHdf5& o, FieldVisitor& v);
void fields(PtToSafetensors& o, FieldVisitor& v);
void fields(ToPt& o, FieldVisitor& v);

// Checks, pictures, and loading into memory.
void fields(mckpt::CardFiles& o, FieldVisitor& v);
void fields(mckpt::VerifyOptions& o, FieldVisitor& v);
void fields(mckpt::CompareOptions& o, FieldVisitor& v);
void fields(mckpt::DiffOptions& o, FieldVisitor& v);
void fields(mckpt::PlotOptions& o, FieldVisitor& v);
void fields(TensorsToLoad& o, FieldVisitor& v);
void fields(mckpt::RankToLoad& o, FieldVisitor& v);

}  // namespace mckpt::impl
