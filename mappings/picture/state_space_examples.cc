// Examples of the rules of recurrent mixers.
#include "mappings/config.h"
#include "mappings/picture/examples.h"

namespace mckpt::impl {
namespace {

ModelConfig gdn() {
  ModelConfig m;
  m.text.hidden = 2;
  m.gdn = {2, 4, 2, 1, 2};
  return m;
}

ModelConfig mamba() {
  ModelConfig m;
  m.text.hidden = 2;
  m.mamba = {4, 1, 2, 2, 2};
  return m;
}

}  // namespace

std::vector<RuleExample> state_space_examples() {
  return {
      {.name = "gdn_in_proj",
       .rule = "gdn_in_proj",
       .caption = "2 key heads of 2 rows, 4 value heads of 1 row, flat",
       .model = gdn(),
       .sources = {{{12, 2}}, {{4, 2}}, {{4, 2}}, {{4, 2}}},
       .parts = {{"q", rows(0, 2, 0, 4)},
                 {"k", rows(0, 2, 4, 4)},
                 {"v", rows(0, 2, 8, 4)},
                 {"z", rows(1, 2, 0, 4)},
                 {"b", rows(2, 2, 0, 4)},
                 {"a", rows(3, 2, 0, 4)}},
       .split = KeySplit::kGdnInProj},
      {.name = "gdn_in_proj_grouped",
       .rule = "gdn_in_proj_grouped",
       .caption = "2 key heads of 2 rows, 4 value heads of 1 row, grouped by key head",
       .model = gdn(),
       .sources = {{{16, 2}}, {{8, 2}}},
       .parts = {{"q", rows(0, 2, 0, 2, 8, 2)},
                 {"k", rows(0, 2, 2, 2, 8, 2)},
                 {"v", rows(0, 2, 4, 2, 8, 2)},
                 {"z", rows(0, 2, 6, 2, 8, 2)},
                 {"b", rows(1, 2, 0, 2, 4, 2)},
                 {"a", rows(1, 2, 2, 2, 4, 2)}},
       .split = KeySplit::kGdnInProj},
      {.name = "gdn_conv",
       .rule = "gdn_conv",
       .caption = "the channels of 2 key heads of 2 rows and 4 value heads of 1 row, 2 taps",
       .model = gdn(),
       .sources = {{{12, 1, 2}}},
       .parts = {{"q", rows(0, 2, 0, 4)}, {"k", rows(0, 2, 4, 4)}, {"v", rows(0, 2, 8, 4)}},
       .split = KeySplit::kGdnConv},
      {.name = "gdn_qkvz",
       .rule = "gdn_qkvz",
       .caption =
           "2 key heads of 2 rows, 4 value heads of 1 row, from flat tensors to one head after the other",
       .model = gdn(),
       .sources = {{{12, 2}}, {{4, 2}}},
       .parts = {{"q", rows(0, 2, 0, 4)},
                 {"k", rows(0, 2, 4, 4)},
                 {"v", rows(0, 2, 8, 4)},
                 {"z", rows(1, 2, 0, 4)}}},
      {.name = "gdn_ba",
       .rule = "gdn_ba",
       .caption = "4 value heads of 2 key heads",
       .model = gdn(),
       .sources = {{{4, 2}}, {{4, 2}}},
       .parts = {{"b", rows(0, 2, 0, 4)}, {"a", rows(1, 2, 0, 4)}}},
      {.name = "gdn_conv_by_head",
       .rule = "gdn_conv_by_head",
       .caption = "the channels of 2 key heads of 2 rows and 4 value heads of 1 row, 2 taps, by key head",
       .model = gdn(),
       .sources = {{{12, 1, 2}}},
       .parts = {{"q", rows(0, 2, 0, 4)}, {"k", rows(0, 2, 4, 4)}, {"v", rows(0, 2, 8, 4)}}},
      {.name = "mamba_in_proj",
       .rule = "mamba_in_proj",
       .caption = "4 heads of 1 row, 2 groups of 2 states",
       .model = mamba(),
       .sources = {{{20, 2}}},
       .parts = {{"z", rows(0, 2, 0, 4)},
                 {"x", rows(0, 2, 4, 4)},
                 {"B", rows(0, 2, 8, 4)},
                 {"C", rows(0, 2, 12, 4)},
                 {"dt", rows(0, 2, 16, 4)}},
       .split = KeySplit::kMambaInProj},
      {.name = "mamba_conv",
       .rule = "mamba_conv",
       .caption = "the channels of 4 heads of 1 row and 2 groups of 2 states, 2 taps",
       .model = mamba(),
       .sources = {{{12, 1, 2}}},
       .parts = {{"x", rows(0, 2, 0, 4)}, {"B", rows(0, 2, 4, 4)}, {"C", rows(0, 2, 8, 4)}},
       .split = KeySplit::kMambaConv},
  };
}

}  // namespace mckpt::impl
