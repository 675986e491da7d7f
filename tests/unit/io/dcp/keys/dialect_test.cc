#include "io/dcp/keys/dialect.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/text.h"
#include "io/store/format.h"

namespace mckpt::impl {
namespace {

TEST(DcpDialect, IsToldByNames) {
  struct Case {
    DcpDialect want;
    std::vector<const char*> tensors, objects;
    bool has_metadata_json = false;
  };
  using enum DcpDialect;
  const Case cases[] = {
      {kFsdpDtensor, {"model.module.a", "optimizer.state.module.module.module.a.exp_avg"}, {}},
      {kFsdpDtensor, {"model.module.a"}, {"optimizer.param_to_group_meta.module.module.a.lr"}},
      {kFsdpDtensor, {"model.module.a"}, {"checkpoint_version", "iteration"}},
      {kFsdpDtensor, {"model.module.l.linear_fc1.weight_w", "model.module.l.linear_fc1.weight_v"}, {}},
      {kFsdpDtensor, {"model0.module.a", "model1.module.a"}, {"args"}},
      {kMegatronFsdp, {"model.module.a", "optimizer.state.0.exp_avg"}, {"optimizer.param_groups.0.lr"}},
      {kMegatronFsdp, {"model.module.a"}, {}},
      {kStateDict, {"model.a", "optimizer.state.a.exp_avg"}, {}},
      {kStateDict, {"model.a"}, {}},
      {kTorchDist, {"a", "optimizer.state.exp_avg.a"}, {"common_state/shard_0_1"}},
      {kTorchDist, {"a"}, {}, true},
      {kPlain, {"a", "b"}, {}},
      {kPlain, {"model.a", "ema.a"}, {}},
      {kPlain, {}, {}},
  };
  for (const Case& c : cases) {
    DialectVotes votes;
    for (const char* name : c.tensors) votes.tensor(name);
    for (const char* name : c.objects) votes.object(name);
    EXPECT_EQ(format_text(dcp_format(votes.dialect(c.has_metadata_json))), format_text(dcp_format(c.want)))
        << (c.tensors.empty() ? "" : c.tensors[0]);
  }
}

}  // namespace
}  // namespace mckpt::impl
