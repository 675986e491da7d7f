// Which group of an optimizer a parameter belongs to, in the forms in which Megatron's common state has the groups.
#include "convert/objects/param_groups.h"

#include <gtest/gtest.h>

#include "io/pickle/compose.h"
#include "io/pickle/pickle.h"
#include "io/pickle/writer.h"

namespace mckpt::impl {
namespace param_groups_test {

using Entries = std::vector<std::pair<std::string, std::string>>;

template <typename Write>
std::string pickled(Write&& write) {
  PickleWriter w;
  write(w);
  return w.finish();
}

std::string group(i64 id, double wd_mult, bool expert, std::string_view wd = "wd_mult") {
  return pickle_dict(Entries{{std::string(wd), pickled([&](PickleWriter& w) { w.real(wd_mult); })},
                             {"is_expert_parallel", pickled([&](PickleWriter& w) { w.boolean(expert); })},
                             {"id", pickled([&](PickleWriter& w) { w.integer(id); })}});
}

std::string optimizer(const std::vector<std::string>& groups) {
  return pickle_dict(Entries{{"optimizer", pickle_dict(Entries{{"param_groups", pickle_list(groups)}})}});
}

// The ids of the groups of: a matrix, a vector, an expert's matrix; -1: of no certain group.
std::vector<i64> found(const std::string& pickle) {
  Pickle read({reinterpret_cast<const u8*>(pickle.data()), pickle.size()}, {});
  ParamGroups groups(read.root());
  std::vector<i64> out;
  for (auto [decays, expert] : {std::pair(true, false), std::pair(false, false), std::pair(true, true)}) {
    std::optional<PickleValue> of = groups.of(decays, expert);
    out.push_back(of ? of->find("id")->as_int() : -1);
  }
  return out;
}

TEST(ParamGroups, AreFoundByWeightDecayAndExperts) {
  using Ids = std::vector<i64>;
  EXPECT_EQ(found(optimizer({group(1, 1, false), group(2, 0, false)})), (Ids{1, 2, 1}));
  EXPECT_EQ(found(optimizer({group(2, 0, false, "pre_wd_mult"), group(1, 1, false, "pre_wd_mult")})),
            (Ids{1, 2, 1}));
  EXPECT_EQ(found(optimizer({group(1, 1, false)})), (Ids{1, 1, 1}));
  EXPECT_EQ(found(optimizer({group(1, 1, false), group(2, 0, false), group(3, 1, true)})), (Ids{1, 2, 3}));
  std::string chained = pickle_numbered(
      std::vector{optimizer({group(1, 1, false), group(2, 0, false)}), optimizer({group(3, 1, true)})});
  EXPECT_EQ(found(chained), (Ids{1, 2, 3}));
  EXPECT_EQ(found(pickle_list(std::vector{optimizer({group(4, 1, false)}), optimizer({group(5, 1, true)})})),
            (Ids{4, 4, 5}));
  // Two groups that nothing tells apart, and none.
  EXPECT_EQ(found(optimizer({group(1, 1, false), group(2, 1, false)})), (Ids{-1, -1, -1}));
  EXPECT_EQ(found(optimizer({})), (Ids{-1, -1, -1}));
}

}  // namespace param_groups_test
}  // namespace mckpt::impl
