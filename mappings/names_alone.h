// Facts that the name of a tensor tells where its model is not known, by the rows of all families:
//
//   decoder.layers.3.ple.conv1d.weight     all ranks have it whole: no row of such a name cuts it
//   ngram_embedding.shard_7.weight         part 7 of ngram_embedding.weight: some row has {P} there
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mckpt::impl {

// Whether language models have such a parameter, and no rank of any of them has a part of it.
bool whole_by_name(std::string_view parameter);

struct PartName {
  std::size_t at, digits;  // the number of the part in the name
  std::string whole;       // the name without the part
};
std::optional<PartName> part_by_name(std::string_view tensor);

}  // namespace mckpt::impl
