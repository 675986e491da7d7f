// The end of a name says what a tensor is for.
#include "hf/adapter/lora/modules.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kWrapped = ".base_layer", kOfTokens = ".token_adapter";

struct Ending {
  std::string_view text;
  enum class Of : u8 { kA, kB, kBias, kEmbeddingA, kEmbeddingB, kMagnitude, kTokens } of;
};
constexpr Ending kEndings[] = {{".lora_A.weight", Ending::Of::kA},
                               {".lora_B.weight", Ending::Of::kB},
                               {".lora_B.bias", Ending::Of::kBias},
                               {".lora_embedding_A", Ending::Of::kEmbeddingA},
                               {".lora_embedding_B", Ending::Of::kEmbeddingB},
                               {".lora_magnitude_vector", Ending::Of::kMagnitude},
                               {".lora_magnitude_vector.weight", Ending::Of::kMagnitude},
                               {".token_adapter.trainable_tokens_delta", Ending::Of::kTokens}};

i64& place_in(AdapterModule& m, Ending::Of of, i64 depth) {
  switch (of) {
    case Ending::Of::kA:
      return m.pairs[depth].a;
    case Ending::Of::kB:
      return m.pairs[depth].b;
    case Ending::Of::kBias:
      return m.bias;
    case Ending::Of::kEmbeddingA:
      return m.embedding.a;
    case Ending::Of::kEmbeddingB:
      return m.embedding.b;
    case Ending::Of::kTokens:
      return m.tokens;
    case Ending::Of::kMagnitude:
      break;
  }
  return m.magnitude;
}

void put(AdapterNames& names, i64 t, std::string_view name, Ending::Of of) {
  i64 depth = 0;
  for (; name.ends_with(kWrapped); depth++) name.remove_suffix(kWrapped.size());
  AdapterModule& m = names.modules[std::string(name)];
  i64& place = place_in(m, of, depth);
  const bool wrapped_alone = depth > 0 && of != Ending::Of::kA && of != Ending::Of::kB;
  if (wrapped_alone || place >= 0) names.unused = t;
  place = t;
}

// "x.weight", and "x.base_layer.weight" of a module that has factors too, or
// "x.token_adapter.base_layer.weight" of one that has rows of tokens.
std::string own_name(std::string_view name) {
  std::string own(name);
  std::size_t at = own.rfind(kWrapped);
  if (at == own.npos || own.find('.', at + 1) != at + kWrapped.size()) return own;
  std::size_t size = kWrapped.size();
  if (own.substr(0, at).ends_with(kOfTokens)) at -= kOfTokens.size(), size += kOfTokens.size();
  return own.erase(at, size);
}

// A module that is saved whole may be there twice more, with what it replaced, because embeddings are saved
// as they are, too: "lm_head.modules_to_save.weight", "lm_head.original_module.weight". The name of the first
// one, "lm_head.weight"; "" for any other name.
std::string saved_name(std::string_view name) {
  for (std::string_view part : {".modules_to_save.", ".original_module."})
    if (std::size_t at = name.find(part); at != name.npos)
      return cat(name.substr(0, at), name.substr(at + part.size() - 1));
  return "";
}

}  // namespace

bool is_computed_type(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

std::string help_of_named_factor(std::string_view name) {
  for (std::string_view part : {".lora_A.", ".lora_B.", ".lora_embedding_A.", ".lora_embedding_B."}) {
    const std::size_t at = name.find(part);
    if (at == name.npos) continue;
    const std::string_view named = name.substr(at), rest = named.substr(part.size());
    if (rest == "weight" || rest == "bias") return "";  // no adapter's name
    const bool of_embedding = part.starts_with(".lora_embedding");
    const std::string_view ending = of_embedding ? "" : rest.substr(std::min(rest.rfind('.'), rest.size()));
    return cat("remove the adapter's name: ", escaped(named), " becomes ", part.substr(0, part.size() - 1),
               escaped(ending), ", as save_pretrained() writes it");
  }
  return "";
}

AdapterNames adapter_names(const Store& adapter) {
  AdapterNames out;
  std::vector<std::pair<i64, std::string>> again;
  for (i64 t = 0; t < adapter.tensor_count(); t++) {
    std::string_view name = adapter.name(t);
    if (!is_computed_type(adapter.dtype(t)))
      throw Error(Code::kUnsupportedTensor,
                  "the type of the adapter's tensor is not one that is computed with")
          .tensor(name)
          .expected("float32, bfloat16 or float16")
          .found(dtype_name(adapter.dtype(t)));
    if (!name.starts_with(kAdapterPrefix))
      throw Error(Code::kUnaccounted, "the tensor is none of an adapter of PEFT")
          .tensor(name)
          .expected(cat("a name that begins with ", kAdapterPrefix));
    name.remove_prefix(kAdapterPrefix.size());
    const Ending* ending = nullptr;
    for (const Ending& e : kEndings)
      if (name.ends_with(e.text)) ending = &e;
    if (std::string saved = saved_name(name); !saved.empty())
      again.emplace_back(t, std::move(saved));
    else if (ending)
      put(out, t, name.substr(0, name.size() - ending->text.size()), ending->of);
    else
      out.whole.emplace_back(t, own_name(name));
  }
  for (const auto& [t, saved] : again)
    if (std::ranges::find(out.whole, saved, &std::pair<i64, std::string>::second) == out.whole.end())
      out.unused = t;
  return out;
}

}  // namespace mckpt::impl
