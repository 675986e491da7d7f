// Numbers of an optimizer and the parameters that have them: what is certain is taken, everything else is
// refused.
#include "convert/own/number_matching.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/error.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace number_matching_test {

using Shapes = NameMap<std::string, std::vector<i64>>;

std::map<std::string, std::string> matched(const std::vector<OrderedParameter>& order,
                                           const std::vector<NumberGroup>& groups, const Shapes& of_numbers) {
  NumberedStates found = match_numbers(order, groups, of_numbers,
                                       [](std::string why) { throw Error(Code::kNotHeld, std::move(why)); });
  return {found.key_of.begin(), found.key_of.end()};
}

const std::vector<OrderedParameter> kOrder = {
    {"embedding", {6, 4}}, {"norm", {4}}, {"proj", {4, 4}}, {"norm2", {4}}, {"expert", {4, 4}, true}};
Shapes shapes() { return {{"0", {6, 4}}, {"1", {4, 4}}, {"2", {4, 4}}, {"3", {4}}, {"4", {4}}}; }

TEST(NumberMatching, EachGroupListsItsParametersInTheOrderOfTheModel) {
  using Map = std::map<std::string, std::string>;
  EXPECT_EQ(matched(kOrder, {{"0", {"0", "1", "2"}}, {"1", {"3", "4"}}}, shapes()),
            (Map{{"0", "embedding"}, {"1", "proj"}, {"2", "expert"}, {"3", "norm"}, {"4", "norm2"}}));
  // Two optimizers, each with numbers of its own.
  EXPECT_EQ(
      matched(kOrder,
              {{"0.0", {"0.0", "0.1"}, false}, {"0.1", {"0.2", "0.3"}, false}, {"1.0", {"1.0"}, true}},
              {{"0.0", {6, 4}}, {"0.1", {4, 4}}, {"0.2", {4}}, {"0.3", {4}}, {"1.0", {4, 4}}}),
      (Map{{"0.0", "embedding"}, {"0.1", "proj"}, {"0.2", "norm"}, {"0.3", "norm2"}, {"1.0", "expert"}}));
}

TEST(NumberMatching, RefusesWhatIsNotCertain) {
  struct Case {
    std::vector<NumberGroup> groups;
    std::string_view says;
  };
  const Case cases[] = {
      {{{"0", {"0", "1"}}, {"1", {"3", "4"}}, {"2", {"2"}}},
       "parameter proj [4, 4] may be number 1 of group 0 or number 2 of group 2"},
      {{{"0", {"0", "1", "2"}}, {"1", {"3"}}}, "parameter norm2 [4] has the shape of no group's next number"},
      {{{"0", {"0", "1", "2", "9"}}, {"1", {"3", "4"}}}, "group 0 has 1 numbers more"},
      {{{"0", {"0", "1", "2"}, false}, {"1", {"3", "4"}, false}},
       "parameter expert [4, 4] has the shape of no group's next number"},
  };
  for (const Case& c : cases) {
    std::string told = thrown_by([&] { matched(kOrder, c.groups, shapes()); });
    EXPECT_NE(told.find(c.says), told.npos) << told;
  }
}

}  // namespace number_matching_test
}  // namespace mckpt::impl
