// Which group of an optimizer a parameter belongs to, in the forms in which Megatron's common state has the
// groups.
#include "convert/facts/param_groups.h"

#include <gtest/gtest.h>

#include "io/pickle/pickle.h"
#include "io/pickle/write/compose.h"
#include "io/pickle/write/writer.h"

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
  ParamGroups groups(read.root(), nullptr);
  std::vector<i64> out;
  for (auto [decays, expert] : {std::pair(true, false), std::pair(false, false), std::pair(true, true)}) {
    std::optional<PickleValue> of = groups.of({.decays = decays, .expert = expert});
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

// A group with a learning rate: of the schedule, or of its own.
std::string rated(i64 id, double wd_mult, double rate, bool usual, bool decoupled = false) {
  return pickle_dict(Entries{{"wd_mult", pickled([&](PickleWriter& w) { w.real(wd_mult); })},
                             {"max_lr", pickled([&](PickleWriter& w) { w.real(rate); })},
                             {"default_config", pickled([&](PickleWriter& w) { w.boolean(usual); })},
                             {"is_decoupled_lr", pickled([&](PickleWriter& w) { w.boolean(decoupled); })},
                             {"id", pickled([&](PickleWriter& w) { w.integer(id); })}});
}

// The ids of the groups of: a matrix, a vector, the embedding.
std::vector<i64> found_at_end(const std::string& pickle, std::optional<double> decoupled) {
  Pickle read({reinterpret_cast<const u8*>(pickle.data()), pickle.size()}, {});
  std::string text =
      decoupled
          ? pickle_dict(Entries{{"decoupled_lr", pickled([&](PickleWriter& w) { w.real(*decoupled); })}})
          : pickle_dict(Entries{});
  Pickle args({reinterpret_cast<const u8*>(text.data()), text.size()}, {});
  const PickleValue said = args.root();
  ParamGroups groups(read.root(), &said);
  std::vector<i64> out;
  for (GroupMarks marks : {GroupMarks{}, GroupMarks{.decays = false}, GroupMarks{.at_end = true}}) {
    std::optional<PickleValue> of = groups.of(marks);
    out.push_back(of ? of->find("id")->as_int() : -1);
  }
  return out;
}

TEST(ParamGroups, TheEmbeddingAndTheOutputLayerMayHaveARateOfTheirOwn) {
  using Ids = std::vector<i64>;
  const std::string newer =
      optimizer({rated(1, 1, 0.25, true), rated(2, 1, 0.5, false), rated(3, 0, 0.25, true)});
  EXPECT_EQ(found_at_end(newer, 0.5), (Ids{1, 3, 2}));
  // The args give no such rate, or another one: the group may hold other parameters.
  EXPECT_EQ(found_at_end(newer, std::nullopt), (Ids{-1, 3, -1}));
  EXPECT_EQ(found_at_end(newer, 0.75), (Ids{-1, 3, -1}));
  // Older versions mark the group.
  EXPECT_EQ(found_at_end(optimizer({rated(1, 1, 0.25, true, true), rated(2, 1, 0.25, true)}), std::nullopt),
            (Ids{2, 2, 1}));
}

}  // namespace param_groups_test
}  // namespace mckpt::impl
