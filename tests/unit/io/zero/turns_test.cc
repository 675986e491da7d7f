#include "io/zero/turns.h"

#include <gtest/gtest.h>

#include <deque>

namespace mckpt::impl {
namespace turns_test {

using Addresses = NameMap<std::string_view, ZeroOptimizerStates::Address>;

// Five parameters in the optimizer's order: a [4], b [2], c [6], d [1], e [3], on two ranks of eight items.
std::deque<Addresses> of_two_ranks() {
  std::deque<Addresses> out(2);
  out[0] = {{"a", {0, 4}}, {"b", {4, 2}}, {"c", {6, 2}}};
  out[1] = {{"c", {0, 4}}, {"d", {4, 1}}, {"e", {5, 3}}};
  return out;
}

ZeroGroup group_of(std::string_view names) {
  const i64 items[] = {4, 2, 6, 1, 3};
  ZeroGroup out;
  for (std::size_t i = 0; i < names.size(); i++)
    out.push_back({names.substr(i, 1), Shape(std::vector<i64>{items[names[i] - 'a']})});
  return out;
}

std::string fault(const std::deque<Addresses>& ranks, const ZeroGroup& parameters) {
  std::vector<const Addresses*> all;
  for (const Addresses& a : ranks) all.push_back(&a);
  return turns_fault(all, parameters);
}

TEST(ZeroTurns, EveryRankTakesItsTurn) {
  const std::deque<Addresses> ranks = of_two_ranks();
  EXPECT_EQ(fault(ranks, group_of("acebd")), "");
  EXPECT_EQ(fault(ranks, group_of("abcde")), "place 1 is the turn of c, in param_shapes of b");
  EXPECT_EQ(fault(ranks, group_of("aceb")), "it has 5 parameters, param_shapes 4");
  EXPECT_EQ(fault({ranks[1], ranks[0]}, group_of("acebd")), "it has 6 parameters, param_shapes 5");
  std::deque<Addresses> other = ranks;
  other[1]["c"].items = 3;
  EXPECT_EQ(fault(other, group_of("acebd")), "it has 5 items of c, param_shapes 6");
}

TEST(ZeroTurns, AParameterWithoutItemsHidesTheTurns) {
  ZeroGroup parameters = group_of("abcde");
  parameters.push_back({"empty", Shape(std::vector<i64>{0})});
  EXPECT_EQ(fault(of_two_ranks(), parameters), "");
}

}  // namespace turns_test
}  // namespace mckpt::impl
