// Which groups are marked as of experts (is_expert_parallel), and which parameters they have.
#include "convert/optimizer/remarks.h"

#include <algorithm>
#include <map>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

bool is_marked_group(const TrainedGroup& g) {
  auto at = g.options.find("is_expert_parallel");
  return at != g.options.end() && at->second == "True";
}

// Megatron-FSDP marks no group, whatever is in it. Elsewhere experts have an optimizer of their own where
// they are divided over ranks, whose groups are all marked.
void check_parameters(Remarks& to) {
  const TrainedParameters experts = to.where([&](const Trained& p) { return p.group >= 0 && is_expert(p); });
  const bool some = std::ranges::any_of(to.content.groups, is_marked_group);
  auto is_marked = [&](const Trained* p) { return is_marked_group(to.content.groups[p->group]); };
  if (some && !experts.empty()) {
    TrainedParameters outside = experts;
    std::erase_if(outside, is_marked);
    to.add(Code::kImplausible, outside,
           cat(outside.size(), " of ", counted(std::ssize(experts), "expert parameter"),
               outside.size() == 1 ? " is" : " are",
               " outside the groups of experts (is_expert_parallel is not True)"),
           "gradients of such an expert are summed over ranks that have other experts");
  }
  TrainedParameters dense =
      to.where([&](const Trained& p) { return p.group >= 0 && !is_expert(p) && !is_numbered(p); });
  std::erase_if(dense, [&](const Trained* p) { return !is_marked(p); });
  to.add(Code::kImplausible, dense,
         cat(counted(std::ssize(dense), "parameter"), dense.size() == 1 ? " is" : " are",
             " in a group of experts and ", dense.size() == 1 ? "is not an expert" : "are not experts"),
         "gradients of such a parameter are not summed over all the ranks that have it");
}

// Groups without parameters, of several optimizers.
void check_optimizers(Remarks& to) {
  std::map<i64, std::pair<i64, i64>> chains;  // groups of an optimizer that are marked, and that are not
  for (const TrainedGroup& g : to.content.groups)
    (is_marked_group(g) ? chains[g.optimizer].first : chains[g.optimizer].second)++;
  if (chains.size() < 2) return;
  for (const TrainedGroup& g : to.content.groups)
    if (const auto [with, without] = chains[g.optimizer];
        with > 0 && without > 0 && is_marked_group(g) == (with <= without))
      to.add(cat(g.name, is_marked_group(g) ? " is" : " is not",
                 " marked as of experts (is_expert_parallel), unlike the other ",
                 counted(with + without - 1, "group"), " of the same optimizer"),
             "an optimizer has experts alone, or none");
  const bool any = std::ranges::any_of(chains, [](const auto& c) { return c.second.first > 0; });
  const i64 experts = std::ranges::count_if(to.content.parameters, is_expert);
  if (!to.content.lists && !any && experts > 0)
    to.add(
        cat("none of ", counted(std::ssize(to.content.groups), "group"), " in ",
            counted(std::ssize(chains), "optimizer"), " is marked as of experts, and the save has ",
            counted(experts, "expert parameter")),
        "a run with expert parallelism has an optimizer for experts, whose groups have is_expert_parallel True");
}

}  // namespace

void remark_experts(Remarks& to) {
  if (to.content.lists) check_parameters(to);
  check_optimizers(to);
}

}  // namespace mckpt::impl
