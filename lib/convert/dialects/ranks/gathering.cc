// Ranks of one (tp, etp, ep) have the same parameters, which are listed once. A state is identified by its
// name and the tensor-parallel part of its parameter (etp for experts, tp for all others).
#include "convert/dialects/ranks/gathering.h"
#include "convert/keys/key_table.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/torch/table/table.h"
#include "mappings/model/expand.h"

#include <algorithm>

namespace mckpt::impl {

std::string whole_state_name(std::string_view name) {
  if (name.starts_with(kStateSection)) return std::string(name);
  return name.starts_with("state.") ? cat("optimizer.", name) : std::string();
}

const RankStates::Gathering::CellParameters& RankStates::Gathering::of(const Cell& cell) {
  auto [at, fresh] = cells_.try_emplace({cell.tp, cell.etp, cell.ep});
  CellParameters& out = at->second;
  if (!fresh) return out;
  out.parameters = map_.parameters(grid_, cell, setup_);
  adjust_(out.parameters);
  for (std::size_t p = 0; p < out.parameters.size(); p++)
    out.by_name.emplace(out.parameters[p].global_name, static_cast<i32>(p));
  return out;
}

void RankStates::Gathering::add(i32 file, i64 rank) {
  Cell cell = cell_of(grid_, rank);
  const CellParameters& mine = of(cell);
  const TorchTable& table = states_.table(file);
  for (i64 row = 0; row < table.size(); row++) {
    std::string name = whole_state_name(table.name(row));
    std::optional<StateName> parts = state_name(name);
    if (!parts) continue;
    auto known = mine.by_name.find(parts->key);
    if (known == mine.by_name.end()) {
      if (parts->key.find_first_not_of("0123456789") == std::string::npos) numbered_++;
      unknown_.push_back(cat(file_label(states_, file), ": ", escaped(name)));
      continue;
    }
    const ModelParameter& p = mine.parameters[known->second];
    auto [at, fresh] = known_.try_emplace({name, p.expert(), p.expert() ? cell.etp : cell.tp}, nullptr);
    if (fresh) {
      KeySection section = key_section(DcpDialect::kFsdpDtensor, name);
      at->second = &list_.emplace_back(
          State{&mine.parameters, known->second, std::string(section.front), std::string(section.tail), {}});
    }
    i64 place = p.expert() ? cell.edp : cell.cp + grid_.cp * cell.dp;
    at->second->held.push_back({place, rank, file, row});
  }
}

void RankStates::Gathering::refuse_unknown() const {
  if (unknown_.empty()) return;
  if (numbered_ == std::ssize(unknown_))
    throw Error(Code::kUnaccounted,
                "the states in the ranks' files have numbers, not the names of their parameters")
        .file(states_.root())
        .expected("state.<parameter>.exp_avg")
        .found(unknown_[0])
        .note(
            "torch.optim numbers the parameters of its groups; a piece of a rank does not have the shape of its parameter, so that nothing tells which parameter has which number")
        .help("save the states under the names of `named_parameters()`; or leave out `rank_states`");
  Error e(Code::kUnaccounted, cat("the ranks' files have ", counted(std::ssize(unknown_), "state"),
                                  " of parameters that their ranks do not have"));
  for (std::size_t i = 0; i < std::min<std::size_t>(unknown_.size(), 10); i++) e.note(unknown_[i]);
  throw e.file(states_.root())
      .help("experts have their global numbers; check `source_tp`, `source_ep` and `source_etp`");
}

std::optional<Finding> RankStates::Gathering::without_states() const {
  NameSet<std::string> with;
  for (const State& s : list_) with.insert(s.of().global_name);
  std::vector<std::string> names;
  NameSet<std::string> seen;
  for (const auto& [cell, mine] : cells_)
    for (const ModelParameter& p : mine.parameters)
      if (!p.buffer() && p.tied_to < 0 && seen.insert(p.global_name).second && !with.contains(p.global_name))
        names.push_back(p.global_name);
  if (names.empty()) return std::nullopt;
  return Finding{.code = Code::kCounterpart,
                 .message = cat(names.size(), " of ", counted(std::ssize(seen), "parameter"),
                                " have no states in the ranks' files: ", listed(names, 5)),
                 .help = "frozen parameters have none; of others, files or entries are missing",
                 .warning = true};
}

}  // namespace mckpt::impl
