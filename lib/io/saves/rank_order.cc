// Tensor ranks count fastest in every order of ranks that Megatron has. Stages and experts are compared where
// the args say that they are in the usual order (core/fsdp/grid.h); without expert_tensor_parallel_size,
// experts are not.
#include "io/saves/rank_order.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/rank_folders.h"
#include "io/dcp/run/args.h"
#include "io/dcp/run/sizes.h"
#include "io/pickle/value.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// The args of the file in one folder: what they say of its rank and of the run.
struct SaidRank {
  std::string folder;
  i64 rank = -1, world = -1, tp = -1, pp = -1, ep = -1, etp = -1;
  bool other_order = false;  // stages are between the data-parallel ranks
};

i64 number(const PickleValue& args, std::string_view name) {
  const PickleValue* value = arg_of(args, name);
  return value != nullptr && value->is_int() ? value->as_int() : -1;
}

SaidRank said_by(std::string_view folder, const PickleValue& args) {
  SaidRank out{.folder = std::string(folder)};
  out.rank = number(args, "rank");
  out.world = number(args, "world_size");
  const RunSizes facts = run_sizes(args);
  out.tp = facts.tensor_ranks.value_or(-1), out.pp = facts.pipeline_stages.value_or(-1);
  out.ep = facts.expert_ranks.value_or(-1), out.etp = facts.expert_tensor_ranks.value_or(-1);
  const PickleValue* order = arg_of(args, "use_tp_pp_dp_mapping");
  out.other_order = order != nullptr && order->is(PickleValue::Kind::kBool) && order->as_bool();
  return out;
}

std::vector<SaidRank> said_ranks(const Store& store) {
  constexpr std::string_view kArgs = "/args";
  std::vector<SaidRank> out;
  for (i64 o = 0; o < std::ssize(store.objects()); o++) {
    std::string_view name = store.objects()[o].name;
    if (!name.ends_with(kArgs) || name.find('/') + kArgs.size() != name.size()) continue;
    try {
      if (auto args = store.object(o); args && args->is(PickleValue::Kind::kObject))
        out.push_back(said_by(name.substr(0, name.size() - kArgs.size()), *args));
    } catch (const Error&) {  // what is wrong with an object is reported where it is read
    }
  }
  return out;
}

// The numbers that the folder of the file's rank has; -1 for one that the args do not say. Empty if the args
// say no rank of a run.
std::vector<i64> numbers_of(const SaidRank& said) {
  if (said.rank < 0 || said.tp < 1) return {};
  const i64 stages = std::max<i64>(said.pp, 1), experts = std::max<i64>(said.ep, 1);
  const bool usual =
      !said.other_order && said.world >= stages && said.rank < said.world && said.world % stages == 0;
  const i64 stage_ranks = usual ? said.world / stages : 0;
  std::vector<i64> out{said.rank % said.tp};
  if (stages > 1) out.push_back(usual ? said.rank / stage_ranks : -1);
  if (experts > 1) out.push_back(usual && said.etp > 0 ? said.rank % stage_ranks / said.etp % experts : -1);
  return out;
}

bool fits(const std::vector<i64>& said, const std::vector<i64>& folder) {
  return said.size() == folder.size() &&
         std::ranges::equal(said, folder, [](i64 a, i64 b) { return a < 0 || a == b; });
}

std::string in_words(const SaidRank& said, const std::vector<i64>& numbers) {
  std::string text = cat("tp ", numbers[0]);
  std::size_t at = 1;
  for (auto [size, name] : {std::pair{said.pp, ", stage "}, {said.ep, ", ep "}})
    if (size > 1) {
      if (numbers[at] >= 0) text += cat(name, numbers[at]);
      at++;
    }
  return text;
}

}  // namespace

RankOrder rank_order(const Store& store) {
  const std::vector<SaidRank> said = said_ranks(store);
  RankOrder out;
  if (said.empty()) return out;
  const bool one_process =
      std::ranges::all_of(said, [&](const SaidRank& s) { return s.rank == said[0].rank; });
  if (said.size() > 1 && one_process) return out;
  out.said = true;
  for (const SaidRank& s : said) {
    const std::vector<i64> numbers = numbers_of(s), folder = rank_folder_numbers(s.folder);
    if (numbers.empty()) out.said = false;
    if (numbers.empty() || numbers.size() != folder.size() || fits(numbers, folder)) continue;
    out.findings.push_back(
        {.code = Code::kBadShards,
         .file = cat(s.folder, "/model_optim_rng.pt"),
         .message = cat("the file is that of another rank: its args say rank ", s.rank, ", which is ",
                        in_words(s, numbers), ", and the folder is that of ", in_words(s, folder)),
         .help = "copy the folders again, each under its own name"});
  }
  return out;
}

}  // namespace mckpt::impl
