// Plans of reshardings, without a result: the identity by which an unfinished run is continued, and the
// reasons of tensors that are left out.
#include "convert/plan/reshard/reshard.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "convert/plan/conversion.h"
#include "core/base/text.h"
#include "io/output/plan_identity.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace reshard_test {

const std::string kData = MCKPT_TEST_DATA;

ReshardOptions of_unknown_model() {
  ReshardOptions o{.source = kData + "/dcp/megatron_fsdp_v2", .target = "nowhere"};
  o.grid.dp = 2;
  o.fsdp.engine = Engine::kV2;
  o.fsdp.keys = SavedKeys::kStateDict;
  o.from.checkpoint.any_model = true;
  o.modules = UnitModules({"blocks.*"});
  return o;
}

// The sentences that name the setting.
std::vector<std::string> differences(const ReshardOptions& first, const ReshardOptions& now,
                                     std::string_view setting) {
  std::vector<std::string> out;
  for (std::string& line : plan_differences(plan_reshard(first).identity, plan_reshard(now).identity))
    if (line.find(cat("`", setting, "`")) != line.npos) out.push_back(std::move(line));
  return out;
}

TEST(ReshardIdentity, SaysWhichSettingDiffers) {
  const ReshardOptions first = of_unknown_model();
  EXPECT_EQ(plan_differences(plan_reshard(first).identity, plan_reshard(first).identity),
            std::vector<std::string>());
  ReshardOptions now = first;
  now.modules = UnitModules({"blocks.0", "blocks.1"});
  EXPECT_EQ(
      differences(first, now, "fsdp_module"),
      std::vector<std::string>{"`fsdp_module`: blocks.* in the first run, blocks.0 blocks.1 in this one"});
  now = first;
  now.from.checkpoint.source_tp = now.from.checkpoint.source_etp = 1;
  EXPECT_EQ(differences(first, now, "source_tp").size(), 1u);
  EXPECT_EQ(differences(first, now, "source_etp").size(), 1u);
}

// By reason, the sections of the tensors that have it.
std::map<std::string, std::set<std::string>> reasons(const ReshardOptions& options) {
  Conversion c = plan_reshard(options);
  std::map<std::string, std::set<std::string>> out;
  for (i64 t : c.proof.dropped) {
    std::string name(c.store->name(t));
    out[std::string(c.proof.left_out(t).reason)].insert(name.substr(0, name.find('.')));
  }
  return out;
}

TEST(ReshardProof, HasAReasonForEveryTensorThatIsLeftOut) {
  ReshardOptions weights = of_unknown_model();
  weights.from.weights_only = true;
  using Reasons = std::map<std::string, std::set<std::string>>;
  EXPECT_EQ(reasons(weights),
            (Reasons{{"a state of the optimizer, where only weights are wanted", {"optimizer"}}}));
}

}  // namespace reshard_test
}  // namespace mckpt::impl
