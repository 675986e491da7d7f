// A parameter that has no key of its own is found by its first source: a second copy of an embedding.
#include "convert/dialects/ranks/table.h"

#include <charconv>

#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/mtp_names.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kModel = "model";

// Where the modules of experts are apart: "mlp.experts.local_experts.3.linear_fc1.weight" for
// "mlp.experts.linear_fc1.weight3".
std::string name_of_single_expert(const std::string& name) {
  constexpr std::string_view kExperts = ".experts.";
  const std::size_t at = name.rfind(kExperts), digits = name.find_last_not_of("0123456789") + 1;
  if (at == name.npos || digits == name.size()) return "";
  const std::size_t module = at + kExperts.size();
  return cat(std::string_view(name).substr(0, module), "local_experts.",
             std::string_view(name).substr(digits), ".",
             std::string_view(name).substr(module, digits - module));
}

}  // namespace

std::string model_section(i64 chunk, i64 chunks) {
  return chunks > 1 ? cat(kModel, chunk) : std::string(kModel);
}

std::optional<std::size_t> chunk_of_section(std::string_view section) {
  if (!section.starts_with(kModel)) return std::nullopt;
  section.remove_prefix(kModel.size());
  std::size_t number = 0;
  const char* end = section.data() + section.size();
  auto [rest, error] = std::from_chars(section.data(), end, number);
  const bool whole = section.empty() || (error == std::errc() && rest == end);
  return whole && number < 1024 ? std::optional(number) : std::nullopt;
}

std::vector<std::string> names_in_files(const ModelParameter& p) {
  std::vector<std::string> out;
  for (std::string& name : mtp_names(p.name)) {
    std::string single = p.expert() ? name_of_single_expert(name) : "";
    out.push_back(std::move(name));
    if (!single.empty()) out.push_back(std::move(single));
  }
  return out;
}

std::string name_in_file(const ModelParameter& p, const Spelling& spelling) {
  return spelling.old_mtp ? old_mtp_name(p.name).value_or(p.name) : p.name;
}

std::vector<RankRow> rank_rows(const std::vector<ModelParameter>& parameters, i32 index,
                               const ModelConfig& model) {
  std::vector<RankRow> out;
  for (const Piece& piece : stored_pieces(parameters[index], model))
    out.push_back({fsdp_tensor(parameters, index, piece, {0, piece.rows}), piece});
  return out;
}

RankTable::RankTable(const ModelMap& map, const RunSetup& setup, const Grid& grid, PipelineSplit split)
    : map_(map), setup_(setup), grid_(grid), split_(std::move(split)) {
  for (const ModelParameter& p : map.parameters(Grid{}, Cell{}, setup)) {
    whole_.insert(p.global_name);
    if (p.sources[0] >= 0) by_source_.emplace(p.sources[0], p.global_name);
  }
}

std::vector<ModelParameter> RankTable::parameters(const Cell& cell, i64 chunk) const {
  std::vector<ModelParameter> out = map_.parameters(grid_, cell, setup_, split_.part(cell.pp, chunk));
  for (ModelParameter& p : out)
    if (!whole_.contains(p.global_name))
      if (auto first = by_source_.find(p.sources[0]); first != by_source_.end())
        p.global_name = first->second;
  return out;
}

bool RankTable::idle(const ModelParameter& p, const Cell& cell, i64 chunk) const {
  return p.section->stage == Stage::kTiedOutput && split_.part(cell.pp, chunk).mtp &&
         map_.model().mtp.depths > 0;
}

}  // namespace mckpt::impl
