// One table of words; the first ones are the short ones, which an error lists.
#include "api/kinds.h"

#include <utility>
#include <vector>

#include "core/base/error.h"
#include "io/store/open/torch_names.h"

namespace mckpt::impl {
namespace {

constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
    {"fsdp", "to-fsdp"},
    {"mcore", "to-mcore"},
    {"hf", "to-hf"},
    {"reshard", "reshard"},
    {"safetensors", "to-safetensors"},
    {"dcp", "to-dcp"},
    {"dequantize", "dequantize"},
    {"quantize", "quantize"},
    {"hdf5", "to-hdf5"},
    {"from-hdf5", "from-hdf5"},
    {"pt-to-safetensors", "pt-to-safetensors"},
    {"pt", "safetensors-to-pt"},
    {"ranks", "to-ranks"},
    {"ungroup", "ungroup"},
    {"group", "group"},
    {"hybrid-to-gpt", "hybrid-to-gpt"},
    {"gpt-to-hybrid", "gpt-to-hybrid"},
    {"to-fsdp", "to-fsdp"},
    {"to-mcore", "to-mcore"},
    {"to-hf", "to-hf"},
    {"to-safetensors", "to-safetensors"},
    {"to-dcp", "to-dcp"},
    {"to-hdf5", "to-hdf5"},
    {"to-ranks", "to-ranks"},
    {"to-pt", "to-ranks"},
    {"hf-to-fsdp", "to-fsdp"},
    {"fsdp-to-hf", "to-hf"},
    {"safetensors-to-pt", "safetensors-to-pt"},
};
constexpr std::size_t kShortKinds = 17;

}  // namespace

std::string_view kind_of(std::string_view word) {
  std::vector<std::string_view> words;
  for (const auto& [name, kind] : kKinds) {
    if (name == word) return kind;
    words.push_back(name);
  }
  std::string_view near = nearest(word, words);
  words.resize(kShortKinds);
  Error e(Code::kUsage, "there is no such kind of conversion");
  e.expected(listed(words, kShortKinds)).found(escaped(word));
  if (!near.empty()) e.help(cat("did you mean `", near, "`?"));
  throw e;
}

void check_target(std::string_view word, const std::string& target) {
  if (word != "pt" || target.empty() || has_torch_suffix(target)) return;
  throw Error(Code::kUsage, "to=\"pt\" makes one file, and the target is not named as one")
      .expected("a name that ends in .pt, .pth, .bin or .ckpt")
      .found(escaped(target, 4096))
      .help("to=\"ranks\" makes a folder with the files of Megatron's ranks (mp_rank_*)");
}

}  // namespace mckpt::impl
